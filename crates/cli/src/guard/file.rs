//! A settings file, read and replaced as the agent itself would: links are followed, mode and group
//! are kept, and no moment shows half of it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context as _, Result};
use rustix::process::geteuid;
use stockade_config::shown_path;

use crate::exit::refused;

/// Longer than any settings.
const LONGEST: u64 = 1 << 20;

/// A file of settings, or where one would be.
#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    found: Option<Contents>,
}

#[derive(Debug)]
struct Contents {
    /// Where links lead.
    real: PathBuf,
    text: String,
    mode: u32,
    group: u32,
}

impl SettingsFile {
    /// # Errors
    /// If it cannot be read, is no file, or is somebody else's: a program of theirs could have put
    /// a link there.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let found = Contents::read(&path)?;
        Ok(Self { path, found })
    }

    /// None if there is no file.
    pub(super) fn text(&self) -> Option<&str> {
        self.found.as_ref().map(|it| it.text.as_str())
    }

    /// # Errors
    /// If somebody else changes it at the same time, or it cannot be written.
    pub(super) fn replace(&self, text: &str, new_mode: u32) -> Result<()> {
        let Some(found) = &self.found else {
            return self.create(text, new_mode);
        };
        let what = || format!("{} cannot be replaced", shown_path(&found.real));
        let temporary = beside(&found.real);
        let replaced = write(&temporary, text, found.mode, Some(found.group)).and_then(|()| {
            match fs::read_to_string(&found.real)? == found.text {
                true => fs::rename(&temporary, &found.real),
                false => Err(io::Error::other(
                    "it was changed at the same time; try again",
                )),
            }
        });
        if replaced.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        replaced.with_context(what)
    }

    fn create(&self, text: &str, mode: u32) -> Result<()> {
        let what = || format!("{} cannot be made", shown_path(&self.path));
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).with_context(what)?;
        }
        let temporary = beside(&self.path);
        // Another one that appeared meanwhile stays.
        let made = write(&temporary, text, mode, None)
            .and_then(|()| fs::hard_link(&temporary, &self.path));
        let _ = fs::remove_file(&temporary);
        made.with_context(what)
    }

    pub(super) fn delete(&self) -> Result<()> {
        fs::remove_file(&self.path)
            .with_context(|| format!("{} cannot be removed", shown_path(&self.path)))
    }

    /// Whether the path is a link, which stays when the file is gone.
    pub(super) fn is_link(&self) -> bool {
        self.found.as_ref().is_some_and(|it| it.real != self.path)
            && fs::symlink_metadata(&self.path).is_ok_and(|it| it.is_symlink())
    }
}

impl Contents {
    fn read(path: &Path) -> Result<Option<Self>> {
        let name = shown_path(path);
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(_) if fs::symlink_metadata(path).is_ok() => {
                let fix = "remove the link, or make the file that it leads to";
                return Err(refused(format!("{name} is a link that leads nowhere"), fix));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(format!("{name} cannot be read")),
        };
        let file = open(&real).with_context(|| format!("{name} cannot be read"))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > LONGEST {
            let fix = "put the agent's settings there";
            return Err(refused(format!("{name} is no settings file"), fix));
        }
        if metadata.uid() != geteuid().as_raw() {
            let what = format!("{name} belongs to another user ({})", metadata.uid());
            return Err(refused(what, "run this command as that user"));
        }
        let mut text = String::new();
        let read = file.take(LONGEST).read_to_string(&mut text);
        read.with_context(|| format!("{name} is no text"))?;
        Ok(Some(Self {
            real,
            text,
            mode: metadata.permissions().mode() & 0o7777,
            group: metadata.gid(),
        }))
    }
}

/// The text of a file, whosever it is. A command inside may have put anything there, such as a pipe that
/// nobody writes to.
pub(super) fn text(path: &Path) -> Option<String> {
    let file = open(path).ok()?;
    let mut text = String::new();
    let is_file = file.metadata().is_ok_and(|it| it.is_file());
    let read = file.take(LONGEST).read_to_string(&mut text);
    (is_file && read.is_ok()).then_some(text)
}

/// Without waiting.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
}

/// A new file in the same directory.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.stockade-{}", process::id()))
}

fn write(path: &Path, text: &str, mode: u32, group: Option<u32>) -> io::Result<()> {
    let new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file: File = new?;
    if let Some(group) = group.filter(|group| *group != rustix::process::getegid().as_raw()) {
        fchown(&file, None, Some(group))?;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
