//! Restores a file.
//!
//! Its directory was writable inside. It is opened without following any link, and every step is
//! relative to it, so that nothing can be written elsewhere.

use std::{
    cell::Cell,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStringExt as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, fchmod, fstat, ftruncate, openat, renameat, statat, symlinkat,
        unlinkat,
    },
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};

use super::{content::Content, covers::Covers};
use crate::nofollow;

/// How the names of what was moved aside end.
const ASIDE: &str = ".stockade";

/// What became of a file.
#[derive(Debug)]
pub(super) enum Put {
    /// Also where a directory is now that was in the way.
    Done(Option<PathBuf>),
    /// What was there is gone, and what should be there could not be made.
    Removed(io::Error),
}

/// The same as [`put`], which see for `aside`. Where a file cannot be replaced, as on a full disk, it is removed: what is not
/// there runs nothing.
pub(super) fn put_or_remove(
    path: &Path,
    content: Option<&Content>,
    patience: &Cell<Duration>,
    covers: &Covers,
    aside: Option<&Path>,
    is_still: impl Fn() -> bool,
) -> io::Result<Put> {
    let error = match put(path, content, patience, covers, aside, &is_still) {
        Ok(moved) => return Ok(Put::Done(moved)),
        Err(error) => error,
    };
    // Else it is another one by now, which will be looked at.
    if content.is_none() || !is_still() {
        return Err(error);
    }
    let removed = put(path, None, patience, covers, aside, &is_still);
    removed.or_else(|_| empty(path, covers).map(|()| None))?;
    // What was removed may have made room.
    let is_gone = || fs::symlink_metadata(path).is_err();
    match put(path, content, patience, covers, aside, is_gone) {
        Ok(moved) => Ok(Put::Done(moved)),
        Err(_) => Ok(Put::Removed(error)),
    }
}

/// Some file systems need room to remove a name, and none to take what is in a file.
fn empty(path: &Path, covers: &Covers) -> io::Result<()> {
    let (directory, name) = uncovered(path, covers)?;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&directory, name, flags, Mode::empty())?;
    Ok(ftruncate(&file, 0)?)
}

/// The directory of a path and the name in it, unless it is covered inside.
fn uncovered<'a>(path: &'a Path, covers: &Covers) -> io::Result<(OwnedFd, &'a OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let directory = nofollow::pin(parent)?;
    if covers.are_over_name(&directory, name) {
        return Err(io::Error::other("it is hidden or read-only inside"));
    }
    Ok((directory, name))
}

/// Makes a path what it is to be; nothing is to be nothing there. `is_still` is asked at the last
/// moment whether it is still what is to be replaced; locks of git's are waited for as long as there is
/// patience left. What is covered inside is not touched. A directory that is in the way is moved to `aside`; says where it is now.
pub(super) fn put(
    path: &Path,
    content: Option<&Content>,
    patience: &Cell<Duration>,
    covers: &Covers,
    aside: Option<&Path>,
    is_still: impl Fn() -> bool,
) -> io::Result<Option<PathBuf>> {
    let (directory, name) = uncovered(path, covers)?;
    nofollow::open_up(&directory)?;
    let is_changed = || io::Error::other("it changes again and again");
    let check = || is_still().then_some(()).ok_or_else(is_changed);
    match content {
        None => {
            check()?;
            remove(&directory, path, aside)
        }
        Some(Content::File { bytes, mode }) => {
            let new = New::create(&directory, name, patience)?;
            let mut file = &new.file;
            file.write_all(bytes)?;
            fchmod(file, Mode::from_raw_mode(*mode))?;
            check()?;
            let moved = make_way(&directory, path, aside)?;
            new.rename_to(name)?.then_some(moved).ok_or_else(is_changed)
        }
        Some(Content::Link(to)) => {
            check()?;
            let moved = remove(&directory, path, aside)?;
            symlinkat(to, &directory, name)?;
            Ok(moved)
        }
        Some(Content::Directory(_) | Content::Other(_)) => {
            remove(&directory, path, aside)?;
            Err(io::Error::other("it was too large to be kept"))
        }
    }
}

/// A file beside another one, as git makes it: the name says that somebody works on it.
struct New<'a> {
    directory: &'a OwnedFd,
    name: OsString,
    file: File,
    is_done: bool,
}

impl<'a> New<'a> {
    fn create(directory: &'a OwnedFd, of: &OsStr, patience: &Cell<Duration>) -> io::Result<Self> {
        const MOMENT: Duration = Duration::from_millis(10);
        let mut name = of.to_owned();
        name.push(".lock");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut attempts = 8;
        loop {
            match openat(directory, &name, flags, mode) {
                Ok(file) => {
                    return Ok(Self {
                        directory,
                        name,
                        file: file.into(),
                        is_done: false,
                    });
                }
                // Who holds it works on the file; or it was left there to have us wait.
                Err(Errno::EXIST) if !patience.get().is_zero() => {
                    thread::sleep(MOMENT);
                    patience.set(patience.get().saturating_sub(MOMENT));
                }
                // A lock that stays was left behind. Nobody knows the other name before it is used.
                Err(Errno::EXIST) if attempts > 0 => {
                    attempts -= 1;
                    name = random_name(of)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether it is this file that has the name now: somebody may have put another one in its place.
    fn rename_to(mut self, name: &OsStr) -> io::Result<bool> {
        renameat(self.directory, &self.name, self.directory, name)?;
        self.is_done = true;
        let there = statat(self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let own = fstat(&self.file)?;
        Ok((there.st_dev, there.st_ino) == (own.st_dev, own.st_ino))
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn remove(directory: &OwnedFd, path: &Path, aside: Option<&Path>) -> io::Result<Option<PathBuf>> {
    let moved = make_way(directory, path, aside)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(moved),
        Err(error) => Err(error.into()),
    }
}

/// A directory where a file should be cannot be replaced by one. It is moved aside: to the top of the repository,
/// where no name of git's leads to it, or else to another name.
fn make_way(directory: &OwnedFd, path: &Path, aside: Option<&Path>) -> io::Result<Option<PathBuf>> {
    use rustix::fs::FileType;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(None);
    }
    let new = random_name(name)?;
    if let Some(top) = aside
        && let Ok(aside) = nofollow::pin(top)
        && renameat(directory, name, &aside, &new).is_ok()
    {
        return Ok(Some(top.join(new)));
    }
    renameat(directory, name, directory, &new)?;
    Ok(Some(path.with_file_name(new)))
}

/// A name that nobody can have taken before.
fn random_name(of: &OsStr) -> io::Result<OsString> {
    let mut bytes = [0; 8];
    // As few bytes as this come whole, or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    // Of a long name, no more than leaves room.
    const LONGEST: usize = 200;
    let of = of.as_encoded_bytes();
    let mut name = of.get(..LONGEST).unwrap_or(of).to_vec();
    name.extend(format!(".{:016x}{ASIDE}", u64::from_ne_bytes(bytes)).into_bytes());
    Ok(OsString::from_vec(name))
}

/// Whether a directory was moved aside, by its name. Anybody can choose such a name: it is a reason to trust what
/// is in it less, never more.
pub(crate) fn is_aside(name: &OsStr) -> bool {
    const DIGITS: usize = 16;
    let name = name.as_encoded_bytes().strip_suffix(ASIDE.as_bytes());
    let parts = name.and_then(|name| name.split_last_chunk::<DIGITS>());
    parts.is_some_and(|(of, digits)| of.ends_with(b".") && digits.iter().all(u8::is_ascii_hexdigit))
}
