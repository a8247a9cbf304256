//! Reading files that decide about the sandbox.
//!
//! # Theory of operation
//! Whoever can write such a file decides about the sandbox. So Stockade reads a file only if
//! nobody but the user and root can write or replace it. This is checked for the file and for
//! every directory on the way to it, both as it is named and as links resolve.
//! A sticky directory that all can write (`/tmp`) is allowed: others cannot replace the user's
//! files there.
//!
//! The command runs as the user and can write the workspace, so a file there is refused, too.
//! `.stockade.toml` is the exception: the user trusts it by its hash. It is read here without
//! following links.
//!
//! The file is opened first, then checked and read by the same descriptor.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs::{self, File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Mode, OFlags};

use super::Places;
use crate::{
    diagnostic::Diagnostic,
    source::Source,
    text::{shown, shown_path},
};

/// Room for some hundred thousand rules.
const MOST_BYTES: u64 = 16 << 20;
/// A person reviews the workspace's own file.
const MOST_BYTES_IN_WORKSPACE: u64 = 256 << 10;

/// Checks that nobody else can write a file.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    places: &'a Places,
    owners: Owners,
    /// Directories that were looked at, so that a hundred files in one are one question.
    sound: RefCell<BTreeSet<PathBuf>>,
}

#[derive(Debug)]
struct Owners {
    user: u32,
    /// The number that stands for root. In a user namespace without root, the kernel
    /// shows root's files, as all whose owner has no number there, as the overflow user's.
    root: u32,
}

impl<'a> Guard<'a> {
    pub(crate) fn new(places: &'a Places) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let map = uid_map();
        let root = match map.is_none_or(|map| is_mapped(0, &map)) {
            true => 0,
            false => overflow_user(),
        };
        Self {
            places,
            owners: Owners { user, root },
            sound: RefCell::default(),
        }
    }

    /// Whether the command inside could write this.
    pub(crate) fn check_outside(&self, real: &Path) -> Result<(), Diagnostic> {
        let workspace = &self.places.workspace;
        let elsewhere = &self.places.workspace_elsewhere;
        let place = match real.starts_with(workspace) {
            true => "in the workspace",
            false if elsewhere.iter().any(|name| real.starts_with(name)) => {
                "in the workspace, which is mounted there, too"
            }
            false => return Ok(()),
        };
        // A workspace that holds the home is refused by the wall, which says it better.
        let home = resolved(&self.places.home);
        if home.starts_with(workspace) || elsewhere.iter().any(|name| home.starts_with(name)) {
            return Ok(());
        }
        let name = shown_path(real);
        let title = format!("{name} is {place}, where the command can change it");
        Err(Diagnostic::new(title).help("move it elsewhere"))
    }

    /// Whether somebody else could change this file or directory.
    fn check(&self, path: &Path, metadata: &Metadata) -> Result<(), Diagnostic> {
        let name = shown_path(path);
        let word = if metadata.is_dir() {
            "directory"
        } else {
            "file"
        };
        if ![self.owners.user, self.owners.root].contains(&metadata.uid()) {
            let title = format!(
                "the {word} {name} belongs to another user (uid {})",
                metadata.uid()
            );
            let user = self.owners.user;
            let shown_for_all = overflow_user() == metadata.uid();
            if shown_for_all && uid_map().is_some_and(|map| !is_mapped(metadata.uid(), &map)) {
                let title = format!(
                    "the {word} {name} belongs to an unknown user, who has no uid in this user \
                     namespace (it appears as {})",
                    metadata.uid()
                );
                return Err(Diagnostic::new(title).help(
                    "start Stockade outside the namespace, or in one that keeps your uid \
                     (unshare --map-current-user instead of --map-root-user)",
                ));
            }
            return Err(Diagnostic::new(title).help(format!(
                "check what is in it, then run: chown {user} {}",
                word_of_shell(path)
            )));
        }
        let sticky = metadata.is_dir() && metadata.mode() & 0o1000 != 0;
        if metadata.mode() & 0o022 != 0 && !sticky {
            let title = format!(
                "others can write the {word} {name} (mode {:04o}), and so change the sandbox",
                metadata.mode() & 0o7777
            );
            return Err(Diagnostic::new(title).help(format!(
                "check what is in it, then run: chmod go-w {}",
                word_of_shell(path)
            )));
        }
        Ok(())
    }

    pub(crate) fn check_directories(&self, path: &Path) -> Result<(), Diagnostic> {
        // The root comes first, so that a message is about the widest hole.
        let directories = path.ancestors().skip(1).filter(|path| path.is_absolute());
        for directory in directories.collect::<Vec<_>>().into_iter().rev() {
            if self.sound.borrow().contains(directory) {
                continue;
            }
            let metadata =
                fs::metadata(directory).map_err(|error| unreadable(directory, &error))?;
            self.check(directory, &metadata)?;
            self.sound.borrow_mut().insert(directory.to_owned());
        }
        Ok(())
    }
}

/// The text of a file of the user's or the administrator's; none if it does not exist.
pub(crate) fn own_file(path: &Path, guard: &Guard<'_>) -> Result<Option<Arc<Source>>, Diagnostic> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
        Ok(_) => {}
    }
    let real = fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
    guard.check_outside(&real)?;
    let file = open(&real).map_err(|error| unreadable(path, &error))?;
    let metadata = regular(path, &file)?;
    guard.check(&real, &metadata)?;
    guard.check_directories(path)?;
    guard.check_directories(&real)?;
    let bytes = read(path, file, MOST_BYTES)?;
    text(path, bytes).map(|text| Some(Source::file(path, text)))
}

/// The text of any file, for `config check`.
pub(crate) fn any_file(path: &Path) -> Result<Arc<Source>, Diagnostic> {
    let name = shown_path(path);
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Diagnostic::new(format!("{name} does not exist")),
        _ => Diagnostic::new(format!("cannot read {name}: {error}")),
    };
    let file = fs::canonicalize(path).and_then(|real| open(&real));
    let file = file.map_err(unreadable)?;
    regular(path, &file)?;
    text(path, read(path, file, MOST_BYTES)?).map(|text| Source::file(path, text))
}

/// The workspace's own file, which anybody may have written.
#[derive(Debug)]
pub(crate) struct WorkspaceText {
    pub(crate) bytes: Vec<u8>,
}

impl WorkspaceText {
    /// # Errors
    /// If it is not UTF-8.
    pub(crate) fn source(&self, path: &Path) -> Result<Arc<Source>, Diagnostic> {
        text(path, self.bytes.clone()).map(|text| Source::file(path, text))
    }
}

pub(crate) fn workspace_file(path: &Path) -> Result<Option<WorkspaceText>, Diagnostic> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            let title = format!("{} is a link", shown_path(path));
            return Err(Diagnostic::new(title).help("in a workspace it must be a regular file"));
        }
        Err(error) => return Err(unreadable(path, &error)),
    };
    regular(path, &file)?;
    let bytes = read(path, file, MOST_BYTES_IN_WORKSPACE)?;
    Ok(Some(WorkspaceText { bytes }))
}

/// Opens without waiting (for the other end of a pipe) and without following a last link.
fn open(path: &Path) -> io::Result<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

fn read(path: &Path, file: File, most: u64) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    let outcome = file.take(most + 1).read_to_end(&mut bytes);
    outcome.map_err(|error| unreadable(path, &error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        let name = shown_path(path);
        let title = format!("{name} is larger than {} KiB", most >> 10);
        return Err(Diagnostic::new(title));
    }
    Ok(bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..good).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        let byte = error.as_bytes().get(good).copied().unwrap_or_default();
        let name = shown_path(path);
        Diagnostic::new(format!(
            "{name}:{line} is not UTF-8: invalid byte 0x{byte:02x}"
        ))
        .help("save the file as UTF-8")
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    let name = shown_path(path);
    Diagnostic::new(format!("cannot read {name}: {error}")).help("make it readable, or remove it")
}

fn regular(path: &Path, file: &File) -> Result<Metadata, Diagnostic> {
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    let title = format!("{} is not a regular file", shown_path(path));
    Err(Diagnostic::new(title))
}

/// A path for the command line that a message proposes.
pub(crate) fn word_of_shell(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", shown(&text).replace('\'', "'\\''"))
    }
}

/// Which numbers of users this user namespace has; without the file, it is the kernel's first one,
/// which has all.
fn uid_map() -> Option<String> {
    fs::read_to_string("/proc/self/uid_map").ok()
}

/// Whether a map of numbers (each line: the first inside, the first outside, how many) has one.
fn is_mapped(number: u32, map: &str) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) =
            (fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        u64::from(number)
            .checked_sub(first)
            .is_some_and(|offset| offset < count)
    })
}

fn overflow_user() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/overflowuid");
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65534)
}

/// The path without links, for the part of it that exists.
pub fn resolved(path: &Path) -> PathBuf {
    let exists = |above: &Path| Some((fs::canonicalize(above).ok()?, above.to_owned()));
    match path.ancestors().find_map(exists) {
        Some((real, above)) => match path.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
        None => path.to_owned(),
    }
}
