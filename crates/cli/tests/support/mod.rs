//! A user with a home and a project, who types.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

pub(crate) struct User {
    directory: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        let user = Self {
            directory: tempfile::tempdir().expect("a directory"),
        };
        fs::create_dir_all(user.path("home/.config/stockade")).expect("directories");
        fs::create_dir(user.path("home/project")).expect("directories");
        user
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.directory.path())
            .expect("the directory")
            .join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, text).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
        command
            .args(arguments)
            .current_dir(self.path("home/project"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.ended(&mut self.command(arguments))
    }

    pub(crate) fn ended(&self, command: &mut Command) -> Ended {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("stockade runs");
        let text = |bytes| {
            String::from_utf8(bytes)
                .expect("text")
                .replace(&*self.path("").to_string_lossy(), "/D/")
        };
        Ended {
            code: status.code().expect("an exit code"),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}
