//! Why a launch was refused or a session was lost. Every message says what happened, why, and
//! the smallest fix; it has its cause in it.

use std::{
    ffi::OsString, io, os::unix::process::ExitStatusExt as _, path::PathBuf, process::ExitStatus,
};

use stockade_sys::shortage;

use crate::{launch::bubblewrap::OLDEST, plan::workspace::PathRefusal};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    // The caller's surroundings.
    #[error("HOME is not set, so it is not known what to hide: set it to your home directory")]
    HomeUnset,
    #[error("HOME is {0:?}, which is not an absolute path: set it to your home directory")]
    HomeRelative(PathBuf),
    #[error(
        "HOME is {path:?}, which is not a usable directory ({error}): create it or correct HOME"
    )]
    HomeUnusable { path: PathBuf, error: io::Error },
    #[error(
        "HOME is {0:?}, which holds a part of the system that has to stay visible: \
         set HOME to a directory of its own"
    )]
    HomeIsSystem(PathBuf),
    #[error(
        "the current directory cannot be determined ({0}): \
         it may have been deleted; change to a directory that exists"
    )]
    CurrentDirectoryGone(io::Error),
    #[error(
        "the workspace {path:?} is not a usable directory ({error}): create it or name another"
    )]
    WorkspaceUnusable { path: PathBuf, error: io::Error },
    #[error(
        "{path:?} cannot be the workspace, because it {refusal}: \
         change to the directory of one project"
    )]
    WorkspaceRefused { path: PathBuf, refusal: PathRefusal },
    #[error("these paths do not exist: {}: create them, or leave them out", list(.0))]
    MissingPaths(Vec<(PathBuf, String)>),
    #[error(
        "{path:?} of the configuration cannot be given, because it {refusal}: \
         name just what is needed"
    )]
    PathRefused { path: PathBuf, refusal: PathRefusal },
    #[error(
        "{path:?} leads to {real:?} by a link that a session could have made: if you mean {real:?}, \
         name that path, or have your own link lead straight to it"
    )]
    Led { path: PathBuf, real: PathBuf },
    #[error(
        "{path:?} of the configuration cannot be given, because it leads by a link to {place}, where \
         credentials or sockets are, and a session could have made that link: if you mean that place, \
         give its own path; if not, remove the link"
    )]
    LedToCredentials { path: PathBuf, place: String },
    #[error(
        "{variable} leads to {path:?}, which cannot hold an agent's state, because it {refusal}: set \
         {variable} to a directory of its own, or unset it"
    )]
    StateRefused {
        variable: &'static str,
        path: PathBuf,
        refusal: PathRefusal,
    },
    #[error(
        "{path:?} is to be hidden ({hidden_by}) and to be shown ({given_by}): drop one of them"
    )]
    HiddenAndGiven {
        path: PathBuf,
        hidden_by: String,
        given_by: String,
    },
    #[error(
        "sandboxes cannot work inside this sandbox ({by}), because {why}: leave out --nested \
         (agent.nested)"
    )]
    Nested { by: String, why: &'static str },
    #[error("`{0}` is no name of a forge's host: write it as in `git.example.org`")]
    ForgeHost(String),
    #[error("the variable {name:?} cannot be set, because {why}: leave it out")]
    VariableRefused { name: OsString, why: &'static str },
    #[error(
        "{0:?} was not found in PATH, outside of the workspace: install it, or name it by its path"
    )]
    AgentMissing(OsString),
    #[error(
        "{name:?} was found in PATH only as {path:?}, and an earlier session could have put that there: if \
         you trust it, name it by its path; if not, install it elsewhere"
    )]
    AgentDoubtful { name: OsString, path: PathBuf },
    #[error(
        "{0:?} is a link through /proc, which leads elsewhere for each program, so Stockade cannot see \
         whether other projects share what is installed there: remove the link"
    )]
    LinkAstray(PathBuf),
    #[error(
        "{0:?} is not the directory that agents outside have their shells read from, but a link or a \
         file, and a session could have made it so that its own scripts run outside: look at it, then \
         remove it"
    )]
    ScriptsAstray(PathBuf),
    #[error(
        "{path:?} cannot be made ({error}): without it, the command could make it, with scripts that \
         agents outside run: see that its directory can be written, or make it yourself"
    )]
    ScriptsUnmade { path: PathBuf, error: io::Error },
    #[error(
        "{0:?} is to be hidden or read-only inside, but it has a second name (a hard link), by which the \
         command could read or change it: make it a file of its own (cp -p {0:?} {0:?}.new && \
         mv {0:?}.new {0:?}), or leave it out of the configuration"
    )]
    SecondName(PathBuf),
    #[error(
        "{0:?} is to be hidden or read-only inside, but capitals do not count on its disk, which only \
         a server of Windows or macOS knows, so the command could read or change it by another \
         spelling: work in a directory on a disk of Linux's own, or leave it out of `hide`, or give it \
         with `write`"
    )]
    OtherSpelling(PathBuf),
    #[error("{path:?} has changed while the sandbox was built ({error}): try again")]
    Changed { path: PathBuf, error: io::Error },
    #[error(
        "it cannot be agreed with other sessions in {path:?} what was there before them ({error}): \
         try again, or end them; if there are none, see that {state:?} can be written"
    )]
    Baseline {
        path: PathBuf,
        state: PathBuf,
        error: io::Error,
    },
    #[error("building the sandbox: {what} {path:?}: {error}{}", advised(error))]
    Stage {
        what: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    #[error(
        "{path:?} cannot be shown in {cache:?} ({error}): an earlier session in this workspace put \
         something else there, which is kept: remove it with `stockade caches --clear`"
    )]
    KeptDiffers {
        path: PathBuf,
        cache: PathBuf,
        error: io::Error,
    },
    #[error(
        "there is no file {0:?} that the sandbox's own resolv.conf could be laid over: \
         create it, empty if need be"
    )]
    NoResolvConf(PathBuf),
    #[error(
        "this program's own file cannot be found ({error}): \
         it may have been replaced by an update; try again"
    )]
    OwnExecutable { error: io::Error },
    #[error(
        "the command could replace this program: {path:?} lies in {place:?}, where the command can \
         write: install Stockade elsewhere, for example in ~/.local/bin, and start it from there"
    )]
    LauncherWritable { path: PathBuf, place: PathBuf },
    #[error(
        "the command could replace the program that {name} runs outside: {path:?} lies in {place:?}, \
         where the command can write: install Stockade elsewhere, for example in ~/.local/bin, and \
         with that one run `{renewal}`"
    )]
    StarterWritable {
        name: String,
        path: PathBuf,
        place: PathBuf,
        renewal: String,
    },
    #[error(
        "the command could change the program that {name} runs outside: {path:?} has another name (a \
         hard link), which may lie where the command can write: install Stockade as a file of its \
         own (./install.sh, or `cp` it), and with that one run `{renewal}`"
    )]
    StarterLinked {
        name: String,
        path: PathBuf,
        renewal: String,
    },
    #[error("reading {path}: {error}")]
    Read {
        path: &'static str,
        error: io::Error,
    },

    // Bubblewrap.
    #[error(
        "bubblewrap is not installed (looked for {looked_for}): \
         install the package `bubblewrap` of your distribution"
    )]
    BubblewrapMissing { looked_for: String },
    #[error(
        "{path:?} is bubblewrap {found}, but {OLDEST} or newer is needed: \
         update the package `bubblewrap`"
    )]
    BubblewrapTooOld { path: PathBuf, found: String },
    #[error(
        "{path:?} cannot be started ({error}): {}",
        shortage::advice(error).unwrap_or_else(|| REINSTALL.to_owned())
    )]
    BubblewrapUnstartable { path: PathBuf, error: io::Error },
    #[error("{path:?} does not tell its version ({why}): reinstall the package `bubblewrap`")]
    BubblewrapUnusable { path: PathBuf, why: String },
    #[error("bubblewrap could not build the sandbox ({0}): {advice}", advice = after_failure(.0))]
    BubblewrapFailed(ExitStatus),

    // The session.
    #[error("preparing the sandbox: {what}: {error}{}", advised(error))]
    Prepare {
        what: &'static str,
        error: io::Error,
    },
    #[error("{stream} is {kind}: {fix}")]
    StreamRefused {
        stream: &'static str,
        kind: &'static str,
        fix: &'static str,
    },
    #[error(
        "{stream} of the command could not be written to its file: {error}: the file is incomplete"
    )]
    Unwritten {
        stream: &'static str,
        error: io::Error,
    },
    #[error(
        "{stream} of the command could not be passed on: its reader took nothing for 10 s after the end"
    )]
    Unread { stream: &'static str },
    #[error("starting the command: {step}: {error}{}", advised(error))]
    Start {
        step: &'static str,
        error: io::Error,
    },
    #[error(
        "the sandbox ended too early ({0}): it was killed from outside, or a program inside kept process 1 \
         from going on; the fate of the command is not known"
    )]
    SandboxLost(ExitStatus),
    #[error(
        "{0:?} was hidden or read-only inside, or held dependencies whose changes are discarded, and \
         is not there any more, since a program outside replaced, moved or removed it: the session \
         was ended. Start it again; while it runs, change the file in place"
    )]
    Uncovered(PathBuf),
    #[error(
        "the command {0} again and again, though Stockade undid it each time: the session was ended"
    )]
    Fight(String),
    #[error(
        "the command made more git repositories or submodules than Stockade has time to look at: the \
         session was ended, since git outside could run what they hold. Make them outside, or where \
         git does not come to them from the top of the workspace"
    )]
    Flood,
    #[error(
        "a program inside ran, or was killed, while the session was suspended: the session was ended, \
         since git's settings cannot be watched meanwhile. Start it again"
    )]
    Awake,
    #[error("the sandbox sent a message that makes no sense, and was killed")]
    Nonsense,
    #[error("watching over the command: {0}")]
    Supervise(io::Error),
}

const REINSTALL: &str = "reinstall the package `bubblewrap`";

/// One that was killed by a signal has said nothing.
fn after_failure(status: &ExitStatus) -> String {
    match status.signal() {
        Some(_) => format!("if `bwrap --version` fails, too, {REINSTALL}"),
        None => "its own message, above, says which step failed".to_owned(),
    }
}

fn list(paths: &[(PathBuf, String)]) -> String {
    let path = |(path, by): &(PathBuf, String)| format!("{path:?} ({by})");
    let paths: Vec<_> = paths.iter().map(path).collect();
    paths.join(", ")
}

/// What helps, if it is known.
fn advised(error: &io::Error) -> String {
    shortage::advice(error).map_or_else(String::new, |advice| format!(": {advice}"))
}
