//! Paths: `~` and `$HOME` at the start stand for the home directory. A relative path is in the
//! workspace, if the file is about one.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::{ConfigValue, Fault, Given};
use crate::{keys::Kind, text::shown};

/// What the beginnings of paths stand for.
#[derive(Debug, Clone)]
pub struct Roots {
    pub home: PathBuf,
    /// Where relative paths start; `None` where they have no meaning, in files that are
    /// for all projects.
    pub workspace: Option<PathBuf>,
}

impl ConfigValue for PathBuf {
    const KIND: Kind = Kind::Path;

    fn read(given: Given<'_>, roots: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        expand(given.text().ok_or_else(wrong)?, roots)
    }

    fn to_json(&self) -> Value {
        self.to_string_lossy().into()
    }
}

pub(crate) fn expand(text: &str, roots: &Roots) -> Result<PathBuf, Fault> {
    if text.is_empty() {
        return Err(Fault::new("the path is empty"));
    }
    if let Some((at, c)) = text.char_indices().find(|(_, c)| *c == '\0') {
        return Err(Fault::new("a path cannot hold a NUL character").at(at..at + c.len_utf8()));
    }
    let (base, rest) = split(text, roots)?;
    let mut path = base.to_path_buf();
    let mut went_down = false;
    for component in Path::new(rest).components() {
        match component {
            Component::Normal(name) => {
                went_down = true;
                path.push(name);
            }
            // Only from the start: after a link, `..` is somewhere else than it seems.
            Component::ParentDir if went_down => {
                return Err(Fault {
                    span: text.rfind("/..").map(|slash| slash + 1..slash + 3),
                    ..Fault::new("`..` is only allowed at the start of a path")
                });
            }
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(path)
}

/// The directory that a path starts from, and the rest of it.
fn split<'a>(text: &'a str, roots: &'a Roots) -> Result<(&'a Path, &'a str), Fault> {
    if text.starts_with('/') {
        return Ok((Path::new("/"), text));
    }
    for home in ["~", "$HOME", "${HOME}"] {
        match text.strip_prefix(home) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                return Ok((&roots.home, rest.trim_start_matches('/')));
            }
            _ => {}
        }
    }
    let first = text.split('/').next().unwrap_or_default();
    if first.starts_with('~') {
        let message = "`~` stands only for your own home directory; write other paths in full";
        return Err(Fault::new(message).at(0..first.len()));
    }
    if first.starts_with('$') {
        let message = format!(
            "`{}` is not expanded; only `~` and `$HOME` are",
            shown(first)
        );
        return Err(Fault::new(message).at(0..first.len()));
    }
    match &roots.workspace {
        Some(workspace) => Ok((workspace, text)),
        None => Err(Fault::new(
            "a file for all projects cannot have a relative path; start it with `/` or `~/`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(workspace: Option<&str>) -> Roots {
        Roots {
            home: "/home/ada".into(),
            workspace: workspace.map(PathBuf::from),
        }
    }

    #[test]
    fn the_home_and_the_workspace_are_filled_in() {
        let roots = roots(Some("/home/ada/project"));
        for (text, path) in [
            ("/data", "/data"),
            ("/data//x/./y/", "/data/x/y"),
            ("~", "/home/ada"),
            ("~/.cargo", "/home/ada/.cargo"),
            ("$HOME/.cargo", "/home/ada/.cargo"),
            ("${HOME}", "/home/ada"),
            ("secrets", "/home/ada/project/secrets"),
            ("./secrets", "/home/ada/project/secrets"),
            (".", "/home/ada/project"),
            ("../sibling", "/home/ada/sibling"),
            ("a~b/$x", "/home/ada/project/a~b/$x"),
        ] {
            assert_eq!(expand(text, &roots).unwrap(), Path::new(path), "{text}");
        }
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        let some = roots(Some("/home/ada/project"));
        for text in [
            "",
            "~bob/x",
            "$HOMES",
            "$XDG_DATA_HOME/x",
            "a/../b",
            "/a/..",
            "a\0b",
        ] {
            assert!(expand(text, &some).is_err(), "{text}");
        }
        assert!(expand("secrets", &roots(None)).is_err());
        assert_eq!(
            expand("~/x", &roots(None)).unwrap(),
            Path::new("/home/ada/x")
        );
    }
}
