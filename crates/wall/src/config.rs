//! What the caller decides about the wall.
//!
//! Others have parsed these values and checked their form. The plan says whether this machine can
//! do what they ask for.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// The decisions. The default is the wall without additions.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub network: Network,
    /// Whether searches for devices are passed on, so that the variables of EPICS mean something.
    pub discovery: bool,
    /// The gate uses a proxy: variables that name one stay outside.
    pub has_proxy: bool,
    pub root: Root,
    /// Files, directories and sockets that can be read, too.
    pub read: Vec<PathRequest>,
    /// Files and directories that can be written, too. One in the workspace lifts the
    /// protection of that path.
    pub write: Vec<PathRequest>,
    /// What is not to be seen, whatever else says that it is.
    pub hide: Vec<PathRequest>,
    /// Names of variables that pass from the caller's environment. Hooks of loaders and
    /// interpreters (`LD_LIBRARY_PATH`) are no exception: who names one means it.
    pub pass: Vec<Asked<OsString>>,
    /// Variables with their values; they win over all others.
    pub set: Vec<(OsString, Asked<OsString>)>,
    pub forge: Forge,
    pub agent: Agent,
    pub hardening: Hardening,
    pub nested: Nested,
    pub git: GitSettings,
    pub limits: Limits,
    /// Agents' state that variables of the caller's name, of whichever agent.
    pub moved_state: Vec<MovedState>,
    pub caches: CacheMode,
    /// The name of the session, which the command gets in a variable.
    pub session: Option<String>,
    /// Where it is recorded which files git did not track in earlier sessions.
    pub state: Option<PathBuf>,
    /// Where Stockade keeps configuration, log and shims, beyond `~/.config/stockade`,
    /// `~/.local/state/stockade` and `~/.local/share/stockade`: never shown, never writable.
    pub own: Vec<PathBuf>,
    /// How else the user starts a program of Stockade.
    pub starters: Vec<Starter>,
}

/// A shim, or the hook of a guard: something outside that runs a program of Stockade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starter {
    /// The link or the program.
    pub path: PathBuf,
    /// Who runs it, in words.
    pub name: String,
    /// What makes it run another one.
    pub renewal: String,
}

/// What becomes of settings and hooks of git's that a session left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GitSettings {
    /// They are put back to what they were, and told of.
    #[default]
    Defuse,
    /// They are told of.
    Tell,
}

/// What becomes of what the command writes to package caches. The host's never change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CacheMode {
    /// The next session in the same workspace has it; in Stockade's own directory.
    Keep(PathBuf),
    /// It is gone at the end.
    #[default]
    Scratch,
    /// The same, and caches start empty.
    Empty,
}

/// Something that is asked for, and by whom: a file and line, a flag, a profile. The plan's
/// reasons say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<T> {
    pub value: T,
    pub by: String,
}

impl<T> Asked<T> {
    pub fn new(value: impl Into<T>, by: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            by: by.into(),
        }
    }
}

/// Which network the command has, as far as its files have to agree with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// That of the thread which starts the command, with the host's own settings.
    #[default]
    Host,
    /// The same, but it is a jail, where one server answers for every name.
    Jail {
        /// The text of `/etc/resolv.conf` inside.
        resolv_conf: String,
    },
    /// None but a loopback of its own.
    None,
}

/// What of the disk everything else stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Root {
    /// The directories of the system.
    #[default]
    System,
    /// The whole disk.
    All,
}

/// A path that is asked for: absolute, but it may have links in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRequest {
    pub path: PathBuf,
    /// It has to exist: the user named it. What a profile names may be missing.
    pub required: bool,
    /// Who asks, as in [`Asked`].
    pub by: String,
}

/// Whose logins for pushing code the command can use. By default none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forge {
    pub github: bool,
    pub gitlab: bool,
    /// Further hosts of those that are on.
    pub hosts: Vec<String>,
    /// Logins that only sandboxed sessions use. A forge that has one gives nothing of the user's
    /// own. Those of forges and hosts that are off are not given.
    pub logins: Vec<ForgeLogin>,
}

impl Forge {
    /// The logins that the command gets for `gh` or `glab`.
    pub(crate) fn logins_of(&self, tool: ForgeTool) -> impl Iterator<Item = &ForgeLogin> {
        self.given().filter(move |login| login.tool == tool)
    }

    /// The login that the command gets for a host.
    pub(crate) fn login_for(&self, host: &str) -> Option<&ForgeLogin> {
        self.given().find(|login| login.host == host)
    }

    fn given(&self) -> impl Iterator<Item = &ForgeLogin> {
        self.logins.iter().filter(|login| {
            let (is_on, usual) = match login.tool {
                ForgeTool::Gh => (self.github, GITHUB_HOST),
                ForgeTool::Glab => (self.gitlab, GITLAB_HOST),
            };
            is_on && (login.host == usual || self.hosts.contains(&login.host))
        })
    }
}

pub(crate) const GITHUB_HOST: &str = "github.com";
pub(crate) const GITLAB_HOST: &str = "gitlab.com";

/// The program that speaks with a forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeTool {
    Gh,
    Glab,
}

/// A login at one host of a forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeLogin {
    pub tool: ForgeTool,
    pub host: String,
    pub user: Option<String>,
    pub token: Secret,
}

/// A text that is given to the command, and otherwise shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What the agent that is run brings with it.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// The command, as it was typed. Where its file and the rest of its installation are
    /// hidden, they are shown.
    pub program: Option<OsString>,
    /// It is an agent's own program: one of that name in the workspace is not it.
    pub is_known: bool,
    /// It is run as itself, not some other program with its profile: places of its state that
    /// are missing are made.
    pub keeps_state: bool,
    /// Its settings, login and memory: files and directories that it writes.
    pub state: Vec<PathRequest>,
    /// The agent of this name, where the command is another that may start it (a shell, a
    /// multiplexer): its installation is shown, if it is found outside of the workspace.
    pub brought: Option<OsString>,
}

/// An agent's state that is not in its usual place, because a variable of the caller's says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedState {
    pub variable: &'static str,
    /// The usual places, below the home: a directory, then files beside it, which are now in it.
    pub usual: &'static [&'static str],
    pub at: PathBuf,
}

impl MovedState {
    /// Where something is that is usually at this path below the home, if it is in this state.
    pub(crate) fn path_of(&self, usual: &str) -> Option<PathBuf> {
        let (directory, beside) = self.usual.split_first()?;
        match Path::new(usual).strip_prefix(directory) {
            Ok(below) => Some(self.at.join(below)),
            Err(_) => beside.contains(&usual).then(|| self.at.join(usual)),
        }
    }
}

/// How narrow the kernel's interface is for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Hardening {
    /// Programs inside can make user namespaces.
    #[default]
    Default,
    /// No user namespaces inside, and Landlock on files.
    Strict,
}

/// Whether sandboxes work inside the sandbox: whether programs can have mount namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Nested {
    #[default]
    No,
    /// Where that can be had, says the agent's profile, or this file of the agent's own settings.
    IfPossible(Option<PathBuf>),
    /// Or the command is not started, says this one.
    Required(String),
}

/// Bounds for what the command and all it starts use up; `None` leaves the caller's, or
/// the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Processes and threads at a time, of all together.
    pub processes: Option<Asked<u64>>,
    /// Bytes: of all together where a control group can be had, otherwise of each process.
    pub memory: Option<Asked<u64>>,
    /// Open files of each process.
    pub open_files: Option<Asked<u64>>,
    /// Bytes in `/tmp`, the home directory and all other places in memory together.
    pub tmpfs: Option<Asked<u64>>,
    /// Seconds of processor time of each process.
    pub cpu_time: Option<Asked<u64>>,
}

impl Config {
    /// Every path that is asked for.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let own = self.own.iter().map(PathBuf::as_path);
        let moved = self.moved_state.iter().map(|moved| moved.at.as_path());
        self.requests()
            .map(|request| request.path.as_path())
            .chain(own)
            .chain(moved)
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = &PathRequest> {
        let agent = self.agent.state.iter();
        let files = self.read.iter().chain(&self.write).chain(&self.hide);
        files.chain(agent)
    }

    /// Whether the moved state is that of the agent which is run.
    pub(crate) fn is_state(&self, moved: &MovedState) -> bool {
        self.agent.state.iter().any(|it| it.path == moved.at)
    }

    /// Where something of an agent's state is: in its usual place below the home, and where a
    /// variable says.
    pub(crate) fn places_in_state(
        &self,
        home: &Path,
        usual: &str,
    ) -> impl Iterator<Item = PathBuf> {
        let moved = self.moved_state.iter();
        let moved = moved.filter_map(move |moved| moved.path_of(usual));
        [home.join(usual)].into_iter().chain(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_keeps_beside_its_directory_moves_into_it() {
        let moved = MovedState {
            variable: "CLAUDE_CONFIG_DIR",
            usual: &[".claude", ".claude.json"],
            at: "/d".into(),
        };
        for (usual, path) in [
            (".claude", Some("/d")),
            (".claude/local", Some("/d/local")),
            (".claude.json", Some("/d/.claude.json")),
            (".claude.d", None),
            (".codex", None),
        ] {
            assert_eq!(moved.path_of(usual), path.map(PathBuf::from), "{usual}");
        }
    }

    impl PathRequest {
        pub(crate) fn by_user(path: impl Into<PathBuf>) -> Self {
            let path = path.into();
            Self {
                path,
                required: true,
                by: "the user".to_owned(),
            }
        }

        pub(crate) fn by_profile(path: impl Into<PathBuf>) -> Self {
            let path = path.into();
            Self {
                path,
                required: false,
                by: "a profile".to_owned(),
            }
        }
    }
}
