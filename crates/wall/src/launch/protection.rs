//! Protects parts of a writable directory, by mounts on them.
//!
//! A mount point cannot be renamed or removed, but a directory above it can, and another one put in its
//! place. Who has a mount namespace may also bind a directory that holds nothing protected, move the
//! directory above into it, and find there what lies under the mount. So each directory on the way
//! from the writable one down is an anchor: a mount point that shows itself.

use std::{
    collections::BTreeSet,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use stockade_sys::mount::Tree;

use super::staging::{HIDDEN_DIRECTORY, HIDDEN_FILE, Stage, is_directory};
use crate::{error::Error, nofollow::pin_below, plan::Guard};

impl Stage {
    /// Puts guards in a writable tree, and anchors above them and above what later steps lay over its
    /// parts. Both are named by their paths in the tree.
    pub(super) fn protect<'a>(
        &self,
        tree: &Tree,
        path: &Path,
        guards: impl Iterator<Item = (&'a Path, Guard)>,
        laid: impl Iterator<Item = &'a Path>,
    ) -> Result<(), Error> {
        let mut anchored = BTreeSet::new();
        let mut protect = |below: &Path, guard: Option<Guard>| {
            anchor_above(tree, below, &mut anchored)?;
            guard.map_or(Ok(()), |guard| self.guard(&pin_below(tree, below)?, guard))
        };
        let guards = guards.map(|(below, guard)| (below, Some(guard)));
        for (below, guard) in guards.chain(laid.map(|below| (below, None))) {
            protect(below, guard).map_err(|error| Error::Changed {
                path: path.join(below),
                error,
            })?;
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

/// Makes each directory between the tree and what is below it a mount point, unless it is one already.
fn anchor_above(tree: &Tree, below: &Path, anchored: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let mut above: Vec<_> = below.ancestors().skip(1).collect();
    above.reverse();
    // The first is the tree's own root.
    for directory in above.into_iter().skip(1) {
        if anchored.insert(directory.to_owned()) {
            let place = pin_below(tree, directory)?;
            Tree::view(&place)?.attach(&place)?;
        }
    }
    Ok(())
}
