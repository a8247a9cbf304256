//! The quarantine: files as the session left them, before they were restored.
//!
//! It lies beside the log, where no session sees it. `stockade accept` applies it.

use std::{
    cell::Cell,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{baseline, bounds::Bounds, content::Content, covers::Covers, restore::put};
use crate::encoding::{bytes, decode, encode};

/// Where a session's traces are kept: the directory of Stockade's own state, and the session.
#[derive(Debug, Clone)]
pub struct Keeping {
    pub state: PathBuf,
    pub session: String,
}

/// A file that was put back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    #[serde(with = "bytes")]
    pub path: PathBuf,
    /// What the session made of it.
    pub(super) theirs: Content,
    /// What it is since.
    pub(super) ours: Option<Content>,
    /// What was said about it.
    pub said: Vec<String>,
    /// How much more there was to say than is kept.
    pub unsaid: usize,
    #[serde(skip)]
    pub(super) record: PathBuf,
}

impl Keeping {
    fn directory(&self) -> PathBuf {
        self.state.join("quarantine").join(&self.session)
    }

    /// Writes it down before it is put back: what is not here would be lost. Says where.
    pub(super) fn keep(&self, kept: &Kept) -> io::Result<PathBuf> {
        let directory = self.directory();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        let kept = encode(kept)?;
        // A session that changes files again and again fills no disk.
        const MOST: usize = 1000;
        let mut number = fs::read_dir(&directory)?.count();
        if number >= MOST {
            return Err(io::Error::other("too much was undone already"));
        }
        let (mut file, record) = loop {
            let record = directory.join(format!("{number:04}"));
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&record);
            match file {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                file => break (file?, record),
            }
        };
        if let Err(error) = file.write_all(&kept) {
            // Half of it could not be read, nor the others beside it.
            let _ = fs::remove_file(&record);
            return Err(error);
        }
        Ok(record)
    }

    /// What of this session was put back, in that order.
    ///
    /// # Errors
    /// If it cannot be read; not if there is nothing.
    pub fn kept(&self) -> io::Result<Vec<Kept>> {
        let entries = match fs::read_dir(self.directory()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut records: Vec<PathBuf> = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        records.sort();
        let read = |record: &PathBuf| {
            let kept = decode(&fs::read(record)?).ok_or(io::ErrorKind::InvalidData)?;
            let record = record.clone();
            Ok(Kept { record, ..kept })
        };
        records.iter().map(read).collect()
    }

    /// Makes a file what the session made of it. Sessions that still run in that workspace take it
    /// for given from then on.
    ///
    /// # Errors
    /// If it has changed since, was too long to be kept, or cannot be written.
    pub fn accept(&self, kept: &Kept) -> io::Result<()> {
        if kept.theirs.is_directory() {
            let why = "it was moved aside, beside it or to the top of the repository, to a name that ends in .stockade";
            return Err(io::Error::other(why));
        }
        if !kept.can_be_given_back() {
            return Err(io::Error::other("it was too long to be kept"));
        }
        if !kept.is_untouched() {
            return Err(io::Error::other("it has changed since"));
        }
        baseline::accept(&self.state, &kept.path, &kept.theirs)?;
        let patience = Cell::new(Duration::from_secs(1));
        let is_still = || kept.is_untouched();
        let (theirs, covers) = (Some(&kept.theirs), Covers::default());
        put(&kept.path, theirs, &patience, &covers, None, is_still)?;
        fs::remove_file(&kept.record)
    }

    /// Forgets what is not needed any more.
    pub fn forget(&self) {
        let _ = fs::remove_dir_all(self.directory());
    }
}

impl Kept {
    /// Where all of it can be read.
    #[must_use]
    pub fn record(&self) -> &Path {
        &self.record
    }

    /// Whether the file is still what it was put back to.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        let bounds = Bounds::new(Duration::from_secs(1), 100_000, &|| false);
        Content::of(&self.path, &bounds) == self.ours
    }

    /// Whether there is something that can be given back: very long files were not kept.
    fn can_be_given_back(&self) -> bool {
        matches!(self.theirs, Content::File { .. } | Content::Link(_))
    }

    /// What the session made of it, as text.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match &self.theirs {
            Content::File { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
            Content::Link(to) => Some(format!("a link to {}", to.display())),
            _ => None,
        }
    }
}
