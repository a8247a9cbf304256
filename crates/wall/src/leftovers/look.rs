//! One look at what counts: before a session, while it runs, and after it.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use super::{
    FEW_FILES, MOST_FILES, SHALLOW, SHALLOW_IN_STATE, START, Watch, a_moment_ago,
    baseline::Baseline,
    bounds::{Bounds, Unseen},
    innermost, locked,
    restore::is_aside,
};
use crate::{
    facts::{Git, is_in},
    git::{
        branches::branches,
        controls::{Collection, Controls, Kind, Named, Stage},
        objects::identity as identity_of,
        repositories::{Repositories, Search, settings_of},
        settings,
        ways::remotes_below,
    },
    nofollow::Names,
};

/// What one look has found.
pub(super) struct Look {
    pub(super) controls: Controls,
    pub(super) unseen: Unseen,
    /// The stage that it came to.
    pub(super) last: Stage,
}

impl Watch {
    pub(super) fn take(&self, top: &Path, git: &Git, bounds: &Bounds<'_>) -> Baseline {
        let taken = a_moment_ago();
        let mut search = Repositories::default();
        let git = [(top, git.clone())];
        self.search(&git, bounds, &mut search, None);
        let few = Bounds::new(START / 10, FEW_FILES, &|| false);
        let unseen = search.unseen.clone();
        // Not what is too deep, or cannot be listed: the end does not look there either, and a session
        // could leave such a thing to have the next one's plants taken for older.
        let is_partial = bounds.are_reached();
        if self.state.iter().any(|state| state == top) {
            let told = self.told.iter().filter(|(path, _)| path.starts_with(top));
            let told: Vec<_> = told
                .map(|(path, _)| (path.as_path(), Git::default()))
                .collect();
            self.search(&told, &few, &mut search, Some(SHALLOW_IN_STATE));
        }
        self.search(&git, &few, &mut search, Some(SHALLOW));
        // That there are more is told at the end, if it is still so.
        search.unseen = unseen;
        let bounds = &Bounds::new(START, MOST_FILES, &|| false);
        let look = self.collect(&[top], &search, bounds, None);
        // What was moved aside in the time of another session is none of the user's.
        let is_aside = |path: &Path| {
            let below = path.strip_prefix(top).unwrap_or(path);
            below.iter().any(is_aside)
        };
        let contents = look.controls.into_iter();
        let contents: BTreeMap<_, _> = contents
            .filter(|(path, _)| !is_aside(path))
            .map(|(path, control)| (path, control.content))
            .collect();
        // One that there was no time for is not known: its settings would count as new.
        let is_cut = bounds.are_reached();
        let is_known = |path: &PathBuf| {
            !is_aside(path) && (!is_cut || contents.contains_key(&path.join("config")))
        };
        let branches = |directory: &PathBuf| {
            let branches = branches(directory, bounds)?;
            Some((directory.clone(), branches))
        };
        let branches = search.found.keys().filter_map(branches).collect();
        let objects = search
            .found
            .keys()
            .map(|directory| directory.join("objects"));
        let objects = objects.filter_map(|objects| Some((objects.clone(), identity_of(&objects)?)));
        let objects = objects.collect();
        let repositories = search.found.into_keys().chain(search.worktrees);
        Baseline {
            branches,
            objects,
            taken,
            is_partial: is_partial || is_cut,
            has_all_repositories: !(is_partial || is_cut && look.last < Stage::Rest),
            repositories: repositories.filter(is_known).collect(),
            contents,
        }
    }

    /// From each top, or in its tree.
    pub(super) fn search(
        &self,
        gits: &[(&Path, Git)],
        bounds: &Bounds<'_>,
        repositories: &mut Repositories,
        depth: Option<usize>,
    ) {
        let own: Vec<PathBuf> = gits
            .iter()
            .flat_map(|(_, git)| git.directories.iter().cloned())
            .collect();
        for (top, git) in gits {
            // What git keeps for itself is little. However much it is, there is time for the tree.
            let half = bounds.half();
            let remotes = self.remotes_of(top, git);
            let mut search = Search {
                workspace: top,
                writable: &self.writable,
                own: &own,
                remotes: &remotes,
                bounds: if depth.is_some() { &half } else { bounds },
                since: (!self.taken.is_empty()).then_some(self.baseline.taken),
                repositories: std::mem::take(repositories),
            };
            match depth {
                None => search.look_from_top(git),
                // Of a repository above what is given, no more than that can be written.
                Some(depth) if is_in(top, &self.writable) => {
                    search.look_in_gits(git, depth);
                    search.bounds = bounds;
                    search.look_in_tree(depth);
                }
                Some(_) => {}
            }
            *repositories = search.repositories;
        }
    }

    /// Where git may find the remotes as paths that this repository had before the session.
    fn remotes_of(&self, top: &Path, git: &Git) -> Vec<PathBuf> {
        let Some(directory) = git.directories.first() else {
            return Vec::new();
        };
        let config = directory.join("config");
        let before = self.baseline.contents.get(&config);
        let before = before.and_then(|it| settings::parse(it.bytes()?).ok());
        let settings = before.or_else(|| settings_of(directory));
        let own = self.own.settings.iter().chain(&self.own.included);
        let settings = settings.unwrap_or_default();
        remotes_below(top, settings.iter().chain(own))
            .into_iter()
            .collect()
    }

    /// What counts in these tops, and the stage that the look came to.
    pub(super) fn collect(
        &self,
        tops: &[&Path],
        repositories: &Repositories,
        bounds: &Bounds<'_>,
        before: Option<&Baseline>,
    ) -> Look {
        let mut collection = Collection {
            bounds,
            writable: &self.writable,
            home: &self.home.real,
            own: &self.own,
            before,
            repositories: HashSet::new(),
            is_brief: repositories.is_brief,
            stage: Stage::Settings,
            named: Named::default(),
            controls: Controls::new(),
            unseen: Unseen::default(),
        };
        collection.add_repositories(repositories, tops);
        let last = collection.stage;
        collection.stage = Stage::Settings;
        for path in &self.own.writable {
            if let Some(path) = collection.reached_file(path, None) {
                collection.add_settings(&path, None, 0);
            }
        }
        locked(&self.named).add(&mut collection.named);
        let end = |collection: Collection<'_>| Look {
            controls: collection.controls,
            unseen: collection.unseen,
            last,
        };
        if repositories.is_brief {
            return end(collection);
        }
        collection.stage = Stage::Rest;
        // Some are directories, with any number of files.
        let half = bounds.half();
        collection.bounds = &half;
        // Agents' settings are compared with those at the start of this session: others may have
        // changed them before, and told of it.
        let mut all = self.tops();
        all.retain(|top| !self.state.iter().any(|state| state == top));
        for top in tops {
            let names = Names::of(top.to_path_buf());
            let is_there = |path: &Path| innermost(&all, path) == *top && names.may_hold(path);
            for (path, why) in self.told.iter().filter(|(path, _)| is_there(path)) {
                collection.add(path, Kind::Told(why), None);
            }
        }
        end(collection)
    }
}
