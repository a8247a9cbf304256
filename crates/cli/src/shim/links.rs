//! The links themselves, of the user and of the machine.

use std::{
    env, fs,
    fs::DirBuilder,
    io,
    os::unix::fs::{DirBuilderExt as _, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use stockade_config::{agents, shown, shown_path};
use stockade_sys::mark::is_stockade;
use stockade_wall::Starter;

use crate::{context, exit::refused};

/// The name of this program, which is nobody's shim.
pub(super) const PROGRAM: &str = "stockade";

/// Where the shims of all users are.
pub(super) const SYSTEM: &str = "/usr/local/bin";

/// Where the devcontainer feature makes them: npm installs agents as `/usr/local/bin/claude`.
const IMAGE: &str = "/usr/local/share/stockade/shims";

/// A directory with shims in it.
#[derive(Debug)]
pub(crate) struct Shims {
    pub(crate) directory: PathBuf,
}

/// A link of an agent's name to Stockade.
#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// The shims of the user, then those of an image and of the machine.
pub(crate) fn all() -> Vec<Shim> {
    let user = context::data().map(|data| Shims::of_user(&data).list());
    let directory = IMAGE.into();
    let image = Shims { directory }.list();
    let system = Shims::of_system().list();
    let all = user.unwrap_or_default().into_iter();
    all.chain(image).chain(system).collect()
}

/// What the shims of the user, and those of all users for agents, lead to. Whatever lies in the user's
/// directory counts: shells run it, also if a session has replaced what it leads to.
pub(crate) fn starters(data: &Path) -> impl Iterator<Item = Starter> {
    let user = Shims::of_user(data).directory;
    let user = fs::read_dir(user).into_iter().flatten().flatten();
    let user = user.map(|entry| (entry.path(), ["", ""]));
    let of_all = [SYSTEM, IMAGE].map(Path::new).into_iter();
    let of_all = of_all.flat_map(|directory| agents().map(|agent| directory.join(agent)));
    let of_all = of_all
        .filter(|path| is_ours(path))
        .map(|path| (path, ["sudo ", "--system "]));
    user.chain(of_all).map(|(path, [sudo, option])| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Starter {
            renewal: format!("{sudo}stockade shim add {option}{}", shown(&name)),
            name: format!("the shim {}", shown_path(&path)),
            path,
        }
    })
}

/// Whether there is a shim of this name that leads to this very program.
pub(super) fn leads_here(name: &str) -> bool {
    let this = fs::canonicalize("/proc/self/exe").ok();
    let user = context::data().ok().map(|data| Shims::of_user(&data));
    let mut shims = user.into_iter().chain([Shims::of_system()]);
    let leads = |shims: Shims| {
        let path = shims.path(name);
        path.is_symlink() && fs::canonicalize(path).ok() == this
    };
    this.is_some() && shims.any(leads)
}

impl Shim {
    /// It does not if Stockade was removed, or moved.
    pub(crate) fn leads_to_stockade(&self) -> bool {
        is_stockade(&self.path)
    }
}

impl Shims {
    pub(crate) fn of_user(data: &Path) -> Self {
        let directory = data.join("shims");
        Self { directory }
    }

    pub(super) fn of_system() -> Self {
        let directory = SYSTEM.into();
        Self { directory }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Those that are Stockade's, in the order of their names.
    pub(crate) fn list(&self) -> Vec<Shim> {
        let entries = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let shim = |entry: fs::DirEntry| {
            let (name, path) = (entry.file_name().into_string().ok()?, entry.path());
            (name != PROGRAM && is_ours(&path)).then_some(Shim { name, path })
        };
        let mut all: Vec<Shim> = entries.filter_map(shim).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Refuses a name under which something else lies. Among the user's shims nothing else may be, since
    /// shells would run it.
    pub(super) fn check_free(&self, name: &str) -> Result<()> {
        let is_system = self.directory == Path::new(SYSTEM);
        let entries = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let mut others = entries.filter(|entry| {
            let is_meant = !is_system || entry.file_name() == name;
            is_meant && !is_ours(&entry.path())
        });
        let Some(other) = others.next() else {
            return Ok(());
        };
        let what = format!(
            "{} exists, and is not Stockade's",
            shown_path(&other.path())
        );
        Err(refused(
            what,
            if is_system {
                format!(
                    "move it elsewhere in PATH; or let each user run `stockade shim add {name}`"
                )
            } else {
                "remove it first".to_owned()
            },
        ))
    }

    /// Makes a shim, or renews one that leads elsewhere.
    pub(super) fn add(&self, name: &str, program: &Path) -> Result<Shim> {
        let (path, fresh) = (self.path(name), self.path(&format!(".{name}.new")));
        let make = || -> io::Result<()> {
            let mut builder = DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(&self.directory)?;
            match symlink(program, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => return outcome,
            }
            if fs::read_link(&path).is_ok_and(|text| text == program) {
                return Ok(());
            }
            let _ = fs::remove_file(&fresh);
            symlink(program, &fresh)?;
            fs::rename(&fresh, &path)
        };
        make().with_context(|| format!("cannot make {}", shown_path(&path)))?;
        let name = name.to_owned();
        Ok(Shim { name, path })
    }
}

/// Whether this is a link that leads to Stockade, or did when there was one.
fn is_ours(path: &Path) -> bool {
    let Ok(text) = fs::read_link(path) else {
        return false;
    };
    match fs::metadata(path) {
        Ok(_) => is_stockade(path),
        Err(_) => text.file_name().is_some_and(|name| name == PROGRAM),
    }
}

/// What shims lead to: this program, by the name under which it was found, which an update keeps.
pub(super) fn this_program(for_all: bool) -> Result<PathBuf> {
    let real = fs::canonicalize("/proc/self/exe").context("this program's own file is gone")?;
    let is_this = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|it| it == real);
    let word = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let named = if word.components().count() > 1 {
        env::current_dir().ok().map(|here| here.join(word))
    } else {
        in_path(&word).find(is_this)
    };
    let named = named.filter(is_this).unwrap_or_else(|| real.clone());
    // Not by way of `..` or of what is the shell's own.
    let program = match named.file_name() {
        Some(name) if name == PROGRAM => {
            let parent = named.parent().and_then(|it| fs::canonicalize(it).ok());
            parent.map_or(real, |parent| parent.join(PROGRAM))
        }
        _ => real,
    };
    let home = context::home()
        .ok()
        .and_then(|home| fs::canonicalize(home).ok());
    if for_all && home.is_some_and(|home| program.starts_with(home)) {
        return Err(refused(
            format!(
                "{} is in your home directory, where others cannot run it",
                shown_path(&program)
            ),
            "install Stockade for all users first: see docs/packages.md",
        ));
    }
    Ok(program)
}

/// The paths that a name may have, by `PATH`.
fn in_path(name: &Path) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let here = env::current_dir().unwrap_or_default();
    let name = name.to_owned();
    directories
        .into_iter()
        .map(move |directory| here.join(directory).join(&name))
}

/// What a shell would run: also by a relative directory.
pub(super) fn first_in_path(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let is_file = fs::metadata(path).is_ok_and(|it| it.is_file());
        is_file && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    in_path(Path::new(name)).find(is_program)
}
