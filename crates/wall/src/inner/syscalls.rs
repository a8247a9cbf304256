//! System calls that the command is refused, each with its reason.
//!
//! The table is for calls that no namespace or permission contains. Whatever is not in
//! it is allowed: programs of all kinds run inside, and a call that is refused without
//! need breaks some of them. `stockade_sys::seccomp` adds the guards against the other
//! system call tables.

use std::io;

use crate::config::Hardening;
use stockade_sys::seccomp::{Argument, Filter, IO_URING_SETUP, IOCTL, KEYS, Refusal, SOCKET};

/// Fakes input to the terminal: after the command has ended, or from the background, the
/// caller's shell would run what was "typed".
const TIOCSTI: u32 = 0x5412;

/// On a Linux console, pastes the selection, which is the same thing.
const TIOCLINUX: u32 = 0x541c;

/// The family of sockets between virtual machines and their host, which is not part of
/// any network namespace.
const AF_VSOCK: u32 = 40;

const fn keys(call: i64) -> Refusal {
    Refusal {
        call,
        when: None,
        reason: "reads and changes the keys of the user, which no namespace contains",
    }
}

const REFUSED: &[Refusal] = &[
    Refusal {
        call: IOCTL,
        when: Some(Argument {
            index: 1,
            value: TIOCSTI,
        }),
        reason: "types into the caller's terminal",
    },
    Refusal {
        call: IOCTL,
        when: Some(Argument {
            index: 1,
            value: TIOCLINUX,
        }),
        reason: "pastes into the caller's terminal",
    },
    Refusal {
        call: SOCKET,
        when: Some(Argument {
            index: 0,
            value: AF_VSOCK,
        }),
        reason: "reaches the services of a virtual machine's host past the jail",
    },
    Refusal {
        call: IO_URING_SETUP,
        when: None,
        reason: "makes system calls, socket(2) among them, that no filter sees",
    },
    keys(KEYS[0]),
    keys(KEYS[1]),
    keys(KEYS[2]),
];

/// Binds this process, and what it becomes, to the table.
pub(super) fn install(_hardening: Hardening) -> io::Result<()> {
    Filter::new(REFUSED)?.install()?;
    Ok(())
}
