//! Where a repository has its files, by its own settings.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use crate::{
    facts::absolute,
    git::settings::{self, Setting},
    nofollow,
};

/// The settings of a repository, or of that of a worktree; none if git may read others.
pub(crate) fn settings_of(directory: &Path) -> Option<Vec<Setting>> {
    let has_common = fs::symlink_metadata(directory.join("commondir")).is_ok();
    let above = directory.parent().and_then(Path::file_name);
    let is_worktree = above == Some("worktrees".as_ref());
    if has_common && !is_worktree {
        return None;
    }
    let owner = directory.ancestors().nth(2).filter(|_| has_common);
    match nofollow::read(&owner.unwrap_or(directory).join("config")) {
        Ok(contents) => settings::parse(&contents).ok(),
        Err(error) => (error.kind() == io::ErrorKind::NotFound).then(Vec::new),
    }
}

/// How long the hashes of an index are, of which nothing in it speaks. Git counts what the settings
/// say of it only beside a version that knows of it, and overlooks it where there is no version. `None`
/// if anything else is said than git writes.
pub(crate) fn hash_length(settings: &[Setting]) -> Option<usize> {
    let mut all = settings.iter().rev();
    let Some(format) = all.find(|setting| setting.is("extensions", "objectformat")) else {
        return Some(20);
    };
    let is_version = |setting: &&Setting| setting.is("core", "repositoryformatversion");
    let mut versions = settings.iter().filter(is_version).peekable();
    versions.peek()?;
    if versions.any(|version| version.bytes() != b"1") {
        return None;
    }
    match format.bytes() {
        b"sha1" => Some(20),
        b"sha256" => Some(32),
        _ => None,
    }
}

/// Where a repository has its files by its own settings, or by those of its worktree. Git does not
/// look for this in files that these include.
pub(super) fn named_worktrees(directory: &Path, settings: &[Setting]) -> Vec<PathBuf> {
    let own = nofollow::read(&directory.join("config.worktree")).unwrap_or_default();
    let own = settings::parse(&own).unwrap_or_default();
    let all = settings.iter().chain(&own);
    let all = all.filter(|setting| setting.is("core", "worktree"));
    let all = all.map(|setting| directory.join(OsStr::from_bytes(setting.bytes())));
    all.collect()
}

/// Where a repository has its files by its own settings, if that is not here. By name: where a link leads
/// changes with the branch that is checked out.
pub(super) fn other_worktree(directory: &Path, root: &Path) -> Option<PathBuf> {
    // To a worktree of its own, what the repository says does not apply.
    let is_added = directory.join("commondir").exists();
    let shared = settings_of(directory).filter(|_| !is_added);
    let named = named_worktrees(directory, &shared.unwrap_or_default());
    let is_other = |it: &PathBuf| absolute(it) != root || turns_back(it, directory);
    let other = named.iter().find(|it| is_other(it))?;
    Some(absolute(other))
}

/// Whether a repository says that it has its files here.
pub(super) fn has_worktree(directory: &Path, root: &Path) -> bool {
    let settings = settings_of(directory).unwrap_or_default();
    let named = named_worktrees(directory, &settings);
    named.last().is_some_and(|it| absolute(it) == root)
}

/// Whether a path goes down from a directory and up again: with a link on the way, that leads elsewhere than
/// it says. Git writes none.
pub(crate) fn turns_back(path: &Path, directory: &Path) -> bool {
    let below = path.strip_prefix(directory).unwrap_or(path);
    let mut parts = below
        .components()
        .skip_while(|part| *part == Component::ParentDir);
    parts.any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_down_and_up_again_is_no_worktree() {
        let directory = Path::new("/w/.git/modules/lib");
        let turns_back = |text: &str| turns_back(&directory.join(text), directory);
        for text in ["../../../lib", "/w/lib", "../../../a/lib", "lib"] {
            assert!(!turns_back(text), "{text}");
        }
        for text in ["../../../a/../lib", "/w/a/../lib", "a/../../../../lib"] {
            assert!(turns_back(text), "{text}");
        }
    }

    /// As git does: without a version, what the extensions say counts for nothing.
    #[test]
    fn hashes_are_as_long_as_git_takes_them_for_or_nobody_knows() {
        let length = |text: &str| hash_length(&settings::parse(text.as_bytes()).unwrap());
        const VERSION: &str = "[core] repositoryFormatVersion = 1\n";
        let format = |name: &str| format!("[extensions] objectFormat = {name}\n");
        assert_eq!(length(""), Some(20));
        assert_eq!(length(&(VERSION.to_owned() + &format("sha256"))), Some(32));
        assert_eq!(length(&(VERSION.to_owned() + &format("sha1"))), Some(20));
        for version in ["", "[core] repositoryFormatVersion = 0\n"] {
            assert_eq!(length(&(format("sha256") + version)), None, "{version}");
            let both = format!("{VERSION}{version}{version}{}", format("x"));
            assert_eq!(length(&both), None, "{both}");
        }
    }
}
