//! The files about projects on the disk: locked, made, and replaced as a whole.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    process::{getegid, geteuid},
};

use crate::{
    diagnostic::Diagnostic,
    files::{Guard, Places, resolved},
    text::shown_path,
};

/// How long another program may take to change the same files.
const PATIENCE: Duration = Duration::from_secs(5);

/// The directory of these files, which no other Stockade changes meanwhile.
pub(super) struct Store<'a> {
    places: &'a Places,
    directory: PathBuf,
    handle: File,
}

impl<'a> Store<'a> {
    /// Makes the directory if it does not exist, and waits for other programs that change it.
    pub(super) fn lock(places: &'a Places) -> Result<Self, Diagnostic> {
        let directory = places.projects();
        let guard = Guard::new(places);
        guard.check_outside(&resolved(&directory))?;
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&directory);
        made.map_err(|error| cannot("create", &directory, &error))?;
        // A file in it would be refused.
        guard.check_directories(&resolved(&directory).join("file"))?;
        guard.check_directories(&directory.join("file"))?;
        let handle = File::open(&directory).map_err(|error| cannot("open", &directory, &error))?;
        let end = Instant::now() + PATIENCE;
        while let Err(error) = flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK || Instant::now() > end {
                return Err(cannot("lock", &directory, &error.into()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self {
            places,
            directory,
            handle,
        })
    }

    /// Makes a file, under a name that is free.
    pub(super) fn create(&self, text: &str) -> Result<PathBuf, Diagnostic> {
        let fresh = self.directory.join(temporary());
        let failed = |error: io::Error| cannot("write to", &self.directory, &error);
        let link = || {
            write(&fresh, text, 0o600, None)?;
            for number in 1..1000 {
                let path = self.directory.join(self.places.project_file_name(number));
                match fs::hard_link(&fresh, &path) {
                    Ok(()) => return Ok(path),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            Err(io::Error::other("it has too many files of this name"))
        };
        let made = link();
        let _ = fs::remove_file(&fresh);
        self.handle.sync_all().map_err(failed)?;
        made.map_err(failed)
    }

    /// Replaces a file that still has its old text. Links are followed; mode and group are kept.
    pub(super) fn replace(&self, path: &Path, before: &str, after: &str) -> Result<(), Diagnostic> {
        let failed = |error: io::Error| cannot("replace", path, &error);
        let real = fs::canonicalize(path).map_err(failed)?;
        let metadata = fs::metadata(&real).map_err(failed)?;
        if metadata.uid() != geteuid().as_raw() {
            let name = shown_path(path);
            let title = format!("{name} belongs to another user (uid {})", metadata.uid());
            return Err(Diagnostic::new(title).help("change it as that user"));
        }
        let fresh = real.with_file_name(temporary());
        let rename = || {
            let mode = metadata.mode() & 0o7777;
            write(&fresh, after, mode, Some(metadata.gid()))?;
            if fs::read_to_string(&real)? != before {
                let why = "another program changed it at the same time; try again";
                return Err(io::Error::other(why));
            }
            fs::rename(&fresh, &real)?;
            let directory = real.parent().unwrap_or(&self.directory);
            File::open(directory)?.sync_all()
        };
        let outcome = rename();
        if outcome.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        outcome.map_err(failed)
    }
}

/// Not the name of a file that Stockade reads.
fn temporary() -> String {
    format!(".stockade-{}.new", std::process::id())
}

fn write(path: &Path, text: &str, mode: u32, group: Option<u32>) -> io::Result<()> {
    // One that an earlier process left behind.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    if let Some(group) = group.filter(|group| *group != getegid().as_raw()) {
        fchown(&file, None, Some(group))?;
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot {what} {}: {error}", shown_path(path)))
}
