//! Files of `/proc` that are not of one process: facts about the machine, and settings.
//!
//! Most are the same for every program of the machine, hundreds of them, and other kernels
//! have others. They are one row. Those that are known to tell more have a row each, and so
//! has everything that can be written to.

use super::plan::is_at_or_below;
use super::rows::UNEXPLAINED;

/// What kernels show of their own or of others' memory, keys and addresses.
const TELLING: &[(&str, &str)] = &[
    (
        "/proc/kallsyms",
        "names of the kernel's functions; addresses are zero",
    ),
    ("/proc/kcore", UNEXPLAINED),
    (
        "/proc/key-users",
        "how many keys the users have that exist inside",
    ),
    (
        "/proc/keys",
        "names of the user's keys in the kernel, which cannot be used",
    ),
    ("/proc/kmsg", UNEXPLAINED),
    ("/proc/kpagecgroup", UNEXPLAINED),
    ("/proc/kpagecount", UNEXPLAINED),
    ("/proc/kpageflags", UNEXPLAINED),
    ("/proc/mem", UNEXPLAINED),
    ("/proc/slabinfo", UNEXPLAINED),
    ("/proc/sysrq-trigger", UNEXPLAINED),
    ("/proc/vmallocinfo", UNEXPLAINED),
];

/// Settings that count in the sandbox's own namespaces only.
const OWN_SETTINGS: &[&str] = &[
    "/proc/sys/fs/mqueue",
    "/proc/sys/kernel/auto_msgmni",
    "/proc/sys/kernel/msgmax",
    "/proc/sys/kernel/msgmnb",
    "/proc/sys/kernel/msgmni",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/sem",
    "/proc/sys/kernel/shm_rmid_forced",
    "/proc/sys/kernel/shmall",
    "/proc/sys/kernel/shmmax",
    "/proc/sys/kernel/shmmni",
];

/// Under which name a file of `/proc` is listed, and what it is.
pub(super) fn place(path: &str, is_writable: bool) -> (String, &'static str) {
    let is_one_of = |places: &[&str]| places.iter().any(|place| is_at_or_below(path, place));
    let (what, reason) = if let Some((name, reason)) = TELLING.iter().find(|it| it.0 == path) {
        (*name, *reason)
    } else if is_at_or_below(path, "/proc/pressure") {
        (
            "/proc/pressure",
            "how loaded the machine is, and to be woken by that",
        )
    } else if is_writable && is_one_of(OWN_SETTINGS) {
        (
            "/proc/sys: message queues, shared memory, process numbers",
            "settings of the sandbox's own namespaces",
        )
    } else if is_writable {
        (path, UNEXPLAINED)
    } else {
        ("/proc", "facts about the machine and the kernel")
    };
    (what.to_owned(), reason)
}
