//! The worktree that the settings of a submodule's repository name (`core.worktree`).

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{Context, Setting};
use crate::{
    facts::{absolute, named_directory},
    git::repositories::turns_back,
    nofollow,
};

/// Whether a submodule's repository is told to work on a directory of the workspace, as git does
/// when it makes one.
pub(super) fn is_own_worktree(text: &str, context: &Context<'_>) -> bool {
    let Some(repository) = context.repository else {
        return false;
    };
    // `git submodule update` puts it right in `config`, whatever links a branch has brought by then. What
    // `config.worktree` says stays, and counts more.
    if context.is_of_worktree {
        return false;
    }
    let parts: Vec<_> = repository
        .components()
        .map(std::path::Component::as_os_str)
        .collect();
    // Git has those of a linked worktree beside its index.
    let is_of_worktree = |names: &[&OsStr]| match names {
        [git, trees, _, modules] => [*git, *trees, *modules] == [".git", "worktrees", "modules"],
        _ => false,
    };
    let is_module = parts.windows(2).any(|pair| pair == [".git", "modules"])
        || parts.windows(4).any(is_of_worktree);
    let is_own = |worktree: &Path| {
        let is_inside = |place: &PathBuf| worktree.starts_with(place) && worktree != place;
        context.writable.iter().any(is_inside)
            && !worktree.components().any(|part| part.as_os_str() == ".git")
    };
    let worktree = repository.join(text);
    // By its name, and by where it leads: a link could be the session's.
    let leads_away = nofollow::real(&worktree).is_ok_and(|real| !is_own(&real));
    let is_plain = !turns_back(&worktree, repository);
    // Git sets it when the worktree is there and says whose it is.
    let leads_from =
        |worktree: &Path| named_directory(&worktree.join(".git")).as_deref() == Some(repository);
    let leads_back = || leads_from(&worktree);
    // Git moves that file from one place to the other before.
    let is_elsewhere = |old: &PathBuf| absolute(old) != absolute(&worktree) && leads_from(old);
    let before = context.worktree.as_deref().map(OsStr::from_bytes);
    let has_left = !before.is_some_and(|old| is_elsewhere(&repository.join(old)));
    let is_moving = || context.is_live && is_absent(&worktree);
    let is_its = || (has_left && leads_back()) || is_moving();
    is_module && is_plain && is_own(&absolute(&worktree)) && !leads_away && is_its()
}

/// `git mv` moves the worktree of a submodule before it says so in the submodule's settings. Until then, git
/// refuses to work with these.
fn is_absent(worktree: &Path) -> bool {
    fs::symlink_metadata(worktree).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether settings name a worktree that is not there. Then they may be judged otherwise at the next look,
/// without a change of theirs.
pub(crate) fn names_absent_worktree(settings: &[Setting], repository: &Path) -> bool {
    let mut named = settings.iter().filter(|it| it.is("core", "worktree"));
    named.any(|it| is_absent(&repository.join(OsStr::from_bytes(it.bytes()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submodule_has_its_files_where_a_file_leads_back() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = fs::canonicalize(directory.path()).unwrap();
        let repository = workspace.join(".git/modules/sub");
        let sub = workspace.join("sub");
        for path in [&repository, &sub, &workspace.join("other")] {
            fs::create_dir_all(path).unwrap();
        }
        let writable = [workspace];
        let context = Context {
            repository: Some(&repository),
            writable: &writable,
            ..Context::default()
        };
        let is_own = |text| is_own_worktree(text, &context);
        assert!(!is_own("../../../sub"), "nothing leads back");
        fs::write(sub.join(".git"), "gitdir: ../.git/modules/sub\n").unwrap();
        assert!(is_own("../../../sub"));
        let of_worktree = Context {
            is_of_worktree: true,
            ..context.clone()
        };
        assert!(!is_own_worktree("../../../sub", &of_worktree));
        for other in ["../../../other", "../../../other/../sub", "../../.."] {
            assert!(!is_own(other), "{other}");
        }
        let moved = Context {
            worktree: Some(b"../../../sub".to_vec()),
            ..context.clone()
        };
        let new = writable[0].join("new");
        fs::create_dir_all(&new).unwrap();
        fs::write(new.join(".git"), "gitdir: ../.git/modules/sub\n").unwrap();
        assert!(is_own("../../../new"), "control");
        assert!(
            !is_own_worktree("../../../new", &moved),
            "the old place leads there as well"
        );
        assert!(is_own_worktree("../../../sub", &moved));
        fs::remove_file(sub.join(".git")).unwrap();
        assert!(is_own_worktree("../../../new", &moved), "git mv");
        fs::remove_dir_all(&new).unwrap();
        let moving = Context {
            is_live: true,
            ..context
        };
        fs::write(sub.join(".git"), "gitdir: ../.git/modules/sub\n").unwrap();
        let back = Context {
            is_live: true,
            ..moved
        };
        assert!(is_own_worktree("../../../new", &back), "on the way back");
        assert!(
            is_own_worktree("../../../new", &moving),
            "between two steps"
        );
        for other in ["../../../other", "../../../new/../sub", "../../../../new"] {
            assert!(!is_own_worktree(other, &moving), "{other}");
        }
    }
}
