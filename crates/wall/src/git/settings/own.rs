//! The user's own git settings, for all repositories, and those of them that lead into places
//! that a session can write.

use std::{
    cell::RefCell,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::Setting;
use crate::{
    facts::{absolute, is_in},
    nofollow,
};

#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Of the files that git always reads and that no session could have written.
    pub(crate) settings: Vec<Setting>,
    /// Those that these include, perhaps under conditions.
    pub(crate) included: Vec<Setting>,
    /// The files that are included and that a session can write.
    pub(crate) writable: Vec<PathBuf>,
}

impl Own {
    pub(crate) fn read(home: &Path, writable: &[impl AsRef<Path>]) -> Self {
        let configured = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let configured = configured.filter(|path| path.is_absolute());
        let places = [
            PathBuf::from("/etc/gitconfig"),
            configured
                .unwrap_or_else(|| home.join(".config"))
                .join("git/config"),
            home.join(".gitconfig"),
        ];
        let mut own = Self::default();
        let entered = RefCell::new(Vec::new());
        let read = |path: &Path| {
            let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            if is_in(&real, writable) {
                entered.borrow_mut().push(real);
                return Vec::new();
            }
            settings(&real)
        };
        for place in places {
            let real = fs::canonicalize(&place).ok();
            let Some(real) = real.filter(|real| !is_in(real, writable)) else {
                continue;
            };
            let all = settings(&real);
            let includes = all.iter().filter(|setting| setting.is_include());
            for setting in includes {
                // Relative paths begin where the file is by its name.
                let path = absolute(&place.parent().unwrap_or(&place).join(setting.path(home)));
                own.included
                    .extend(super::with_included(&path, home, &read));
            }
            own.settings.extend(all);
        }
        own.writable = entered.into_inner();
        own
    }

    /// The same of files that a session can write, as `read` has them.
    pub(crate) fn written(
        &self,
        home: &Path,
        read: &dyn Fn(&Path) -> Vec<Setting>,
    ) -> Vec<Setting> {
        let all = self.writable.iter();
        all.flat_map(|path| super::with_included(path, home, read))
            .collect()
    }

    /// All that set this of `core`, whichever of them counts where.
    pub(crate) fn all(&self, name: &'static str) -> impl Iterator<Item = &Setting> {
        let all = self.settings.iter().chain(&self.included);
        all.filter(move |setting| setting.is("core", name))
    }
}

impl Setting {
    /// The path that it names. The home of any user counts as this one's: of the others', no session can
    /// write anything. So it is with where git is installed.
    pub(crate) fn path(&self, home: &Path) -> PathBuf {
        let bytes = self.bytes();
        let bytes = bytes.strip_prefix(b":(optional)").unwrap_or(bytes);
        if let Some(below) = bytes.strip_prefix(b"%(prefix)/") {
            return Path::new("/usr").join(OsStr::from_bytes(below));
        }
        let path = Path::new(OsStr::from_bytes(bytes));
        if !bytes.starts_with(b"~") {
            return path.into();
        }
        let mut names = path.components();
        names.next();
        home.join(names.as_path())
    }
}

fn settings(path: &Path) -> Vec<Setting> {
    let contents = nofollow::read(path).unwrap_or_default();
    super::parse(&contents).unwrap_or_default()
}

/// The settings of a file that links may lead to; none if they cannot be read.
pub(crate) fn in_file(path: &Path) -> Vec<Setting> {
    fs::canonicalize(path).map_or_else(|_| Vec::new(), |real| settings(&real))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_expanded_as_git_does() {
        for (path, expected) in [
            ("~/a/b", "/home/dev/a/b"),
            ("~", "/home/dev"),
            ("~dev/project/.hooks", "/home/dev/project/.hooks"),
            ("%(prefix)/etc/x", "/usr/etc/x"),
            (":(optional)~/a", "/home/dev/a"),
            ("/a/~b", "/a/~b"),
            ("a/~/b", "a/~/b"),
            (".hooks", ".hooks"),
        ] {
            let text = format!("[core]\nhooksPath = {path}\n");
            let settings = crate::git::settings::parse(text.as_bytes()).unwrap();
            let named = settings.first().unwrap().path(Path::new("/home/dev"));
            assert_eq!(named, Path::new(expected), "{path}");
        }
    }
}
