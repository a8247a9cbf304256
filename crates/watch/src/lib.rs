//! `stockade watch`: running sessions on a screen, with their questions on top.
//!
//! # Theory of operation
//! ```text
//! session's log ──┐
//!                 ├─ follow: a thread for each session ── News ─┐
//! session itself ─┘                ▲                            ▼
//!                                Reply                        View ── draw ── screen
//!                                  └────────── Action ──────────┘▲
//!                                                     keys ──────┘
//! ```
//! [`view`] is pure, and so is everything that it consists of: what each session is known to do
//! ([`session`]), the lists ([`rows`]) and the questions ([`questions`]). Texts that programs inside
//! have chosen are escaped where they come in ([`text`]).

mod draw;
#[cfg(test)]
mod example;
mod follow;
mod keys;
mod questions;
mod rows;
mod screen;
mod session;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::{
    collections::HashMap,
    io,
    os::fd::AsFd as _,
    sync::mpsc::{Receiver, Sender, sync_channel},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use ratatui_core::{backend::Backend as _, terminal::Terminal};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    stdio::stdin,
};
use stockade_sys::signals::{self, Recipient, Signal, SignalReader, SignalSet};
use stockade_warden::LogDirectory;

use follow::{News, Reply, What};
use screen::Screen;
use text::clean;
pub use text::wrap;
use view::{Action, View};

/// How often the screen is drawn if nothing is pressed.
const TICK: Duration = Duration::from_millis(100);
/// News that wait. Who has more waits with them.
const QUEUE: usize = 64;
/// Sessions that are shown. Beyond that, those that have ended make way.
const SESSIONS: usize = 20;

/// Shows one session, or all that there are and will be, until the user quits. Standard input and
/// output must be a terminal.
///
/// # Errors
/// If the terminal goes away, or something is short.
pub fn watch(directory: &LogDirectory, only: Option<&str>, colours: bool) -> io::Result<()> {
    let ours: SignalSet = [
        Signal::WINCH,
        Signal::CONT,
        Signal::TERM,
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
    ]
    .into_iter()
    .collect();
    // Before there are other threads, which inherit it.
    signals::block(ours)?;
    let signals = SignalReader::new(ours)?;
    let (sender, news) = sync_channel(QUEUE);
    follow::follow(directory, only, &sender)?;
    let screen = Screen::enter()?;
    let size = screen.size()?;
    let mut watch = Watch {
        terminal: Terminal::new(screen)?,
        view: View::new(size, colours),
        start: Instant::now(),
        news,
        replies: HashMap::new(),
    };
    while watch.turn(&signals)? {}
    Ok(())
}

struct Watch {
    terminal: Terminal<Screen>,
    view: View,
    start: Instant,
    news: Receiver<News>,
    replies: HashMap<String, Sender<Reply>>,
}

impl Watch {
    /// Whether to go on.
    fn turn(&mut self, signals: &SignalReader) -> io::Result<bool> {
        while let Ok(news) = self.news.try_recv() {
            self.hear(news);
        }
        let now = self.start.elapsed();
        if self.view.update(now) {
            self.terminal.backend_mut().ring();
        }
        let date = Timestamp::now();
        let view = &self.view;
        self.terminal
            .draw(|frame| draw::draw(view, frame, now, date))?;
        let mut fds = [
            PollFd::from_borrowed_fd(stdin(), PollFlags::IN),
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        ];
        let tick = Timespec::try_from(TICK).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&tick)) {
            Err(rustix::io::Errno::INTR) => return Ok(true),
            polled => polled?,
        };
        let [keyboard, signalled] = fds.map(|fd| !fd.revents().is_empty());
        if signalled {
            while let Some(received) = signals.read()? {
                match received.signal {
                    Signal::WINCH => self.view.size = self.terminal.backend().size()?,
                    Signal::CONT => self.retake()?,
                    _ => return Ok(false),
                }
            }
        }
        if keyboard {
            let mut buffer = [0; 1024];
            let read = rustix::io::read(stdin(), &mut buffer)?;
            if read == 0 {
                return Ok(false);
            }
            // A key may come before the signal that the window has become smaller.
            self.view.size = self.terminal.backend().size()?;
            let keys = keys::keys(buffer.get(..read).unwrap_or_default());
            let action = self
                .view
                .press(&keys, self.start.elapsed(), Timestamp::now());
            return self.act(action);
        }
        Ok(true)
    }

    fn act(&mut self, action: Option<Action>) -> io::Result<bool> {
        match action {
            None => {}
            Some(Action::Quit) => return Ok(false),
            Some(Action::Suspend) => {
                self.terminal.backend().give_back();
                signals::send(Signal::STOP, Recipient::OwnGroup)?;
            }
            Some(Action::Redraw) => self.terminal.clear()?,
            Some(Action::Answer {
                session,
                question,
                answer,
            }) => {
                let reply = Reply { question, answer };
                let way = self.replies.get(&session);
                if way.is_none_or(|way| way.send(reply).is_err()) {
                    self.view.unanswered(&session, question);
                }
            }
        }
        Ok(true)
    }

    /// After a stop, another program may have drawn on it.
    fn retake(&mut self) -> io::Result<()> {
        self.terminal.backend_mut().take()?;
        self.view.size = self.terminal.backend().size()?;
        self.terminal.clear()
    }

    fn hear(&mut self, News { session: id, what }: News) {
        let now = self.start.elapsed();
        match what {
            What::Found(replies) => {
                self.make_room();
                self.replies.insert(id.clone(), replies);
                self.view.session(&id);
            }
            What::Lines(lines) => {
                let session = self.view.session(&id);
                lines.iter().for_each(|line| session.read(line));
            }
            What::Snapshot(snapshot) => self.view.session(&id).show(&snapshot),
            What::Unheard(why) => self.view.session(&id).unheard(&why),
            What::Gone => self.view.session(&id).end("ended abnormally"),
            What::Answered(reply, outcome) => {
                let words = draw::given(reply.answer);
                match outcome {
                    Ok(()) => self.view.notify(format!("answered: {words}"), now),
                    Err(why) => {
                        self.view.unanswered(&id, reply.question);
                        let why = clean(&why);
                        self.view
                            .notify(format!("not answered ({words}): {why}"), now);
                    }
                }
            }
        }
    }

    fn make_room(&mut self) {
        let sessions = &mut self.view.sessions;
        while sessions.len() >= SESSIONS {
            let ended = sessions.iter().find(|(_, session)| session.has_ended());
            let Some(id) = ended.map(|(id, _)| id.clone()) else {
                return;
            };
            sessions.remove(&id);
            self.replies.remove(&id);
        }
    }
}
