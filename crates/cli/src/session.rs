//! Sessions that run, as other commands of the same user find them.
//!
//! Each has a socket in a directory of the user's own, outside of everything that a command
//! in a sandbox sees. A socket whose session is gone is swept away by whoever finds it.

use std::{
    env,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, MetadataExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, bail};
use rustix::{
    fs::{Mode, OFlags},
    process::getuid,
};

const SUFFIX: &str = "sock";

/// Where the sockets are.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// A path to a socket may be longer than a socket's address can be.
    handle: OwnedFd,
}

impl Directory {
    /// Made if it is not there; refused if it is not the user's alone.
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let path = place(home);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let handle = rustix::fs::open(&path, flags, Mode::empty())
            .with_context(|| format!("cannot open {}", path.display()))?;
        let metadata = fs::metadata(linked(&handle))?;
        if metadata.uid() != getuid().as_raw() || metadata.mode() & 0o077 != 0 {
            bail!(
                "{0} is open to others: chmod 700 {0}, as its owner",
                path.display()
            );
        }
        Ok(Self { path, handle })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn listen(&self, id: &str) -> io::Result<Listening> {
        let path = linked(&self.handle).join(format!("{id}.{SUFFIX}"));
        Ok(Listening {
            listener: UnixListener::bind(&path)?,
            file: self.path.join(format!("{id}.{SUFFIX}")),
        })
    }

    /// The identifiers of all sessions that may be there, the oldest first.
    pub(crate) fn sessions(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|suffix| suffix == SUFFIX)
                && let Some(id) = path.file_stem().and_then(|id| id.to_str())
            {
                found.push(id.to_owned());
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// A connection to a session. Nothing if it is gone.
    pub(crate) fn connect(&self, id: &str) -> io::Result<Option<UnixStream>> {
        let name = format!("{id}.{SUFFIX}");
        match UnixStream::connect(linked(&self.handle).join(&name)) {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Left behind by a session that was killed. Another may have swept it, too.
                let _ = fs::remove_file(self.path.join(name));
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A session's socket; gone when this is.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) listener: UnixListener,
    file: PathBuf,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// A name for this session that sorts by time and is never used twice.
pub(crate) fn identifier() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |now| now.as_secs());
    format!("{seconds:010}-{}", process::id())
}

fn place(home: &Path) -> PathBuf {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    match absolute("XDG_RUNTIME_DIR").filter(|path| path.is_dir()) {
        Some(runtime) => runtime.join("stockade"),
        None => absolute("XDG_STATE_HOME")
            .unwrap_or_else(|| home.join(".local/state"))
            .join("stockade/running"),
    }
}

fn linked(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}
