//! The kernel itself: which one it is, and what every session needs of it.

use super::{Check, machine::Machine};

/// The oldest that has all the calls which a session makes (`mount_setattr`).
const OLDEST: (u32, u32) = (5, 12);

pub(super) fn version(machine: &Machine) -> Check {
    const NAME: &str = "kernel";
    let release = machine.setting("kernel/osrelease").unwrap_or_default();
    let subsystem = release.to_lowercase().contains("microsoft");
    // The first WSL is no Linux: it translates some of its system calls. The second says its
    // name, or at least has a version that the first never had.
    let is_second = release.contains("WSL2") || number(&release).is_some_and(|it| it >= (4, 19));
    if subsystem && !is_second {
        return Check::failure(NAME, format!("{release} is WSL 1, which has no namespaces"))
            .fix("run the distribution under WSL 2: wsl --set-version NAME 2");
    }
    match number(&release) {
        Some(version) if version < OLDEST => {
            let (major, minor) = OLDEST;
            Check::failure(NAME, format!("Linux {release} is too old"))
                .fix(format!("use Linux {major}.{minor} or newer"))
        }
        Some(_) if subsystem => Check::ok(
            NAME,
            format!("Linux {release} (WSL 2); Windows' drives and programs are not shown inside"),
        ),
        Some(_) => Check::ok(NAME, format!("Linux {release}")),
        None => Check::warning(NAME, "the kernel does not tell its version")
            .cost("nothing, if sessions start")
            .fix("make /proc/sys/kernel/osrelease readable"),
    }
}

/// Major and minor: what follows them is the distribution's.
fn number(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn seccomp(machine: &Machine) -> Check {
    const NAME: &str = "system-call-filter";
    // Both exist only in kernels with filters.
    let has_filters = machine.setting("kernel/seccomp/actions_avail").is_some()
        || machine.status("Seccomp_filters").is_some();
    if has_filters {
        Check::ok(NAME, "available (seccomp)")
    } else {
        Check::failure(NAME, "the kernel has no system call filters (seccomp)")
            .fix("use a kernel with CONFIG_SECCOMP_FILTER")
    }
}

/// What sessions lack where the kernel has no IPv6.
pub(super) fn ipv6(machine: &Machine) -> Option<Check> {
    const FOUND: &str = "the kernel has no IPv6 (ipv6.disable=1), so sessions have IPv4 only";
    (!machine.has_ipv6).then(|| Check::ok("ipv6", FOUND))
}

/// The gate sends pings by sockets that need no privilege, where the host permits them.
pub(super) fn ping(machine: &Machine) -> Check {
    const NAME: &str = "ping";
    let range = machine.setting("net/ipv4/ping_group_range");
    let range = range.as_deref().unwrap_or_default();
    let mut ends = range.split_whitespace().map(str::parse::<u32>);
    let gid = machine.gid;
    if let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next())
        && (first..=last).contains(&gid)
    {
        return Check::ok(NAME, "users may send pings");
    }
    let range = range.replace('\t', " ");
    Check::warning(
        NAME,
        format!("group {gid} may not send pings (ping_group_range is {range})"),
    )
    .cost("ping does not work inside")
    .fix("sudo sysctl net.ipv4.ping_group_range=\"0 2147483647\"")
}

#[cfg(test)]
mod tests {
    use super::{
        super::{CheckState, machine::tests::machine},
        *,
    };

    fn state_of(release: &str) -> CheckState {
        let (_root, machine) = machine(&[("/proc/sys/kernel/osrelease", release)]);
        version(&machine).state
    }

    #[test]
    fn a_kernel_is_known_by_its_release() {
        for (release, wanted) in [
            ("6.18.44-fc\n", CheckState::Ok),
            ("5.12.0", CheckState::Ok),
            ("5.11.22", CheckState::Failure),
            ("5.15.153.1-microsoft-standard-WSL2", CheckState::Ok),
            ("4.19.128-microsoft-standard", CheckState::Failure),
            ("4.4.0-19041-Microsoft", CheckState::Failure),
            ("5.10.0-31-amd64", CheckState::Failure),
            ("odd", CheckState::Warning),
        ] {
            assert_eq!(state_of(release), wanted, "{release}");
        }
        let (_root, machine) = machine(&[("/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft")]);
        let check = version(&machine);
        assert!(check.found.contains("WSL 1"), "{check:?}");
        assert!(check.fix.expect("a fix").contains("wsl --set-version"));
    }

    #[test]
    fn a_filter_is_needed() {
        let with = |files: &[(&str, &str)]| {
            let (_root, machine) = machine(files);
            seccomp(&machine).state
        };
        let mode_only = ("/proc/self/status", "Seccomp:\t0\n");
        assert_eq!(with(&[mode_only]), CheckState::Failure);
        let filters = ("/proc/self/status", "Seccomp:\t0\nSeccomp_filters:\t0\n");
        assert_eq!(with(&[filters]), CheckState::Ok);
    }

    #[test]
    fn a_kernel_without_ipv6_is_named_and_no_fault() {
        let (_root, mut machine) = machine(&[]);
        assert_eq!(ipv6(&machine), None);
        machine.has_ipv6 = false;
        let check = ipv6(&machine).expect("a check");
        assert_eq!(check.state, CheckState::Ok);
    }

    #[test]
    fn pings_need_a_range_with_the_users_group_in_it() {
        let with = |range: &str| {
            let (_root, machine) = machine(&[("/proc/sys/net/ipv4/ping_group_range", range)]);
            ping(&machine).state
        };
        assert_eq!(with("0\t2147483647\n"), CheckState::Ok);
        assert_eq!(with("1000\t1000"), CheckState::Ok);
        assert_eq!(with("1\t0"), CheckState::Warning);
        assert_eq!(with("0\t999"), CheckState::Warning);
        assert_eq!(with(""), CheckState::Warning);
    }
}
