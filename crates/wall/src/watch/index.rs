//! The gitlinks of an index: where other repositories lie in a worktree.
//!
//! `git status` at the top goes into each of them, with its settings and its hooks.

use std::path::PathBuf;

use std::os::unix::ffi::OsStringExt as _;

/// The paths of the gitlinks; `None` if it is no index that we can read.
pub(super) fn gitlinks(index: &[u8]) -> Option<Vec<PathBuf>> {
    // Nothing in the file says how long its hashes are.
    [20, 32].iter().find_map(|hash| read(index, *hash))
}

fn read(index: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    const GITLINK: u32 = 0o160_000;
    const KIND: u32 = 0o170_000;
    const EXTENDED: u16 = 0x4000;
    // Times, device, inode, mode, user, group, size.
    const FIELDS: usize = 40;
    const MODE: usize = 24;

    let body = index.get(..index.len().checked_sub(hash)?)?;
    if body.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(body, 4)?;
    let count = number(body, 8)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut links = Vec::new();
    let mut path = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let kind = number(body, at + MODE)? & KIND;
        if !matches!(kind, 0o100_000 | 0o120_000 | 0o160_000 | 0o040_000) {
            return None;
        }
        let flags = at + FIELDS + hash;
        let flags_value = u16::from_be_bytes(body.get(flags..flags + 2)?.try_into().ok()?);
        let extended = version >= 3 && flags_value & EXTENDED != 0;
        let mut name = flags + 2 + if extended { 2 } else { 0 };
        if version == 4 {
            let cut = offset(body, &mut name)?;
            path.truncate(path.len().checked_sub(cut)?);
        } else {
            path.clear();
        }
        let rest = body.get(name..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        path.extend(rest.get(..length)?);
        let end = name + length;
        at = if version == 4 {
            end + 1
        } else {
            // Padded with one to eight zeros.
            at + (end - at + 8) / 8 * 8
        };
        if kind == GITLINK {
            links.push(PathBuf::from(std::ffi::OsString::from_vec(path.clone())));
        }
    }
    // What follows are extensions, with their lengths.
    while at < body.len() {
        at = at
            .checked_add(8)?
            .checked_add(number(body, at + 4)? as usize)?;
    }
    (at == body.len()).then_some(links)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// As git writes offsets in packs.
fn offset(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut byte = *bytes.get(*at)?;
    *at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    /// Of every version and hash that git writes.
    #[test]
    fn gitlinks_are_found_as_git_wrote_them() {
        for hash in ["sha1", "sha256"] {
            for version in ["2", "3", "4"] {
                let place = tempfile::tempdir().unwrap();
                let script = format!(
                    "set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
                    git init -q --object-format={hash} .; mkdir -p a/b; touch a/b/c a/b/d zz new
                    git add a zz; git add -N new
                    id=$(printf x | git hash-object -w --stdin)
                    git update-index --add --cacheinfo 160000,$id,a/b/sub
                    git update-index --add --cacheinfo 160000,$id,sub
                    git update-index --index-version {version}"
                );
                let status = Command::new("bash")
                    .args(["-c", &script])
                    .current_dir(place.path())
                    .status();
                assert!(status.unwrap().success());
                let index = fs::read(place.path().join(".git/index")).unwrap();
                let links = gitlinks(&index).unwrap();
                assert_eq!(
                    links,
                    ["a/b/sub", "sub"].map(PathBuf::from),
                    "{hash} {version}"
                );
                for end in 0..index.len() {
                    // No prefix makes it fail otherwise than by saying so.
                    let _ = gitlinks(index.get(..end).unwrap());
                }
            }
        }
        assert_eq!(gitlinks(b""), None);
    }
}
