//! Facts about `/etc`: its secrets, and the files that have to match the network inside.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

use super::{
    may,
    place::{absolute, canonical_as_far_as_it_exists},
};
use crate::tables::system::{ETC_SECRETS, SSH_HOST_KEYS};

/// A secret below `/etc` that this user can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcSecret {
    pub path: PathBuf,
    pub is_directory: bool,
}

/// A file of `/etc`, which may be a link to elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcFile {
    /// Where the name leads.
    pub real: PathBuf,
    pub exists: bool,
    /// Empty if it does not exist or is no text.
    pub text: String,
}

impl EtcFile {
    /// Follows the name, which often is a link, and often one whose target exists only
    /// while some service runs.
    pub(super) fn find(path: &str) -> Self {
        let mut path = PathBuf::from(path);
        if let Ok(real) = fs::canonicalize(&path) {
            let text = fs::read_to_string(&real).unwrap_or_default();
            return Self {
                real,
                exists: true,
                text,
            };
        }
        // As many links as the kernel would follow.
        for _ in 0..40 {
            let Ok(text) = fs::read_link(&path) else {
                break;
            };
            path = absolute(&path.parent().unwrap_or(Path::new("/")).join(text));
        }
        Self {
            real: canonical_as_far_as_it_exists(&path),
            exists: false,
            text: String::new(),
        }
    }
}

pub(super) fn secrets() -> Vec<EtcSecret> {
    let host_keys = fs::read_dir(SSH_HOST_KEYS)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            name.starts_with(b"ssh_host_") && name.ends_with(b"_key")
        })
        .map(|entry| entry.path());
    let mut closed = Vec::new();
    if rustix::process::geteuid().is_root() {
        closed_below(Path::new("/etc"), &mut closed);
    }
    let all: BTreeSet<PathBuf> = ETC_SECRETS
        .iter()
        .map(PathBuf::from)
        .chain(host_keys)
        .chain(closed)
        .filter(|path| may(path, Access::READ_OK))
        // A link is masked where it leads; masking the link itself is not possible.
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    // What lies in a masked directory is masked with it.
    let covered = |path: &Path| path.ancestors().skip(1).any(|above| all.contains(above));
    all.iter()
        .filter(|path| !covered(path))
        .filter_map(|path| {
            let is_directory = fs::metadata(path).ok()?.is_dir();
            let path = path.clone();
            Some(EtcSecret { path, is_directory })
        })
        .collect()
}

/// Collects what is not for everybody: root can read it all the same, and the modes are
/// the administrator's word on what is a secret. Links lead to what is judged by itself.
fn closed_below(directory: &Path, closed: &mut Vec<PathBuf>) {
    const READ_BY_OTHERS: u32 = 0o004;
    const ENTERED_BY_OTHERS: u32 = 0o005;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let (path, kind) = (entry.path(), metadata.file_type());
        let open = if kind.is_dir() {
            ENTERED_BY_OTHERS
        } else {
            READ_BY_OTHERS
        };
        if !kind.is_symlink() && metadata.mode() & open != open {
            closed.push(path);
        } else if kind.is_dir() {
            closed_below(&path, closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_others_can_neither_read_nor_reach_is_closed() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let path = place.path().join(name);
            if name.ends_with('/') {
                fs::create_dir(&path).unwrap();
            } else {
                fs::write(&path, "").unwrap();
            }
            (path, fs::Permissions::from_mode(mode))
        };
        let all = [
            ("open/", 0o755),
            ("open/secret", 0o640),
            ("open/file", 0o644),
            ("listed/", 0o744),
            ("listed/file", 0o644),
            ("passed/", 0o711),
        ];
        let all = all.map(|(name, mode)| make(name, mode));
        for (path, mode) in all {
            fs::set_permissions(path, mode).unwrap();
        }
        let mut closed = Vec::new();
        closed_below(place.path(), &mut closed);
        closed.sort();
        let expected = ["listed", "open/secret", "passed"].map(|name| place.path().join(name));
        assert_eq!(closed, expected);
    }
}
