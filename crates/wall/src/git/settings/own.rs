//! The user's own git settings, for all repositories, and those of them that lead into places
//! that a session can write.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::Setting;
use crate::{facts::absolute, nofollow};

/// How deep files of settings may include one another.
const DEEPEST: usize = 4;

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
    pub(crate) fn read(home: &Path, writable: &[&Path]) -> Self {
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
        for place in places {
            if let Ok(real) = fs::canonicalize(&place)
                && !is_in(&real, writable)
            {
                own.settings.extend(settings(&real));
                // Relative paths begin where the file is by its name.
                own.include(&place, &settings(&real), home, writable, 0);
            }
        }
        own
    }

    fn include(
        &mut self,
        by: &Path,
        all: &[Setting],
        home: &Path,
        writable: &[&Path],
        depth: usize,
    ) {
        let includes = all.iter().filter(|setting| setting.is_include());
        for setting in includes {
            let path = absolute(&by.parent().unwrap_or(by).join(setting.path(home)));
            let real = fs::canonicalize(&path).unwrap_or(path);
            if is_in(&real, writable) {
                self.writable.push(real);
            } else if depth < DEEPEST {
                let all = settings(&real);
                self.include(&real, &all, home, writable, depth + 1);
                self.included.extend(all);
            }
        }
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
    /// The path that it names.
    pub(crate) fn path(&self, home: &Path) -> PathBuf {
        match self.bytes().strip_prefix(b"~/") {
            Some(rest) => home.join(OsStr::from_bytes(rest)),
            None => OsStr::from_bytes(self.bytes()).into(),
        }
    }
}

fn is_in(path: &Path, places: &[&Path]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn settings(path: &Path) -> Vec<Setting> {
    let contents = nofollow::read(path).unwrap_or_default();
    super::parse(&contents).unwrap_or_default()
}

/// The settings of a file that links may lead to; none if they cannot be read.
pub(crate) fn in_file(path: &Path) -> Vec<Setting> {
    fs::canonicalize(path).map_or_else(|_| Vec::new(), |real| settings(&real))
}
