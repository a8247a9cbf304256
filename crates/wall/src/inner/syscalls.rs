//! System calls that the command is refused, each with its reason.
//!
//! The table is for calls that no namespace or permission contains. Whatever is not in
//! it is allowed: programs of all kinds run inside, and a call that is refused without
//! need breaks some of them. What the kernel refuses to anybody without capabilities over
//! the whole machine (kexec, modules, swap, reboot, the clock) is not in it either.
//! `stockade_sys::seccomp` adds the guards against the other system call tables.

use std::io;

use stockade_sys::seccomp::{
    Answer, Argument, BPF, CLONE, CLONE3, Filter, IO_URING_SETUP, IOCTL, KEYS, PERF_EVENT_OPEN,
    Refusal, SOCKET, UNSHARE, USERFAULTFD,
};

use super::Settings;
use crate::{config::Hardening, sabotage};

/// Fakes input to the terminal: after the command has ended, or from the background, the
/// caller's shell would run what was "typed".
const TIOCSTI: u32 = 0x5412;

/// On a Linux console, pastes the selection, which is the same thing.
const TIOCLINUX: u32 = 0x541c;

/// The family of sockets for whole packets.
const AF_PACKET: u32 = 17;

/// The family of sockets between virtual machines and their host, which is not part of
/// any network namespace.
const AF_VSOCK: u32 = 40;

const CLONE_NEWUSER: u32 = 0x1000_0000;

/// A rule of the table: refused with EPERM.
const fn refuse(call: i64, when: Option<Argument>, reason: &'static str) -> Refusal {
    Refusal {
        call,
        when,
        answer: Answer::NotPermitted,
        reason,
    }
}

const KEY_STORE: &str = "reads and changes the keys of the user, which no namespace contains";

const ALWAYS: &[Refusal] = &[
    refuse(
        IOCTL,
        Some(Argument::is(1, TIOCSTI)),
        "types into the caller's terminal",
    ),
    refuse(
        IOCTL,
        Some(Argument::is(1, TIOCLINUX)),
        "pastes into the caller's terminal",
    ),
    refuse(
        SOCKET,
        Some(Argument::is(0, AF_VSOCK)),
        "reaches the services of a virtual machine's host past the jail",
    ),
    refuse(
        SOCKET,
        Some(Argument::is(0, AF_PACKET)),
        "makes and sees packets of any form; of use in a nested network namespace only, to \
         attack the kernel",
    ),
    refuse(
        IO_URING_SETUP,
        None,
        "makes system calls, socket(2) among them, that no filter sees",
    ),
    refuse(KEYS[0], None, KEY_STORE),
    refuse(KEYS[1], None, KEY_STORE),
    refuse(KEYS[2], None, KEY_STORE),
    refuse(
        BPF,
        None,
        "loads programs into the kernel, where an administrator lets everybody do so",
    ),
    refuse(
        PERF_EVENT_OPEN,
        None,
        "measures what the machine does, other programs' secrets among it",
    ),
    refuse(
        USERFAULTFD,
        None,
        "holds the kernel up at a moment of one's choice, the usual step of an exploit",
    ),
];

/// In addition, with strict hardening: the kernel's largest surface is what a user can
/// reach with all capabilities over a namespace of his own.
const STRICT: &[Refusal] = &[
    refuse(
        UNSHARE,
        Some(Argument::has(0, CLONE_NEWUSER)),
        "makes a user namespace",
    ),
    refuse(
        CLONE,
        Some(Argument::has(0, CLONE_NEWUSER)),
        "makes a user namespace",
    ),
    Refusal {
        call: CLONE3,
        when: None,
        answer: Answer::NoSuchCall,
        reason: "makes a user namespace, by flags that a filter cannot see; programs use clone(2) \
                 where there is no clone3(2)",
    },
];

fn table(hardening: Hardening) -> Vec<Refusal> {
    match hardening {
        Hardening::Default => ALWAYS.to_vec(),
        Hardening::Strict => [ALWAYS, STRICT].concat(),
    }
}

/// Binds this process, and what it becomes, to the table.
pub(super) fn install(settings: &Settings) -> io::Result<()> {
    if sabotage::removes_filter(&settings.environment) {
        return Ok(());
    }
    let rules: Vec<Refusal> = table(settings.hardening)
        .into_iter()
        .enumerate()
        .filter(|(number, _)| !sabotage::lets_rule_pass(&settings.environment, *number))
        .map(|(_, rule)| rule)
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
        "socket(my $s, 40, 1, 0)",
        "socket(my $s, 17, 2, 0)",
        "syscall(425, 1, 0)",
        "syscall(250, 0, -4, 0, 0, 0)",
        "syscall(248, 0, 0, 0, 0, 0)",
        "syscall(249, 0, 0, 0, 0)",
        "syscall(321, 0, 0, 0)",
        "syscall(298, 0, 0, -1, -1, 0)",
        "syscall(323, 1)",
        "syscall(272, 0x10000000)",
        // With a flag that the kernel does not take together with it.
        "syscall(56, 0x10000000 | 0x200, 0, 0, 0, 0)",
        "syscall(435, 0, 0)",
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

    #[test]
    fn every_rule_refuses_and_none_is_redundant() {
        let all = table(Hardening::Strict);
        assert_eq!(all.len(), PROBES.len(), "a rule without a probe");
        for (index, (rule, probe)) in all.iter().zip(PROBES).enumerate() {
            let refused = match rule.answer {
                Answer::NotPermitted => "1",
                Answer::NoSuchCall => "38",
            };
            assert_eq!(answer(&all, probe), refused, "{}", rule.reason);
            let mut others = all.clone();
            others.remove(index);
            let without = answer(&others, probe);
            if without == refused && !rustix::process::geteuid().is_root() {
                eprintln!(
                    "skipped: this kernel refuses it to users anyway: {}",
                    rule.reason
                );
                continue;
            }
            assert_ne!(without, refused, "redundant: {}", rule.reason);
        }
    }

    #[test]
    fn what_is_not_in_the_table_passes() {
        let all = table(Hardening::Strict);
        for probe in [
            "syscall(16, 0, 0x5413, my $x = ' ' x 8)",
            "socket(my $s, 2, 1, 0)",
            "syscall(272, 0x00020000)",
            "fork() // die",
        ] {
            let bare = answer(&all[..1], probe);
            assert_eq!(answer(&all, probe), bare, "{probe}");
            assert_ne!(bare, "1", "{probe}");
        }
    }
}
