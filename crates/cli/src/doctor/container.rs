//! Container engines: which one this is, and which argument of its `run` is missing.

use super::{Check, Trial, machine::Machine};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Docker,
    Podman,
    Kubernetes,
    /// Another one: LXC, systemd-nspawn.
    Other,
}

impl Engine {
    /// The engine in whose container this is; none outside of any.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        // Kubernetes first: its containers have the marks of what runs them, too.
        if machine.has("/var/run/secrets/kubernetes.io")
            || machine.has("/run/secrets/kubernetes.io")
        {
            Some(Self::Kubernetes)
        } else if machine.has("/run/.containerenv") {
            Some(Self::Podman)
        } else if machine.has("/.dockerenv") {
            Some(Self::Docker)
        } else {
            machine.has("/run/systemd/container").then_some(Self::Other)
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
            Self::Kubernetes => "Kubernetes",
            Self::Other => "some engine",
        }
    }

    /// What lets programs of a container make namespaces.
    fn unfilter(self) -> &'static str {
        match self {
            Self::Docker | Self::Podman => {
                "start the container with --security-opt seccomp=FILE, where FILE is \
                 devcontainer/seccomp.json of Stockade's source; or with seccomp=unconfined"
            }
            Self::Kubernetes => "set securityContext.seccompProfile.type to Unconfined",
            Self::Other => {
                "let the engine's filter allow the calls that devcontainer/seccomp.json of \
                 Stockade's source adds to Docker's"
            }
        }
    }

    /// What shows `/proc` whole to a container, without which there can be no fresh one in it.
    pub(super) fn unmask(self) -> &'static str {
        match self {
            Self::Docker => "start the container with --security-opt systempaths=unconfined",
            Self::Podman => "start the container with --security-opt unmask=ALL",
            Self::Kubernetes => "set securityContext.procMount to Unmasked, and hostUsers to false",
            Self::Other => "let the engine mask no part of /proc",
        }
    }
}

/// What of the engine is in the way of a session, if none did start.
pub(super) fn engine(machine: &Machine, trial: Trial) -> Option<Check> {
    const NAME: &str = "container";
    /// What the field `Seccomp` of a process's status says where there is a filter.
    const FILTERED: &str = "2";
    let engine = Engine::of(machine)?;
    let found = format!("this is a container of {}", engine.name());
    if trial == Trial::Started {
        return Some(Check::ok(NAME, found));
    }
    let filtered = machine.status("Seccomp").as_deref() == Some(FILTERED);
    if trial == Trial::Forbidden && filtered {
        let found = format!("{found}, whose system call filter forbids namespaces");
        return Some(Check::failure(NAME, found).fix(engine.unfilter()));
    }
    if machine.apparmor_label().starts_with("docker-default") {
        let found =
            format!("{found}, with AppArmor's profile docker-default, which forbids mounts");
        let fix = "start the container with --security-opt apparmor=unconfined";
        return Some(Check::failure(NAME, found).fix(fix));
    }
    Some(Check::ok(NAME, found))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{CheckState, machine::tests::machine},
        *,
    };

    #[test]
    fn an_engine_is_known_by_its_marks() {
        for (file, wanted) in [
            ("/.dockerenv", Engine::Docker),
            ("/run/.containerenv", Engine::Podman),
            ("/run/systemd/container", Engine::Other),
            ("/var/run/secrets/kubernetes.io/token", Engine::Kubernetes),
        ] {
            let (_root, machine) = machine(&[(file, "")]);
            assert_eq!(Engine::of(&machine), Some(wanted), "{file}");
        }
        let (_root, none) = machine(&[("/etc/hostname", "laptop")]);
        assert_eq!(engine(&none, Trial::Failed), None);
    }

    #[test]
    fn dockers_own_profile_is_named_with_the_argument_that_lifts_it() {
        let (_root, machine) = machine(&[
            ("/.dockerenv", ""),
            ("/proc/self/attr/current", "docker-default (enforce)\n"),
        ]);
        let check = engine(&machine, Trial::Failed).expect("a check");
        assert_eq!(check.state, CheckState::Failure);
        assert!(check.fix.expect("a fix").contains("apparmor=unconfined"));
    }

    #[test]
    fn a_filter_that_forbids_namespaces_is_named_with_each_engines_own_argument() {
        for (mark, fix) in [
            ("/.dockerenv", "--security-opt seccomp=FILE"),
            ("/run/.containerenv", "--security-opt seccomp=FILE"),
            ("/run/secrets/kubernetes.io/token", "seccompProfile"),
        ] {
            let (_root, machine) = machine(&[(mark, ""), ("/proc/self/status", "Seccomp:\t2\n")]);
            let of = |trial| engine(&machine, trial).expect("a check");
            let check = of(Trial::Forbidden);
            assert_eq!(check.state, CheckState::Failure);
            assert!(check.fix.expect("a fix").contains(fix), "{mark}");
            // A filter is everywhere: it is to blame only if namespaces were refused.
            assert_eq!(of(Trial::Failed).state, CheckState::Ok);
            assert_eq!(of(Trial::Started).state, CheckState::Ok);
        }
    }
}
