//! Which directory is the workspace if nobody names one: the current directory, or, with
//! `workspace = "repository"` in the user's or the administrator's file, the repository around it.

use std::path::{Path, PathBuf};

use crate::{
    files::{Guard, Places, own_file},
    parse::{default_workspace, workspace_of},
    trust::Trust,
};

/// The words that the key has, besides a path in a file about one project.
pub(crate) const DIRECTORY: &str = "directory";
pub(crate) const REPOSITORY: &str = "repository";

impl Places {
    /// The workspace for who is in this one's directory. It is no wider than what some session had:
    /// only a session that could write all of it could have made a repository of it.
    #[must_use]
    pub fn default_workspace(&self) -> PathBuf {
        let guard = Guard::new(self);
        // What is wrong with them is said when they are loaded.
        let word = |path: &Path| default_workspace(&own_file(path, &guard).ok()??);
        let word = word(&self.user_file()).or_else(|| word(&self.system));
        let around = word.is_some_and(|word| word == REPOSITORY);
        let repository = around.then(|| self.repository()).flatten();
        repository.unwrap_or_else(|| self.workspace.clone())
    }

    /// The repository around the workspace, not above the home.
    fn repository(&self) -> Option<PathBuf> {
        let home = self.home.canonicalize();
        let home = home.as_deref().unwrap_or(&self.home);
        let mut around = self.workspace.ancestors();
        around
            .find(|path| home.starts_with(path) || path.join(".git").exists())
            .filter(|path| !home.starts_with(path))
            .map(Path::to_owned)
    }

    /// The directories that files of the user's are about, and those with a trusted
    /// `.stockade.toml`, as the files and records name them.
    pub(crate) fn configured(&self) -> Vec<PathBuf> {
        let guard = Guard::new(self);
        let roots = self.roots();
        // What is wrong with them is said when they are loaded.
        let about = |path: PathBuf| workspace_of(&own_file(&path, &guard).ok()??, &roots);
        let files = self.project_files().unwrap_or_default().into_iter();
        let trusted = Trust::new(self).files().into_iter().map(|(_, path)| path);
        files.filter_map(about).chain(trusted).collect()
    }
}
