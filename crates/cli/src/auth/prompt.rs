//! A token from the terminal, without its echo, or from standard input.

use std::{
    io::{self, IsTerminal as _, Read as _},
    os::fd::AsFd as _,
};

use anyhow::{Context as _, Result, bail};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::getpid,
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr},
};
use stockade_config::Token;
use stockade_sys::signals::{self, Recipient, Signal, SignalReader, SignalSet};

use crate::exit::refused;

/// More than the longest token and a line break.
const LONGEST: u64 = 8 << 10;

/// Reads a token. `question` is asked if there is somebody to ask; `page` makes tokens.
pub(super) fn token(question: &str, page: &str) -> Result<Token> {
    let text = match io::stdin().is_terminal() {
        true => hidden(question)?,
        false => piped()?,
    };
    // A pasted token often brings a blank or a line break along.
    Token::parse(text.trim()).map_err(|why| {
        let fix = format!("copy the whole token from {page}, and nothing else");
        refused(format!("that is not a token: {why}"), fix)
    })
}

fn piped() -> Result<String> {
    let mut text = String::new();
    let outcome = io::stdin().take(LONGEST).read_to_string(&mut text);
    outcome.context("cannot read a token from standard input")?;
    Ok(text)
}

/// One line of the terminal, which does not show it.
fn hidden(question: &str) -> Result<String> {
    let silence = Silence::begin().context("cannot turn off the terminal's echo")?;
    stockade_sys::message::tell(question);
    let line = silence.line();
    drop(silence);
    match line.context("cannot read from the terminal")? {
        Line::Text(text) => Ok(text),
        Line::Ended(signal) => {
            tell!("");
            // The shell is to know what ended us, also one that has us ignore it.
            signals::set_default(signal);
            signals::send(signal, Recipient::Process(getpid()))?;
            bail!("interrupted: nothing was stored")
        }
    }
}

enum Line {
    Text(String),
    Ended(Signal),
}

/// The terminal does not echo, and signals that would leave it so wait. Both end with this value.
struct Silence {
    modes: Termios,
    mask: SignalSet,
    signals: SignalReader,
}

impl Silence {
    fn begin() -> io::Result<Self> {
        let ends = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
        let held = ends.into_iter().chain([Signal::TSTP]).collect();
        let modes = tcgetattr(io::stdin())?;
        let mut silent = modes.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        let mask = signals::block(held)?;
        let signals = SignalReader::new(held)?;
        let silence = Self {
            modes,
            mask,
            signals,
        };
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(silence)
    }

    fn line(&self) -> io::Result<Line> {
        let stdin = io::stdin();
        let mut line = Vec::new();
        loop {
            let mut fds = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(&stdin, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                outcome => outcome?,
            };
            let [_, typed] = fds.map(|fd| !fd.revents().is_empty());
            match self.signals.read()? {
                // A stopped program could leave a silent terminal behind.
                Some(received) if received.signal == Signal::TSTP => continue,
                Some(received) => return Ok(Line::Ended(received.signal)),
                None if !typed => continue,
                None => {}
            }
            let mut buffer = [0; 4096];
            let count = rustix::io::read(stdin.as_fd(), &mut buffer)?;
            line.extend(buffer.iter().take(count));
            let too_long = line.len() as u64 > LONGEST;
            if count == 0 || too_long || line.ends_with(b"\n") {
                let text = String::from_utf8_lossy(&line);
                return Ok(Line::Text(text.into_owned()));
            }
        }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // What was typed of a token and not read is not for the shell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.modes);
        let _ = signals::set_mask(self.mask);
    }
}
