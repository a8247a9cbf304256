//! System calls that the command is refused, each with its reason.
//!
//! The table is for calls that no namespace or permission contains. Whatever is not in
//! it is allowed: programs of all kinds run inside, and a call that is refused without
//! need breaks some of them. What the kernel refuses to anybody without capabilities over
//! the whole machine (kexec, modules, swap, reboot, the clock) is not in it either.
//! `stockade_sys::seccomp` adds the guards against the other system call tables.

use std::io;

use stockade_sys::seccomp::{
    Answer, Argument, BPF, CLONE, CLONE3, FSMOUNT, Filter, IO_URING_SETUP, IOCTL, KEYS,
    LANDLOCK_CREATE_RULESET, MODE_GIVING, OPEN_TREE, OPEN_TREE_ATTR, OPENAT2, OPENING,
    PERF_EVENT_OPEN, Refusal, SETNS, SOCKETS, SYSLOG, UNSHARE, USERFAULTFD,
};

use super::InnerSettings;
use crate::{config::Hardening, sabotage};

/// Fakes input to the terminal: after the command has ended, or from the background, the
/// caller's shell would run what was "typed".
const TIOCSTI: u32 = 0x5412;

/// On a Linux console, pastes the selection, which is the same thing.
const TIOCLINUX: u32 = 0x541c;

/// The families of sockets that programs need. A list of those that are dangerous would never be
/// complete: some reach devices, coprocessors or the host of a virtual machine, which no network
/// namespace contains (AF_VSOCK, AF_BLUETOOTH, AF_NFC, AF_QIPCRTR); some serve to attack the kernel
/// (AF_PACKET, AF_ALG, AF_TIPC). Programs that can use one of these do without where it is not there.
const FAMILIES: [u32; 4] = [
    // AF_UNIX: programs talk to each other; by path, so that mounts and Landlock contain it.
    1, // AF_INET and AF_INET6: the session's network.
    2, 10,
    // AF_NETLINK: names are looked up and addresses listed with it; of the session's network.
    16,
];

const CLONE_NEWUSER: u32 = 0x1000_0000;
const CLONE_NEWNS: u32 = 0x0002_0000;
/// Of unshare(2) alone, since Linux 7.1: the same, with nothing mounted in it.
const UNSHARE_EMPTY_MNTNS: u32 = 0x0010_0000;

/// Removes a subvolume of Btrfs by its name, or by its number.
const BTRFS_SNAP_DESTROY: [u32; 2] = [0x5000_940f, 0x5000_943f];

/// The bits of a request that say whose it is, and those of bcachefs, one of which does the same.
const IOCTL_TYPE: u32 = 0xff00;
const BCACHEFS: u32 = 0xbc00;

/// The bits of a mode by which a program runs with its owner's or its group's rights.
const SET_ID: [u32; 2] = [0o4000, 0o2000];

/// The flags by which a file is made, with a name or without one.
const MAKES_FILE: [u32; 2] = [0o100, 0o20_000_000];

/// A rule of the table: refused with EPERM.
fn refuse(
    name: &'static str,
    call: i64,
    when: impl IntoIterator<Item = Argument>,
    reason: &'static str,
) -> Refusal {
    Refusal {
        name,
        call,
        when: when.into_iter().collect(),
        answer: Answer::NotPermitted,
        reason,
    }
}

/// A call that programs can do without: where it is not there, they use an older one.
fn not_there(name: &'static str, call: i64, reason: &'static str) -> Refusal {
    Refusal {
        answer: Answer::NoSuchCall,
        ..refuse(name, call, None, reason)
    }
}

const KEY_STORE: &str = "reads and changes the keys of the user, which no namespace contains";

fn always() -> Vec<Refusal> {
    vec![
        refuse(
            "ioctl(TIOCSTI)",
            IOCTL,
            [Argument::is(1, TIOCSTI)],
            "types into the caller's terminal",
        ),
        refuse(
            "ioctl(TIOCLINUX)",
            IOCTL,
            [Argument::is(1, TIOCLINUX)],
            "pastes into the caller's terminal",
        ),
        other_families("socket", SOCKETS[0]),
        other_families("socketpair", SOCKETS[1]),
        refuse(
            "io_uring_setup",
            IO_URING_SETUP,
            None,
            "makes system calls, socket(2) among them, that no filter sees",
        ),
        refuse("keyctl", KEYS[0], None, KEY_STORE),
        refuse("add_key", KEYS[1], None, KEY_STORE),
        refuse("request_key", KEYS[2], None, KEY_STORE),
        refuse(
            "bpf",
            BPF,
            None,
            "loads programs into the kernel, where an administrator lets everybody do so",
        ),
        refuse(
            "perf_event_open",
            PERF_EVENT_OPEN,
            None,
            "measures what the machine does, other programs' secrets among it",
        ),
        refuse(
            "syslog",
            SYSLOG,
            None,
            "reads the kernel's log, where an administrator lets everybody do so",
        ),
        refuse(
            "userfaultfd",
            USERFAULTFD,
            None,
            "holds the kernel up at a moment of one's choice, the usual step of an exploit",
        ),
        refuse(
            "ioctl(BTRFS_IOC_SNAP_DESTROY)",
            IOCTL,
            [Argument::is(1, BTRFS_SNAP_DESTROY[0])],
            SUBVOLUMES,
        ),
        refuse(
            "ioctl(BTRFS_IOC_SNAP_DESTROY_V2)",
            IOCTL,
            [Argument::is(1, BTRFS_SNAP_DESTROY[1])],
            SUBVOLUMES,
        ),
        refuse(
            "ioctl(BCH_IOCTL_SUBVOLUME_DESTROY)",
            IOCTL,
            [Argument::masked(1, IOCTL_TYPE, BCACHEFS)],
            SUBVOLUMES,
        ),
    ]
}

const SUBVOLUMES: &str = "removes a directory although it is a mount point, and so a cover";

fn other_families(name: &'static str, call: i64) -> Refusal {
    Refusal {
        answer: Answer::NoSuchFamily,
        ..refuse(
            name,
            call,
            FAMILIES.map(|family| Argument::is_not(0, family)),
            "makes a socket of a family that the network namespace may not contain",
        )
    }
}

/// In addition, unless sandboxes are to work inside the sandbox: no mount namespace of one's own.
///
/// What is hidden or read-only in a writable place is a mount point, which the kernel lets nobody
/// rename or remove; but only in the mount namespace of who tries. Who has another one, and has
/// unmounted everything there, renames it by a descriptor of its directory.
fn mount_namespaces() -> Vec<Refusal> {
    const REASON: &str = "makes a mount namespace, from which covers can be lifted";
    let made = Argument::has(0, CLONE_NEWNS);
    let joined = "joins a mount namespace";
    vec![
        refuse("unshare(CLONE_NEWNS)", UNSHARE, [made], REASON),
        refuse(
            "unshare(UNSHARE_EMPTY_MNTNS)",
            UNSHARE,
            [Argument::has(0, UNSHARE_EMPTY_MNTNS)],
            REASON,
        ),
        refuse("clone(CLONE_NEWNS)", CLONE, [made], REASON),
        not_there(
            "clone3",
            CLONE3,
            "makes a mount or user namespace, by flags that a filter cannot see; programs use \
             clone(2) where there is no clone3(2)",
        ),
        refuse(
            "setns(CLONE_NEWNS)",
            SETNS,
            [Argument::has(1, CLONE_NEWNS)],
            joined,
        ),
        // Of whatever kind the descriptor is.
        refuse("setns(0)", SETNS, [Argument::is(1, 0)], joined),
        // By flags of Linux 7.0. Nothing else can be done with them without such a namespace.
        refuse("open_tree", OPEN_TREE, None, REASON),
        refuse("open_tree_attr", OPEN_TREE_ATTR, None, REASON),
        refuse("fsmount", FSMOUNT, None, REASON),
    ]
}

/// In addition, with strict hardening, and for root: the kernel's largest surface is what a
/// user can reach with all capabilities over a namespace of his own.
///
/// Root cannot map itself in one, so there is no use in it. But also without a number inside,
/// the kernel takes it for the owner of what belongs to root: it could mount the control
/// groups of the machine, and freeze it.
fn user_namespaces() -> Vec<Refusal> {
    let made = Argument::has(0, CLONE_NEWUSER);
    vec![
        refuse(
            "unshare(CLONE_NEWUSER)",
            UNSHARE,
            [made],
            "makes a user namespace",
        ),
        refuse(
            "clone(CLONE_NEWUSER)",
            CLONE,
            [made],
            "makes a user namespace",
        ),
    ]
}

/// In addition, for root: what it leaves in the workspace belongs to the root of the machine,
/// where other users may run it.
fn programs_of_roots() -> Vec<Refusal> {
    const REASON: &str = "leaves a program by which other users become root";
    let mut refusals = Vec::new();
    for bit in SET_ID {
        for (call, mode) in MODE_GIVING {
            refusals.push(refuse(
                "set-user-ID mode",
                *call,
                [Argument::has(*mode, bit)],
                REASON,
            ));
        }
        for (call, flags) in OPENING {
            for makes in MAKES_FILE {
                let when = [Argument::has(*flags, makes), Argument::has(flags + 1, bit)];
                refusals.push(refuse("set-user-ID mode", *call, when, REASON));
            }
        }
    }
    refusals.push(not_there(
        "openat2",
        OPENAT2,
        "the same, by a mode that a filter cannot see; programs use openat(2) where there is no \
         openat2(2)",
    ));
    refusals
}

/// In addition, if sandboxes work inside the sandbox: what the broker cannot answer for.
fn around_the_broker() -> Vec<Refusal> {
    const REASON: &str = "copies mounts to no namespace, where the kernel knows no mount point, and \
        an overlay can be laid over them";
    vec![
        not_there("open_tree", OPEN_TREE, REASON),
        not_there("open_tree_attr", OPEN_TREE_ATTR, REASON),
        Refusal {
            answer: Answer::TurnedOff,
            ..refuse(
                "landlock_create_ruleset",
                LANDLOCK_CREATE_RULESET,
                None,
                "makes rules for files that do not bind the broker, which renames and removes",
            )
        },
    ]
}

fn table(hardening: Hardening, is_root: bool, nested: bool) -> Vec<Refusal> {
    let mut table = always();
    table.extend(match nested {
        false => mount_namespaces(),
        true => around_the_broker(),
    });
    if hardening == Hardening::Strict || is_root {
        table.extend(user_namespaces());
    }
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
mod tests {
    use std::{process::Command, thread};

    use super::*;

    /// For each rule, in the order of the table, a line of perl that makes the call and
    /// leaves the error in `$!`.
    const PROBES: &[&str] = &[
        "syscall(16, 0, 0x5412, my $x = 'x')",
        "syscall(16, 0, 0x541c, my $x = 'x')",
        "socket(my $s, 17, 3, 0)",
        // The kernel has no pairs of these.
        "socketpair(my $s, my $t, 17, 3, 0)",
        "syscall(425, 1, 0)",
        "syscall(250, 0, -4, 0, 0, 0)",
        "syscall(248, 0, 0, 0, 0, 0)",
        "syscall(249, 0, 0, 0, 0)",
        "syscall(321, 0, 0, 0)",
        "syscall(298, 0, 0, -1, -1, 0)",
        "syscall(103, 10, 0, 0)",
        "syscall(323, 1)",
        "syscall(16, -1, 0x5000940f, 0)",
        "syscall(16, -1, 0x5000943f, 0)",
        "syscall(16, -1, 0x4020bc11, 0)",
        "syscall(272, 0x20000)",
        "syscall(272, 0x100000)",
        // With a flag that the kernel does not take together with it.
        "syscall(56, 0x20000 | 0x200, 0, 0, 0, 0)",
        "syscall(435, 0, 0)",
        "syscall(308, -1, 0x20000)",
        "syscall(308, -1, 0)",
        "syscall(428, -1, my $x = '', 0)",
        "syscall(467, -1, my $x = '', 0, 0, 0)",
        "syscall(432, -1, 0, 0)",
        "syscall(272, 0x10000000)",
        "syscall(56, 0x10000000 | 0x200, 0, 0, 0, 0)",
        // For each of the two bits, on no file at all.
        "syscall(91, -1, 04755)",
        "syscall(268, -1, my $x = '', 04755)",
        "syscall(452, -1, my $x = '', 04755, 0)",
        "syscall(259, -1, my $x = '', 0104755, 0)",
        "syscall(90, my $x = '', 04755)",
        "syscall(85, my $x = '', 04755)",
        "syscall(133, my $x = '', 0104755, 0)",
        "syscall(257, -1, my $x = '', 0101, 04755)",
        "syscall(257, -1, my $x = '', 020200001, 04755)",
        "syscall(2, my $x = '', 0101, 04755)",
        "syscall(2, my $x = '', 020200001, 04755)",
        "syscall(91, -1, 02755)",
        "syscall(268, -1, my $x = '', 02755)",
        "syscall(452, -1, my $x = '', 02755, 0)",
        "syscall(259, -1, my $x = '', 0102755, 0)",
        "syscall(90, my $x = '', 02755)",
        "syscall(85, my $x = '', 02755)",
        "syscall(133, my $x = '', 0102755, 0)",
        "syscall(257, -1, my $x = '', 0101, 02755)",
        "syscall(257, -1, my $x = '', 020200001, 02755)",
        "syscall(2, my $x = '', 0101, 02755)",
        "syscall(2, my $x = '', 020200001, 02755)",
        "syscall(437, -1, 0, 0, 0)",
    ];

    /// The error number that a probe gets under these rules.
    fn answer(rules: &[Refusal], probe: &str) -> String {
        let filter = Filter::new(rules).expect("a filter");
        let script = format!("$! = 0; {probe}; print $! + 0");
        // A filter is inherited by what its thread starts, and binds no other thread.
        thread::spawn(move || {
            filter.install().expect("the filter is installed");
            let mut command = Command::new("perl");
            let output = command.args(["-e", &script]).output().expect("perl");
            String::from_utf8(output.stdout).expect("a number")
        })
        .join()
        .expect("no panic")
    }

    fn each_refuses_and_none_is_redundant(all: &[Refusal], probes: &[&str]) {
        assert_eq!(all.len(), probes.len(), "a rule without a probe");
        for (index, (rule, probe)) in all.iter().zip(probes).enumerate() {
            let refused = &rule.answer.errno().to_string();
            assert_eq!(answer(all, probe), *refused, "{}", rule.reason);
            let mut others = all.to_vec();
            others.remove(index);
            let without = answer(&others, probe);
            if without == *refused && !rustix::process::geteuid().is_root() {
                // The kernel refuses it to users in the same way. With another answer it shows
                // that the rule refuses it as well.
                let mut marked = all.to_vec();
                marked[index].answer = match rule.answer {
                    Answer::TurnedOff => Answer::NoSuchFamily,
                    _ => Answer::TurnedOff,
                };
                let mark = marked[index].answer.errno().to_string();
                assert_eq!(answer(&marked, probe), mark, "{}", rule.reason);
                continue;
            }
            assert_ne!(without, *refused, "redundant: {}", rule.reason);
        }
    }

    #[test]
    fn every_rule_refuses_and_none_is_redundant() {
        each_refuses_and_none_is_redundant(&table(Hardening::Default, true, false), PROBES);
    }

    #[test]
    fn so_do_those_that_stand_in_for_some_where_sandboxes_work_inside() {
        const NESTED: [&str; 3] = [
            "syscall(428, -1, my $x = '', 0)",
            "syscall(467, -1, my $x = '', 0, 0, 0)",
            "syscall(444, 0, 0, 1)",
        ];
        let table = table(Hardening::Default, false, true);
        let common = always().len();
        let probes = [&PROBES[..common], &NESTED].concat();
        // Kernels before 6.15 have no open_tree_attr(2).
        let known = answer(&[], "syscall(467, -1, my $x = '', 0, 0, 0)") != "38";
        let mut both: Vec<_> = table.into_iter().zip(probes).collect();
        both.retain(|(rule, _)| known || rule.call != OPEN_TREE_ATTR);
        let (rules, probes): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        each_refuses_and_none_is_redundant(&rules, &probes);
        // Mount namespaces are there.
        assert_eq!(answer(&rules, "syscall(272, 0x10020000)"), "0");
    }

    #[test]
    fn what_is_not_in_the_table_passes() {
        let all = table(Hardening::Default, true, false);
        for probe in [
            "syscall(16, 0, 0x5413, my $x = ' ' x 8)",
            "socket(my $s, 2, 1, 0)",
            // unshare(CLONE_FS), which needs no privilege.
            "syscall(272, 0x200)",
            "socket(my $s, 1, 1, 0)",
            "socket(my $s, 10, 1, 0)",
            "socket(my $s, 16, 3, 0)",
            "socketpair(my $s, my $t, 1, 1, 0)",
            "syscall(308, -1, 0x40000000)",
            "syscall(16, -1, 0x50009401, 0)",
            "fork() // die",
            "syscall(91, -1, 01777)",
            // Without a file to be made, the mode is whatever is in the register.
            "syscall(257, -1, my $x = '', 0, 06755)",
        ] {
            let bare = answer(&all[..1], probe);
            assert_eq!(answer(&all, probe), bare, "{probe}");
            assert_ne!(bare, "1", "{probe}");
        }
    }
}
