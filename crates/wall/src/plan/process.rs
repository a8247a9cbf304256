//! The processes of the plan: namespaces, limits, layers.

use std::path::PathBuf;

use stockade_sys::confine::Landlock;

use super::{Isolation, LANDLOCK_SCOPES, Layer, LayerState, Protection, Reason};
use crate::{
    config::{Asked, Config, Hardening, Nested, Network},
    error::Error,
    facts::{Facts, Limit, Procfs, Resource},
};

/// Enough for any build or browser, and few enough for the host to stay usable.
const USUAL_PROCESSES: u64 = 4096;

pub(super) fn isolation(config: &Config) -> Vec<(Isolation, &'static str)> {
    let mut isolation = vec![
        (
            Isolation::Users,
            "no capability inside counts outside; needed for all the others",
        ),
        (
            Isolation::Processes,
            "outer processes can neither be seen nor signalled; all inside die together",
        ),
        (
            Isolation::Ipc,
            "no shared memory or message queues of other programs",
        ),
        (Isolation::HostName, "the host's name cannot be changed"),
        (
            Isolation::Cgroups,
            "the host's hierarchy of control groups is not shown",
        ),
        (Isolation::Capabilities, "the command needs none"),
    ];
    if config.network == Network::None {
        isolation.push((Isolation::Network, "no network, by configuration"));
    }
    isolation
}

pub(super) fn limits(config: &Config, facts: &Facts) -> Vec<(Limit, Reason)> {
    let asked = |resource, asked: &Asked<u64>| {
        let reason = asked.by.clone();
        (Limit::new(resource, asked.value), reason.into())
    };
    let wanted = &config.limits;
    // At 0, the kernel writes no file, but starts the program that `core_pattern` may name. At 1, it
    // does neither.
    let core = Limit::new(Resource::Core, 1);
    let mut limits: Vec<(Limit, Reason)> = vec![(
        core,
        "a core dump is handled outside, by a program of the host".into(),
    )];
    limits.push(match &wanted.open_files {
        Some(number) => asked(Resource::OpenFiles, number),
        None => (
            facts.open_files,
            "as for the caller; the warden raises its own".into(),
        ),
    });
    let usual = Asked::new(USUAL_PROCESSES, "built in");
    let processes = wanted.processes.as_ref().unwrap_or(&usual);
    let reason = format!("so that the host stays usable: {}", processes.by);
    let limit = Limit::new(Resource::Processes, processes.value);
    limits.push((limit, reason.into()));
    if let Some(bytes) = &wanted.memory {
        let reason = format!(
            "of all together, or each where there are no control groups: {}",
            bytes.by
        );
        limits.push((Limit::new(Resource::Data, bytes.value), reason.into()));
    }
    if let Some(seconds) = &wanted.cpu_time {
        let (mut limit, reason) = asked(Resource::ProcessorTime, seconds);
        // First the signal that says why (SIGXCPU), then the one that nothing survives.
        limit.hard = limit.hard.map(|most| most.saturating_add(1));
        limits.push((limit, reason));
    }
    limits
}

/// The protections whose state is known before the sandbox is built.
pub(super) fn layers(config: &Config, facts: &Facts) -> Vec<Layer> {
    use LayerState::{Absent, Active, Off};
    let strict = config.hardening == Hardening::Strict;
    let state = |protection| match protection {
        Protection::Scopes if facts.landlock < LANDLOCK_SCOPES => {
            Absent((facts.landlock).absent("this kernel has no scopes of Landlock (Linux 6.12)"))
        }
        Protection::NoUserNamespaces if !strict && !facts.is_root => {
            Off("hardening is \"default\"")
        }
        Protection::NoMountNamespaces if matches!(nested(config, facts), Ok(true)) => {
            Off("agent.nested is on; process 1 renames and removes for the others")
        }
        Protection::Files if !strict => Off("hardening is \"default\""),
        Protection::Files if facts.landlock <= Landlock::Off => Absent(
            facts
                .landlock
                .absent("this kernel has no Landlock (Linux 5.13)"),
        ),
        Protection::OwnProcesses if facts.procfs != Procfs::Fresh => {
            Absent("a part of /proc is masked here, so the outer one is shown")
        }
        Protection::ProcessLimit if facts.is_root => Absent("the kernel exempts root from it"),
        _ => Active,
    };
    let planned = [
        Protection::SystemCalls,
        Protection::Scopes,
        Protection::NoUserNamespaces,
        Protection::NoMountNamespaces,
        Protection::Files,
        Protection::OwnProcesses,
        Protection::ProcessLimit,
    ];
    let layer = |protection| Layer {
        protection,
        state: state(protection),
    };
    planned.map(layer).to_vec()
}

/// Why there can be no sandboxes inside the sandbox.
pub(super) fn no_nested(config: &Config, facts: &Facts) -> Option<&'static str> {
    if config.hardening == Hardening::Strict {
        return Some("hardening is \"strict\", with which there are no user namespaces inside");
    }
    if facts.is_root {
        return Some("root can make no user namespaces inside; start it as an ordinary user");
    }
    if facts.procfs != Procfs::Fresh {
        return Some("a part of /proc is masked here, so that processes inside cannot be told");
    }
    None
}

pub(super) fn nested(config: &Config, facts: &Facts) -> Result<bool, Error> {
    match (&config.nested, no_nested(config, facts)) {
        (Nested::No, _) | (Nested::IfPossible(_), Some(_)) => Ok(false),
        (Nested::IfPossible(_) | Nested::Required(_), None) => Ok(true),
        (Nested::Required(by), Some(why)) => Err(Error::Nested {
            by: by.clone(),
            why,
        }),
    }
}

/// The file of a known agent: where it was found outside of the workspace.
pub(super) fn program(config: &Config, facts: &Facts) -> Result<Option<PathBuf>, Error> {
    match (&config.agent.program, &facts.installation) {
        (Some(_), Some(installation)) if config.agent.is_known => {
            Ok(Some(installation.program.at.clone()))
        }
        (Some(program), None) if config.agent.is_known => Err(match &facts.doubtful {
            Some(path) => Error::AgentDoubtful {
                name: program.clone(),
                path: path.clone(),
            },
            None => Error::AgentMissing(program.clone()),
        }),
        _ => Ok(None),
    }
}
