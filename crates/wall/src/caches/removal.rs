//! Removes a tree that a session has written: of any depth, with any modes, and without following
//! a link.
//!
//! A directory in a directory is first moved up, so that two open directories are enough, however
//! deep the tree is.

use std::{ffi::OsStr, io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, openat, renameat_with, unlinkat},
    io::Errno,
};

use crate::nofollow::{open_up, pin_below};

/// Removes what has this name in a directory, if anything. `stop` leaves the rest.
pub(super) fn remove(above: &OwnedFd, name: &OsStr, stop: &dyn Fn() -> bool) -> io::Result<()> {
    if is_gone(above, name)? {
        return Ok(());
    }
    let top = open(above, name)?;
    let mut moved = 0_u64;
    // Each pass takes one level away.
    while !stop() {
        let mut is_empty = true;
        for_each(&top, |entry| {
            is_empty = false;
            if stop() || is_gone(&top, entry)? {
                return Ok(());
            }
            let directory = open(&top, entry)?;
            for_each(&directory, |below| {
                if stop() || is_gone(&directory, below)? {
                    return Ok(());
                }
                // To be moved, it has to be writable itself.
                open(&directory, below)?;
                move_up(&directory, below, &top, &mut moved)
            })?;
            match unlinkat(&top, entry, AtFlags::REMOVEDIR) {
                // Not all of it was listed, or is to be removed.
                Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
                result => Ok(result?),
            }
        })?;
        if is_empty {
            return Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?);
        }
    }
    Ok(())
}

/// Removes a file or an empty directory; says whether nothing is left of it.
fn is_gone(directory: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => match unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// A directory that its owner can list and write, whatever its mode was.
fn open(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let handle = pin_below(above, Path::new(name))?;
    open_up(&handle)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(&handle, ".", flags, Mode::empty())?)
}

fn move_up(from: &OwnedFd, name: &OsStr, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        let new = format!("moved-{moved}");
        *moved += 1;
        match renameat_with(from, name, top, new, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            result => return Ok(result?),
        }
    }
}

fn for_each(
    directory: &OwnedFd,
    mut visit: impl FnMut(&OsStr) -> io::Result<()>,
) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            visit(OsStr::from_bytes(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;
    use crate::nofollow::pin;

    #[test]
    fn a_tree_is_removed_however_deep_and_whatever_its_modes_and_links() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(place.join("kept/sub")).unwrap();
        fs::write(place.join("kept/sub/file"), "kept").unwrap();
        let tree = place.join("tree");
        fs::create_dir_all(tree.join("a/b/moved-0")).unwrap();
        fs::write(tree.join("a/b/moved-0/file"), "").unwrap();
        fs::create_dir(tree.join("moved-0")).unwrap();
        symlink(place.join("kept"), tree.join("link")).unwrap();
        symlink("../../kept", tree.join("a/link")).unwrap();
        for closed in ["a/b/moved-0", "a/b", "a"] {
            fs::set_permissions(tree.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        // Deeper than any path, and than there are descriptors.
        let above = pin(&tree).unwrap();
        let mut deep = openat(&above, ".", OFlags::RDONLY, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&deep, "deeper", Mode::RWXU).unwrap();
            deep = openat(&deep, "deeper", OFlags::RDONLY, Mode::empty()).unwrap();
        }
        drop(deep);
        let above = pin(&place).unwrap();
        remove(&above, "tree".as_ref(), &|| true).unwrap();
        assert!(tree.exists(), "it was to stop");
        remove(&above, "tree".as_ref(), &|| false).unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read(place.join("kept/sub/file")).unwrap(), b"kept");
        remove(&above, "tree".as_ref(), &|| false).unwrap();
    }
}
