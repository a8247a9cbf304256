//! Starting processes: what a child does between fork and exec.
//!
//! Code between fork and exec runs in a copy of one thread of a process whose other
//! threads are gone, with whatever locks they held still locked. So it may only make
//! system calls: [`Descent`] is prepared before the fork and allocates nothing after.

use std::{
    env,
    ffi::{CStr, CString, OsStr},
    io,
    os::{
        fd::{FromRawFd, OwnedFd, RawFd},
        unix::{
            ffi::{OsStrExt as _, OsStringExt as _},
            process::CommandExt,
        },
    },
    path::PathBuf,
    process::Command,
    ptr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use nix::errno::Errno;
use rustix::{io::FdFlags, process::Pid};

use crate::signals::{self, SignalSet};

/// What a child does to itself before it becomes another program: it gets a process
/// group of its own, and takes along only the named descriptors, none of the user's keys
/// and (nearly) no privilege.
#[derive(Debug)]
pub struct Descent {
    /// Descriptors, beyond the standard three, that the program keeps, under the numbers
    /// they have here. The parent's copies are closed when the `Command` is dropped.
    pub keep: Vec<OwnedFd>,
    pub mask: SignalSet,
    /// The list of processes of the control group that it joins, open for writing, once
    /// there is one. It is looked for after [`Descent::prepare`].
    pub group: Arc<OnceLock<OwnedFd>>,
}

impl Descent {
    pub fn prepare(self, command: &mut Command) {
        // SAFETY: the closure only makes system calls (see the head of this module): it
        // takes no lock and allocates nothing. An `io::Error` made from an error number
        // is a plain value.
        unsafe { command.pre_exec(move || self.descend()) };
    }

    fn descend(&self) -> io::Result<()> {
        if let Some(group) = self.group.get() {
            // The kernel's word for whoever writes it.
            rustix::io::write(group, b"0")?;
        }
        rustix::process::setpgid(None, None)?;

        close_others_on_exec()?;
        for fd in &self.keep {
            rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
        }

        leave_session_keyring()?;
        give_up_capabilities()?;
        rustix::thread::set_no_new_privs(true)?;
        signals::set_mask(self.mask)?;
        Ok(())
    }
}

/// Has a program start in a session of its own, where no terminal is its own.
pub fn without_terminal(command: &mut Command) {
    let leave = || rustix::process::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: the closure makes one system call, and an `io::Error` made from an error number is a
    // plain value.
    unsafe { command.pre_exec(leave) };
}

/// Exchanges the session keyring, which is inherited and holds the keys and tickets of
/// the user's login, for an empty one.
fn leave_session_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    const ANONYMOUS: libc::c_long = 0;

    // SAFETY: the call takes two integers here (a null name means a keyring without one).
    let result = unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, ANONYMOUS) };
    match Errno::result(result) {
        // The kernel has no keyrings, or a container's filter forbids the call; the
        // filter is inherited, so then nobody inside can use a key either.
        Ok(_) | Err(Errno::ENOSYS | Errno::EPERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes from the next program every capability that it does not need.
///
/// The kernel does that by itself for an ordinary user. A program that root starts gets
/// whatever the bounding set leaves. One capability has to stay: a process of uid 0
/// without `CAP_SETFCAP` cannot make a user namespace in which it is uid 0 (Linux 5.12).
fn give_up_capabilities() -> io::Result<()> {
    const CAP_SETFCAP: libc::c_ulong = 31;

    rustix::thread::clear_ambient_capability_set()?;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    for capability in 0..64 {
        // SAFETY: this prctl(2) takes an integer and reads no memory of ours.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability) } {
            // Past the last capability that this kernel knows.
            -1 => break,
            0 => continue,
            _ => {}
        }
        if capability == CAP_SETFCAP {
            continue;
        }
        // SAFETY: as above; the effect is on this process's own bounding set.
        Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) })?;
    }
    Ok(())
}

/// Marks every descriptor but the standard three to be closed by exec.
///
/// # Errors
/// If the kernel is older than Linux 5.11.
pub fn close_others_on_exec() -> io::Result<()> {
    // SAFETY: the call takes three integers. Descriptors stay open until exec, which
    // ends every owner of them, so none is closed behind an owner's back.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3_u32,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Takes over a descriptor that this program was started with.
///
/// # Errors
/// If it is one of the standard three, or not open.
pub fn adopt_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    if number < 3 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: F_GETFD takes no pointer; on a number that is not open it fails.
    Errno::result(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    // SAFETY: the descriptor is open, and came with the program's start: the Rust
    // runtime and the standard library own none but the standard three at that point.
    // That it is called once, before others are opened, is for the caller to see to;
    // it is why this is a function for the first lines of a program.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Splits this process, which must have no other thread, in two. The child runs `child`
/// and, if that returns, exits at once with the code returned.
///
/// # Errors
/// If there are other threads, or the limit of processes is reached.
pub fn fork(child: impl FnOnce() -> u8) -> io::Result<Pid> {
    /// Ends the child if `child` panics: nothing of the parent's stack may unwind twice.
    struct AbortOnUnwind;
    impl Drop for AbortOnUnwind {
        fn drop(&mut self) {
            std::process::abort();
        }
    }

    // Without other threads this changes nothing; with them the kernel says EINVAL.
    // SAFETY: the call takes an integer; as said, it either fails or changes nothing.
    Errno::result(unsafe { libc::unshare(libc::CLONE_THREAD) })?;
    // SAFETY: no other thread exists (checked above), so no lock can be held by a thread
    // that the child lacks: the child may do whatever the parent may.
    match Errno::result(unsafe { libc::fork() })? {
        0 => {
            let _guard = AbortOnUnwind;
            exit(child())
        }
        pid => Pid::from_raw(pid).ok_or_else(|| rustix::io::Errno::SRCH.into()),
    }
}

/// Becomes the program `arguments[0]`, looked up in this process's `PATH` if its name has no
/// slash, with this environment. Returns only if that fails.
///
/// This is execvpe(3) as glibc has it. That of musl does not run scripts without a first line.
pub fn exec(arguments: &[CString], environment: &[CString]) -> io::Error {
    let mut failure = Errno::ENOENT;
    for program in candidates(arguments.first()) {
        match execute(&program, arguments, environment) {
            Errno::ENOEXEC => {
                let mut script = vec![SHELL.to_owned(), program];
                script.extend_from_slice(arguments.get(1..).unwrap_or_default());
                return execute(SHELL, &script, environment).into();
            }
            Errno::EACCES => failure = Errno::EACCES,
            Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE | Errno::ENODEV | Errno::ETIMEDOUT => {}
            other => return other.into(),
        }
    }
    failure.into()
}

const SHELL: &CStr = c"/bin/sh";

/// The paths at which a program of this name can be.
fn candidates(name: Option<&CString>) -> Vec<CString> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Vec::new();
    };
    if name.as_bytes().contains(&b'/') {
        return vec![name.clone()];
    }
    let directories = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let beside = |directory: PathBuf| directory.join(OsStr::from_bytes(name.as_bytes()));
    let paths = env::split_paths(&directories).map(beside);
    paths
        .filter_map(|path| CString::new(path.into_os_string().into_vec()).ok())
        .collect()
}

fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> Errno {
    let pointers = |strings: &[CString]| -> Vec<_> {
        let pointers = strings.iter().map(|string| string.as_ptr());
        pointers.chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: `program` and each element of both lists but the last point to strings that
    // end in NUL and outlive the call; the last ones are null, as execve(2) wants.
    unsafe {
        libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
    Errno::last()
}

/// How long the threads of a process have run, those that have ended among them. A process for which
/// this stays the same has not run. `None` if there is no such process.
pub fn cpu_time(pid: Pid) -> Option<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a live clock number, which is all that the call writes.
    if unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &raw mut clock) } != 0 {
        return None;
    }
    time_of(clock)
}

/// How long the calling thread has run.
#[must_use]
pub fn cpu_time_of_thread() -> Option<Duration> {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How long the calling thread could have run while others had the processors. `None` if the kernel does not
/// count it.
#[must_use]
pub fn time_waited_of_thread() -> Option<Duration> {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited = counted.split_ascii_whitespace().nth(1)?;
    Some(Duration::from_nanos(waited.parse().ok()?))
}

fn time_of(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live `timespec`, which is all that the call writes.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } == -1 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

/// Ends the process at once, without running destructors or exit handlers.
pub fn exit(code: u8) -> ! {
    // SAFETY: ends the process; no code of ours runs after it.
    unsafe { libc::_exit(libc::c_int::from(code)) }
}
