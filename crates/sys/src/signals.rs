//! Signals: sets, masks, dispositions, delivery, and reading them from a descriptor.
//!
//! Masks go to the kernel by raw system calls, as one 64-bit word. The C library's
//! `sigset_t` calls leave out the signals that it keeps for itself (32 and 33), so a
//! mask that was saved and restored through them would not be the same mask.

use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use nix::errno::Errno;
use rustix::process::Pid;

/// The number of a signal: 1 to 64, so that it always has a bit in a [`SignalSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

impl Signal {
    pub const HUP: Self = Self(1);
    pub const INT: Self = Self(2);
    pub const QUIT: Self = Self(3);
    pub const KILL: Self = Self(9);
    pub const USR1: Self = Self(10);
    pub const USR2: Self = Self(12);
    pub const PIPE: Self = Self(13);
    pub const ALRM: Self = Self(14);
    pub const TERM: Self = Self(15);
    pub const CHLD: Self = Self(17);
    pub const CONT: Self = Self(18);
    pub const STOP: Self = Self(19);
    pub const TSTP: Self = Self(20);
    pub const TTIN: Self = Self(21);
    pub const TTOU: Self = Self(22);
    pub const URG: Self = Self(23);
    pub const XFSZ: Self = Self(25);
    pub const WINCH: Self = Self(28);
    pub const IO: Self = Self(29);
    pub const PWR: Self = Self(30);

    const LAST: u8 = 64;

    pub fn new(number: i32) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|number| (1..=Self::LAST).contains(number))
            .map(Self)
    }

    pub const fn number(self) -> u8 {
        self.0
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (1..=Self::LAST).map(Self)
    }

    fn raw(self) -> libc::c_int {
        libc::c_int::from(self.0)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match i32::from(self.0) {
            libc::SIGHUP => "SIGHUP",
            libc::SIGINT => "SIGINT",
            libc::SIGQUIT => "SIGQUIT",
            libc::SIGILL => "SIGILL",
            libc::SIGTRAP => "SIGTRAP",
            libc::SIGABRT => "SIGABRT",
            libc::SIGBUS => "SIGBUS",
            libc::SIGFPE => "SIGFPE",
            libc::SIGKILL => "SIGKILL",
            libc::SIGSEGV => "SIGSEGV",
            libc::SIGPIPE => "SIGPIPE",
            libc::SIGALRM => "SIGALRM",
            libc::SIGTERM => "SIGTERM",
            libc::SIGSYS => "SIGSYS",
            other => return write!(f, "signal {other}"),
        };
        f.write_str(name)
    }
}

/// A set of signals, in the kernel's own form: bit `n - 1` stands for signal `n`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignalSet(u64);

impl SignalSet {
    pub const EMPTY: Self = Self(0);

    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub const fn bits(self) -> u64 {
        self.0
    }

    pub const fn with(self, signal: Signal) -> Self {
        Self(self.0 | 1 << (signal.0 - 1))
    }

    pub const fn without(self, signal: Signal) -> Self {
        Self(self.0 & !(1 << (signal.0 - 1)))
    }

    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & (1 << (signal.0 - 1)) != 0
    }
}

impl FromIterator<Signal> for SignalSet {
    fn from_iter<I: IntoIterator<Item = Signal>>(signals: I) -> Self {
        signals.into_iter().fold(Self::EMPTY, Self::with)
    }
}

/// Adds `set` to the calling thread's blocked signals. Returns what was blocked before.
pub fn block(set: SignalSet) -> io::Result<SignalSet> {
    change_mask(libc::SIG_BLOCK, set)
}

/// Blocks exactly `set` in the calling thread. Returns what was blocked before.
pub fn set_mask(set: SignalSet) -> io::Result<SignalSet> {
    change_mask(libc::SIG_SETMASK, set)
}

fn change_mask(how: libc::c_int, set: SignalSet) -> io::Result<SignalSet> {
    let mut before = 0_u64;
    // SAFETY: both pointers are to live 64-bit words, the size that is passed along
    // and that the kernel reads and writes. The call touches nothing else; a blocked
    // signal cannot break memory safety.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const set.0,
            &raw mut before,
            size_of::<u64>(),
        )
    };
    Errno::result(result)?;
    Ok(SignalSet(before))
}

/// The blocked signals that wait for the calling thread or for its whole process.
pub fn pending() -> io::Result<SignalSet> {
    let mut set = 0_u64;
    // SAFETY: the pointer is to a live 64-bit word, and the size passed says so.
    let result = unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut set, size_of::<u64>()) };
    Errno::result(result)?;
    Ok(SignalSet(set))
}

/// The signals that this process ignores: the one kind of disposition, besides the
/// default, that a program inherits through exec.
pub fn ignored() -> SignalSet {
    Signal::all()
        .filter(|signal| {
            // SAFETY: an all-zero `sigaction` is a valid value of that plain C struct.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: with a null new action the call only writes the present one into
            // `action`, which is live and of the right type.
            let result = unsafe { libc::sigaction(signal.raw(), ptr::null(), &raw mut action) };
            result == 0 && action.sa_sigaction == libc::SIG_IGN
        })
        .collect()
}

pub fn set_default(signal: Signal) {
    // SAFETY: SIG_DFL names no function of ours, so no handler can run. Failure means
    // that the signal's action is fixed, which is the default one then.
    unsafe { libc::signal(signal.raw(), libc::SIG_DFL) };
}

/// Ignores exactly `ignored`; every other signal gets its default action. Signals whose
/// action cannot be changed (SIGKILL, SIGSTOP, the C library's own) are left alone.
pub fn reset_dispositions(ignored: SignalSet) {
    for signal in Signal::all() {
        let action = if ignored.contains(signal) {
            libc::SIG_IGN
        } else {
            libc::SIG_DFL
        };
        // SAFETY: SIG_IGN and SIG_DFL name no function of ours, so no handler can run.
        // Failure means that the signal's action is fixed, which is fine here.
        unsafe { libc::signal(signal.raw(), action) };
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    Process(Pid),
    Group(Pid),
    /// Every process of the caller's own group, the caller included.
    OwnGroup,
    /// Every process of the caller's namespace and of those below it, without the caller and the
    /// namespace's first process.
    Others,
}

/// Sends a signal, as kill(2).
///
/// # Errors
/// If there is no such process or group, or the caller may not signal it.
pub fn send(signal: Signal, recipient: Recipient) -> io::Result<()> {
    let target = match recipient {
        Recipient::Process(pid) => pid.as_raw_nonzero().get(),
        // kill(2) reads -1 as "everybody", so this one group cannot be named.
        Recipient::Group(Pid::INIT) => return Err(rustix::io::Errno::INVAL.into()),
        Recipient::Group(pid) => -pid.as_raw_nonzero().get(),
        Recipient::OwnGroup => 0,
        Recipient::Others => -1,
    };
    // SAFETY: kill(2) takes two integers and touches no memory of ours.
    let result = unsafe { libc::kill(target, signal.raw()) };
    Errno::result(result)?;
    Ok(())
}

/// Has the kernel send this process a signal whenever something can be read from a socket, or no
/// longer; with `None`, has it stop that. A process that is stopped is woken by SIGCONT only.
///
/// # Errors
/// If the descriptor is none of a socket, pipe or terminal.
pub fn send_when_readable(fd: impl AsFd, signal: Option<Signal>) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    /// Which signal is sent, instead of SIGIO.
    const F_SETSIG: libc::c_int = 10;
    let control = |command, argument: libc::c_int| {
        // SAFETY: each of these commands of fcntl(2) takes an integer and touches no memory of ours.
        Errno::result(unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), command, argument) })
    };
    let flags = control(libc::F_GETFL, 0)?;
    let Some(signal) = signal else {
        control(libc::F_SETFL, flags & !libc::O_ASYNC)?;
        return Ok(());
    };
    control(
        libc::F_SETOWN,
        rustix::process::getpid().as_raw_nonzero().get(),
    )?;
    control(F_SETSIG, signal.raw())?;
    control(libc::F_SETFL, flags | libc::O_ASYNC)?;
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    pub signal: Signal,
    /// Sent by the kernel, e.g. for a key pressed at the terminal; not by kill(2). No
    /// process can claim this for a signal that it sends to another.
    pub from_kernel: bool,
}

/// Reads blocked signals from a descriptor instead of having them interrupt the process.
#[derive(Debug)]
pub struct SignalReader(OwnedFd);

impl SignalReader {
    /// Reads the signals of `set`, which every thread must have blocked. The descriptor
    /// is non-blocking and closes on exec.
    pub fn new(set: SignalSet) -> io::Result<Self> {
        // SAFETY: the pointer is to a live 64-bit word of the size that is passed; -1
        // asks for a new descriptor.
        let result = unsafe {
            libc::syscall(
                libc::SYS_signalfd4,
                -1,
                &raw const set.0,
                size_of::<u64>(),
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            )
        };
        let fd = RawFd::try_from(Errno::result(result)?).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made this descriptor for us: nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal that waits, if one does.
    ///
    /// # Errors
    /// If reading fails for another reason than that nothing waits.
    pub fn read(&self) -> io::Result<Option<Received>> {
        // struct signalfd_siginfo: 128 bytes, of which ssi_signo is the first word and
        // ssi_code the third.
        let mut info = [0_u8; 128];
        match rustix::io::read(&self.0, &mut info) {
            Ok(_) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let word = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&info[at..at + 4]);
            i32::from_ne_bytes(bytes)
        };
        Ok(Signal::new(word(0)).map(|signal| Received {
            signal,
            from_kernel: word(8) == libc::SI_KERNEL,
        }))
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_the_kernels_range_are_no_signals() {
        assert_eq!(Signal::new(0), None);
        assert_eq!(Signal::new(-1), None);
        assert_eq!(Signal::new(65), None);
        assert_eq!(Signal::new(64).map(Signal::number), Some(64));
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: SignalSet = [Signal::HUP, Signal::PWR].into_iter().collect();
        assert!(set.contains(Signal::HUP) && set.contains(Signal::PWR));
        assert!(!set.contains(Signal::INT));
        assert!(!set.without(Signal::HUP).contains(Signal::HUP));
        assert_eq!(set.bits(), 1 | 1 << 29);
    }

    #[test]
    fn a_blocked_signal_is_read_with_its_sender() {
        let only = SignalSet::EMPTY.with(Signal::USR1);
        let before = block(only).unwrap();
        let reader = SignalReader::new(only).unwrap();
        assert_eq!(reader.read().unwrap(), None);

        // To this thread, not to the process: other tests' threads do not block it.
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let process = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: tgkill(2) takes three integers; the ids are our own.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
        assert!(pending().unwrap().contains(Signal::USR1));
        let received = reader.read().unwrap().unwrap();
        assert_eq!(received.signal, Signal::USR1);
        assert!(!received.from_kernel);
        set_mask(before).unwrap();
    }
}
