//! Where the caller's toolchains are: by the table, by the variables that move them, and by links
//! in `~/.local/bin`.
//!
//! A variable of the caller's may name any directory. One among credentials is not shown, nor one
//! that holds the home or the workspace, nor one that a link leads to which the command could have
//! made, or an earlier session. Most of the table is not there: one list of the home spares a look at each.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{
    EarlierSessions, Found, Installation, Kind,
    place::{absolute, is_led_from_inside, look},
    variable,
};
use crate::{
    nofollow::{self, Names},
    tables::{
        caches::CACHES,
        credentials, home,
        toolchains::{INSTALLED_TOOLS, MANAGERS, TOOLCHAINS, Toolchain, VERSIONS},
    },
};

/// The tools that the caller works with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchains {
    /// What can be read.
    pub shown: Vec<Found>,
    /// Links of `~/.local/bin` to installed tools, which are in view: where each lies, and its text.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Variables that pass.
    pub variables: Vec<&'static str>,
    /// Variables that name what is not shown, and why.
    pub refused: Vec<(&'static str, PathBuf, &'static str)>,
    /// Settings of package managers in what is shown that hold logins.
    pub settings: Vec<PathBuf>,
}

/// What decides whether a directory can be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) home: &'a Path,
    pub(super) workspace: &'a Path,
    /// Where the command can write.
    pub(super) writable: &'a [PathBuf],
    pub(super) earlier: &'a EarlierSessions,
    /// Stockade's own directories.
    pub(super) own: &'a [PathBuf],
    pub(super) environment: &'a [(OsString, OsString)],
    pub(super) names: &'a Names,
}

/// Where npm, pip and conda look for settings in an installation of theirs, besides the home.
const SETTINGS: [&str; 4] = ["etc/npmrc", "pip.conf", ".condarc", "condarc"];

/// Where installations are in a toolchain. `*` stands for any name.
const SETTINGS_BELOW: &[&str] = &[
    "",
    "versions/*",
    "versions/node/*",
    "node-versions/*/installation",
    "tools/image/node/*",
    "installs/node/*",
    "installs/nodejs/*",
    "installs/python/*",
    "envs/*",
];

/// Toolchains in what is shown whole.
const SETTINGS_IN_BULK: &[&str] = &["fnm", "mise"];

/// Directories that nobody's tools are in.
const NO_TOOLS: &[&str] = &["/dev", "/proc", "/sys", "/etc", "/boot", "/var/log"];

/// Directories of the system, which everybody sees.
pub(super) const IN_SYSTEM: &[&str] = &["/usr", "/opt", "/nix/store", "/gnu/store"];

/// Directories that are private inside: what lies there outside is not shown.
pub(super) const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/run"];

impl Toolchains {
    pub(super) fn find(surroundings: Surroundings<'_>) -> Self {
        let Surroundings {
            home,
            environment,
            names,
            ..
        } = surroundings;
        let mut all = Self::default();
        for toolchain in TOOLCHAINS {
            match variable(environment, toolchain.variable) {
                Some(named) => all.add_named(toolchain, named, surroundings),
                None if toolchain.place.is_empty() => {}
                None => {
                    let root = home.join(toolchain.place);
                    if names.may_hold(&root) {
                        // Nobody asked for it: what leads astray is not shown.
                        let _ = all.add(toolchain, &root, surroundings);
                    }
                }
            }
        }
        let is_set = |name: &&&str| variable(environment, name).is_some();
        all.variables.extend(VERSIONS.iter().filter(is_set));
        all.add_programs(home);
        all
    }

    /// What a variable names: one directory, or several.
    fn add_named(
        &mut self,
        toolchain: &Toolchain,
        named: &std::ffi::OsStr,
        surroundings: Surroundings<'_>,
    ) {
        let mut passes = false;
        for root in std::env::split_paths(named).filter(|root| root.is_absolute()) {
            passes = true;
            if let Err(why) = self.add(toolchain, &root, surroundings) {
                self.refused.push((toolchain.variable, root, why));
                return;
            }
        }
        if passes {
            self.variables.push(toolchain.variable);
        }
    }

    fn add(
        &mut self,
        toolchain: &Toolchain,
        root: &Path,
        surroundings: Surroundings<'_>,
    ) -> Result<(), &'static str> {
        let Some(found) = look(root) else {
            return Ok(());
        };
        if toolchain.parts.is_empty() {
            return self.show(root, found, surroundings);
        }
        for part in toolchain.parts {
            let path = root.join(part);
            if let Some(there) = look(&path) {
                // Under the name of the root, which may be a link.
                let at = found.at.join(part);
                let there = Found { at, ..there };
                if IN_SYSTEM.iter().any(|place| there.real.starts_with(place)) {
                    // A cache beside it covers the root.
                    self.shown.push(there);
                } else {
                    self.show(&path, there, surroundings)?;
                }
            }
        }
        Ok(())
    }

    /// Finds settings of package managers in toolchains, and in what programs need around them.
    pub(super) fn find_settings(&mut self, home: &Path, programs: &[&Installation]) {
        const MOST: usize = 256;
        let bulk = home::SCRATCH.iter().flat_map(|(name, _)| {
            SETTINGS_IN_BULK
                .iter()
                .map(move |it| home.join(name).join(it))
        });
        let parts = programs.iter().flat_map(|program| &program.parts);
        let shown = self.shown.iter().chain(parts);
        let roots = shown.map(|found| found.real.clone()).chain(bulk);
        let mut all = BTreeSet::new();
        for root in roots.filter(|root| root.is_dir()) {
            for below in SETTINGS_BELOW {
                let mut places = vec![root.clone()];
                for name in below.split('/') {
                    let next = |place: PathBuf| match name {
                        "*" => {
                            let entries = fs::read_dir(place).into_iter().flatten().flatten();
                            entries.take(MOST).map(|entry| entry.path()).collect()
                        }
                        name => vec![place.join(name)],
                    };
                    places = places.into_iter().flat_map(next).collect();
                }
                let files = places
                    .iter()
                    .flat_map(|it| SETTINGS.map(|name| it.join(name)));
                let files = files.filter(|file| file.is_file() && may_hold_login(file));
                all.extend(files.filter_map(|file| fs::canonicalize(file).ok()));
            }
        }
        self.settings = all.into_iter().collect();
    }

    pub(super) fn show(
        &mut self,
        path: &Path,
        found: Found,
        surroundings: Surroundings<'_>,
    ) -> Result<(), &'static str> {
        let lies_in = |places: &[&str]| places.iter().any(|place| found.real.starts_with(place));
        let is_in_system = lies_in(IN_SYSTEM);
        let is_there = is_in_system && found.at == found.real;
        let is_private = lies_in(PRIVATE) && !found.real.starts_with(surroundings.home);
        if is_there || is_private || surroundings.is_in_view(&found.real) {
            return Ok(());
        }
        if !is_in_system {
            surroundings.check(path, &found, true)?;
        }
        if !self.shown.contains(&found) {
            self.shown.push(found);
        }
        Ok(())
    }

    /// Programs of `~/.local/bin`: managers, and links to what they have installed.
    fn add_programs(&mut self, home: &Path) {
        let tools = home.join(INSTALLED_TOOLS);
        let emptied = home::EMPTY.iter().map(|(name, _)| home.join(name));
        let emptied: Vec<_> = emptied.collect();
        let entries = fs::read_dir(home.join(".local/bin")).into_iter().flatten();
        for entry in entries.flatten() {
            let at = entry.path();
            if let Ok(text) = fs::read_link(&at) {
                let is_shown = |path: &Path| {
                    path.starts_with(&tools) && !emptied.iter().any(|it| path.starts_with(it))
                };
                // Of a path with `..` nobody knows where it leads inside.
                let is_plain = absolute(&text) == text;
                if is_plain && is_shown(&text) && text.exists() {
                    self.links.push((at, text));
                }
            } else if MANAGERS.iter().any(|name| entry.file_name() == *name)
                && let Some(found) = look(&at).filter(|found| found.kind == Kind::File)
            {
                self.shown.push(found);
            }
        }
    }
}

/// Whether settings have a login in them, or cannot be read.
fn may_hold_login(file: &Path) -> bool {
    const SIGNS: &[&str] = &["_auth", "_password", "token", "password", "/t/"];
    let Ok(text) = nofollow::read_through_links(file) else {
        return true;
    };
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let mut words = text.split_whitespace();
    SIGNS.iter().any(|sign| text.contains(sign))
        || words.any(|word| word.contains("://") && word.contains('@'))
}

impl Surroundings<'_> {
    /// Whether it is a part of what the command can write, or of what is shown whole.
    pub(super) fn is_in_view(&self, real: &Path) -> bool {
        let is_in_bulk = |(name, _): &(&str, _)| real.starts_with(self.home.join(name));
        self.writable.iter().any(|place| real.starts_with(place))
            || home::SCRATCH.iter().any(is_in_bulk)
    }

    /// Why a directory is not shown, or none is made there.
    pub(super) fn check(
        &self,
        path: &Path,
        found: &Found,
        exists: bool,
    ) -> Result<(), &'static str> {
        let Self {
            home,
            workspace,
            own,
            names,
            ..
        } = self;
        // The tables' own places are known to be harmless, as long as no link leads elsewhere.
        let is_of_table = |place: &str| !place.is_empty() && path.starts_with(home.join(place));
        let mut tables = TOOLCHAINS.iter().map(|it| it.place);
        let mut caches = CACHES.iter().map(|it| it.place);
        let is_direct = path == found.real && found.kind == Kind::Directory;
        if is_direct && (tables.any(is_of_table) || caches.any(is_of_table)) {
            return Ok(());
        }
        let meets = |place: &Path| found.real.starts_with(place) || place.starts_with(&found.real);
        let is_secret = |(place, _): (&str, _)| {
            let place = home.join(place);
            // The place of secrets may be a link to elsewhere.
            let is_behind = !found.real.starts_with(home)
                && names.may_hold(&place)
                && fs::canonicalize(&place).is_ok_and(|real| found.real.starts_with(real));
            meets(&place) || found.at.starts_with(&place) || is_behind
        };
        if found.kind != Kind::Directory {
            Err("it is no directory")
        } else if home.starts_with(&found.real) || workspace.starts_with(&found.real) {
            Err("it holds your home or the workspace")
        } else if own.iter().any(|own| meets(own)) {
            Err("it is Stockade's own")
        } else if credentials::known_places().any(is_secret) {
            Err("credentials are kept there")
        } else if NO_TOOLS.iter().any(|place| meets(Path::new(place))) {
            Err("it is a part of the system")
        } else if exists && is_led_from_inside(path, self.writable) {
            Err("a link leads there that the command could have made")
        } else if exists && self.earlier.lead(path, &found.real) {
            Err("a link leads there that an earlier session could have made")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_logins_are_found_in_toolchains() {
        let place = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(place.path()).unwrap();
        let write = |path: &str, text: &str| {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let with = [
            write(".nvm/versions/node/v1/etc/npmrc", "//r/:_authToken=x\n"),
            write("env/pip.conf", "[global]\nindex-url = https://u:p@h/s\n"),
            write(
                "miniforge3/envs/e/.condarc",
                "channels: [https://h/t/x/y]\n",
            ),
        ];
        write(".nvm/versions/node/v2/etc/npmrc", "registry=https://r/\n");
        write("miniforge3/.condarc", "channels:\n  - conda-forge\n");
        write("env/lib/pip.conf", "https://u:p@h/s\n");
        let found = |name: &str| look(&home.join(name)).unwrap();
        let mut toolchains = Toolchains {
            shown: [".nvm", "env", "miniforge3"].map(found).to_vec(),
            ..Toolchains::default()
        };
        toolchains.find_settings(&home, &[]);
        assert_eq!(toolchains.settings, with);
    }
}
