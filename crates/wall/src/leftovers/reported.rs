//! Files that run by themselves outside, or that agents obey: their changes are reported.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::parts::parts_that_count;
use crate::{
    config::{Config, MovedState},
    facts::{Facts, absolute},
    nofollow,
    tables::autorun::{Autoruns, DOTFILE, NAMED, STATE, WORKSPACE},
};

/// Files that run by themselves or are obeyed.
pub(super) fn reported_files(config: &Config, facts: &Facts) -> Vec<(PathBuf, &'static str)> {
    let tops: Vec<&Path> = facts.projects().collect();
    let in_tops = tops
        .iter()
        .flat_map(|top| WORKSPACE.iter().flat_map(|runs| runs.below(top)));
    let outside = facts.git.outside.iter();
    let outside = outside.flat_map(|at| WORKSPACE.iter().flat_map(|runs| runs.in_git(at)));
    let in_tops = in_tops.chain(outside);
    // The state of the session's own agent, and that of others as far as it is given.
    let given = config
        .write
        .iter()
        .filter_map(|it| facts.found.get(&it.path));
    let given = given.map(|found| found.real.clone());
    let given: Vec<PathBuf> = given.chain([facts.workspace.clone()]).collect();
    let written = |(path, why): (PathBuf, &'static str)| {
        let is_whole = |state: &Path| {
            path.starts_with(state) || fs::canonicalize(&path).is_ok_and(|it| it.starts_with(state))
        };
        let mut states = config.agent.state.iter().map(|it| it.path.as_path());
        if states.any(|state| path.starts_with(state)) || given.iter().any(|it| is_whole(it)) {
            return Some((path, why));
        }
        let part = given.iter().find(|it| it.starts_with(&path))?;
        Some((part.clone(), why))
    };
    let in_home = STATE.iter().flat_map(|runs| runs.below(&facts.home.real));
    let in_home = in_home.filter_map(written);
    let in_moved = config.moved_state.iter().filter_map(|moved| {
        let at = facts.found.get(&moved.at)?.real.clone();
        let counts = config.is_state(moved) || given.iter().any(|it| at.starts_with(it));
        counts.then_some(MovedState { at, ..*moved })
    });
    let in_moved = in_moved.flat_map(|moved| {
        let all = STATE.iter().flat_map(Autoruns::names);
        all.filter_map(move |(name, why)| Some((moved.path_of(name)?, why)))
    });
    let dotfiles = dotfiles(facts, &tops).into_iter();
    let dotfiles = dotfiles.map(|path| (path, DOTFILE));
    let tracked = facts.guards.tracked.iter();
    let tracked = tracked.map(|guarded| (guarded.path.clone(), guarded.reason));
    let all = in_tops.chain(in_home).chain(in_moved).chain(dotfiles);
    let mut all: Vec<_> = all.chain(tracked).collect();
    let named = NamedFiles::of(config, facts);
    let found: BTreeSet<PathBuf> = all.iter().flat_map(|(path, _)| named.by(path)).collect();
    let is_other = |path: &PathBuf| !all.iter().any(|(known, _)| path.starts_with(known));
    let found: Vec<_> = found.into_iter().filter(is_other).collect();
    all.extend(found.into_iter().map(|path| (path, NAMED)));
    let state = named.state.iter().map(PathBuf::as_path);
    let tops: Vec<&Path> = tops.into_iter().chain(state).collect();
    let led: Vec<_> = all.iter().filter_map(|it| led_to(it, &tops)).collect();
    all.extend(led);
    all
}

/// Files in agents' state that settings name: scripts, mostly.
struct NamedFiles {
    /// Variables, and what stands for them, with the directories that they name.
    places: Vec<(String, PathBuf)>,
    /// Where state is, by name and with links resolved.
    state: Vec<PathBuf>,
}

impl NamedFiles {
    fn of(config: &Config, facts: &Facts) -> Self {
        let moved = config.moved_state.iter();
        let moved = moved.map(|moved| (format!("${}", moved.variable), moved.at.clone()));
        let home = ["~", "$HOME"].map(|name| (name.to_owned(), facts.home.real.clone()));
        let state = config.agent.state.iter();
        let state = state.filter_map(|it| Some((it, facts.found.get(&it.path)?)));
        let state: BTreeSet<PathBuf> = state
            .flat_map(|(it, found)| [it.path.clone(), found.real.clone()])
            .collect();
        Self {
            places: moved.chain(home).collect(),
            state: state.into_iter().collect(),
        }
    }

    /// Those that one file of settings names, as it is now, or that one of instructions takes in.
    fn by(&self, settings: &Path) -> Vec<PathBuf> {
        // Far more than people write. Each may take a look at the disk.
        const MOST_WORDS: usize = 16384;
        const MOST: usize = 256;
        let extension = settings.extension().and_then(|it| it.to_str());
        let is_prose = extension == Some("md");
        if !is_prose && !matches!(extension, Some("json" | "toml" | "yml" | "yaml")) {
            return Vec::new();
        }
        let bytes = nofollow::read_through_links(settings).unwrap_or_default();
        let bytes = parts_that_count(settings, &bytes, &[]).unwrap_or(bytes);
        let text = String::from_utf8_lossy(&bytes);
        // Without what quotes: a shell puts `"$HOME"/x` together, and a string may have quotes in it.
        let text = text.replace("\\n", " ").replace("\\t", " ");
        let text = text.replace(['"', '\'', '\\', '{', '}'], "");
        let (mut found, mut mark) = (Vec::new(), ' ');
        let ends = |it: char| it.is_whitespace() || ",:;|&()<>=[]@`".contains(it);
        for piece in text.split_inclusive(ends).take(MOST_WORDS) {
            let word = piece.trim_end_matches(ends);
            // What output goes to does not run. Instructions are full of words.
            let counts = if is_prose { mark == '@' } else { mark != '>' };
            if !word.is_empty() {
                let paths = self.paths(word).into_iter().filter(|_| counts);
                found.extend(paths);
                mark = ' ';
            }
            mark = piece
                .chars()
                .last()
                .filter(|it| ends(*it) && !it.is_whitespace())
                .unwrap_or(mark);
        }
        found.truncate(MOST);
        found
    }

    /// Where a word leads in agents' state, if it is a path.
    fn paths(&self, word: &str) -> Vec<PathBuf> {
        let mut places = self.places.iter();
        let below = places.find_map(|(name, place)| {
            let below = word.strip_prefix(name.as_str())?.strip_prefix('/')?;
            Some(place.join(below))
        });
        let path = below.unwrap_or_else(|| word.into());
        let all = match path.is_absolute() {
            true => vec![path],
            // A command may change to the directory before.
            false => {
                let all = self.state.iter().map(|state| state.join(&path));
                all.filter(|path| path.is_file()).collect()
            }
        };
        let all = all.into_iter().map(|path| absolute(&path));
        all.filter(|path| !word.contains('*') && is_below(path, &self.state))
            .collect()
    }
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

fn is_below(path: &Path, tops: &[impl AsRef<Path>]) -> bool {
    let mut tops = tops.iter().map(AsRef::as_ref);
    tops.any(|top: &Path| path.starts_with(top) && path != top)
}

/// Where the home has what programs run or obey by themselves, besides its top.
pub(crate) const DOTFILES: [&str; 16] = [
    ".config",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/fish/conf.d",
    ".config/fish/functions",
    ".config/git",
    ".config/nvim",
    ".config/systemd/user",
    ".config/zsh",
    ".gnupg",
    ".local/bin",
    ".local/share/applications",
    ".ssh",
    ".vim",
    "bin",
];
const ZSH: [&str; 5] = [".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout"];

/// What dotfiles of the home lead to in the workspace, which then is a repository of dotfiles, or
/// in what is given like it. So do those of zsh if a variable says that they are there.
fn dotfiles(facts: &Facts, tops: &[&Path]) -> Vec<PathBuf> {
    const MOST: usize = 2000;
    let home = &facts.home.real;
    let list = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let is_dotfile = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    let top = list(home).take(MOST).filter(is_dotfile);
    let below = DOTFILES.map(|name| home.join(name));
    let below = below
        .iter()
        .flat_map(|directory| list(directory).take(MOST));
    let links = top
        .chain(below)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok());
    let mut variables = facts.environment.iter();
    let zsh = variables.find_map(|(name, value)| (name == "ZDOTDIR").then_some(value));
    let zsh = zsh.and_then(|directory| fs::canonicalize(directory).ok());
    let zsh = zsh.iter().flat_map(|at| ZSH.map(|name| at.join(name)));
    links
        .chain(zsh)
        .filter(|real| is_below(real, tops))
        .collect()
}
