//! The columns: ways to run a command in a sandbox, each as its users start it.

use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::stage::{PEERS, PRODUCT};

/// Declared in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Column {
    Nothing,
    Bubblewrap,
    Stockade,
    Firejail,
    Codex,
    Srt,
}

impl Column {
    pub(crate) const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Bubblewrap,
        Self::Stockade,
        Self::Firejail,
        Self::Codex,
        Self::Srt,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no sandbox",
            Self::Bubblewrap => "bubblewrap",
            Self::Stockade => "stockade",
            Self::Firejail => "firejail",
            Self::Codex => "codex sandbox",
            Self::Srt => "sandbox-runtime (srt)",
        }
    }

    /// The command line, for people.
    pub(crate) fn line(self) -> &'static str {
        match self {
            Self::Nothing => "true",
            Self::Bubblewrap => "bwrap … true",
            Self::Stockade => "stockade run -- true",
            Self::Firejail => "firejail --quiet true",
            Self::Codex => "codex sandbox -- true",
            Self::Srt => "srt true",
        }
    }

    /// Asks for the version.
    pub(crate) fn version(self) -> Option<Command> {
        match self {
            Self::Nothing => None,
            Self::Bubblewrap => Some(words(&["bwrap", "--version"])),
            Self::Stockade => Some(words(&[PRODUCT, "--version"])),
            Self::Firejail => Some(words(&["firejail", "--version"])),
            Self::Codex => Some(words(&[&peer("codex"), "--version"])),
            Self::Srt => Some(words(&[&peer("srt"), "--version"])),
        }
    }

    /// Runs `true`; `bubblewrap` are the options for bare bubblewrap.
    pub(crate) fn command(self, bubblewrap: &[String]) -> Command {
        let mut command = match self {
            Self::Nothing => words(&["true"]),
            Self::Bubblewrap => words(&["bwrap"]),
            Self::Stockade => words(&[PRODUCT, "run", "--", "true"]),
            Self::Firejail => words(&["firejail", "--quiet", "true"]),
            Self::Codex => words(&[&peer("codex"), "sandbox", "--", "true"]),
            Self::Srt => words(&[&peer("srt"), "true"]),
        };
        if self == Self::Bubblewrap {
            command.args(bubblewrap).args(["--", "true"]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

fn peer(name: &str) -> String {
    format!("{PEERS}/node_modules/.bin/{name}")
}

fn words(words: &[&str]) -> Command {
    let (program, arguments) = words.split_first().unwrap_or((&"true", &[]));
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
