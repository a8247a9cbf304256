//! The files in the workspace, and in directories that are given like it, that programs outside
//! execute, and that need protection.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{Git, place::absolute};
use crate::{
    git::settings::{Own, in_file},
    nofollow::{self, Names},
    tables::autorun::{DOT_GIT, HOOKS, WORKSPACE},
};

/// Something in what a session can write that can be made read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    pub path: PathBuf,
    pub reason: &'static str,
}

const NOENT: i32 = Errno::NOENT.raw_os_error();
const NOTDIR: i32 = Errno::NOTDIR.raw_os_error();
const LOOP: i32 = Errno::LOOP.raw_os_error();

/// What can be protected, and what cannot, because a link is on the way. `tops` are the workspace
/// and what is given like it, `trees` all that a session can write.
pub(super) fn find(
    tops: &[(&Path, &Git)],
    trees: &[&Path],
    home: &Path,
) -> (Vec<Guarded>, Vec<PathBuf>) {
    let own = Own::read(home, trees);
    let written = own.written(home, &in_file);
    let mut executed = Vec::new();
    for (top, git) in tops {
        let guards = WORKSPACE.iter();
        let guards = guards.filter(|runs| runs.are_guarded());
        let guards = guards.flat_map(|runs| runs.below(top));
        let names = Names::of((*top).to_owned());
        executed.extend(guards.filter(|(path, _)| names.may_hold(path)));
        let written = written.iter();
        let written = written.filter(|setting| setting.is("core", "hookspath"));
        let own = own.all("hookspath").chain(written);
        let own = own.map(|setting| absolute(&top.join(setting.path(home))));
        let hooks = git.hooks(top, home).into_iter().chain(own);
        executed.extend(hooks.map(|path| (path, HOOKS)));
        // The directory `.git` is for work; the file is not.
        let dot_git = top.join(".git");
        if fs::symlink_metadata(&dot_git).is_ok_and(|metadata| metadata.is_file()) {
            executed.push((dot_git, DOT_GIT));
        }
    }
    let mut guarded = Vec::<Guarded>::new();
    let mut links = Vec::new();
    for (path, reason) in executed {
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
        let home = workspace.join("no-home");
        let (guarded, links) = find(&[(&workspace, &git)], &[&workspace], &home);
        let paths: Vec<_> = guarded
            .iter()
            .map(|guarded| guarded.path.strip_prefix(&workspace).unwrap())
            .collect();
        assert_eq!(paths, [".envrc", ".vscode", ".git/hooks"].map(Path::new));
        assert_eq!(links, [workspace.join(".idea")]);
    }
}
