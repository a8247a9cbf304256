//! Restores a file.
//!
//! Its directory was writable inside. It is opened without following any link, and every step is
//! relative to it, so that nothing can be written elsewhere.

use std::{
    cell::Cell,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::Path,
    thread,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, fchmod, openat, renameat, statat, symlinkat, unlinkat},
    io::Errno,
};

use super::{content::Content, covers::Covers};
use crate::nofollow;

/// Makes a path what it is to be; nothing is to be nothing there. `is_still` is asked at the last
/// moment whether it is still what is to be replaced; locks of git's are waited for as long as there is
/// patience left. What is covered inside is not touched.
pub(super) fn put(
    path: &Path,
    content: Option<&Content>,
    patience: &Cell<Duration>,
    covers: &Covers,
    is_still: impl Fn() -> bool,
) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let directory = nofollow::pin(parent)?;
    if covers.are_over_name(&directory, name) {
        return Err(io::Error::other("it is hidden or read-only inside"));
    }
    nofollow::open_up(&directory)?;
    let is_changed = || io::Error::other("it changes again and again");
    match content {
        None => {
            if !is_still() {
                return Err(is_changed());
            }
            remove(&directory, name)
        }
        Some(Content::File { bytes, mode }) => {
            let new = New::create(&directory, name, patience)?;
            let mut file = &new.file;
            file.write_all(bytes)?;
            fchmod(file, Mode::from_raw_mode(*mode))?;
            if !is_still() {
                return Err(is_changed());
            }
            make_way(&directory, name)?;
            new.rename_to(name)
        }
        Some(Content::Link(to)) => {
            if !is_still() {
                return Err(is_changed());
            }
            remove(&directory, name)?;
            Ok(symlinkat(to, &directory, name)?)
        }
        Some(Content::Directory(_) | Content::Other(_)) => {
            remove(&directory, name)?;
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
                // A lock that stays was left behind.
                Err(Errno::EXIST) if !name.as_encoded_bytes().ends_with(b".stockade") => {
                    name.push(format!(".{}.stockade", std::process::id()));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn rename_to(mut self, name: &OsStr) -> io::Result<()> {
        renameat(self.directory, &self.name, self.directory, name)?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn remove(directory: &OwnedFd, name: &OsStr) -> io::Result<()> {
    make_way(directory, name)?;
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A directory where a file should be cannot be replaced by one. It is moved aside.
fn make_way(directory: &OwnedFd, name: &OsStr) -> io::Result<()> {
    use rustix::fs::FileType;
    let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let mut aside = name.to_owned();
        aside.push(format!(".aside-{}-{}", std::process::id(), stat.st_ino));
        renameat(directory, name, directory, &aside)?;
    }
    Ok(())
}
