//! One line at the end of a file of the user's, and the file as it was before.
//!
//! The comment at the end of the line says what else had to be done for it, so that taking it out
//! leaves every other byte as it was.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

/// By this comment a line is known as Stockade's.
pub(super) const MARK: &str = "# added by stockade shim";

/// After the mark: the file did not exist, nor did as many directories above it.
const MADE: [&str; 2] = [" (created this file and ", " directories)"];

/// The same, as earlier versions wrote it.
const MADE_BEFORE: [&str; 2] = [", which made this file and ", " directories"];

/// After the mark: the line before it had no newline, being the last one.
const UNENDED: &str = ", after a line without an end";

/// What became of a file whose line is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// The line was not there.
    None,
    /// The file is as before the line came.
    Restored,
    /// The line had come with the file, which is gone again.
    Deleted,
}

/// Puts a line at the end of a file, once.
///
/// # Errors
/// If the file cannot be written. It is as before then.
pub(super) fn add(file: &Path, line: &str) -> io::Result<()> {
    let text = read(file)?;
    if text.as_ref().is_some_and(|text| is_last(text, line)) {
        return Ok(());
    }
    // It may be there with more after it.
    remove(file)?;
    let (before, after_mark) = match read(file)? {
        None => {
            let above = file.ancestors().skip(1);
            let missing = above.take_while(|it| !it.exists()).count();
            if let Some(parent) = file.parent() {
                let mut builder = DirBuilder::new();
                builder.recursive(true).mode(0o700).create(parent)?;
            }
            let [this_file, directories] = MADE;
            ("", format!("{this_file}{missing}{directories}"))
        }
        Some(text) if text.is_empty() || text.ends_with(b"\n") => ("", String::new()),
        Some(_) => ("\n", UNENDED.to_owned()),
    };
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(file)?;
    // In one piece, and nothing of the file is written anew.
    file.write_all(format!("{before}{line} {MARK}{after_mark}\n").as_bytes())
}

/// Takes the line out again.
///
/// # Errors
/// If the file cannot be written. It is as before then.
pub(super) fn remove(file: &Path) -> io::Result<Removal> {
    let Some(text) = read(file)? else {
        return Ok(Removal::None);
    };
    let Some((at, own)) = find(&text) else {
        return Ok(Removal::None);
    };
    let after_mark = own.rsplit_once(MARK).map_or("", |(_, after)| after);
    let made = [MADE, MADE_BEFORE]
        .iter()
        .find_map(|[this_file, directories]| {
            let count = after_mark.strip_prefix(this_file)?;
            count.strip_suffix(directories)?.parse::<usize>().ok()
        });
    let mut kept = text[..at].to_vec();
    let rest = &text[(at + own.len() + 1).min(text.len())..];
    if rest.is_empty() && after_mark == UNENDED && kept.ends_with(b"\n") {
        kept.pop();
    }
    if kept.is_empty()
        && rest.is_empty()
        && let Some(directories) = made
    {
        fs::remove_file(file)?;
        // One that has something else in it now stays.
        let above = file.ancestors().skip(1).take(directories);
        let _ = above.map(fs::remove_dir).find(Result::is_err);
        return Ok(Removal::Deleted);
    }
    if rest.is_empty() {
        let file = OpenOptions::new().write(true).open(file)?;
        file.set_len(kept.len() as u64)?;
    } else {
        kept.extend_from_slice(rest);
        replace(file, &kept)?;
    }
    Ok(Removal::Restored)
}

/// The contents, if there is such a file. A link is followed; one that leads nowhere is an error.
fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(file) {
        Ok(it) if it.is_file() => fs::read(file).map(Some),
        Ok(_) => Err(io::Error::other("it is no ordinary file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(file) {
            Ok(_) => Err(io::Error::other("it is a link that leads nowhere")),
            Err(_) => Ok(None),
        },
        Err(error) => Err(error),
    }
}

/// Where the line begins, and the line without its end.
fn find(text: &[u8]) -> Option<(usize, &str)> {
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        match str::from_utf8(bare) {
            Ok(bare) if bare.contains(MARK) => return Some((at, bare)),
            _ => at += line.len(),
        }
    }
    None
}

fn is_last(text: &[u8], line: &str) -> bool {
    find(text).is_some_and(|(at, own)| {
        own.starts_with(&format!("{line} {MARK}")) && at + own.len() + 1 == text.len()
    })
}

/// Replaces a file in one step. A file that others have, too, by a hard link, is written in place.
fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let real = fs::canonicalize(file)?;
    let metadata = fs::metadata(&real)?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.nlink() > 1 || !is_own {
        return fs::write(&real, text);
    }
    let fresh = beside(&real);
    let write = || {
        let mut new = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&fresh)?;
        new.set_permissions(metadata.permissions())?;
        new.write_all(text)?;
        new.sync_all()?;
        fs::rename(&fresh, &real)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().as_bytes().to_vec();
    name.extend_from_slice(format!(".stockade-{}", std::process::id()).as_bytes());
    PathBuf::from(std::ffi::OsStr::from_bytes(&name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    const LINE: &str = "[ ! -r '/x' ] || . '/x'";

    #[test]
    fn a_file_is_as_before_once_the_line_is_out_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rc");
        for before in ["", "a\n", "a", "a\n\nb", "\n", "\n\n", "a\r\n", "caf\u{e9}"] {
            fs::write(&file, before).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            add(&file, LINE).unwrap();
            let once = fs::read_to_string(&file).unwrap();
            assert!(once.starts_with(before) && once.ends_with('\n'), "{once:?}");
            add(&file, LINE).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), once);
            assert_eq!(remove(&file).unwrap(), Removal::Restored);
            assert_eq!(fs::read_to_string(&file).unwrap(), before);
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
            assert_eq!(remove(&file).unwrap(), Removal::None);
        }
        // Bytes that are no text stay as well.
        fs::write(&file, b"\xff\xfe\n").unwrap();
        add(&file, LINE).unwrap();
        remove(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"\xff\xfe\n");
    }

    #[test]
    fn what_others_append_later_stays_and_the_line_moves_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rc");
        for before in ["a\n", "a"] {
            fs::write(&file, before).unwrap();
            add(&file, LINE).unwrap();
            let mut text = fs::read_to_string(&file).unwrap();
            text.push_str("nvm\n");
            fs::write(&file, &text).unwrap();
            add(&file, LINE).unwrap();
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(text, format!("a\nnvm\n{LINE} {MARK}\n"));
            remove(&file).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "a\nnvm\n");
        }
        // Another version's line is replaced.
        fs::write(&file, format!("a\nold {MARK}\n")).unwrap();
        add(&file, LINE).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("a\n{LINE} {MARK}\n"));
    }

    #[test]
    fn what_did_not_exist_is_gone_again_and_what_did_stays() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let file = top.join("a/b/rc");
        add(&file, LINE).unwrap();
        assert_eq!(remove(&file).unwrap(), Removal::Deleted);
        assert!(!top.join("a").exists());
        // An earlier version's words are understood.
        add(&file, LINE).unwrap();
        let [new, old] = [MADE, MADE_BEFORE]
            .map(|[this_file, directories]| format!("{LINE} {MARK}{this_file}2{directories}\n"));
        assert_eq!(fs::read_to_string(&file).unwrap(), new);
        fs::write(&file, old).unwrap();
        assert_eq!(remove(&file).unwrap(), Removal::Deleted);
        assert!(!top.join("a").exists());
        fs::create_dir(top.join("a")).unwrap();
        add(&file, LINE).unwrap();
        remove(&file).unwrap();
        assert!(top.join("a").exists() && !top.join("a/b").exists());
        // Something of the user's came there meanwhile.
        add(&file, LINE).unwrap();
        fs::write(top.join("a/b/other"), "").unwrap();
        remove(&file).unwrap();
        assert!(top.join("a/b/other").exists() && !file.exists());
        add(&file, LINE).unwrap();
        let text = fs::read_to_string(&file).unwrap() + "mine\n";
        fs::write(&file, text).unwrap();
        remove(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    }

    #[test]
    fn a_link_is_followed_and_stays_one() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::write(&file, "a\n").unwrap();
        symlink("real", &link).unwrap();
        add(&link, LINE).unwrap();
        let text = fs::read_to_string(&file).unwrap() + "b\n";
        fs::write(&file, text).unwrap();
        remove(&link).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "a\nb\n");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&file).unwrap();
        assert!(add(&link, LINE).is_err() && !file.exists());
    }
}
