//! Asks an installed git to read a settings file: no other reader always agrees with it.
//!
//! git is started by an absolute path of the system, never by `PATH`. It reads bytes from its
//! standard input, so it opens no file of the repository and follows no include. It runs in `/`,
//! with a git directory that does not exist, and without any variable of the caller. Its time and
//! its output are bounded.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use stockade_sys::helper::{self, Helper};

use super::{Malformed, Setting, parse};

/// Where systems install git. Nothing inside can write there.
const PLACES: &[&str] = &[
    "/usr/local/bin/git",
    "/usr/bin/git",
    "/run/current-system/sw/bin/git",
];

/// Of what git says of a file, no more is read than this.
const MOST: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_millis(300);

/// An installed git, if there is one.
#[derive(Debug, Clone)]
pub(crate) struct GitProgram(Option<PathBuf>);

impl GitProgram {
    pub(crate) fn find() -> Self {
        Self(helper::find(PLACES))
    }

    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// What git itself says, and nobody in its place.
    #[cfg(test)]
    pub(super) fn ask(&self, contents: &[u8]) -> io::Result<Option<Vec<Setting>>> {
        ask(self.0.as_deref().ok_or(io::ErrorKind::NotFound)?, contents)
    }
}

/// The settings of a file as git reads them; without git, as we do. What git refuses to read, or
/// does not finish to, is malformed.
pub(crate) fn read(git: &GitProgram, contents: &[u8]) -> Result<Vec<Setting>, Malformed> {
    let Some(program) = &git.0 else {
        return parse(contents);
    };
    match ask(program, contents) {
        Ok(Some(listed)) => Ok(listed),
        Ok(None) => Err(Malformed),
        // It cannot be started: too many processes, no memory.
        Err(_) => parse(contents),
    }
}

fn ask(program: &Path, contents: &[u8]) -> io::Result<Option<Vec<Setting>>> {
    let mut command = Command::new(program);
    command
        .args(["config", "--no-includes", "--file", "-", "--list", "-z"])
        .env_clear()
        .envs([
            ("HOME", "/nonexistent"),
            ("GIT_DIR", "/nonexistent"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("LC_ALL", "C"),
        ])
        .current_dir("/")
        .stdin(helper::input(contents)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut git = Helper::start(&mut command)?;
    let listed = git.output(PATIENCE, MOST)?;
    let succeeded = listed.is_some() && git.succeeded()?;
    Ok(listed.filter(|_| succeeded).map(|listed| settings(&listed)))
}

/// What `--list -z` says: keys, a newline, the value, a zero.
fn settings(listed: &[u8]) -> Vec<Setting> {
    let entries = listed.split(|byte| *byte == 0);
    let entries = entries.filter(|entry| !entry.is_empty());
    entries.map(setting).collect()
}

/// A newline cannot stand in a key, but in a value.
fn setting(entry: &[u8]) -> Setting {
    match entry.iter().position(|byte| *byte == b'\n') {
        Some(end) => Setting {
            key: entry.get(..end).unwrap_or(&[]).to_vec(),
            value: Some(entry.get(end + 1..).unwrap_or(&[]).to_vec()),
        },
        None => Setting {
            key: entry.to_vec(),
            value: None,
        },
    }
}
