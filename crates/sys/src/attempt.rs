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

/// How a call is made so that it fails.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// ioctl(2) with this request.
    Ioctl(u32),
    /// socket(2) of this family.
    Socket(libc::c_int),
    /// A call for a descriptor, with this second argument.
    NoDescriptor(libc::c_long, libc::c_int),
    /// A call with this first argument; null pointers and zeros come after it.
    Nothing(libc::c_long, libc::c_int),
}
use Call::{Ioctl, NoDescriptor, Nothing, Socket};

const MISSING_DESCRIPTOR: libc::c_int = -1;
/// No call has this flag, command or type.
const NONSENSE: libc::c_int = 0x7fff_fff0;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

const UNCOVERS: &str = "removes a directory although it is a mount point";
const COPIES: &str = "copies files without their covers";
const HOLDS: &str = "holds up programs outside that open a file";

#[rustfmt::skip]
pub const ATTEMPTS: [Attempt; 27] = [
    refused("ioctl(TIOCSTI)", "types into the caller's terminal", Ioctl(TIOCSTI)),
    refused("ioctl(TIOCLINUX)", "pastes into the caller's terminal", Ioctl(TIOCLINUX)),
    refused("io_uring_setup", "makes system calls that no filter sees", Nothing(libc::SYS_io_uring_setup, 1)),
    refused("keyctl", "reads the keys of the user", Nothing(libc::SYS_keyctl, NONSENSE)),
    refused("add_key", "changes the keys of the user", Nothing(libc::SYS_add_key, 0)),
    refused("request_key", "reads the keys of the user", Nothing(libc::SYS_request_key, 0)),
    refused("bpf", "loads programs into the kernel", Nothing(libc::SYS_bpf, NONSENSE)),
    refused("perf_event_open", "measures other programs", Nothing(libc::SYS_perf_event_open, 0)),
    // The lowest flag has it skip a look at the caller's rights.
    refused("userfaultfd", "holds the kernel up", Nothing(libc::SYS_userfaultfd, NONSENSE | 1)),
    refused("ioctl(BTRFS_IOC_SNAP_DESTROY)", UNCOVERS, Ioctl(0x5000_940f)),
    refused("ioctl(BTRFS_IOC_SNAP_DESTROY_V2)", UNCOVERS, Ioctl(0x5000_943f)),
    refused("ioctl(BTRFS_IOC_SNAP_CREATE)", COPIES, Ioctl(0x5000_9401)),
    refused("ioctl(BTRFS_IOC_SNAP_CREATE_V2)", COPIES, Ioctl(0x5000_9417)),
    refused("ioctl(BCH_IOCTL_SUBVOLUME_DESTROY)", UNCOVERS, Ioctl(0x4020_bc11)),
    refused("fcntl(F_SETLEASE)", HOLDS, NoDescriptor(libc::SYS_fcntl, 1024)),
    refused("fcntl(F_SETDELEG)", HOLDS, NoDescriptor(libc::SYS_fcntl, 1040)),
    no_family("socket(AF_VSOCK)", "reaches the host of a virtual machine past the jail", Socket(libc::AF_VSOCK)),
    no_family("socket(AF_PACKET)", "makes and sees packets of any form", Socket(libc::AF_PACKET)),
    no_family("socketpair(AF_TIPC)", "makes sockets of a family that no namespace contains",
        Nothing(libc::SYS_socketpair, libc::AF_TIPC)),
    apart("unshare(CLONE_NEWNS)", Nothing(libc::SYS_unshare, libc::CLONE_NEWNS | 1)),
    apart("clone(CLONE_NEWNS)", Nothing(libc::SYS_clone, libc::CLONE_NEWNS | libc::CLONE_FS)),
    Attempt { answer: Answer::NoSuchCall, ..apart("clone3", Nothing(libc::SYS_clone3, 0)) },
    apart("setns(CLONE_NEWNS)", NoDescriptor(libc::SYS_setns, libc::CLONE_NEWNS)),
    apart("setns(0)", NoDescriptor(libc::SYS_setns, 0)),
    apart("open_tree", NoDescriptor(libc::SYS_open_tree, 0)),
    apart("open_tree_attr", NoDescriptor(OPEN_TREE_ATTR, 0)),
    apart("fsmount", NoDescriptor(libc::SYS_fsmount, 0)),
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
    /// Makes the call; the error number that it got.
    pub fn errno(&self) -> i32 {
        const ZERO: libc::c_long = 0;
        let (number, first, second) = match self.call {
            Ioctl(request) => (libc::SYS_ioctl, MISSING_DESCRIPTOR, request.into()),
            Socket(family) => (libc::SYS_socket, family, NONSENSE.into()),
            NoDescriptor(number, second) => (number, MISSING_DESCRIPTOR, second.into()),
            Nothing(number, first) => (number, first, ZERO),
        };
        let first = libc::c_long::from(first);
        // SAFETY: every call in the table above fails before it makes anything or reads memory: there
        // is no descriptor or socket type of the number that it gets, or it cannot do with a null
        // pointer or with this first argument. The pointers are null.
        let result = unsafe { libc::syscall(number, first, second, ZERO, ZERO, ZERO) };
        debug_assert_eq!(result, -1, "{} cannot succeed", self.name);
        io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default()
    }
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
