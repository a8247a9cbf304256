//! System calls that the command is refused, each with its reason.
//!
//! The table is for calls that no namespace or permission contains. Whatever is not in
//! it is allowed: programs of all kinds run inside, and a call that is refused without
//! need breaks some of them. What the kernel refuses to anybody without capabilities over
//! the whole machine (kexec, modules, swap, reboot, the clock) is not in it either.
//! `stockade_sys::seccomp` adds the guards against the other system call tables.

use std::io;

use stockade_sys::seccomp::{
    Answer::{self, Ignored, NoSuchCall, NoSuchFamily, NotPermitted, TurnedOff},
    Argument, BPF, CLONE, CLONE3, FCNTL, FSMOUNT, Filter, IO_URING_SETUP, IOCTL, KEYS,
    LANDLOCK_CREATE_RULESET, MODE_GIVING, OPEN_TREE, OPEN_TREE_ATTR, OPENAT2, OPENING,
    PERF_EVENT_OPEN, PRLIMIT64, Refusal, SETNS, SETRLIMIT, SOCKETS, SYSLOG, UNSHARE, USERFAULTFD,
};

use super::InnerSettings;
use crate::{config::Hardening, sabotage};

/// Fakes input to the terminal: after the command has ended, or from the background, the
/// caller's shell would run what was "typed".
const TIOCSTI: u32 = 0x5412;

/// On a Linux console, pastes the selection, which is the same thing.
const TIOCLINUX: u32 = 0x541c;

/// Requests to a Linux console (KDSETMODE, KDSKBMODE, VT_SETMODE, ...). Whoever has it as terminal
/// may hide text, choose what keys type, and keep the user from other consoles, and no escape
/// sequence undoes that. They have no bits above these, unlike those of video devices.
const CONSOLE_KD: [u32; 2] = [0xffff_ff00, 0x4b00];
const CONSOLE_VT: [u32; 2] = [0xffff_fff0, 0x5600];

/// No family of sockets that programs need. A list of those that are dangerous would never be
/// complete: some reach devices, coprocessors or the host of a virtual machine, which no network
/// namespace contains (AF_VSOCK, AF_BLUETOOTH, AF_NFC, AF_QIPCRTR); some serve to attack the kernel
/// (AF_PACKET, AF_ALG, AF_TIPC). Programs that can use one of these do without where it is not there.
const OTHER_FAMILY: &[Argument] = &[
    // AF_UNIX: programs talk to each other; by path, so that mounts and Landlock contain it.
    Argument::is_not(0, 1),
    // AF_INET and AF_INET6: the session's network.
    Argument::is_not(0, 2),
    Argument::is_not(0, 10),
    // AF_NETLINK: names are looked up and addresses listed with it; of the session's network.
    Argument::is_not(0, 16),
];

const CLONE_NEWUSER: u32 = 0x1000_0000;
const CLONE_NEWNS: u32 = 0x0002_0000;
/// Of unshare(2) alone, since Linux 7.1: the same, with nothing mounted in it.
const UNSHARE_EMPTY_MNTNS: u32 = 0x0010_0000;

/// Removes a subvolume of Btrfs by its name, or by its number.
const BTRFS_SNAP_DESTROY: [u32; 2] = [0x5000_940f, 0x5000_943f];

/// Makes a snapshot of a subvolume, with all that is in it.
const BTRFS_SNAP_CREATE: [u32; 2] = [0x5000_9401, 0x5000_9417];

/// Adds a key of fscrypt to a file system, removes the caller's, and removes it for all users.
const FSCRYPT_KEYS: [u32; 3] = [0xc050_6617, 0xc040_6618, 0xc040_6619];

/// A lease on a file, and one on a directory (Linux 6.19).
const LEASES: [u32; 2] = [1024, 1040];

/// Sets the flags of an open file, one of which has the kernel signal somebody when there is news;
/// and sets that flag alone. The flag does nothing in open(2), and io_uring is refused.
///
/// Who is signalled may be chosen (`F_SETOWN`, `F_SETOWN_EX`, and `FIOSETOWN` and `SIOCSPGRP` of sockets): a
/// program inside can name only programs inside, because the kernel looks for them in its process namespace.
const F_SETFL: u32 = 4;
const O_ASYNC: u32 = 0x2000;
const FIOASYNC: u32 = 0x5452;

/// Chooses the signal for news of an open file. The caller's shell and its other programs have the same
/// terminal open, by the same description, and so the choice is theirs, too, also after the session. One of
/// them that asks for news and expects SIGIO would get SIGKILL.
const F_SETSIG: u32 = 10;

const RLIMIT_CORE: u32 = 4;

/// The bits of a request that say whose it is, and those of bcachefs, one of which does the same.
const IOCTL_TYPE: u32 = 0xff00;
const BCACHEFS: u32 = 0xbc00;

/// The bits of a mode by which a program runs with its owner's or its group's rights.
const SET_ID: [u32; 2] = [0o4000, 0o2000];

/// The flags by which a file is made, with a name or without one.
const MAKES_FILE: [u32; 2] = [0o100, 0o20_000_000];

/// A rule of a table: its name, the call, when it is refused (always, if nothing is said), the answer, and
/// why.
type Rule = (&'static str, i64, &'static [Argument], Answer, &'static str);

const KEY_STORE: &str = "reads and changes the keys of the user, which no namespace contains";
const FILE_KEYS: &str = "locks or unlocks the user's encrypted directories, outside, too";
const CONSOLE: &str = "hides text of the caller's console, or changes its keys";
const FAMILIES: &str = "makes a socket of a family that the network namespace may not contain";
const SUBVOLUMES: &str = "removes a directory although it is a mount point, and so a cover";
const SNAPSHOTS: &str = "copies files without their covers, and before Linux 6.8 also those around \
    what is shown";
const HOLDS: &str = "holds up who opens a file outside: git, until its settings are changed";
const SIGNALS: &str = "has the kernel signal the terminal's foreground group: the warden, or other \
    programs of the caller's. Landlock keeps that in, where the kernel has it";
const OTHER_SIGNALS: &str = "chooses the signal that the caller's other programs get for news of the \
    terminal: one that kills them";
const DUMPS: &str =
    "has a program of the host handle core dumps, which the kernel does not at a limit of 1";
const NEW_MOUNTS: &str = "makes a mount namespace, from which covers can be lifted";
const OTHER_MOUNTS: &str = "joins a mount namespace";
const NEW_USERS: &str = "makes a user namespace";
const COPIED_MOUNTS: &str = "copies mounts to no namespace, where the kernel knows no mount point, and \
    an overlay can be laid over them";

#[rustfmt::skip]
const ALWAYS: &[Rule] = &[
    ("ioctl(TIOCSTI)", IOCTL, &[Argument::is(1, TIOCSTI)], NotPermitted, "types into the caller's terminal"),
    ("ioctl(TIOCLINUX)", IOCTL, &[Argument::is(1, TIOCLINUX)], NotPermitted,
        "pastes into the caller's terminal"),
    ("ioctl(KD)", IOCTL, &[Argument::masked(1, CONSOLE_KD[0], CONSOLE_KD[1])], NotPermitted, CONSOLE),
    ("ioctl(VT)", IOCTL, &[Argument::masked(1, CONSOLE_VT[0], CONSOLE_VT[1])], NotPermitted, CONSOLE),
    ("socket", SOCKETS[0], OTHER_FAMILY, NoSuchFamily, FAMILIES),
    ("socketpair", SOCKETS[1], OTHER_FAMILY, NoSuchFamily, FAMILIES),
    ("io_uring_setup", IO_URING_SETUP, &[], NotPermitted,
        "makes system calls, socket(2) among them, that no filter sees"),
    ("keyctl", KEYS[0], &[], NotPermitted, KEY_STORE),
    ("add_key", KEYS[1], &[], NotPermitted, KEY_STORE),
    ("request_key", KEYS[2], &[], NotPermitted, KEY_STORE),
    ("ioctl(FS_IOC_ADD_ENCRYPTION_KEY)", IOCTL, &[Argument::is(1, FSCRYPT_KEYS[0])], NotPermitted, FILE_KEYS),
    ("ioctl(FS_IOC_REMOVE_ENCRYPTION_KEY)", IOCTL, &[Argument::is(1, FSCRYPT_KEYS[1])], NotPermitted,
        FILE_KEYS),
    ("ioctl(FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS)", IOCTL, &[Argument::is(1, FSCRYPT_KEYS[2])],
        NotPermitted, FILE_KEYS),
    ("bpf", BPF, &[], NotPermitted,
        "loads programs into the kernel, where an administrator lets everybody do so"),
    ("perf_event_open", PERF_EVENT_OPEN, &[], NotPermitted,
        "measures what the machine does, other programs' secrets among it"),
    ("syslog", SYSLOG, &[], NotPermitted,
        "reads the kernel's log, where an administrator lets everybody do so"),
    ("userfaultfd", USERFAULTFD, &[], NotPermitted,
        "holds the kernel up at a moment of one's choice, the usual step of an exploit"),
    ("ioctl(BTRFS_IOC_SNAP_DESTROY)", IOCTL, &[Argument::is(1, BTRFS_SNAP_DESTROY[0])], NotPermitted,
        SUBVOLUMES),
    ("ioctl(BTRFS_IOC_SNAP_DESTROY_V2)", IOCTL, &[Argument::is(1, BTRFS_SNAP_DESTROY[1])], NotPermitted,
        SUBVOLUMES),
    ("ioctl(BTRFS_IOC_SNAP_CREATE)", IOCTL, &[Argument::is(1, BTRFS_SNAP_CREATE[0])], NotPermitted,
        SNAPSHOTS),
    ("ioctl(BTRFS_IOC_SNAP_CREATE_V2)", IOCTL, &[Argument::is(1, BTRFS_SNAP_CREATE[1])], NotPermitted,
        SNAPSHOTS),
    ("ioctl(BCH_IOCTL_SUBVOLUME_DESTROY)", IOCTL, &[Argument::masked(1, IOCTL_TYPE, BCACHEFS)], NotPermitted,
        SUBVOLUMES),
    ("fcntl(F_SETLEASE)", FCNTL, &[Argument::is(1, LEASES[0])], NotPermitted, HOLDS),
    ("fcntl(F_SETDELEG)", FCNTL, &[Argument::is(1, LEASES[1])], NotPermitted, HOLDS),
    ("fcntl(O_ASYNC)", FCNTL, &[Argument::is(1, F_SETFL), Argument::has(2, O_ASYNC)], NotPermitted, SIGNALS),
    // nginx asks for it, does without, and ends if it is refused.
    ("ioctl(FIOASYNC)", IOCTL, &[Argument::is(1, FIOASYNC)], Ignored, SIGNALS),
    ("fcntl(F_SETSIG)", FCNTL, &[Argument::is(1, F_SETSIG)], NotPermitted, OTHER_SIGNALS),
    // Programs with secrets (ssh-agent, gpg) set it to 0, and end if that is refused.
    ("setrlimit(RLIMIT_CORE)", SETRLIMIT, &[Argument::is(0, RLIMIT_CORE)], Ignored, DUMPS),
    ("prlimit64(RLIMIT_CORE)", PRLIMIT64, &[Argument::is(1, RLIMIT_CORE), Argument::is_given(2)], Ignored,
        DUMPS),
];

/// In addition, unless sandboxes are to work inside the sandbox: no mount namespace of one's own.
///
/// What is hidden or read-only in a writable place is a mount point, which the kernel lets nobody
/// rename or remove; but only in the mount namespace of who tries. Who has another one, and has
/// unmounted everything there, renames it by a descriptor of its directory.
#[rustfmt::skip]
const MOUNT_NAMESPACES: &[Rule] = &[
    ("unshare(CLONE_NEWNS)", UNSHARE, &[Argument::has(0, CLONE_NEWNS)], NotPermitted, NEW_MOUNTS),
    ("unshare(UNSHARE_EMPTY_MNTNS)", UNSHARE, &[Argument::has(0, UNSHARE_EMPTY_MNTNS)], NotPermitted,
        NEW_MOUNTS),
    ("clone(CLONE_NEWNS)", CLONE, &[Argument::has(0, CLONE_NEWNS)], NotPermitted, NEW_MOUNTS),
    ("clone3", CLONE3, &[], NoSuchCall,
        "makes a mount or user namespace, by flags that a filter cannot see; programs use clone(2) where \
         there is no clone3(2)"),
    ("setns(CLONE_NEWNS)", SETNS, &[Argument::has(1, CLONE_NEWNS)], NotPermitted, OTHER_MOUNTS),
    // Of whatever kind the descriptor is.
    ("setns(0)", SETNS, &[Argument::is(1, 0)], NotPermitted, OTHER_MOUNTS),
    // By flags of Linux 7.0. Nothing else can be done with them without such a namespace.
    ("open_tree", OPEN_TREE, &[], NotPermitted, NEW_MOUNTS),
    ("open_tree_attr", OPEN_TREE_ATTR, &[], NotPermitted, NEW_MOUNTS),
    ("fsmount", FSMOUNT, &[], NotPermitted, NEW_MOUNTS),
];

/// In addition, with strict hardening, and for root: the kernel's largest surface is what a
/// user can reach with all capabilities over a namespace of his own.
///
/// Root cannot map itself in one, so there is no use in it. But also without a number inside,
/// the kernel takes it for the owner of what belongs to root: it could mount the control
/// groups of the machine, and freeze it.
#[rustfmt::skip]
const USER_NAMESPACES: &[Rule] = &[
    ("unshare(CLONE_NEWUSER)", UNSHARE, &[Argument::has(0, CLONE_NEWUSER)], NotPermitted, NEW_USERS),
    ("clone(CLONE_NEWUSER)", CLONE, &[Argument::has(0, CLONE_NEWUSER)], NotPermitted, NEW_USERS),
];

/// In addition, if sandboxes work inside the sandbox: what the broker cannot answer for.
#[rustfmt::skip]
const AROUND_THE_BROKER: &[Rule] = &[
    ("open_tree", OPEN_TREE, &[], NoSuchCall, COPIED_MOUNTS),
    ("open_tree_attr", OPEN_TREE_ATTR, &[], NoSuchCall, COPIED_MOUNTS),
    ("landlock_create_ruleset", LANDLOCK_CREATE_RULESET, &[], TurnedOff,
        "makes rules for files that do not bind the broker, which renames and removes"),
];

/// In addition, for root: what it leaves in the workspace belongs to the root of the machine,
/// where other users may run it.
fn programs_of_roots() -> Vec<Refusal> {
    let set_id = |call: i64, when| Refusal {
        name: "set-user-ID mode",
        call,
        when,
        answer: NotPermitted,
        reason: "leaves a program by which other users become root",
    };
    let mut refusals = Vec::new();
    for bit in SET_ID {
        for (call, mode) in MODE_GIVING {
            refusals.push(set_id(*call, vec![Argument::has(*mode, bit)]));
        }
        for (call, flags) in OPENING {
            for makes in MAKES_FILE {
                let when = vec![Argument::has(*flags, makes), Argument::has(flags + 1, bit)];
                refusals.push(set_id(*call, when));
            }
        }
    }
    let reason = "the same, by a mode that a filter cannot see; programs use openat(2) where there \
                  is no openat2(2)";
    refusals.push(refusal(&("openat2", OPENAT2, &[], NoSuchCall, reason)));
    refusals
}

fn refusal((name, call, when, answer, reason): &Rule) -> Refusal {
    Refusal {
        name,
        call: *call,
        when: when.to_vec(),
        answer: *answer,
        reason,
    }
}

fn table(hardening: Hardening, is_root: bool, nested: bool) -> Vec<Refusal> {
    let mounts = match nested {
        false => MOUNT_NAMESPACES,
        true => AROUND_THE_BROKER,
    };
    let users = match hardening == Hardening::Strict || is_root {
        false => &[],
        true => USER_NAMESPACES,
    };
    let rules = ALWAYS.iter().chain(mounts).chain(users);
    let mut table: Vec<Refusal> = rules.map(refusal).collect();
    if is_root {
        table.extend(programs_of_roots());
    }
    table
}

/// Binds this process, and what it becomes, to the table.
pub(super) fn install(settings: &InnerSettings) -> io::Result<()> {
    if sabotage::removes_filter(&settings.environment) {
        return Ok(());
    }
    let rules: Vec<Refusal> = table(settings.hardening, settings.is_root, settings.nested)
        .into_iter()
        .filter(|rule| !sabotage::lets_rule_pass(&settings.environment, rule))
        .collect();
    Filter::new(&rules)?.install()?;
    Ok(())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
