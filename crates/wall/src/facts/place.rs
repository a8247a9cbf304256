//! Where paths lead.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// A directory under the name that the caller uses, and where that name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub named: PathBuf,
    /// The same, without links on the way.
    pub real: PathBuf,
}

/// Something that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The path itself. Links on the way are resolved; one at its end is not.
    pub at: PathBuf,
    /// The file behind it, without any link.
    pub real: PathBuf,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    /// A socket, device or pipe.
    Other,
}

impl Kind {
    pub(super) fn of(metadata: &fs::Metadata) -> Self {
        let kind = metadata.file_type();
        if kind.is_dir() {
            Self::Directory
        } else if kind.is_file() {
            Self::File
        } else {
            Self::Other
        }
    }
}

/// What an absolute path leads to, if anything.
pub(super) fn look(path: &Path) -> Option<Found> {
    // Most of what is looked for is not there, which one question settles.
    let kind = Kind::of(&fs::metadata(path).ok()?);
    let real = fs::canonicalize(path).ok()?;
    let at = match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => fs::canonicalize(parent).ok()?.join(name),
        _ => real.clone(),
    };
    Some(Found { at, real, kind })
}

/// Whether a link inside one of these places, where the command can write, decides what the
/// path leads to.
pub(super) fn is_led_from_inside(path: &Path, found: &Found, writable: &[PathBuf]) -> bool {
    let mut prefixes: Vec<_> = path.ancestors().collect();
    prefixes.reverse();
    for prefix in prefixes {
        let Ok(real) = fs::canonicalize(prefix) else {
            return true;
        };
        if writable.iter().any(|place| real.starts_with(place)) {
            let rest = path.strip_prefix(prefix).unwrap_or(Path::new(""));
            // Joining nothing would add a slash, which counts for nothing.
            return found.real != real.join(rest);
        }
    }
    false
}

/// The path of a directory, links resolved.
pub(super) fn directory(path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    if !fs::metadata(&real)?.is_dir() {
        return Err(rustix::io::Errno::NOTDIR.into());
    }
    Ok(real)
}

/// The path with the links of its existing part resolved.
pub(super) fn canonical_as_far_as_it_exists(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|existing| {
            let missing = path.strip_prefix(existing).ok()?;
            Some(fs::canonicalize(existing).ok()?.join(missing))
        })
        .unwrap_or_else(|| path.to_owned())
}

/// The path without `.` and `..`, by its text alone.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_links_is_cleaned_without_asking_the_disk() {
        let clean = |path: &str| absolute(Path::new(path));
        assert_eq!(clean("/etc/../run/./x"), Path::new("/run/x"));
        assert_eq!(clean("/../../x"), Path::new("/x"));
    }

    #[test]
    fn a_file_is_no_directory() {
        assert!(directory(Path::new("/etc/passwd")).is_err());
        assert!(directory(Path::new("/etc")).is_ok());
    }

    #[test]
    fn a_link_at_the_end_is_where_it_is_and_leads_where_it_leads() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(place.join("real")).unwrap();
        std::os::unix::fs::symlink("real", place.join("link")).unwrap();
        fs::write(place.join("real/file"), "").unwrap();
        std::os::unix::fs::symlink("file", place.join("real/name")).unwrap();

        let found = look(&place.join("link/name")).unwrap();
        assert_eq!(found.at, place.join("real/name"));
        assert_eq!(found.real, place.join("real/file"));
        assert_eq!(found.kind, Kind::File);
        assert_eq!(look(&place.join("missing")), None);
        assert_eq!(look(Path::new("/dev/null")).unwrap().kind, Kind::Other);
        assert_eq!(look(Path::new("/")).unwrap().at, Path::new("/"));
    }
}
