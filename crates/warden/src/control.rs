//! What other commands of the same user can ask of a running session: one line of JSON each
//! way, as often as they like over one connection.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    live::{Answer, LiveSnapshot, Means},
    reload::Reloaded,
    sessions::is_mine,
};

const LONGEST: u64 = 64 * 1024;
/// How long a request or its answer may take. A connection on which nothing is asked for so long
/// ends: nobody watches by it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at a time, each with a thread. One more is closed at once.
const CONNECTIONS: usize = 16;

/// The name of a request changes with its meaning or the form of its answer: a session of another
/// version must not reload, for example, and then seem not to have.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Take up the configuration as it is now.
    #[serde(rename = "reload-2")]
    Reload,
    /// Show what happens now. With `attends`, whoever asks answers questions while connected.
    #[serde(rename = "live-1")]
    Live { attends: bool },
    #[serde(rename = "answer-1")]
    Answer {
        question: u64,
        answer: Answer,
        by: Means,
    },
}

/// Why a session could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(transparent)]
    Unreachable(#[from] io::Error),
    #[error("the session did not answer")]
    NoAnswer(#[source] io::Error),
    #[error("the session is of another version")]
    OtherVersion(#[source] serde_json::Error),
}

/// What came of it, or why nothing did.
pub type Reply = Result<Reloaded, String>;

/// What a session does when it is asked.
pub(crate) trait Controlled: Send + Sync + 'static {
    /// Somebody watches as long as it lives.
    type Attendance;

    fn reload(&self) -> Reply;
    fn live(&self) -> LiveSnapshot;
    fn attend(&self) -> Self::Attendance;
    fn answer(&self, question: u64, answer: Answer, by: Means) -> Result<(), String>;
}

/// Serves requests on threads of their own until the session ends.
pub(crate) fn serve<S: Controlled>(listener: UnixListener, session: Arc<S>) -> io::Result<()> {
    let connections = Arc::new(AtomicUsize::new(0));
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            for stream in listener.incoming() {
                // Out of descriptors, most likely: that may pass.
                let Ok(stream) = stream else {
                    thread::sleep(Duration::from_millis(100));
                    continue;
                };
                let session = Arc::clone(&session);
                if let Some(slot) = Slot::take(&connections) {
                    // Whoever asks nonsense, or does not wait for the answer, gets none.
                    let _ = thread::Builder::new()
                        .name("control".to_owned())
                        .spawn(move || {
                            let _slot = slot;
                            let _ = converse(&stream, &*session);
                        });
                }
            }
        })?;
    Ok(())
}

/// One of the connections that there may be.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(connections: &Arc<AtomicUsize>) -> Option<Self> {
        let slot = Self(Arc::clone(connections));
        let before = connections.fetch_add(1, Ordering::Relaxed);
        (before < CONNECTIONS).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn converse<S: Controlled>(stream: &UnixStream, session: &S) -> io::Result<()> {
    if !is_mine(stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut attendance = None;
    loop {
        let mut line = String::new();
        if (&mut reader).take(LONGEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let reply = match serde_json::from_str(&line)? {
            Request::Reload => serde_json::to_string(&session.reload())?,
            Request::Live { attends } => {
                if attends && attendance.is_none() {
                    attendance = Some(session.attend());
                }
                serde_json::to_string(&Ok::<_, String>(session.live()))?
            }
            Request::Answer {
                question,
                answer,
                by,
            } => serde_json::to_string(&session.answer(question, answer, by))?,
        };
        writeln!(writer, "{reply}")?;
    }
}

/// Has a session take up the configuration as it is now.
///
/// # Errors
/// If it does not answer, or not in a way that is understood here.
pub fn ask_to_reload(mut stream: UnixStream) -> Result<Reply, ControlError> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = serde_json::to_string(&Request::Reload).map_err(io::Error::from)?;
    writeln!(stream, "{request}")?;
    let answer = line(&stream).map_err(ControlError::NoAnswer)?;
    serde_json::from_str(&answer).map_err(ControlError::OtherVersion)
}

fn line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{LiveConnection, LiveCounts};

    #[derive(Default)]
    struct Session {
        reloads: AtomicUsize,
        watchers: Arc<AtomicUsize>,
    }

    impl Controlled for Session {
        type Attendance = Slot;

        fn reload(&self) -> Reply {
            self.reloads.fetch_add(1, Ordering::SeqCst);
            Ok(reloaded())
        }

        fn live(&self) -> LiveSnapshot {
            LiveSnapshot {
                session: "1-2-3".to_owned(),
                workspace: "/w".to_owned(),
                command: vec!["true".to_owned()],
                mode: "jail".to_owned(),
                internet: true,
                ask: true,
                started: String::new(),
                counts: LiveCounts::default(),
                flows: Vec::new(),
                flows_left_out: 0,
                questions: Vec::new(),
                paused: None,
            }
        }

        fn attend(&self) -> Slot {
            Slot::take(&self.watchers).expect("few")
        }

        fn answer(&self, question: u64, _: Answer, _: Means) -> Result<(), String> {
            match question {
                1 => Ok(()),
                _ => Err("no such question".to_owned()),
            }
        }
    }

    fn reloaded() -> Reloaded {
        Reloaded {
            internet: true,
            rules: 1,
            later: Vec::new(),
            notice: None,
        }
    }

    fn serving() -> (tempfile::TempDir, impl Fn() -> UnixStream, Arc<Session>) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let session = Arc::new(Session::default());
        serve(listener, Arc::clone(&session)).expect("a thread");
        let connect = move || UnixStream::connect(&path).expect("a connection");
        (directory, connect, session)
    }

    #[test]
    fn a_session_does_not_reload_for_another_version_that_would_not_understand_the_answer() {
        let (_directory, connect, session) = serving();
        let mut older = connect();
        writeln!(older, "\"reload\"").expect("a request");
        assert_eq!(line(&older).expect("an end"), "");
        assert_eq!(session.reloads.load(Ordering::SeqCst), 0);
        // Positive control: this version is understood.
        assert_eq!(ask_to_reload(connect()).expect("an answer"), Ok(reloaded()));
        assert_eq!(session.reloads.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn many_ask_over_connections_that_stay_open_and_those_who_watch_count() {
        let (_directory, connect, session) = serving();
        let silent = connect();
        let mut live = LiveConnection::new(connect()).expect("a connection");
        assert_eq!(live.snapshot(false).expect("a snapshot").session, "1-2-3");
        assert_eq!(session.watchers.load(Ordering::SeqCst), 0);
        for _ in 0..2 {
            assert!(live.snapshot(true).expect("a snapshot").ask);
            assert_eq!(session.watchers.load(Ordering::SeqCst), 1);
        }
        let mut answer = |question| live.answer(question, Answer::Once, Means::Watch);
        assert_eq!(answer(1).expect("an answer"), Ok(()));
        assert!(answer(2).expect("an answer").is_err());
        drop(live);
        while session.watchers.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
        drop(silent);
    }

    #[test]
    fn one_connection_too_many_is_closed_and_the_others_go_on() {
        let (_directory, connect, _session) = serving();
        let mut open: Vec<_> = (0..CONNECTIONS)
            .map(|_| LiveConnection::new(connect()).expect("a connection"))
            .collect();
        for live in &mut open {
            live.snapshot(true).expect("a snapshot");
        }
        let mut one_more = LiveConnection::new(connect()).expect("a connection");
        assert!(one_more.snapshot(true).is_err());
        for live in &mut open {
            live.snapshot(true).expect("a snapshot");
        }
        open.pop();
        let again = || LiveConnection::new(connect()).is_ok_and(|mut it| it.snapshot(true).is_ok());
        while !again() {}
    }
}
