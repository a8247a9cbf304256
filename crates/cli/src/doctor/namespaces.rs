//! Whether users may have namespaces, as far as the kernel's settings say. What a session
//! really gets is for `session` to find out.

use rustix::thread::CapabilitySet;

use stockade_sys::apparmor::Confinement;

use super::{Check, Trial, apparmor as profile, machine::Machine};

/// Limits of namespaces that are zero where an administrator wants none, with the kind that
/// each is about.
const LIMITS: [(&str, &str); 7] = [
    ("max_user_namespaces", "user"),
    ("max_net_namespaces", "network"),
    ("max_mnt_namespaces", "mount"),
    ("max_pid_namespaces", "process"),
    ("max_ipc_namespaces", "IPC"),
    ("max_uts_namespaces", "host name"),
    ("max_cgroup_namespaces", "control group"),
];

pub(super) fn limits(machine: &Machine) -> Vec<Check> {
    const NAME: &str = "namespaces";
    let mut checks: Vec<Check> = LIMITS
        .iter()
        .filter(|(limit, _)| machine.setting(&format!("user/{limit}")).as_deref() == Some("0"))
        .map(|(limit, kind)| {
            Check::failure(
                NAME,
                format!("the kernel is set to allow no {kind} namespaces"),
            )
            .fix(format!("sudo sysctl user.{limit}=10000"))
        })
        .collect();
    // A setting of Debian's kernels, for users only.
    if machine.uid != 0
        && machine
            .setting("kernel/unprivileged_userns_clone")
            .as_deref()
            == Some("0")
    {
        let check = Check::failure(NAME, "the kernel is set to allow users no user namespaces");
        checks.push(check.fix("sudo sysctl kernel.unprivileged_userns_clone=1"));
    }
    if !machine.has("/proc/self/ns/user") {
        let check = Check::failure(NAME, "the kernel has no user namespaces");
        checks.push(check.fix("use a kernel with CONFIG_USER_NS"));
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "no setting of the kernel forbids them"));
    }
    checks
}

/// Ubuntu lets only programs with a profile use what a user namespace gives.
pub(super) fn apparmor(machine: &Machine, trial: Trial) -> Option<Check> {
    const NAME: &str = "apparmor";
    let restricts = machine
        .setting("kernel/apparmor_restrict_unprivileged_userns")
        .is_some_and(|value| value == "1");
    if !restricts {
        return None;
    }
    // Who has authority over the whole machine is not restricted.
    if machine.capabilities.contains(CapabilitySet::SYS_ADMIN) {
        let found = "user namespaces are restricted, but not for this user";
        return Some(Check::ok(NAME, found));
    }
    let confinement = Confinement::of(&machine.apparmor_label());
    Some(match &confinement {
        Confinement::Own => Check::ok(
            NAME,
            "user namespaces are restricted to programs with a profile, and this one has its own",
        ),
        Confinement::Unconfined => Check::failure(
            NAME,
            "user namespaces are restricted to programs with a profile, and this one has none",
        )
        .fix(profile::advice()),
        Confinement::Foreign(name) => {
            let found = format!(
                "user namespaces are restricted to programs with a profile, and this one has \
                 {name:?}, that of the program which started it"
            );
            match trial {
                Trial::Started => Check::ok(NAME, found),
                Trial::Forbidden | Trial::Failed => Check {
                    fix: stockade_jail::for_confinement(&confinement, ""),
                    ..Check::failure(NAME, found)
                },
            }
        }
    })
}

/// Root of a container often is root without what root needs.
pub(super) fn capabilities(machine: &Machine) -> Option<Check> {
    const NAME: &str = "capabilities";
    if machine.uid != 0 {
        return None;
    }
    if machine.capabilities.contains(CapabilitySet::SETFCAP) {
        return Some(Check::ok(NAME, "root may map itself in a user namespace"));
    }
    let found = "this is root without CAP_SETFCAP, who may not map itself in a user namespace";
    let fix = "add it back (--cap-add SETFCAP), or run as another user (--user 1000)";
    Some(Check::failure(NAME, found).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{CheckState, machine::tests::machine},
        *,
    };

    const USER: (&str, &str) = ("/proc/self/ns/user", "");
    const RESTRICTED: (&str, &str) = (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1\n",
    );

    #[test]
    fn each_setting_that_forbids_is_named_with_its_fix() {
        let (_root, fine) = machine(&[USER, ("/proc/sys/user/max_user_namespaces", "63000\n")]);
        assert_eq!(limits(&fine)[0].state, CheckState::Ok);
        let (_root, forbidden) = machine(&[
            USER,
            ("/proc/sys/user/max_user_namespaces", "0\n"),
            ("/proc/sys/kernel/unprivileged_userns_clone", "0\n"),
        ]);
        let fixes: Vec<_> = limits(&forbidden)
            .into_iter()
            .filter_map(|it| it.fix)
            .collect();
        assert_eq!(
            fixes,
            [
                "sudo sysctl user.max_user_namespaces=10000",
                "sudo sysctl kernel.unprivileged_userns_clone=1"
            ]
        );
        let (_root, without) = machine(&[]);
        assert_eq!(limits(&without)[0].state, CheckState::Failure);
    }

    #[test]
    fn apparmor_matters_where_it_restricts_and_no_profile_covers_us() {
        let (_root, desktop) = machine(&[USER]);
        assert_eq!(apparmor(&desktop, Trial::Failed), None);
        let with = |label: &str| {
            let (_root, machine) = machine(&[RESTRICTED, ("/proc/self/attr/current", label)]);
            apparmor(&machine, Trial::Failed).expect("a check")
        };
        assert_eq!(with("stockade (unconfined)\n").state, CheckState::Ok);
        let without = with("unconfined\n");
        assert_eq!(without.state, CheckState::Failure);
        let fix = without.fix.expect("a fix");
        assert!(
            fix.contains("userns") && fix.contains("--write-apparmor"),
            "{fix}"
        );
        assert!(!fix.contains("sysctl"), "never weaken the machine: {fix}");
        let (_root, mut root) = machine(&[RESTRICTED]);
        root.capabilities = CapabilitySet::all();
        assert_eq!(
            apparmor(&root, Trial::Failed).map(|check| check.state),
            Some(CheckState::Ok)
        );
        // A profile of its own would not count below that of its caller.
        let confined = with("snap.code.code (enforce)\n");
        let fix = confined.fix.expect("a fix");
        assert!(
            fix.contains("snap.code.code") && !fix.contains("--write-apparmor"),
            "{fix}"
        );
    }

    #[test]
    fn root_needs_one_capability_and_users_none() {
        let (_root, mut user) = machine(&[]);
        assert_eq!(capabilities(&user), None);
        user.uid = 0;
        assert_eq!(
            capabilities(&user).map(|it| it.state),
            Some(CheckState::Failure)
        );
        user.capabilities = CapabilitySet::SETFCAP;
        assert_eq!(capabilities(&user).map(|it| it.state), Some(CheckState::Ok));
    }
}
