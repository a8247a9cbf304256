//! Reaching the user who does not watch: a popup of tmux, a notification of the desktop.
//!
//! # Theory of operation
//! A thread of the warden starts the programs `tmux` and `notify-send`, by absolute paths of the
//! system. It is in user namespace A like the whole warden, where the user is the same and has no
//! authority; both programs only speak to a socket of the user's. It has no seccomp filter and sees the
//! host's files; what it starts has none of the warden's descriptors, no privilege, no blocked signals
//! and only the environment that it needs.
//!
//! The popup is this program again, started by the user's tmux server ([`tmux`]). It has the session's
//! name and nothing else on its line, asks the control socket what there is to answer, and shows that.
//! A notification has a text in which a program inside can have chosen words, so only letters, digits
//! and a few other characters are left of it ([`plain`]).

mod desktop;
mod tmux;

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use stockade_config::Notify;
use stockade_gate::{Answer, AnsweredBy};
use stockade_sys::{process::Descent, signals::SignalSet};

use self::{desktop::Desktop, tmux::Tmux};
use super::session::LiveSession;

/// How often it is looked at what became of a prompt, while there is one.
const INTERVAL: Duration = Duration::from_millis(200);
/// How long a popup that did not come up, since another one was open, is waited with.
const AGAIN: Duration = Duration::from_secs(1);
/// Notices in a minute. One more says that there are more.
const NOTICES: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);
/// Characters of a notice.
const LONGEST: usize = 240;
/// Where systems install programs. Never looked for in `PATH`, which may lead into the workspace.
const DIRECTORIES: [&str; 4] = [
    "/usr/bin",
    "/usr/local/bin",
    "/bin",
    "/run/current-system/sw/bin",
];

/// To tell the thread something.
#[derive(Debug)]
pub(crate) struct Prompts(Sender<Prompt>);

#[derive(Debug)]
enum Prompt {
    /// There are other questions now.
    Asked,
    Tell(Notify, String),
}

impl Prompts {
    pub(crate) fn start(
        session: Arc<LiveSession>,
        environment: &BTreeMap<OsString, OsString>,
    ) -> io::Result<Self> {
        let (sender, prompts) = channel();
        let mut desk = Desk {
            tmux: Tmux::find(environment),
            desktop: Desktop::find(environment),
            session,
            popup: None,
            next_popup: Instant::now(),
            notifications: BTreeMap::new(),
            notices: VecDeque::new(),
            ending: Vec::new(),
        };
        let reachable = desk.tmux.is_some() || desk.desktop.is_some();
        let attention = Arc::clone(desk.session.attention());
        thread::Builder::new()
            .name("prompts".to_owned())
            .spawn(move || desk.serve(&prompts))?;
        attention.reachable.store(reachable, Ordering::Relaxed);
        Ok(Self(sender))
    }

    /// A question came, or is answered.
    pub(crate) fn asked(&self) {
        // The thread ends with this handle.
        let _ = self.0.send(Prompt::Asked);
    }

    pub(crate) fn tell(&self, how: Notify, text: String) {
        let _ = self.0.send(Prompt::Tell(how, text));
    }
}

struct Desk {
    tmux: Option<Tmux>,
    desktop: Option<Desktop>,
    session: Arc<LiveSession>,
    /// The popup, and the questions that there were when it was opened.
    popup: Option<(Child, Vec<u64>)>,
    next_popup: Instant,
    /// The notifications, by their questions.
    notifications: BTreeMap<u64, desktop::Notification>,
    notices: VecDeque<Instant>,
    /// What ends by itself, and the notice that it shows.
    ending: Vec<(Child, Option<String>)>,
}

impl Desk {
    fn serve(&mut self, prompts: &Receiver<Prompt>) {
        loop {
            let questions = self.questions();
            let is_idle = questions.is_empty()
                && self.popup.is_none()
                && self.notifications.is_empty()
                && self.ending.is_empty();
            let prompt = match is_idle {
                true => prompts.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => prompts.recv_timeout(INTERVAL),
            };
            match prompt {
                Ok(Prompt::Tell(how, text)) => self.tell(how, &text),
                Ok(Prompt::Asked) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
            self.look();
        }
    }

    fn questions(&self) -> Vec<u64> {
        self.session
            .live()
            .lock()
            .questions
            .keys()
            .copied()
            .collect()
    }

    /// Looks at what became of prompts, and asks what is to be asked.
    fn look(&mut self) {
        self.look_at_notices();
        let questions = self.questions();
        self.look_at_popup(&questions);
        self.look_at_notifications(&questions);
        if self.session.attention().watchers.load(Ordering::Relaxed) > 0 || self.popup.is_some() {
            return;
        }
        for id in self.questions() {
            self.ask(id);
        }
    }

    /// Asks one question by the first way that there is.
    fn ask(&mut self, id: u64) {
        if self.popup.is_some() || self.notifications.contains_key(&id) {
            return;
        }
        if let Some(tmux) = &self.tmux {
            if Instant::now() < self.next_popup {
                return;
            }
            if let Ok(popup) = tmux.ask(&self.session.id) {
                self.popup = Some((popup, self.questions()));
                return;
            }
        }
        self.notify_or_refuse(id);
    }

    fn notify_or_refuse(&mut self, id: u64) {
        let live = self.session.live().lock();
        let question = live.questions.get(&id).map(|it| it.live(id));
        drop(live);
        let Some(question) = question else {
            return;
        };
        let asked = self.desktop.as_ref().map(|desktop| desktop.ask(&question));
        match asked {
            Some(Ok(notification)) => {
                self.notifications.insert(id, notification);
            }
            _ => self.settle(id, Answer::Deny, AnsweredBy::Unattended),
        }
    }

    fn settle(&self, id: u64, answer: Answer, by: AnsweredBy) {
        if self.session.settle(id, answer, by).is_err() && answer != Answer::Deny {
            // The rule could not be written. What the user allowed passes once.
            let _ = self.session.settle(id, Answer::Once, by);
        }
    }

    fn look_at_popup(&mut self, questions: &[u64]) {
        let Some((popup, _)) = &mut self.popup else {
            return;
        };
        let Ok(Some(status)) = popup.try_wait() else {
            return;
        };
        let Some((_, shown)) = self.popup.take() else {
            return;
        };
        let left = shown.into_iter().filter(|id| questions.contains(id));
        match Ended::of(status) {
            // Another one was open.
            Ended::Well => self.next_popup = Instant::now() + AGAIN,
            // No terminal shows this tmux.
            Ended::NotBegun => left.for_each(|id| self.notify_or_refuse(id)),
            // The user closed it.
            Ended::Otherwise => {
                left.for_each(|id| self.settle(id, Answer::Deny, AnsweredBy::Tmux));
            }
        }
    }

    fn look_at_notifications(&mut self, questions: &[u64]) {
        let mut answered = Vec::new();
        self.notifications.retain(|id, notification| {
            if !questions.contains(id) {
                notification.withdraw();
                return false;
            }
            let answer = notification.answer();
            answered.extend(answer.map(|answer| (*id, answer)));
            answer.is_none()
        });
        for (id, (answer, by)) in answered {
            self.settle(id, answer, by);
        }
    }

    /// Shows a notice, unless there were very many.
    fn tell(&mut self, how: Notify, text: &str) {
        while self.notices.front().is_some_and(|it| it.elapsed() > MINUTE) {
            self.notices.pop_front();
        }
        let text = match self.notices.len() {
            0..NOTICES => plain(text),
            NOTICES => "stockade: more was denied; see: stockade log --denied".to_owned(),
            _ => return,
        };
        self.notices.push_back(Instant::now());
        let told = match how {
            Notify::Off => None,
            Notify::Auto | Notify::Tmux => self.tmux.as_ref().map(|tmux| tmux.tell(&text, false)),
            Notify::Desktop => self.desktop.as_ref().map(|desktop| desktop.tell(&text)),
        };
        let again = (how != Notify::Desktop).then_some(text);
        let told = told.and_then(Result::ok);
        self.ending.extend(told.map(|child| (child, again)));
    }

    /// What an older tmux did not understand is said so that it does.
    fn look_at_notices(&mut self) {
        for (mut child, notice) in std::mem::take(&mut self.ending) {
            match (child.try_wait(), notice, &self.tmux) {
                (Ok(Some(status)), Some(text), Some(tmux)) if !status.success() => {
                    let told = tmux.tell(&text, true).ok();
                    self.ending.extend(told.map(|child| (child, None)));
                }
                (Ok(None), notice, _) => self.ending.push((child, notice)),
                _ => {}
            }
        }
    }

    fn end(&mut self) {
        for notification in self.notifications.values_mut() {
            notification.withdraw();
        }
    }
}

/// How tmux ended that was to open a popup.
enum Ended {
    Well,
    /// tmux itself failed.
    NotBegun,
    Otherwise,
}

impl Ended {
    fn of(status: ExitStatus) -> Self {
        const FAILED: i32 = 1;
        match status.code() {
            Some(0) => Self::Well,
            Some(FAILED) => Self::NotBegun,
            _ => Self::Otherwise,
        }
    }
}

/// A program of the system.
fn find(name: &str) -> Option<PathBuf> {
    let paths = DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(name));
    paths.into_iter().find(|path| path.is_file())
}

/// A program with nothing of the warden's but these variables.
fn command<'a>(
    program: &Path,
    variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(variables)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Descent {
        keep: Vec::new(),
        mask: SignalSet::EMPTY,
        group: Arc::default(),
    }
    .prepare(&mut command);
    command
}

/// A text that no program takes for anything but text: of markup, formats and options nothing is left.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,:;/-_*[]()+@=".contains(c);
    let plain = text.chars().map(|c| if is_plain(c) { c } else { '?' });
    plain.take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_markup_formats_escapes_or_options_is_left_of_a_notice() {
        let hostile = "<b>&amp;</b> #(touch /x) #{pane_id} %H $(x) `x` \u{1b}[2J\u{202e}\"'\\\n";
        let shown = plain(hostile);
        assert!(!shown.contains([
            '<', '&', '#', '%', '$', '`', '\u{1b}', '"', '\'', '\\', '\n'
        ]));
        assert_eq!(plain("tcp://[fd00::5]:80-90"), "tcp://[fd00::5]:80-90");
        assert_eq!(plain(&"x".repeat(9999)).len(), LONGEST);
    }
}
