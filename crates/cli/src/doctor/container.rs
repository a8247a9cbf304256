//! Container engines: which one this is, and which argument of its `run` is missing.

use super::{Check, machine::Machine};

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

pub(super) fn engine(machine: &Machine) -> Option<Check> {
    const NAME: &str = "container";
    let engine = Engine::of(machine)?;
    let found = format!("this is a container of {}", engine.name());
    let label = machine
        .read("/proc/self/attr/apparmor/current")
        .or_else(|| machine.read("/proc/self/attr/current"))
        .unwrap_or_default();
    if label.starts_with("docker-default") {
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
        super::{State, machine::tests::machine},
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
        assert_eq!(engine(&none), None);
    }

    #[test]
    fn dockers_own_profile_is_named_with_the_argument_that_lifts_it() {
        let (_root, machine) = machine(&[
            ("/.dockerenv", ""),
            ("/proc/self/attr/current", "docker-default (enforce)\n"),
        ]);
        let check = engine(&machine).expect("a check");
        assert_eq!(check.state, State::Failure);
        assert!(check.fix.expect("a fix").contains("apparmor=unconfined"));
    }
}
