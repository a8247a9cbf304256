//! Where the dependencies of the projects in a workspace are: in directories with known names, and in
//! environments of Python and conda, which have any name and a mark in them.
//!
//! Where there is no store, nothing is linked from one, and no more is looked at than the directories that
//! are listed anyway. A session may have closed a directory (`chmod 0`) that it opens again later. What
//! cannot be looked at for that reason counts as shared.

use std::{
    collections::HashSet,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Instant,
};

use super::{
    By,
    links::{self, Unresolved, is_closed},
};
use crate::{facts::is_in, nofollow};

/// What environments of Python are usually called.
pub(super) const PYTHON: &[&str] = &[".venv", "venv"];
/// What pnpm and bun install to.
pub(super) const NODE: &[&str] = &["node_modules", ".pnpm-store"];
/// Others, which hold environments or are one.
const OTHERS: &[&str] = &[
    ".conda",
    ".direnv",
    ".hatch",
    ".nox",
    ".tox",
    "__pypackages__",
];
/// pixi's environments are not all that it has in its directory.
const PIXI: (&str, &str) = (".pixi", "envs");

/// What every environment of Python and of conda has in it.
const MARKS: &[&str] = &["pyvenv.cfg", CONDA];
pub(super) const CONDA: &str = "conda-meta";
/// What projects have in them: somebody works there, although it is an environment.
const PROJECTS: &[&str] = &[
    ".git",
    "Cargo.toml",
    "go.mod",
    "package.json",
    "pyproject.toml",
    "setup.py",
];

/// Projects in a workspace are so deep in it at most.
const DEEPEST: usize = 2;
pub(super) const MOST_DIRECTORIES: usize = 64;
/// The same, if there is a store.
const MOST_WITH_STORE: usize = 4096;
/// In so many directories that are not listed, marks are looked for.
const MOST_MARKS: usize = 4 * MOST_WITH_STORE;

/// Whether a directory has a name that only dependencies have.
pub(super) fn is_dependencies(path: &Path) -> bool {
    let mut names = [PYTHON, NODE, OTHERS].into_iter().flatten();
    path.file_name()
        .is_some_and(|it| names.any(|name| it == *name))
        || path.ends_with(Path::new(PIXI.0).join(PIXI.1))
}

/// Whether a directory is an environment, and nothing besides.
pub(super) fn is_environment(path: &Path) -> bool {
    has_mark(path) && !has(path, PROJECTS)
}

/// Whether a directory is an environment.
pub(super) fn has_mark(path: &Path) -> bool {
    has(path, MARKS)
}

fn has(path: &Path, names: &[&str]) -> bool {
    let mut paths = names.iter().map(|name| path.join(name));
    paths.any(|it| fs::symlink_metadata(it).is_ok())
}

/// What is to be looked at in a workspace.
pub(super) struct Places {
    /// Directories of dependencies, those at the top first. A link leads to the directory itself, if
    /// the command can write that.
    pub(super) found: Vec<(PathBuf, By)>,
    /// Directories that the user's own rights do not let in.
    pub(super) closed: Vec<PathBuf>,
    /// Links that lead elsewhere for each process.
    pub(super) astray: Vec<PathBuf>,
    /// The workspace, if there are more directories in it than were looked at.
    pub(super) unseen: Option<PathBuf>,
}

/// Those of one workspace, while they are looked for.
struct Walk<'a> {
    workspace: &'a Path,
    writable: &'a [PathBuf],
    has_store: bool,
    until: Instant,
    /// Directories in which marks were looked for.
    marks: usize,
    /// On the way of links that could not be resolved.
    steps: usize,
    places: Places,
}

impl Places {
    pub(super) fn find(
        workspace: &Path,
        has_store: bool,
        writable: &[PathBuf],
        until: Instant,
    ) -> Self {
        let places = Self {
            found: Vec::new(),
            closed: Vec::new(),
            astray: Vec::new(),
            unseen: None,
        };
        let mut walk = Walk {
            workspace,
            writable,
            has_store,
            until,
            marks: 0,
            steps: 0,
            places,
        };
        walk.go();
        walk.places
    }
}

impl Walk<'_> {
    fn go(&mut self) {
        let most = match self.has_store {
            true => MOST_WITH_STORE,
            false => MOST_DIRECTORIES,
        };
        let mut seen = HashSet::new();
        let mut level = vec![self.workspace.to_owned()];
        for _ in 0..=DEEPEST {
            let mut next = Vec::new();
            for directory in level {
                if seen.len() >= most {
                    // Without a store, hardly anything is linked, and nobody is warned.
                    let unseen = self.has_store.then(|| self.workspace.to_owned());
                    self.places.unseen = unseen;
                    return;
                }
                if seen.insert(directory.clone()) {
                    next.extend(self.list(&directory));
                }
            }
            level = next;
        }
        for directory in level {
            self.look_for_marks(directory);
        }
    }

    /// Takes what a directory has of dependencies, and gives the other directories in it.
    fn list(&mut self, directory: &Path) -> Vec<PathBuf> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.is_refused(directory, &error);
                return Vec::new();
            }
        };
        let (mut below, mut is_marked, mut is_project) = (Vec::new(), false, false);
        for entry in entries.flatten() {
            if Instant::now() >= self.until {
                self.places.unseen = Some(self.workspace.to_owned());
                // A session may have made very many files beside them.
                self.take_by_name(directory);
                break;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let is_one_of = |names: &[&str]| names.iter().any(|it| name == *it);
            is_marked |= is_one_of(MARKS);
            is_project |= is_one_of(PROJECTS);
            let kind = entry.file_type();
            let is_directory = kind.as_ref().is_ok_and(fs::FileType::is_dir);
            let is_link = kind.is_ok_and(|it| it.is_symlink());
            if !is_directory && !is_link {
                continue;
            }
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if is_dependencies(&path) {
                self.take(path, is_link);
            } else if name == PIXI.0 {
                let around = self.resolved(path, is_link);
                if let Some(around) = around {
                    self.take(around.join(PIXI.1), true);
                }
            } else if !is_hidden {
                below.extend(self.resolved(path, is_link));
            } else if self.has_store && name != ".git" {
                let place = self.resolved(path, is_link);
                place.into_iter().for_each(|it| self.look_for_marks(it));
            }
        }
        let is_top = directory == self.workspace;
        if is_marked && (!is_top || self.has_store) {
            self.places.found.push((directory.to_owned(), By::Link));
            // What lies in an environment is no project.
            if !is_top && !is_project {
                below.clear();
            }
        }
        below
    }

    /// Takes a directory of dependencies, or what a link of such a name leads to.
    fn take(&mut self, path: PathBuf, is_link: bool) {
        let by = if is_link { By::Link } else { By::Name };
        let place = self.resolved(path, is_link).map(|place| (place, by));
        let is_new = |place: &(PathBuf, By)| !self.places.found.contains(place);
        let place = place.filter(is_new);
        self.places.found.extend(place);
    }

    fn take_by_name(&mut self, directory: &Path) {
        for name in [PYTHON, NODE, OTHERS].into_iter().flatten() {
            let path = directory.join(name);
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if metadata.is_dir() || metadata.is_symlink() {
                self.take(path, metadata.is_symlink());
            }
        }
    }

    /// Takes a directory that is not listed, if it is an environment.
    fn look_for_marks(&mut self, directory: PathBuf) {
        if !self.has_store {
            return;
        }
        self.marks += 1;
        if self.marks > MOST_MARKS {
            self.places.unseen = Some(self.workspace.to_owned());
            return;
        }
        for mark in MARKS {
            match fs::symlink_metadata(directory.join(mark)) {
                Ok(_) => return self.places.found.push((directory, By::Link)),
                Err(error) => {
                    if self.is_refused(&directory, &error) {
                        return;
                    }
                }
            }
        }
    }

    /// The directory that a path, or the link there, leads to.
    fn resolved(&mut self, path: PathBuf, is_link: bool) -> Option<PathBuf> {
        if !is_link {
            return Some(path);
        }
        match nofollow::real(&path) {
            Ok(real) => (is_in(&real, self.writable) && real.is_dir()).then_some(real),
            Err(_) => {
                if self.has_store {
                    let found = links::follow(&path, &mut self.steps);
                    match found {
                        Unresolved::Nowhere => {}
                        Unresolved::Closed(directory) => self.places.closed.push(directory),
                        Unresolved::Anywhere => self.places.astray.push(path),
                    }
                }
                None
            }
        }
    }

    /// Whether the user's own rights do not let into a directory. It is closed, or one above it.
    fn is_refused(&mut self, directory: &Path, error: &io::Error) -> bool {
        if !self.has_store || error.kind() != ErrorKind::PermissionDenied {
            return false;
        }
        let above = directory.ancestors();
        let above = above.take_while(|it| is_in(it, self.writable));
        let closed = above.filter(|it| is_closed(it)).last();
        self.places.closed.extend(closed.map(Path::to_owned));
        closed.is_some()
    }
}
