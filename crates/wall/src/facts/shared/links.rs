//! What becomes of a link that the kernel does not resolve.
//!
//! [`nofollow::real`](crate::nofollow::real) does not follow the links of `/proc` that lead elsewhere for
//! each process, such as `/proc/self/cwd`, and finds none of another process. For the user's package manager such a link leads into the
//! workspace, and a session can make one. So who looks for shared files has to tell it from a link
//! that leads nowhere.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{PROC_SUPER_MAGIC, statfs},
    process::geteuid,
};

/// The kernel follows so many links, and no more.
const MOST_LINKS: usize = 40;
/// On the ways of all links. More were made to be slow.
const MOST_STEPS: usize = 1 << 18;
/// The inode of the root of `/proc`.
const PROC_ROOT: u64 = 1;

/// Where a link leads that has no path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// Nobody finds anything there.
    Nowhere,
    /// Through this directory, which the user has closed. A session can open it again.
    Closed(PathBuf),
    /// Elsewhere for each process.
    Anywhere,
}

/// Follows a link that could not be resolved, and counts the steps.
pub(super) fn follow(link: &Path, steps: &mut usize) -> Unresolved {
    let (Some(parent), Some(name)) = (link.parent(), link.file_name()) else {
        return Unresolved::Nowhere;
    };
    let mut at = parent.to_owned();
    // The next one is the last.
    let mut left = vec![PathBuf::from(name)];
    let mut links = 0;
    while let Some(part) = left.pop() {
        *steps += 1;
        if *steps > MOST_STEPS {
            return Unresolved::Anywhere;
        }
        match part.components().next() {
            Some(Component::RootDir) => at = "/".into(),
            Some(Component::ParentDir) => {
                at.pop();
            }
            Some(Component::Normal(name)) => {
                let next = at.join(name);
                let kind = match fs::symlink_metadata(&next) {
                    Ok(found) => found.file_type(),
                    // Another process has such a descriptor, or is the one with this number.
                    Err(error) if leads_nowhere(&error) => {
                        return if is_in_process(&next) {
                            Unresolved::Anywhere
                        } else {
                            Unresolved::Nowhere
                        };
                    }
                    Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                        return if is_closed(&at) {
                            Unresolved::Closed(at)
                        } else {
                            Unresolved::Nowhere
                        };
                    }
                    // A file system that does not answer, or a process.
                    Err(_) if is_in_process(&next) => return Unresolved::Anywhere,
                    Err(_) => return Unresolved::Nowhere,
                };
                if !kind.is_symlink() {
                    at = next;
                    continue;
                }
                if is_in_process(&next) {
                    let is_file = left.is_empty() && leads_to_file(&next);
                    return match is_file {
                        true => Unresolved::Nowhere,
                        false => Unresolved::Anywhere,
                    };
                }
                links += 1;
                if links > MOST_LINKS {
                    return Unresolved::Nowhere;
                }
                let Ok(to) = fs::read_link(&next) else {
                    return Unresolved::Anywhere;
                };
                let parts = to.components().map(|part| PathBuf::from(part.as_os_str()));
                let parts: Vec<_> = parts.collect();
                left.extend(parts.into_iter().rev());
            }
            _ => {}
        }
    }
    // It changes while it is looked at.
    Unresolved::Anywhere
}

fn leads_nowhere(error: &io::Error) -> bool {
    use ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// Whether a path is that of a process, or in the directory of one. The other links of `/proc` (`self`,
/// `mounts`) are plain ones.
fn is_in_process(path: &Path) -> bool {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let is_proc = statfs(directory).is_ok_and(|it| it.f_type == PROC_SUPER_MAGIC);
    let is_root = || fs::metadata(directory).is_ok_and(|it| it.ino() == PROC_ROOT);
    let is_number = || name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    is_proc && (is_number() || !is_root())
}

/// A standard stream (`/dev/stdout`), a program, a namespace: nobody installs anything there.
fn leads_to_file(link: &Path) -> bool {
    let is_stream = ["fd/0", "fd/1", "fd/2"].iter().any(|it| link.ends_with(it));
    is_stream || link.ends_with("exe") || link.parent().is_some_and(|it| it.ends_with("ns"))
}

/// Whether the user has closed a directory of their own to themselves. Another owner's cannot be opened by
/// a session either.
pub(super) fn is_closed(directory: &Path) -> bool {
    const LOOK_AND_PASS: u32 = 0o500;
    fs::symlink_metadata(directory).is_ok_and(|it| {
        it.is_dir() && it.uid() == geteuid().as_raw() && it.mode() & LOOK_AND_PASS != LOOK_AND_PASS
    })
}
