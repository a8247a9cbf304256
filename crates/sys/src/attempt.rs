//! System calls that cannot succeed, for finding out who refuses them.
//!
//! Each is made with arguments that the kernel cannot take: no descriptor, no memory, a flag
//! that does not exist. So nothing ever comes of it, in a sandbox that is broken either. A
//! filter refuses it before the kernel looks at the arguments, with another error than
//! the kernel's own.

use std::{io, ptr};

/// A call that is dangerous, and not made here in earnest.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub name: &'static str,
    /// What a program could do with it.
    pub danger: &'static str,
    call: fn() -> libc::c_long,
}

const NO_DESCRIPTOR: libc::c_int = -1;
/// No call has this flag, command or type.
const NONSENSE: libc::c_int = 0x7fff_fff0;

const TIOCLINUX: libc::Ioctl = 0x541c;

/// All of them.
pub const ATTEMPTS: [Attempt; 11] = [
    Attempt {
        name: "ioctl(TIOCSTI)",
        danger: "types into the caller's terminal",
        call: || terminal(libc::TIOCSTI),
    },
    Attempt {
        name: "ioctl(TIOCLINUX)",
        danger: "pastes into the caller's terminal",
        call: || terminal(TIOCLINUX),
    },
    Attempt {
        name: "io_uring_setup",
        danger: "makes system calls that no filter sees",
        call: || with_nothing(libc::SYS_io_uring_setup, 1),
    },
    Attempt {
        name: "keyctl",
        danger: "reads the keys of the user",
        call: || with_nothing(libc::SYS_keyctl, NONSENSE.into()),
    },
    Attempt {
        name: "add_key",
        danger: "changes the keys of the user",
        call: || with_nothing(libc::SYS_add_key, 0),
    },
    Attempt {
        name: "request_key",
        danger: "reads the keys of the user",
        call: || with_nothing(libc::SYS_request_key, 0),
    },
    Attempt {
        name: "bpf",
        danger: "loads programs into the kernel",
        call: || with_nothing(libc::SYS_bpf, NONSENSE.into()),
    },
    Attempt {
        name: "perf_event_open",
        danger: "measures other programs",
        call: || with_nothing(libc::SYS_perf_event_open, 0),
    },
    Attempt {
        name: "userfaultfd",
        danger: "holds the kernel up",
        // The lowest flag has it skip a look at the caller's rights.
        call: || with_nothing(libc::SYS_userfaultfd, libc::c_long::from(NONSENSE) | 1),
    },
    Attempt {
        name: "socket(AF_VSOCK)",
        danger: "reaches the host of a virtual machine past the jail",
        call: || socket(libc::AF_VSOCK),
    },
    Attempt {
        name: "socket(AF_PACKET)",
        danger: "makes and sees packets of any form",
        call: || socket(libc::AF_PACKET),
    },
];

impl Attempt {
    /// Makes the call; the error number that it got.
    #[must_use]
    pub fn errno(&self) -> i32 {
        let result = (self.call)();
        debug_assert_eq!(result, -1, "{} cannot succeed", self.name);
        io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default()
    }
}

fn terminal(request: libc::Ioctl) -> libc::c_long {
    // SAFETY: there is no descriptor of this number, so the kernel does not come to read the
    // pointer, which is null besides.
    unsafe { libc::ioctl(NO_DESCRIPTOR, request, ptr::null::<u8>()) }.into()
}

fn socket(family: libc::c_int) -> libc::c_long {
    // SAFETY: takes three integers; the type does not exist, so no socket is made.
    unsafe { libc::socket(family, NONSENSE, 0) }.into()
}

/// A call whose arguments after the first are null pointers and zeros.
fn with_nothing(number: libc::c_long, first: libc::c_long) -> libc::c_long {
    const ZERO: libc::c_long = 0;
    // SAFETY: every caller in the table above names a call that fails with a null pointer, or
    // with this first argument, before it makes anything.
    unsafe { libc::syscall(number, first, ZERO, ZERO, ZERO, ZERO) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_filter_the_kernel_itself_refuses() {
        for attempt in ATTEMPTS {
            let errno = attempt.errno();
            let own = [
                libc::EBADF,
                libc::EFAULT,
                libc::EINVAL,
                libc::EOPNOTSUPP,
                libc::ENOSYS,
                libc::EAFNOSUPPORT,
            ];
            // An administrator may forbid some of them to users.
            let is_root = rustix::process::geteuid().is_root();
            assert!(own.contains(&errno) || !is_root, "{attempt:?}: {errno}");
        }
    }
}
