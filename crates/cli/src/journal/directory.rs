//! Where the logs are, which of them are kept, and whose session still runs.
//!
//! A session's log is `ID.jsonl`. One that grows beyond a limit goes on in further parts,
//! `ID.jsonl.2` and so on, of which the latest two are kept, and the first always: a program
//! inside that makes noise can push out what happened in the middle, not how it began.
//!
//! The writer holds a lock on the first part for as long as it lives. That is how others know
//! that a session runs, from anywhere on the machine and whatever its network is, and it is
//! gone with the process however that ends. Asking takes no lock.

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, fcntl_lock},
    process::{Flock, FlockType, fcntl_getlk},
};

use super::file::Log;
use crate::session;

/// Sessions that are kept, and bytes of all together. Those that run stay in any case.
const SESSIONS: usize = 100;
const TOTAL: u64 = 64 << 20;
const SUFFIX: &str = ".jsonl";

/// Where the logs are: `$XDG_STATE_HOME/stockade/sessions`.
#[derive(Debug, Clone)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn of(home: &Path) -> Self {
        let state = env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| home.join(".local/state"));
        Self(state.join("stockade/sessions"))
    }

    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A new log, which is the user's alone. Old ones make way.
    pub(crate) fn create(&self, id: &str) -> io::Result<Log> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)?;
        self.clean(SESSIONS, TOTAL);
        let first = self.open_new(id, 1)?;
        // On a filesystem without locks the session is logged all the same.
        let _ = fcntl_lock(&first, FlockOperation::NonBlockingLockExclusive);
        Ok(Log::new(self.clone(), id.to_owned(), first))
    }

    pub(super) fn open_new(&self, id: &str, part: u32) -> io::Result<File> {
        OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(self.file(id, part))
    }

    pub(crate) fn file(&self, id: &str, part: u32) -> PathBuf {
        self.0.join(match part {
            1 => format!("{id}{SUFFIX}"),
            part => format!("{id}{SUFFIX}.{part}"),
        })
    }

    /// All sessions that have a log, the oldest first.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let names = self.names();
        let ids = names.iter().filter_map(|name| name.strip_suffix(SUFFIX));
        let mut found: Vec<String> = ids.map(str::to_owned).collect();
        session::sort(&mut found);
        found
    }

    /// The numbers of the parts that are there, in order.
    pub(crate) fn parts(&self, id: &str) -> Vec<u32> {
        let first = format!("{id}{SUFFIX}");
        let names = self.names();
        let numbers = names.iter().filter_map(|name| {
            let rest = name.strip_prefix(&first)?;
            match rest.strip_prefix('.') {
                Some(number) => number.parse().ok().filter(|number| *number > 1),
                None => rest.is_empty().then_some(1),
            }
        });
        let mut found: Vec<u32> = numbers.collect();
        found.sort_unstable();
        found
    }

    /// Whether the session that writes this log is alive.
    pub(crate) fn is_running(&self, id: &str) -> bool {
        let Ok(file) = File::open(self.file(id, 1)) else {
            return false;
        };
        let whole = Flock::from(FlockType::WriteLock);
        fcntl_getlk(file, &whole).is_ok_and(|holder| holder.is_some())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.collect()
    }

    fn size(&self, id: &str) -> u64 {
        let parts = self.parts(id).into_iter();
        let size = |part| fs::metadata(self.file(id, part)).map_or(0, |file| file.len());
        parts.map(size).sum()
    }

    /// Makes room for one more session. What cannot be removed stays; the next one tries
    /// again.
    fn clean(&self, sessions: usize, bytes: u64) {
        let mut total = 0;
        for (newer, id) in self.sessions().iter().rev().enumerate() {
            total += self.size(id);
            if (newer + 1 < sessions && total <= bytes) || self.is_running(id) {
                continue;
            }
            // The first last: the others are found by it.
            for part in self.parts(id).into_iter().rev() {
                let _ = fs::remove_file(self.file(id, part));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[(&str, usize)]) -> (tempfile::TempDir, Directory) {
        let path = tempfile::tempdir().expect("a directory");
        for (name, size) in files {
            fs::write(path.path().join(name), vec![b'\n'; *size]).expect("a file");
        }
        let directory = Directory::at(path.path());
        (path, directory)
    }

    #[test]
    fn the_oldest_sessions_make_way_by_their_number() {
        let (_path, directory) = directory(&[("1.jsonl", 1), ("2.jsonl", 1), ("3.jsonl", 1)]);
        directory.clean(3, 1000);
        // With the one that is about to come there are three.
        assert_eq!(directory.sessions(), ["2", "3"]);
    }

    #[test]
    fn the_oldest_sessions_make_way_by_their_size_with_all_their_parts() {
        let files = [
            ("1.jsonl", 10),
            ("2.jsonl", 10),
            ("2.jsonl.7", 50),
            ("2.jsonl.8", 50),
            ("3.jsonl", 90),
        ];
        let (path, directory) = directory(&files);
        directory.clean(100, 200);
        assert_eq!(directory.sessions(), ["2", "3"]);
        directory.clean(100, 199);
        let left: Vec<_> = fs::read_dir(path.path()).expect("files").collect();
        assert_eq!(directory.sessions(), ["3"]);
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn sessions_are_in_the_order_of_their_beginning() {
        let (_path, directory) = directory(&[("70-10.jsonl", 1), ("70-9.jsonl", 1)]);
        assert_eq!(directory.sessions(), ["70-9", "70-10"]);
    }

    #[test]
    fn parts_are_those_of_one_session_in_order_of_their_numbers() {
        let files = [
            ("1.jsonl", 1),
            ("1.jsonl.10", 1),
            ("1.jsonl.9", 1),
            ("1.jsonl.x", 1),
            ("11.jsonl.3", 1),
        ];
        let (_path, directory) = directory(&files);
        assert_eq!(directory.parts("1"), [1, 9, 10]);
        assert_eq!(directory.sessions(), ["1"]);
    }
}
