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
//! /tmp/14  what bubblewrap itself puts in its place: what goes to /proc
//! ```
//! For each place that bubblewrap shows by itself, it reads the whole table of mounts; a descriptor
//! of it is enough here. So it is left `/proc`, which needs the new process namespace. Nobody else
//! sees this directory. All places in memory share one limit of size.
//!
//! What is not to be seen of a directory whose changes are kept in memory is a white-out in a layer
//! of its own in front of it (docs/decisions/0020-white-outs-and-one-table-of-secrets.md).
//!
//! A protected file in a writable directory is a mount point, which the kernel lets nobody
//! rename or remove. A directory above it could still be renamed, and another one put in its
//! place. So each directory on the way down is made a mount point, too. The same holds for an overlay
//! of dependencies in a writable directory (`protection`).

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fstat, linkat, mkdirat, mknodat, openat, symlinkat},
    io::Errno,
    process::umask,
};
use stockade_sys::{
    mount::{Tree, freeze},
    namespace::enter_mount_namespace,
};

use super::{
    kept::KeptLayer,
    questions,
    spelling::is_spelled_otherwise,
    streams::{CommandStreams, Streams},
};
use crate::{
    caches::{CacheStore, OpenCaches},
    discarded::Changes,
    error::Error,
    nofollow::{pin, pin_below},
    plan::{Fallback, Guard, Operation, Plan, Step, enclosing, laid_over, writable_around},
};

/// What the stage is laid over. Bubblewrap builds the sandbox's root there, too, so the
/// directory exists.
const STAGE: &str = "/tmp";

/// Names on the stage of what covers hidden files and directories.
pub(super) const HIDDEN_FILE: &str = "file";
pub(super) const HIDDEN_DIRECTORY: &str = "directory";
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
        Operation::HiddenFile => Some(format!("{STAGE}/{HIDDEN_FILE}")),
        Operation::HiddenDirectory => Some(format!("{STAGE}/{HIDDEN_DIRECTORY}")),
        Operation::Empty { .. }
        | Operation::Kept(_)
        | Operation::Text(_)
        | Operation::Socket
        | Operation::Login(_) => Some(format!("{STAGE}/{step}")),
        _ => operation.source().map(|_| format!("{STAGE}/{step}")),
    }
}

/// For each step, whether it is put in its place on the stage. Bubblewrap does the rest: the view of
/// processes, and what lies in its directory.
pub(crate) fn are_in_place(files: &[Step]) -> Vec<bool> {
    let mut are_in_place = Vec::<bool>::new();
    for (number, step) in files.iter().enumerate() {
        let around = enclosing(files, number).and_then(|around| are_in_place.get(around));
        let is_for_bubblewrap = step.operation == Operation::Processes;
        are_in_place.push(around.is_none_or(|around| *around) && !is_for_bubblewrap);
    }
    are_in_place
}

/// What is to be laid out.
#[derive(Debug)]
pub(crate) struct Staging {
    memory: Option<u64>,
    files: Vec<Step>,
    /// Of each step, where changes to it are kept.
    layers: Vec<Option<KeptLayer>>,
    store: Option<CacheStore>,
}

/// A place in the sandbox.
struct Spot {
    /// From the stage down.
    below: PathBuf,
    /// It lies in memory, so it is made if it is not there.
    is_made: bool,
}

/// What could not be known before the stage was built.
#[derive(Debug)]
pub(crate) struct Built {
    /// Scratch directories could be overlaid. Otherwise they are empty, or read-only.
    pub(crate) scratch: bool,
    /// The same of caches that are kept. Otherwise they have what earlier sessions left alone.
    pub(crate) caches: bool,
    /// The command's standard streams.
    pub(crate) given: CommandStreams,
    /// The private home.
    pub(crate) home: Option<OwnedFd>,
    /// What listens for questions from inside.
    pub(crate) questions: Option<OwnedFd>,
    /// Where changes to dependencies are that other projects share.
    pub(crate) dependencies: Vec<Changes>,
}

impl Staging {
    pub(crate) fn of(plan: &Plan, caches: Option<&OpenCaches>) -> Self {
        let layer = |step: &Step| KeptLayer::of(&step.operation, caches);
        Self {
            memory: plan.memory.as_ref().map(|bytes| bytes.value),
            files: plan.files.clone(),
            layers: plan.files.iter().map(layer).collect(),
            store: caches.map(|caches| caches.store().clone()),
        }
    }

    /// Lays it all out, in a mount namespace of this thread's own.
    pub(crate) fn build(self, streams: &Streams, home: &Path) -> Result<Built, Error> {
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
        // One that is gone is not kept.
        let store = match &self.store {
            Some(store) => store.handle().map_err(|error| Error::Stage {
                what: "opening the caches in",
                path: store.state().to_owned(),
                error,
            })?,
            None => None,
        };
        let layer = |layer: &Option<KeptLayer>| layer.as_ref()?.pin(store.as_ref()?).ok();
        let layers: Vec<_> = self.layers.iter().map(layer).collect();
        let given = streams.open()?;
        let terminal = streams.terminal();
        // From here on, what lies in the host's own `/tmp` has no path any more.
        let stage = Stage::new(self.memory).map_err(failed("a stage at"))?;
        let mut built = Built {
            scratch: true,
            caches: true,
            given,
            home: None,
            questions: None,
            dependencies: Vec::new(),
        };
        let steps = self.files.iter().zip(are_in_place(&self.files));
        let opened = pins.iter().zip(&layers);
        for (number, ((step, is_in_place), (pin, layer))) in steps.zip(opened).enumerate() {
            let path = step.operation.source().unwrap_or(&step.at);
            let failed = |error: io::Error| match self.kept_around(number) {
                Some(cache) if is_of_another_kind(&error) => Error::KeptDiffers {
                    path: step.at.clone(),
                    cache: cache.to_owned(),
                    error,
                },
                _ => Error::Stage {
                    what: "showing",
                    path: path.to_owned(),
                    error,
                },
            };
            let name = number.to_string();
            let spot = is_in_place.then(|| self.spot(number, &step.at));
            match (&step.operation, pin) {
                (Operation::Scratch { reserved, .. }, Some(pin)) if let Some(layer) = layer => {
                    let absent = self.absent(&step.at, reserved);
                    let kept = stage.kept(&name, pin, &absent, layer);
                    let (tree, is_overlaid) = kept.map_err(failed)?;
                    built.caches &= is_overlaid;
                    let place = stage.spot_or(spot.as_ref(), &name, true);
                    place.and_then(|place| tree.attach(place)).map_err(failed)?;
                }
                (Operation::Kept(_), _) => {
                    let tree = match layer {
                        Some(layer) => layer.private(),
                        None => stage
                            .directory(&format!("{name}-nothing"), 0o700)
                            .and_then(Tree::view),
                    };
                    let place = stage.spot_or(spot.as_ref(), &name, true);
                    place
                        .and_then(|place| tree?.attach(place))
                        .map_err(failed)?;
                }
                (
                    Operation::Scratch {
                        reserved, fallback, ..
                    },
                    Some(pin),
                ) => {
                    let absent = self.absent(&step.at, reserved);
                    let scratch = stage.scratch(&name, pin, &absent, *fallback);
                    let (tree, is_overlaid) = scratch.map_err(failed)?;
                    built.scratch &= is_overlaid;
                    if is_overlaid && writable_around(&self.files, number).is_some() {
                        let upper = stage.open(&changes_of(&name)).map_err(failed)?;
                        let path = step.at.clone();
                        built.dependencies.push(Changes { path, upper });
                    }
                    let place = stage.spot_or(spot.as_ref(), &name, true);
                    place.and_then(|place| tree.attach(place)).map_err(failed)?;
                }
                (operation, Some(pin)) => {
                    let tree = stage.view(&name, operation, pin, spot.as_ref());
                    let tree = tree.map_err(failed)?;
                    if matches!(operation, Operation::Writable { .. }) {
                        let laid = laid_over(&self.files, number);
                        let laid = laid.filter_map(|at| at.strip_prefix(&step.at).ok());
                        stage.protect(&tree, path, self.guards(&step.at), laid)?;
                    }
                }
                (Operation::Devices, _) => {
                    let devices = stage.directory(&name, 0o755).and_then(|directory| {
                        let tree = Tree::view(directory)?;
                        tree.attach(stage.spot_or(spot.as_ref(), &name, true)?)?;
                        stage.devices(&tree, terminal.as_ref())
                    });
                    devices.map_err(failed)?;
                }
                (Operation::Socket, _) => {
                    let Spot { below, .. } = self.spot(number, &step.at);
                    let path = Path::new(STAGE).join(below);
                    built.questions = Some(questions::listen_at(&path).map_err(failed)?);
                }
                (Operation::Processes, _) => {
                    // Bubblewrap finds the directory, since it cannot make one in a frozen root.
                    let Spot { below, .. } = self.spot(number, &step.at);
                    stage.make(&below, true).map_err(failed)?;
                }
                (Operation::Freeze, _) => {
                    if let Some(spot) = &spot {
                        let place = pin_below(&stage, &spot.below);
                        place.and_then(freeze).map_err(failed)?;
                    }
                }
                (operation, None) => {
                    let holds = stage.lay(&name, operation, spot.as_ref());
                    if !holds.map_err(failed)? {
                        return Err(Error::OtherSpelling(step.at.clone()));
                    }
                    if step.at == home && matches!(operation, Operation::Empty { .. }) {
                        built.home = Some(stage.open(&name).map_err(failed)?);
                    }
                }
            }
        }
        Ok(built)
    }

    /// Where a step goes.
    fn spot(&self, number: usize, at: &Path) -> Spot {
        let around = enclosing(&self.files, number).and_then(|around| self.files.get(around));
        let is_memory = |around: &Step| {
            use Operation::{Absent, Devices, Empty, Kept, Scratch};
            matches!(
                around.operation,
                Devices | Empty { .. } | Kept(_) | Scratch { .. } | Absent
            )
        };
        Spot {
            below: Path::new(ROOT_NAME).join(at.strip_prefix("/").unwrap_or(at)),
            is_made: around.is_none_or(is_memory),
        }
    }

    /// The cache that a step goes into, if changes to it are kept.
    fn kept_around(&self, number: usize) -> Option<&Path> {
        let around = enclosing(&self.files, number)?;
        self.layers.get(around)?.as_ref()?;
        Some(&self.files.get(around)?.at)
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

/// Whether something cannot be mounted because of what is in its place: a link, or a file instead of
/// a directory.
fn is_of_another_kind(error: &io::Error) -> bool {
    let kinds = [Errno::LOOP, Errno::NOTDIR, Errno::INVAL];
    kinds
        .iter()
        .any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

/// The directory of changes to what is shown under this name.
fn changes_of(name: &str) -> String {
    format!("{name}-changes")
}

const NEW: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::WRONLY)
    .union(OFlags::CLOEXEC);

/// The file system that everything is laid out on.
pub(super) struct Stage {
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
        // A mount of its own, so that it can be frozen.
        let root = stage.directory(ROOT_NAME, 0o755)?;
        Tree::view(&root)?.attach(&root)?;
        Ok(stage)
    }

    pub(super) fn directory(&self, name: &str, mode: u32) -> io::Result<OwnedFd> {
        mkdirat(self, name, Mode::from_raw_mode(mode))?;
        self.open(name)
    }

    fn file(&self, name: &str, mode: u32) -> io::Result<OwnedFd> {
        Ok(openat(self, name, NEW, Mode::from_raw_mode(mode))?)
    }

    pub(super) fn open(&self, name: &str) -> io::Result<OwnedFd> {
        pin_below(self, Path::new(name))
    }

    /// Shows what was opened, in its place or where bubblewrap finds it.
    fn view(
        &self,
        name: &str,
        operation: &Operation,
        what: &OwnedFd,
        spot: Option<&Spot>,
    ) -> io::Result<Tree> {
        let tree = Tree::view(what)?;
        match operation {
            // It can be written to all the same. But its mode and owner are those of the host's.
            Operation::Device { .. } if is_device(what)? => tree.make_read_only()?,
            // A directory of devices.
            Operation::Device { .. } => {}
            Operation::Writable { .. } => tree.restrict(is_device(what)?)?,
            _ => tree.restrict(true)?,
        }
        tree.attach(self.spot_or(spot, name, is_directory(what)?)?)?;
        Ok(tree)
    }

    /// The same of what is not the host's. Whether what it covers is covered for good.
    fn lay(&self, name: &str, operation: &Operation, spot: Option<&Spot>) -> io::Result<bool> {
        let what = match operation {
            Operation::Empty { mode } => self.directory(name, *mode)?,
            Operation::Text(text) => {
                let mut file = File::from(self.file(name, 0o444)?);
                file.write_all(text.as_bytes())?;
                file.into()
            }
            Operation::Login(text) => {
                // `glab` refuses a file that others can read.
                let mut file = File::from(self.file(name, 0o600)?);
                file.write_all(text.reveal().as_bytes())?;
                file.into()
            }
            Operation::HiddenFile => self.open(HIDDEN_FILE)?,
            Operation::HiddenDirectory => self.open(HIDDEN_DIRECTORY)?,
            Operation::Link { text } => {
                if let Some(Spot { below, .. }) = spot {
                    let around = self.around(below)?;
                    symlinkat(text, around, below.file_name().unwrap_or_default())?;
                }
                return Ok(true);
            }
            // They are parts of others, or bubblewrap's.
            _ => return Ok(true),
        };
        // A view that is attached nowhere would be slow to close.
        let Some(spot) = spot else { return Ok(true) };
        let place = self.spot(spot, is_directory(&what)?)?;
        let tree = Tree::view(what)?;
        if !matches!(operation, Operation::Empty { .. }) {
            tree.make_read_only()?;
        }
        tree.attach(&place)?;
        Ok(spot.is_made || !is_spelled_otherwise(self, &spot.below, &place)?)
    }

    /// The place of something in the sandbox, or else where bubblewrap finds it.
    fn spot_or(&self, spot: Option<&Spot>, name: &str, is_directory: bool) -> io::Result<OwnedFd> {
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
        Self::make_in(
            &around,
            Path::new(below.file_name().unwrap_or_default()),
            is_directory,
        )
    }

    /// A new mount point in a directory.
    pub(super) fn make_in(
        around: impl AsFd,
        name: &Path,
        is_directory: bool,
    ) -> io::Result<OwnedFd> {
        if is_directory {
            mkdirat(&around, name, Mode::from_raw_mode(0o755))?;
        } else {
            openat(&around, name, NEW, Mode::from_raw_mode(0o444))?;
        }
        pin_below(around, name)
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
        if let Ok(overlay) = self.overlay(name, &[], what, absent) {
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

    /// What is absent is so in layers of the sandbox's own, too: an earlier session may have had it.
    pub(super) fn overlay(
        &self,
        name: &str,
        own: &[BorrowedFd<'_>],
        what: &OwnedFd,
        absent: &[PathBuf],
    ) -> io::Result<Tree> {
        // The directory's own mode is that of the upper one.
        let upper = self.directory(&changes_of(name), mode(what)?)?;
        let work = self.directory(&format!("{name}-work"), 0o700)?;
        let front = match absent.is_empty() {
            true => None,
            false => Some(self.white_outs(&format!("{name}-front"), what, absent)?),
        };
        let mut lower: Vec<_> = front.iter().map(AsFd::as_fd).collect();
        lower.extend(own);
        lower.push(what.as_fd());
        Tree::overlay(&lower, upper.as_fd(), work.as_fd(), false)
    }

    /// A layer with white-outs and the directories on the way to them, each with the mode that
    /// it has in `what`.
    pub(super) fn white_outs(
        &self,
        name: &str,
        what: &OwnedFd,
        absent: &[PathBuf],
    ) -> io::Result<OwnedFd> {
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
}

impl AsFd for Stage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tree.as_fd()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        umask(self.umask);
    }
}

/// The bits that permit something.
pub(super) fn mode(what: &OwnedFd) -> io::Result<u32> {
    Ok(fstat(what)?.st_mode & 0o7777)
}

fn is_device(what: &OwnedFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(what)?.st_mode);
    Ok(matches!(
        kind,
        FileType::CharacterDevice | FileType::BlockDevice
    ))
}

pub(super) fn is_directory(what: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(what)?.st_mode) == FileType::Directory)
}
