//! Which `.stockade.toml` the user trusts.
//!
//! # Theory of operation
//! The command inside can write the workspace, and so can whoever wrote the repository. So
//! the file there counts only while its bytes are those that the user saw and agreed to.
//! For each workspace there is one record, outside, where nothing inside can reach it: the
//! hash of these bytes, and the bytes. One, not a list: else the command could bring back
//! an older file, which the user has since thought better of.
//!
//! The bytes are kept for one question: a file that was trusted and has changed no longer
//! counts, but what if it *narrowed* the sandbox? Then its loss would widen it, and the
//! command could bring that about for its next start. See `load`.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    diagnostic::Diagnostic,
    effective::hex,
    files::{Guard, Places, own_file, resolved},
    text::shown,
};

/// What the user agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// SHA-256 of the file, in hexadecimal.
    pub hash: String,
    pub text: String,
}

impl Record {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            hash: hash(text.as_bytes()),
            text: text.to_owned(),
        }
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The record of one workspace.
#[derive(Debug, Clone)]
pub struct Trust {
    places: Places,
}

impl Trust {
    #[must_use]
    pub fn new(places: &Places) -> Self {
        Self {
            places: places.clone(),
        }
    }

    /// Where the record is, or would be.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        let workspace = self.places.workspace.as_os_str().as_bytes();
        self.places
            .trust()
            .join(format!("{}.json", hash(workspace)))
    }

    /// What the user agreed to in this workspace, last.
    ///
    /// # Errors
    /// If the record cannot be relied on.
    pub fn recorded(&self) -> Result<Option<Record>, Diagnostic> {
        let path = self.file();
        let Some(source) = own_file(&path, &Guard::new(&self.places))? else {
            return Ok(None);
        };
        let value: Value = serde_json::from_str(source.text()).unwrap_or_default();
        let text = value.get("text").and_then(Value::as_str);
        let recorded = value.get("sha256").and_then(Value::as_str);
        match (text.map(Record::of), recorded) {
            (Some(record), Some(hash)) if record.hash == hash => Ok(Some(record)),
            _ => {
                let title = format!("{} is damaged", shown(&path.to_string_lossy()));
                Err(Diagnostic::new(title).help("`stockade trust --revoke` takes it away"))
            }
        }
    }

    /// Records what the user agreed to, in place of what was.
    ///
    /// # Errors
    /// If it cannot be written, or would lie where the command inside can write.
    pub fn record(&self, record: &Record) -> Result<(), Diagnostic> {
        let directory = &self.places.trust();
        Guard::new(&self.places).check_outside(&resolved(directory))?;
        let failed = |error: io::Error| cannot("record it in", directory, &error);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(failed)?;
        let value = json!({
            "version": 1,
            "workspace": self.places.workspace.to_string_lossy(),
            "sha256": record.hash,
            "text": record.text,
        });
        replace(&self.file(), format!("{value:#}\n").as_bytes()).map_err(failed)
    }

    /// Takes the record away. Whether there was one.
    ///
    /// # Errors
    /// If it is there and stays.
    pub fn revoke(&self) -> Result<bool, Diagnostic> {
        match fs::remove_file(self.file()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(cannot("remove", &self.file(), &error)),
        }
    }
}

/// All of the new contents, or the old.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    };
    let outcome = write();
    if outcome.is_err() {
        // Of a failed attempt nothing is to stay; why it failed is what matters.
        let _ = fs::remove_file(&fresh);
    }
    outcome
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(format!(
        "cannot {what} {}: {error}",
        shown(&path.to_string_lossy())
    ))
}
