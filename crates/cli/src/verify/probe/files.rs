//! What can be seen and written.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    path::{Path, PathBuf},
    process,
};

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::verify::messages::{Mount, Tried};

pub(super) fn each(paths: &[PathBuf], what: fn(&Path) -> Tried) -> BTreeMap<PathBuf, Tried> {
    let tried = paths.iter().map(|path| (path.clone(), what(path)));
    tried.collect()
}

/// Reads a byte of a file, or an entry of a directory.
pub(in crate::verify) fn read(path: &Path) -> Tried {
    let read = || -> io::Result<String> {
        if fs::metadata(path)?.is_dir() {
            // An empty directory in the place of one that is hidden gives nothing away.
            return match fs::read_dir(path)?.next() {
                Some(entry) => Ok(entry?.file_name().to_string_lossy().into_owned()),
                None => Err(rustix::io::Errno::NOENT.into()),
            };
        }
        let mut byte = [0];
        File::open(path)?.read_exact(&mut byte)?;
        Ok(String::new())
    };
    match read() {
        Ok(what) => Tried::Worked(what),
        Err(error) => Tried::from_error(&error),
    }
}

pub(super) fn texts(paths: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let text = |path: &PathBuf| Some((path.clone(), fs::read_to_string(path).ok()?));
    paths.iter().filter_map(text).collect()
}

pub(super) fn lists(paths: &[PathBuf]) -> BTreeMap<PathBuf, Vec<String>> {
    let list = |path: &PathBuf| {
        let entries = fs::read_dir(path).ok()?.flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort_unstable();
        Some((path.clone(), names))
    };
    paths.iter().filter_map(list).collect()
}

/// Opens a file for writing, or makes one in a directory, and changes nothing.
pub(super) fn write(path: &Path) -> Tried {
    if path.is_dir() {
        let file = path.join(format!(".stockade-verify-{}", process::id()));
        return match make(&file) {
            Ok(()) => {
                let _ = fs::remove_file(file);
                Tried::Worked(String::new())
            }
            Err(error) => Tried::from_error(&error),
        };
    }
    OpenOptions::new().append(true).open(path).map(drop).into()
}

/// Makes a file that is to be found outside.
pub(super) fn leave(path: &Path) -> Tried {
    make(path).into()
}

fn make(path: &Path) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map(drop)
}

/// The file that standard input is, opened anew. A rule about paths decides then: the file's own is not to be
/// found in here.
pub(super) fn reopen_stdin() -> Tried {
    read(Path::new("/proc/self/fd/0"))
}

/// What the descriptors lead to that this process was started with. It has opened none.
pub(super) fn descriptors() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return vec!["/proc/self/fd, which cannot be read".to_owned()];
    };
    let numbers: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    // The one that the list was read with is closed by now.
    let links = numbers
        .iter()
        .filter_map(|number| fs::read_link(format!("/proc/self/fd/{number}")).ok());
    links
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// In a `/proc` of other processes this one has another number.
pub(super) fn proc_is_own() -> bool {
    let link = fs::read_link("/proc/self");
    link.is_ok_and(|link| link.as_os_str() == process::id().to_string().as_str())
}

/// What can be seen of what is mounted: one mount may cover another.
pub(super) fn mounts() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = text.lines().filter_map(|line| line.split(' ').nth(4));
    let mount = |point: &str| {
        let point = PathBuf::from(unescaped(point));
        let flags = statvfs(&point).ok()?.f_flag;
        Some(Mount {
            point,
            writable: !flags.contains(StatVfsMountFlags::RDONLY),
        })
    };
    points.filter_map(mount).collect()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescaped(field: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let replace = |text: String, (escape, plain): (&str, &str)| text.replace(escape, plain);
    escapes.into_iter().fold(field.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_directory_gives_nothing_away() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(!read(directory.path()).worked());
        let file = directory.path().join("key");
        fs::write(&file, "secret").expect("write");
        assert!(read(directory.path()).worked() && read(&file).worked());
        assert!(!read(&directory.path().join("other")).worked());
    }

    #[test]
    fn trying_to_write_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        fs::write(&file, "text").expect("write");
        assert!(write(directory.path()).worked() && write(&file).worked());
        assert_eq!(fs::read_to_string(&file).expect("read"), "text");
        assert_eq!(fs::read_dir(directory.path()).expect("list").count(), 1);
    }

    #[test]
    fn the_root_is_among_the_mounts() {
        let mounts = mounts();
        assert!(mounts.iter().any(|mount| mount.point == Path::new("/")));
        assert_eq!(unescaped("/a\\040b\\134"), "/a b\\");
    }
}
