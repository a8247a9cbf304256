//! `stockade explain`: the policy's word on something, without trying it.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use stockade_config::{Effective, Mode, Origin, Sourced, shown};
use stockade_policy::{
    Host, Hostname, Outcome, Policy, Protocol, Target, decide_name, explain as decided,
};

use crate::{args, context, terminal};

const UNCLEAR: u8 = 2;

pub(crate) fn explain(arguments: &args::Explain) -> Result<ExitCode> {
    let text = &arguments.target;
    let target: Target = text.parse().map_err(|error| match text.as_str() {
        "" => anyhow!("{error}"),
        text => anyhow!("`{}`: {error}", shown(text)),
    })?;
    let about = &arguments.about;
    let loader = context::loader_for(&about.settings, about.profile.as_deref(), None)?;
    let effective = context::load(&loader)?.effective;

    let mode = &effective.network.mode;
    if mode.value != Mode::Jail {
        return without_jail(&target, mode, about.json);
    }
    if is_loopback(&target) {
        return loopback(&target, &effective, about.json);
    }
    let policy = effective.policy();
    let mut hosts = Vec::new();
    for address in addresses(&target, |name| decide_name(&policy, name).is_allowed()) {
        let evidence = stockade_gate::host_evidence(address).context("cannot ask the kernel")?;
        hosts.push((address, evidence));
    }
    let explanation = decided(&policy, &target, hosts);
    let origin = |index| effective.origin_of_rule(index).map(Origin::to_string);
    if about.json {
        terminal::print(format_args!("{:#}\n", explanation.json(&origin)))?;
    } else {
        let mut text = explanation.text(&origin);
        if explanation.outcome == Outcome::Denied && !explanation.fixes.is_empty() {
            text.push_str("  in the list `allow` of [network], or with --allow\n");
        }
        text.push_str(name_server(&policy, &target));
        terminal::write(text.as_bytes())?;
    }
    Ok(exit_code(explanation.outcome))
}

/// Who answers questions that are sent to port 53 of an address.
fn name_server(policy: &Policy, target: &Target) -> &'static str {
    const DNS: u16 = 53;
    let is_dns = target.port().is_some_and(|port| port.get() == DNS);
    match target.host() {
        Host::Address(address) if is_dns && policy.name_server(*address).is_named() => {
            "  as a name server, it is asked itself, for names that the rules allow\n"
        }
        Host::Address(_) if is_dns => {
            "  but questions for names never get there: Stockade answers them from this machine's \
             resolvers. With a rule for just this address, Stockade asks it\n"
        }
        _ => "",
    }
}

fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Allowed => ExitCode::SUCCESS,
        Outcome::Denied => ExitCode::FAILURE,
        Outcome::Unclear => UNCLEAR.into(),
    }
}

/// Nobody is asked about a name that may not be asked for.
fn addresses(target: &Target, may_ask: impl Fn(&Hostname) -> bool) -> Vec<IpAddr> {
    match target.host() {
        Host::Address(address) => vec![*address],
        Host::Name(name) if may_ask(name) => resolve(name).unwrap_or_else(|error| {
            eprintln!("stockade: cannot resolve {name}: {error}");
            Vec::new()
        }),
        Host::Name(_) => Vec::new(),
    }
}

fn resolve(name: &Hostname) -> io::Result<Vec<IpAddr>> {
    let mut found: Vec<IpAddr> = (name.as_str(), 0)
        .to_socket_addrs()?
        .map(|address| address.ip())
        .collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn is_loopback(target: &Target) -> bool {
    match target.host() {
        Host::Address(address) => address.to_canonical().is_loopback(),
        Host::Name(name) => name.is_localhost(),
    }
}

/// Nothing is judged then.
fn without_jail(target: &Target, mode: &Sourced<Mode>, as_json: bool) -> Result<ExitCode> {
    let (outcome, why) = if mode.value == Mode::Host {
        let why = "there is no jail: the command uses this machine's network";
        (Outcome::Allowed, why)
    } else {
        (Outcome::Denied, "the command has no network")
    };
    let why = format!("{why} ({})", mode.origin);
    if as_json {
        print_json(target, outcome, "mode", &why, json!({}))?;
    } else {
        terminal::print(format_args!("{target}: {outcome}\n  {why}\n"))?;
    }
    Ok(exit_code(outcome))
}

fn print_json(
    target: &Target,
    outcome: Outcome,
    reason: &str,
    text: &str,
    mut report: Value,
) -> Result<()> {
    report["target"] = target.to_string().into();
    report["outcome"] = outcome.to_string().into();
    report["reason"] = reason.into();
    report["text"] = text.into();
    terminal::print(format_args!("{report:#}\n"))
}

/// The loopback inside is the command's own, but for the ports that stand for the host's.
fn loopback(target: &Target, effective: &Effective, as_json: bool) -> Result<ExitCode> {
    let tcp = target.protocol().is_none_or(|one| one == Protocol::Tcp);
    let port = target.port().filter(|_| tcp);
    let mut given = effective.network.host_ports.iter();
    let given = given.find(|given| Some(given.value) == port);
    let outcome = match (port, given) {
        (_, Some(_)) => Outcome::Allowed,
        (None, None) if tcp && target.port().is_none() => Outcome::Unclear,
        _ => Outcome::Denied,
    };
    let missing = port.filter(|_| given.is_none());
    let setting = missing.map(|port| format!("host_ports = [{port}]"));
    let why = match given {
        Some(given) => format!(
            "this port leads to this machine's loopback ({})",
            given.origin
        ),
        None => "the sandbox has its own loopback, apart from this machine's".to_owned(),
    };
    let ports = effective.host_ports();
    if as_json {
        let more = json!({ "host_ports": ports, "setting": setting });
        print_json(target, outcome, "loopback", &why, more)?;
        return Ok(exit_code(outcome));
    }
    let mut text = format!("{target}: {outcome}\n  {why}\n");
    if let (Some(setting), Some(port)) = (setting, port) {
        text += &format!(
            "  to reach this machine's port: {setting} in [network], or --host-port {port}\n"
        );
    }
    if outcome == Outcome::Unclear {
        let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
        let given = match ports.as_slice() {
            [] => "none".to_owned(),
            ports => ports.join(", "),
        };
        let port = ports.first().map_or("5432", String::as_str);
        text += &format!(
            "  host ports available there: {given}; ask about one: \
             stockade explain localhost:{port}\n"
        );
    }
    terminal::write(text.as_bytes())?;
    Ok(exit_code(outcome))
}
