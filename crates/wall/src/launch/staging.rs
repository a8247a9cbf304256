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
//! What is not to be seen of a directory whose changes are kept in memory is a white-out in a
//! layer in front of it, which holds nothing else. It is no mount, so nobody who has mounts of
//! their own can lift it; it is in no layer that can be written, so what is made and removed in
//! its place does not bring back what it hides; and it hides as well what appears there later.
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

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, chmodat, fstat, linkat, mkdirat, mknodat, openat},
    io::Errno,
};
use stockade_sys::{mount::Tree, namespace::enter_mount_namespace};

use super::streams::{CommandStreams, Streams};
use crate::{
    error::Error,
    nofollow::{pin, pin_below},
    plan::{Fallback, Guard, Operation, Plan},
};

/// What the stage is laid over. Bubblewrap builds the sandbox's root there, too, so the
/// directory exists.
const STAGE: &str = "/tmp";

/// Names on the stage of what covers hidden files and directories.
const HIDDEN_FILE: &str = "file";
const HIDDEN_DIRECTORY: &str = "directory";
/// The one white-out that all others are links to, which is cheaper than to make each.
const WHITE_OUT: &str = "white-out";

/// The device by which overlayfs knows that a name does not exist.
const ABSENT: u64 = 0;

/// Where bubblewrap finds the place of a step, if it is one that is staged.
pub(crate) fn path(step: usize, operation: &Operation) -> Option<String> {
    match operation {
        Operation::HiddenFile { .. } => Some(format!("{STAGE}/{HIDDEN_FILE}")),
        Operation::HiddenDirectory { .. } => Some(format!("{STAGE}/{HIDDEN_DIRECTORY}")),
        Operation::Empty { .. } => Some(format!("{STAGE}/{step}")),
        _ => operation.source().map(|_| format!("{STAGE}/{step}")),
    }
}

/// What is to be laid out.
#[derive(Debug)]
pub(crate) struct Staging {
    memory: Option<u64>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    name: String,
    /// The path outside, for messages.
    path: PathBuf,
    kind: ItemKind,
}

#[derive(Debug)]
enum ItemKind {
    Empty {
        mode: u32,
    },
    View {
        guards: Vec<Guarded>,
    },
    Scratch {
        /// What does not exist in it, sorted.
        absent: Vec<PathBuf>,
        fallback: Fallback,
    },
}

/// Something below a view.
#[derive(Debug)]
struct Guarded {
    below: PathBuf,
    guard: Guard,
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
        let item = |(step, operation): (usize, &Operation)| {
            let kind = match operation {
                Operation::Empty { mode, .. } => ItemKind::Empty { mode: *mode },
                Operation::Scratch { fallback, .. } => ItemKind::Scratch {
                    absent: absent(operation, plan),
                    fallback: *fallback,
                },
                Operation::ReadOnly { .. }
                | Operation::Writable { .. }
                | Operation::Device { .. } => ItemKind::View {
                    guards: guards(operation, plan),
                },
                _ => return None,
            };
            Some(Item {
                name: step.to_string(),
                path: operation.source().unwrap_or(operation.at()).to_owned(),
                kind,
            })
        };
        let operations = plan.files.iter().map(|step| &step.operation);
        Self {
            memory: plan.memory.as_ref().map(|bytes| bytes.value),
            items: operations.enumerate().filter_map(item).collect(),
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
        for (item, pin) in self.items.iter().zip(&pins) {
            let failed = |error| Error::Stage {
                what: "showing",
                path: item.path.clone(),
                error,
            };
            match (&item.kind, pin) {
                (ItemKind::View { guards }, Some(pin)) => {
                    let tree = stage.view(&item.name, pin).map_err(failed)?;
                    stage.protect(&tree, &item.path, guards)?;
                }
                (ItemKind::Scratch { absent, fallback }, Some(pin)) => {
                    let overlaid = stage.scratch(&item.name, pin, absent, *fallback);
                    built.scratch &= overlaid.map_err(failed)?;
                }
                (ItemKind::Empty { mode }, _) => {
                    stage.directory(&item.name, *mode).map_err(failed)?;
                }
                (_, None) => return Err(failed(io::ErrorKind::NotFound.into())),
            }
        }
        Ok(built)
    }

    /// Opens all that is shown.
    fn pins(&self) -> Result<Vec<Option<OwnedFd>>, Error> {
        let open = |item: &Item| match item.kind {
            ItemKind::Empty { .. } => Ok(None),
            ItemKind::View { .. } | ItemKind::Scratch { .. } => {
                pin(&item.path).map(Some).map_err(|error| Error::Changed {
                    path: item.path.clone(),
                    error,
                })
            }
        };
        self.items.iter().map(open).collect()
    }
}

/// The guards of what this operation makes writable.
fn guards(operation: &Operation, plan: &Plan) -> Vec<Guarded> {
    let Operation::Writable { at: tree, .. } = operation else {
        return Vec::new();
    };
    let guarded = |operation: &Operation| match operation {
        Operation::Guard { at, guard } => Some(Guarded {
            below: at.strip_prefix(tree).ok()?.to_owned(),
            guard: *guard,
        }),
        _ => None,
    };
    let operations = plan.files.iter().map(|step| &step.operation);
    operations.filter_map(guarded).collect()
}

/// The paths below a scratch directory that do not exist in it, without those in others.
fn absent(operation: &Operation, plan: &Plan) -> Vec<PathBuf> {
    let Operation::Scratch {
        at: tree, reserved, ..
    } = operation
    else {
        return Vec::new();
    };
    let is_absent = |operation: &Operation| match operation {
        Operation::Absent { at } => at.strip_prefix(tree).ok().map(Path::to_owned),
        _ => None,
    };
    let operations = plan.files.iter().map(|step| &step.operation);
    let mut all: Vec<PathBuf> = operations.filter_map(is_absent).collect();
    all.extend(reserved.iter().cloned());
    // What lies in a directory comes right after it.
    all.sort();
    all.dedup_by(|next, kept| next.starts_with(kept));
    all
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
        let device = FileType::CharacterDevice;
        match mknodat(self, WHITE_OUT, device, Mode::empty(), ABSENT) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
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
            linkat(self, WHITE_OUT, &front, path, AtFlags::empty())?;
        }
        Ok(front)
    }

    fn protect(&self, tree: &Tree, path: &Path, guards: &[Guarded]) -> Result<(), Error> {
        let mut anchored = BTreeSet::new();
        for Guarded { below, guard } in guards {
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
            self.guard(&place, *guard).map_err(changed)?;
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
