//! System calls that the command is refused, each with its reason.
//!
//! The table is for calls that no namespace or permission contains. Whatever is not in
//! it is allowed: programs of all kinds run inside, and a call that is refused without
//! need breaks some of them. What the kernel refuses to anybody without capabilities over
//! the whole machine (kexec, modules, swap, reboot, the clock) is not in it either.
//! `stockade_sys::seccomp` adds the guards against the other system call tables.

use std::io;

use stockade_sys::seccomp::{
    Answer, Argument, BPF, CLONE, CLONE3, Filter, IO_URING_SETUP, IOCTL, KEYS, MODE_GIVING,
    OPENAT2, OPENING, PERF_EVENT_OPEN, Refusal, SOCKET, UNSHARE, USERFAULTFD,
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

/// The bits of a mode by which a program runs with its owner's or its group's rights.
const SET_ID: [u32; 2] = [0o4000, 0o2000];

/// The flags by which a file is made, with a name or without one.
const MAKES_FILE: [u32; 2] = [0o100, 0o20_000_000];

/// A rule of the table: refused with EPERM.
fn refuse(call: i64, when: impl IntoIterator<Item = Argument>, reason: &'static str) -> Refusal {
    Refusal {
        call,
        when: when.into_iter().collect(),
        answer: Answer::NotPermitted,
        reason,
    }
}

/// A call that programs can do without: where it is not there, they use an older one.
fn not_there(call: i64, reason: &'static str) -> Refusal {
    Refusal {
        answer: Answer::NoSuchCall,
        ..refuse(call, None, reason)
    }
}

const KEY_STORE: &str = "reads and changes the keys of the user, which no namespace contains";

fn always() -> Vec<Refusal> {
    vec![
        refuse(
            IOCTL,
            [Argument::is(1, TIOCSTI)],
            "types into the caller's terminal",
        ),
        refuse(
            IOCTL,
            [Argument::is(1, TIOCLINUX)],
            "pastes into the caller's terminal",
        ),
        refuse(
            SOCKET,
            [Argument::is(0, AF_VSOCK)],
            "reaches the services of a virtual machine's host past the jail",
        ),
        refuse(
            SOCKET,
            [Argument::is(0, AF_PACKET)],
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
        refuse(UNSHARE, [made], "makes a user namespace"),
        refuse(CLONE, [made], "makes a user namespace"),
        not_there(
            CLONE3,
            "makes a user namespace, by flags that a filter cannot see; programs use clone(2) \
             where there is no clone3(2)",
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
            refusals.push(refuse(*call, [Argument::has(*mode, bit)], REASON));
        }
        for (call, flags) in OPENING {
            for makes in MAKES_FILE {
                let when = [Argument::has(*flags, makes), Argument::has(flags + 1, bit)];
                refusals.push(refuse(*call, when, REASON));
            }
        }
    }
    refusals.push(not_there(
        OPENAT2,
        "the same, by a mode that a filter cannot see; programs use openat(2) where there is no \
         openat2(2)",
    ));
    refusals
}

fn table(hardening: Hardening, is_root: bool) -> Vec<Refusal> {
    let mut table = always();
    if hardening == Hardening::Strict || is_root {
        table.extend(user_namespaces());
    }
    if is_root {
        table.extend(programs_of_roots());
    }
    table
}

/// Binds this process, and what it becomes, to the table.
pub(super) fn install(settings: &Settings) -> io::Result<()> {
    if sabotage::removes_filter(&settings.environment) {
        return Ok(());
    }
    let rules: Vec<Refusal> = table(settings.hardening, settings.is_root)
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

    #[test]
    fn every_rule_refuses_and_none_is_redundant() {
        let all = table(Hardening::Default, true);
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
        let all = table(Hardening::Default, true);
        for probe in [
            "syscall(16, 0, 0x5413, my $x = ' ' x 8)",
            "socket(my $s, 2, 1, 0)",
            // unshare(CLONE_FS), which needs no privilege.
            "syscall(272, 0x200)",
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
