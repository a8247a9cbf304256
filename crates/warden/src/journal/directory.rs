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
    collections::HashMap,
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, fcntl_lock},
    process::{Flock, FlockType, fcntl_getlk},
};

use stockade_config::Places;

use super::file::LogFile;
use crate::sessions;

/// Sessions that are kept, and bytes of all together. Those that run stay in any case.
const SESSIONS: usize = 100;
const TOTAL: u64 = 64 << 20;
const SUFFIX: &str = ".jsonl";
/// A file beside the log of a session that is kept until `stockade suggest` has used it.
const LEARN: &str = ".learn";
/// How long such a log is kept, and how many are at a time. They have half of all bytes.
const LEARN_TIME: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const LEARN_SESSIONS: usize = 10;

/// Where the logs are: `$XDG_STATE_HOME/stockade/sessions`.
#[derive(Debug, Clone)]
pub struct LogDirectory(PathBuf);

impl LogDirectory {
    pub fn of(home: &Path) -> Self {
        let state = Places::state_of(home, |name| env::var_os(name));
        Self(state.join("sessions"))
    }

    /// Logs in this directory.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Sees to it that it is there, for the user alone.
    pub fn make(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
    }

    /// A new log, which is the user's alone.
    pub(crate) fn create(&self, id: &str) -> io::Result<LogFile> {
        self.make()?;
        let first = self.open_new(id, 1)?;
        // On a filesystem without locks the session is logged all the same.
        let _ = fcntl_lock(&first, FlockOperation::NonBlockingLockExclusive);
        Ok(LogFile::new(self.clone(), id.to_owned(), first))
    }

    pub(super) fn open_new(&self, id: &str, part: u32) -> io::Result<File> {
        OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(self.file(id, part))
    }

    pub fn file(&self, id: &str, part: u32) -> PathBuf {
        self.0.join(match part {
            1 => format!("{id}{SUFFIX}"),
            part => format!("{id}{SUFFIX}.{part}"),
        })
    }

    /// All sessions that have a log, the oldest first.
    pub fn sessions(&self) -> Vec<String> {
        let parts = self.all_parts();
        let mut found: Vec<String> = parts.into_keys().collect();
        sessions::sort(&mut found);
        found
    }

    /// The numbers of the parts that are there, in order.
    pub fn parts(&self, id: &str) -> Vec<u32> {
        self.all_parts().remove(id).unwrap_or_default()
    }

    /// The same of every session that has a first part.
    fn all_parts(&self) -> HashMap<String, Vec<u32>> {
        let mut all: HashMap<String, Vec<u32>> = HashMap::new();
        let entries = fs::read_dir(&self.0).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let parsed = name.to_str().and_then(|name| name.split_once(SUFFIX));
            let part = parsed.and_then(|(id, rest)| match rest.strip_prefix('.') {
                Some(number) => Some((id, number.parse().ok().filter(|number| *number > 1)?)),
                None => rest.is_empty().then_some((id, 1)),
            });
            if let Some((id, part)) = part {
                all.entry(id.to_owned()).or_default().push(part);
            }
        }
        for parts in all.values_mut() {
            parts.sort_unstable();
        }
        all.retain(|_, parts| parts.first() == Some(&1));
        all
    }

    /// Whether the session that writes this log is alive.
    pub fn is_running(&self, id: &str) -> bool {
        let Ok(file) = File::open(self.file(id, 1)) else {
            return false;
        };
        let whole = Flock::from(FlockType::WriteLock);
        fcntl_getlk(file, &whole).is_ok_and(|holder| holder.is_some())
    }

    /// Keeps the log of a session until [`Self::release`], within limits.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn keep(&self, id: &str) -> io::Result<()> {
        self.make()?;
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600);
        made.open(self.mark(id)).map(drop)
    }

    /// The log of a session need not be kept any longer than others.
    pub fn release(&self, id: &str) {
        let _ = fs::remove_file(self.mark(id));
    }

    fn mark(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}{LEARN}"))
    }

    /// Sessions whose logs are kept, the latest first.
    pub fn kept(&self) -> Vec<String> {
        self.kept_of(TOTAL)
    }

    fn kept_of(&self, bytes: u64) -> Vec<String> {
        let is_young = |id: &String| {
            let marked = fs::metadata(self.mark(id)).and_then(|mark| mark.modified());
            marked.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < LEARN_TIME))
        };
        let mut kept = self.sessions();
        kept.reverse();
        kept.retain(is_young);
        kept.truncate(LEARN_SESSIONS);
        let mut room = bytes / 2;
        kept.retain(|id| {
            let parts = self.parts(id);
            let files = parts.iter().map(|part| self.file(id, *part));
            let size: u64 = files
                .map(|file| fs::metadata(file).map_or(0, |it| it.len()))
                .sum();
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        kept
    }

    /// Removes old sessions to make room for this one.
    pub(super) fn make_room_for(&self, id: &str) {
        self.clean(id, SESSIONS, TOTAL);
    }

    /// What cannot be removed stays; the next one tries again. The new session itself is not
    /// looked at: to close its file a second time would end its lock.
    fn clean(&self, new: &str, sessions: usize, bytes: u64) {
        let mut parts = self.all_parts();
        parts.remove(new);
        let size = |(id, parts): (&String, &Vec<u32>)| {
            let files = parts.iter().map(|part| self.file(id, *part));
            let sizes = files.map(|file| fs::metadata(file).map_or(0, |it| it.len()));
            (id.clone(), sizes.sum())
        };
        let sizes: HashMap<String, u64> = parts.iter().map(size).collect();
        let (mut count, mut total) = (sizes.len() + 1, sizes.values().sum::<u64>());
        for (id, parts) in &parts {
            if !self.is_running(id) {
                let files = parts.iter().map(|part| self.file(id, *part));
                files.for_each(|file| give_back_reserve(&file));
            }
        }
        if count <= sessions && total <= bytes {
            return;
        }
        let kept = self.kept_of(bytes);
        let mut ids: Vec<String> = sizes.keys().cloned().collect();
        ids.retain(|id| !kept.contains(id));
        sessions::sort(&mut ids);
        // The oldest last.
        let mut workspaces: HashMap<Option<String>, Vec<String>> = HashMap::new();
        for id in ids.into_iter().rev() {
            workspaces.entry(self.workspace(&id)).or_default().push(id);
        }
        let size = |id: &String| sizes.get(id).copied().unwrap_or_default();
        while count > sessions || total > bytes {
            // A loop of sessions in one workspace does not push out those of another.
            let weight = |ids: &Vec<String>| match count > sessions {
                true => ids.len() as u64,
                false => ids.iter().map(size).sum(),
            };
            let heaviest = workspaces.values_mut().max_by_key(|ids| weight(ids));
            let Some(id) = heaviest.and_then(Vec::pop) else {
                return;
            };
            if self.is_running(&id) {
                continue;
            }
            (count, total) = (count - 1, total - size(&id));
            // What was put back goes with the log that tells of it.
            if let Some(state) = self.0.parent() {
                let _ = fs::remove_dir_all(state.join("quarantine").join(&id));
            }
            self.release(&id);
            // The first last: the others are found by it.
            for part in parts.get(&id).into_iter().flatten().rev() {
                let _ = fs::remove_file(self.file(&id, *part));
            }
        }
    }

    /// The workspace of a session, as the first line of its log says.
    fn workspace(&self, id: &str) -> Option<String> {
        const LONGEST: u64 = 64 << 10;
        let file = File::open(self.file(id, 1)).ok()?;
        let mut line = String::new();
        let mut reader = BufReader::new(file.take(LONGEST));
        reader.read_line(&mut line).ok()?;
        let line: serde_json::Value = serde_json::from_str(&line).ok()?;
        line["workspace"].as_str().map(str::to_owned)
    }
}

/// What a session reserved that was killed long ago. Failing costs room on the disk, nothing else.
fn give_back_reserve(log: &Path) {
    const LONG: Duration = Duration::from_secs(24 * 60 * 60);
    const BLOCK: u64 = 512;
    const LITTLE: u64 = 64 << 10;
    if let Ok(file) = fs::metadata(log)
        && file.blocks() * BLOCK > file.len() + LITTLE
        && file
            .modified()
            .is_ok_and(|it| it.elapsed().is_ok_and(|age| age > LONG))
    {
        let opened = OpenOptions::new().write(true).open(log);
        let _ = opened.and_then(|log| log.set_len(file.len()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn directory(files: &[(&str, usize)]) -> (tempfile::TempDir, LogDirectory) {
        let path = tempfile::tempdir().expect("a directory");
        for (name, size) in files {
            fs::write(path.path().join(name), vec![b'\n'; *size]).expect("a file");
        }
        let directory = LogDirectory::at(path.path());
        (path, directory)
    }

    #[test]
    fn the_oldest_sessions_make_way_by_their_number() {
        let (_path, directory) = directory(&[("1.jsonl", 1), ("2.jsonl", 1), ("3.jsonl", 1)]);
        directory.clean("4", 3, 1000);
        // With the one that is about to come there are three.
        assert_eq!(directory.sessions(), ["2", "3"]);
    }

    #[test]
    fn a_session_to_learn_from_stays_until_it_was_used_or_is_old() {
        let files = ["1", "2", "3", "4"].map(|id| format!("{id}.jsonl"));
        let (path, directory) = directory(&files.each_ref().map(|name| (name.as_str(), 10)));
        for id in ["1", "2"] {
            directory.keep(id).expect("a mark");
        }
        assert_eq!(directory.kept(), ["2", "1"]);
        directory.clean("5", 3, 1000);
        assert_eq!(directory.sessions(), ["1", "2"]);
        // One that was used, or is old, makes way like any other.
        directory.release("1");
        let mark = File::open(path.path().join("2.learn")).expect("a mark");
        mark.set_modified(SystemTime::now() - LEARN_TIME)
            .expect("a time");
        directory.clean("5", 2, 1000);
        assert_eq!(directory.sessions(), ["2"]);
        directory.clean("5", 1, 1000);
        assert_eq!(fs::read_dir(path.path()).expect("files").count(), 0);
    }

    #[test]
    fn sessions_to_learn_from_are_few_and_small() {
        let many = LEARN_SESSIONS + 3;
        let files: Vec<_> = (0..many).map(|id| format!("{id}.jsonl")).collect();
        let files: Vec<_> = files.iter().map(|name| (name.as_str(), 10)).collect();
        let (_path, directory) = directory(&files);
        for id in 0..many {
            directory.keep(&id.to_string()).expect("a mark");
        }
        assert_eq!(directory.kept().len(), LEARN_SESSIONS);
        assert_eq!(directory.kept_of(80).len(), 4);
        directory.clean("99", 1, 1000);
        assert_eq!(directory.sessions().len(), LEARN_SESSIONS);
        directory.clean("99", 1, 80);
        assert_eq!(directory.sessions(), ["9", "10", "11", "12"]);
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
        directory.clean("4", 100, 200);
        assert_eq!(directory.sessions(), ["2", "3"]);
        directory.clean("4", 100, 199);
        let left: Vec<_> = fs::read_dir(path.path()).expect("files").collect();
        assert_eq!(directory.sessions(), ["3"]);
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn many_sessions_of_one_workspace_push_out_none_of_another() {
        let path = tempfile::tempdir().expect("a directory");
        let log = |id: u32, workspace: &str| {
            let line = format!("{{\"workspace\":\"{workspace}\"}}\n");
            fs::write(path.path().join(format!("{id}.jsonl")), line).expect("a log");
        };
        log(1, "/other");
        for id in 2..60 {
            log(id, "/loop");
        }
        let directory = LogDirectory::at(path.path());
        directory.clean("60", 10, 1000);
        let left = directory.sessions();
        assert_eq!(left.len(), 9);
        assert_eq!((left[0].as_str(), left[1].as_str()), ("1", "52"));
        // By their bytes, too.
        directory.clean("60", 100, 100);
        assert_eq!(directory.sessions().first().map(String::as_str), Some("1"));
        assert!(directory.sessions().len() < 9);
    }

    #[test]
    fn what_a_killed_session_reserved_is_given_back_when_it_is_old() {
        use rustix::fs::{FallocateFlags, fallocate};
        let (path, directory) = directory(&[("1.jsonl", 10), ("2.jsonl", 10)]);
        let name = |id: &str| path.path().join(format!("{id}.jsonl"));
        for (id, days) in [("1", 2), ("2", 0)] {
            let file = OpenOptions::new()
                .write(true)
                .open(name(id))
                .expect("a log");
            fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 1 << 20).expect("room");
            let age = Duration::from_secs(days * 24 * 60 * 60);
            file.set_modified(SystemTime::now() - age).expect("a time");
        }
        directory.clean("3", 100, 1000);
        let file = |id: &str| fs::metadata(name(id)).expect("a log");
        assert_eq!([file("1").len(), file("2").len()], [10, 10]);
        assert!(file("1").blocks() * 512 < 1 << 20);
        assert!(file("2").blocks() * 512 >= 1 << 20);
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
