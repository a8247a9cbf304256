//! Where an earlier session, perhaps of another project, could have put a program.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use super::{
    agents_state,
    environments::NAMED,
    place::{follow, way},
};
use crate::{config::Config, leftovers::baseline, plan::PathRefusal};

/// The places that earlier sessions could write.
#[derive(Debug, Clone)]
pub struct EarlierSessions {
    /// Stockade's own directory. It has a record of each place that a session could write, which is
    /// asked for by the place's name: nothing is listed.
    state: Option<PathBuf>,
    /// What agents install among their settings is read-only inside.
    agents: Vec<PathBuf>,
    environments: Vec<PathBuf>,
}

/// Which active environments count: those of `VIRTUAL_ENV` and `CONDA_PREFIX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environments {
    /// The `PATH` is not that of this process.
    None,
    /// Those that look like a project's: below a repository.
    OfProjects,
    All,
}

impl EarlierSessions {
    /// What Stockade knows by its own directory, which is named, and this process's environment.
    #[must_use]
    pub fn known(state: &Path, home: &Path, which: Environments) -> Self {
        let config = Config {
            state: Some(state.to_owned()),
            ..Config::default()
        };
        let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        Self::new(&config, &home, which, |name| env::var_os(name))
    }

    pub(super) fn new(
        config: &Config,
        home: &Path,
        which: Environments,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let named = NAMED.iter().filter_map(|(name, _)| variable(name));
        let named = named.filter(|value| Path::new(value).is_absolute());
        let environments = named.filter_map(|value| fs::canonicalize(value).ok());
        let counts = |environment: &PathBuf| match which {
            Environments::None => false,
            Environments::OfProjects => repository_around(environment, home).is_some(),
            Environments::All => true,
        };
        Self {
            state: config.state.clone(),
            agents: agents_state(config, home),
            environments: environments.filter(counts).collect(),
        }
    }

    /// Whether a session could have put an agent's program there, or a link on the way to it.
    pub(super) fn could_install(&self, program: &Path) -> bool {
        let is_place = |place: &Path| {
            let is_agents = self.agents.iter().any(|agents| agents == place);
            self.environments.iter().any(|it| it == place) || (!is_agents && self.is_known(place))
        };
        is_on_way(program, is_place)
    }

    /// Whether a session could have written this, or a link on the way to it.
    #[must_use]
    pub fn could_write(&self, path: &Path) -> bool {
        is_on_way(path, |place| self.is_known(place))
    }

    /// Whether a link on the way lies in a place that a session could write, and leads out of it.
    pub(super) fn lead(&self, path: &Path, real: &Path) -> bool {
        self.link_out(path, real).is_some()
    }

    /// The first such link on the way of an absolute path to what it leads to.
    #[must_use]
    pub fn link_out(&self, path: &Path, real: &Path) -> Option<PathBuf> {
        let leads_out = |link: &PathBuf| {
            let mut places = link.ancestors().skip(1);
            places.any(|place| !real.starts_with(place) && self.is_known(place))
        };
        match follow(path, false) {
            Ok((links, end)) if end == real => links.into_iter().find(leads_out),
            // Somebody changes it just now.
            _ => Some(path.to_owned()),
        }
    }

    /// Whether this very directory was the workspace of a session, or was given to one to write.
    #[must_use]
    pub fn is_known(&self, place: &Path) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| baseline::is_known(state, place))
    }
}

/// Whether what a path leads to, or a link on the way, is such a place or lies in one.
fn is_on_way(path: &Path, is_place: impl Fn(&Path) -> bool) -> bool {
    way(path).iter().any(|it| it.ancestors().any(&is_place))
}

/// The top of the git repository that a path lies in, if a session could have it for its workspace:
/// not the home of somebody who keeps settings in git.
#[must_use]
pub fn repository_around(path: &Path, home: &Path) -> Option<PathBuf> {
    let is_top = |place: &&Path| {
        place.join(OsStr::new(".git")).symlink_metadata().is_ok()
            && PathRefusal::of_workspace(place, home).is_none()
    };
    path.ancestors().find(is_top).map(Path::to_owned)
}
