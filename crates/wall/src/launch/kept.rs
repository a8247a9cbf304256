//! The layers of caches that are kept, on the stage.

use std::{
    io::{
        self,
        ErrorKind::{NotADirectory, NotFound},
    },
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::PathBuf,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, chmodat},
    io::Errno,
};
use stockade_sys::mount::Tree;

use super::staging::{Stage, mode};
use crate::{
    caches::{CacheStore, OpenCaches, take_out},
    nofollow::{Names, pin_below},
    plan::{Fallback, Keep, LayerState, Operation, Plan},
};

/// A cache of this workspace.
#[derive(Debug)]
pub(crate) struct KeptLayer {
    /// From the directory of all of them.
    directory: PathBuf,
    is_owner: bool,
}

/// The same, opened in the mount namespace of the stage.
#[derive(Debug)]
pub(crate) struct PinnedLayer {
    private: OwnedFd,
    /// Where changes were, and are, kept. None if there are none yet, by another session.
    upper: Option<OwnedFd>,
    /// For the kernel. None if another session keeps its changes.
    work: Option<OwnedFd>,
    /// Where changes go that are not to be seen any more.
    store: OwnedFd,
}

/// Opens the caches that this plan keeps. Without them, changes are gone at the end.
pub(crate) fn open(plan: &Plan) -> Option<io::Result<OpenCaches>> {
    let Keep { state, workspace } = plan.kept.as_ref()?;
    let is_overlay = |operation: &Operation| matches!(operation, Operation::Scratch { .. });
    let names = plan.files.iter().map(|step| &step.operation);
    let names = names.filter_map(|it| Some((name(it)?, is_overlay(it))));
    Some(CacheStore::of(state).open(workspace, names))
}

/// What came of keeping them.
pub(crate) fn state(opened: Option<&io::Result<OpenCaches>>) -> LayerState {
    match opened {
        None => LayerState::Off("files.caches"),
        Some(Err(_)) => LayerState::Absent(
            "Stockade's own directory cannot be written, so changes are not kept",
        ),
        Some(Ok(open)) if !open.is_owner => LayerState::Absent(
            "another session runs in this workspace, so changes of this one are not kept",
        ),
        Some(Ok(_)) => LayerState::Active,
    }
}

/// The name of the cache that an operation is about.
fn name(operation: &Operation) -> Option<&'static str> {
    match operation {
        Operation::Scratch {
            fallback: Fallback::Kept(name),
            ..
        }
        | Operation::Kept(name) => Some(name),
        _ => None,
    }
}

impl KeptLayer {
    pub(crate) fn of(operation: &Operation, caches: Option<&OpenCaches>) -> Option<Self> {
        let (name, caches) = (name(operation)?, caches?);
        Some(Self {
            directory: caches.path(name),
            is_owner: caches.is_owner,
        })
    }

    /// `store` is the directory of all of them.
    pub(crate) fn pin(&self, store: &OwnedFd) -> io::Result<PinnedLayer> {
        let part = |name| pin_below(store, &self.directory.join(name));
        Ok(PinnedLayer {
            store: store.try_clone()?,
            private: part("private")?,
            upper: part("upper").ok(),
            work: part("work").ok().filter(|_| self.is_owner),
        })
    }
}

impl PinnedLayer {
    /// The workspace's own directory.
    pub(super) fn private(&self) -> io::Result<Tree> {
        let tree = Tree::view(&self.private)?;
        tree.restrict(false)?;
        Ok(tree)
    }

    /// Takes away what is absent now, and was there in an earlier session: the kernel has copied what
    /// that session touched, and shows the copy before all else.
    fn take_out(&self, upper: &OwnedFd, absent: &[PathBuf]) -> io::Result<()> {
        let names = Names::of(name_of(upper));
        for path in absent.iter().filter(|path| names.may_hold_below(path)) {
            match take_out(upper, path, &self.store) {
                Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
                // A link of the session's, which leads nowhere in this layer.
                Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {}
                result => result?,
            }
        }
        Ok(())
    }
}

impl Stage {
    /// The host's directory with the workspace's changes. Says whether that was possible; if not,
    /// it is the workspace's own directory alone.
    pub(super) fn kept(
        &self,
        name: &str,
        what: &OwnedFd,
        absent: &[PathBuf],
        layer: &PinnedLayer,
    ) -> io::Result<(Tree, bool)> {
        let overlay = match (&layer.work, &layer.upper) {
            (Some(work), Some(upper)) => layer
                .take_out(upper, absent)
                .and_then(|()| self.overlay_on_disk(name, what, absent, upper, work)),
            // Another session's changes as they are now. The kernel takes no harm if these change.
            (_, Some(upper)) => self.overlay(name, &[upper.as_fd()], what, absent),
            (_, None) => self.overlay(name, &[], what, absent),
        };
        match overlay {
            Ok(overlay) => Ok((overlay, true)),
            Err(_) => Ok((layer.private()?, false)),
        }
    }

    fn overlay_on_disk(
        &self,
        name: &str,
        what: &OwnedFd,
        absent: &[PathBuf],
        upper: &OwnedFd,
        work: &OwnedFd,
    ) -> io::Result<Tree> {
        // The directory's own mode is that of the upper one, which a session may have changed.
        chmodat(
            CWD,
            name_of(upper),
            Mode::from_raw_mode(mode(what)?),
            AtFlags::empty(),
        )?;
        let front = match absent.is_empty() {
            true => None,
            false => Some(self.white_outs(&format!("{name}-front"), what, absent)?),
        };
        let mut lower: Vec<_> = front.iter().map(AsFd::as_fd).collect();
        lower.push(what.as_fd());
        Tree::overlay(&lower, upper.as_fd(), work.as_fd(), true)
    }
}

/// A path of what was opened. A handle that is only a place can be listed and changed by that.
fn name_of(handle: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", handle.as_raw_fd()).into()
}
