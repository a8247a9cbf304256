//! A caller with a home and a workspace of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// The warden under test.
pub(crate) const WALLED: &str = env!("CARGO_BIN_EXE_walled");

/// How long anything may take before the test gives up. Never waited for in full, unless
/// something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A user's surroundings, gone at the end of the test.
pub(crate) struct Caller {
    directory: TempDir,
    /// What stands before each command.
    prefix: Vec<String>,
    walled: PathBuf,
}

impl Caller {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "project"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self {
            directory,
            prefix: Vec::new(),
            walled: WALLED.into(),
        }
    }

    /// An ordinary user, whoever runs the tests. Root gives the surroundings away for it, with the
    /// program: the original may lie where only root comes.
    pub(crate) fn ordinary() -> Self {
        let mut caller = Self::new();
        if is_root() {
            const NOBODY: &str = "65534";
            let walled = caller.directory.path().join("walled");
            fs::copy(WALLED, &walled).unwrap();
            let mut chown = Command::new("chown");
            chown.args(["-R", NOBODY]).arg(caller.directory.path());
            assert!(chown.status().unwrap().success());
            let words = [
                "setpriv",
                "--reuid",
                NOBODY,
                "--regid",
                NOBODY,
                "--clear-groups",
            ];
            caller.prefix = words.map(str::to_owned).into();
            caller.walled = walled;
        }
        caller
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    /// `program`, called by this user in the project.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut words = self.prefix.iter().map(Path::new).chain([program.as_ref()]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .current_dir(self.project())
            .env("HOME", self.home())
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        command
    }

    /// `walled options… -- bash -c script`
    pub(crate) fn with(&self, options: &[&str], script: &str) -> Command {
        let mut command = self.command(&self.walled);
        command.args(options).args(["--", "bash", "-c", script]);
        command
    }

    /// Writes a file below the home or the project, whose path this is.
    pub(crate) fn write(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A script that runs outside and has to succeed, in the project.
    pub(crate) fn outside(&self, script: &str) -> String {
        let mut command = self.command("bash");
        command.args(["-euc", script]);
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        output(command)
    }

    /// `walled -- arguments…`
    pub(crate) fn walled(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.walled);
        command.arg("--").args(arguments);
        command
    }

    /// A script for bash, behind the wall.
    pub(crate) fn script(&self, script: &str) -> Command {
        self.walled(&["bash", "-c", script])
    }
}

/// Runs a command to its end; returns its exit code, its output and its messages.
pub(crate) fn run(mut command: Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let code = status
        .code()
        .unwrap_or_else(|| panic!("{command:?}: {status}"));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(stdout), text(stderr))
}

/// The output of a command that has to succeed.
pub(crate) fn output(command: Command) -> String {
    let shown = format!("{command:?}");
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, 0, "{shown}\n{stdout}{stderr}");
    stdout
}

/// Waits until `state` holds.
pub(crate) fn wait_until(what: &str, mut state: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !state() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes on this machine that have `mark` among their arguments.
pub(crate) fn processes_with(mark: &str) -> Vec<i32> {
    let has_mark = |process: &fs::DirEntry| {
        fs::read(process.path().join("cmdline")).is_ok_and(|line| {
            line.split(|byte| *byte == 0)
                .any(|argument| argument == mark.as_bytes())
        })
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(has_mark)
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .collect()
}

/// An argument by which a test finds its own processes.
pub(crate) fn mark(test: &str) -> String {
    format!("mark-of-{test}-{}", std::process::id())
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Sends a signal by its name, with kill(1).
pub(crate) fn kill(signal: &str, process: impl std::fmt::Display) {
    let status = Command::new("kill")
        .args(["-s", signal, &format!("{process}")])
        .status()
        .unwrap();
    assert!(status.success());
}
