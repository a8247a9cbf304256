//! Where paths lead: links are followed, and each link is checked.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use crate::nofollow;

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

/// Whether a link that lies in one of these places, where the command can write, is on the way
/// to what the path leads to. A link of the user's may lead there first.
#[must_use]
pub fn is_led_from_inside(path: &Path, writable: &[PathBuf]) -> bool {
    let is_inside = |link: &PathBuf| is_in(link, writable);
    // What cannot be followed any more was changed by somebody just now.
    links(path).map_or(true, |links| links.iter().any(is_inside))
}

/// Whether a path is one of these places, or lies in one.
pub(crate) fn is_in(path: &Path, places: &[impl AsRef<Path>]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// As many links are followed as the kernel follows.
const MOST_LINKS: usize = 40;

/// The links on the way of an absolute path, and on the ways that they name, each by the place
/// where it lies.
pub(super) fn links(path: &Path) -> io::Result<Vec<PathBuf>> {
    follow(path, false).map(|(links, _)| links)
}

/// The same, and then where the path leads, also if nothing is there now: somebody could make it. One
/// that leads nowhere is itself.
#[must_use]
pub fn way(path: &Path) -> Vec<PathBuf> {
    match follow(path, true) {
        Ok((links, end)) => [links, vec![end]].concat(),
        Err(_) => vec![path.to_owned()],
    }
}

/// The links on the way, and where it leads, in one walk.
pub(super) fn follow(path: &Path, may_be_missing: bool) -> io::Result<(Vec<PathBuf>, PathBuf)> {
    let mut links = Vec::new();
    let mut real = PathBuf::from("/");
    let mut way = path.to_owned();
    loop {
        let mut components = way.components();
        let Some(component) = components.next() else {
            return Ok((links, real));
        };
        let mut rest = components.as_path().to_owned();
        match component {
            Component::RootDir => real = "/".into(),
            Component::ParentDir => {
                real.pop();
            }
            Component::CurDir | Component::Prefix(_) => {}
            Component::Normal(name) => {
                let next = real.join(name);
                match fs::read_link(&next) {
                    Ok(text) => {
                        rest = text.join(rest);
                        links.push(next);
                    }
                    // It is no link.
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => real = next,
                    Err(_) if may_be_missing => real = next,
                    Err(error) => return Err(error),
                }
            }
        }
        if links.len() > MOST_LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        way = rest;
    }
}

/// The path of a directory, if that is without links.
pub(super) fn without_links(path: &Path) -> io::Result<PathBuf> {
    let real = nofollow::real_without_links(path)?;
    if !fs::metadata(&real)?.is_dir() {
        return Err(rustix::io::Errno::NOTDIR.into());
    }
    Ok(real)
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

/// The first of the names below a directory that leads to nothing, without links on the way to
/// it.
pub(super) fn first_missing(directory: &Path, below: &Path) -> PathBuf {
    let mut real = directory.to_owned();
    for name in below.components() {
        let next = real.join(name);
        match fs::symlink_metadata(&next) {
            Ok(metadata) if metadata.is_symlink() => match fs::canonicalize(&next) {
                Ok(target) => real = target,
                Err(_) => return next,
            },
            Ok(_) => real = next,
            Err(_) => return next,
        }
    }
    real
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
    fn a_link_inside_counts_also_where_others_lead_to_it() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        let link = |text: &str, at: &str| {
            std::os::unix::fs::symlink(text, place.join(at)).unwrap();
        };
        for directory in ["inside/data", "secret"] {
            fs::create_dir_all(place.join(directory)).unwrap();
        }
        link("inside/data", "mine");
        link("../secret", "inside/planted");
        link("inside/planted", "led");
        link("led", "led-twice");
        link("inside/../secret", "past");
        link("loop", "loop");
        link("inside", "name");
        let led = |path: &str| is_led_from_inside(&place.join(path), &[place.join("inside")]);
        for path in ["inside/data", "mine", "secret", "past", "name/data"] {
            assert!(!led(path), "{path}");
        }
        for path in [
            "inside/planted",
            "led",
            "led-twice",
            "led/../x",
            "name/planted",
            "loop",
        ] {
            assert!(led(path), "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_found_through_links() {
        let place = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(place.join("real/there")).unwrap();
        std::os::unix::fs::symlink("real", place.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", place.join("real/dangling")).unwrap();
        for (below, missing) in [
            ("link/there/a/b", "real/there/a"),
            ("link/a", "real/a"),
            ("link/dangling/a", "real/dangling"),
            ("a", "a"),
        ] {
            let found = first_missing(&place, Path::new(below));
            assert_eq!(found, place.join(missing), "{below}");
        }
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
