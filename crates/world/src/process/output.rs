//! How a program ended and what it said.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

#[derive(Clone, PartialEq, Eq)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    /// The exit code as a shell tells it: 128 + n after signal n.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .or_else(|| self.status.signal().map(|signal| 128 + signal))
            .unwrap_or(-1)
    }

    pub fn succeeded(&self) -> bool {
        self.status.success()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Panics unless the exit code is `code`, and shows everything else.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(
            self.code() == code,
            "expected exit code {code}, got {self:?}"
        );
        self
    }

    /// Panics unless the program succeeded.
    #[track_caller]
    pub fn expect_success(self) -> Self {
        self.expect_code(0)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n--- stdout ---\n{}\n--- stderr ---\n{}",
            self.status,
            self.stdout(),
            self.stderr()
        )
    }
}
