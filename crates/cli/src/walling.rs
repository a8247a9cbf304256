//! The configuration as the wall takes it.

use std::ffi::OsString;

use stockade_config::{self as config, Effective, Mode, Places, Sourced};
use stockade_jail::NAME_SERVER;
use stockade_wall::{Agent, Config, Forge, Hardening, Limits, Names, Network, PathRequest, Root};

/// What of the configuration concerns files, environment and processes.
pub(crate) fn config(effective: &Effective, places: &Places, program: &OsString) -> Config {
    let Effective {
        network,
        files,
        env,
        forge,
        agent,
        limits,
        profile,
    } = effective;
    let requests = |paths: &[Sourced<std::path::PathBuf>]| {
        let request = |path: &Sourced<std::path::PathBuf>| PathRequest::by_user(&path.value);
        paths.iter().map(request).collect()
    };
    Config {
        network: match network.mode.value {
            Mode::Jail => Network::Jail {
                resolv_conf: stockade_gate::resolv_conf(NAME_SERVER),
                names: Names::AtServer,
            },
            Mode::None => Network::None,
            Mode::Host => Network::Host,
        },
        root: match files.root.value {
            config::Root::System => Root::System,
            config::Root::All => Root::All,
        },
        read: requests(&files.read),
        write: requests(&files.write),
        hide: requests(&files.hide),
        pass: env
            .pass
            .iter()
            .map(|name| name.value.as_str().into())
            .collect(),
        set: env
            .set
            .iter()
            .map(|(name, value)| (name.as_str().into(), value.value.as_str().into()))
            .collect(),
        forge: Forge {
            github: forge.github.value,
            gitlab: forge.gitlab.value,
            hosts: forge.hosts.iter().map(|host| host.value.clone()).collect(),
        },
        agent: Agent {
            program: Some(program.clone()),
            is_known: profile.is_some(),
            ..Agent::default()
        },
        hardening: match agent.hardening.value {
            config::Hardening::Default => Hardening::Default,
            config::Hardening::Strict => Hardening::Strict,
        },
        limits: Limits {
            processes: limits.processes.as_ref().map(|limit| limit.value.get()),
            memory: limits.memory.as_ref().map(|limit| limit.value.bytes()),
            open_files: limits.open_files.as_ref().map(|limit| limit.value.get()),
            tmpfs: limits.tmpfs.as_ref().map(|limit| limit.value.bytes()),
            cpu_time: limits.cpu_time.as_ref().map(|limit| limit.value.get()),
        },
        own: vec![places.user.clone(), places.trust.clone()],
    }
}
