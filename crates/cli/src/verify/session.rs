//! The session that is verified: `stockade run` itself, as a process of its own, with the
//! prober as its command.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use rustix::{
    fs::{CWD, Mode, OFlags, fcntl_setfl, mkfifoat},
    io::{FdFlags, fcntl_setfd},
};
use serde::{Serialize, de::DeserializeOwned};
use stockade_sys::deadline::wait_readable;
use stockade_wall::INNER_STAGE;

use super::outside::{Outside, SECRET_VARIABLE};
use crate::{exit::refused, hooks};

/// The hidden command that makes this program the prober.
pub(super) const PROBE: &str = "verify-probe";

/// For everything that the prober does between two lines. It does much, and a machine may be
/// busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct ProbedSession {
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    heard: Vec<u8>,
    messages: File,
}

impl ProbedSession {
    /// Starts it. `settings` are flags of `run`.
    pub(super) fn start(
        outside: &Outside,
        workspace: &Path,
        settings: &[OsString],
    ) -> Result<Self> {
        // A pipe that had a path, though it has none any more: what a rule about paths says of it
        // can be found out inside. A file would not get there.
        let (messages, writer) = unnamed(&outside.token).context("cannot make a pipe in /tmp")?;
        let spare: OwnedFd = writer.try_clone()?.into();
        // The descriptor that is to stay outside.
        fcntl_setfd(&spare, FdFlags::empty())?;
        let program = env::current_exe().context("this program's own file cannot be found")?;
        let mut child = Command::new(program)
            .args(["run", "--workspace"])
            .arg(workspace)
            .args(settings)
            .args(["--quiet", "--", INNER_STAGE, PROBE])
            .env(SECRET_VARIABLE, &outside.token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer)
            .spawn()
            .context("cannot start the session")?;
        drop(spare);
        let to = child.stdin.take();
        let from = child.stdout.take().context("a session without output")?;
        Ok(Self {
            child,
            to,
            from,
            heard: Vec::new(),
            messages,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells the prober something, and hears what it says to it.
    pub(super) fn ask<T: DeserializeOwned>(&mut self, what: &impl Serialize) -> Result<T> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        if let Some(to) = &mut self.to {
            // If it does not hear this it has ended, which the next line finds out.
            let _ = to.write_all(&line);
        }
        match self.line()? {
            Some(line) => {
                serde_json::from_slice(&hooks::heard(line)).context("the prober said nonsense")
            }
            None => Err(self.failure()),
        }
    }

    /// A line, or nothing if the session has ended.
    fn line(&mut self) -> Result<Option<Vec<u8>>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.heard.drain(..=end).collect()));
            }
            wait_readable(&self.from, deadline).map_err(|error| match error.kind() {
                io::ErrorKind::TimedOut => {
                    anyhow!("the session did not answer in {} s", PATIENCE.as_secs())
                }
                _ => error.into(),
            })?;
            let mut bytes = [0; 64 * 1024];
            match self.from.read(&mut bytes)? {
                0 => return Ok(None),
                length => self.heard.extend(&bytes[..length]),
            }
        }
    }

    /// Why there was no answer: the session has ended, and said why.
    fn failure(&mut self) -> anyhow::Error {
        let ended = self.child.wait();
        let mut said = Vec::new();
        // What is there; it does not wait for more.
        let _ = self.messages.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        let said = said.trim();
        let what = format!("no session could be verified ({ended}); it said:\n{said}");
        refused(what, "`stockade doctor` says what this machine lacks")
    }

    pub(super) fn end(mut self) -> Result<()> {
        self.to = None;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for ProbedSession {
    fn drop(&mut self) {
        // If it has ended already this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both ends of a pipe. The one to read from never waits.
fn unnamed(token: &str) -> io::Result<(File, File)> {
    let path = env::temp_dir().join(format!(".stockade-verify-{token}.messages"));
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
    let open = |flags: OFlags| {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::open(&path, flags, Mode::empty()).map(File::from)
    };
    // Open both ways, so that neither end waits for the other one.
    let reader = open(OFlags::RDWR | OFlags::NONBLOCK);
    let writer = open(OFlags::WRONLY | OFlags::NONBLOCK);
    fs::remove_file(&path)?;
    let (reader, writer) = (reader?, writer?);
    // The session's messages wait for room.
    fcntl_setfl(&writer, OFlags::empty())?;
    Ok((reader, writer))
}
