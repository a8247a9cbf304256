//! Paths as other sandboxes write them. Pure, but for the questions whether a path exists,
//! and where it leads.

use std::path::{Component, Path, PathBuf};

/// What the meaning of a path depends on.
pub(super) struct Surroundings<'a> {
    pub(super) home: &'a Path,
    pub(super) workspace: &'a Path,
    pub(super) exists: &'a dyn Fn(&Path) -> bool,
    /// Where a path leads, for the part of it that exists.
    pub(super) real: &'a dyn Fn(&Path) -> PathBuf,
    /// What the built-in profiles let agents write.
    pub(super) state: Vec<PathBuf>,
    /// Stockade's own files.
    pub(super) own: Vec<PathBuf>,
    /// Below the home: Stockade shows nothing there unless it is told to.
    pub(super) secret: Vec<PathBuf>,
}

/// The path without an ending that only says "and everything in it"; `None` if more of it is a
/// pattern. Of a denial, `/*` at the end may be taken for the whole directory.
pub(super) fn literal(pattern: &str, denies: bool) -> Option<&str> {
    let endings: &[&str] = match denies {
        true => &["/**/*", "/**", "/*", "/"],
        false => &["/**/*", "/**", "/"],
    };
    let ending = endings.iter().find(|ending| pattern.ends_with(**ending));
    let path = pattern
        .strip_suffix(ending.unwrap_or(&""))
        .unwrap_or(pattern);
    let path = if path.is_empty() { "/" } else { path };
    let is_pattern = path.contains(['*', '?', '[', ']', '{', '}', '!']);
    (!is_pattern && !pattern.is_empty()).then_some(path)
}

/// `None` if the path leads upwards, or is relative without anything to start from.
pub(super) fn absolute(path: &str, home: &Path, base: Option<&Path>) -> Option<PathBuf> {
    let (start, rest) = match path.strip_prefix('~') {
        Some("") => (home, ""),
        Some(rest) => (home, rest.strip_prefix('/')?),
        None if path.starts_with('/') => (Path::new("/"), path),
        None => (base?, path),
    };
    let mut whole = start.to_owned();
    for component in Path::new(rest).components() {
        match component {
            Component::Normal(name) => whole.push(name),
            Component::ParentDir => return None,
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    (!path.contains(['$', '\0'])).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endings_for_everything_below_are_no_patterns() {
        for (pattern, allows, denies) in [
            ("src/", Some("src"), Some("src")),
            ("src/**", Some("src"), Some("src")),
            ("src/**/*", Some("src"), Some("src")),
            ("src/*", None, Some("src")),
            ("/**", Some("/"), Some("/")),
            (".env", Some(".env"), Some(".env")),
            (".env.*", None, None),
            ("**/.env", None, None),
            ("a/**/b", None, None),
            ("!a", None, None),
            ("", None, None),
        ] {
            assert_eq!(literal(pattern, false), allows, "{pattern}");
            assert_eq!(literal(pattern, true), denies, "{pattern}");
        }
    }

    #[test]
    fn a_path_has_one_meaning_or_none() {
        let home = Path::new("/home/ada");
        let base = Some(Path::new("/w"));
        for (path, meaning) in [
            ("~", Some("/home/ada")),
            ("~/.ssh", Some("/home/ada/.ssh")),
            ("~bob/x", None),
            ("./a//b/.", Some("/w/a/b")),
            (".", Some("/w")),
            ("/etc//x", Some("/etc/x")),
            ("a/../b", None),
            ("$HOME/x", None),
        ] {
            assert_eq!(
                absolute(path, home, base).as_deref(),
                meaning.map(Path::new),
                "{path}"
            );
        }
        assert_eq!(absolute("a", home, None), None);
    }
}
