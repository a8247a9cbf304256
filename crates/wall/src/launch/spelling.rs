//! Other spellings of what is covered.
//!
//! A cover is on a name. Where capitals do not count, the kernel mostly knows (ext4, vfat, cifs), and all
//! spellings lead to the cover. Where only a server knows (directories of Windows or macOS, shared with a
//! virtual machine by 9p or FUSE), each spelling is a name of its own for the kernel, and no cover is on the others.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::{Component, Path, PathBuf},
};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, StatxAttributes, StatxFlags, openat, statx};

use crate::nofollow::pin_below;

/// Whether what was opened as `place`, and has a cover now, can be reached below `top` by another spelling
/// of its path.
pub(super) fn is_spelled_otherwise(
    top: impl AsFd,
    below: &Path,
    place: &OwnedFd,
) -> io::Result<bool> {
    let own = numbers(place)?;
    let mut is_any = false;
    for (other, around, name) in other_spellings(below) {
        // What cannot be opened by this spelling cannot be used by it either.
        let Ok(found) = pin_below(&top, &other) else {
            continue;
        };
        if !is_mount(&found)? {
            // Some servers number a file anew for each spelling. But none lists more than one.
            is_any |= numbers(&found)? == own || !is_listed(&top, &around, &name);
        }
    }
    // The kernel names a directory by the spelling that was used last, and covers are found by name.
    let _ = pin_below(&top, below);
    Ok(is_any)
}

fn numbers(place: &OwnedFd) -> io::Result<(u32, u32, u64)> {
    let stat = statx(place, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    Ok((stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
}

fn is_mount(place: &OwnedFd) -> io::Result<bool> {
    let stat = statx(place, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Whether a directory lists something by exactly this name.
fn is_listed(top: impl AsFd, directory: &Path, name: &OsStr) -> bool {
    let list = || -> io::Result<Dir> {
        let place = match directory.as_os_str().is_empty() {
            true => pin_below(&top, Path::new("."))?,
            false => pin_below(&top, directory)?,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Dir::read_from(openat(place, ".", flags, Mode::empty())?)?)
    };
    list().is_ok_and(|mut entries| {
        entries.any(|it| it.is_ok_and(|it| it.file_name().to_bytes() == name.as_bytes()))
    })
}

/// The path, each time with one of its names in the other capitals; what is around this name, and the
/// name itself.
fn other_spellings(path: &Path) -> impl Iterator<Item = (PathBuf, PathBuf, OsString)> {
    let names: Vec<_> = path.components().map(Component::as_os_str).collect();
    (0..names.len()).filter_map(move |changed| {
        let other = other_capitals(names.get(changed)?)?;
        let around: PathBuf = names.iter().take(changed).collect();
        let mut path = around.join(&other);
        path.extend(names.iter().skip(changed + 1));
        Some((path, around, other))
    })
}

fn other_capitals(name: &OsStr) -> Option<OsString> {
    let other = match name.to_str() {
        Some(text) => {
            let flip = |letter: char| match letter.is_lowercase() {
                true => letter.to_uppercase().collect::<String>(),
                false => letter.to_lowercase().collect(),
            };
            text.chars().map(flip).collect::<String>().into()
        }
        None => {
            let flip = |byte: &u8| match byte.is_ascii_lowercase() {
                true => byte.to_ascii_uppercase(),
                false => byte.to_ascii_lowercase(),
            };
            OsString::from_vec(name.as_bytes().iter().map(flip).collect())
        }
    };
    (other != name).then_some(other)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::nofollow::pin;

    #[test]
    fn the_same_file_in_other_capitals_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        fs::create_dir(top.join("Sub")).unwrap();
        fs::write(top.join("Sub/.env"), "secret").unwrap();
        let place = pin(&top.join("Sub/.env")).unwrap();
        let top = pin(&top).unwrap();
        let found = |path: &str| is_spelled_otherwise(&top, Path::new(path), &place).unwrap();
        assert!(!found("Sub/.env"));
        // Another file, on a disk where capitals count.
        fs::write(directory.path().join("Sub/.ENV"), "other").unwrap();
        assert!(!found("Sub/.env"));
        // A second name stands for a disk where they do not.
        fs::remove_file(directory.path().join("Sub/.ENV")).unwrap();
        fs::create_dir(directory.path().join("sUB")).unwrap();
        let own = directory.path().join("Sub/.env");
        fs::hard_link(&own, directory.path().join("sUB/.env")).unwrap();
        assert!(found("Sub/.env"));
        fs::remove_file(directory.path().join("sUB/.env")).unwrap();
        assert!(!found("Sub/.env"));
        fs::hard_link(&own, directory.path().join("Sub/.ENV")).unwrap();
        assert!(found("Sub/.env"));
    }

    #[test]
    fn every_letter_changes() {
        let other = |name: &str| other_capitals(OsStr::new(name));
        assert_eq!(other(".env"), Some(".ENV".into()));
        assert_eq!(other("Schlüssel.txt"), Some("sCHLÜSSEL.TXT".into()));
        assert_eq!(other("2026"), None);
        let odd = OsStr::from_bytes(b"a\xffB");
        assert_eq!(
            other_capitals(odd).as_deref(),
            Some(OsStr::from_bytes(b"A\xffb"))
        );
    }
}
