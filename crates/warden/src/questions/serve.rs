//! The answering side: a thread of the warden.

use std::{
    collections::VecDeque,
    fs,
    io::{self, Read as _, Write as _},
    os::{
        fd::AsFd as _,
        unix::net::{UnixListener, UnixStream},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::getuid,
};
use stockade_sys::socket::peer;

use super::{LONGEST, SessionView};

/// Connections at a time. One more, and the oldest ends.
const MOST: usize = 32;
/// How long somebody may take to ask.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections in each tenth of a second. More wait: whoever floods the socket costs the warden a
/// small part of a processor.
const RATE: u32 = 100;
const INTERVAL: Duration = Duration::from_millis(100);
/// How deep in the tree of processes somebody who asks may be.
const DEEPEST: usize = 512;

/// Serves until the session ends. `sandbox` is the process that everything inside descends from.
pub(crate) fn serve(listener: UnixListener, sandbox: u32, session: SessionView) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    thread::Builder::new()
        .name("questions".to_owned())
        .spawn(move || {
            let mut server = Server {
                listener,
                sandbox,
                session,
                askers: VecDeque::new(),
                rate: Rate::new(),
            };
            loop {
                server.turn();
            }
        })?;
    Ok(())
}

struct Server {
    listener: UnixListener,
    sandbox: u32,
    session: SessionView,
    /// The oldest first.
    askers: VecDeque<Asker>,
    rate: Rate,
}

impl Server {
    fn turn(&mut self) {
        self.wait();
        match self.listener.accept() {
            Ok((stream, _)) => {
                self.rate.count();
                if let Some(asker) = Asker::new(stream, self.sandbox) {
                    if self.askers.len() == MOST {
                        self.askers.pop_front();
                    }
                    self.askers.push_back(asker);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Out of descriptors, most likely: that may pass.
            Err(_) => thread::sleep(INTERVAL),
        }
        let session = &mut self.session;
        self.askers.retain_mut(|asker| asker.turn(session));
    }

    /// Waits for somebody to connect or to ask, or for the time of the oldest to be over.
    fn wait(&self) {
        let first = self.askers.front();
        let timeout = first.map(|asker| asker.until.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let streams = self.askers.iter().map(|asker| asker.stream.as_fd());
        let mut fds: Vec<PollFd<'_>> = [self.listener.as_fd()]
            .into_iter()
            .chain(streams)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        // Interrupted or not, all are looked at.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

/// Somebody who has not asked yet.
struct Asker {
    stream: UnixStream,
    line: Vec<u8>,
    until: Instant,
}

impl Asker {
    /// None if it is no process of this session.
    fn new(stream: UnixStream, sandbox: u32) -> Option<Self> {
        let peer = peer(&stream).ok()?;
        let is_inside = peer.user == getuid().as_raw() && descends(peer.process?, sandbox);
        let until = Instant::now() + PATIENCE;
        stream.set_nonblocking(true).ok()?;
        is_inside.then_some(Self {
            stream,
            line: Vec::new(),
            until,
        })
    }

    /// Reads what there is, and answers a line. Whether there is more to come.
    fn turn(&mut self, session: &mut SessionView) -> bool {
        let mut buffer = [0; LONGEST];
        let read = match self.stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(length) => buffer.get(..length).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Instant::now() < self.until;
            }
            Err(_) => return false,
        };
        self.line.extend(read);
        let end = self.line.iter().position(|byte| *byte == b'\n');
        if end.is_none() && self.line.len() <= LONGEST {
            return true;
        }
        let line = self.line.get(..end.unwrap_or(self.line.len()));
        // It has room: nothing was written before. Whoever does not wait for it gets none.
        let _ = self
            .stream
            .write_all(session.answer(line.unwrap_or_default()).as_bytes());
        false
    }
}

/// Whether a process descends from another one: orphans inside are adopted by process 1, which does.
fn descends(mut process: u32, ancestor: u32) -> bool {
    for _ in 0..DEEPEST {
        match parent(process) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent > 1 => process = parent,
            _ => return false,
        }
    }
    false
}

fn parent(process: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{process}/stat")).ok()?;
    // The program's own name comes before, in brackets, and may have any bytes.
    let end = status.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(status.get(end..)?).ok()?;
    rest.split(' ').nth(2)?.parse().ok()
}

struct Rate {
    since: Instant,
    count: u32,
}

impl Rate {
    fn new() -> Self {
        let since = Instant::now();
        Self { since, count: 0 }
    }

    /// Waits if there were too many.
    fn count(&mut self) {
        self.count += 1;
        if self.since.elapsed() > INTERVAL {
            *self = Self::new();
        } else if self.count == RATE {
            thread::sleep(INTERVAL.saturating_sub(self.since.elapsed()));
            *self = Self::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::parent_id, process};

    use super::*;

    #[test]
    fn a_process_descends_from_its_parent_and_not_from_itself() {
        assert_eq!(parent(process::id()), Some(parent_id()));
        assert!(descends(process::id(), parent_id()));
        assert!(!descends(parent_id(), process::id()));
        assert!(!descends(process::id(), process::id()));
    }

    #[test]
    fn a_process_that_does_not_descend_from_the_sandbox_gets_no_answer() {
        let directory = tempfile::tempdir().expect("a directory");
        let ask = |sandbox| {
            let path = directory.path().join(format!("{sandbox}"));
            let listener = UnixListener::bind(&path).expect("a socket");
            serve(listener, sandbox, SessionView::bare("1-2-3")).expect("a thread");
            let mut stream = UnixStream::connect(&path).expect("a connection");
            // It may be closed already.
            let _ = stream.write_all(b"{\"ask\":\"inside\"}\n");
            let mut said = String::new();
            let _ = stream.read_to_string(&mut said);
            said
        };
        assert_eq!(ask(process::id()), "");
        // Positive control.
        assert_eq!(ask(parent_id()), "{\"protocol\":1,\"session\":\"1-2-3\"}\n");
    }

    #[test]
    fn whoever_is_slow_asks_too_much_or_comes_in_numbers_does_not_keep_others_waiting() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        serve(listener, parent_id(), SessionView::bare("1-2-3")).expect("a thread");
        let connect = || UnixStream::connect(&path).expect("a connection");
        let silent: Vec<_> = (0..2 * MOST).map(|_| connect()).collect();
        let mut long = connect();
        let _ = long.write_all(&[b' '; 2 * LONGEST]);
        let mut said = String::new();
        let _ = long.read_to_string(&mut said);
        assert!(
            said.contains("unknown question") || said.is_empty(),
            "{said}"
        );
        let mut honest = connect();
        honest
            .write_all(b"{\"ask\":\"inside\"}\n")
            .expect("a question");
        let mut said = String::new();
        honest.read_to_string(&mut said).expect("an answer");
        assert!(said.contains("1-2-3"), "{said}");
        drop(silent);
    }
}
