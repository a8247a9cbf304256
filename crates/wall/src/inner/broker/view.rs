//! Paths as another process sees them: from its root and working directory, through its descriptors
//! and its mounts.
//!
//! The way to a directory is walked by descriptor, without following links but by our own hand, so
//! that `..` and absolute links stay below the caller's root. Whoever swaps names meanwhile gets
//! one of the directories that were there, never one above the root.

use std::{
    ffi::CString,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, StatxFlags, fstatfs,
        openat, openat2, readlinkat, statx,
    },
    io::Errno,
};

use super::PATH;

/// Links on the way, as many as the kernel follows.
const LINKS: usize = 40;

/// How a process sees the disk.
pub(super) struct View {
    root: OwnedFd,
    /// The directory of the process in `/proc`. It is of the thread that asked, however its number is
    /// used later.
    process: OwnedFd,
}

/// A directory, and a name in it.
pub(super) struct Parent {
    pub(super) directory: OwnedFd,
    /// With a slash behind it, if the caller wrote one.
    pub(super) name: CString,
}

impl Parent {
    /// The name without slashes.
    pub(super) fn plain_name(&self) -> &[u8] {
        let name = self.name.as_bytes();
        name.strip_suffix(b"/").unwrap_or(name)
    }
}

/// Where in the caller's own directory of `/proc` the walk is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    Elsewhere,
    Process,
    Descriptors,
}

impl View {
    pub(super) fn of(process: &str) -> Result<Self, Errno> {
        let process = openat(
            CWD,
            format!("/proc/{process}"),
            PATH | OFlags::DIRECTORY,
            Mode::empty(),
        )?;
        let root = open(&process, b"root", PATH)?;
        Ok(Self { root, process })
    }

    /// The directory of a path that starts at this descriptor of the process, and the last name.
    pub(super) fn parent(&self, start: i32, path: &[u8]) -> Result<Parent, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let is_absolute = path.starts_with(b"/");
        let start = if is_absolute {
            duplicate(&self.root)?
        } else {
            self.descriptor(start)?
        };
        let trimmed = without_end_slashes(path);
        let (way, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => trimmed.split_at(slash + 1),
            None => (&b""[..], trimmed),
        };
        // Without a name, it is the root: the kernel has an answer of its own, which it gives for
        // any root.
        let mut name = name.to_owned();
        if trimmed.len() < path.len() {
            name.push(b'/');
        }
        Ok(Parent {
            directory: self.directory(start, way, is_absolute)?,
            name: CString::new(name).map_err(|_| Errno::INVAL)?,
        })
    }

    /// What a descriptor of the process leads to.
    fn descriptor(&self, number: i32) -> Result<OwnedFd, Errno> {
        if number == CWD.as_raw_fd() {
            return open(&self.process, b"cwd", PATH);
        }
        let link = format!("fd/{number}");
        open(&self.process, link.as_bytes(), PATH).map_err(|error| match error {
            Errno::NOENT => Errno::BADF,
            error => error,
        })
    }

    fn directory(&self, start: OwnedFd, way: &[u8], is_absolute: bool) -> Result<OwnedFd, Errno> {
        if way.is_empty() {
            return Ok(start);
        }
        // In one step, if no link is on the way and it leads nowhere above its start.
        let bound = match is_absolute {
            true => ResolveFlags::IN_ROOT,
            false => ResolveFlags::BENEATH,
        };
        let resolve = bound | ResolveFlags::NO_SYMLINKS;
        match openat2(
            &start,
            way,
            PATH | OFlags::DIRECTORY,
            Mode::empty(),
            resolve,
        ) {
            Ok(directory) => return Ok(directory),
            Err(Errno::LOOP | Errno::XDEV | Errno::AGAIN | Errno::NOSYS | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
        self.walk(start, way)
    }

    fn walk(&self, start: OwnedFd, way: &[u8]) -> Result<OwnedFd, Errno> {
        let mut at = start;
        let mut own = Own::Elsewhere;
        let mut links = 0;
        // The next name is the last.
        let mut names = reversed(way);
        while let Some(name) = names.pop() {
            if name == b"." || name.is_empty() {
                continue;
            }
            if name == b".." {
                if own != Own::Elsewhere {
                    return Err(Errno::ACCESS);
                }
                if identity(&at)? != identity(&self.root)? {
                    at = open(&at, b"..", PATH)?;
                }
                continue;
            }
            if matches!(&*name, b"self" | b"thread-self") && is_root_of_proc(&at)? {
                at = duplicate(&self.process)?;
                own = Own::Process;
                continue;
            }
            let found = open(&at, &name, PATH | OFlags::NOFOLLOW)?;
            if kind(&found)? != FileType::Symlink {
                own = match (own, &*name) {
                    (Own::Process, b"fd") => Own::Descriptors,
                    _ => Own::Elsewhere,
                };
                at = found;
                continue;
            }
            links += 1;
            if links > LINKS {
                return Err(Errno::LOOP);
            }
            if is_proc(&found)? {
                // It leads to a place, not to a path. Process 1 could follow those of others, which
                // the caller perhaps could not.
                at = match (own, &*name) {
                    (Own::Process, b"cwd" | b"root") | (Own::Descriptors, _) => {
                        open(&at, &name, PATH)?
                    }
                    _ => return Err(Errno::ACCESS),
                };
                own = Own::Elsewhere;
                continue;
            }
            let text = readlinkat(&found, c"", Vec::new())?.into_bytes();
            if text.starts_with(b"/") {
                at = duplicate(&self.root)?;
                own = Own::Elsewhere;
            }
            names.extend(reversed(&text));
        }
        Ok(at)
    }
}

fn reversed(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/').map(<[u8]>::to_owned);
    names.rev().collect()
}

fn open(at: &OwnedFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(at, name, flags, Mode::empty())
}

fn duplicate(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(fd, 0)
}

/// Which directory it is, in which mount.
fn identity(fd: &OwnedFd) -> Result<(u64, u32, u32, u64), Errno> {
    let found = statx(
        fd,
        c"",
        AtFlags::EMPTY_PATH,
        StatxFlags::MNT_ID | StatxFlags::INO,
    )?;
    Ok((
        found.stx_mnt_id,
        found.stx_dev_major,
        found.stx_dev_minor,
        found.stx_ino,
    ))
}

fn kind(fd: &OwnedFd) -> Result<FileType, Errno> {
    let found = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
    Ok(FileType::from_raw_mode(found.stx_mode.into()))
}

fn is_proc(fd: impl AsFd) -> Result<bool, Errno> {
    Ok(fstatfs(fd)?.f_type == PROC_SUPER_MAGIC)
}

fn is_root_of_proc(fd: &OwnedFd) -> Result<bool, Errno> {
    const ROOT: u64 = 1;
    let (.., number) = identity(fd)?;
    Ok(number == ROOT && is_proc(fd)?)
}

fn without_end_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/');
    path.get(..end.map_or(0, |end| end + 1)).unwrap_or_default()
}
