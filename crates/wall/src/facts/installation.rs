//! Where a command's program is installed, and what has to be seen of that for it to run.
//!
//! Agents are installed in many ways: as one file below a link with a version
//! (`~/.local/bin/claude`), by npm below a prefix of the user's, by a manager of versions
//! (nvm, fnm, volta, asdf), in a Python environment of their own (pipx, uv). All of it lies
//! in the home directory, which is hidden. What is needed is found from the file itself:
//!
//! - a Python environment, if it is in one (`pyvenv.cfg` above it);
//! - the prefix of an installation (`P/bin/x` beside `P/lib`), or its whole `node_modules`;
//! - otherwise the file alone;
//! - and the same for its interpreter, if it is a script.
//!
//! What lies in places that the command can write, it may have written in a session before this
//! one, and must not decide what is shown. So a link there that leads out of them is not
//! followed; of a script there only the usual interpreters are, by their names; and in the
//! agent's own directory nothing around it is believed: what holds the program there is
//! protected as a whole. Where sessions of other workspaces could write, the same holds of scripts,
//! and of what a link there leads to only the file itself is shown.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::Access;
use stockade_sys::mark::is_stockade;

use super::{
    EarlierSessions, Found, Kind, may,
    place::{is_in, is_led_from_inside, links, look},
};
use crate::plan::environment::USUAL_PATH;

/// How the program that a command names is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The file under the name by which it was found. Its own name may be a link.
    pub program: Found,
    /// Files and directories that it needs.
    pub parts: Vec<Found>,
    /// Directories of interpreters that the caller's `PATH` only leads to by a link.
    pub search: Vec<PathBuf>,
}

/// Where programs are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) path: &'a OsStr,
    pub(crate) current_directory: &'a Path,
    pub(crate) home: &'a Path,
    pub(crate) workspace: &'a Path,
    /// All paths of the workspace, where it is mounted again.
    pub(crate) elsewhere: &'a [PathBuf],
    /// Where agents keep their settings and, some, their programs.
    pub(crate) state: &'a [PathBuf],
    /// Where the command can write: these, the workspace, and what is asked for.
    pub(crate) writable: &'a [PathBuf],
    pub(crate) earlier: Option<&'a EarlierSessions>,
    /// The name is meant for an agent's own program, so one that an earlier session could have put
    /// there is passed over.
    pub(crate) is_agent: bool,
}

/// Programs that are started by an alias of the shell, and where they are in the home.
const BY_ALIAS: &[(&str, &str)] = &[("claude", ".claude/local/claude")];

/// Interpreters that a script may name which the command could have written.
const USUAL: &[&str] = &["node", "nodejs", "bun", "deno", "python", "python3", "ruby"];

/// Scripts whose interpreter is a script again.
const DEEPEST: usize = 3;

/// Directories of the home that hold more than one program's installation.
const NO_PREFIX: &[&str] = &["", ".local", ".cargo", ".config", ".cache", ".local/share"];

impl Installation {
    /// Finds the program of this name. `outside` leaves out what lies in the workspace, unless
    /// it is named by a path.
    pub(crate) fn find(program: &OsStr, search: Search<'_>, outside: bool) -> Option<Self> {
        let (program, named) = search
            .program(program, outside)
            .or_else(|| search.by_alias(program).filter(|_| outside))?;
        let mut installation = Self {
            program: program.clone(),
            parts: Vec::new(),
            search: Vec::new(),
        };
        // Interpreters are whichever the caller uses.
        let search = Search {
            is_agent: false,
            ..search
        };
        installation.add(&named, &program.real, search, 0);
        Some(installation)
    }

    fn add(&mut self, named: &Path, file: &Path, search: Search<'_>, depth: usize) {
        // What is in the workspace is in view.
        if file.starts_with(search.workspace) {
            return;
        }
        let is_led = search.earlier.is_some_and(|it| it.lead(named, file));
        let is_planted =
            is_in(file, search.writable) || search.earlier.is_some_and(|it| it.could_write(file));
        let state = search.state.iter().find(|place| file.starts_with(place));
        let part = match state {
            Some(place) => below(place, file),
            None if is_led || is_in(file, search.writable) => file.to_owned(),
            None => enclosing(file, search).unwrap_or_else(|| file.to_owned()),
        };
        if let Some(part) = look(&part)
            && !self.parts.contains(&part)
        {
            self.parts.push(part);
        }
        if depth < DEEPEST
            && state.is_some()
            && let Some(script) = module(file)
        {
            self.add(&script, &script, search, depth + 1);
        }
        if depth < DEEPEST
            && let Some(interpreter) = interpreter(file)
            && (!is_planted || USUAL.iter().any(|usual| interpreter == *usual))
            && let Some((found, named)) = search.program(&interpreter, true)
        {
            let by_link = found.at.parent() != found.real.parent();
            if let Some(directory) = found.real.parent().filter(|_| by_link) {
                self.search.push(directory.to_owned());
            }
            self.add(&named, &found.real, search, depth + 1);
        }
    }
}

impl Search<'_> {
    /// The executable file that a name leads to, and the path by which it does.
    pub(super) fn program(&self, name: &OsStr, outside: bool) -> Option<(Found, PathBuf)> {
        let executable = |path: PathBuf| {
            let found = look(&path).filter(|found| found.kind == Kind::File)?;
            let leads_out =
                !is_in(&found.real, self.writable) && is_led_from_inside(&path, self.writable);
            (!leads_out && may(&found.real, Access::EXEC_OK)).then_some(found)
        };
        if name.as_bytes().contains(&b'/') {
            let path = self.current_directory.join(name);
            return Some((executable(path.clone())?, path));
        }
        std::env::split_paths(self.path)
            .filter(|directory| directory.is_absolute())
            .filter_map(|directory| {
                let path = directory.join(name);
                Some((executable(path.clone())?, path))
            })
            .find(|(found, path)| {
                let is_inside =
                    |path: &Path| path.starts_with(self.workspace) || is_in(path, self.elsewhere);
                // A shim, of whatever copy of this program, stands for what comes after it.
                let is_other =
                    !(is_inside(&found.at) || is_inside(&found.real) || is_stockade(&found.real));
                let is_doubtful = || {
                    let earlier = self.earlier.filter(|_| self.is_agent);
                    earlier.is_some_and(|earlier| earlier.could_install(path))
                };
                !outside || (is_other && !is_doubtful())
            })
    }

    /// The links by which a name leads to this file, if it does.
    pub(crate) fn links_to(&self, name: &OsStr, file: &Path) -> Option<Vec<PathBuf>> {
        let leads_there = |path: &PathBuf| look(path).is_some_and(|found| found.real == file);
        let path = if name.as_bytes().contains(&b'/') {
            Some(self.current_directory.join(name)).filter(leads_there)
        } else {
            // A shell takes the first, also from a directory whose name is relative.
            std::env::split_paths(self.path)
                .map(|directory| self.current_directory.join(directory).join(name))
                .find(leads_there)
        };
        links(&path?).ok()
    }

    /// The program that an alias of the shell stands for, which no path of the caller's shows.
    fn by_alias(&self, name: &OsStr) -> Option<(Found, PathBuf)> {
        let (_, path) = BY_ALIAS.iter().find(|(alias, _)| name == *alias)?;
        self.program(self.home.join(path).as_os_str(), true)
    }

    /// Whether a directory holds an installation and nothing else of the user's.
    fn is_prefix(&self, directory: &Path) -> bool {
        let shared = |name: &str| self.home.join(name) == directory;
        directory.components().count() > 2
            && !self.home.starts_with(directory)
            && !self.workspace.starts_with(directory)
            // A project may have a `bin` and a `lib`, too.
            && !directory.join(".git").exists()
            && !NO_PREFIX.iter().any(|name| shared(name))
    }
}

/// The program that a shim of this name stands for, by the name under which it is found: the first
/// one in the caller's `PATH` that is not Stockade. Relative directories do not count, nor does what
/// lies in the workspace, if there is one, or where earlier sessions could write.
pub fn behind_shim(
    name: &OsStr,
    home: &Path,
    workspace: Option<&Path>,
    earlier: Option<&EarlierSessions>,
) -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    let path = path.as_deref().unwrap_or(USUAL_PATH.as_ref());
    behind(path, name, home, workspace, earlier)
}

/// The same by another `PATH`, without a workspace.
pub fn behind_shim_in(
    path: &OsStr,
    name: &OsStr,
    home: &Path,
    earlier: &EarlierSessions,
) -> Option<PathBuf> {
    behind(path, name, home, None, Some(earlier))
}

fn behind(
    path: &OsStr,
    name: &OsStr,
    home: &Path,
    workspace: Option<&Path>,
    earlier: Option<&EarlierSessions>,
) -> Option<PathBuf> {
    const NOWHERE: &str = "/dev/null/no workspace";
    let workspace = workspace.unwrap_or(Path::new(NOWHERE));
    let search = Search {
        path,
        current_directory: Path::new("/"),
        home,
        workspace,
        elsewhere: &[],
        state: &[],
        writable: &[workspace.to_owned()],
        earlier,
        is_agent: true,
    };
    let found = search.program(name, true).or_else(|| search.by_alias(name));
    found.map(|(found, _)| found.at)
}

/// What lies in a directory and is, or holds, the file.
fn below(directory: &Path, file: &Path) -> PathBuf {
    let inner = file.strip_prefix(directory).ok();
    match inner.and_then(|inner| inner.components().next()) {
        Some(first) => directory.join(first),
        None => file.to_owned(),
    }
}

/// The script of the same name that npm has put beside a program that starts it.
fn module(file: &Path) -> Option<PathBuf> {
    let directory = file.parent()?;
    let script = look(&directory.join("node_modules/.bin").join(file.file_name()?))?;
    (script.real != file && script.real.starts_with(directory)).then_some(script.real)
}

/// The directory that a file needs around it, if it does.
fn enclosing(file: &Path, search: Search<'_>) -> Option<PathBuf> {
    let above = || file.ancestors().skip(1);
    let named = |name: &'static str| {
        above()
            .filter(move |directory| directory.file_name() == Some(name.as_ref()))
            .last()
    };
    let environment = above().find(|directory| directory.join("pyvenv.cfg").is_file());
    let volta = named(".volta");
    // `P/bin/x` beside `P/lib`, or `P/lib/node_modules/…`.
    let bin = file
        .parent()
        .filter(|parent| parent.file_name() == Some("bin".as_ref()));
    let modules = named("node_modules");
    let lib = modules
        .and_then(Path::parent)
        .filter(|parent| parent.file_name() == Some("lib".as_ref()));
    let prefix = bin
        .or(lib)
        .and_then(Path::parent)
        .filter(|prefix| prefix.join("lib").is_dir() && prefix.join("bin").is_dir());
    [environment, volta, prefix, modules]
        .into_iter()
        .flatten()
        .find(|directory| search.is_prefix(directory))
        .map(Path::to_owned)
}

/// What the first line of a script names: a path, or a name for `env` to look up.
fn interpreter(file: &Path) -> Option<OsString> {
    let mut line = Vec::new();
    File::open(file)
        .ok()?
        .take(256)
        .read_to_end(&mut line)
        .ok()?;
    let line = line
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
        .filter(|word| !word.is_empty());
    let program = Path::new(OsStr::from_bytes(words.next()?));
    if program.file_name() != Some("env".as_ref()) {
        return Some(program.into());
    }
    let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    Some(OsStr::from_bytes(name).to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use tempfile::TempDir;

    use super::*;

    struct Home {
        _directory: TempDir,
        home: PathBuf,
    }

    impl Home {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let home = fs::canonicalize(directory.path()).unwrap().join("home/ada");
            fs::create_dir_all(home.join("project")).unwrap();
            Self {
                _directory: directory,
                home,
            }
        }

        fn program(&self, path: &str, text: &str) {
            let path = self.home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn link(&self, path: &str, text: &str) {
            let path = self.home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(text, path).unwrap();
        }

        /// The parts of `program` in the home, relative to it, if it is found in `path`.
        fn parts(&self, program: &str, path: &[&str]) -> Option<Vec<String>> {
            let path = path.iter().map(|directory| self.home.join(directory));
            let path = std::env::join_paths(path).unwrap();
            let workspace = self.home.join("project");
            let state = [self.home.join(".claude")];
            let search = Search {
                path: &path,
                current_directory: &workspace,
                home: &self.home,
                workspace: &workspace,
                elsewhere: &[],
                state: &state,
                writable: &[state[0].clone(), workspace.clone()],
                earlier: None,
                is_agent: false,
            };
            let found = Installation::find(program.as_ref(), search, true)?;
            let relative = |part: &Found| {
                let path = part.real.strip_prefix(&self.home).ok()?;
                Some(path.display().to_string())
            };
            Some(found.parts.iter().filter_map(relative).collect())
        }
    }

    #[test]
    fn a_native_installation_is_the_file_behind_its_link() {
        let home = Home::new();
        home.program(".local/share/claude/versions/2.0.1", "\x7fELF");
        let target = home.home.join(".local/share/claude/versions/2.0.1");
        home.link(".local/bin/claude", target.to_str().unwrap());
        let parts = home.parts("claude", &[".local/bin"]).unwrap();
        assert_eq!(parts, [".local/share/claude/versions/2.0.1"]);
    }

    #[test]
    fn managers_of_node_versions_are_shown_by_version() {
        let home = Home::new();
        let prefix = ".nvm/versions/node/v20.1.0";
        home.program(&format!("{prefix}/bin/node"), "\x7fELF");
        let package = "lib/node_modules/@anthropic-ai/claude-code/cli.js";
        home.program(
            &format!("{prefix}/{package}"),
            "#!/usr/bin/env -S node --x\n",
        );
        home.link(&format!("{prefix}/bin/claude"), &format!("../{package}"));
        let path = format!("{prefix}/bin");
        assert_eq!(home.parts("claude", &[&path]).unwrap(), [prefix]);
    }

    #[test]
    fn a_prefix_of_npms_is_shown_with_the_interpreter_that_lies_elsewhere() {
        let home = Home::new();
        home.program("tools/node/bin/node", "\x7fELF");
        fs::create_dir(home.home.join("tools/node/lib")).unwrap();
        home.program(
            ".npm-global/lib/node_modules/x/cli.js",
            "#!/usr/bin/env node\n",
        );
        home.link(".npm-global/bin/x", "../lib/node_modules/x/cli.js");
        let parts = home.parts("x", &[".npm-global/bin", "tools/node/bin"]);
        assert_eq!(parts.unwrap(), [".npm-global", "tools/node"]);
    }

    #[test]
    fn modules_without_a_prefix_are_shown_alone() {
        let home = Home::new();
        home.program(
            ".bun/install/global/node_modules/a/node_modules/b/x.js",
            "#!/bin/sh\n",
        );
        home.link(
            ".bun/bin/x",
            "../install/global/node_modules/a/node_modules/b/x.js",
        );
        let parts = home.parts("x", &[".bun/bin"]).unwrap();
        assert_eq!(parts, [".bun/install/global/node_modules"]);
    }

    #[test]
    fn python_environments_are_shown_with_the_python_behind_them() {
        let home = Home::new();
        home.program(".pyenv/versions/3.12.1/bin/python3.12", "\x7fELF");
        fs::create_dir(home.home.join(".pyenv/versions/3.12.1/lib")).unwrap();
        let python = home.home.join(".local/pipx/venvs/aider/bin/python");
        home.program(
            ".local/pipx/venvs/aider/bin/aider",
            &format!("#!{}\n", python.display()),
        );
        home.program(".local/pipx/venvs/aider/pyvenv.cfg", "");
        home.link(
            ".local/pipx/venvs/aider/bin/python",
            home.home
                .join(".pyenv/versions/3.12.1/bin/python3.12")
                .to_str()
                .unwrap(),
        );
        home.link(".local/bin/aider", "../pipx/venvs/aider/bin/aider");
        let parts = home.parts("aider", &[".local/bin"]).unwrap();
        assert_eq!(parts, [".local/pipx/venvs/aider", ".pyenv/versions/3.12.1"]);
    }

    #[test]
    fn volta_is_shown_whole() {
        let home = Home::new();
        home.program(".volta/bin/volta-shim", "\x7fELF");
        home.link(".volta/bin/codex", "volta-shim");
        assert_eq!(home.parts("codex", &[".volta/bin"]).unwrap(), [".volta"]);
    }

    #[test]
    fn a_lonely_program_is_shown_without_what_lies_beside_it() {
        let home = Home::new();
        for place in ["bin", ".local/bin", ".cargo/bin"] {
            home.program(&format!("{place}/tool"), "\x7fELF");
            let lib = home.home.join(place).parent().unwrap().join("lib");
            fs::create_dir_all(lib).unwrap();
            assert_eq!(
                home.parts("tool", &[place]).unwrap(),
                [format!("{place}/tool")]
            );
        }
    }

    #[test]
    fn a_project_is_no_installation() {
        let home = Home::new();
        home.program("other/bin/tool", "\x7fELF");
        fs::create_dir(home.home.join("other/lib")).unwrap();
        assert_eq!(home.parts("tool", &["other/bin"]).unwrap(), ["other"]);
        fs::create_dir(home.home.join("other/.git")).unwrap();
        assert_eq!(
            home.parts("tool", &["other/bin"]).unwrap(),
            ["other/bin/tool"]
        );
    }

    #[test]
    fn a_program_that_was_planted_in_the_workspace_is_not_taken() {
        let home = Home::new();
        home.program("project/bin/claude", "#!/bin/sh\n");
        assert_eq!(home.parts("claude", &["project/bin"]), None);
        // Not by a link from elsewhere either.
        home.link("elsewhere/claude", "../project/bin/claude");
        assert_eq!(home.parts("claude", &["elsewhere"]), None);
        home.program(".local/bin/claude", "\x7fELF");
        let parts = home.parts("claude", &["project/bin", ".local/bin"]);
        assert_eq!(parts.unwrap(), [".local/bin/claude"]);
    }

    #[test]
    fn a_link_that_was_planted_does_not_decide_what_is_shown() {
        let home = Home::new();
        home.program("tools/bin/deploy", "#!/bin/sh\n");
        fs::create_dir(home.home.join("tools/lib")).unwrap();
        assert_eq!(home.parts("deploy", &["tools/bin"]).unwrap(), ["tools"]);
        for place in ["project/bin", ".claude/bin"] {
            home.link(&format!("{place}/claude"), "../../tools/bin/deploy");
            assert_eq!(home.parts("claude", &[place]), None, "{place}");
            // Nor where a link of the user's leads to it.
            fs::remove_file(home.home.join(".local/bin/claude")).ok();
            home.link(".local/bin/claude", &format!("../../{place}/claude"));
            assert_eq!(home.parts("claude", &[".local/bin"]), None, "{place}");
        }
        // Nor as the interpreter of what is installed elsewhere.
        home.program("opt/claude", "#!/usr/bin/env node\n");
        home.link("project/bin/node", "../../tools/bin/deploy");
        let parts = home.parts("claude", &["opt", "project/bin"]);
        assert_eq!(parts.unwrap(), ["opt/claude"]);
    }

    #[test]
    fn a_program_in_the_agents_own_directory_is_shown_with_what_holds_it_and_its_runtime() {
        let home = Home::new();
        home.program(".nvm/v20/bin/node", "\x7fELF");
        home.program(".nvm/v20/lib/x", "");
        home.program("scripts/deploy", "\x7fELF");
        let path = [".claude/local", ".nvm/v20/bin", "scripts"];
        home.program(".claude/local/node_modules/c/cli.js", "x");
        for (script, parts) in [
            ("#!/bin/sh\n", vec![".claude/local"]),
            ("#!/usr/bin/env node\n", vec![".claude/local", ".nvm/v20"]),
            // It may have been written to see what else there is.
            ("#!/usr/bin/env deploy\n", vec![".claude/local"]),
            ("#!../scripts/deploy\n", vec![".claude/local"]),
        ] {
            home.program(".claude/local/claude", script);
            assert_eq!(home.parts("claude", &path).unwrap(), parts, "{script}");
        }
        // As its own installer does it, which makes an alias of the shell.
        let local = Home::new();
        local.program(".nvm/v20/bin/node", "\x7fELF");
        local.program(".nvm/v20/lib/x", "");
        local.program(".claude/local/claude", "#!/bin/bash\n");
        local.program(
            ".claude/local/node_modules/c/cli.js",
            "#!/usr/bin/env node\n",
        );
        local.link(".claude/local/node_modules/.bin/claude", "../c/cli.js");
        let parts = local.parts("claude", &[".nvm/v20/bin"]).unwrap();
        assert_eq!(parts, [".claude/local", ".nvm/v20"]);
        // Elsewhere it is the user's own.
        home.program("opt/claude", "#!/usr/bin/env deploy\n");
        let parts = home.parts("claude", &["opt", "scripts"]);
        assert_eq!(parts.unwrap(), ["opt/claude", "scripts/deploy"]);
    }
}
