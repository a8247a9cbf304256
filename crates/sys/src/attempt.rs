//! System calls that cannot succeed, for finding out who refuses them.
//!
//! Each is made with arguments that the kernel cannot take: no descriptor, no memory, a flag
//! that does not exist. So nothing ever comes of it, in a sandbox that is broken either. A
//! filter refuses it before the kernel looks at the arguments, with another error than
//! the kernel's own.

use std::io;

use crate::seccomp::{Answer, OPEN_TREE_ATTR};

/// A call that is dangerous, and not made here in earnest.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub name: &'static str,
    /// What a program could do with it.
    pub danger: &'static str,
    pub answer: Answer,
    /// It is refused only where there are no sandboxes inside the sandbox.
    pub unless_nested: bool,
    call: Call,
}

/// A call that fails: its number and its first three arguments; zeros come after them.
type Call = (libc::c_long, [libc::c_long; 3]);

const MISSING_DESCRIPTOR: libc::c_int = -1;
/// No call has this flag, command or type.
const NONSENSE: libc::c_int = 0x7fff_fff0;
/// Nothing is mapped there.
const NOWHERE: libc::c_int = 1;
const F_SETFL: libc::c_int = 4;
const O_ASYNC: libc::c_int = 0x2000;
const F_SETSIG: libc::c_int = 10;
const RLIMIT_CORE: libc::c_int = 4;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

const CONSOLE: &str = "changes the keys and the modes of the caller's console";
const UNCOVERS: &str = "removes a directory although it is a mount point";
const COPIES: &str = "copies files without their covers";
const HOLDS: &str = "holds up programs outside that open a file";
const SIGNALS: &str = "has the kernel signal programs outside that use the same terminal";
const OTHER_SIGNALS: &str = "has the kernel kill programs outside that use the same terminal";
const DUMPS: &str = "has a program of the host handle core dumps";

#[rustfmt::skip]
pub const ATTEMPTS: [Attempt; 34] = [
    refused("ioctl(TIOCSTI)", "types into the caller's terminal", ioctl(TIOCSTI)),
    refused("ioctl(TIOCLINUX)", "pastes into the caller's terminal", ioctl(TIOCLINUX)),
    refused("ioctl(KD)", CONSOLE, ioctl(0x4b3a)),
    refused("ioctl(VT)", CONSOLE, ioctl(0x5602)),
    refused("io_uring_setup", "makes system calls that no filter sees", nothing(libc::SYS_io_uring_setup, 1)),
    refused("keyctl", "reads the keys of the user", nothing(libc::SYS_keyctl, NONSENSE)),
    refused("add_key", "changes the keys of the user", nothing(libc::SYS_add_key, 0)),
    refused("request_key", "reads the keys of the user", nothing(libc::SYS_request_key, 0)),
    refused("bpf", "loads programs into the kernel", nothing(libc::SYS_bpf, NONSENSE)),
    refused("perf_event_open", "measures other programs", nothing(libc::SYS_perf_event_open, 0)),
    // The lowest flag has it skip a look at the caller's rights.
    refused("userfaultfd", "holds the kernel up", nothing(libc::SYS_userfaultfd, NONSENSE | 1)),
    refused("ioctl(BTRFS_IOC_SNAP_DESTROY)", UNCOVERS, ioctl(0x5000_940f)),
    refused("ioctl(BTRFS_IOC_SNAP_DESTROY_V2)", UNCOVERS, ioctl(0x5000_943f)),
    refused("ioctl(BTRFS_IOC_SNAP_CREATE)", COPIES, ioctl(0x5000_9401)),
    refused("ioctl(BTRFS_IOC_SNAP_CREATE_V2)", COPIES, ioctl(0x5000_9417)),
    refused("ioctl(BCH_IOCTL_SUBVOLUME_DESTROY)", UNCOVERS, ioctl(0x4020_bc11)),
    refused("fcntl(F_SETLEASE)", HOLDS, no_descriptor(libc::SYS_fcntl, 1024)),
    refused("fcntl(F_SETDELEG)", HOLDS, no_descriptor(libc::SYS_fcntl, 1040)),
    refused("fcntl(O_ASYNC)", SIGNALS, call(libc::SYS_fcntl, [MISSING_DESCRIPTOR, F_SETFL, O_ASYNC])),
    ignored("ioctl(FIOASYNC)", SIGNALS, ioctl(0x5452)),
    refused("fcntl(F_SETSIG)", OTHER_SIGNALS, no_descriptor(libc::SYS_fcntl, F_SETSIG)),
    ignored("setrlimit(RLIMIT_CORE)", DUMPS, nothing(libc::SYS_setrlimit, RLIMIT_CORE)),
    ignored("prlimit64(RLIMIT_CORE)", DUMPS, call(libc::SYS_prlimit64, [0, RLIMIT_CORE, NOWHERE])),
    no_family("socket(AF_VSOCK)", "reaches the host of a virtual machine past the jail", socket(libc::AF_VSOCK)),
    no_family("socket(AF_PACKET)", "makes and sees packets of any form", socket(libc::AF_PACKET)),
    no_family("socketpair(AF_TIPC)", "makes sockets of a family that no namespace contains",
        nothing(libc::SYS_socketpair, libc::AF_TIPC)),
    apart("unshare(CLONE_NEWNS)", nothing(libc::SYS_unshare, libc::CLONE_NEWNS | 1)),
    apart("clone(CLONE_NEWNS)", nothing(libc::SYS_clone, libc::CLONE_NEWNS | libc::CLONE_FS)),
    Attempt { answer: Answer::NoSuchCall, ..apart("clone3", nothing(libc::SYS_clone3, 0)) },
    apart("setns(CLONE_NEWNS)", no_descriptor(libc::SYS_setns, libc::CLONE_NEWNS)),
    apart("setns(0)", no_descriptor(libc::SYS_setns, 0)),
    apart("open_tree", no_descriptor(libc::SYS_open_tree, 0)),
    apart("open_tree_attr", no_descriptor(OPEN_TREE_ATTR, 0)),
    apart("fsmount", no_descriptor(libc::SYS_fsmount, 0)),
];

const fn refused(name: &'static str, danger: &'static str, call: Call) -> Attempt {
    Attempt {
        name,
        danger,
        answer: Answer::NotPermitted,
        unless_nested: false,
        call,
    }
}

const fn ignored(name: &'static str, danger: &'static str, call: Call) -> Attempt {
    Attempt {
        answer: Answer::Ignored,
        ..refused(name, danger, call)
    }
}

const fn no_family(name: &'static str, danger: &'static str, call: Call) -> Attempt {
    Attempt {
        answer: Answer::NoSuchFamily,
        ..refused(name, danger, call)
    }
}

/// One that leads to a mount namespace of one's own.
const fn apart(name: &'static str, call: Call) -> Attempt {
    const DANGER: &str = "makes a mount namespace, from which covers can be lifted";
    Attempt {
        unless_nested: true,
        ..refused(name, DANGER, call)
    }
}

impl Attempt {
    /// Makes the call; the error number that it got, or zero if it was ignored.
    pub fn errno(&self) -> i32 {
        const ZERO: libc::c_long = 0;
        let (number, [first, second, third]) = self.call;
        // SAFETY: every call in the table above fails before it makes anything or writes memory: there
        // is no descriptor or socket type of the number that it gets, or it cannot do with a null
        // pointer, with a pointer to where nothing is mapped, or with this first argument. A filter
        // that ignores it does nothing either.
        let result = unsafe { libc::syscall(number, first, second, third, ZERO, ZERO) };
        if result != -1 {
            return 0;
        }
        io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default()
    }
}

/// ioctl(2) with this request, for no descriptor.
const fn ioctl(request: u32) -> Call {
    (
        libc::SYS_ioctl,
        [
            MISSING_DESCRIPTOR as libc::c_long,
            request as libc::c_long,
            0,
        ],
    )
}

/// socket(2) of this family.
const fn socket(family: libc::c_int) -> Call {
    call(libc::SYS_socket, [family, NONSENSE, 0])
}

/// A call for a descriptor, with this second argument.
const fn no_descriptor(number: libc::c_long, second: libc::c_int) -> Call {
    call(number, [MISSING_DESCRIPTOR, second, 0])
}

/// A call with this first argument; null pointers and zeros come after it.
const fn nothing(number: libc::c_long, first: libc::c_int) -> Call {
    call(number, [first, 0, 0])
}

const fn call(number: libc::c_long, [first, second, third]: [libc::c_int; 3]) -> Call {
    let arguments = [
        first as libc::c_long,
        second as libc::c_long,
        third as libc::c_long,
    ];
    (number, arguments)
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
