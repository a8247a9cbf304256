//! The session that is verified: `stockade run` itself, as a process of its own, with the
//! prober as its command.

use std::{
    env,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use rustix::{
    fs::{OFlags, fcntl_setfl},
    io::{FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
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
    requests: Requests,
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
        let (messages, writer) = pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe")?;
        let messages = File::from(messages);
        fcntl_setfl(&messages, OFlags::NONBLOCK)?;
        let spare = writer.try_clone()?;
        // A file that the plan does not have: what a rule about paths says of it can be found out inside.
        let requests = Requests::new(&outside.token).context("cannot make a file in /tmp")?;
        // The descriptor that is to stay outside.
        fcntl_setfd(&spare, FdFlags::empty())?;
        let program = env::current_exe().context("this program's own file cannot be found")?;
        let mut child = Command::new(program)
            .args(["run", "--workspace"])
            .arg(workspace)
            .args(settings)
            .args(["--quiet", "--", INNER_STAGE, PROBE])
            .env(SECRET_VARIABLE, &outside.token)
            .stdin(File::open(&requests.path)?)
            .stdout(Stdio::piped())
            .stderr(writer)
            .spawn()
            .context("cannot start the session")?;
        drop(spare);
        let from = child.stdout.take().context("a session without output")?;
        Ok(Self {
            child,
            requests,
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
        self.requests.file.write_all(&line)?;
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

/// The prober's standard input, which grows by what it is asked.
struct Requests {
    path: PathBuf,
    file: File,
}

impl Requests {
    fn new(token: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!(".stockade-verify-{token}.requests"));
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).mode(0o600);
        let file = file.open(&path)?;
        Ok(Self { path, file })
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
