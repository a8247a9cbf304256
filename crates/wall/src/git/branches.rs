//! Which branches a repository has. A session may say where its own are pushed to, and no others.

use std::{
    collections::BTreeSet,
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{encoding::list, facts::line_of, leftovers::bounds::Bounds, nofollow};

/// The names of branches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Branches(#[serde(with = "list")] pub(crate) BTreeSet<Vec<u8>>);

const HEADS: &[u8] = b"refs/heads/";
const LONGEST: u64 = 8 << 20;
const DEEPEST: usize = 16;

/// The branches of a repository, with the one that is checked out; nothing if not all can be told.
pub(crate) fn branches(repository: &Path, bounds: &Bounds<'_>) -> Option<Branches> {
    if repository.join("reftable").exists() {
        return None;
    }
    let mut branches = BTreeSet::new();
    match nofollow::read(&repository.join("HEAD")) {
        Ok(head) => branches.extend(checked_out(&head)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => return None,
    }
    match nofollow::read_at_most(&repository.join("packed-refs"), LONGEST) {
        Ok(packed) => {
            for line in packed.split(|byte| *byte == b'\n') {
                branches.extend(packed_name(line)?);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => return None,
    }
    let mut left = vec![(repository.join("refs/heads"), 0)];
    while let Some((directory, depth)) = left.pop() {
        for entry in nofollow::list(&directory).ok()? {
            if bounds.are_reached() || depth > DEEPEST {
                return None;
            }
            let path: PathBuf = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push((path, depth + 1));
            } else if let Ok(below) = path.strip_prefix(repository) {
                branches.extend(name(below.as_os_str().as_bytes()));
            }
        }
    }
    Some(Branches(branches))
}

/// The branch that `HEAD` names, if it is one; nothing if git may read another one. Git takes any white
/// space before the name.
fn checked_out(head: &[u8]) -> Option<Option<Vec<u8>>> {
    let line = line_of(head);
    match line.strip_prefix(b"ref:") {
        Some(reference) => Some(name(reference.trim_ascii_start())),
        None => is_id(line).then_some(None),
    }
}

/// The same of a line of `packed-refs`: an object, one character of white space, and a name.
fn packed_name(line: &[u8]) -> Option<Option<Vec<u8>>> {
    if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"^") {
        return Some(None);
    }
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    let (id, reference) = (line.get(..end)?, line.get(end + 1..)?);
    is_id(id).then(|| name(reference))
}

fn is_id(text: &[u8]) -> bool {
    matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit)
}

fn name(reference: &[u8]) -> Option<Vec<u8>> {
    reference.strip_prefix(HEADS).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command, time::Duration};

    use super::*;

    #[test]
    fn branches_are_found_loose_packed_and_unborn() {
        let place = tempfile::tempdir().unwrap();
        let git = |words: &str| {
            let output = Command::new("git")
                .args(["-c", "user.name=a", "-c", "user.email=a"])
                .args(words.split(' '))
                .current_dir(place.path())
                .output();
            assert!(output.unwrap().status.success(), "{words}");
        };
        git("init -q -b main");
        let repository = fs::canonicalize(place.path()).unwrap().join(".git");
        let found = || {
            let bounds = Bounds::new(Duration::from_secs(5), 1000, &|| false);
            let found = branches(&repository, &bounds)?.0.into_iter();
            let found = found.map(|name| String::from_utf8(name).unwrap());
            Some(found.collect::<Vec<_>>())
        };
        assert_eq!(found().unwrap(), ["main"]);
        git("commit -q --allow-empty -m one");
        git("branch packed/one");
        git("pack-refs --all");
        git("branch loose/two");
        assert_eq!(found().unwrap(), ["loose/two", "main", "packed/one"]);
        // As git does, whatever white space is between.
        let packed = fs::read_to_string(repository.join("packed-refs")).unwrap();
        let tabs = packed.replace(" refs/", "\trefs/");
        assert_ne!(tabs, packed);
        fs::write(repository.join("packed-refs"), tabs).unwrap();
        fs::write(repository.join("HEAD"), "ref:\t refs/heads/main\n").unwrap();
        git("rev-parse -q --verify packed/one");
        assert_eq!(found().unwrap(), ["loose/two", "main", "packed/one"]);
        for odd in ["packed-refs", "HEAD"] {
            let before = fs::read(repository.join(odd)).unwrap();
            fs::write(repository.join(odd), "what nobody knows\n").unwrap();
            assert_eq!(found(), None, "{odd}");
            fs::write(repository.join(odd), before).unwrap();
        }
        assert!(found().is_some());
        fs::create_dir(repository.join("reftable")).unwrap();
        assert_eq!(found(), None);
    }
}
