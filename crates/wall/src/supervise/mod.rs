//! Supervises a running command.
//!
//! One thread waits for three things: signals to the warden, reports from the inner stage, and the
//! end of bubblewrap. It decides nothing about the command. It passes on what the terminal, the
//! shell or another process wants from it.

pub(crate) mod bwrap_process;
pub(crate) mod outcome;
pub(crate) mod signals;

use std::{
    fmt, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixListener,
    },
    process::ExitStatus,
    sync::Arc,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use stockade_sys::signals::{Received, Signal};

use self::{
    bwrap_process::BwrapProcess,
    outcome::Sought,
    signals::{is_for_groups, is_request_to_end},
};
pub use self::{
    outcome::{FAILED, NOT_FOUND, NotFound, Outcome},
    signals::Signals,
};
use crate::{
    caches::{Housekeeping, OpenCaches},
    control::{Control, Failure, Heard, Order, Report, Target},
    discarded::PrivateHome,
    error::Error,
    launch::{
        Version,
        streams::{Relay, WardenStreams},
    },
    leftovers::Alarm,
    plan::Layer,
    terminal::foreground::{AfterStop, Foreground, LeftModes},
};

/// How often in a row a report may fail to be received before the session is given up.
const PATIENCE: u32 = 3;

/// A sandbox that runs. Dropping it kills everything inside.
#[derive(Debug)]
pub struct Running {
    bwrap: BwrapProcess,
    held: Held,
    achieved: Achieved,
    progress: Progress,
    /// The command is stopped, as far as we know, and so are or were we.
    is_stopped: bool,
    /// The inner stage has started the command, or tried to.
    has_started: bool,
    /// How often in a row a report could not be received.
    unheard: u32,
    /// The command was told to stop, by the terminal or by kill(2), and has not yet.
    is_asked_to_stop: bool,
    freeze: Freeze,
    reload: Option<Hook<ReloadHook>>,
    alarm: Option<Arc<Alarm>>,
    suspend: Option<Hook<SuspendHook>>,
}

/// What became of a command, and of what it wrote.
#[derive(Debug)]
pub struct Supervised {
    pub outcome: Result<Outcome, Error>,
    /// What the command wrote and did not reach its file or its reader: an error for each stream.
    pub unwritten: Vec<Error>,
    pub modes: LeftModes,
}

/// What was prepared for watching over the command.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) control: Control,
    pub(crate) signals: Signals,
    pub(crate) foreground: Foreground,
    pub(crate) sought: Sought,
    /// What the inner stage waits for before it starts the command.
    pub(crate) start: Order,
    /// The standard streams that are not simply the caller's.
    pub(crate) streams: WardenStreams,
    /// Caches of the workspace, in use until the end.
    pub(crate) caches: Option<OpenCaches>,
    pub(crate) home: Option<PrivateHome>,
    /// What listens for questions from inside.
    pub(crate) questions: Option<OwnedFd>,
}

/// What the sandbox is, as far as that depends on the machine.
#[derive(Debug)]
pub(crate) struct Achieved {
    pub(crate) layers: Vec<Layer>,
    pub(crate) version: Version,
}

/// What is called at an event.
struct Hook<F: ?Sized>(Box<F>);

/// What SIGHUP means to a program that has a configuration.
type ReloadHook = dyn FnMut() + Send;
/// What is done around a stop of the warden's own, which it is handed.
type SuspendHook = dyn FnMut(&mut dyn FnMut()) + Send;

impl<F: ?Sized> fmt::Debug for Hook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// Whether everything inside is stopped: without that the warden does not stop, since nobody would
/// look at what the programs inside do to the user's git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freeze {
    No,
    /// It is ordered. Then the warden stops by this signal.
    Ordered(Signal),
    Done,
}

/// How far the command has come, as told by the inner stage.
#[derive(Debug)]
enum Progress {
    /// Bubblewrap builds the sandbox.
    Building,
    /// The inner stage has taken over.
    Running,
    /// Nothing more is expected but the end of bubblewrap.
    Over(Result<Outcome, Error>),
}

impl Running {
    /// Keeps caches below their limit while the session runs.
    #[must_use]
    pub fn tidy_caches(&self) -> Option<Housekeeping> {
        Housekeeping::begin(self.held.caches.as_ref()?.store().clone()).ok()
    }

    /// The command's home, to be looked at when it has ended.
    pub fn take_home(&mut self) -> Option<PrivateHome> {
        self.held.home.take()
    }

    /// What listens for questions from inside, and the process that everything inside descends
    /// from.
    pub fn take_questions(&mut self) -> Option<(UnixListener, u32)> {
        let listener = self.held.questions.take()?;
        Some((listener.into(), self.bwrap.number()))
    }

    pub(crate) fn new(bwrap: BwrapProcess, held: Held, achieved: Achieved) -> Self {
        Self {
            bwrap,
            held,
            achieved,
            progress: Progress::Building,
            is_stopped: false,
            has_started: false,
            unheard: 0,
            is_asked_to_stop: false,
            freeze: Freeze::No,
            reload: None,
            alarm: None,
            suspend: None,
        }
    }

    /// Ends the session when the alarm is raised.
    pub fn on_alarm(&mut self, alarm: Arc<Alarm>) {
        self.alarm = Some(alarm);
    }

    /// Has `suspend` called when the session is about to be suspended, and nothing inside runs any
    /// more. It has to call what it is given, which returns when the session continues.
    pub fn on_suspend(&mut self, suspend: impl FnMut(&mut dyn FnMut()) + Send + 'static) {
        self.suspend = Some(Hook(Box::new(suspend)));
    }

    /// Has `reload` called at a SIGHUP that somebody sent. Without this, and when the
    /// terminal has gone away, the command gets the signal.
    pub fn on_reload(&mut self, reload: impl FnMut() + Send + 'static) {
        self.reload = Some(Hook(Box::new(reload)));
    }

    /// Which protections are there: those of the plan, and what is known only now.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.achieved.layers
    }

    /// Which bubblewrap built it.
    #[must_use]
    pub fn bubblewrap(&self) -> Version {
        self.achieved.version
    }

    /// Has the command started, waits for it to end, and passes on what happens in the
    /// meantime. When it returns, no process of the sandbox is left, and the terminal is the
    /// caller's, with no answer under way to what the command asked it, and with the modes from
    /// before. Those that the command left are for the caller to put back.
    ///
    /// To be called by a thread that has all signals of [`Signals`] blocked, as any has
    /// that was started after [`Signals::block`].
    ///
    /// The outcome is an error if the sandbox could not be built, or was lost.
    pub fn supervise(mut self) -> Supervised {
        let (result, unwritten) = match self.relay() {
            Ok(relay) => {
                let result = self.until_its_end();
                (result, relay.finish())
            }
            Err(error) => (Err(Error::Supervise(error)), Vec::new()),
        };
        let finished = matches!(result, Ok(Outcome::Exited(_)));
        // What wrote to the terminal is dead by now. Without a command nothing did.
        if self.has_started {
            self.held.foreground.ended(!finished);
        }
        Supervised {
            outcome: result,
            unwritten,
            modes: LeftModes(self.held.foreground),
        }
    }

    fn relay(&mut self) -> io::Result<Relay> {
        std::mem::take(&mut self.held.streams).relay()
    }

    fn until_its_end(&mut self) -> Result<Outcome, Error> {
        let watched = self.start().and_then(|()| self.watch());
        let ended = self.bwrap.end();
        watched
            .and(ended)
            .map_err(Error::Supervise)
            .and_then(|status| self.result(status))
    }

    /// Gives the order to start the command. It waits in the socket until the inner stage is
    /// there to read it; if there is none any more, the watch finds out why.
    fn start(&self) -> io::Result<()> {
        match self.held.control.order(&self.held.start) {
            Err(error) if is_gone(&error) => Ok(()),
            done => done,
        }
    }

    /// Until bubblewrap has ended.
    fn watch(&mut self) -> io::Result<()> {
        let mut inner_is_there = true;
        loop {
            let (signalled, ended) = self.wait(inner_is_there)?;
            self.look_at_alarm()?;
            // Before the signals: who has seen the command run may signal it at once.
            // And before looking at the end: the last report comes just before it.
            if inner_is_there {
                inner_is_there = self.hear()?;
            }
            if signalled {
                while let Some(received) = self.held.signals.next()? {
                    self.signal(received)?;
                }
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Waits for any of the three. Says whether there are signals, and whether bubblewrap
    /// has ended.
    fn wait(&self, inner_is_there: bool) -> io::Result<(bool, bool)> {
        let own = [Some(self.held.signals.as_fd()), Some(self.bwrap.as_fd())];
        let inner = inner_is_there.then(|| self.held.control.as_fd());
        let alarm = self.alarm.as_deref().map(AsFd::as_fd);
        let all = own.into_iter().chain([inner, alarm]).flatten();
        let mut fds: Vec<_> = all
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok((is_ready(0), is_ready(1)))
    }

    /// Ends the session if the alarm was raised. It is raised once.
    fn look_at_alarm(&mut self) -> io::Result<()> {
        let is_raised = |alarm: &Arc<Alarm>| {
            let mut fds = [PollFd::new(alarm, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0)
        };
        let Some(alarm) = self.alarm.take_if(|alarm| is_raised(alarm)) else {
            return Ok(());
        };
        if !matches!(self.progress, Progress::Over(_)) {
            self.progress = Progress::Over(Err(alarm.error()));
        }
        self.bwrap.end()?;
        Ok(())
    }

    /// Hears all that the inner stage has said. Says whether it is still there.
    fn hear(&mut self) -> io::Result<bool> {
        loop {
            let heard = match self.held.control.hear_report() {
                Ok(heard) => heard,
                // The kernel may be short of memory for a moment, and a command that runs is not
                // ended for that. What was not heard is still there.
                Err(_) if self.has_started && self.unheard < PATIENCE => {
                    self.unheard += 1;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            };
            self.unheard = 0;
            match heard {
                Heard::Message(report) => self.report(report)?,
                Heard::Silence => return Ok(true),
                Heard::Gone => return Ok(false),
                Heard::Nonsense => {
                    self.progress = Progress::Over(Err(Error::Nonsense));
                    self.bwrap.end()?;
                    return Ok(false);
                }
            }
        }
    }

    fn report(&mut self, report: Report) -> io::Result<()> {
        match (&self.progress, report) {
            (Progress::Over(_), _) => {}
            (_, Report::Ready) => {
                self.progress = Progress::Running;
                self.has_started = true;
            }
            (_, Report::Stopped(signal)) => self.stopped(signal),
            (_, Report::Frozen) => self.frozen()?,
            (_, Report::Awake) => {
                self.progress = Progress::Over(Err(Error::Awake));
                self.bwrap.end()?;
            }
            (_, Report::Exited(code)) => self.progress = Progress::Over(Ok(Outcome::Exited(code))),
            (_, Report::Killed(signal)) => {
                self.progress = Progress::Over(Ok(Outcome::Killed(signal)));
            }
            (_, Report::Uncovered(path)) => {
                self.progress = Progress::Over(Err(Error::Uncovered(path)));
            }
            (_, Report::Failed { what, errno }) => {
                self.progress = Progress::Over(self.failed(what, errno));
            }
        }
        Ok(())
    }

    fn failed(&self, what: Failure, errno: i32) -> Result<Outcome, Error> {
        let error = io::Error::from_raw_os_error(errno);
        let step = match what {
            Failure::NotFound => {
                return Ok(Outcome::NotFound(NotFound::look_outside(&self.held.sought)));
            }
            Failure::NotExecutable => {
                let program = self.held.sought.program.clone();
                return Ok(Outcome::NotExecutable { program, error });
            }
            Failure::Fork => "making a process for it",
            Failure::Limits => "setting its limits",
            Failure::Landlock => "confining it by Landlock",
            Failure::Capabilities => "giving up capabilities",
            Failure::Filter => "installing the system call filter",
            Failure::Descriptors => "closing descriptors",
            Failure::Signals => "restoring its signals",
        };
        Err(Error::Start { step, error })
    }

    fn stopped(&mut self, signal: Signal) {
        self.is_stopped = true;
        // A command that was just stopped for want of the terminal cannot stop again.
        let signal = if std::mem::take(&mut self.is_asked_to_stop) {
            Signal::TSTP
        } else {
            signal
        };
        match self.held.foreground.stopped(signal) {
            AfterStop::Lend => self.resume(),
            AfterStop::Suspend => self.freeze(signal),
        }
    }

    fn freeze(&mut self, signal: Signal) {
        self.freeze = Freeze::Ordered(signal);
        self.order(&Order::Freeze);
    }

    /// Nothing inside runs, unless it was continued meanwhile.
    fn frozen(&mut self) -> io::Result<()> {
        let Freeze::Ordered(signal) = self.freeze else {
            return Ok(());
        };
        self.freeze = Freeze::Done;
        self.held.foreground.suspended();
        self.suspend(signal)
    }

    fn suspend(&mut self, signal: Signal) -> io::Result<()> {
        let mut result = Ok(true);
        let (foreground, control) = (&mut self.held.foreground, &self.held.control);
        let mut stop = || result = stop(foreground, control, signal);
        match &mut self.suspend {
            Some(Hook(suspend)) => suspend(&mut stop),
            None => stop(),
        }
        // If we did stop, the SIGCONT that ended it is read next, and resumes.
        if !result? {
            self.resume();
        }
        Ok(())
    }

    fn resume(&mut self) {
        self.is_stopped = false;
        self.freeze = Freeze::No;
        let foreground = self.held.foreground.lend();
        self.order(&Order::Continue { foreground });
    }

    /// A signal came for the warden, which means the command.
    fn signal(&mut self, received: Received) -> io::Result<()> {
        let signal = received.signal;
        match (&self.progress, signal) {
            (Progress::Over(_), _) | (_, Signal::TTIN | Signal::TTOU) => {}
            (_, Signal::CONT) => self.resume(),
            // The kernel sends one for a terminal that is gone, and to a stopped job whose shell is.
            (Progress::Running, Signal::HUP)
                if !received.from_kernel
                    && !self.held.foreground.is_hung_up()
                    && self.reload.is_some() =>
            {
                if let Some(Hook(reload)) = &mut self.reload {
                    reload();
                }
            }
            // Ctrl-Z right after `fg`, before we had read the SIGCONT, which the kernel
            // then takes back: the command still lies stopped, and cannot stop again.
            (_, Signal::TSTP) if self.is_stopped => match self.freeze {
                Freeze::Done => self.suspend(signal)?,
                Freeze::No | Freeze::Ordered(_) => self.freeze(signal),
            },
            // Nobody inside could take it yet, and bubblewrap may hang on a dead mount.
            (Progress::Building, signal)
                if is_request_to_end(signal) && !self.held.signals.ignored.contains(signal) =>
            {
                self.progress = Progress::Over(Ok(Outcome::Killed(signal)));
                self.bwrap.end()?;
            }
            _ => {
                self.is_asked_to_stop |= signal == Signal::TSTP;
                let target = if is_for_groups(received) {
                    Target::Group
                } else {
                    Target::Command
                };
                self.order(&Order::Signal { signal, target });
            }
        }
        Ok(())
    }

    /// An order that cannot be sent is lost: the inner stage is gone, whose end is seen
    /// elsewhere, or does not read, and then it would not obey either.
    fn order(&self, order: &Order) {
        let _ = self.held.control.order(order);
    }

    /// What to make of it all, now that bubblewrap has ended.
    fn result(&mut self, status: ExitStatus) -> Result<Outcome, Error> {
        match std::mem::replace(&mut self.progress, Progress::Running) {
            Progress::Over(result) => result,
            Progress::Building => Err(Error::BubblewrapFailed(status)),
            Progress::Running => Err(Error::SandboxLost(status)),
        }
    }
}

/// Stops the warden, until the shell continues it or process 1 has something to say: what it says
/// while nothing runs inside is the end. Says whether something is to be read, a signal or that.
fn stop(foreground: &mut Foreground, control: &Control, signal: Signal) -> io::Result<bool> {
    stockade_sys::signals::send_when_readable(control, Some(Signal::CONT))?;
    // Before this the kernel has sent nothing, and a SIGCONT that comes just before we stop is
    // forgotten; but process 1 says it again.
    let stopped = if control.has_news()? {
        Ok(true)
    } else {
        foreground.suspend(signal)
    };
    stockade_sys::signals::send_when_readable(control, None)?;
    stopped
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected};
    let gone = [BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected];
    gone.contains(&error.kind())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sandbox_can_be_started_on_one_thread_and_watched_by_another() {
        fn can_move<T: Send>() {}
        can_move::<super::Running>();
        can_move::<crate::Launch>();
    }
}
