//! Stores that package managers link from. They are the user's own: no session can remove one, so they
//! say better than the workspace whether files in it can be linked.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use super::places::{CONDA, NODE, PYTHON, has_mark};
use crate::facts::variable;

/// Where package managers install what they link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    /// Environments of Python.
    Python,
    /// Environments of conda, which can have any name.
    Conda,
    Node,
}

/// What they link to, a variable, a place in the home (or of the system), and a part of what either
/// names.
const STORES: &[(Into, &str, &str, &str)] = &[
    (Into::Python, "UV_CACHE_DIR", ".cache/uv", ""),
    (Into::Python, "XDG_CACHE_HOME", ".cache", "uv"),
    (Into::Conda, "", ".conda/pkgs", ""),
    (Into::Conda, "MAMBA_ROOT_PREFIX", "micromamba", "pkgs"),
    (Into::Conda, "", ".local/share/mamba", "pkgs"),
    (Into::Conda, "", "miniconda3", "pkgs"),
    (Into::Conda, "", "anaconda3", "pkgs"),
    (Into::Conda, "", "miniforge3", "pkgs"),
    (Into::Conda, "", "mambaforge", "pkgs"),
    (Into::Conda, "", "/opt/conda", "pkgs"),
    (Into::Conda, "", "/opt/miniconda3", "pkgs"),
    (Into::Conda, "", "/opt/anaconda3", "pkgs"),
    (Into::Conda, "", "/opt/miniforge3", "pkgs"),
    (Into::Conda, "RATTLER_CACHE_DIR", ".cache/rattler", ""),
    (Into::Conda, "PIXI_CACHE_DIR", ".cache/pixi", ""),
    (Into::Conda, "XDG_CACHE_HOME", ".cache", "rattler"),
    (Into::Node, "PNPM_HOME", ".local/share/pnpm", "store"),
    (Into::Node, "XDG_DATA_HOME", ".local/share", "pnpm/store"),
    (Into::Node, "DENO_DIR", ".cache/deno", "npm"),
    (Into::Node, "XDG_CACHE_HOME", ".cache", "deno/npm"),
    (Into::Node, "BUN_INSTALL", ".bun", "install/cache"),
    (
        Into::Node,
        "BUN_INSTALL_CACHE_DIR",
        ".bun/install/cache",
        "",
    ),
];

/// conda's stores, with commas between them.
const CONDA_STORES: &str = "CONDA_PKGS_DIRS";
/// conda's program, two directories below an installation of it.
const CONDA_PROGRAM: &str = "CONDA_EXE";

/// pnpm's store where the home is on another file system.
const STORE_ABOVE: &str = ".pnpm-store";

/// How a directory was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::facts) enum By {
    /// By its own name, which says what is installed there.
    Name,
    /// By a link, or behind one. A session chooses the name of what that leads to.
    Link,
}

/// Whether the user has a store on the file system of a directory of dependencies, or any for another
/// directory. No session can change that.
pub(in crate::facts) fn has_store(
    place: &Path,
    by: By,
    home: &Path,
    environment: &[(OsString, OsString)],
) -> bool {
    let Ok(device) = fs::metadata(place).map(|it| it.dev()) else {
        return true;
    };
    let is_named =
        |names: &[&str]| by == By::Name && names.iter().any(|name| place.ends_with(name));
    let (is_python, is_node) = (is_named(PYTHON), is_named(NODE) && !has_mark(place));
    // Whole looks at environments of pip would be slow for everybody who has conda, too.
    let is_condas = || !is_python || fs::symlink_metadata(place.join(CONDA)).is_ok();
    let is_meant = |into: Into| match into {
        Into::Python => !is_node,
        Into::Conda => !is_node && is_condas(),
        Into::Node => !is_python,
    };
    let is_store =
        |store: PathBuf| fs::metadata(store).is_ok_and(|it| it.is_dir() && it.dev() == device);
    let stores = STORES.iter().filter(|(into, ..)| is_meant(*into));
    let mut stores = stores.flat_map(|(_, name, usual, part)| {
        let named = variable(environment, name).map(PathBuf::from);
        let roots = [named, Some(home.join(usual))].into_iter().flatten();
        roots.map(move |root| root.join(part))
    });
    let mut above = place.ancestors().map(|it| it.join(STORE_ABOVE));
    stores.any(is_store)
        || is_meant(Into::Conda) && of_conda(environment).into_iter().any(is_store)
        || is_meant(Into::Node) && above.any(is_store)
}

/// The stores that conda's variables name.
fn of_conda(environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let listed = variable(environment, CONDA_STORES).unwrap_or_default();
    let listed = listed.as_bytes().split(|byte| b",:".contains(byte));
    let listed = listed.filter(|it| !it.is_empty()).map(OsStr::from_bytes);
    let program = variable(environment, CONDA_PROGRAM).map(Path::new);
    let beside = program.and_then(|it| Some(it.parent()?.parent()?.join("pkgs")));
    listed.map(PathBuf::from).chain(beside).collect()
}
