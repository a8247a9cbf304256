//! Who has the terminal.
//!
//! The terminal listens to one process group at a time, its *foreground*. The caller's
//! shell gives it to the warden's group; the command has a group of its own. So the
//! warden does towards the command what a shell does towards a job:
//!
//! - It **lends** the foreground: at the start, if the command's input and output both
//!   are the terminal; otherwise when the command asks for it, by being stopped for using
//!   the terminal from the background. (In `stockade run -- git log | less` it is `less`
//!   that needs the terminal; the command never asks.)
//! - When the command **stops**, the warden takes the foreground back and stops its own
//!   group in the same way, which is what the shell waits for.
//! - When the shell **continues** the warden, the warden continues the command, and lends
//!   the foreground again if the shell gave it to the warden.
//! - At the **end** the foreground is the warden's again, and the terminal's modes are those from
//!   before the session. The command's own come back as the last act, unless a signal killed it:
//!   then it had no chance to put them in order, and they are forgotten, as shells do.
//! - Before the shell gets the terminal, at a stop or at the end, the terminal's answers to
//!   what the command asked it are discarded ([`crate::terminal::fence`]).

use std::{fs, io, path::Path};

use rustix::{
    fs::{FileType, fstat},
    termios::Termios,
};
use stockade_sys::signals::{self, Recipient, Signal, SignalSet};

use super::{Terminal, fence::Users, is_controlling};

#[derive(Debug)]
pub(crate) struct Foreground {
    terminal: Option<Terminal>,
    /// The command is one that uses the terminal.
    wants_terminal: bool,
    /// The command's group has the foreground, from us.
    lent: bool,
    /// The foreground was ours when the command started, or was last continued. The command can
    /// take it without being lent it.
    had: bool,
    /// The modes that the command has left, while others are in force.
    left: Option<Termios>,
}

/// The terminal's modes that the command left on purpose. Those from before the session are in
/// force until they are put back, which has to be the last act: they can make a signal of any key.
#[derive(Debug)]
pub struct LeftModes(pub(crate) Foreground);

impl LeftModes {
    /// Puts them back, unless others have the terminal by now.
    pub fn put_back(mut self) {
        self.0.put_back();
    }
}

/// What has to follow when the command has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterStop {
    /// It only wanted the terminal, which is free: let it have that and continue.
    Lend,
    /// The whole job stops.
    Suspend,
}

impl Foreground {
    /// The job as it is before the command starts.
    pub(crate) fn new() -> Self {
        let terminal = Terminal::controlling().or_else(Terminal::of_streams);
        let is_interactive = terminal.is_some()
            && is_controlling(rustix::stdio::stdin())
            && is_controlling(rustix::stdio::stdout());
        Self {
            terminal,
            wants_terminal: is_interactive,
            lent: false,
            had: false,
            left: None,
        }
    }

    /// Whether there was a terminal, and it has gone away.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::is_hung_up)
    }

    /// Whether the command's group is to be given the foreground as it starts or
    /// continues now. If so, it counts as lent.
    pub(crate) fn lend(&mut self) -> bool {
        self.put_back();
        let free = self.terminal.as_ref().is_some_and(Terminal::is_ours);
        let lend = self.wants_terminal && free;
        self.lent |= lend;
        self.had = free || self.lent;
        lend
    }

    /// The command was stopped by `signal`.
    pub(crate) fn stopped(&mut self, signal: Signal) -> AfterStop {
        let asks_for_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        if asks_for_terminal {
            self.wants_terminal = true;
            if !self.lent && self.terminal.as_ref().is_some_and(Terminal::is_ours) {
                return AfterStop::Lend;
            }
        }
        AfterStop::Suspend
    }

    /// Everything inside has stopped, and the whole job is about to.
    pub(crate) fn suspended(&mut self) {
        // The command goes on later, and a program that draws the whole screen tidied up itself.
        self.take_back(Users::Command, false);
    }

    /// Stops ourselves as the command was stopped, and returns when we are continued, or
    /// at once if nobody would continue us. Says whether we did stop.
    pub(crate) fn suspend(&mut self, signal: Signal) -> io::Result<bool> {
        // Some shells keep them for when the job continues.
        self.put_back();
        // Where the terminal stops jobs it stops all of them: the other processes of a
        // pipeline, or the script that called us. Elsewhere only the command stopped.
        let is_controlled = self.terminal.as_ref().is_some_and(Terminal::is_controlling);
        let by_terminal = signal != Signal::STOP && is_controlled;
        let whom = if by_terminal {
            Recipient::OwnGroup
        } else {
            Recipient::Process(rustix::process::getpid())
        };
        let before = signals::set_mask(signals::block(SignalSet::EMPTY)?.without(signal))?;
        // From then on the foreground is for the shell to give. If everything inside has died
        // meanwhile, we end, and have nothing to take back.
        self.had = false;
        let sent = signals::send(signal, whom);
        // Here we are stopped, and go on when a SIGCONT came. Being blocked, it still
        // waits to be read. Without one, nothing stopped us: the kernel does not stop a
        // group that has no shell to continue it.
        signals::set_mask(before)?;
        sent?;
        Ok(signals::pending()?.contains(Signal::CONT))
    }

    /// The command has ended, or was ended by a signal, and with it everything inside.
    pub(crate) fn ended(&mut self, by_signal: bool) {
        if self.terminal.is_some() {
            self.take_back(users(), by_signal);
        }
    }

    /// Takes the terminal back if we had it, and puts it in order, unless others have it.
    fn take_back(&mut self, users: Users, restore: bool) {
        self.lent = false;
        if let Some(terminal) = &self.terminal
            && (self.had || terminal.is_ours())
        {
            self.left = terminal.give_back(users, restore, self.had);
        }
    }

    fn put_back(&mut self) {
        if let Some(terminal) = &self.terminal
            && let Some(modes) = self.left.take()
            && terminal.is_ours()
        {
            terminal.set_modes(&modes);
        }
    }
}

/// Who may use the terminal when the command has ended.
fn users() -> Users {
    let kind = fstat(rustix::stdio::stdout()).map(|it| FileType::from_raw_mode(it.st_mode));
    match kind {
        Ok(FileType::Fifo | FileType::Socket) if a_pager_is_in_our_group() => Users::Pager,
        Ok(FileType::Fifo | FileType::Socket) => Users::Reader,
        _ => Users::Caller,
    }
}

/// Programs that read text from a pipe and commands from the terminal.
const PAGERS: [&str; 16] = [
    "less", "more", "most", "lv", "pg", "moar", "moor", "ov", "lnav", "bat", "delta", "fzf", "sk",
    "peco", "vim", "nvim",
];

/// Whether one of them is in our process group, and so in our pipeline. Nothing inside is. Only
/// the names can be seen: other processes of the caller are in another user namespace.
fn a_pager_is_in_our_group() -> bool {
    let Some((_, ours)) = name_and_group(Path::new("/proc/self")) else {
        return false;
    };
    fs::read_dir("/proc").is_ok_and(|entries| {
        let paths = entries.flatten().map(|entry| entry.path());
        let mut processes = paths.filter_map(|path| name_and_group(&path));
        processes.any(|(name, group)| group == ours && PAGERS.contains(&&*name))
    })
}

/// From "PID (NAME) STATE PARENT GROUP …". A name may hold anything.
fn name_and_group(process: &Path) -> Option<(String, String)> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (start, rest) = stat.rsplit_once(") ")?;
    let (_, name) = start.split_once(" (")?;
    let group = rest.split(' ').nth(2)?;
    Some((name.to_owned(), group.to_owned()))
}
