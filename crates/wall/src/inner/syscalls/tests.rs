use std::{process::Command, thread};

use super::*;

/// For each rule, in the order of the table, a line of perl that makes the call and
/// leaves the error in `$!`.
const PROBES: &[&str] = &[
    "syscall(16, 0, 0x5412, my $x = 'x')",
    "syscall(16, 0, 0x541c, my $x = 'x')",
    "syscall(16, -1, 0x4b3a, 1)",
    "syscall(16, -1, 0x5602, 0)",
    "socket(my $s, 17, 3, 0)",
    // The kernel has no pairs of these.
    "socketpair(my $s, my $t, 17, 3, 0)",
    "syscall(425, 1, 0)",
    "syscall(250, 0, -4, 0, 0, 0)",
    "syscall(248, 0, 0, 0, 0, 0)",
    "syscall(249, 0, 0, 0, 0)",
    "syscall(16, -1, 0xc0506617, 0)",
    "syscall(16, -1, 0xc0406618, 0)",
    "syscall(16, -1, 0xc0406619, 0)",
    "syscall(321, 0, 0, 0)",
    "syscall(298, 0, 0, -1, -1, 0)",
    "syscall(103, 10, 0, 0)",
    "syscall(323, 1)",
    "syscall(16, -1, 0x5000940f, 0)",
    "syscall(16, -1, 0x5000943f, 0)",
    "syscall(16, -1, 0x50009401, 0)",
    "syscall(16, -1, 0x50009417, 0)",
    "syscall(16, -1, 0x4020bc11, 0)",
    "syscall(72, -1, 1024, 0)",
    "syscall(72, -1, 1040, 0)",
    "syscall(72, -1, 4, 0x2800)",
    "syscall(16, -1, 0x5452, 0)",
    "syscall(72, -1, 10, 9)",
    "syscall(160, 4, 0)",
    // The low half of this pointer is null.
    "syscall(302, 0, 4, 1 << 32, 0)",
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
                TurnedOff => NoSuchFamily,
                _ => TurnedOff,
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
    let common = ALWAYS.len();
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
        // A new subvolume of Btrfs, and what lease there is.
        "syscall(16, -1, 0x5000940e, 0)",
        "syscall(72, -1, 1025, 0)",
        // Other flags of an open file, other limits, and a look at this one.
        "syscall(72, -1, 4, 0x800)",
        "syscall(160, 0, 0)",
        "syscall(302, 0, 0, 1, 0)",
        "syscall(302, 0, 4, 0, 1)",
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
