//! The files that are hidden or read-only inside. They are never restored.
//!
//! A cover is a mount on a file. The kernel unmounts it when a program outside replaces or removes
//! that file, and the warden, which restores files, is outside. A session could make a hidden file
//! look like a part of a repository to have its cover removed. No session can have changed such a
//! file, so there is nothing to restore: a file with a second name is not covered, since the launch is
//! refused (`launch::protection`).

use std::{
    collections::HashSet,
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};

use super::{Identity, identity};
use crate::facts::is_in;

#[derive(Debug, Default)]
pub(super) struct Covers {
    paths: Vec<PathBuf>,
    /// The directories among them, by whatever name: some file systems do not tell `A` from `a`.
    identities: HashSet<Identity>,
    /// The other files, each with the directory that it lies in. Another name elsewhere has no cover, and a
    /// session may have made it one of git's.
    files: HashSet<(Identity, Identity)>,
    /// What lies in these is covered only if the cover lies in them, too.
    writable: HashSet<Identity>,
}

impl Covers {
    pub(super) fn new<'a>(covers: impl Iterator<Item = &'a Path>, writable: &[PathBuf]) -> Self {
        // Others are around a writable place, or of no concern.
        let covers = covers.filter(|path| is_in(path, writable));
        let paths: Vec<PathBuf> = covers.map(Path::to_owned).collect();
        let (directories, files): (Vec<&PathBuf>, Vec<_>) =
            paths.iter().partition(|path| path.is_dir());
        let in_its_directory = |path: &PathBuf| Some((identity(path.parent()?)?, identity(path)?));
        Self {
            files: files.into_iter().filter_map(in_its_directory).collect(),
            identities: directories
                .iter()
                .filter_map(|path| identity(path))
                .collect(),
            writable: writable.iter().filter_map(|path| identity(path)).collect(),
            paths,
        }
    }

    /// Whether something was covered at this path, or around it.
    pub(super) fn are_over(&self, path: &Path) -> bool {
        let mut paths = self.paths.iter();
        if paths.any(|cover| path.starts_with(cover)) {
            return true;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return true;
        };
        let directory = crate::nofollow::pin(parent);
        directory.is_ok_and(|directory| self.are_over_name(&directory, name))
    }

    /// Whether what has this name in a directory is a covered file, or lies in a covered directory.
    pub(super) fn are_over_name(&self, directory: &OwnedFd, name: &OsStr) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let is_covered = |stat: &Stat| {
            let around = fstat(directory).map(|around| number(&around));
            let found = number(stat);
            self.identities.contains(&found)
                || around.map_or(true, |around| self.files.contains(&(around, found)))
        };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        if statat(directory, name, flags).is_ok_and(|stat| is_covered(&stat)) {
            return true;
        }
        self.are_around(directory).unwrap_or(true)
    }

    fn are_around(&self, directory: &OwnedFd) -> rustix::io::Result<bool> {
        // No path is longer.
        const MOST: usize = 4096;
        let up = |from: &dyn AsFd| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(from.as_fd(), "..", flags, Mode::empty())
        };
        let mut here = number(&fstat(directory)?);
        let mut above = up(&directory)?;
        for _ in 0..MOST {
            if self.identities.contains(&here) {
                return Ok(true);
            }
            let next = number(&fstat(&above)?);
            if next == here || self.writable.contains(&here) {
                return Ok(false);
            }
            above = up(&above)?;
            here = next;
        }
        Ok(true)
    }
}

#[expect(
    clippy::useless_conversion,
    clippy::unnecessary_cast,
    reason = "the types differ between architectures"
)]
fn number(stat: &Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn covered_files_are_known_by_any_name() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        for directory in ["hidden/in", "other"] {
            fs::create_dir_all(place.join(directory)).unwrap();
        }
        for file in ["hidden/in/file", "file", "other/file"] {
            fs::write(place.join(file), file).unwrap();
        }
        fs::hard_link(place.join("file"), place.join("other/name")).unwrap();
        let covered = ["hidden", "file"].map(|name| place.join(name));
        let around = place.parent().unwrap();
        let covered = covered.iter().map(PathBuf::as_path).chain([around]);
        let covers = Covers::new(covered, std::slice::from_ref(&place));
        // The directory has another name, as far as this is asked.
        fs::rename(place.join("hidden"), place.join("renamed")).unwrap();
        for path in ["hidden/x", "file", "renamed", "renamed/in/file"] {
            assert!(covers.are_over(&place.join(path)), "{path}");
        }
        fs::rename(place.join("file"), place.join("File")).unwrap();
        assert!(covers.are_over(&place.join("File")), "in its directory");
        for path in ["other/file", "other/name", "other", "none", "none/none"] {
            assert!(!covers.are_over(&place.join(path)), "{path}");
        }
    }
}
