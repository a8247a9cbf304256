//! Which `.stockade.toml` the user trusts.
//!
//! # Theory of operation
//! The command inside can write the workspace, and so can whoever wrote the repository. So the file
//! there counts only while its bytes are those that the user agreed to. For each workspace there is
//! one record of them, outside: with a list, the command could bring back an older file. It has the
//! bytes, not only their hash: if the file *narrowed* the sandbox, its loss would widen it (`load`).
//!
//! A record is found by the path of its workspace. A command that could write above it, in
//! another session, can move the directory away and put a link in its place. So records of
//! other paths that lead here now are looked at, too.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
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
    text::shown_path,
};

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

#[derive(Debug, Clone)]
pub struct Trust {
    places: Places,
}

impl Trust {
    pub fn new(places: &Places) -> Self {
        Self {
            places: places.clone(),
        }
    }

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
        self.read(&self.file())
    }

    /// What the user agreed to in workspaces whose paths lead here by a link.
    ///
    /// # Errors
    /// If a record of one cannot be relied on.
    pub(crate) fn led_here(&self) -> Result<Vec<(PathBuf, Record)>, Diagnostic> {
        let mut records = Vec::new();
        for (file, workspace) in self.files_that_lead_here() {
            records.extend(self.read(&file)?.map(|record| (workspace, record)));
        }
        Ok(records)
    }

    /// Records of other paths of this workspace, and these paths.
    fn files_that_lead_here(&self) -> Vec<(PathBuf, PathBuf)> {
        let here = &self.places.workspace;
        let leads_here =
            |path: &Path| path != here && fs::canonicalize(path).is_ok_and(|it| it == *here);
        let files = self.files().into_iter();
        let mut found: Vec<_> = files.filter(|(_, path)| leads_here(path)).collect();
        found.sort();
        found
    }

    /// All records, each with its workspace.
    pub(crate) fn files(&self) -> Vec<(PathBuf, PathBuf)> {
        let entries = fs::read_dir(self.places.trust()).into_iter().flatten();
        let workspace_of = |file: PathBuf| {
            let value: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
            let workspace = match value.get("workspace")? {
                Value::String(text) => text.clone().into_bytes(),
                bytes => serde_json::from_value(bytes.clone()).ok()?,
            };
            Some((file, OsString::from_vec(workspace).into()))
        };
        let files = entries.flatten().map(|entry| entry.path());
        files.filter_map(workspace_of).collect()
    }

    fn read(&self, path: &Path) -> Result<Option<Record>, Diagnostic> {
        let Some(source) = own_file(path, &Guard::new(&self.places))? else {
            return Ok(None);
        };
        let value: Value = serde_json::from_str(source.text()).unwrap_or_default();
        let text = value.get("text").and_then(Value::as_str);
        let recorded = value.get("sha256").and_then(Value::as_str);
        match (text.map(Record::of), recorded) {
            (Some(record), Some(hash)) if record.hash == hash => Ok(Some(record)),
            _ => {
                let title = format!("{} is damaged", shown_path(path));
                Err(Diagnostic::new(title).help("remove it with `stockade trust --revoke`"))
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
        let workspace = &self.places.workspace;
        // A path that is not UTF-8 is a list of its bytes.
        let bytes = || json!(workspace.as_os_str().as_bytes());
        let value = json!({
            "version": 1,
            "workspace": workspace.to_str().map_or_else(bytes, Value::from),
            "sha256": record.hash,
            "text": record.text,
        });
        replace(&self.file(), format!("{value:#}\n").as_bytes()).map_err(failed)?;
        // What holds now was agreed to here.
        self.forget_others().map(drop)
    }

    /// Takes the record away. Whether there was one.
    pub fn revoke(&self) -> Result<bool, Diagnostic> {
        let others = self.forget_others()?;
        Ok(remove(&self.file())? || others)
    }

    /// Takes away the records of other paths of this workspace. Whether there were some.
    fn forget_others(&self) -> Result<bool, Diagnostic> {
        let mut forgotten = false;
        for (file, _) in self.files_that_lead_here() {
            forgotten |= remove(&file)?;
        }
        Ok(forgotten)
    }
}

fn remove(path: &Path) -> Result<bool, Diagnostic> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(cannot("remove", path, &error)),
    }
}

/// All of the new contents, or the old.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
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
    Diagnostic::new(format!("cannot {what} {}: {error}", shown_path(path)))
}
