//! System calls that another process is asked about: seccomp's notifications.
//!
//! A filter that was installed with a listener holds the calls that it names until who has the
//! listener answers. The caller is blocked in the meantime, but may be killed, and its number be
//! given to another process: what was learned of it counts only if [`Listener::is_waiting`] says so
//! afterwards.

use std::{
    env::consts::ARCH,
    io,
    mem::{self, MaybeUninit},
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
};

use libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
use rustix::{io::Errno, process::Pid};

/// The calls by which a name is taken away from a file or directory, and how they name it.
pub const UNNAMING: &[(i64, Unnaming)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, Unnaming::Rename),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, Unnaming::Unlink),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, Unnaming::Rmdir),
    #[cfg(not(target_arch = "riscv64"))]
    (libc::SYS_renameat, Unnaming::RenameAt),
    (libc::SYS_renameat2, Unnaming::RenameAt2),
    (libc::SYS_unlinkat, Unnaming::UnlinkAt),
];

/// What the arguments of such a call are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unnaming {
    Rename,
    RenameAt,
    RenameAt2,
    Unlink,
    UnlinkAt,
    Rmdir,
}

#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    id: u64,
    /// The thread that made it, as numbered for this process.
    pub caller: Pid,
    pub call: i64,
    pub arguments: [u64; 6],
}

impl Waiting {
    /// An argument that the kernel takes for an `int`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the kernel looks at the low 32 bits only, and so has to who acts for it"
    )]
    pub fn int(&self, index: usize) -> i32 {
        let argument = self.arguments.get(index).copied().unwrap_or_default();
        (argument as u32).cast_signed()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel makes it, as if nobody had been asked.
    Continue,
    /// It was made for the caller, successfully.
    Done,
    Failed(Errno),
}

/// The end at which the calls arrive.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// Binds the calling thread, and all it will start, to a filter that holds these calls. It must not
/// be able to gain privileges by exec any more.
///
/// # Errors
/// If the kernel refuses, or the architecture is not known.
pub fn install(calls: &[i64]) -> io::Result<Listener> {
    /// Of Linux 5.19: a caller whose call was received is interrupted by no signal but a fatal
    /// one. Otherwise a rename that was made could be made again, and fail.
    const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

    let program = program(calls)?;
    let install = |flags: libc::c_ulong| -> io::Result<OwnedFd> {
        let program = libc::sock_fprog {
            len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            filter: program.as_ptr().cast_mut(),
        };
        // SAFETY: the program outlives the call, which copies and does not change it, and has the
        // length that is given.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::c_ulong::from(libc::SECCOMP_SET_MODE_FILTER),
                flags,
                &raw const program,
            )
        };
        let listener = nix::Error::result(listener)?;
        let listener = RawFd::try_from(listener).map_err(|_| io::ErrorKind::InvalidData)?;
        // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(listener) })
    };
    let listener = match install(SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            install(SECCOMP_FILTER_FLAG_NEW_LISTENER)
        }
        installed => installed,
    };
    listener.map(Listener)
}

fn program(calls: &[i64]) -> io::Result<Vec<libc::sock_filter>> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const OFFSET_OF_NUMBER: u32 = 0;
    const OFFSET_OF_ARCHITECTURE: u32 = 4;

    let architecture: u32 = match ARCH {
        "x86_64" => 0xc000_003e,
        "aarch64" => 0xc000_00b7,
        "riscv64" => 0xc000_00f3,
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![
        instruction(LOAD_WORD, 0, 0, OFFSET_OF_ARCHITECTURE),
        instruction(JUMP_IF_EQUAL, 1, 0, architecture),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD_WORD, 0, 0, OFFSET_OF_NUMBER),
    ];
    for call in calls {
        let number = u32::try_from(*call).map_err(|_| io::ErrorKind::InvalidInput)?;
        program.push(instruction(JUMP_IF_EQUAL, 0, 1, number));
        program.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    Ok(program)
}

impl Listener {
    pub fn from_descriptor(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Has callers wake who receives without a detour over another processor, where the kernel can
    /// (Linux 6.6): a call costs less then.
    pub fn hand_over_quickly(&self) {
        const SET_FLAGS: libc::Ioctl = 0x4008_2104;
        const SYNC_WAKE_UP: libc::c_ulong = 1;
        // SAFETY: the argument is a number, not an address.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
    }

    /// Waits for the next call. `None` if its caller has died since.
    ///
    /// # Errors
    /// If the descriptor is no listener.
    pub fn receive(&self) -> io::Result<Option<Waiting>> {
        let mut told = MaybeUninit::<libc::seccomp_notif>::zeroed();
        // SAFETY: the structure is as large as the request says, and zeroed, as the kernel wants it.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                told.as_mut_ptr(),
            )
        };
        if result == -1 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: all of its fields are integers, so that zeroes are valid, and what the kernel
        // wrote over them is.
        let told = unsafe { told.assume_init() };
        // Zero is a caller that this process has no number for: none that could be below it.
        let caller = i32::try_from(told.pid).ok().and_then(Pid::from_raw);
        Ok(caller.map(|caller| Waiting {
            id: told.id,
            caller,
            call: told.data.nr.into(),
            arguments: told.data.args,
        }))
    }

    /// Whether the caller still waits, so that its number was its own until now.
    pub fn is_waiting(&self, waiting: &Waiting) -> bool {
        // SAFETY: the kernel reads the eight bytes of the number, which outlives the call.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const waiting.id,
            )
        };
        result == 0
    }

    /// Answers. A caller that is gone does not hear it.
    pub fn answer(&self, waiting: &Waiting, verdict: Verdict) {
        const CONTINUE: u32 = 1;
        // SAFETY: all of its fields are integers, so zeroes are valid.
        let mut answer = unsafe { mem::zeroed::<libc::seccomp_notif_resp>() };
        answer.id = waiting.id;
        match verdict {
            Verdict::Continue => answer.flags = CONTINUE,
            Verdict::Done => {}
            Verdict::Failed(errno) => answer.error = -errno.raw_os_error(),
        }
        // SAFETY: the structure is as large as the request says, and outlives the call.
        unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const answer,
            )
        };
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads a path, as the kernel would, from the memory of another process.
///
/// # Errors
/// EFAULT, ENAMETOOLONG, or why its memory cannot be read.
pub fn read_path(process: Pid, address: u64) -> Result<Vec<u8>, Errno> {
    const LONGEST: usize = libc::PATH_MAX.unsigned_abs() as usize;
    const PAGE: usize = 4096;

    let address = usize::try_from(address).map_err(|_| Errno::FAULT)?;
    let mut bytes = vec![0; LONGEST];
    // What is asked for is copied whole or not at all, so no part may cross into a page that is
    // perhaps not there.
    let first = LONGEST.min(PAGE - address % PAGE);
    let rest = address.checked_add(first).ok_or(Errno::FAULT)?;
    let part = |base: usize, length| libc::iovec {
        iov_base: std::ptr::without_provenance_mut(base),
        iov_len: length,
    };
    let remote = [part(address, first), part(rest, LONGEST - first)];
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: the kernel writes to `local` only, which is as long as it says and ours; the remote
    // addresses are looked at in the other process alone.
    let read = unsafe {
        libc::process_vm_readv(
            process.as_raw_nonzero().get(),
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    let read = usize::try_from(read).map_err(|_| {
        let error = io::Error::last_os_error().raw_os_error();
        error.map_or(Errno::FAULT, Errno::from_raw_os_error)
    })?;
    bytes.truncate(read);
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => bytes.truncate(end),
        None if read == LONGEST => return Err(Errno::NAMETOOLONG),
        None => return Err(Errno::FAULT),
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc, thread};

    use super::*;

    /// What `call` gets on a thread whose calls are answered like this.
    fn answered<T: Send + 'static>(
        verdict: Verdict,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (send, listener) = mpsc::channel();
        let caller = thread::spawn(move || {
            rustix::thread::set_no_new_privs(true).unwrap();
            let calls: Vec<_> = UNNAMING.iter().map(|(call, _)| *call).collect();
            send.send(install(&calls).unwrap()).unwrap();
            call()
        });
        let listener = listener.recv().unwrap();
        let waiting = loop {
            if let Some(waiting) = listener.receive().unwrap() {
                break waiting;
            }
        };
        assert!(listener.is_waiting(&waiting));
        assert!(UNNAMING.iter().any(|(call, _)| *call == waiting.call));
        listener.answer(&waiting, verdict);
        let result = caller.join().unwrap();
        assert!(!listener.is_waiting(&waiting));
        result
    }

    #[test]
    fn a_call_waits_and_gets_the_answer() {
        let missing = || fs::remove_file("/nonexistent/file").map_err(|error| error.raw_os_error());
        let refused = answered(Verdict::Failed(Errno::BUSY), missing);
        assert_eq!(refused, Err(Some(libc::EBUSY)));
        assert_eq!(answered(Verdict::Done, missing), Ok(()));
        let continued = answered(Verdict::Continue, missing);
        assert_eq!(continued, Err(Some(libc::ENOENT)));
    }

    #[test]
    fn paths_are_read_up_to_their_end_and_no_further() {
        let own = rustix::process::getpid();
        let at = |bytes: &[u8]| u64::try_from(bytes.as_ptr().addr()).unwrap();
        assert_eq!(read_path(own, at(b"/a/b\0c")).unwrap(), b"/a/b");
        assert_eq!(read_path(own, at(b"\0")).unwrap(), b"");
        let long = vec![b'x'; 10_000];
        assert_eq!(read_path(own, at(&long)), Err(Errno::NAMETOOLONG));
        assert_eq!(read_path(own, 0), Err(Errno::FAULT));
        assert_eq!(read_path(own, u64::MAX - 2), Err(Errno::FAULT));
        // At the end of a mapping.
        let mut page = vec![b'y'; 4096 * 3];
        let start = page.as_ptr().addr().next_multiple_of(4096) - page.as_ptr().addr();
        page[start + 4095] = 0;
        assert_eq!(
            read_path(own, at(&page[start + 4000..])).unwrap(),
            vec![b'y'; 95]
        );
    }
}
