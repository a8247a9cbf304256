//! Python environments outside the project: those of the caller's shell, and that of the program.
//!
//! An environment names its interpreter in `pyvenv.cfg`. In a place that the command can write, a
//! session before may have written that: such an environment is in view, and what it names is not
//! believed. Nor is it where sessions of other workspaces could write. (What its interpreter usually
//! is, a toolchain or the system's, is in view, too.)

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{
    Found, Installation, Kind,
    place::look,
    toolchains::{IN_SYSTEM, Surroundings, Toolchains},
    variable,
};
use crate::nofollow;

/// Variables that name an environment, what every environment of that kind has in it, and variables
/// that belong to them.
pub(super) const NAMED: &[(&str, &str)] =
    &[("VIRTUAL_ENV", SETTINGS), ("CONDA_PREFIX", "conda-meta")];
const COMPANIONS: &[&str] = &[
    "VIRTUAL_ENV_PROMPT",
    "CONDA_DEFAULT_ENV",
    "CONDA_SHLVL",
    "CONDA_PROMPT_MODIFIER",
];

const SETTINGS: &str = "pyvenv.cfg";

impl Toolchains {
    /// Adds the environments that are in use.
    pub(super) fn add_environments(
        &mut self,
        programs: &[&Installation],
        surroundings: Surroundings<'_>,
    ) {
        for (name, mark) in NAMED {
            let Some(named) = variable(surroundings.environment, name).map(Path::new) else {
                continue;
            };
            if !named.is_absolute() {
                continue;
            }
            match self.add_environment(named, mark, surroundings) {
                Ok(()) => self.variables.push(name),
                Err(why) => self.refused.push((name, named.to_owned(), why)),
            }
        }
        let is_set = |name: &&&str| variable(surroundings.environment, name).is_some();
        self.variables.extend(COMPANIONS.iter().filter(is_set));
        let path = variable(surroundings.environment, "PATH").unwrap_or_default();
        let of_path = std::env::split_paths(path).filter(|it| it.is_absolute() && !is_system(it));
        let of_programs = programs.iter().filter_map(|it| it.program.at.parent());
        for bin in of_path.chain(of_programs.map(Path::to_owned)) {
            // `E/bin/python` is a link to the interpreter, which looks for `E/pyvenv.cfg`.
            let environment = bin.parent().filter(|it| it.join(SETTINGS).is_file());
            if let Some(environment) = environment {
                // One that cannot be shown is told as a directory of the search path, and the
                // program alone is shown all the same.
                let _ = self.add_environment(environment, SETTINGS, surroundings);
            }
        }
    }

    fn add_environment(
        &mut self,
        named: &Path,
        mark: &str,
        surroundings: Surroundings<'_>,
    ) -> Result<(), &'static str> {
        let Some(found) = look(named) else {
            return Ok(());
        };
        let is_written_inside = (surroundings.writable.iter()).any(|it| found.real.starts_with(it));
        let real = found.real.clone();
        let is_in_system = IN_SYSTEM.iter().any(|it| real.starts_with(it));
        // It may lie in another workspace, where a session put a link to anything in its place.
        if !is_written_inside && !is_in_system && !real.join(mark).exists() {
            return Err("it is no environment");
        }
        self.show(named, found, surroundings)?;
        if is_written_inside || surroundings.earlier.could_write(&real.join(mark)) {
            return Ok(());
        }
        for base in interpreters(&real) {
            // One that cannot be shown is missed when it is needed.
            if let Some(found) = look(&base) {
                let _ = self.show(&base, found, surroundings);
            }
        }
        Ok(())
    }
}

/// Whether everybody sees a directory of the search path, so that no look is needed.
fn is_system(directory: &Path) -> bool {
    directory.components().count() == 2 || IN_SYSTEM.iter().any(|it| directory.starts_with(it))
}

/// The installations of the interpreter of an environment: the one that its settings name, and the
/// one that its link leads to.
fn interpreters(environment: &Path) -> Vec<PathBuf> {
    let settings = nofollow::read(&environment.join(SETTINGS)).unwrap_or_default();
    let home = settings.split(|byte| *byte == b'\n').find_map(|line| {
        let (key, value) = line.split_at(line.iter().position(|byte| *byte == b'=')?);
        let value = value.get(1..)?.trim_ascii();
        (key.trim_ascii() == b"home").then(|| PathBuf::from(OsStr::from_bytes(value)))
    });
    let linked = fs::canonicalize(environment.join("bin/python"));
    let linked = linked.ok().and_then(|it| Some(it.parent()?.to_owned()));
    let mut all: Vec<PathBuf> = Vec::new();
    for directory in home.into_iter().chain(linked) {
        let prefix = directory.parent().filter(|_| directory.ends_with("bin"));
        // Only what is an installation of Python's: `P/bin` beside `P/lib/python3.x`.
        let prefix = prefix.filter(|prefix| prefix.is_absolute() && is_installation(prefix));
        all.extend(prefix.map(Path::to_owned).filter(|it| !all.contains(it)));
    }
    all
}

fn is_installation(prefix: &Path) -> bool {
    let entries = fs::read_dir(prefix.join("lib")).into_iter().flatten();
    let mut names = entries.flatten().map(|entry| entry.file_name());
    names.any(|name| name.as_bytes().starts_with(b"python"))
        && look(prefix).is_some_and(|it: Found| it.kind == Kind::Directory)
}
