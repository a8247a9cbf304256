//! The stage: where the sandbox's places are laid out before bubblewrap puts them together.
//!
//! # Theory of operation
//! Bubblewrap takes paths, and follows the links in them. Some directories that a path
//! leads through can be written by an agent: by one that runs now in the same workspace, or
//! by one that planted a link before. So what is shown is opened by this module, once,
//! without following links: the paths of a plan have none. That is done in a mount namespace
//! that only bubblewrap will inherit. There, a small file system in memory is laid over
//! `/tmp`, and on it the sandbox's root, which bubblewrap shows as a whole:
//!
//! ```text
//! /tmp/root
//!    ├ usr             a read-only view of the host's
//!    ├ tmp             a view of /tmp/0, an empty directory
//!    └ home/ada        a view of /tmp/16, an empty directory
//!       ├ .cache       the host's with changes to it kept in memory, without known places of secrets
//!       └ project      a view of the workspace, by descriptor
//!          └ .git      a view of itself, so that it cannot be renamed
//!             └ hooks  a read-only view of itself
//! /tmp/14  what bubblewrap itself puts in its place: what goes to /dev or /proc
//! ```
//! For each place that bubblewrap shows by itself, it reads the whole table of mounts; a descriptor
//! of it is enough here. Nobody else sees this directory. All places in memory share one limit of
//! size.
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
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fstat, linkat, mkdirat, mknodat, openat, symlinkat},
    io::Errno,
    process::umask,
};
use stockade_sys::{mount::Tree, namespace::enter_mount_namespace};

use super::streams::{CommandStreams, Streams};
use crate::{
    error::Error,
    nofollow::{pin, pin_below},
    plan::{Fallback, Guard, Operation, Plan, Step, index_enclosing},
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

/// The sandbox's root, which bubblewrap finds here.
pub(crate) const ROOT: &str = "/tmp/root";
/// Its name on the stage.
const ROOT_NAME: &str = "root";

/// Where bubblewrap finds what it puts in its place itself, if that is staged.
pub(crate) fn path(step: usize, operation: &Operation) -> Option<String> {
    match operation {
        Operation::HiddenFile { .. } => Some(format!("{STAGE}/{HIDDEN_FILE}")),
        Operation::HiddenDirectory { .. } => Some(format!("{STAGE}/{HIDDEN_DIRECTORY}")),
        Operation::Empty { .. } | Operation::Text { .. } => Some(format!("{STAGE}/{step}")),
        _ => operation.source().map(|_| format!("{STAGE}/{step}")),
    }
}

/// For each step of a plan, whether it is put in its place on the stage. Bubblewrap does the rest:
/// devices and processes, and what lies in their directories.
pub(crate) fn are_in_place(plan: &Plan) -> Vec<bool> {
    let mut are_in_place = Vec::<bool>::new();
    for (number, step) in plan.files.iter().enumerate() {
        let around = enclosing(plan, number).and_then(|around| are_in_place.get(around));
        let is_for_bubblewrap = matches!(
            step.operation,
            Operation::Device { .. }
                | Operation::Devices { .. }
                | Operation::Processes { .. }
                | Operation::Freeze { .. }
        );
        are_in_place.push(around.is_none_or(|around| *around) && !is_for_bubblewrap);
    }
    are_in_place
}

/// The earlier step that decides what is seen where this one goes.
fn enclosing(plan: &Plan, number: usize) -> Option<usize> {
    let (step, before) = (plan.files.get(number)?, plan.files.get(..number)?);
    index_enclosing(before, step.operation.at())
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
    operation: Operation,
    /// None if bubblewrap puts it in its place.
    spot: Option<Spot>,
    guards: Vec<Guarded>,
    /// What does not exist in it, sorted.
    absent: Vec<PathBuf>,
}

/// A place in the sandbox.
#[derive(Debug)]
struct Spot {
    /// From the stage down.
    below: PathBuf,
    /// It lies in memory, so it is made if it is not there.
    is_made: bool,
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
        let items = plan.files.iter().enumerate().zip(are_in_place(plan));
        let items = items.map(|((number, step), is_in_place)| {
            let operation = &step.operation;
            let spot = || {
                let around = enclosing(plan, number).and_then(|around| plan.files.get(around));
                let is_memory = |around: &Step| {
                    use Operation::{Absent, Empty, Scratch};
                    matches!(
                        around.operation,
                        Empty { .. } | Scratch { .. } | Absent { .. }
                    )
                };
                let below = operation.at().strip_prefix("/").unwrap_or(operation.at());
                Spot {
                    below: Path::new(ROOT_NAME).join(below),
                    is_made: around.is_none_or(is_memory),
                }
            };
            Item {
                name: number.to_string(),
                spot: is_in_place.then(spot),
                guards: guards(operation, plan),
                absent: absent(operation, plan),
                operation: operation.clone(),
            }
        });
        Self {
            memory: plan.memory.as_ref().map(|bytes| bytes.value),
            items: items.collect(),
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
        let mut scratch = true;
        for (item, pin) in self.items.iter().zip(&pins) {
            let failed = |error| Error::Stage {
                what: "showing",
                path: item.path().to_owned(),
                error,
            };
            let laid = stage.lay(item, pin.as_ref(), &mut scratch);
            if let Some(tree) = laid.map_err(failed)? {
                stage.protect(&tree, item.path(), &item.guards)?;
            }
        }
        Ok(Built { scratch, given })
    }

    /// Opens all that is shown.
    fn pins(&self) -> Result<Vec<Option<OwnedFd>>, Error> {
        let open = |item: &Item| {
            let pinned = item.operation.source().map(pin).transpose();
            pinned.map_err(|error| Error::Changed {
                path: item.path().to_owned(),
                error,
            })
        };
        self.items.iter().map(open).collect()
    }
}

impl Item {
    /// The path outside, for messages.
    fn path(&self) -> &Path {
        self.operation.source().unwrap_or(self.operation.at())
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

const NEW: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::WRONLY)
    .union(OFlags::CLOEXEC);

/// The file system that everything is laid out on.
struct Stage {
    tree: Tree,
    umask: Mode,
}

impl Stage {
    fn new(memory: Option<u64>) -> io::Result<Self> {
        let tree = Tree::memory(memory)?;
        tree.attach_at(STAGE)?;
        // This thread's own, since it has its own mount namespace. Bubblewrap hands the caller's on.
        let umask = umask(Mode::empty());
        let stage = Self { tree, umask };
        stage.file(HIDDEN_FILE, 0)?;
        stage.directory(HIDDEN_DIRECTORY, 0)?;
        stage.directory(ROOT_NAME, 0o755)?;
        Ok(stage)
    }

    fn directory(&self, name: &str, mode: u32) -> io::Result<OwnedFd> {
        mkdirat(self, name, Mode::from_raw_mode(mode))?;
        self.open(name)
    }

    fn file(&self, name: &str, mode: u32) -> io::Result<OwnedFd> {
        Ok(openat(self, name, NEW, Mode::from_raw_mode(mode))?)
    }

    fn open(&self, name: &str) -> io::Result<OwnedFd> {
        pin_below(self, Path::new(name))
    }

    /// Puts it in its place, or where bubblewrap finds it. Says whether scratch directories can be
    /// overlaid.
    fn lay(
        &self,
        item: &Item,
        pin: Option<&OwnedFd>,
        scratch: &mut bool,
    ) -> io::Result<Option<Tree>> {
        let Item { name, spot, .. } = item;
        let (tree, place) = match (&item.operation, pin) {
            (Operation::Scratch { fallback, .. }, Some(pin)) => {
                let (tree, is_overlaid) = self.scratch(name, pin, &item.absent, *fallback)?;
                *scratch &= is_overlaid;
                (tree, self.spot_or(spot, name, true)?)
            }
            (operation, Some(pin)) => {
                let tree = Tree::view(pin)?;
                match operation {
                    // It can be written to all the same. But its mode and owner are those of the
                    // host's.
                    Operation::Device { .. } if is_device(pin)? => tree.make_read_only()?,
                    // A directory of devices.
                    Operation::Device { .. } => {}
                    Operation::Writable { .. } => tree.restrict(is_device(pin)?)?,
                    _ => tree.restrict(true)?,
                }
                (tree, self.spot_or(spot, name, is_directory(pin)?)?)
            }
            (Operation::Empty { mode, .. }, None) => {
                let directory = self.directory(name, *mode)?;
                let Some(spot) = spot else { return Ok(None) };
                (Tree::view(directory)?, self.spot(spot, true)?)
            }
            (Operation::Text { text, .. }, None) => {
                let mut file = File::from(self.file(name, 0o444)?);
                file.write_all(text.as_bytes())?;
                let Some(spot) = spot else { return Ok(None) };
                let tree = Tree::view(file)?;
                tree.make_read_only()?;
                (tree, self.spot(spot, false)?)
            }
            (Operation::HiddenFile { .. } | Operation::HiddenDirectory { .. }, None) => {
                let Some(spot) = spot else { return Ok(None) };
                let is_directory = matches!(item.operation, Operation::HiddenDirectory { .. });
                let place = self.spot(spot, is_directory)?;
                (self.cover(&place)?, place)
            }
            (Operation::Link { text, .. }, None) => {
                if let Some(Spot { below, .. }) = spot {
                    let around = self.around(below)?;
                    symlinkat(text, around, below.file_name().unwrap_or_default())?;
                }
                return Ok(None);
            }
            // They are parts of others, or bubblewrap's.
            (_, None) => return Ok(None),
        };
        tree.attach(place)?;
        Ok(Some(tree))
    }

    /// The place of something in the sandbox, or else where bubblewrap finds it.
    fn spot_or(&self, spot: &Option<Spot>, name: &str, is_directory: bool) -> io::Result<OwnedFd> {
        match spot {
            Some(spot) => self.spot(spot, is_directory),
            None => self.make(Path::new(name), is_directory),
        }
    }

    /// What something is mounted on. Nothing is made in a directory of the host's.
    fn spot(&self, spot: &Spot, is_directory: bool) -> io::Result<OwnedFd> {
        match spot.is_made {
            true => self.make(&spot.below, is_directory),
            false => pin_below(self, &spot.below),
        }
    }

    /// The same in memory, with the directories above it.
    fn make(&self, below: &Path, is_directory: bool) -> io::Result<OwnedFd> {
        match pin_below(self, below) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let around = self.around(below)?;
        let name = below.file_name().unwrap_or_default();
        if is_directory {
            mkdirat(&around, name, Mode::from_raw_mode(0o755))?;
        } else {
            openat(&around, name, NEW, Mode::from_raw_mode(0o444))?;
        }
        pin_below(&around, Path::new(name))
    }

    fn around(&self, below: &Path) -> io::Result<OwnedFd> {
        let around = below.parent().filter(|it| !it.as_os_str().is_empty());
        self.make(around.unwrap_or(Path::new(".")), true)
    }

    /// A view with changes kept here, and without what is absent. Says whether that was
    /// possible; if not, less is shown.
    fn scratch(
        &self,
        name: &str,
        what: &OwnedFd,
        absent: &[PathBuf],
        fallback: Fallback,
    ) -> io::Result<(Tree, bool)> {
        if let Ok(overlay) = self.overlay(name, what, absent) {
            return Ok((overlay, true));
        }
        if fallback == Fallback::ReadOnly && absent.is_empty() {
            let tree = Tree::view(what)?;
            tree.restrict(true)?;
            return Ok((tree, false));
        }
        let nothing = self.directory(&format!("{name}-nothing"), 0o700)?;
        Ok((Tree::view(nothing)?, false))
    }

    fn overlay(&self, name: &str, what: &OwnedFd, absent: &[PathBuf]) -> io::Result<Tree> {
        // The directory's own mode is that of the upper one.
        let upper = self.directory(&format!("{name}-changes"), mode(what)?)?;
        let work = self.directory(&format!("{name}-work"), 0o700)?;
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
                    let mode = match pin_below(what, directory) {
                        Ok(original) if is_directory(&original)? => mode(&original)?,
                        _ => 0o700,
                    };
                    mkdirat(&front, directory, Mode::from_raw_mode(mode))?;
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
            Guard::Hidden => self.cover(place)?,
            Guard::ReadOnly => {
                let view = Tree::view(place)?;
                view.make_read_only()?;
                view
            }
        };
        cover.attach(place)
    }

    /// What hides a file or a directory.
    fn cover(&self, place: &OwnedFd) -> io::Result<Tree> {
        let cover = match is_directory(place)? {
            true => HIDDEN_DIRECTORY,
            false => HIDDEN_FILE,
        };
        let cover = Tree::view(self.open(cover)?)?;
        cover.make_read_only()?;
        Ok(cover)
    }
}

impl AsFd for Stage {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.tree.as_fd()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        umask(self.umask);
    }
}

/// The bits that permit something.
fn mode(what: &OwnedFd) -> io::Result<u32> {
    Ok(fstat(what)?.st_mode & 0o7777)
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
