//! Which files that run by themselves an earlier session found untracked by git.
//!
//! Such a file is read-only inside. A session can add it to the index, or commit it, and the next
//! session would take it for one that the user tracks. So the first session's word counts until the
//! user says otherwise (`stockade accept --file`) or the file is gone. The record lies beside the
//! log, where no session sees it.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder},
    io::{
        self,
        ErrorKind::{NotADirectory, NotFound},
    },
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use super::baseline;
use crate::encoding::{Text, decode, encode};

const VERSION: u64 = 1;

/// The untracked files of a top. If nobody can tell, all are.
pub(crate) fn read(state: &Path, top: &Path) -> Vec<PathBuf> {
    match fs::read(record(state, top)) {
        Ok(bytes) => parse(&bytes, top).unwrap_or_else(|| vec![top.to_owned()]),
        Err(error) if error.kind() == NotFound => Vec::new(),
        Err(_) => vec![top.to_owned()],
    }
}

/// Adds what is untracked now, and drops what is gone.
pub(crate) fn note(state: &Path, top: &Path, untracked: &[PathBuf]) -> io::Result<()> {
    let before = read(state, top);
    // A session that runs may have closed a directory on the way.
    let is_gone = |path: &&PathBuf| {
        let error = path.symlink_metadata().err();
        error.is_some_and(|it| matches!(it.kind(), NotFound | NotADirectory))
    };
    let there = before.iter().filter(|path| !is_gone(path));
    let all: BTreeSet<&PathBuf> = untracked.iter().chain(there).collect();
    if all.iter().copied().eq(&before) {
        return Ok(());
    }
    write(state, top, all)
}

/// Lets git decide about a file again, or about all of a directory. Whether it did not.
///
/// # Errors
/// If the record cannot be written.
pub fn accept(state: &Path, top: &Path, path: &Path) -> io::Result<bool> {
    let before = read(state, top);
    let is_other = |other: &&PathBuf| !other.starts_with(path) && !path.starts_with(other);
    let others = before.iter().filter(is_other);
    let others: BTreeSet<&PathBuf> = others.collect();
    if others.len() == before.len() {
        return Ok(false);
    }
    write(state, top, others).map(|()| true)
}

fn record(state: &Path, top: &Path) -> PathBuf {
    state.join("untracked").join(baseline::name_of(top))
}

fn parse(bytes: &[u8], top: &Path) -> Option<Vec<PathBuf>> {
    type Record = (u64, Text<PathBuf>, Vec<Text<PathBuf>>);
    let (version, Text(whose), paths): Record = decode(bytes)?;
    let paths = paths.into_iter().map(|Text(path)| path);
    (version == VERSION && whose == top).then(|| paths.collect())
}

fn write(state: &Path, top: &Path, paths: BTreeSet<&PathBuf>) -> io::Result<()> {
    let record = record(state, top);
    let directory = record.parent().unwrap_or(state);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let paths: Vec<_> = paths.into_iter().map(Text).collect();
    let contents = encode(&(VERSION, Text(&top.to_owned()), paths))?;
    let new = record.with_extension(std::process::id().to_string());
    let written = fs::write(&new, contents).and_then(|()| fs::rename(&new, &record));
    if written.is_err() {
        let _ = fs::remove_file(new);
    }
    written
}
