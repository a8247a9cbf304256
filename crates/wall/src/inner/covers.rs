//! Whether the covers are still there.
//!
//! What is hidden or read-only in a writable place is a mount point. Nobody inside can take it away,
//! but a program outside can: the kernel unmounts what is mounted on a file that it replaces or
//! removes, and a mount goes along with a file that it renames. The first is told by the kernel; for
//! the second the table of mounts is looked at once a second.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read as _, Seek as _},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How often it is looked for covers that were renamed.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// The covers, and the kernel's table of mounts, whose descriptor has news when it changes.
pub(super) struct Covers {
    table: File,
    covered: Vec<PathBuf>,
    looked: Instant,
}

impl Covers {
    /// Those of these paths at which something is mounted: of a directory that is not shown, nothing
    /// need be covered.
    pub(super) fn new(paths: &[PathBuf]) -> io::Result<Self> {
        let mut table = File::open("/proc/self/mountinfo")?;
        let points = points(&mut table)?;
        let is_covered = |path: &&PathBuf| points.contains(path.as_os_str().as_bytes());
        let covered = paths.iter().filter(is_covered).cloned().collect();
        Ok(Self {
            table,
            covered,
            looked: Instant::now(),
        })
    }

    pub(super) fn are_there_any(&self) -> bool {
        !self.covered.is_empty()
    }

    /// One that was there and is not any more. Looks if the kernel has news, or it is time.
    pub(super) fn lost(&mut self, has_news: bool) -> io::Result<Option<&Path>> {
        if !self.are_there_any() || !has_news && self.looked.elapsed() < INTERVAL {
            return Ok(None);
        }
        self.looked = Instant::now();
        let points = points(&mut self.table)?;
        let is_lost = |path: &&PathBuf| !points.contains(path.as_os_str().as_bytes());
        Ok(self.covered.iter().find(is_lost).map(PathBuf::as_path))
    }
}

impl AsFd for Covers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.table.as_fd()
    }
}

fn points(table: &mut File) -> io::Result<HashSet<Vec<u8>>> {
    const MOUNT_POINT: usize = 4;
    let mut text = Vec::new();
    table.rewind()?;
    table.read_to_end(&mut text)?;
    let lines = text.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(MOUNT_POINT));
    Ok(points.map(unescaped).collect())
}

/// The kernel writes space, tab, newline and backslash as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(byte.unwrap_or(*first));
        rest = match byte {
            Some(_) => after.get(3..).unwrap_or_default(),
            None => after,
        };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_they_are() {
        assert_eq!(unescaped(b"/a\\040b\\134\\012"), b"/a b\\\n");
        assert_eq!(unescaped(b"/a\\0"), b"/a\\0");
        let paths = ["/", "/nowhere"].map(PathBuf::from);
        let mut covers = Covers::new(&paths).expect("a table");
        assert_eq!(covers.covered, [PathBuf::from("/")]);
        assert_eq!(covers.lost(true).expect("a table"), None);
        covers.covered.push("/nowhere".into());
        assert_eq!(covers.lost(false).expect("a table"), None);
        let lost = covers.lost(true).expect("a table");
        assert_eq!(lost, Some(Path::new("/nowhere")));
    }
}
