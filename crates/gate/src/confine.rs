//! What the gate's thread gives up before it serves the first packet.
//!
//! The gate reads hostile bytes. A thread that was taken over by them could make and use IP
//! sockets, as it must, but by itself no other files, no programs, no sockets of the host's
//! services, and would have no authority over the jail. It shares memory with the warden's
//! other threads, so this slows an attacker down; it is no wall.

use std::{fs, io, path::Path};

use rustix::thread::CapabilitySet;
use stockade_sys::{
    confine::{hide_files, keep_capabilities},
    seccomp::{Allowed, Filter},
};

use crate::dns::resolvers;

pub(crate) fn confine() -> io::Result<()> {
    // The sockets that speak for a destination are bound to its port, which may be a low one.
    keep_capabilities(CapabilitySet::NET_BIND_SERVICE)?;

    // The host's resolv.conf is replaced, not rewritten, when the network changes: so it is
    // the directories of the name and of what it leads to that stay readable.
    let name = Path::new(resolvers::PATH);
    let real = fs::canonicalize(name).unwrap_or_else(|_| name.to_owned());
    // It may also become a link to another place of those that manage networks.
    let split = Path::new(resolvers::SPLIT_PATH);
    let others = split.parent().into_iter().chain(MANAGERS.map(Path::new));
    hide_files(
        [Some(name), Some(&real), name.parent(), real.parent()]
            .into_iter()
            .flatten()
            .chain(others),
    )?;

    Filter::allow_only(&[RELAYS_CALLS, GATES_CALLS].concat())?.install()?;
    Ok(())
}

/// A carrier has its sockets brought to it.
pub(crate) fn confine_carrier() -> io::Result<()> {
    keep_capabilities(CapabilitySet::empty())?;
    hide_files([])?;
    Filter::allow_only(RELAYS_CALLS)?.install()?;
    Ok(())
}

/// What speaks TLS to the proxy is brought the sockets that face it.
pub(crate) fn confine_tls() -> io::Result<()> {
    keep_capabilities(CapabilitySet::empty())?;
    hide_files([])?;
    Filter::allow_only(&[RELAYS_CALLS, TLS_CALLS].concat())?.install()?;
    Ok(())
}

/// Where NetworkManager and resolvconf keep the file that `/etc/resolv.conf` is a link to.
const MANAGERS: [&str; 2] = ["/run/NetworkManager", "/run/resolvconf"];

const ANY: &[u32] = &[];
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const FIONBIO: u32 = 0x5421;
const SIOCGIFINDEX: u32 = 0x8933;

const fn any(call: libc::c_long) -> Allowed {
    Allowed {
        call,
        argument: (0, ANY),
    }
}

/// What a thread needs that moves bytes between sockets which it was given.
const RELAYS_CALLS: &[Allowed] = &[
    any(libc::SYS_setsockopt),
    any(libc::SYS_getsockopt),
    any(libc::SYS_shutdown),
    any(libc::SYS_close),
    any(libc::SYS_read),
    any(libc::SYS_write),
    any(libc::SYS_recvfrom),
    any(libc::SYS_sendto),
    any(libc::SYS_splice),
    any(libc::SYS_pipe2),
    any(libc::SYS_fcntl),
    // The event loop.
    any(libc::SYS_epoll_ctl),
    any(libc::SYS_epoll_pwait),
    any(libc::SYS_epoll_pwait2),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_epoll_wait),
    any(libc::SYS_futex),
    any(libc::SYS_clock_gettime),
    any(libc::SYS_sched_yield),
    // Memory and chance.
    any(libc::SYS_mmap),
    any(libc::SYS_munmap),
    any(libc::SYS_mremap),
    any(libc::SYS_mprotect),
    any(libc::SYS_madvise),
    any(libc::SYS_brk),
    any(libc::SYS_getrandom),
    // Ending, also by panic.
    any(libc::SYS_rt_sigprocmask),
    any(libc::SYS_rt_sigaction),
    any(libc::SYS_rt_sigreturn),
    any(libc::SYS_sigaltstack),
    any(libc::SYS_getpid),
    any(libc::SYS_gettid),
    any(libc::SYS_exit),
    any(libc::SYS_exit_group),
    any(libc::SYS_rseq),
    any(libc::SYS_set_robust_list),
];

/// What the thread needs besides that speaks TLS.
const TLS_CALLS: &[Allowed] = &[
    // Connected to each other, and to nothing else.
    Allowed {
        call: libc::SYS_socketpair,
        argument: (0, &[AF_UNIX]),
    },
    any(libc::SYS_readv),
    any(libc::SYS_writev),
];

/// What the gate's own thread needs besides.
const GATES_CALLS: &[Allowed] = &[
    // New flows: IP sockets only. In particular no AF_UNIX, behind which the host's services
    // are, no AF_NETLINK, no AF_PACKET.
    Allowed {
        call: libc::SYS_socket,
        argument: (0, &[AF_INET, AF_INET6]),
    },
    any(libc::SYS_bind),
    any(libc::SYS_connect),
    any(libc::SYS_accept4),
    any(libc::SYS_getsockname),
    any(libc::SYS_getpeername),
    any(libc::SYS_readv),
    any(libc::SYS_writev),
    any(libc::SYS_recvmsg),
    any(libc::SYS_recvmmsg),
    any(libc::SYS_sendmsg),
    any(libc::SYS_sendmmsg),
    // Nothing of a terminal, into which one could type.
    Allowed {
        call: libc::SYS_ioctl,
        argument: (1, &[FIONBIO, SIOCGIFINDEX]),
    },
    any(libc::SYS_ppoll),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_poll),
    any(libc::SYS_clock_nanosleep),
    // Reading resolv.conf, as far as files are left to be read. The older calls are those of musl.
    any(libc::SYS_openat),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_open),
    #[cfg(target_arch = "x86_64")]
    any(libc::SYS_stat),
    any(libc::SYS_statx),
    any(libc::SYS_newfstatat),
    any(libc::SYS_fstat),
    any(libc::SYS_lseek),
];
