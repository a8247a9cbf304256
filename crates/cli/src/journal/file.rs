//! The files of the log.

use std::{
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::Line;

/// Sessions that are kept.
const SESSIONS: usize = 100;
/// Bytes of all together, and of one file.
const TOTAL: u64 = 64 << 20;
const LARGEST: u64 = 16 << 20;
const SUFFIX: &str = "jsonl";
/// The part of a session's log that had to make way for the rest.
const OLDER: &str = "jsonl.1";

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

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A new log, which is the user's alone. Old ones make way.
    pub(crate) fn create(&self, id: &str) -> io::Result<Log> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)?;
        self.clean();
        let path = self.file(id);
        Ok(Log {
            file: open_new(&path)?,
            path,
            written: 0,
            lost: None,
        })
    }

    pub(crate) fn file(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.{SUFFIX}"))
    }

    /// All sessions that have a log, the oldest first.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let mut found: Vec<String> = fs::read_dir(&self.0)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                let id = name.to_str()?.strip_suffix(SUFFIX)?.strip_suffix('.')?;
                Some(id.to_owned())
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// What cannot be removed stays; the next session tries again.
    fn clean(&self) {
        let size = |id: &str| fs::metadata(self.file(id)).map_or(0, |file| file.len());
        let mut total = 0;
        for (newer, id) in self.sessions().iter().rev().enumerate() {
            total += size(id);
            if newer + 1 >= SESSIONS || total > TOTAL {
                let _ = fs::remove_file(self.file(id));
                let _ = fs::remove_file(self.0.join(format!("{id}.{OLDER}")));
            }
        }
    }
}

fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    written: u64,
    lost: Option<(u64, io::Error)>,
}

impl Log {
    pub(super) fn write(&mut self, line: &Line) {
        let mut text = serde_json::to_string(line).unwrap_or_default();
        text.push('\n');
        if self.written > LARGEST {
            self.turn_over();
        }
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => self.written += text.len() as u64,
            Err(error) => {
                let before = self.lost.take().map_or(0, |(count, _)| count);
                self.lost = Some((before + 1, error));
            }
        }
    }

    /// Starts anew, and keeps the part before for as long as that lasts.
    fn turn_over(&mut self) {
        let older = self.path.with_extension(OLDER);
        let renewed = fs::rename(&self.path, older).and_then(|()| open_new(&self.path));
        if let Ok(file) = renewed {
            self.file = file;
        }
        self.written = 0;
    }

    /// How many lines were lost, and why.
    pub(super) fn failure(&mut self) -> Option<(u64, io::Error)> {
        self.lost.take()
    }
}
