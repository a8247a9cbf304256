//! System calls that cannot succeed, for finding out who refuses them.
//!
//! Each is made with arguments that the kernel cannot take: no descriptor, no memory, a flag
//! that does not exist. So nothing ever comes of it, in a sandbox that is broken either. A
//! filter refuses it before the kernel looks at the arguments, with another error than
//! the kernel's own.

use std::{io, ptr};

use crate::seccomp::{Answer, OPEN_TREE_ATTR};

/// A call that is dangerous, and not made here in earnest.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub name: &'static str,
    /// What a program could do with it.
    pub danger: &'static str,
    /// How the filter refuses it.
    pub answer: Answer,
    /// It is refused only where there are no sandboxes inside the sandbox.
    pub unless_nested: bool,
    call: fn() -> libc::c_long,
}

const NO_DESCRIPTOR: libc::c_int = -1;
/// No call has this flag, command or type.
const NONSENSE: libc::c_int = 0x7fff_fff0;

const TIOCLINUX: libc::Ioctl = 0x541c;

/// All of them.
pub const ATTEMPTS: [Attempt; 27] = [
    refused("ioctl(TIOCSTI)", "types into the caller's terminal", || {
        terminal(libc::TIOCSTI)
    }),
    refused(
        "ioctl(TIOCLINUX)",
        "pastes into the caller's terminal",
        || terminal(TIOCLINUX),
    ),
    refused(
        "io_uring_setup",
        "makes system calls that no filter sees",
        || with_nothing(libc::SYS_io_uring_setup, 1),
    ),
    refused("keyctl", "reads the keys of the user", || {
        with_nothing(libc::SYS_keyctl, NONSENSE.into())
    }),
    refused("add_key", "changes the keys of the user", || {
        with_nothing(libc::SYS_add_key, 0)
    }),
    refused("request_key", "reads the keys of the user", || {
        with_nothing(libc::SYS_request_key, 0)
    }),
    refused("bpf", "loads programs into the kernel", || {
        with_nothing(libc::SYS_bpf, NONSENSE.into())
    }),
    refused("perf_event_open", "measures other programs", || {
        with_nothing(libc::SYS_perf_event_open, 0)
    }),
    refused("userfaultfd", "holds the kernel up", || {
        // The lowest flag has it skip a look at the caller's rights.
        with_nothing(libc::SYS_userfaultfd, libc::c_long::from(NONSENSE) | 1)
    }),
    refused("ioctl(BTRFS_IOC_SNAP_DESTROY)", UNCOVERS, || {
        terminal(0x5000_940f)
    }),
    refused("ioctl(BTRFS_IOC_SNAP_DESTROY_V2)", UNCOVERS, || {
        terminal(0x5000_943f)
    }),
    refused("ioctl(BTRFS_IOC_SNAP_CREATE)", COPIES, || {
        terminal(0x5000_9401)
    }),
    refused("ioctl(BTRFS_IOC_SNAP_CREATE_V2)", COPIES, || {
        terminal(0x5000_9417)
    }),
    refused("ioctl(BCH_IOCTL_SUBVOLUME_DESTROY)", UNCOVERS, || {
        terminal(0x4020_bc11)
    }),
    refused("fcntl(F_SETLEASE)", HOLDS, || file_control(1024)),
    refused("fcntl(F_SETDELEG)", HOLDS, || file_control(1040)),
    no_family(
        "socket(AF_VSOCK)",
        "reaches the host of a virtual machine past the jail",
        || socket(libc::AF_VSOCK),
    ),
    no_family(
        "socket(AF_PACKET)",
        "makes and sees packets of any form",
        || socket(libc::AF_PACKET),
    ),
    no_family(
        "socketpair(AF_TIPC)",
        "makes sockets of a family that no namespace contains",
        || with_nothing(libc::SYS_socketpair, libc::AF_TIPC.into()),
    ),
    apart("unshare(CLONE_NEWNS)", || {
        with_nothing(libc::SYS_unshare, (libc::CLONE_NEWNS | 1).into())
    }),
    apart("clone(CLONE_NEWNS)", || {
        with_nothing(libc::SYS_clone, (libc::CLONE_NEWNS | libc::CLONE_FS).into())
    }),
    Attempt {
        answer: Answer::NoSuchCall,
        ..apart("clone3", || with_nothing(libc::SYS_clone3, 0))
    },
    apart("setns(CLONE_NEWNS)", || {
        no_descriptor(libc::SYS_setns, libc::CLONE_NEWNS)
    }),
    apart("setns(0)", || no_descriptor(libc::SYS_setns, 0)),
    apart("open_tree", || no_descriptor(libc::SYS_open_tree, 0)),
    apart("open_tree_attr", || no_descriptor(OPEN_TREE_ATTR, 0)),
    apart("fsmount", || no_descriptor(libc::SYS_fsmount, 0)),
];

const UNCOVERS: &str = "removes a directory although it is a mount point";
const COPIES: &str = "copies files without their covers";
const HOLDS: &str = "holds up programs outside that open a file";

const fn refused(name: &'static str, danger: &'static str, call: fn() -> libc::c_long) -> Attempt {
    Attempt {
        name,
        danger,
        answer: Answer::NotPermitted,
        unless_nested: false,
        call,
    }
}

const fn no_family(
    name: &'static str,
    danger: &'static str,
    call: fn() -> libc::c_long,
) -> Attempt {
    Attempt {
        answer: Answer::NoSuchFamily,
        ..refused(name, danger, call)
    }
}

/// One that leads to a mount namespace of one's own.
const fn apart(name: &'static str, call: fn() -> libc::c_long) -> Attempt {
    Attempt {
        unless_nested: true,
        ..refused(
            name,
            "makes a mount namespace, from which covers can be lifted",
            call,
        )
    }
}

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

fn file_control(command: libc::c_int) -> libc::c_long {
    // SAFETY: takes integers; there is no descriptor of this number.
    unsafe { libc::fcntl(NO_DESCRIPTOR, command, 0) }.into()
}

fn socket(family: libc::c_int) -> libc::c_long {
    // SAFETY: takes three integers; the type does not exist, so no socket is made.
    unsafe { libc::socket(family, NONSENSE, 0) }.into()
}

/// A call for a descriptor that does not exist.
fn no_descriptor(number: libc::c_long, second: libc::c_int) -> libc::c_long {
    const ZERO: libc::c_long = 0;
    let second = libc::c_long::from(second);
    // SAFETY: every caller in the table above names a call whose first argument is a descriptor, so
    // there is nothing that the kernel could act on; the pointers are null.
    unsafe {
        libc::syscall(
            number,
            libc::c_long::from(NO_DESCRIPTOR),
            second,
            ZERO,
            ZERO,
            ZERO,
        )
    }
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
