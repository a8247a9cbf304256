//! Where the caller's package caches are: by the table, and by the variables that move them.

use std::{
    ffi::{OsStr, OsString},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

use super::{
    Found, may,
    place::{canonical_as_far_as_it_exists, look},
    toolchains::{IN_SYSTEM, PRIVATE, Surroundings},
    variable,
};
use crate::{
    plan::environment::USUAL_PATH,
    tables::{
        caches::{CACHES, Cache},
        toolchains::is_shown_whole,
    },
};

/// What is shown whole, and not kept.
const DATA: &str = ".local/share";

/// The caches that a command gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caches {
    pub places: Vec<CachePlace>,
    /// Directories outside of the home that hold caches, beside settings. The command has its own.
    pub roots: Vec<PathBuf>,
    /// Where pnpm has its store, if there is none in the directory that its variable names.
    pub store: Option<PathBuf>,
    /// Variables that pass.
    pub variables: Vec<&'static str>,
    /// Variables that name what is no cache to be shown, and why.
    pub refused: Vec<(&'static str, PathBuf, &'static str)>,
}

/// A cache: where it is, and what the host has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePlace {
    pub name: &'static str,
    pub at: PathBuf,
    /// The host's directory. None if there is none, or if it is another user's: the kernel lets
    /// nobody inside write below what belongs to a user that the sandbox does not know.
    pub host: Option<PathBuf>,
}

impl Caches {
    pub(super) fn find(surroundings: Surroundings<'_>) -> Self {
        let mut all = Self::default();
        for cache in CACHES {
            match variable(surroundings.environment, cache.variable) {
                Some(named) => all.add_named(cache, named, surroundings),
                None if cache.place.is_empty() => {}
                None => {
                    let root = surroundings.home.join(cache.place);
                    let may_exist = surroundings.names.may_hold(&root);
                    if may_exist || has_program(cache, surroundings.environment) {
                        // Nobody asked for it: what leads astray is not shown.
                        let _ = all.add(cache, &root, surroundings);
                    }
                }
            }
        }
        all.variables.dedup();
        all
    }

    fn add_named(&mut self, cache: &Cache, named: &OsStr, surroundings: Surroundings<'_>) {
        // Of several, tools write to the first.
        let root = std::env::split_paths(named).next().unwrap_or_default();
        if !root.is_absolute() {
            return;
        }
        // In a toolchain, which is read-only, none can be made: then it is in its usual place.
        let is_missing = is_shown_whole(cache.variable) && look(&root.join(cache.part)).is_none();
        let root = match is_missing {
            true => {
                let usual = surroundings.home.join(cache.place);
                self.store = (usual != root).then(|| usual.join(cache.part));
                usual
            }
            false => root,
        };
        match self.add(cache, &root, surroundings) {
            Ok(()) => self.variables.push(cache.variable),
            Err(why) => {
                let refused = (cache.variable, root, why);
                if !self.refused.contains(&refused) {
                    self.refused.push(refused);
                }
            }
        }
    }

    fn add(
        &mut self,
        cache: &Cache,
        root: &Path,
        surroundings: Surroundings<'_>,
    ) -> Result<(), &'static str> {
        let path = root.join(cache.part);
        let is_named = variable(surroundings.environment, cache.variable).is_some();
        let found = match (look(&path), look(root)) {
            // Under the name of the root, which may be a link.
            (Some(there), Some(root)) if !cache.part.is_empty() => Some(Found {
                at: root.at.join(cache.part),
                ..there
            }),
            (there, _) => there,
        };
        let at = match &found {
            Some(found) => found.at.clone(),
            None if is_named || has_program(cache, surroundings.environment) => {
                canonical_as_far_as_it_exists(&path)
            }
            None => return Ok(()),
        };
        let real = found.as_ref().map_or(&at, |found| &found.real);
        let lies_in = |places: &[&str]| places.iter().any(|place| real.starts_with(place));
        let is_in_home = real.starts_with(surroundings.home);
        // All of `~/.cache` is one, and what is in `~/.local/share` is not kept otherwise.
        let is_in_data = real.starts_with(surroundings.home.join(DATA));
        let is_in_view = surroundings.is_in_view(real) && !is_in_data;
        if is_in_view || (lies_in(PRIVATE) && !is_in_home) {
            return Ok(());
        }
        let kind = found.as_ref().map_or(super::Kind::Directory, |it| it.kind);
        let checked = Found {
            at: at.clone(),
            real: real.clone(),
            kind,
        };
        surroundings.check(&path, &checked, found.is_some())?;
        // In what is read-only, nothing can be made.
        let root_exists = look(root).is_some();
        if lies_in(IN_SYSTEM) && !root_exists {
            return Ok(());
        }
        if !is_in_home && !cache.part.is_empty() && !is_shown_whole(cache.variable) {
            let root = canonical_as_far_as_it_exists(root);
            if !self.roots.contains(&root) {
                self.roots.push(root);
            }
        }
        let is_mine = |path: &PathBuf| {
            let uid = rustix::process::geteuid().as_raw();
            std::fs::metadata(path).is_ok_and(|it| it.uid() == uid)
        };
        self.places.push(CachePlace {
            name: cache.name,
            at,
            host: found.map(|found| found.real).filter(is_mine),
        });
        Ok(())
    }
}

/// Whether the caller has the program whose cache this is.
fn has_program(cache: &Cache, environment: &[(OsString, OsString)]) -> bool {
    if cache.program.is_empty() {
        return false;
    }
    let path = variable(environment, "PATH").unwrap_or(USUAL_PATH.as_ref());
    let mut directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.any(|directory| may(&directory.join(cache.program), Access::EXEC_OK))
}
