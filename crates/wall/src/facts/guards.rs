//! The files in the workspace that programs outside execute, and that need protection.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{Git, place::absolute};
use crate::{
    git::settings::Own,
    nofollow,
    tables::autorun::{DOT_GIT, HOOKS, WORKSPACE},
};

/// Something in the workspace, or in its repository, that can be made read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    pub path: PathBuf,
    pub reason: &'static str,
}

const NOENT: i32 = Errno::NOENT.raw_os_error();
const NOTDIR: i32 = Errno::NOTDIR.raw_os_error();
const LOOP: i32 = Errno::LOOP.raw_os_error();

/// What can be protected, and what cannot, because a link is on the way.
pub(super) fn find(workspace: &Path, home: &Path, git: &Git) -> (Vec<Guarded>, Vec<PathBuf>) {
    let executed = WORKSPACE
        .iter()
        .filter(|runs| runs.are_guarded())
        .flat_map(|runs| runs.below(workspace));
    let own = Own::read(home, &[workspace]);
    let own = own.all("hookspath");
    let own = own.map(|setting| absolute(&workspace.join(setting.path(home))));
    let hooks = git.hooks(workspace).into_iter().chain(own);
    let hooks = hooks.map(|path| (path, HOOKS));
    let dot_git = workspace.join(".git");
    // The directory `.git` is for work; the file is not.
    let dot_git = fs::symlink_metadata(&dot_git)
        .is_ok_and(|metadata| metadata.is_file())
        .then_some((dot_git, DOT_GIT));

    let trees: Vec<_> = [Some(workspace), git.outside.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    let mut guarded = Vec::<Guarded>::new();
    let mut links = Vec::new();
    for (path, reason) in executed.chain(hooks).chain(dot_git) {
        // Hooks that lie elsewhere are not writable inside.
        let is_below = |tree: &&Path| path.starts_with(tree) && path != **tree;
        if !trees.iter().any(is_below) {
            continue;
        }
        if guarded.iter().any(|other| other.path == path) {
            continue;
        }
        match nofollow::pin(&path).map_err(|error| error.raw_os_error()) {
            Err(Some(NOENT | NOTDIR)) => {}
            Err(Some(LOOP)) => links.push(path),
            // Whatever else is wrong with it, the launch will meet again, and be refused.
            Ok(_) | Err(_) => guarded.push(Guarded { path, reason }),
        }
    }
    (guarded, links)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_exists_is_guarded_and_links_are_told() {
        let place = tempfile::tempdir().unwrap();
        let workspace = fs::canonicalize(place.path()).unwrap();
        for directory in [".git/hooks", ".vscode", "elsewhere"] {
            fs::create_dir_all(workspace.join(directory)).unwrap();
        }
        fs::write(workspace.join(".envrc"), "").unwrap();
        symlink("elsewhere", workspace.join(".idea")).unwrap();
        let git = Git {
            directories: vec![workspace.join(".git")],
            ..Git::default()
        };
        let (guarded, links) = find(&workspace, &workspace.join("no-home"), &git);
        let paths: Vec<_> = guarded
            .iter()
            .map(|guarded| guarded.path.strip_prefix(&workspace).unwrap())
            .collect();
        assert_eq!(paths, [".envrc", ".vscode", ".git/hooks"].map(Path::new));
        assert_eq!(links, [workspace.join(".idea")]);
    }
}
