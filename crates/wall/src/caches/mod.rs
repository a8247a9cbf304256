//! What sessions have written to package caches, by workspace.
//!
//! ```text
//! STATE/caches/all/KEY/workspace     the path of the workspace
//!                      users         locked by every session, shared; changed at the last use
//!                      owner         locked by the session that changes are kept of
//!                      boot          the boot of the machine that it runs in; gone after its end
//!                      size          what all of it took when it was measured
//!                      NAME/upper    changes to the host's cache, NAME/work: for the kernel
//!                      NAME/private  a cache that the host does not have, or cannot be overlaid
//! ```
//! No session sees this directory, and no program outside can come to what is in it by its path
//! ([`door`]). What a session has written there is hostile: nothing here follows a link, or walks
//! without bounds.
//!
//! The kernel forbids two mounts with one upper layer. So the first session in a workspace owns
//! the changes; others that run beside it see them, and what these write is gone at their end.

mod door;
mod housekeeping;
mod measure;
mod removal;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            ffi::{OsStrExt as _, OsStringExt as _},
            fs::DirBuilderExt as _,
        },
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{
        AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat,
        renameat_with, statat, unlinkat,
    },
    io::Errno,
};

pub use self::housekeeping::Housekeeping;
use crate::{
    leftovers::baseline::name_of,
    nofollow::{open_up, pin, pin_below},
};

/// What is to be removed, and is nobody's any more.
const TRASH: &[u8] = b".trash-";
/// A session that starts waits so often, so long, for one that clears.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// All caches that are kept.
#[derive(Debug, Clone)]
pub struct CacheStore {
    state: PathBuf,
}

/// The caches of a workspace, in use by this session as long as it lives.
#[derive(Debug)]
pub(crate) struct OpenCaches {
    key: String,
    /// That of all workspaces, and that of this one.
    all: OwnedFd,
    handle: OwnedFd,
    /// Changes are kept.
    pub(crate) is_owner: bool,
    _users: File,
    _owner: Option<File>,
    store: CacheStore,
}

/// What a workspace's caches are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOfWorkspace {
    pub workspace: PathBuf,
    pub bytes: u64,
    /// It was too much, or too deep, to be measured to the end.
    pub is_at_least: bool,
    pub used: SystemTime,
    pub is_in_use: bool,
    key: OsString,
}

/// What became of a wish to clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    Yes,
    InUse,
}

impl CacheStore {
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
        }
    }

    /// Opens a workspace's caches, and makes the directories of these names. Each says whether it
    /// is laid over the host's.
    pub(crate) fn open<'a>(
        &self,
        workspace: &Path,
        names: impl Iterator<Item = (&'a str, bool)>,
    ) -> io::Result<OpenCaches> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.state)?;
        let state = fs::canonicalize(&self.state)?;
        let caches = door::make(&pin(&state)?)?;
        let key = name_of(workspace);
        let (handle, users) = join(&caches, key.as_ref())?;
        claim(&handle, workspace)?;
        users.set_modified(SystemTime::now())?;
        let owner = open_file(&handle, "owner")?;
        let is_owner = flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok();
        let open = OpenCaches {
            key,
            all: caches,
            handle,
            is_owner,
            _users: users,
            _owner: is_owner.then_some(owner),
            store: self.clone(),
        };
        if is_owner {
            open.begin()?;
        }
        for (name, is_overlay) in names {
            open.make(name, is_overlay)?;
        }
        Ok(open)
    }

    /// The caches of all workspaces, the latest used first. `stop` ends the search.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn list(&self, stop: &dyn Fn() -> bool) -> io::Result<Vec<CacheOfWorkspace>> {
        let Some(caches) = self.handle()? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for key in names_in(&caches)? {
            if key.as_bytes().starts_with(TRASH) {
                continue;
            }
            // What is no cache is left alone.
            let found = pin_below(&caches, Path::new(&key));
            let Some(handle) = found.ok().filter(is_directory) else {
                continue;
            };
            let Some(workspace) = read_file(&handle, "workspace") else {
                continue;
            };
            let Ok(used) = modified(&handle, "users") else {
                continue;
            };
            let (bytes, is_at_least) = measure::of(&handle, stop);
            let users = open_file(&handle, "users")?;
            all.push(CacheOfWorkspace {
                workspace: OsString::from_vec(workspace).into(),
                bytes,
                is_at_least,
                used,
                is_in_use: flock(users, FlockOperation::NonBlockingLockExclusive).is_err(),
                key,
            });
        }
        all.sort_by_key(|cache| std::cmp::Reverse(cache.used));
        Ok(all)
    }

    /// Removes a workspace's caches, unless a session uses them.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn clear(&self, cache: &CacheOfWorkspace, stop: &dyn Fn() -> bool) -> io::Result<Cleared> {
        let Some(caches) = self.handle()? else {
            return Ok(Cleared::Yes);
        };
        let Ok(handle) = pin_below(&caches, Path::new(&cache.key)) else {
            return Ok(Cleared::Yes);
        };
        let users = open_file(&handle, "users")?;
        if flock(&users, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(Cleared::InUse);
        }
        let trash = discard(&caches, &cache.key, &caches)?;
        removal::remove(&caches, &trash, stop)?;
        Ok(Cleared::Yes)
    }

    /// Removes what was to be removed before and is still there.
    fn empty_trash(&self, stop: &dyn Fn() -> bool) -> io::Result<()> {
        let Some(caches) = self.handle()? else {
            return Ok(());
        };
        for name in names_in(&caches)? {
            if name.as_bytes().starts_with(TRASH) {
                removal::remove(&caches, &name, stop)?;
            }
        }
        Ok(())
    }

    /// Stockade's own directory, which has them.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// The directory of all caches, if there is one.
    pub(crate) fn handle(&self) -> io::Result<Option<OwnedFd>> {
        let handle = || door::pass(&pin(&fs::canonicalize(&self.state)?)?);
        match handle() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            handle => handle.map(Some),
        }
    }
}

impl OpenCaches {
    /// The directory of a cache, from that of all of them.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.key).join(name)
    }

    pub(crate) fn store(&self) -> &CacheStore {
        &self.store
    }

    /// After a crash of the machine, nobody knows what of the changes has reached the disk: they
    /// are dropped. (The kernel is told not to write them at the end of each session, since it
    /// would write all else that waits for the same disk, too.)
    fn begin(&self) -> io::Result<()> {
        let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let last = read_file(&self.handle, "boot");
        if last.is_some_and(|last| last != boot) {
            for name in names_in(&self.handle)? {
                let entry = pin_below(&self.handle, Path::new(&name))?;
                if is_directory(&entry) {
                    discard(&self.handle, &name, &self.all)?;
                }
            }
        }
        write_file(&self.handle, "boot", &boot)
    }

    fn make(&self, name: &str, is_overlay: bool) -> io::Result<()> {
        let directory = make_directory(&self.handle, name.as_ref())?;
        make_directory(&directory, "private".as_ref())?;
        if self.is_owner && is_overlay {
            make_directory(&directory, "upper".as_ref())?;
            // What the kernel has left there keeps it from mounting the layer again.
            removal::remove(&directory, "work".as_ref(), &|| false)?;
            make_directory(&directory, "work".as_ref())?;
        }
        Ok(())
    }
}

impl Drop for OpenCaches {
    fn drop(&mut self) {
        if self.is_owner {
            // If it stays, changes are dropped after the machine was started again, without need.
            let _ = unlinkat(&self.handle, "boot", AtFlags::empty());
        }
    }
}

/// The directory of a workspace, and the lock that says that it is in use.
fn join(caches: &OwnedFd, key: &OsStr) -> io::Result<(OwnedFd, File)> {
    for _ in 0..ATTEMPTS {
        let handle = make_directory(caches, key)?;
        let users = open_file(&handle, "users")?;
        if flock(&users, FlockOperation::NonBlockingLockShared).is_ok() {
            // Nobody has moved it away meanwhile to clear it.
            let (now, mine) = (
                statat(caches, key, AtFlags::SYMLINK_NOFOLLOW),
                fstat(&handle)?,
            );
            if now.is_ok_and(|now| now.st_ino == mine.st_ino) {
                return Ok((handle, users));
            }
        }
        thread::sleep(PAUSE);
    }
    Err(Errno::AGAIN.into())
}

/// Says whose it is. Two workspaces may have one key: the second one keeps nothing.
fn claim(handle: &OwnedFd, workspace: &Path) -> io::Result<()> {
    match read_file(handle, "workspace") {
        None => write_file(handle, "workspace", workspace.as_os_str().as_bytes()),
        Some(other) if other == workspace.as_os_str().as_bytes() => Ok(()),
        Some(_) => Err(Errno::EXIST.into()),
    }
}

/// Moves a directory to the trash, under a new name.
fn discard(from: &OwnedFd, name: &OsStr, caches: &OwnedFd) -> io::Result<OsString> {
    let mut number = 0_u32;
    loop {
        let mut trash = OsString::from_vec(TRASH.to_vec());
        trash.push(format!("{}-{number}", std::process::id()));
        match renameat_with(from, name, caches, &trash, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => number += 1,
            result => return Ok(result.map(|()| trash)?),
        }
    }
}

/// Moves what lies at a path below a directory to the trash. No link is followed.
pub(crate) fn take_out(directory: &OwnedFd, path: &Path, caches: &OwnedFd) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let above = match above.as_os_str().is_empty() {
        true => pin_below(directory, Path::new("."))?,
        false => pin_below(directory, above)?,
    };
    match unlinkat(&above, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        result => return Ok(result?),
    }
    // To be moved, it has to be writable itself.
    open_up(&pin_below(&above, Path::new(name))?)?;
    discard(&above, name, caches).map(drop)
}

/// A directory of the user's alone, which may be there already. Never what a link leads to.
fn make_directory(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match mkdirat(above, name, Mode::RWXU) {
        Err(Errno::EXIST) => {}
        result => result?,
    }
    let directory = pin_below(above, Path::new(name))?;
    let stat = fstat(&directory)?;
    if !is_directory(&directory) || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::NOTDIR.into());
    }
    open_up(&directory)?;
    Ok(directory)
}

fn open_file(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(openat(directory, name, flags, mode)?.into())
}

fn read_file(directory: &OwnedFd, name: &str) -> Option<Vec<u8>> {
    const LONGEST: u64 = 16 << 10;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(directory, name, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn write_file(directory: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_file(directory, name)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

fn modified(directory: &OwnedFd, name: &str) -> io::Result<SystemTime> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    File::from(openat(directory, name, flags, Mode::empty())?)
        .metadata()?
        .modified()
}

/// The names in a directory of this module's own.
fn names_in(directory: impl AsFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = openat(directory, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(listed)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

fn is_directory(handle: &OwnedFd) -> bool {
    use rustix::fs::FileType;
    fstat(handle).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
}
