//! Which program is behind a flow that is denied.
//!
//! The search reads what the kernel tells of processes, which the gate's own thread cannot see. So
//! a thread beside it searches, while the denied client is held. Who starts the gate says how.

use std::{
    io,
    net::SocketAddr,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};
use stockade_policy::Flow;
use stockade_sys::confine::keep_capabilities;
use tokio::{sync::oneshot, time::timeout};

/// Searches that wait at a time. A program that is denied very much is not searched for each time.
const QUEUE: usize = 64;
/// How long a client is held for the search.
const HELD: Duration = Duration::from_millis(30);
/// How long the log waits for a program. No search takes as long.
const PATIENCE: Duration = Duration::from_secs(1);

/// A program inside, as it was when it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its number inside.
    pub pid: u32,
    /// Its file: a name that the program may have chosen.
    pub exe: String,
    pub argv: Vec<String>,
    /// The names of those that started it, the nearest first, up to the agent.
    pub parents: Vec<String>,
}

/// The name of a program's file, for a line that Stockade writes. The program may have chosen it so that it
/// reads like more of that line, or like a line of its own where the line is wrapped. So one that is
/// not a word is quoted, with its blanks escaped, and no name is long.
#[must_use]
pub fn program_name(exe: &str) -> String {
    const LONGEST: usize = 40;
    let name = exe.rsplit('/').next().unwrap_or_default();
    let is_word = name
        .chars()
        .all(|c| c.is_alphanumeric() || "._+-".contains(c));
    let mut shown = String::new();
    for c in name.chars() {
        match c {
            ' ' => shown.extend(c.escape_unicode()),
            c => shown.extend(c.escape_debug()),
        }
    }
    if shown.chars().count() > LONGEST {
        shown = shown.chars().take(LONGEST - 1).chain(['…']).collect();
    }
    match is_word {
        true => shown,
        false => format!("\"{shown}\""),
    }
}

/// Finds the program that has a flow.
pub type Attribution = Box<dyn FnMut(&Flow, SocketAddr) -> Option<Program> + Send>;

/// The thread beside the gate. It ends with the gate.
#[derive(Debug)]
pub(crate) struct Attributor(Option<SyncSender<Question>>);

#[derive(Debug)]
struct Question {
    flow: Flow,
    client: SocketAddr,
    log: SyncSender<Program>,
    /// Dropped when the search is over.
    _held: oneshot::Sender<()>,
}

/// The program that is being searched for.
#[derive(Debug)]
pub struct PendingProgram(Receiver<Program>);

impl PendingProgram {
    /// Waits until the search is over. Nothing if it found none.
    pub fn wait(&self) -> Option<Program> {
        self.0.recv_timeout(PATIENCE).ok()
    }

    /// The program, if it is found already.
    pub fn take(&self) -> Option<Program> {
        self.0.try_recv().ok()
    }
}

/// A client that is not told of its denial before the search is over.
#[derive(Debug)]
pub(crate) struct HeldClient(oneshot::Receiver<()>);

impl HeldClient {
    pub(crate) async fn release(self) {
        let _ = timeout(HELD, self.0).await;
    }
}

impl Attributor {
    pub(crate) fn start(attribution: Option<Attribution>) -> io::Result<Self> {
        let Some(attribution) = attribution else {
            return Ok(Self(None));
        };
        let (sender, questions) = sync_channel(QUEUE);
        thread::Builder::new()
            .name("attribution".to_owned())
            .spawn(move || serve(attribution, &questions))?;
        Ok(Self(Some(sender)))
    }

    /// Nothing if nobody searches, or too much is searched for already.
    pub(crate) fn ask(
        &self,
        flow: Flow,
        client: SocketAddr,
    ) -> Option<(PendingProgram, HeldClient)> {
        let (log, program) = sync_channel(1);
        let (over, held) = oneshot::channel();
        let question = Question {
            flow,
            client,
            log,
            _held: over,
        };
        self.0.as_ref()?.try_send(question).ok()?;
        Some((PendingProgram(program), HeldClient(held)))
    }
}

fn serve(mut attribution: Attribution, questions: &Receiver<Question>) {
    // Without authority or not at all.
    if keep_capabilities(CapabilitySet::empty()).is_err() {
        return;
    }
    for question in questions {
        if let Some(program) = attribution(&question.flow, question.client) {
            // There is room for one, and the log may be gone.
            let _ = question.log.try_send(program);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_a_sentence_is_seen_to_be_a_name() {
        assert_eq!(program_name("/usr/bin/python3.11"), "python3.11");
        assert_eq!(program_name("/x/c++-é"), "c++-é");
        assert_eq!(program_name("/x/a: b\n\u{1b}"), "\"a:\\u{20}b\\n\\u{1b}\"");
        assert_eq!(program_name("/x/a\"b"), "\"a\\\"b\"");
        let long = program_name(&format!("/x/{}", "y".repeat(255)));
        assert!(long.starts_with("yyy") && long.chars().count() == 40);
        let blanks = program_name(&format!("/x/git{}allowing it", " ".repeat(200)));
        assert!(!blanks.contains(' ') && blanks.chars().count() == 42);
    }
}
