//! All repositories that git outside can reach from the workspace.
//!
//! These are the workspace's own repository, those of its worktrees and submodules, those that a
//! gitlink of an index leads to, at any depth, and those that lie in the tree. The tree may be of
//! any size: a walk through it stops at its bounds, and reports that.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    rc::Rc,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RawDir, open, statat},
    io::Errno,
};

use super::{
    index,
    settings::{self, Setting},
};
use crate::{
    facts::{Git, absolute, beside_parts, is_in, line_of, looks_like_repository, named_directory},
    leftovers::{
        DEEP, SHALLOW,
        bounds::{Bounds, Unseen},
    },
    nofollow,
};

/// An index of a million files is about this long.
pub(super) const LONGEST_INDEX: u64 = 128 << 20;
const MOST_DEEP: usize = 64;
const TOO_DEEP: &str = "there are too many git directories in one another below it";
const MANY_SUBMODULES: &str = "there are too many submodules to look at all of them";
pub(super) const UNLISTED: &str = "it cannot be listed";

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    /// The directories of repositories, and the worktree of each where it is known.
    pub(crate) found: BTreeMap<PathBuf, Repository>,
    /// What git keeps of a worktree: `worktrees/NAME` of a repository.
    pub(crate) worktrees: BTreeSet<PathBuf>,
    /// What is called `.git` and is neither a directory nor a file that names one.
    /// Whether git at the top goes there by itself.
    pub(crate) astray: BTreeMap<PathBuf, bool>,
    /// Files called `.git` that lead where no session can write, and that git at the top does not come to.
    pub(crate) away: BTreeSet<PathBuf>,
    /// Files called `.git` that lead to a repository that a session can write.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Where gitlinks lead, whatever is there.
    pub(crate) links: BTreeSet<PathBuf>,
    /// Whose gitlinks were followed, from which worktree: several may have one repository. Whether git
    /// at the top goes there by itself.
    followed: BTreeMap<(PathBuf, Option<PathBuf>), bool>,
    gitlinks: BTreeMap<PathBuf, Rc<Gitlinks>>,
    pub(crate) unseen: Unseen,
    /// Only what has git run programs counts for now: the rest may be much.
    pub(crate) is_brief: bool,
}

impl Repositories {
    /// How much there is to be looked at.
    pub(crate) fn len(&self) -> usize {
        let files = self.astray.len() + self.away.len() + self.files.len();
        self.found.len() + self.worktrees.len() + files
    }
}

/// What the index of a repository leads to.
#[derive(Debug, Default)]
struct Gitlinks {
    /// The worktrees that its settings name.
    roots: Vec<PathBuf>,
    /// Each from a worktree down. Whether it is a directory of which all counts.
    links: Vec<(PathBuf, bool)>,
    /// Indexes that nobody can read.
    astray: Vec<PathBuf>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Repository {
    /// Its worktrees, as far as they are known.
    pub(crate) roots: BTreeSet<PathBuf>,
    /// git at the top of the workspace goes there by itself.
    pub(crate) is_reached: bool,
}

pub(crate) struct Search<'a> {
    pub(crate) workspace: &'a Path,
    /// All that a session can write of repositories.
    pub(crate) writable: &'a [PathBuf],
    pub(crate) bounds: &'a Bounds<'a>,
    pub(crate) repositories: Repositories,
}

impl Search<'_> {
    /// What git comes to from the top.
    pub(crate) fn look_from_top(&mut self, git: &Git) {
        self.look_at(self.workspace, true, 0);
        for directory in &git.directories {
            let root = (directory == self.workspace).then_some(self.workspace);
            self.add(directory, root, true, 0);
        }
        if git.refused.is_some() {
            let dot_git = self.workspace.join(".git");
            self.repositories.astray.insert(dot_git, true);
        }
    }

    /// What lies in the tree, as deep as this.
    pub(crate) fn look_in_tree(&mut self, deepest: usize) {
        // What git keeps for itself is a place for repositories, too, that others lead to.
        if deepest > SHALLOW {
            self.walk(self.workspace.join(".git"), deepest, false, 0);
        }
        self.walk(self.workspace.to_owned(), deepest, false, 0);
    }

    fn walk(&mut self, top: PathBuf, deepest: usize, is_reached: bool, depth: usize) {
        let mut level = vec![top];
        // One for all of them: a tree has many directories, most of them small.
        let mut buffer = Vec::with_capacity(1 << 15);
        for _ in 0..deepest {
            let mut below = Vec::new();
            for directory in &level {
                let buffer = buffer.spare_capacity_mut();
                if !self.list(directory, is_reached, depth, &mut below, buffer) {
                    let why = "the tree is too large to look for repositories in all of it";
                    self.repositories.unseen.add(self.workspace, why);
                    return;
                }
            }
            if below.is_empty() {
                return;
            }
            level = below;
        }
        if deepest > SHALLOW {
            let why = "the tree is too deep to look for repositories in all of it";
            self.repositories.unseen.add(self.workspace, why);
        }
    }

    /// One directory of the tree. Whether there was time for it.
    fn list(
        &mut self,
        directory: &Path,
        is_reached: bool,
        depth: usize,
        below: &mut Vec<PathBuf>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> bool {
        if self.bounds.are_reached() {
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = match open(directory, flags, Mode::empty()) {
            Ok(opened) => opened,
            // Who comes from nearer by has a shorter path to it.
            Err(Errno::NAMETOOLONG) => return false,
            Err(_) => {
                // Others go by name into what can be entered only.
                let is_entered = rustix::fs::access(directory, rustix::fs::Access::EXEC_OK).is_ok();
                if !is_entered || !directory.is_dir() {
                    return true;
                }
                // A session can leave its owner's directories so.
                let open_up = || nofollow::open_up(&nofollow::pin(directory)?);
                match open_up().and_then(|()| Ok(open(directory, flags, Mode::empty())?)) {
                    Ok(opened) => opened,
                    Err(_) => {
                        self.repositories.unseen.add(directory, UNLISTED);
                        return true;
                    }
                }
            }
        };
        let mut has_head = false;
        let mut entries = RawDir::new(&opened, buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.bounds.are_reached() {
                return false;
            }
            if name == ".git" {
                if directory == self.workspace {
                    continue;
                }
                self.look_at(directory, is_reached, depth);
            }
            has_head |= name == "HEAD";
            let is_directory = match entry.file_type() {
                // Not every file system says so here.
                FileType::Unknown => statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()),
                kind => kind.is_dir(),
            };
            if is_directory {
                let path = directory.join(name);
                if !self.bounds.hold(path.as_os_str().len()) {
                    return false;
                }
                below.push(path);
            }
        }
        if has_head && looks_like_repository(directory) {
            self.add(directory, None, false, depth);
        }
        true
    }

    /// Whatever `.git` of a worktree is.
    fn look_at(&mut self, root: &Path, is_reached: bool, depth: usize) {
        let dot_git = root.join(".git");
        let Ok(metadata) = fs::symlink_metadata(&dot_git) else {
            return;
        };
        if metadata.is_dir() {
            return self.add(&dot_git, Some(root), is_reached, depth);
        }
        let is_link = metadata.is_symlink();
        let leads_to = match is_link {
            true => nofollow::real(&dot_git).ok().filter(|real| real.is_dir()),
            false => named_directory(&dot_git).filter(|named| is_too_deep(named).is_none()),
        };
        let leads_away = leads_to.as_ref().is_none_or(|to| !self.is_writable(to));
        // No session could have changed what is elsewhere. But git would write there, and bring from
        // there what was not given. The user's own may lie deep in the tree.
        if is_link || leads_to.is_none() || (leads_away && is_reached) {
            self.repositories.astray.insert(dot_git, is_reached);
        } else if leads_away {
            self.repositories.away.insert(dot_git);
        } else {
            self.repositories.files.insert(dot_git);
        }
        if let Some(real) = leads_to.filter(|_| !leads_away) {
            self.add(&real, Some(root), is_reached, depth);
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        is_in(path, self.writable)
    }

    /// Whether there is no time for more, which is told of this path.
    fn is_over(&mut self, path: &Path, why: &'static str) -> bool {
        let is_over = self.bounds.are_reached();
        if is_over {
            self.repositories.unseen.add(path, why);
        }
        is_over
    }

    fn add(&mut self, directory: &Path, root: Option<&Path>, is_reached: bool, depth: usize) {
        if let Some(deepest) = is_too_deep(directory) {
            self.repositories.unseen.add(deepest, TOO_DEEP);
            return;
        }
        let is_worktree = directory.parent().and_then(Path::file_name)
            == Some("worktrees".as_ref())
            && directory.join("commondir").exists();
        if is_worktree {
            self.add_worktree(directory, root, is_reached, depth);
            if let Some(owner) = directory.ancestors().nth(2) {
                self.add(owner, None, is_reached, depth);
            }
            return;
        }
        let found = &mut self.repositories.found;
        let is_new = !found.contains_key(directory);
        let known = found.entry(directory.to_owned()).or_default();
        known.is_reached |= is_reached;
        known.roots.extend(root.map(Path::to_owned));
        if depth > MOST_DEEP || self.bounds.are_reached() {
            let why = "there are too many repositories in one another";
            self.repositories.unseen.add(directory, why);
            return;
        }
        self.follow(directory, root, is_reached, depth);
        if is_new {
            // Behind a link, they are looked at where they are.
            let real = |name: &str| nofollow::real(&directory.join(name)).ok();
            if let Some(modules) = real("modules").filter(|path| self.is_writable(path)) {
                self.modules(&modules, is_reached, depth + 1);
            }
            if let Some(worktrees) = real("worktrees").filter(|path| self.is_writable(path)) {
                self.worktrees(&worktrees, is_reached, depth + 1);
            }
        }
    }

    fn add_worktree(
        &mut self,
        directory: &Path,
        root: Option<&Path>,
        is_reached: bool,
        depth: usize,
    ) {
        self.repositories.worktrees.insert(directory.to_owned());
        self.follow(directory, root, is_reached, depth);
    }

    /// The gitlinks of a repository, once from each worktree.
    fn follow(&mut self, directory: &Path, root: Option<&Path>, is_reached: bool, depth: usize) {
        let pair = (directory.to_owned(), root.map(Path::to_owned));
        // What git follows by itself may have been found in another way before.
        let was_reached = self.repositories.followed.insert(pair, is_reached);
        if was_reached.is_none_or(|was_reached| is_reached && !was_reached) {
            self.linked(directory, root, is_reached, depth);
        }
    }

    /// The repositories of submodules. Their names may have slashes in them.
    fn modules(&mut self, directory: &Path, is_reached: bool, depth: usize) {
        for entry in self.listed(directory) {
            if depth > MOST_DEEP {
                self.repositories.unseen.add(directory, MANY_SUBMODULES);
                return;
            }
            if self.is_over(directory, MANY_SUBMODULES) {
                return;
            }
            // Not what a link leads to, unless it comes to be named.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.module(&entry.path(), is_reached, depth);
            }
        }
    }

    fn module(&mut self, path: &Path, is_reached: bool, depth: usize) {
        if !looks_like_repository(path) && !path.join("config").exists() {
            return self.modules(path, is_reached, depth + 1);
        }
        self.add(path, None, is_reached, depth);
        // That of `a/b` may lie in that of `a`.
        for below in beside_parts(path) {
            if depth > MOST_DEEP || self.bounds.are_reached() {
                self.repositories.unseen.add(path, TOO_DEEP);
                return;
            }
            self.module(&below, is_reached, depth + 1);
        }
    }

    /// What is in a directory of git's. If nobody can tell, that is told.
    fn listed(&mut self, directory: &Path) -> Vec<fs::DirEntry> {
        nofollow::list(directory).unwrap_or_else(|_| {
            self.repositories.unseen.add(directory, UNLISTED);
            Vec::new()
        })
    }

    fn worktrees(&mut self, directory: &Path, is_reached: bool, depth: usize) {
        for entry in self.listed(directory) {
            if self.is_over(
                directory,
                "there are too many worktrees to look at all of them",
            ) {
                return;
            }
            let path = entry.path();
            let back = nofollow::read(&path.join("gitdir")).ok();
            let root = back.and_then(|line| {
                let line = Path::new(OsStr::from_bytes(line_of(&line)));
                let dot_git = absolute(&path.join(line));
                dot_git.parent().map(Path::to_owned)
            });
            self.add_worktree(&path, root.as_deref(), is_reached, depth);
        }
    }

    /// The repositories that the gitlinks of an index lead to, from this worktree and from those that
    /// settings name.
    fn linked(&mut self, directory: &Path, root: Option<&Path>, is_reached: bool, depth: usize) {
        // An index may be long, and many worktrees may have one repository.
        let known = self.repositories.gitlinks.get(directory).cloned();
        let gitlinks = known.unwrap_or_else(|| {
            let read = Rc::new(self.gitlinks(directory));
            let all = &mut self.repositories.gitlinks;
            all.insert(directory.to_owned(), Rc::clone(&read));
            read
        });
        // An index that leads astray is found also where nobody knows its worktree, or no session can
        // write there.
        for path in &gitlinks.astray {
            let astray = self.repositories.astray.entry(path.clone());
            *astray.or_default() |= is_reached;
        }
        let roots = root
            .into_iter()
            .chain(gitlinks.roots.iter().map(PathBuf::as_path));
        for root in roots {
            for (link, is_whole) in &gitlinks.links {
                if self.is_over(&directory.join("index"), MANY_SUBMODULES) {
                    return;
                }
                let nested = absolute(&root.join(link));
                let nested = nofollow::real(&nested).unwrap_or(nested);
                if self.is_writable(&nested) && nested != *root {
                    const MOST: usize = 4096;
                    if self.repositories.links.len() < MOST {
                        self.repositories.links.insert(nested.clone());
                    }
                    match is_whole {
                        // If it is there, git looks at what is in it.
                        true => self.walk(nested, DEEP, is_reached, depth + 1),
                        false => self.look_at(&nested, is_reached, depth + 1),
                    }
                }
            }
        }
    }

    /// What an index says, and the one that it adds to.
    fn gitlinks(&mut self, directory: &Path) -> Gitlinks {
        let settings = settings_of(directory);
        let named = settings.as_deref().map(|all| worktrees(directory, all));
        let mut gitlinks = Gitlinks {
            roots: named.unwrap_or_default(),
            ..Gitlinks::default()
        };
        let hash = settings.as_deref().and_then(hash_length);
        let (mut next, mut all) = (Some(directory.join("index")), false);
        for is_shared in [false, true] {
            let Some(path) = next.take() else { break };
            let links = match self.bounds.read(&path, LONGEST_INDEX) {
                Ok(index) => hash.and_then(|hash| index::read(&index, hash, all)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && !is_shared => break,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    let why = "there was no time to look at its submodules";
                    self.repositories.unseen.add(&path, why);
                    break;
                }
                Err(_) => None,
            };
            let Some(links) = links else {
                // Git may read it, and go where nobody has looked: it is set aside, with the one
                // that adds to it and is of no use to git alone.
                gitlinks.astray.push(path);
                if is_shared {
                    gitlinks.astray.push(directory.join("index"));
                }
                break;
            };
            all = links.is_replacing;
            next = links.shared.as_deref().map(|name| directory.join(name));
            let whole = links.directories.into_iter().map(|link| (link, true));
            let links = links.paths.into_iter().map(|link| (link, false));
            gitlinks.links.extend(links.chain(whole));
        }
        gitlinks
    }
}

/// If a git directory lies deeper in another than git's submodules ever do, the one that it is too
/// deep in. Each name on the way costs time, at each look at each file.
pub(crate) fn is_too_deep(directory: &Path) -> Option<&Path> {
    let below = |path: &Path| {
        let names = path.iter();
        names.skip_while(|name| *name != ".git").count()
    };
    let above = below(directory).checked_sub(MOST_DEEP + 1)?;
    directory.ancestors().nth(above).filter(|_| above > 0)
}

/// The settings of a repository, or of that of a worktree; none if git may read others.
pub(super) fn settings_of(directory: &Path) -> Option<Vec<Setting>> {
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
pub(super) fn hash_length(settings: &[Setting]) -> Option<usize> {
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
fn worktrees(directory: &Path, settings: &[Setting]) -> Vec<PathBuf> {
    let own = nofollow::read(&directory.join("config.worktree")).unwrap_or_default();
    let own = settings::parse(&own).unwrap_or_default();
    let all = settings.iter().chain(&own);
    let all = all.filter(|setting| setting.is("core", "worktree"));
    let real = |setting: &Setting| {
        nofollow::real(&directory.join(OsStr::from_bytes(setting.bytes()))).ok()
    };
    all.filter_map(real).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
