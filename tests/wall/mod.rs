//! The wall: files, environment, processes, signals and the terminal, as a command sees them.
//!
//! The caller has a home and a project of its own with nothing in them, so that a test shows all
//! that there is. Each attack has a positive control: the same probe succeeds where it should.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod agent;
mod containment;
mod ends;
mod environment;
mod files;
mod forge;
mod guards;
mod hardening;
mod home;
mod job_control;
mod leftovers;
mod limits;
mod machine;
mod repository;
mod requests;
mod shell;
mod signals;
mod stdio;
mod terminal;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use stockade_world::{Builder, Command, Laptop, Login, PATIENCE, eventually};

/// Runs `body` in a world of its own: for root if root runs the tests, otherwise for an ordinary
/// user. Both have to pass.
#[track_caller]
fn test(body: impl FnOnce(&Caller<'_>)) {
    let is_root = rustix::process::geteuid().is_root();
    test_as(if is_root { Login::Root } else { Login::Dev }, body);
}

#[track_caller]
fn test_as(login: Login, body: impl FnOnce(&Caller<'_>)) {
    let builder = Builder::new().product(env!("CARGO_BIN_EXE_stockade"));
    stockade_world::test(&builder.login(login), |world| {
        body(&Caller::new(world.laptop()));
    });
}

/// A user of the laptop.
struct Caller<'a> {
    laptop: &'a Laptop,
    directory: PathBuf,
}

impl<'a> Caller<'a> {
    fn new(laptop: &'a Laptop) -> Self {
        let directory = laptop.home().join("caller");
        for name in ["home", "project"] {
            fs::create_dir_all(directory.join(name)).unwrap();
        }
        Self { laptop, directory }
    }

    fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    fn project(&self) -> PathBuf {
        self.directory.join("project")
    }

    fn of(&self, command: Command) -> Command {
        command
            .directory(self.project())
            .env("HOME", self.home())
            // Without directories of another home, which every session would tell of.
            .env("PATH", "/run/world/bin:/usr/local/bin:/usr/bin:/bin")
            .env("LC_ALL", "C")
    }

    /// A program outside, in the project.
    fn command(&self, program: &str) -> Command {
        self.of(self.laptop.command(program))
    }

    /// `stockade run`, to be given options, `--` and a command.
    fn run(&self) -> Command {
        self.of(self.laptop.stockade(["run"]))
    }

    /// `stockade run -- arguments…`
    fn stockade(&self, arguments: &[&str]) -> Command {
        self.run().arg("--").args(arguments)
    }

    /// `stockade run options… -- bash -c script`
    fn with(&self, options: &[&str], script: &str) -> Command {
        self.run().args(options).args(["--", "bash", "-c", script])
    }

    /// A script for bash, inside.
    fn script(&self, script: &str) -> Command {
        self.with(&[], script)
    }

    /// A script that runs outside and has to succeed, in the project.
    fn outside(&self, script: &str) -> String {
        let bash = self.command("bash").args(["-euc", script]);
        output(
            bash.env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_SYSTEM", "/dev/null"),
        )
    }

    /// Writes a file below the home or the project, whose path this is.
    fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = path.as_ref();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The same, for a file that can be executed.
    fn program(&self, path: impl AsRef<Path>, text: &str) {
        self.write(&path, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs a command to its end; returns its exit code, its output and its messages.
#[track_caller]
fn run(command: Command) -> (i32, String, String) {
    let output = command.run().unwrap();
    (output.code(), output.stdout(), output.stderr())
}

/// The output of a command that has to succeed.
#[track_caller]
fn output(command: Command) -> String {
    let shown = command.to_string();
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, 0, "{shown}\n{stdout}{stderr}");
    stdout
}

/// Waits until `state` holds.
#[track_caller]
fn wait_until(what: &str, state: impl FnMut() -> bool) {
    eventually(what, PATIENCE, state).unwrap();
}

/// The processes of this world that have `mark` among their arguments.
fn processes_with(mark: &str) -> Vec<i32> {
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
const MARK: &str = "mark-of-this-test";
