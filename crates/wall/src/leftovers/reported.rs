//! Files that run by themselves outside, or that agents obey: their changes are reported.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    config::{Config, MovedState},
    facts::Facts,
    tables::autorun::{Autoruns, DOTFILE, STATE, WORKSPACE},
};

/// Files that run by themselves or are obeyed.
pub(super) fn reported_files(config: &Config, facts: &Facts) -> Vec<(PathBuf, &'static str)> {
    let given = facts.given.iter().map(|given| given.path.as_path());
    let tops: Vec<&Path> = given.chain([facts.workspace.as_path()]).collect();
    let in_tops = tops
        .iter()
        .flat_map(|top| WORKSPACE.iter().flat_map(|runs| runs.below(top)));
    let is_state = |path: &Path| {
        let mut states = config.agent.state.iter();
        states.any(|state| path.starts_with(&state.path))
    };
    let in_home = STATE
        .iter()
        .flat_map(|runs| runs.below(&facts.home.real))
        .filter(|(path, _)| is_state(path));
    let moved = config.moved_state.iter().filter(|it| config.is_state(it));
    let in_moved = moved.filter_map(|moved| {
        let at = facts.found.get(&moved.at)?.real.clone();
        Some(MovedState { at, ..*moved })
    });
    let in_moved = in_moved.flat_map(|moved| {
        let all = STATE.iter().flat_map(Autoruns::names);
        all.filter_map(move |(name, why)| Some((moved.path_of(name)?, why)))
    });
    let dotfiles = dotfiles(&facts.home.real, &tops).into_iter();
    let dotfiles = dotfiles.map(|path| (path, DOTFILE));
    let tracked = facts.guards.tracked.iter();
    let tracked = tracked.map(|guarded| (guarded.path.clone(), guarded.reason));
    let all = in_tops.chain(in_home).chain(in_moved).chain(dotfiles);
    let mut all: Vec<_> = all.chain(tracked).collect();
    let led: Vec<_> = all.iter().filter_map(|it| led_to(it, &tops)).collect();
    all.extend(led);
    all
}

/// What a link of the user's leads to in what a session can write: that is what runs.
fn led_to(
    (path, why): &(PathBuf, &'static str),
    tops: &[&Path],
) -> Option<(PathBuf, &'static str)> {
    fs::read_link(path).ok()?;
    let real = fs::canonicalize(path).ok()?;
    is_below(&real, tops).then_some((real, *why))
}

fn is_below(path: &Path, tops: &[&Path]) -> bool {
    let is_below = |top: &&Path| path.starts_with(top) && path != *top;
    tops.iter().any(is_below)
}

/// What dotfiles of the home lead to in the workspace, which then is a repository of dotfiles, or
/// in what is given like it.
fn dotfiles(home: &Path, tops: &[&Path]) -> Vec<PathBuf> {
    const MOST: usize = 2000;
    let list = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let is_dotfile = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    let top = list(home).take(MOST).filter(is_dotfile);
    let below = ["", "systemd/user", "autostart"];
    let below = below.map(|name| home.join(".config").join(name));
    let below = below
        .iter()
        .flat_map(|directory| list(directory).take(MOST));
    top.chain(below)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .filter(|real| is_below(real, tops))
        .collect()
}
