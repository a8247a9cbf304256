//! How much a tree takes on disk, as far as that can be told in bounds: a session may have made it
//! of any size.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

/// How deep `work` is below the directory of a workspace.
const KERNELS_DEPTH: usize = 2;
const DEEPEST: usize = 100;
const MOST_ENTRIES: u64 = 4_000_000;
/// What `st_blocks` counts in.
const BLOCK: u64 = 512;

/// The bytes below a directory, and whether there may be more.
pub(super) fn of(directory: &OwnedFd, stop: &dyn Fn() -> bool) -> (u64, bool) {
    let mut bytes = 0;
    let mut is_partial = false;
    let mut entries = 0;
    let Some(top) = list(directory, ".") else {
        return (0, true);
    };
    // The directories on the way down; each is listed once.
    let mut way = vec![top];
    loop {
        let depth = way.len();
        let Some(current) = way.last_mut() else {
            return (bytes, is_partial);
        };
        let Some(Ok(entry)) = current.next() else {
            way.pop();
            continue;
        };
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        entries += 1;
        if entries > MOST_ENTRIES || stop() {
            return (bytes, true);
        }
        let Ok(handle) = current.fd() else {
            continue;
        };
        let Ok(stat) = statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        bytes += u64::try_from(stat.st_blocks).unwrap_or_default() * BLOCK;
        // The kernel keeps others out of its own directory.
        let is_kernels = depth == KERNELS_DEPTH && name.to_bytes() == b"work";
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory && !is_kernels {
            match list(handle, name).filter(|_| depth < DEEPEST) {
                Some(below) => way.push(below),
                None => is_partial = true,
            }
        }
    }
}

fn list(above: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Option<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Dir::new(openat(above, name, flags, Mode::empty()).ok()?).ok()
}
