//! The configuration as the wall takes it.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use stockade_config::{
    self as config, CLAUDE_SANDBOX, Diagnostics, Effective, ForgeKind, GENERIC, Loader, Logins,
    Mode, Places, Sourced, moved_state,
};
use stockade_jail::NAME_SERVER;
use stockade_wall::{
    Agent, Asked, CacheMode, Config, Forge, ForgeLogin, ForgeTool, GitSettings, Hardening,
    INNER_STAGE, Limits, MovedState, Nested, Network, PathRequest, Root, Secret,
};

use crate::{context, guard, shim};

/// What of the configuration concerns files, environment and processes, with the logins that it
/// gives.
///
/// # Errors
/// If a stored login cannot be relied on.
pub(crate) fn config(
    effective: &Effective,
    loader: &Loader,
    program: &OsString,
) -> Result<Config, Diagnostics> {
    let places = &loader.places;
    let proxy = loader.proxy(effective)?;
    let Effective {
        network,
        // The gate's business.
        devices: _,
        files,
        env,
        forge,
        agent,
        git,
        limits,
        profile,
    } = effective;
    // Every profile is an agent's but this one.
    let named = profile.as_deref().filter(|name| *name != GENERIC);
    // A session that is verified has this program in the agent's place.
    let is_probe = program == INNER_STAGE;
    let is_agent = |name: &&str| Path::new(program).file_name() == Some(OsStr::new(name));
    // What the user names has to be there; what a profile of ours names may be.
    let requests = |paths: &[Sourced<PathBuf>], ours: bool| {
        let of = paths
            .iter()
            .filter(|path| path.origin.is_built_in_profile() == ours);
        let request = |path: &Sourced<PathBuf>| PathRequest {
            path: path.value.clone(),
            required: !ours,
            by: path.origin.to_string(),
        };
        of.map(request).collect::<Vec<_>>()
    };
    let login = network.proxy_login.as_ref().map(|file| PathRequest {
        path: file.value.0.clone(),
        required: false,
        by: file.origin.to_string(),
    });
    Ok(Config {
        network: match network.mode.value {
            Mode::Jail => Network::Jail {
                resolv_conf: stockade_gate::resolv_conf(
                    NAME_SERVER,
                    effective.policy().has_near_names(),
                    network.unknown.value == config::Unknown::Ask,
                ),
            },
            Mode::None => Network::None,
            Mode::Host => Network::Host,
        },
        discovery: !network.discovery.is_empty(),
        has_proxy: proxy.is_some(),
        root: match files.root.value {
            config::Root::System => Root::System,
            config::Root::All => Root::All,
        },
        read: [requests(&files.read, false), requests(&files.read, true)].concat(),
        write: requests(&files.write, false),
        hide: [
            requests(&files.hide, false),
            requests(&files.hide, true),
            // Where it lies among what the command sees, it does not see it.
            login.into_iter().collect(),
        ]
        .concat(),
        pass: env
            .pass
            .iter()
            .map(|name| asked(name, |name| name.as_str().into()))
            .collect(),
        set: env
            .set
            .iter()
            .map(|(name, value)| (name.as_str().into(), asked(value, |value| value.into())))
            .collect(),
        forge: Forge {
            github: forge.github.value,
            gitlab: forge.gitlab.value,
            hosts: forge
                .hosts
                .iter()
                .map(|host| host.value.to_string())
                .collect(),
            logins: logins(forge, places)?,
        },
        agent: Agent {
            program: Some(program.clone()),
            is_known: !is_probe && named.is_some(),
            keeps_state: Path::new(program).file_name() == named.map(OsStr::new),
            // What an agent's profile lets it write is what it keeps.
            state: requests(&files.write, true),
            brought: named.filter(|name| !is_agent(name)).map(OsString::from),
        },
        hardening: match agent.hardening.value {
            config::Hardening::Default => Hardening::Default,
            config::Hardening::Strict => Hardening::Strict,
        },
        git: match git.settings.value {
            config::GitSettings::Defuse => GitSettings::Defuse,
            config::GitSettings::Tell => GitSettings::Tell,
        },
        nested: {
            let origin = &agent.nested.origin;
            match agent.nested.value {
                false => Nested::No,
                true if origin.is_built_in_profile() => {
                    let is_claude = effective.profile.as_deref() == Some(CLAUDE_SANDBOX.0);
                    let settings = context::claude_sandbox(loader).filter(|_| is_claude);
                    Nested::IfPossible(settings.map(|(file, _)| file))
                }
                true => Nested::Required(origin.to_string()),
            }
        },
        limits: Limits {
            processes: Some(asked(&limits.processes, |count| count.get())),
            memory: limit(&limits.memory, |size| size.bytes()),
            open_files: limit(&limits.open_files, |count| count.get()),
            tmpfs: limit(&limits.tmpfs, |size| size.bytes()),
            cpu_time: limit(&limits.cpu_time, |time| time.get()),
        },
        moved_state: moved_state(&loader.environment)
            .map(|(variable, at)| MovedState {
                variable: variable.name,
                usual: variable.usual,
                at,
            })
            .collect(),
        caches: match files.caches.value {
            config::Caches::Keep => CacheMode::Keep(places.state.clone()),
            config::Caches::Scratch => CacheMode::Scratch,
            config::Caches::Empty => CacheMode::Empty,
        },
        session: None,
        state: Some(places.state.clone()),
        own: vec![
            places.user.clone(),
            places.state.clone(),
            places.data.clone(),
        ],
        starters: shim::starters(&places.data)
            .chain(guard::starters(loader))
            .collect(),
    })
}

/// The stored logins of forges and hosts that are on.
fn logins(forge: &config::ForgeSettings, places: &Places) -> Result<Vec<ForgeLogin>, Diagnostics> {
    let logins = Logins::new(places);
    let mut found = Vec::new();
    for (is_on, kind, tool) in [
        (forge.github.value, ForgeKind::Github, ForgeTool::Gh),
        (forge.gitlab.value, ForgeKind::Gitlab, ForgeTool::Glab),
    ] {
        let hosts = logins.hosts()?.into_iter().filter(|(of, _)| *of == kind);
        for (_, host) in hosts {
            let is_named = forge.hosts.iter().any(|named| named.value == host);
            if !is_on || !(is_named || host.to_string() == kind.usual_host()) {
                continue;
            }
            let login = logins.read(kind, &host)?;
            found.extend(login.map(|login| ForgeLogin {
                tool,
                host: host.to_string(),
                user: login.user,
                token: Secret::new(login.token.reveal()),
            }));
        }
    }
    Ok(found)
}

/// A setting in the wall's form, with its origin.
fn asked<T, U>(setting: &Sourced<T>, value: impl Fn(&T) -> U) -> Asked<U> {
    Asked {
        value: value(&setting.value),
        by: setting.origin.to_string(),
    }
}

fn limit<T, U>(limit: &Option<Sourced<T>>, value: impl Fn(&T) -> U) -> Option<Asked<U>> {
    limit.as_ref().map(|limit| asked(limit, value))
}
