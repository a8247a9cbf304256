//! Where the workspace's git directories are.
//!
//! Usually that is `.git`. In a worktree or a submodule `.git` is a file that names a
//! directory elsewhere, which git needs to write to. That file can be written by the agent,
//! in a session before this one, and could name any directory of the user's. So the
//! directory that it names has to point back: something that was never writable inside
//! must say that the workspace belongs to it.
//!
//! - A worktree: `R/worktrees/NAME` holds `gitdir`, the path of the workspace's `.git`, and
//!   `commondir`, which leads to `R`, the repository.
//! - A submodule: `config` sets `core.worktree` to the workspace.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Place,
    place::{absolute, is_in},
};
use crate::{
    git::settings::{self, Setting},
    nofollow,
};

/// The git directories of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Git {
    /// The repository, if it lies outside of the workspace and owns it.
    pub outside: Option<PathBuf>,
    /// All of them: the repository, and those of its submodules.
    pub directories: Vec<PathBuf>,
    /// A directory that `.git` names and that is not shown, and why.
    pub refused: Option<(PathBuf, GitRefusal)>,
    /// The repository that the workspace is a directory of. It is not shown.
    pub above: Option<PathBuf>,
}

/// A directory besides the workspace that counts like it, since the user has the command write there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) path: PathBuf,
    pub(crate) git: Git,
    /// It is of an agent's state: only what git runs counts there.
    pub(crate) is_state: bool,
}

impl Given {
    /// All of them: `directories`, and the repositories that these or the workspace are a part of,
    /// where a session can write to them.
    pub(super) fn find(
        directories: &[PathBuf],
        state: &[PathBuf],
        workspace: &Path,
        home: &Place,
        writable: &[PathBuf],
    ) -> Vec<Self> {
        if directories.is_empty() {
            return Vec::new();
        }
        let above = |path: &Path| {
            repository_above(path, home).filter(|path| is_in(&path.join(".git"), writable))
        };
        let all = directories.iter().map(PathBuf::as_path);
        let above = all.chain([workspace]).filter_map(above);
        let mut tops: BTreeSet<PathBuf> = above.chain(directories.iter().cloned()).collect();
        // What lies there is looked at as a part of it.
        tops.retain(|path| !path.starts_with(workspace));
        let given = tops.into_iter().map(|path| Self {
            git: Git::find_given(&path, home, writable),
            is_state: is_in(&path, state),
            path,
        });
        given.collect()
    }
}

/// Why a directory that `.git` names is not taken for the workspace's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GitRefusal {
    #[error("it is a link")]
    IsLink,
    #[error("it cannot be read as git would read it")]
    Unreadable,
    #[error("the directory that it names does not say that it belongs to it")]
    DoesNotPointBack,
    #[error("the directory that it names is no repository")]
    NoRepository,
    #[error("the directory that it names holds more than a repository")]
    HoldsWorkspace,
}

/// How many directories below `modules` are looked at, and how deep. Hooks of those beyond are not
/// read-only inside; what becomes of them is looked at after a session ([`crate::Watch`]).
const MOST_MODULES: usize = 256;
const DEEPEST_MODULE: usize = 6;

impl Git {
    pub(crate) fn find(workspace: &Path, home: &Place) -> Self {
        let mut git = Self::by_dot_git(workspace, home);
        // Where `.git` is missing or broken, git may take the workspace itself for one.
        if looks_like_repository(workspace) {
            git.directories.push(workspace.to_owned());
        }
        git
    }

    /// The same of a directory that is given besides the workspace. No repository elsewhere is shown
    /// for its sake, so that one counts only as far as a session can write to it.
    pub(crate) fn find_given(top: &Path, home: &Place, writable: &[PathBuf]) -> Self {
        let mut git = Self::find(top, home);
        git.outside = None;
        git.directories.retain(|path| is_in(path, writable));
        git
    }

    fn by_dot_git(workspace: &Path, home: &Place) -> Self {
        let dot_git = workspace.join(".git");
        let Ok(metadata) = fs::symlink_metadata(&dot_git) else {
            return Self {
                above: repository_above(workspace, home),
                ..Self::default()
            };
        };
        let refused = |path: &Path, why| Self {
            refused: Some((path.to_owned(), why)),
            ..Self::default()
        };
        if metadata.is_symlink() {
            return refused(&dot_git, GitRefusal::IsLink);
        }
        if metadata.is_dir() {
            return Self::of(dot_git, None);
        }
        let Some(named) = named_directory(&dot_git) else {
            return refused(&dot_git, GitRefusal::Unreadable);
        };
        if named.starts_with(workspace) {
            return Self::of(named, None);
        }
        match owner(&named, workspace) {
            Err(why) => refused(&named, why),
            Ok(repository)
                if workspace.starts_with(&repository) || home.real.starts_with(&repository) =>
            {
                refused(&named, GitRefusal::HoldsWorkspace)
            }
            Ok(repository) => Self::of(repository.clone(), Some(repository)),
        }
    }

    fn of(repository: PathBuf, outside: Option<PathBuf>) -> Self {
        let mut modules = Modules::default();
        modules.look_in(&repository.join("modules"), 0);
        Self {
            outside,
            directories: [vec![repository], modules.found].concat(),
            ..Self::default()
        }
    }

    /// Where git looks for hooks: in `hooks` of each directory, and where their settings say, or
    /// those of files that they include.
    pub(crate) fn hooks(&self, top: &Path, home: &Path) -> Vec<PathBuf> {
        let mut hooks = Vec::new();
        for directory in &self.directories {
            hooks.push(directory.join("hooks"));
            // The last one counts, but which is the last one depends on conditions.
            let settings = settings(directory, home);
            let named = settings
                .iter()
                .filter(|setting| setting.is("core", "hookspath"));
            hooks.extend(named.map(|setting| absolute(&top.join(setting.path(home)))));
        }
        hooks
    }
}

/// The repository that a directory is a part of. One of the whole home has people's settings in it,
/// and is no project's.
fn repository_above(path: &Path, home: &Place) -> Option<PathBuf> {
    let above = path.ancestors().skip(1);
    let mut above = above.take_while(|path| !home.real.starts_with(path));
    above
        .find(|path| path.join(".git").exists())
        .map(Path::to_owned)
}

/// The directory that a `.git` file names.
pub(crate) fn named_directory(file: &Path) -> Option<PathBuf> {
    let real = nofollow::real(&named_path(file)?).ok()?;
    real.is_dir().then_some(real)
}

/// The same as it stands there, from the file's directory.
pub(crate) fn named_path(file: &Path) -> Option<PathBuf> {
    let contents = nofollow::read(file).ok()?;
    let path = contents.strip_prefix(b"gitdir: ")?;
    Some(relative_to(file.parent()?, path))
}

/// The path that a one-line file holds.
fn relative_to(directory: &Path, line: &[u8]) -> PathBuf {
    directory.join(OsStr::from_bytes(line_of(line)))
}

/// A line without its end. Git takes off as many of these as there are.
pub(crate) fn line_of(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_suffix(b"\n").or(line.strip_suffix(b"\r")) {
        line = rest;
    }
    line
}

/// The repository that `directory` is, or is a part of, if it says that it owns `workspace`.
fn owner(directory: &Path, workspace: &Path) -> Result<PathBuf, GitRefusal> {
    let is_worktree = directory.parent().and_then(Path::file_name) == Some("worktrees".as_ref());
    let repository = if is_worktree {
        worktree_owner(directory, workspace)
    } else {
        submodule_owner(directory, workspace)
    };
    let repository = repository.ok_or(GitRefusal::DoesNotPointBack)?;
    if is_repository(&repository) {
        Ok(repository)
    } else {
        Err(GitRefusal::NoRepository)
    }
}

fn worktree_owner(directory: &Path, workspace: &Path) -> Option<PathBuf> {
    let line = |name: &str| nofollow::read(&directory.join(name)).ok();
    let back = relative_to(directory, &line("gitdir")?);
    let is_back = back.file_name() == Some(".git".as_ref()) && leads_to(back.parent()?, workspace);
    let common = nofollow::real(&relative_to(directory, &line("commondir")?)).ok()?;
    // `commondir` could name any directory: only the one that this lies in is its own.
    let is_own = directory.parent()?.parent()? == common;
    (is_back && is_own).then_some(common)
}

fn submodule_owner(directory: &Path, workspace: &Path) -> Option<PathBuf> {
    // Git does not look for this in included files.
    let settings = [directory.join("config"), directory.join("config.worktree")];
    let [mut settings, own] = settings.map(|path| in_file(&path));
    let mut all = settings.iter();
    if all.any(|setting| setting.is("extensions", "worktreeconfig") && setting.bytes() == b"true") {
        settings.extend(own);
    }
    let setting = settings
        .iter()
        .rfind(|setting| setting.is("core", "worktree"))?;
    let worktree = directory.join(OsStr::from_bytes(setting.value.as_ref()?));
    leads_to(&worktree, workspace).then(|| directory.to_owned())
}

/// Whether a path is the workspace's, and by no link: git writes paths without any, and a session of this
/// workspace or of a directory above could have put one in the place of another worktree.
fn leads_to(path: &Path, workspace: &Path) -> bool {
    nofollow::real_without_links(path).is_ok_and(|real| real == workspace)
}

fn is_repository(directory: &Path) -> bool {
    let is_directory = |name: &str| directory.join(name).is_dir();
    directory.join("HEAD").is_file() && is_directory("objects") && is_directory("refs")
}

/// To git, whose repository may have its parts elsewhere.
pub(crate) fn looks_like_repository(directory: &Path) -> bool {
    let is_there = |name: &str| fs::symlink_metadata(directory.join(name)).is_ok();
    is_there("HEAD") && (is_there("commondir") || (is_there("objects") && is_there("refs")))
}

/// The directories in a repository that are no parts of every one.
fn beside_parts(repository: &Path) -> Vec<PathBuf> {
    const PARTS: &[&str] = &[
        "branches",
        "hooks",
        "info",
        "lfs",
        "logs",
        "modules",
        "objects",
        "refs",
        "rr-cache",
        "worktrees",
    ];
    let is_other = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        !PARTS.iter().any(|part| name == *part) && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let entries = nofollow::list(repository).unwrap_or_default().into_iter();
    entries.filter(is_other).map(|entry| entry.path()).collect()
}

/// The settings of a repository, its worktree and the files that these include; none if they cannot
/// be read.
fn settings(repository: &Path, home: &Path) -> Vec<Setting> {
    let read = |path: &Path| match path.starts_with(repository) {
        true => in_file(path),
        false => settings::in_file(path),
    };
    let names = ["config", "config.worktree"].iter();
    let all = names.map(|name| settings::with_included(&repository.join(name), home, &read));
    all.flatten().collect()
}

fn in_file(path: &Path) -> Vec<Setting> {
    let contents = nofollow::read(path).unwrap_or_default();
    settings::parse(&contents).unwrap_or_default()
}

/// A search for the git directories of submodules. Their names may have slashes in them.
#[derive(Default)]
struct Modules {
    found: Vec<PathBuf>,
    looked_at: usize,
}

impl Modules {
    fn look_in(&mut self, directory: &Path, depth: usize) {
        if depth > DEEPEST_MODULE {
            return;
        }
        for entry in nofollow::list(directory).unwrap_or_default() {
            self.looked_at += 1;
            if self.looked_at > MOST_MODULES {
                return;
            }
            // Not of what a link leads to.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            self.look_at(entry.path(), depth);
        }
    }

    fn look_at(&mut self, path: PathBuf, depth: usize) {
        if looks_like_repository(&path) {
            self.look_in(&path.join("modules"), depth + 1);
            // That of `a/b` may lie in that of `a`.
            for below in beside_parts(&path) {
                self.looked_at += 1;
                if depth > DEEPEST_MODULE || self.looked_at > MOST_MODULES {
                    break;
                }
                self.look_at(below, depth + 1);
            }
            self.found.push(path);
        } else {
            self.look_in(&path, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, process::Command};

    use tempfile::TempDir;

    use super::*;

    struct Disk {
        _directory: TempDir,
        root: PathBuf,
    }

    impl Disk {
        /// A repository with a worktree and a submodule, made by git itself.
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(directory.path()).unwrap();
            let script = "set -e; exec >/dev/null 2>&1
                export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
                git init -q -b main part; git -C part -c user.name=a -c user.email=b \
                    commit -q --allow-empty -m one
                git init -q -b main whole; cd whole
                git -c protocol.file.allow=always submodule --quiet add ../part sub/part
                git -c user.name=a -c user.email=b commit -q -m one
                git worktree add -q ../tree; mkdir ../secret; echo key > ../secret/key";
            let status = Command::new("bash")
                .args(["-c", script])
                .current_dir(&root)
                .status();
            assert!(status.unwrap().success());
            Self {
                _directory: directory,
                root,
            }
        }

        fn find(&self, workspace: &str) -> Git {
            let home = Place {
                named: self.root.clone(),
                real: self.root.clone(),
            };
            Git::find(&self.root.join(workspace), &home)
        }

        fn path(&self, path: &str) -> PathBuf {
            self.root.join(path)
        }

        fn say(&self, path: &str, text: &str) {
            fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
            fs::write(self.path(path), text).unwrap();
        }
    }

    #[test]
    fn worktrees_and_submodules_lead_to_their_repository() {
        let disk = Disk::new();
        let module = disk.path("whole/.git/modules/sub/part");
        let tree = disk.find("tree");
        assert_eq!(tree.outside, Some(disk.path("whole/.git")));
        assert_eq!(tree.directories, [disk.path("whole/.git"), module.clone()]);

        let part = disk.find("whole/sub/part");
        assert_eq!(part.outside, Some(module.clone()));

        let whole = disk.find("whole");
        assert_eq!(whole.outside, None);
        assert_eq!(whole.directories, [disk.path("whole/.git"), module]);
        assert_eq!(disk.find("secret"), Git::default());
    }

    #[test]
    fn a_directory_of_a_repository_is_told_from_one_of_none() {
        let disk = Disk::new();
        let above = |workspace| disk.find(workspace).above;
        fs::create_dir_all(disk.path("whole/deep/er")).unwrap();
        assert_eq!(above("whole/deep/er"), Some(disk.path("whole")));
        assert_eq!(above("whole/sub"), Some(disk.path("whole")));
        assert_eq!(above("whole"), None);
        // The home is one itself.
        disk.say(".git/HEAD", "");
        assert_eq!(above("secret"), None);
    }

    #[test]
    fn a_file_that_names_a_foreign_directory_opens_nothing() {
        let disk = Disk::new();
        fs::create_dir(disk.path("hostile")).unwrap();
        let secret = disk.path("secret");
        let named = [
            secret.display().to_string(),
            "../secret".into(),
            "../whole/.git".into(),
            "../whole/.git/worktrees/tree".into(),
            "../whole/.git/modules/sub/part".into(),
            "/".into(),
            "..".into(),
        ];
        for path in named {
            disk.say("hostile/.git", &format!("gitdir: {path}\n"));
            let git = disk.find("hostile");
            assert_eq!(git.outside, None, "{path}");
            assert!(
                git.refused.is_some() && git.directories.is_empty(),
                "{path}"
            );
        }
        fs::remove_file(disk.path("hostile/.git")).unwrap();
        symlink(&secret, disk.path("hostile/.git")).unwrap();
        let refused = disk.find("hostile").refused.unwrap();
        assert_eq!(refused.1, GitRefusal::IsLink);
    }

    #[test]
    fn a_link_in_the_place_of_a_worktree_leads_to_the_repository_of_none() {
        let disk = Disk::new();
        assert!(disk.find("tree").outside.is_some(), "positive control");
        fs::rename(disk.path("tree"), disk.path("other")).unwrap();
        symlink("other", disk.path("tree")).unwrap();
        let git = disk.find("other");
        assert_eq!(git.outside, None);
        assert_eq!(git.refused.unwrap().1, GitRefusal::DoesNotPointBack);
    }

    #[test]
    fn chains_that_were_built_in_the_workspace_lead_nowhere_else() {
        let disk = Disk::new();
        let secret = disk.path("secret");
        // A whole false worktree in the workspace, whose common directory is elsewhere.
        let hostile = disk.path("hostile");
        disk.say("hostile/.git", "gitdir: false/worktrees/x\n");
        disk.say("hostile/false/worktrees/x/gitdir", "../../../.git\n");
        let common = format!("{}\n", secret.display());
        disk.say("hostile/false/worktrees/x/commondir", &common);
        let git = disk.find("hostile");
        assert_eq!(git.outside, None);
        assert!(
            git.directories
                .iter()
                .all(|path| path.starts_with(&hostile))
        );

        // The same, reached by a link out of the workspace and back.
        let tree = disk.path("whole/.git/worktrees/tree");
        disk.say("tree/.git", &format!("gitdir: {}\n", tree.display()));
        assert!(disk.find("tree").outside.is_some(), "positive control");
        fs::write(tree.join("commondir"), &common).unwrap();
        assert_eq!(
            disk.find("tree").refused.unwrap().1,
            GitRefusal::DoesNotPointBack
        );
    }

    #[test]
    fn hooks_are_looked_for_where_the_settings_say() {
        let disk = Disk::new();
        disk.say(
            "whole/.git/config",
            "[include]\n\tpath = ../more\n[core]\n\thooksPath = tools/../hooks\n",
        );
        disk.say(
            "whole/more",
            "[include]\n\tpath = ./more\n[core]\n\thooksPath = ~/mine\n",
        );
        let hooks = disk.find("whole");
        let mut hooks = hooks.hooks(&disk.path("whole"), &disk.path("home"));
        hooks.dedup();
        assert_eq!(
            hooks,
            [
                disk.path("whole/.git/hooks"),
                disk.path("home/mine"),
                disk.path("whole/hooks"),
                disk.path("whole/.git/modules/sub/part/hooks"),
            ]
        );
    }
}
