//! The stage: where the sandbox's places are laid out before bubblewrap puts them together.
//!
//! # Theory of operation
//! Bubblewrap takes paths, and follows the links in them. Some directories that a path
//! leads through can be written by an agent: by one that runs now in the same workspace, or
//! by one that planted a link before. So what is shown is opened by this module, once,
//! without following links: the paths of a plan have none. That is done in a mount namespace
//! that only bubblewrap will inherit. There, a small file system in memory is laid over
//! `/tmp`, and on it each place gets a number under which bubblewrap finds it:
//!
//! ```text
//! /tmp/3   a view of the workspace, by descriptor
//!    └ .git            a view of itself, so that it cannot be renamed
//!       └ hooks        a read-only view of itself
//! /tmp/4   an empty directory, to be the sandbox's /tmp
//! /tmp/5   ~/.cache with changes to it kept in memory, without its known places of secrets
//! ```
//! Nobody else sees this directory. All places in memory share one limit of size.
//!
//! What is not to be seen of a directory whose changes are kept in memory is a white-out in a layer
//! of its own in front of it (docs/decisions/0020-white-outs-and-one-table-of-secrets.md).
//!
//! A protected file in a writable directory is a mount point, which the kernel lets nobody
//! rename or remove. A directory above it could still be renamed, and another one put in its
//! place. So each directory on the way down is made a mount point, too.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, chmodat, fstat, mkdirat, mknodat, openat};
use stockade_sys::{mount::Tree, namespace::enter_mount_namespace};

use super::streams::{CommandStreams, Streams};
use crate::{
    error::Error,
    nofollow::{pin, pin_below},
    plan::{Fallback, Guard, Operation, Plan, Step},
};

/// What the stage is laid over. Bubblewrap builds the sandbox's root there, too, so the
/// directory exists.
const STAGE: &str = "/tmp";

/// Names on the stage of what covers hidden files and directories.
const HIDDEN_FILE: &str = "file";
const HIDDEN_DIRECTORY: &str = "directory";

/// The device by which overlayfs knows that a name does not exist.
const WHITE_OUT: u64 = 0;

/// Where bubblewrap finds the place of a step, if it is one that is staged.
pub(crate) fn path(step: usize, operation: &Operation) -> Option<String> {
    match operation {
        Operation::HiddenFile => Some(format!("{STAGE}/{HIDDEN_FILE}")),
        Operation::HiddenDirectory => Some(format!("{STAGE}/{HIDDEN_DIRECTORY}")),
        Operation::Empty { .. } => Some(format!("{STAGE}/{step}")),
        _ => operation.source().map(|_| format!("{STAGE}/{step}")),
    }
}

/// What is to be laid out.
#[derive(Debug)]
pub(crate) struct Staging {
    memory: Option<u64>,
    files: Vec<Step>,
}

/// What could not be known before the stage was built.
#[derive(Debug)]
pub(crate) struct Built {
    /// Scratch directories could be overlaid. Otherwise they are empty, or read-only.
    pub(crate) scratch: bool,
    /// The command's standard streams.
    pub(crate) given: CommandStreams,
}

impl Staging {
    pub(crate) fn of(plan: &Plan) -> Self {
        Self {
            memory: plan.memory.as_ref().map(|bytes| bytes.value),
            files: plan.files.clone(),
        }
    }

    /// Lays it all out, in a mount namespace of this thread's own.
    pub(crate) fn build(self, streams: &Streams) -> Result<Built, Error> {
        let failed = |what| {
            move |error| Error::Stage {
                what,
                path: STAGE.into(),
                error,
            }
        };
        // Only what is opened after this belongs to the new namespace, and can be shown in it.
        enter_mount_namespace().map_err(failed("a mount namespace for"))?;
        let pins = self.pins()?;
        let given = streams.open()?;
        // From here on, what lies in the host's own `/tmp` has no path any more.
        let stage = Stage::new(self.memory).map_err(failed("a stage at"))?;
        let mut built = Built {
            scratch: true,
            given,
        };
        for (number, (step, pin)) in self.files.iter().zip(&pins).enumerate() {
            let name = number.to_string();
            let path = step.operation.source().unwrap_or(&step.at);
            let failed = |error| Error::Stage {
                what: "showing",
                path: path.to_owned(),
                error,
            };
            match (&step.operation, pin) {
                (Operation::Empty { mode }, _) => {
                    stage.directory(&name, *mode).map_err(failed)?;
                }
                (
                    Operation::Scratch {
                        reserved, fallback, ..
                    },
                    Some(pin),
                ) => {
                    let absent = self.absent(&step.at, reserved);
                    let overlaid = stage.scratch(&name, pin, &absent, *fallback);
                    built.scratch &= overlaid.map_err(failed)?;
                }
                (operation, Some(pin)) => {
                    let tree = stage.view(&name, pin).map_err(failed)?;
                    if matches!(operation, Operation::Writable { .. }) {
                        stage.protect(&tree, path, self.guards(&step.at))?;
                    }
                }
                (_, None) => {}
            }
        }
        Ok(built)
    }

    /// Opens all that is shown.
    fn pins(&self) -> Result<Vec<Option<OwnedFd>>, Error> {
        let open = |path: &Path| {
            let path = path.to_owned();
            pin(&path).map_err(|error| Error::Changed { path, error })
        };
        let sources = self.files.iter().map(|step| step.operation.source());
        sources.map(|source| source.map(open).transpose()).collect()
    }

    /// The guards in a place that is writable, each by its path there.
    fn guards(&self, tree: &Path) -> impl Iterator<Item = (&Path, Guard)> {
        self.files
            .iter()
            .filter_map(move |step| match step.operation {
                Operation::Guard(guard) => Some((step.at.strip_prefix(tree).ok()?, guard)),
                _ => None,
            })
    }

    /// The paths below a scratch directory that do not exist in it, without those in others.
    fn absent(&self, tree: &Path, reserved: &[PathBuf]) -> Vec<PathBuf> {
        let steps = self.files.iter();
        let steps = steps.filter(|step| step.operation == Operation::Absent);
        let below = steps.filter_map(|step| step.at.strip_prefix(tree).ok());
        let mut all: Vec<PathBuf> = below.map(Path::to_owned).collect();
        all.extend(reserved.iter().cloned());
        // What lies in a directory comes right after it.
        all.sort();
        all.dedup_by(|next, kept| next.starts_with(kept));
        all
    }
}

/// The file system that everything is laid out on.
struct Stage(Tree);

impl Stage {
    fn new(memory: Option<u64>) -> io::Result<Self> {
        let stage = Self(Tree::memory(memory)?);
        stage.0.attach_at(STAGE)?;
        stage.file(HIDDEN_FILE)?;
        stage.directory(HIDDEN_DIRECTORY, 0)?;
        Ok(stage)
    }

    fn directory(&self, name: &str, mode: u32) -> io::Result<OwnedFd> {
        mkdirat(self, name, Mode::RWXU)?;
        let directory = self.open(name)?;
        // Not subject to the caller's umask.
        chmodat(self, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
        Ok(directory)
    }

    fn file(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(self, name, flags, Mode::empty())?;
        self.open(name)
    }

    fn open(&self, name: &str) -> io::Result<OwnedFd> {
        pin_below(self, Path::new(name))
    }

    /// Shows what was opened under this name.
    fn view(&self, name: &str, what: &OwnedFd) -> io::Result<Tree> {
        let place = if is_directory(what)? {
            self.directory(name, 0o700)?
        } else {
            self.file(name)?
        };
        let tree = Tree::view(what)?;
        if is_device(what)? {
            // It can be written to all the same. But its mode and owner are those of the host's.
            tree.make_read_only()?;
        }
        tree.attach(place)?;
        Ok(tree)
    }

    /// The same with changes kept here, and without what is absent. Says whether that was
    /// possible; if not, less is shown.
    fn scratch(
        &self,
        name: &str,
        what: &OwnedFd,
        absent: &[PathBuf],
        fallback: Fallback,
    ) -> io::Result<bool> {
        let place = self.directory(name, 0o700)?;
        if let Ok(overlay) = self.overlay(name, what, absent) {
            overlay.attach(place)?;
            return Ok(true);
        }
        if fallback == Fallback::ReadOnly && absent.is_empty() {
            let tree = Tree::view(what)?;
            tree.make_read_only()?;
            tree.attach(place)?;
        }
        Ok(false)
    }

    fn overlay(&self, name: &str, what: &OwnedFd, absent: &[PathBuf]) -> io::Result<Tree> {
        let changes = format!("{name}-changes");
        let upper = self.directory(&changes, 0o700)?;
        let work = self.directory(&format!("{name}-work"), 0o700)?;
        // The directory's own mode is that of the upper one.
        chmodat(self, &changes, mode(what)?, AtFlags::empty())?;
        if absent.is_empty() {
            return Tree::overlay(&[what.as_fd()], upper.as_fd(), work.as_fd());
        }
        let front = self.white_outs(&format!("{name}-front"), what, absent)?;
        Tree::overlay(&[front.as_fd(), what.as_fd()], upper.as_fd(), work.as_fd())
    }

    /// A layer with white-outs and the directories on the way to them, each with the mode that
    /// it has in `what`.
    fn white_outs(&self, name: &str, what: &OwnedFd, absent: &[PathBuf]) -> io::Result<OwnedFd> {
        let front = self.directory(name, 0o700)?;
        let mut made = BTreeSet::new();
        for path in absent {
            let mut above: Vec<_> = path.ancestors().skip(1).collect();
            above.reverse();
            // The first is the layer itself.
            for directory in above.into_iter().skip(1) {
                if made.insert(directory) {
                    mkdirat(&front, directory, Mode::RWXU)?;
                    if let Ok(original) = pin_below(what, directory)
                        && is_directory(&original)?
                    {
                        let mode = mode(&original)?;
                        chmodat(&front, directory, mode, AtFlags::empty())?;
                    }
                }
            }
            mknodat(
                &front,
                path,
                FileType::CharacterDevice,
                Mode::empty(),
                WHITE_OUT,
            )?;
        }
        Ok(front)
    }

    fn protect<'a>(
        &self,
        tree: &Tree,
        path: &Path,
        guards: impl Iterator<Item = (&'a Path, Guard)>,
    ) -> Result<(), Error> {
        let mut anchored = BTreeSet::new();
        for (below, guard) in guards {
            let changed = |error| Error::Changed {
                path: path.join(below),
                error,
            };
            let mut above: Vec<_> = below.ancestors().skip(1).collect();
            above.reverse();
            // The first is the tree's own root.
            for directory in above.into_iter().skip(1) {
                if anchored.insert(directory) {
                    let place = pin_below(tree, directory).map_err(changed)?;
                    let anchor = Tree::view(&place).map_err(changed)?;
                    anchor.attach(&place).map_err(changed)?;
                }
            }
            let place = pin_below(tree, below).map_err(changed)?;
            self.guard(&place, guard).map_err(changed)?;
        }
        Ok(())
    }

    fn guard(&self, place: &OwnedFd, guard: Guard) -> io::Result<()> {
        let cover = match guard {
            Guard::ReadOnly => Tree::view(place)?,
            Guard::Hidden if is_directory(place)? => Tree::view(self.open(HIDDEN_DIRECTORY)?)?,
            Guard::Hidden => Tree::view(self.open(HIDDEN_FILE)?)?,
        };
        cover.make_read_only()?;
        cover.attach(place)
    }
}

impl AsFd for Stage {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn mode(what: &OwnedFd) -> io::Result<Mode> {
    Ok(Mode::from_raw_mode(fstat(what)?.st_mode))
}

fn is_device(what: &OwnedFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(what)?.st_mode);
    Ok(matches!(
        kind,
        FileType::CharacterDevice | FileType::BlockDevice
    ))
}

fn is_directory(what: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(what)?.st_mode) == FileType::Directory)
}
