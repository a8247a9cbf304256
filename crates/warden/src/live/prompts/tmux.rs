//! The tmux that the session was started in.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    process::Child,
};

use super::{command, find};

const SERVER: &str = "TMUX";
const PANE: &str = "TMUX_PANE";
/// How long a notice stands in the status line, in milliseconds. A tmux before 3.6 draws nothing else
/// meanwhile.
const SHOWN: [&str; 2] = ["-Cd8000", "-d2000"];

#[derive(Debug)]
pub(super) struct Tmux {
    program: PathBuf,
    server: OsString,
    pane: OsString,
    /// This program.
    own: PathBuf,
}

impl Tmux {
    pub(super) fn find(environment: &BTreeMap<OsString, OsString>) -> Option<Self> {
        let variable = |name: &str| environment.get(OsStr::new(name)).cloned();
        Some(Self {
            program: find("tmux")?,
            server: variable(SERVER).filter(|server| !server.is_empty())?,
            pane: variable(PANE).filter(|pane| !pane.is_empty())?,
            own: env::current_exe().ok()?,
        })
    }

    fn start(&self, arguments: &[&OsStr]) -> io::Result<Child> {
        let variables = [
            (SERVER, self.server.as_os_str()),
            (PANE, self.pane.as_os_str()),
        ];
        command(&self.program, variables).args(arguments).spawn()
    }

    /// Opens a popup that asks all questions of the session. It ends with the popup.
    pub(super) fn ask(&self, session: &str) -> io::Result<Child> {
        self.start(&[
            "display-popup".as_ref(),
            "-E".as_ref(),
            "-t".as_ref(),
            &self.pane,
            "-w".as_ref(),
            "78".as_ref(),
            "-h".as_ref(),
            "20".as_ref(),
            // Several words: tmux starts the program itself, without a shell.
            self.own.as_os_str(),
            "question".as_ref(),
            session.as_ref(),
        ])
    }

    /// Shows a line of plain characters in the status line. It fails if tmux is older, and has not
    /// been told so.
    pub(super) fn tell(&self, text: &str, is_old: bool) -> io::Result<Child> {
        let [new, old] = SHOWN;
        self.start(&[
            "display-message".as_ref(),
            if is_old { old } else { new }.as_ref(),
            "-t".as_ref(),
            &self.pane,
            text.as_ref(),
        ])
    }
}
