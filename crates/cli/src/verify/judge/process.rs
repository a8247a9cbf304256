//! Namespaces, privileges, system calls, and what is around the process.

use std::collections::BTreeMap;

use rustix::io::Errno;
use stockade_config::Hardening;
use stockade_sys::{attempt::ATTEMPTS, confine::Landlock};
use stockade_wall::Operation;

use super::Case;
use crate::verify::{
    messages::{Changes, Nested, Observations, Tried},
    report::{Check, Finding},
};

pub(super) fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut findings = namespaces(case);
    findings.extend(privileges(&case.seen));
    findings.extend(calls(
        &case.seen.calls,
        &case.outside.calls,
        case.plan.nested,
    ));
    findings.push(scopes(&case.seen, case.outside.landlock));
    findings.extend(file_rules(case));
    findings.extend([processes(case), descriptors(case), core(&case.seen)]);
    findings.extend(nested(case));
    findings
}

/// Those that need nobody outside to compare with.
pub(super) fn inside(seen: &Observations, landlock: Landlock) -> Vec<Finding> {
    let mut findings = privileges(seen);
    // Whether sandboxes work inside the sandbox is not known here, so what depends on that is left out.
    findings.extend(calls(&seen.calls, &BTreeMap::new(), true));
    findings.extend([scopes(seen, landlock), core(seen)]);
    findings
}

fn privileges(seen: &Observations) -> Vec<Finding> {
    vec![no_new_privileges(seen), capabilities(seen), filter(seen)]
}

/// What the kernel calls each kind, what it is called here, and what is promised.
const KINDS: [(&str, &str, &str); 6] = [
    ("user", "user", "no capability inside counts outside"),
    ("mnt", "mount", "mounts inside are not the host's"),
    ("pid", "process", "processes outside cannot be signalled"),
    ("ipc", "ipc", "no shared memory of other programs"),
    ("uts", "host-name", "the host's name cannot be changed"),
    (
        "cgroup",
        "control-group",
        "the host's control groups are not shown",
    ),
];

/// By identity: a namespace that looks like one of a sandbox may still be the host's.
fn namespaces(case: &Case<'_>) -> Vec<Finding> {
    let kinds = KINDS.iter().map(|(kind, name, promise)| {
        let check = Check::new(&format!("namespace.{name}"), promise);
        match case.is_apart(kind) {
            Some(true) => check.pass("another one than the host's"),
            Some(false) => check.fail("it is the host's own"),
            None if case.outside.namespaces.contains_key(*kind) => {
                check.inconclusive("it cannot be told from inside")
            }
            None => check.inconclusive("this kernel has none of the kind"),
        }
    });
    kinds.collect()
}

fn no_new_privileges(seen: &Observations) -> Finding {
    let check = Check::new("privilege.none-new", "no program gives privileges");
    match seen.status.get("NoNewPrivs").map(String::as_str) {
        Some("1") => check.pass("no_new_privs is set"),
        Some(_) => check.fail("no_new_privs is not set: setuid programs give their rights"),
        None => check.inconclusive("the kernel does not tell"),
    }
}

fn capabilities(seen: &Observations) -> Finding {
    let check = Check::new("privilege.capabilities", "no capability is there");
    let mut faults = Vec::new();
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        match seen.status.get(set) {
            Some(value) if value.chars().all(|digit| digit == '0') => {}
            Some(value) => faults.push(format!("{set} is {value}")),
            None => return check.inconclusive("the kernel does not tell"),
        }
    }
    check.unless(&faults, "all sets but the bounding one are empty")
}

fn filter(seen: &Observations) -> Finding {
    let check = Check::new("privilege.filter", "a filter of system calls is there");
    match seen.status.get("Seccomp").map(String::as_str) {
        Some("2") => check.pass("seccomp is in mode 2"),
        Some(mode) => check.fail(format!("seccomp is in mode {mode}")),
        None => check.inconclusive("the kernel does not tell"),
    }
}

/// A filter answers before the kernel looks at arguments that make no sense.
fn calls(
    inside: &BTreeMap<String, i32>,
    outside: &BTreeMap<String, i32>,
    nested: bool,
) -> Vec<Finding> {
    let absent = Errno::NOSYS.raw_os_error();
    let attempts = ATTEMPTS.iter();
    let attempts = attempts.filter(|attempt| !(attempt.unless_nested && nested));
    let calls = attempts.map(|attempt| {
        let refused = attempt.answer.errno();
        let name = attempt
            .name
            .replace('(', ".")
            .replace(')', "")
            .to_lowercase();
        let check = Check::new(&format!("call.{name}"), "the call is refused");
        let inside = inside.get(attempt.name).copied();
        let outside = outside.get(attempt.name).copied();
        match (inside, outside) {
            (Some(inside), Some(outside)) if inside == refused && outside != refused => {
                check.pass("refused inside, not outside")
            }
            (Some(inside), None) if inside == refused => check.pass("refused"),
            (Some(inside), _) if inside == refused => {
                check.pass("refused, as this machine does outside, too")
            }
            (Some(inside), Some(outside)) if inside == absent && outside == absent => {
                check.pass("this kernel does not have it")
            }
            (Some(inside), _) => {
                let error = Tried::Refused(inside);
                check.fail(format!("not refused ({error}): it {}", attempt.danger))
            }
            (None, _) => check.inconclusive("it was not tried"),
        }
    });
    calls.collect()
}

/// Scoping of signals came with this version of Landlock.
const SCOPES: Landlock = Landlock::Version(6);

/// Process 1 has the same user and is not in the domain of the command.
fn scopes(seen: &Observations, landlock: Landlock) -> Finding {
    let check = Check::new(
        "landlock.scopes",
        "signals and abstract sockets stay inside, by Landlock",
    );
    match &seen.signal {
        _ if landlock < SCOPES => check
            .inconclusive(landlock.absent("this kernel has no scopes of Landlock (Linux 6.12)")),
        Some(tried) if tried.is_refused_with(&[Errno::PERM]) => {
            check.pass("process 1 cannot be signalled")
        }
        Some(Tried::Worked(_)) => check.fail("process 1, outside of the domain, can be signalled"),
        _ => check.inconclusive("it could not be tried"),
    }
}

/// Only with strict hardening.
fn file_rules(case: &Case<'_>) -> Option<Finding> {
    if case.effective.agent.hardening.value != Hardening::Strict {
        return None;
    }
    let check = Check::new(
        "landlock.files",
        "files outside of the plan cannot be opened",
    );
    Some(match &case.seen.reopened {
        _ if case.outside.landlock <= Landlock::Off => check.inconclusive(
            (case.outside.landlock).absent("this kernel has no Landlock (Linux 5.13)"),
        ),
        Some(tried) if tried.is_refused_with(&[Errno::ACCESS]) => {
            check.pass("a file of outside cannot be opened again through a descriptor")
        }
        Some(Tried::Worked(_)) => {
            check.fail("a file of outside could be opened again through a descriptor")
        }
        _ => check.inconclusive("it could not be tried"),
    })
}

fn processes(case: &Case<'_>) -> Finding {
    let check = Check::new("process.visible", "processes outside cannot be seen");
    let mut steps = case.plan.files.iter();
    let is_fresh = steps.any(|step| step.operation == Operation::Processes);
    let secrets = case.outside.own_secrets.iter();
    let readable: Vec<String> = secrets
        .filter(|path| case.seen.reads.get(*path).is_some_and(Tried::worked))
        .map(|path| format!("{} of a process outside can be read", super::shown(path)))
        .collect();
    if !case.seen.own_proc && (is_fresh || !readable.is_empty()) {
        let fault = "/proc is that of the host".to_owned();
        return check.unless(&[readable, vec![fault]].concat(), "");
    }
    if case.seen.own_proc {
        return check.pass("/proc shows the session's own processes only");
    }
    check.inconclusive(
        "a part of /proc is masked here, so the outer one is shown: command lines of processes \
         and the tables of the network outside can be seen, memory and environments cannot",
    )
}

fn descriptors(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "process.descriptors",
        "no descriptor of the caller's is inherited",
    );
    let faults: Vec<String> = case
        .seen
        .descriptors
        .iter()
        .map(|to| format!("a descriptor of {to} is open"))
        .collect();
    check.unless(&faults, "one that was left open outside is closed inside")
}

fn core(seen: &Observations) -> Finding {
    let check = Check::new("process.core", "no core dump is handled outside");
    match seen.core_limit {
        Some(1) => check.pass("RLIMIT_CORE is 1: the kernel writes no core file and starts no handler"),
        Some(0) => check.fail(
            "RLIMIT_CORE is 0, at which the kernel starts the handler of `core_pattern`, if there is one; \
             start Stockade where `ulimit -H -c` is not 0",
        ),
        _ => check.fail("core dumps are not limited"),
    }
}

fn nested(case: &Case<'_>) -> Vec<Finding> {
    let network = Check::new(
        "nested.network",
        "a nested user namespace has no authority over the network",
    );
    let mounts = Check::new(
        "nested.mounts",
        "nothing that is hidden or read-only can be uncovered",
    );
    let strict = case.effective.agent.hardening.value == Hardening::Strict;
    let Some(nested) = &case.then.nested else {
        let why = "it was not tried";
        return vec![network.inconclusive(why), mounts.inconclusive(why)];
    };
    let mut findings = Vec::new();
    if strict {
        let check = Check::new("nested.none", "there are no user namespaces inside");
        findings.push(match &nested.user {
            Tried::Worked(_) => check.fail("one could be made, though hardening is strict"),
            refused => check.pass(refused.to_string()),
        });
    }
    if !nested.user.worked() {
        let why = "no user namespace can be made inside";
        findings.extend([network.pass(why), nested_mounts(case, mounts, nested)]);
        return findings;
    }
    if nested.changes.is_none() {
        findings.push(network.fail("not tried: the network is the host's"));
    } else {
        findings.push(nested_network(network, nested));
    }
    findings.push(nested_mounts(case, mounts, nested));
    findings
}

/// Tries the attack: a cover is a mount point, which the kernel protects only in the mount
/// namespace of who takes its name away.
fn nested_mounts(case: &Case<'_>, check: Check, nested: &Nested) -> Finding {
    if let Some(Tried::Worked(_)) = &nested.remount {
        return check.fail("/usr could be made writable");
    }
    let Some(lift) = &nested.lift else {
        return check.inconclusive("there is nothing hidden in the workspace to try it with");
    };
    match (&lift.taken, &lift.apart, case.plan.nested) {
        (Tried::Worked(how), ..) => check.fail(format!(
            "what is hidden in the workspace could be {how}, and so be seen"
        )),
        (_, Tried::Worked(_), false) => check.fail(
            "a mount namespace could be made, in which nobody protects what is hidden or read-only",
        ),
        _ if !lift.control.worked() => {
            check.inconclusive("what is not hidden cannot be renamed either")
        }
        (_, Tried::Worked(_), true) => check.pass(
            "a mount namespace can be made; what is hidden can be renamed or removed from none",
        ),
        (_, _, true) => check.inconclusive("no mount namespace can be made, though it should"),
        (_, _, false) => check.pass("no mount namespace can be made inside"),
    }
}

fn nested_network(check: Check, nested: &Nested) -> Finding {
    let control = nested.own_network.as_ref().is_some_and(Tried::worked);
    let changed: Vec<String> = nested
        .changes
        .iter()
        .flat_map(Changes::each)
        .filter(|(_, tried)| tried.worked())
        .map(|(what, _)| format!("{what} of the session's network could be had or changed"))
        .collect();
    if changed.is_empty() && !control {
        return check.inconclusive("it has no authority over a network of its own either");
    }
    check.unless(
        &changed,
        "what works in a network of its own does not in the session's",
    )
}
