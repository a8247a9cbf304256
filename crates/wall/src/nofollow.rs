//! Opens files without following links.
//!
//! Stockade reads directories outside that were writable inside, in an earlier session or in one
//! that runs now. A link that was planted there must not lead it astray, nor a pipe make it wait.

use std::{
    collections::HashSet,
    fs::{self, DirEntry, File},
    io::{
        self,
        ErrorKind::{NotADirectory, NotFound},
        Read,
    },
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmodat, fstat, lstat, openat2},
    io::Errno,
};

/// Of files that may be hostile, no more is read than this.
pub(crate) const LONGEST: u64 = 1 << 20;
/// Nor more names of a directory than this. Tests would take long to make so many.
pub(crate) const MOST_ENTRIES: usize = if cfg!(test) { 10_000 } else { 200_000 };

/// A handle on what an absolute path leads to, if no link is on the way or at the end.
pub(crate) fn pin(path: &Path) -> io::Result<OwnedFd> {
    open(CWD, path, OFlags::PATH, ResolveFlags::NO_SYMLINKS)
}

/// A handle on what is at a relative path below a directory, if no link is on the way or at
/// the end.
pub(crate) fn pin_below(directory: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    open(directory, path, OFlags::PATH, resolve)
}

/// Lets the owner of a directory list it and write in it. It may have been left so that nobody can
/// list what programs find in it by name, or take out what should not be there.
pub(crate) fn open_up(directory: &OwnedFd) -> io::Result<()> {
    let stat = fstat(directory)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if !is_directory || mode.contains(Mode::RWXU) {
        return Ok(());
    }
    // A handle that is only a place cannot be changed by itself, but under its name.
    let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
    Ok(chmodat(CWD, name, mode | Mode::RWXU, AtFlags::empty())?)
}

/// The path of what a path leads to, without links. Unlike [`fs::canonicalize`], which asks for each
/// name on the way, this takes one walk: a path that was made to be long takes no longer. A path
/// that leads elsewhere for every process, such as `/proc/self/cwd`, has none.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    resolved(path, ResolveFlags::NO_MAGICLINKS)
}

/// The same, if no link is on the way or at the end.
pub(crate) fn real_without_links(path: &Path) -> io::Result<PathBuf> {
    resolved(path, ResolveFlags::NO_SYMLINKS)
}

fn resolved(path: &Path, resolve: ResolveFlags) -> io::Result<PathBuf> {
    let place = open(CWD, path, OFlags::PATH, resolve)?;
    let real = fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
    // The kernel appends a word to the path of what has been removed meanwhile.
    let (there, here) = (lstat(&real)?, fstat(&place)?);
    if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino) {
        return Err(NotFound.into());
    }
    Ok(real)
}

/// What is in a directory of git's; nothing if it is none. One with more than anybody needs cannot
/// be listed.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<DirEntry>> {
    list_at_most(directory, MOST_ENTRIES)
}

/// The same, where fewer are needed.
pub(crate) fn list_at_most(directory: &Path, most: usize) -> io::Result<Vec<DirEntry>> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(&pin(directory)?)?;
            fs::read_dir(directory)
        }
        listed => listed,
    };
    match listed {
        Ok(entries) => {
            let entries: Vec<_> = entries.take(most + 1).collect::<Result<_, _>>()?;
            if entries.len() > most {
                return Err(Errno::FBIG.into());
            }
            Ok(entries)
        }
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// What is in a directory, by name. Tables name hundreds of files that mostly are not there: one
/// list is cheaper than a look at each.
#[derive(Debug)]
pub(crate) struct Names {
    directory: PathBuf,
    /// None if each is to be looked at.
    names: Option<HashSet<Vec<u8>>>,
}

impl Names {
    pub(crate) fn of(directory: PathBuf) -> Self {
        const MOST: usize = 4096;
        let list = || {
            let mut names = HashSet::new();
            let entries = match fs::read_dir(&directory) {
                Err(error) if error.kind() == NotFound => return Some(names),
                entries => entries.ok()?,
            };
            for entry in entries {
                let name = entry.ok()?.file_name().into_encoded_bytes();
                // Where capitals do not count, other letters may stand for these, too.
                if !name.is_ascii() || names.len() == MOST {
                    return None;
                }
                names.insert(name.to_ascii_lowercase());
            }
            Some(names)
        };
        let names = list();
        Self { directory, names }
    }

    /// Whether there may be something at this path. Of paths elsewhere it knows nothing.
    pub(crate) fn may_hold(&self, path: &Path) -> bool {
        let below = path.strip_prefix(&self.directory);
        below.map_or(true, |below| self.may_hold_below(below))
    }

    /// The same of a path from the directory down.
    pub(crate) fn may_hold_below(&self, below: &Path) -> bool {
        match (&self.names, below.components().next()) {
            (Some(names), Some(Component::Normal(name))) => {
                names.contains(&name.as_encoded_bytes().to_ascii_lowercase())
            }
            _ => true,
        }
    }
}

/// The contents of a regular file of moderate size, if no link is on the way or at the end.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_file(path, ResolveFlags::NO_SYMLINKS, LONGEST)
}

/// The same of a file that may be longer.
pub(crate) fn read_at_most(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    read_file(path, ResolveFlags::NO_SYMLINKS, longest)
}

/// The same where links are the user's own, and followed. What they lead to may still be
/// anything.
pub(crate) fn read_through_links(path: &Path) -> io::Result<Vec<u8>> {
    read_file(path, ResolveFlags::empty(), LONGEST)
}

/// Whether it is a regular file that begins with these bytes, with no link on the way or at the end.
pub(crate) fn begins_with(path: &Path, start: &[u8]) -> bool {
    let read = beginning(path, ResolveFlags::NO_SYMLINKS, start.len() as u64);
    read.is_ok_and(|read| read == start)
}

/// The first bytes of a regular file of any size, if no link is on the way or at the end.
pub(crate) fn read_beginning(path: &Path) -> io::Result<Vec<u8>> {
    beginning(path, ResolveFlags::NO_SYMLINKS, LONGEST)
}

fn read_file(path: &Path, resolve: ResolveFlags, longest: u64) -> io::Result<Vec<u8>> {
    let contents = beginning(path, resolve, longest + 1)?;
    if contents.len() as u64 > longest {
        return Err(Errno::FBIG.into());
    }
    Ok(contents)
}

fn beginning(path: &Path, resolve: ResolveFlags, longest: u64) -> io::Result<Vec<u8>> {
    // A pipe would wait for a writer, a device do whatever it does when it is opened.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open(CWD, path, flags, resolve)?;
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL.into());
    }
    let mut contents = Vec::new();
    File::from(fd).take(longest).read_to_end(&mut contents)?;
    Ok(contents)
}

fn open(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> io::Result<OwnedFd> {
    // Not with O_NOFOLLOW: together with O_PATH that is the wish for a handle on the link.
    let flags = flags | OFlags::CLOEXEC;
    // The kernel gives up a walk that was overtaken by a rename, and wants to be asked again.
    const ATTEMPTS: usize = 16;
    let mut result = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        result = openat2(&directory, path, flags, Mode::empty(), resolve);
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    Ok(result?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_not_followed_anywhere_on_the_way() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(place.join("directory")).unwrap();
        fs::write(place.join("directory/file"), "text").unwrap();
        symlink("directory", place.join("way")).unwrap();
        symlink("file", place.join("directory/end")).unwrap();

        assert_eq!(read(&place.join("directory/file")).unwrap(), b"text");
        let top = pin(&place).unwrap();
        assert!(pin_below(&top, Path::new("directory/file")).is_ok());
        for path in ["way/file", "directory/end"] {
            assert!(read(&place.join(path)).is_err(), "{path}");
            assert!(pin(&place.join(path)).is_err(), "{path}");
            assert!(pin_below(&top, Path::new(path)).is_err(), "{path}");
        }
        assert!(pin_below(&top, Path::new("../x")).is_err());
        assert_eq!(real(&place.join("way")).unwrap(), place.join("directory"));
        assert!(real(Path::new("/proc/self/cwd")).is_err());
    }

    #[test]
    fn a_pipe_a_directory_and_an_endless_file_are_no_files_to_read() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        let pipe = place.join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR).unwrap();
        let long = place.join("long");
        File::create(&long).unwrap().set_len(LONGEST + 1).unwrap();
        for path in [&pipe, &place, &long, Path::new("/dev/zero")] {
            assert!(read(path).is_err(), "{path:?}");
            assert!(read_through_links(path).is_err(), "{path:?}");
        }
        fs::write(place.join("file"), "text").unwrap();
        symlink("file", place.join("link")).unwrap();
        let text = read_through_links(&place.join("link")).unwrap();
        assert_eq!(text, b"text");
    }

    #[test]
    fn a_list_of_names_spares_looks_and_hides_nothing() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        fs::write(place.join(".EnvRC"), "").unwrap();
        fs::create_dir(place.join(".github")).unwrap();
        let may_hold = |name: &str| Names::of(place.to_owned()).may_hold(&place.join(name));

        // On a file system where capitals do not count, it is there.
        assert!(may_hold(".envrc"));
        assert!(may_hold(".github/workflows"));
        assert!(!may_hold(".npmrc") && !may_hold(".gitlab/ci"));
        assert!(Names::of(place.to_owned()).may_hold(Path::new("/elsewhere/.npmrc")));
        assert!(!Names::of(place.join("none")).may_hold(&place.join("none/.npmrc")));
        // Of what is no directory, and where a letter may stand for another, it knows nothing.
        let file = place.join(".EnvRC");
        assert!(Names::of(file.clone()).may_hold(&file.join("x")));
        fs::write(place.join("\u{212a}"), "").unwrap();
        assert!(may_hold(".npmrc"));
    }
}
