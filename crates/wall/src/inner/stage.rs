//! The main loop of the inner stage: orders, the result of the start, and ended processes.

use std::{io, os::fd::AsFd};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{WaitOptions, WaitStatus},
};
use stockade_sys::signals::{self, Recipient, Signal, SignalReader, SignalSet};

use super::{
    Task, broker,
    command::{self, Handover, News, Started},
    covers::{self, Covers},
    suspension::Suspension,
};
use crate::{
    control::{Control, Heard, Order, Report, Target},
    terminal::Terminal,
};

pub(super) struct Stage {
    control: Control,
    /// Tells when a child has ended or stopped.
    children: SignalReader,
    command: Command,
    covers: Covers,
    /// While the command is stopped, and with it everything else.
    suspension: Option<Suspension>,
}

enum Command {
    Waiting(Task),
    Running(Started),
}

/// What there is to see to.
struct Happened {
    control: PollFlags,
    /// The child says whether it has become the command.
    told: bool,
    /// A child has ended or stopped.
    bereaved: bool,
    /// There is something for the broker to listen at.
    handed_over: bool,
    mounts_changed: bool,
}

/// Whether there is more to do.
type GoOn = bool;

impl Stage {
    pub(super) fn new(control: Control, task: Task) -> io::Result<Self> {
        let children = SignalSet::EMPTY.with(Signal::CHLD);
        signals::block(children)?;
        Ok(Self {
            control,
            children: SignalReader::new(children)?,
            covers: Covers::new(&task.settings.covers)?,
            command: Command::Waiting(task),
            suspension: None,
        })
    }

    /// Waits for something to do and does it.
    pub(super) fn turn(&mut self) -> io::Result<GoOn> {
        let Happened {
            control,
            told,
            bereaved,
            handed_over,
            mounts_changed,
        } = self.wait()?;
        // Before anything that may still wait to be read: without a warden nothing runs.
        if control.contains(PollFlags::HUP) {
            return Ok(false);
        }
        if let Some(path) = self.covers.lost(mounts_changed)? {
            self.control.report(&Report::uncovered(path))?;
            return Ok(false);
        }
        if handed_over {
            self.take_over()?;
        }
        if told && !self.told()? {
            return Ok(false);
        }
        if bereaved && !self.reap()? {
            return Ok(false);
        }
        if let Some(suspension) = &mut self.suspension
            && let Some(report) = suspension.turn()?
        {
            self.control.report(&report)?;
        }
        if control.contains(PollFlags::IN) {
            return match self.control.hear_order()? {
                Heard::Message(order) => self.obey(order),
                Heard::Silence => Ok(true),
                Heard::Gone | Heard::Nonsense => Ok(false),
            };
        }
        Ok(true)
    }

    /// What there is: at the control socket, of the command's start, among the children.
    fn wait(&self) -> io::Result<Happened> {
        let (news, handover) = match &self.command {
            Command::Waiting(_) => (None, None),
            Command::Running(started) => (
                started.news.as_ref().map(AsFd::as_fd),
                started.handover.as_ref().map(AsFd::as_fd),
            ),
        };
        let covers = self.covers.are_there_any();
        let intervals = [
            covers.then_some(covers::INTERVAL),
            self.suspension.as_ref().map(Suspension::interval),
        ];
        let interval = intervals.into_iter().flatten().min();
        let interval = interval.map(Timespec::try_from).transpose();
        let interval = interval.map_err(io::Error::other)?;
        let control = self.control.as_fd();
        let all = [
            (Some(control), PollFlags::IN),
            (Some(self.children.as_fd()), PollFlags::IN),
            (news, PollFlags::IN),
            (handover, PollFlags::IN),
            (covers.then(|| self.covers.as_fd()), PollFlags::PRI),
        ];
        let mut fds = all.map(|(fd, what)| match fd {
            Some(fd) => PollFd::from_borrowed_fd(fd, what),
            // It says no more than the end of the control socket, which is looked at first.
            None => PollFd::from_borrowed_fd(control, PollFlags::empty()),
        });
        match poll(&mut fds, interval.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [control, children, news, handover, mounts] = fds.map(|fd| fd.revents());
        Ok(Happened {
            control,
            told: !news.is_empty(),
            bereaved: !children.is_empty(),
            handed_over: !handover.is_empty(),
            mounts_changed: !mounts.is_empty(),
        })
    }

    fn obey(&mut self, order: Order) -> io::Result<GoOn> {
        match (&self.command, order) {
            (Command::Waiting(task), Order::Start(start)) => {
                self.control.report(&Report::Ready)?;
                match command::start(task, &start) {
                    Ok(started) => self.command = Command::Running(started),
                    Err(report) => {
                        self.control.report(&report)?;
                        return Ok(false);
                    }
                }
            }
            (Command::Running(Started { pid, .. }), Order::Signal { signal, target }) => {
                let recipient = match target {
                    Target::Command => Recipient::Process(*pid),
                    Target::Group => Recipient::Group(*pid),
                };
                // Fails if the group is empty, since its members have moved to others.
                let _ = signals::send(signal, recipient);
            }
            (Command::Running(Started { pid, .. }), Order::Freeze) => {
                self.suspension
                    .get_or_insert_with(|| Suspension::begin(*pid));
            }
            (Command::Running(Started { pid, .. }), Order::Continue { foreground }) => {
                if let Some(suspension) = self.suspension.take() {
                    self.suspension = suspension.end()?;
                }
                // Just before: a Ctrl-Z that reaches a group which is still stopped is forgotten.
                if foreground && let Some(terminal) = Terminal::controlling() {
                    terminal.give_to(*pid);
                }
                let _ = signals::send(Signal::CONT, Recipient::Group(*pid));
            }
            // The warden is this same program and does not say that.
            (Command::Waiting(_), _) | (Command::Running(_), Order::Start(_)) => {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts the broker with what the child hands over. One that hands over nothing has failed, and
    /// says so elsewhere.
    fn take_over(&mut self) -> io::Result<()> {
        match &mut self.command {
            Command::Running(started) => {
                let listener = started.handover.take().and_then(Handover::take);
                listener.map_or(Ok(()), broker::serve)
            }
            Command::Waiting(_) => Ok(()),
        }
    }

    /// Hears from the child whether it has become the command.
    fn told(&mut self) -> io::Result<GoOn> {
        let Command::Running(started) = &mut self.command else {
            return Ok(true);
        };
        match started.news.take().and_then(News::read) {
            None => Ok(true),
            Some(failure) => {
                self.control.report(&failure)?;
                Ok(false)
            }
        }
    }

    /// Collects children that have ended.
    fn reap(&mut self) -> io::Result<GoOn> {
        while self.children.read()?.is_some() {}
        loop {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            let (pid, status) = match rustix::process::wait(options) {
                Ok(Some(changed)) => changed,
                Ok(None) | Err(Errno::CHILD) => return Ok(true),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let is_command =
                matches!(&self.command, Command::Running(started) if started.pid == pid);
            let Some(report) = fate(status).filter(|_| is_command) else {
                continue;
            };
            if matches!(report, Report::Stopped(_)) {
                // The warden knows, and what we stopped is none of its business.
                if self.suspension.is_none() {
                    self.control.report(&report)?;
                }
            } else if let Some(suspension) = &mut self.suspension
                && suspension.is_deaf()
            {
                suspension.give_up();
            } else {
                // If it ended because it could not become the command, that is the news.
                if self.told()? {
                    self.control.report(&report)?;
                }
                return Ok(false);
            }
        }
    }
}

/// What a change of the command's state is to the warden.
fn fate(status: WaitStatus) -> Option<Report> {
    if let Some(code) = status.exit_status() {
        // The kernel keeps only these eight bits.
        u8::try_from(code).ok().map(Report::Exited)
    } else if let Some(signal) = status.terminating_signal() {
        Signal::new(signal).map(Report::Killed)
    } else {
        let signal = status.stopping_signal()?;
        Signal::new(signal).map(Report::Stopped)
    }
}
