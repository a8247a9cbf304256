//! Which directory is the workspace if nobody names one: the current directory, or, with
//! `workspace = "repository"` in the user's or the administrator's file, the project around it.
//!
//! A command inside can make a repository of any directory of its workspace, and remove others. So
//! the nearest directory that the user has configured comes before any repository.

use std::path::{Path, PathBuf};

use crate::{
    files::{Guard, Places, own_file, resolved},
    parse::{default_workspace, workspace_of},
    trust::Trust,
};

/// The words that the key has, besides a path in a file about one project.
pub(crate) const DIRECTORY: &str = "directory";
pub(crate) const REPOSITORY: &str = "repository";

impl Places {
    /// The workspace for who is in this one's directory. It is no wider than what the user configured
    /// or some session had: only a session that could write all of it could have made a repository of it.
    #[must_use]
    pub fn default_workspace(&self) -> PathBuf {
        let guard = Guard::new(self);
        // What is wrong with them is said when they are loaded.
        let word = |path: &Path| default_workspace(&own_file(path, &guard).ok()??);
        let word = word(&self.user_file()).or_else(|| word(&self.system));
        let around = word.is_some_and(|word| word == REPOSITORY);
        let project = around.then(|| self.project()).flatten();
        project.unwrap_or_else(|| self.workspace.clone())
    }

    /// The configured directory around the workspace, or else the repository; not above the home.
    fn project(&self) -> Option<PathBuf> {
        let home = resolved(&self.home);
        let around = self.workspace.ancestors();
        let around = around.take_while(|path| !home.starts_with(path));
        let configured = self.configured();
        let is_repository = |path: &&Path| path.join(".git").exists();
        // A session may have put a link there that leads to a directory of which the user never
        // made a workspace.
        let leads_to = |link: &Path, path: &Path| is_repository(&path) && resolved(link) == path;
        let is_configured =
            |path: &&Path| configured.iter().any(|it| it == path || leads_to(it, path));
        let project = around.clone().find(is_configured);
        let project = project.or_else(|| around.clone().find(is_repository));
        project.map(Path::to_owned)
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
