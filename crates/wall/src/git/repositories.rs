//! All repositories that git outside can reach from the workspace.
//!
//! These are the workspace's own repository, those of its worktrees and submodules, those that a
//! gitlink of an index leads to, at any depth, and those that lie in the tree. The tree may be of
//! any size: a walk through it stops at its bounds, and reports that.

pub(in crate::git) mod modules;
mod walk;
mod worktree;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    rc::Rc,
    time::SystemTime,
};

use self::worktree::{has_worktree, named_worktrees, other_worktree};
pub(crate) use self::worktree::{hash_length, settings_of, turns_back};
use super::{index, ways::remotes_below};
use crate::{
    facts::{Git, absolute, is_in, line_of, looks_like_repository, named_directory, named_path},
    leftovers::{
        DEEP,
        bounds::{Bounds, Unseen},
        changed,
    },
    nofollow,
};

/// An index of a million files is about this long.
pub(super) const LONGEST_INDEX: u64 = 128 << 20;
const MOST_DEEP: usize = 64;
const TOO_DEEP: &str = "there are too many git directories in one another below it";
/// More than the largest collections have. An index with more that a session wrote is nobody's work: there
/// would be no time to look at all.
const MOST_GITLINKS: usize = 50_000;
const MANY_SUBMODULES: &str = "there are too many submodules to look at all of them";
const UNREAD: &str = "nobody can tell which submodules it leads to";
pub(crate) const UNLISTED: &str = "it cannot be listed";

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
    /// Files called `.git` that lead to a repository whose settings name another worktree: that one. Or to
    /// one that may become another by a change of the branch: its directory.
    /// Whether git at the top goes there by itself.
    pub(crate) misplaced: BTreeMap<PathBuf, (PathBuf, bool)>,
    /// Files called `.git` that lead to a repository that a session can write.
    pub(crate) files: BTreeSet<PathBuf>,
    /// Where gitlinks and the names of remotes lead, whatever is there.
    pub(crate) links: BTreeSet<PathBuf>,
    /// Those that a link on the way takes where no session can write, or where there is nothing. Git has
    /// no links there.
    pub(crate) diverted: BTreeSet<PathBuf>,
    /// Whose gitlinks were followed, from which worktree: several may have one repository. Whether git
    /// at the top goes there by itself.
    followed: BTreeMap<(PathBuf, Option<PathBuf>), bool>,
    gitlinks: BTreeMap<PathBuf, Rc<Gitlinks>>,
    /// How many those are.
    count: usize,
    /// Files that name the directory of a repository, in the place of the repository of a submodule.
    pub(crate) gitfiles: BTreeSet<PathBuf>,
    /// Pipes in the place of files that git reads in a worktree.
    pub(crate) pipes: BTreeSet<PathBuf>,
    pub(crate) unseen: Unseen,
    /// Only what has git run programs counts for now: the rest may be much.
    pub(crate) is_brief: bool,
}

impl Repositories {
    /// How much there is to be looked at.
    pub(crate) fn len(&self) -> usize {
        let astray = self.astray.len() + self.misplaced.len();
        let files = astray + self.away.len() + self.files.len() + self.pipes.len();
        let files = files + self.gitfiles.len();
        self.found.len() + self.worktrees.len() + files
    }

    /// Whether the index of a repository was read.
    pub(crate) fn has_read(&self, directory: &Path) -> bool {
        let gitlinks = self.gitlinks.get(directory);
        gitlinks.is_some_and(|gitlinks| !gitlinks.is_unread)
    }

    /// The indexes by which git at the top comes to other repositories, and where each of these has its `.git`,
    /// or the directory of which all counts.
    pub(crate) fn leading(&self) -> impl Iterator<Item = (PathBuf, Vec<PathBuf>)> {
        let followed = self.followed.iter().filter(|(_, is_reached)| **is_reached);
        followed.filter_map(|((directory, root), _)| {
            let gitlinks = self.gitlinks.get(directory)?;
            let roots: Vec<&PathBuf> = root.iter().chain(&gitlinks.roots).collect();
            let place = |root: &&PathBuf, (link, is_whole): &(PathBuf, bool)| match is_whole {
                true => root.join(link),
                false => root.join(link).join(".git"),
            };
            let links = gitlinks.links.iter();
            let places = links.flat_map(|link| roots.iter().map(move |root| place(root, link)));
            let places = places.collect();
            let is_leading = !gitlinks.links.is_empty();
            is_leading.then(|| (directory.join("index"), places))
        })
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
    /// Directories that git goes to without a look at what they are.
    cached: Vec<index::Cached>,
    /// There was no time to read it.
    is_unread: bool,
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
    /// Where the repositories of the workspace and of what is given like it have their files.
    pub(crate) own: &'a [PathBuf],
    /// Where git may find the remotes of the workspace's repository as paths.
    pub(crate) remotes: &'a [PathBuf],
    pub(crate) bounds: &'a Bounds<'a>,
    /// When the baseline was taken, if the session has begun.
    pub(crate) since: Option<SystemTime>,
    pub(crate) repositories: Repositories,
}

impl Search<'_> {
    /// What git comes to from the top.
    pub(crate) fn look_from_top(&mut self, git: &Git) {
        // First: a session cannot make that take long.
        self.look_from_above();
        self.look_at(self.workspace, true, 0);
        for directory in &git.directories {
            let root = (directory == self.workspace).then_some(self.workspace);
            self.add(directory, root, true, 0);
        }
        if git.refused.is_some() {
            let dot_git = self.workspace.join(".git");
            self.repositories.astray.insert(dot_git, true);
        }
        for path in self.remotes {
            let named = absolute(path);
            if self.is_writable(&named) {
                self.repositories.links.insert(named);
            }
            self.look_at_remote(path, 0);
        }
        // One that lies elsewhere has a worktree of its own beside it, which may hold the workspace.
        if let Some((outside, root)) = git
            .outside
            .as_deref()
            .and_then(|it| Some((it, it.parent()?)))
        {
            self.follow(outside, Some(root), true, 0);
        }
        if self.since.is_some() {
            self.look_at_caches();
        }
    }

    /// The repository at the path of a remote, or at the name of one that is not there any more: `git push` runs
    /// its hooks.
    fn look_at_remote(&mut self, path: &Path, depth: usize) {
        let Ok(real) = nofollow::real(path) else {
            return;
        };
        if !self.is_writable(&real) || real == self.workspace {
            return;
        }
        self.look_at(&real, true, depth);
        if looks_like_repository(&real) {
            self.add(&real, None, true, depth);
        }
    }

    /// Links in the place of directories that an untracked cache names: `git status` would list what they
    /// lead to, and write the names that it finds there into the index. It goes there if what is around
    /// such a link is as the cache says.
    fn look_at_caches(&mut self) {
        let mut astray = Vec::new();
        'indexes: for ((directory, root), is_reached) in &self.repositories.followed {
            let Some(gitlinks) = self.repositories.gitlinks.get(directory) else {
                continue;
            };
            let index = directory.join("index");
            for root in root.iter().chain(&gitlinks.roots) {
                for cached in &gitlinks.cached {
                    if self.bounds.are_reached() {
                        let why = "there was no time to look at all directories that it names";
                        self.repositories.unseen.add(&index, why);
                        break 'indexes;
                    }
                    let path = root.join(&cached.path);
                    let is_link = |path: &Path| {
                        fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
                    };
                    let is_listed = |around: &Path| {
                        let metadata = fs::symlink_metadata(around);
                        let seconds = metadata.map(|it| it.mtime().cast_unsigned() & 0xffff_ffff);
                        seconds.is_ok_and(|seconds| seconds == u64::from(cached.listed))
                    };
                    if is_link(&path) && path.parent().is_some_and(is_listed) {
                        astray.push((index.clone(), *is_reached));
                        continue 'indexes;
                    }
                }
            }
        }
        astray.retain(|(index, _)| self.is_writable(index));
        for (index, is_reached) in astray {
            *self.repositories.astray.entry(index).or_default() |= is_reached;
        }
    }

    /// The gitlinks of repositories that the workspace lies in: git there goes into it by itself. These
    /// count whatever the workspace's own `.git` is, which a session can make.
    fn look_from_above(&mut self) {
        for root in self.workspace.ancestors().skip(1) {
            let dot_git = root.join(".git");
            let Ok(metadata) = fs::symlink_metadata(&dot_git) else {
                continue;
            };
            let directory = match metadata.is_file() {
                true => named_directory(&dot_git),
                false => nofollow::real(&dot_git).ok(),
            };
            if let Some(directory) = directory {
                self.follow(&directory, Some(root), true, 0);
            }
        }
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

        // Git writes such a file only where the repository has its files.
        let other = leads_to
            .as_ref()
            .and_then(|to| other_worktree(to, root).or_else(|| self.trackable(&dot_git, to)));
        // A submodule of a repository above has its own there, which says so: no session made it say that.
        let is_of_above =
            leads_away && !is_link && leads_to.as_ref().is_some_and(|to| has_worktree(to, root));
        if is_of_above {
            self.repositories.files.insert(dot_git);
        } else if is_link || leads_to.is_none() || (leads_away && is_reached) {
            self.repositories.astray.insert(dot_git, is_reached);
        } else if leads_away {
            self.repositories.away.insert(dot_git);
        } else if let Some(other) = other {
            let misplaced = &mut self.repositories.misplaced;
            misplaced.entry(dot_git).or_insert((other, false)).1 |= is_reached;
        } else {
            self.repositories.files.insert(dot_git);
        }
        if let Some(real) = leads_to.filter(|_| !leads_away) {
            self.add(&real, Some(root), is_reached, depth);
        }
    }

    /// The repository that a `.git` file leads to, if its files may be files of a branch, or if a link of a
    /// branch may lead elsewhere: it is looked at now, and has other settings when that branch is checked out.
    /// Where git has the repositories of submodules and worktrees, it has no files of branches.
    fn trackable(&self, dot_git: &Path, repository: &Path) -> Option<PathBuf> {
        let root = dot_git.parent()?;
        let named = named_path(dot_git)?;
        let is_straight = absolute(&named) == repository && !turns_back(&named, root);
        let is_part = |owner: &Path| {
            let below = repository.strip_prefix(owner);
            let is_git =
                |below: &Path| below.starts_with("modules") || below.starts_with("worktrees");
            below.is_ok_and(is_git)
        };
        let is_own = |own: &PathBuf| is_part(own) || (repository == own && root == self.workspace);
        let has_git = |it: &Path| fs::symlink_metadata(it.join(".git")).is_ok();
        let writable = |it: &&Path| self.is_writable(it);
        // In a directory above the file itself: whoever replaces that takes the file away, too. Or in one
        // that is in no worktree, so that no branch replaces it.
        let is_kept_in = |owner: &Path| {
            let mut above = owner.ancestors().skip(1).take_while(writable);
            is_part(&owner.join(".git")) && (root.starts_with(owner) || !above.any(has_git))
        };
        let mut owners = repository.ancestors().take_while(writable);
        let is_kept = is_straight && (self.own.iter().any(is_own) || owners.any(is_kept_in));
        (!is_kept).then(|| repository.to_owned())
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
            self.modules_of(directory, is_reached, depth);
            let worktrees = nofollow::real(&directory.join("worktrees")).ok();
            if let Some(worktrees) = worktrees.filter(|path| self.is_writable(path)) {
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
        let is_new = self.repositories.worktrees.insert(directory.to_owned());
        self.follow(directory, root, is_reached, depth);
        // Git has the submodules of a worktree there, and not beside those of the repository.
        if is_new {
            self.modules_of(directory, is_reached, depth);
            self.among_worktree(directory, is_reached, depth);
        }
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
            let mut read = self.gitlinks(directory);
            self.repositories.count += read.links.len();
            if self.is_flood(&directory.join("index")) {
                read.links.clear();
                read.astray.push(directory.join("index"));
            }
            let read = Rc::new(read);
            let all = &mut self.repositories.gitlinks;
            all.insert(directory.to_owned(), Rc::clone(&read));
            read
        });
        // An index that leads astray is found also where nobody knows its worktree, or no session can
        // write there.
        // One of a repository above is not a session's.
        for path in &gitlinks.astray {
            if !self.is_writable(path) {
                self.repositories.unseen.add(path, UNREAD);
                continue;
            }
            let astray = self.repositories.astray.entry(path.clone());
            *astray.or_default() |= is_reached;
        }
        let roots = root
            .into_iter()
            .chain(gitlinks.roots.iter().map(PathBuf::as_path));
        for root in roots {
            if is_reached && root != self.workspace {
                for path in remotes_below(root, std::iter::empty()) {
                    self.look_at_remote(&path, depth + 1);
                }
            }
            for (link, is_whole) in &gitlinks.links {
                if self.is_over(&directory.join("index"), MANY_SUBMODULES) {
                    return;
                }
                const MOST: usize = 4096;
                let named = absolute(&root.join(link));
                let real = nofollow::real(&named);
                if self.is_diverted(&named, root, real.as_deref().ok()) {
                    if self.repositories.diverted.len() < MOST {
                        self.repositories.diverted.insert(named);
                    } else {
                        // So many are nobody's work.
                        let index = directory.join("index");
                        self.repositories.astray.insert(index, is_reached);
                    }
                    continue;
                }
                let nested = real.unwrap_or(named);
                if *is_whole && !self.is_writable(&nested) {
                    // What a session can write may lie in it.
                    let within = |top: &&PathBuf| top.starts_with(&nested);
                    for top in self.writable.iter().filter(within) {
                        self.walk(vec![top.clone()], DEEP, is_reached, depth + 1);
                    }
                }
                if self.is_writable(&nested) && nested != *root {
                    if self.repositories.links.len() < MOST {
                        self.repositories.links.insert(nested.clone());
                    }
                    match is_whole {
                        // If it is there, git looks at what is in it.
                        true => self.walk(vec![nested], DEEP, is_reached, depth + 1),
                        false => self.look_at(&nested, is_reached, depth + 1),
                    }
                }
            }
        }
    }

    /// Whether an index that a session wrote is one too many.
    fn is_flood(&self, index: &Path) -> bool {
        let is_written = |since: SystemTime| {
            let metadata = fs::symlink_metadata(index);
            self.is_writable(index) && metadata.is_ok_and(|it| changed(&it) >= since)
        };
        self.repositories.count > MOST_GITLINKS && self.since.is_some_and(is_written)
    }

    /// Whether a link, there or on the way from the worktree, takes git elsewhere than an index says:
    /// where no session can write, or where nothing is yet.
    fn is_diverted(&self, named: &Path, root: &Path, real: Option<&Path>) -> bool {
        if !self.is_writable(named) || real.is_some_and(|real| self.is_writable(real)) {
            return false;
        }
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
        let mut below = named.ancestors().take_while(|path| *path != root);
        real.is_some() || below.any(is_link)
    }

    /// What an index says, and the one that it adds to.
    fn gitlinks(&mut self, directory: &Path) -> Gitlinks {
        let settings = settings_of(directory);
        let named = settings.iter();
        let named = named.flat_map(|all| named_worktrees(directory, all));
        let mut gitlinks = Gitlinks {
            roots: named.filter_map(|it| nofollow::real(&it).ok()).collect(),
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
                    gitlinks.is_unread = true;
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
            gitlinks.cached.extend(links.cached);
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
