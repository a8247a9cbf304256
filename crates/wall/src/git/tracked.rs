//! Which files git tracks: those of the index, which git changes when it switches branches.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{
    index,
    repositories::{LONGEST_INDEX, hash_length, settings_of},
};
use crate::{
    facts::{Git, named_directory},
    nofollow,
};

/// The files at or below these paths that the index of a worktree has. `None` if the index cannot
/// be read in one way only.
pub(crate) fn tracked(top: &Path, git: &Git, paths: &[PathBuf]) -> Option<BTreeSet<PathBuf>> {
    let Some(directory) = directory(top, git) else {
        return Some(BTreeSet::new());
    };
    let index = match nofollow::read_at_most(&directory.join("index"), LONGEST_INDEX) {
        Ok(index) => index,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(BTreeSet::new()),
        Err(_) => return None,
    };
    let hash = hash_length(&settings_of(&directory)?)?;
    let below = paths.iter().filter_map(|path| path.strip_prefix(top).ok());
    let below: Vec<&[u8]> = below.map(|path| path.as_os_str().as_bytes()).collect();
    let is_wanted = |path: &[u8]| {
        below.iter().any(|below| {
            let rest = path.strip_prefix(*below);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    };
    let files = index::files(&index, hash, &is_wanted)?;
    Some(files.into_iter().map(|path| top.join(path)).collect())
}

/// Where git has the index of this worktree, if it is one that the plan shows.
fn directory(top: &Path, git: &Git) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    let is_directory = fs::symlink_metadata(&dot_git).ok()?.is_dir();
    let directory = match is_directory {
        true => dot_git,
        false => named_directory(&dot_git)?,
    };
    let is_shown = |shown: &PathBuf| directory.starts_with(shown);
    git.directories.iter().any(is_shown).then_some(directory)
}
