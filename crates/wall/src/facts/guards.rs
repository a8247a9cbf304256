//! The files in the workspace, and in directories that are given like it, that programs outside
//! execute, and that need protection.
//!
//! Those that git tracks may be changed, or git could not switch branches: they are reported with
//! their diff ([`crate::Watch`]). The others are read-only, also in a directory that has both. A file
//! that an earlier session found untracked stays so: a session could have added it to the index.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{Git, Given, place::absolute};
use crate::{
    config::{Config, Hardening},
    git::{
        settings::{Own, in_file},
        tracked::tracked,
    },
    leftovers::untracked,
    nofollow::{self, Names},
    tables::autorun::{DOT_GIT, HOOKS, WORKSPACE},
};

/// Something in what a session can write that programs outside execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarded {
    pub path: PathBuf,
    pub reason: &'static str,
}

/// What becomes of each.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Made read-only.
    pub read_only: Vec<Guarded>,
    /// Files that git tracks, which the command may change.
    pub tracked: Vec<Guarded>,
    /// Of the read-only ones, what git tracks and cannot update.
    pub frozen: Vec<PathBuf>,
    /// The same, because an earlier session found them untracked.
    pub held: Vec<PathBuf>,
    /// Of the read-only ones, what git does not track, or did not.
    pub untracked: Vec<PathBuf>,
    /// What cannot be protected, because a link is on the way.
    pub links: Vec<PathBuf>,
}

const NOENT: i32 = Errno::NOENT.raw_os_error();
const NOTDIR: i32 = Errno::NOTDIR.raw_os_error();
const LOOP: i32 = Errno::LOOP.raw_os_error();

impl Guards {
    /// `tops` are the workspace and what is given like it, `trees` all that a session can write.
    pub(super) fn find(config: &Config, tops: &[&Given], trees: &[&Path], home: &Path) -> Self {
        let own = Own::read(home, trees);
        let written = own.written(home, &in_file);
        let mut guards = Self::default();
        for Given {
            path: top,
            git,
            is_state,
        } in tops
        {
            let dot_git = top.join(".git");
            let metadata = fs::symlink_metadata(&dot_git).ok();
            // Without a repository, an agent's files are its own, whatever they are called.
            if *is_state && metadata.is_none() && git.directories.is_empty() {
                continue;
            }
            let runs = WORKSPACE.iter().filter(|runs| runs.are_guarded());
            let runs = runs.filter(|_| !is_state);
            let names = Names::of(top.clone());
            let runs = runs.flat_map(|runs| runs.below(top));
            let runs = runs.filter(|(path, _)| names.may_hold(path));
            // In a linked worktree, `.git` is a file.
            let guarded = WORKSPACE.iter().filter(|runs| runs.are_guarded());
            let guarded = guarded.filter(|_| !is_state);
            let in_git = guarded.flat_map(|runs| git.outside.iter().flat_map(|at| runs.in_git(at)));
            let runs = runs.chain(in_git);
            let runs: Vec<Guarded> = guards.existing(runs, trees);
            let written = written.iter();
            let written = written.filter(|setting| setting.is("core", "hookspath"));
            let own = own.all("hookspath").chain(written);
            let own = own.map(|setting| absolute(&top.join(setting.path(home))));
            let hooks = git.hooks(top, home).into_iter().chain(own);
            let hooks = hooks.map(|path| (path, HOOKS));
            // The directory `.git` is for work; the file is not.
            let is_file = metadata.is_some_and(|metadata| metadata.is_file());
            let dot_git = is_file.then_some((dot_git, DOT_GIT));
            let git_runs = guards.existing(hooks.chain(dot_git), trees);
            guards.add(config, top, git, runs, git_runs);
        }
        guards
    }

    /// Those that are there. Links are noted.
    fn existing(
        &mut self,
        all: impl Iterator<Item = (PathBuf, &'static str)>,
        trees: &[&Path],
    ) -> Vec<Guarded> {
        let mut found = Vec::<Guarded>::new();
        for (path, reason) in all {
            // Hooks that lie elsewhere are not writable inside.
            let is_below = |tree: &&Path| path.starts_with(tree) && path != **tree;
            let mut known = self.read_only.iter().chain(&found);
            if !trees.iter().any(is_below) || known.any(|other| other.path == path) {
                continue;
            }
            match nofollow::pin(&path).map_err(|error| error.raw_os_error()) {
                Err(Some(NOENT | NOTDIR)) => {}
                Err(Some(LOOP)) => self.links.push(path),
                // Whatever else is wrong with it, the launch will meet again, and be refused.
                Ok(_) | Err(_) => found.push(Guarded { path, reason }),
            }
        }
        found
    }

    /// Decides about those of one top: what runs by itself, and what git runs.
    fn add(
        &mut self,
        config: &Config,
        top: &Path,
        git: &Git,
        runs: Vec<Guarded>,
        git_runs: Vec<Guarded>,
    ) {
        let all = runs.iter().chain(&git_runs);
        let in_worktree = all.map(|guarded| guarded.path.clone());
        let in_worktree: Vec<PathBuf> = in_worktree
            .filter(|path| !path.starts_with(top.join(".git")))
            .collect();
        let tracked = match in_worktree.is_empty() {
            true => Some(BTreeSet::new()),
            false => tracked(top, git, &in_worktree),
        };
        if tracked.is_none() {
            self.frozen.extend(in_worktree.iter().cloned());
        }
        let mut tracked = tracked.unwrap_or_default();
        let below = |tracked: &BTreeSet<PathBuf>, place: &Path| -> Vec<PathBuf> {
            let below = tracked.iter().filter(|path| path.starts_with(place));
            below.cloned().collect()
        };
        let state = config.state.as_deref();
        let held = state.map_or_else(Vec::new, |state| untracked::read(state, top));
        for place in &held {
            for path in below(&tracked, place) {
                tracked.remove(&path);
                self.held.push(path);
            }
        }
        for guarded in runs {
            let of_git = below(&tracked, &guarded.path);
            if of_git.is_empty() {
                self.untracked.push(guarded.path.clone());
                self.read_only.push(guarded);
                continue;
            }
            let others = others(&guarded.path, &tracked);
            let others = others.filter(|_| config.hardening != Hardening::Strict);
            let Some(others) = others else {
                self.frozen.extend(of_git);
                self.read_only.push(guarded);
                continue;
            };
            let reason = guarded.reason;
            let of = |path| Guarded { path, reason };
            self.tracked.extend(of_git.into_iter().map(of));
            self.untracked.extend(others.iter().cloned());
            self.read_only.extend(others.into_iter().map(of));
        }
        for guarded in &git_runs {
            self.frozen.extend(below(&tracked, &guarded.path));
        }
        self.read_only.extend(git_runs);
    }
}

/// What lies at or below a path and is not tracked: files, and directories in which nothing is
/// tracked. `None` if that is too much to protect one by one, or cannot be protected so.
fn others(path: &Path, tracked: &BTreeSet<PathBuf>) -> Option<Vec<PathBuf>> {
    const MOST: usize = 64;
    const MOST_SEEN: usize = 1024;
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        seen += 1;
        if tracked.contains(&path) {
            continue;
        }
        let kind = fs::symlink_metadata(&path).ok()?.file_type();
        let mut below = tracked.range(path.clone()..);
        let holds = below.next().is_some_and(|next| next.starts_with(&path));
        if kind.is_dir() && holds {
            let entries = fs::read_dir(&path).ok()?.take(MOST_SEEN);
            let entries = entries.map(|entry| Some(entry.ok()?.path()));
            left.extend(entries.collect::<Option<Vec<_>>>()?);
        } else if kind.is_symlink() {
            // Nothing can be mounted on a link, so it could be replaced.
            return None;
        } else {
            found.push(path);
        }
        if found.len() > MOST || seen + left.len() > MOST_SEEN {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    struct Checkout {
        _place: tempfile::TempDir,
        path: PathBuf,
        state: tempfile::TempDir,
    }

    impl Checkout {
        fn new(script: &str) -> Self {
            let place = tempfile::tempdir().unwrap();
            let path = fs::canonicalize(place.path()).unwrap();
            let checkout = Self {
                _place: place,
                path,
                state: tempfile::tempdir().unwrap(),
            };
            checkout.run(script);
            checkout
        }

        fn run(&self, script: &str) {
            let mut command = Command::new("bash");
            command.args(["-ec", script]).current_dir(&self.path);
            for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
                command.env(name, "/dev/null");
            }
            assert!(command.status().unwrap().success());
        }

        fn guards(&self, hardening: Hardening) -> Guards {
            let config = Config {
                hardening,
                state: Some(self.state.path().to_owned()),
                ..Config::default()
            };
            let git = Git {
                directories: vec![self.path.join(".git")],
                ..Git::default()
            };
            let home = self.path.join("no-home");
            let top = Given {
                path: self.path.clone(),
                git,
                is_state: false,
            };
            Guards::find(&config, &[&top], &[&self.path], &home)
        }

        fn names(&self, paths: &[PathBuf]) -> Vec<String> {
            let name = |path: &PathBuf| path.strip_prefix(&self.path).unwrap().to_owned();
            let mut names: Vec<_> = paths.iter().map(name).collect();
            names.sort();
            let text = |name: PathBuf| name.to_str().unwrap().to_owned();
            names.into_iter().map(text).collect()
        }

        fn paths(&self, guarded: &[Guarded]) -> Vec<String> {
            let paths: Vec<_> = guarded.iter().map(|it| it.path.clone()).collect();
            self.names(&paths)
        }
    }

    #[test]
    fn what_exists_is_guarded_and_links_are_told() {
        let checkout = Checkout::new(
            "mkdir -p .git/hooks .vscode elsewhere; touch .envrc; ln -s elsewhere .idea",
        );
        let guards = checkout.guards(Hardening::Default);
        let paths = checkout.paths(&guards.read_only);
        assert_eq!(paths, [".envrc", ".git/hooks", ".vscode"]);
        assert_eq!(checkout.names(&guards.links), [".idea"]);
    }

    const TRACKED: &str = "git init -q .; mkdir -p .vscode/own .idea
        touch .envrc .vscode/tasks.json .vscode/launch.json .vscode/own/a .vscode/own/b .idea/x .exrc
        git add .envrc .vscode/tasks.json .idea/x";

    #[test]
    fn what_git_tracks_is_left_to_git_and_the_rest_of_its_directory_is_not() {
        let checkout = Checkout::new(TRACKED);
        let guards = checkout.guards(Hardening::Default);
        let read_only = [".exrc", ".git/hooks", ".vscode/launch.json", ".vscode/own"];
        assert_eq!(checkout.paths(&guards.read_only), read_only);
        let tracked = [".envrc", ".idea/x", ".vscode/tasks.json"];
        assert_eq!(checkout.paths(&guards.tracked), tracked);
        assert_eq!(checkout.names(&guards.frozen), [""; 0]);

        let strict = checkout.guards(Hardening::Strict);
        let read_only = [".envrc", ".exrc", ".git/hooks", ".idea", ".vscode"];
        assert_eq!(checkout.paths(&strict.read_only), read_only);
        assert_eq!(checkout.names(&strict.frozen), tracked);
        assert_eq!(strict.tracked, []);
    }

    /// A session could add such an entry for a file that the user makes later.
    #[test]
    fn an_entry_whose_changes_git_does_not_show_does_not_count() {
        for option in ["skip-worktree", "assume-unchanged"] {
            let script = format!("{TRACKED}; git update-index --{option} .envrc");
            let checkout = Checkout::new(&script);
            let guards = checkout.guards(Hardening::Default);
            let tracked = checkout.paths(&guards.tracked);
            assert_eq!(tracked, [".idea/x", ".vscode/tasks.json"], "{option}");
            let read_only = checkout.paths(&guards.read_only);
            assert!(read_only.contains(&".envrc".to_owned()), "{option}");
        }
    }

    /// Nothing could be mounted on a link, and very many files would take very many mounts.
    #[test]
    fn a_directory_that_cannot_be_parted_is_read_only_as_a_whole() {
        for script in [
            "ln -s ../elsewhere .vscode/link",
            "for i in {1..70}; do touch .vscode/$i; done",
            "git update-index --split-index",
        ] {
            let checkout = Checkout::new(&format!("{TRACKED}; {script}"));
            let guards = checkout.guards(Hardening::Default);
            let read_only = checkout.paths(&guards.read_only);
            assert!(read_only.contains(&".vscode".to_owned()), "{script}");
            assert!(!guards.frozen.is_empty(), "{script}");
        }
    }

    #[test]
    fn what_was_untracked_once_stays_read_only_whoever_adds_it() {
        let checkout = Checkout::new(TRACKED);
        let top = checkout.path.as_path();
        let guards = checkout.guards(Hardening::Default);
        untracked::note(checkout.state.path(), top, &guards.untracked).unwrap();
        checkout.run("git add -f .");
        let guards = checkout.guards(Hardening::Default);
        let held = [
            ".exrc",
            ".vscode/launch.json",
            ".vscode/own/a",
            ".vscode/own/b",
        ];
        assert_eq!(checkout.names(&guards.held), held);
        let read_only = checkout.paths(&guards.read_only);
        assert!(read_only.contains(&".exrc".to_owned()));
        // Also if nobody could look at them for a while.
        checkout.run("mv .vscode aside; ln -s .vscode .vscode");
        untracked::note(checkout.state.path(), top, &[]).unwrap();
        checkout.run("rm .vscode; mv aside .vscode");
        let guards = checkout.guards(Hardening::Default);
        assert_eq!(checkout.names(&guards.held), held);
        // Until the user says so.
        let accepted = untracked::accept(checkout.state.path(), top, &top.join(".exrc"));
        assert!(accepted.unwrap());
        let guards = checkout.guards(Hardening::Default);
        assert!(
            checkout
                .paths(&guards.tracked)
                .contains(&".exrc".to_owned())
        );
        // A record that cannot be read holds everything.
        let record = fs::read_dir(checkout.state.path().join("untracked")).unwrap();
        fs::write(record.last().unwrap().unwrap().path(), "?").unwrap();
        assert_eq!(checkout.guards(Hardening::Default).tracked, []);
    }
}
