//! Where news of sessions come from: a thread that looks for them, and one for each that is found,
//! so that one that does not answer, because it is suspended for example, keeps nobody waiting.

use std::{
    collections::HashSet,
    io,
    os::unix::net::UnixListener,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel},
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use stockade_warden::{
    self as warden, LogDirectory, LogItem, LogReader,
    live::{Answer, LiveConnection, LiveSnapshot, Means},
};

/// How often a session is asked, and its log looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How often sessions are looked for, and tried again that do not answer.
const SEARCH: Duration = Duration::from_secs(1);
/// Lines of a log at a time.
const LINES: usize = 1000;

#[derive(Debug)]
pub(crate) struct News {
    pub(crate) session: String,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// It was found. Answers go this way.
    Found(Sender<Reply>),
    Lines(Vec<Value>),
    Snapshot(Box<LiveSnapshot>),
    /// It cannot be asked, for this reason.
    Unheard(String),
    /// What became of an answer, or why it has no effect.
    Answered(Reply, Result<(), String>),
    /// Without a last line.
    Gone,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply {
    pub(crate) question: u64,
    pub(crate) answer: Answer,
}

/// Follows one session, or all that there are and will be.
///
/// # Errors
/// If there can be no more threads.
pub(crate) fn follow(
    directory: &LogDirectory,
    only: Option<&str>,
    news: &SyncSender<News>,
) -> io::Result<()> {
    let (directory, news) = (directory.clone(), news.clone());
    if let Some(only) = only {
        return follow_one(&directory, only, &news);
    }
    // Without it, a session is found a little later.
    let begun = warden::hear_of_sessions().ok();
    let search = move || {
        let logged = directory.sessions().into_iter();
        let mut known: HashSet<_> = logged.filter(|id| !directory.is_running(id)).collect();
        let mut ids = Vec::new();
        loop {
            ids.extend(warden::running(&directory).unwrap_or_default());
            // Some begin and end between two looks.
            ids.extend(directory.sessions());
            for id in ids.drain(..) {
                if known.insert(id.clone()) && follow_one(&directory, &id, &news).is_err() {
                    known.remove(&id);
                }
            }
            match &begun {
                Some(listener) => ids.extend(next(listener)),
                None => thread::sleep(SEARCH),
            }
        }
    };
    thread::Builder::new()
        .name("search".to_owned())
        .spawn(search)?;
    Ok(())
}

/// A session that has just begun, if one says so before it is time to search again.
fn next(listener: &UnixListener) -> Option<String> {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let timeout = Timespec::try_from(SEARCH).ok();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(1..) => warden::begun(&listener.accept().ok()?.0),
        _ => None,
    }
}

fn follow_one(directory: &LogDirectory, id: &str, news: &SyncSender<News>) -> io::Result<()> {
    let (replies, to_send) = channel();
    let mut follower = Follower {
        directory: directory.clone(),
        id: id.to_owned(),
        news: news.clone(),
        log: None,
        live: None,
    };
    let run = move || {
        // The only error is that nobody wants news any more.
        let _ = follower
            .tell(What::Found(replies))
            .and_then(|()| follower.run(&to_send));
    };
    thread::Builder::new()
        .name("session".to_owned())
        .spawn(run)?;
    Ok(())
}

struct Follower {
    directory: LogDirectory,
    id: String,
    news: SyncSender<News>,
    log: Option<LogReader>,
    live: Option<LiveConnection>,
}

/// Nobody wants news.
struct Unwanted;

impl Follower {
    fn tell(&self, what: What) -> Result<(), Unwanted> {
        let session = self.id.clone();
        self.news.send(News { session, what }).map_err(|_| Unwanted)
    }

    fn run(&mut self, replies: &Receiver<Reply>) -> Result<(), Unwanted> {
        loop {
            // First: what a session wrote before it ended is there after it has ended.
            let is_running = self.directory.is_running(&self.id);
            if self.read_log()? {
                return Ok(());
            }
            let is_heard = self.ask()?;
            if !is_running && !is_heard {
                return self.tell(What::Gone);
            }
            let wait = if is_heard { LOOK } else { SEARCH };
            match replies.recv_timeout(wait) {
                Ok(reply) => self.answer(reply)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Whether the log has its last line.
    fn read_log(&mut self) -> Result<bool, Unwanted> {
        // A session that has just begun may have none yet.
        if self.log.is_none() {
            self.log = LogReader::open(self.directory.clone(), &self.id).ok();
        }
        let Some(log) = &mut self.log else {
            return Ok(false);
        };
        let mut lines = Vec::new();
        let mut has_ended = false;
        // What cannot be read now may be read the next time.
        while let Ok(Some(item)) = log.read() {
            if let LogItem::Line(line, _) = item {
                has_ended |= line["event"] == "end";
                lines.push(line);
            }
            if lines.len() == LINES {
                let what = What::Lines(std::mem::take(&mut lines));
                let session = self.id.clone();
                self.news
                    .send(News { session, what })
                    .map_err(|_| Unwanted)?;
            }
        }
        if !lines.is_empty() {
            self.tell(What::Lines(lines))?;
        }
        Ok(has_ended)
    }

    /// Whether it says something of itself.
    fn ask(&mut self) -> Result<bool, Unwanted> {
        if self.live.is_none() {
            let stream = match warden::connect(&self.id) {
                Ok(Some(stream)) => stream,
                Ok(None) => {
                    self.tell(What::Unheard("it has no network with rules".to_owned()))?;
                    return Ok(false);
                }
                Err(error) => {
                    self.tell(What::Unheard(error.to_string()))?;
                    return Ok(false);
                }
            };
            self.live = LiveConnection::new(stream).ok();
        }
        let Some(live) = &mut self.live else {
            return Ok(false);
        };
        match live.snapshot(true) {
            Ok(snapshot) => {
                self.tell(What::Snapshot(Box::new(snapshot)))?;
                Ok(true)
            }
            Err(error) => {
                self.live = None;
                self.tell(What::Unheard(error.to_string()))?;
                Ok(false)
            }
        }
    }

    fn answer(&mut self, reply: Reply) -> Result<(), Unwanted> {
        let outcome = match &mut self.live {
            Some(live) => live.answer(reply.question, reply.answer, Means::Watch),
            None => Ok(Err("the session does not answer".to_owned())),
        };
        let outcome = outcome.unwrap_or_else(|error| Err(error.to_string()));
        self.tell(What::Answered(reply, outcome))
    }
}
