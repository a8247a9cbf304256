//! Protects parts of a writable directory, by mounts on them.
//!
//! A mount point cannot be renamed or removed, but a directory above it can, and another one put in its
//! place. Who has a mount namespace may also bind a directory that holds nothing protected, move the
//! directory above into it, and find there what lies under the mount. So each directory on the way
//! from the writable one down is an anchor: a mount point that shows itself.
//!
//! A mount covers one name. A file with a second one, which an earlier session may have made, could be read
//! and changed by that: so there must be none, nor another spelling of the same name.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use stockade_sys::mount::Tree;

use super::{
    spelling::is_spelled_otherwise,
    staging::{HIDDEN_DIRECTORY, HIDDEN_FILE, Stage, is_directory},
};
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
            let Some(guard) = guard else {
                return Ok(None);
            };
            let place = pin_below(tree, below)?;
            let linked = with_second_name(&place, &path.join(below))?;
            self.guard(&place, guard)?;
            let linked = linked.map(Error::SecondName);
            if linked.is_none() && is_spelled_otherwise(tree, below, &place)? {
                return Ok(Some(Error::OtherSpelling(path.join(below))));
            }
            Ok(linked)
        };
        let guards = guards.map(|(below, guard)| (below, Some(guard)));
        for (below, guard) in guards.chain(laid.map(|below| (below, None))) {
            let refusal = protect(below, guard).map_err(|error| Error::Changed {
                path: path.join(below),
                error,
            })?;
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
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

/// A file that has a second name: this one, or one in this directory.
fn with_second_name(place: &OwnedFd, path: &Path) -> io::Result<Option<PathBuf>> {
    /// Those of a large directory take a tenth of a second.
    const MOST: usize = 100_000;
    let is_linked = |stat: &Stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        kind == FileType::RegularFile && stat.st_nlink > 1
    };
    let own = fstat(place)?;
    if is_linked(&own) {
        return Ok(Some(path.to_owned()));
    }
    let mut directories = match is_directory(place)? {
        true => vec![(PathBuf::from("."), path.to_owned())],
        false => Vec::new(),
    };
    let mut count = 0;
    while let Some((below, path)) = directories.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Of what its owner cannot list, nothing is used either.
        let Ok(opened) = openat(place, &below, flags, Mode::empty()) else {
            continue;
        };
        for entry in Dir::read_from(&opened)?.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            count += 1;
            if count > MOST {
                return Ok(None);
            }
            let Ok(stat) = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if is_linked(&stat) {
                return Ok(Some(path.join(name)));
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && stat.st_dev == own.st_dev
            {
                directories.push((below.join(name), path.join(name)));
            }
        }
    }
    Ok(None)
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
