//! Settings by which the workspace's repositories make git run programs.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use super::{Change, Finding};
use crate::{
    beneath,
    facts::Git,
    gitconfig::{self, Setting},
};

/// How deep files may include one another.
const DEEPEST: usize = 4;

/// The files of settings, each with its settings that drive git; `None` if it cannot be read.
#[derive(Debug, Default)]
pub(super) struct GitSettings(BTreeMap<PathBuf, Option<BTreeSet<Setting>>>);

impl GitSettings {
    pub(super) fn of(git: &Git, workspace: &Path) -> Self {
        let mut all = Self::default();
        for directory in &git.directories {
            for name in ["config", "config.worktree"] {
                all.read(&directory.join(name), workspace, 0);
            }
        }
        for worktree in git.worktrees() {
            all.read(&worktree.join("config.worktree"), workspace, 0);
        }
        all
    }

    fn read(&mut self, file: &Path, workspace: &Path, depth: usize) {
        if depth > DEEPEST || self.0.contains_key(file) {
            return;
        }
        let contents = match beneath::read(file) {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            // A link, or more than is looked at: git reads it all the same.
            Err(_) => {
                self.0.insert(file.to_owned(), None);
                return;
            }
        };
        let Ok(settings) = gitconfig::parse(&contents) else {
            self.0.insert(file.to_owned(), None);
            return;
        };
        let drives = settings
            .iter()
            .filter(|setting| setting.drives_git().is_some());
        self.0
            .insert(file.to_owned(), Some(drives.cloned().collect()));
        for setting in settings {
            let is_include = matches!(setting.section.as_str(), "include" | "includeif");
            if is_include && setting.name == "path" {
                let directory = file.parent().unwrap_or(workspace);
                let included = crate::facts::absolute(&directory.join(setting.value()));
                // Others cannot be written inside.
                if included.starts_with(workspace) {
                    self.read(&included, workspace, depth + 1);
                }
            }
        }
    }

    /// What is new in a later state.
    pub(super) fn new_in<'a>(&'a self, after: &'a Self) -> impl Iterator<Item = Finding> + 'a {
        after.0.iter().flat_map(|(path, settings)| {
            let before = self.0.get(path);
            let Some(settings) = settings else {
                let was_so = before.is_some_and(Option::is_none);
                let finding = (!was_so).then(|| Finding {
                    path: path.clone(),
                    what: Change::Malformed,
                    why: "git reads its settings from there",
                });
                return finding.into_iter().collect();
            };
            let was_there = |setting: &&Setting| {
                let before = before.and_then(Option::as_ref);
                before.is_some_and(|before| before.contains(*setting))
            };
            let new = settings.iter().filter(|setting| !was_there(setting));
            new.map(|setting| Finding {
                path: path.clone(),
                what: Change::Setting(format!("{} = {}", setting.key(), setting.value())),
                why: setting.drives_git().unwrap_or_default(),
            })
            .collect::<Vec<_>>()
        })
    }
}
