//! `stockade explain`: the policy's word on something, without trying it.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, ToSocketAddrs as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use stockade_config::{Effective, Mode, Origin, Sourced, shown};
use stockade_policy::{
    Disclosed, Host, Hostname, Outcome, POOL, Policy, Protocol, Rule, Target, decide_name,
    explain as decided,
};

use stockade_warden::{Explained, ask_explain};

use crate::{args, context, denials, exit::refused, inside, proxy, receipt, terminal};

const UNCLEAR: u8 = 2;

pub(crate) fn explain(arguments: &args::Explain) -> Result<ExitCode> {
    let text = &arguments.target;
    let target: Target = text.parse().map_err(|error| match text.as_str() {
        "" => anyhow!("{error}"),
        text => anyhow!("`{}`: {error}", shown(text)),
    })?;
    let about = &arguments.about;
    if inside::proven() {
        if about.profile.is_some() || !about.settings.flags().is_empty() {
            return Err(refused(
                "inside a session, only the policy in force can be explained",
                "leave the options out",
            ));
        }
        return by_session(&target, about.json);
    }
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
    let proxies = proxy::proxies(&loader, &effective)?;
    for warning in proxy::allowed_proxies(&effective, &proxies) {
        tell!("stockade: WARNING: {warning}");
    }
    let used = proxies.used.as_ref();
    let located = used.map_or_else(Vec::new, |used| proxy::located(&used.address));
    let mut found = addresses(&target, &policy);
    let (mut names, mut stands_in) = (Vec::new(), false);
    if let Host::Name(name) = target.host() {
        names.push(name.clone());
        let may_ask = decide_name(&policy, name).is_allowed();
        stands_in = found.is_empty() && may_ask && used.is_some_and(|used| used.may_stand_in(name));
        if stands_in {
            // Which one it is makes no difference.
            found.push(POOL.broadcast().into());
        }
    }
    let mut hosts = Vec::new();
    for address in found {
        let evidence = match used {
            Some(used) => stockade_gate::host_evidence_by_proxy(address, &names, (used, &located)),
            None => stockade_gate::host_evidence(address),
        };
        hosts.push((address, evidence.context("cannot ask the kernel")?));
    }
    let explanation = decided(&policy, &target, hosts);
    let origin = |index| effective.origin_of_rule(index).map(Origin::to_string);
    if about.json {
        terminal::print(format_args!("{:#}\n", explanation.json(&origin)))?;
    } else {
        let mut text = explanation.text(&origin);
        if explanation.outcome == Outcome::Denied && !explanation.fixes.is_empty() {
            let dangers = explanation.fixes.iter().filter_map(receipt::danger_of_rule);
            for danger in dangers.collect::<BTreeSet<_>>() {
                text.push_str(&format!("  WARNING: {danger}\n"));
            }
            let lists = explanation.fixes.iter().map(Rule::is_near);
            let lists: BTreeSet<bool> = lists.collect();
            for is_near in lists {
                text.push_str(match is_near {
                    false => "  in the list `allow` of [network], or with --allow\n",
                    true => "  in [network], or with --near\n",
                });
            }
        }
        text.push_str(name_server(&policy, &target));
        if stands_in {
            text.push_str(
                "  this machine's resolvers do not know it: inside, it has an address that stands for \
                 the name, by which the proxy is asked\n",
            );
        }
        terminal::write(text.as_bytes())?;
    }
    Ok(exit_code(explanation.outcome))
}

/// By the session that this process is in: what its gate would decide now. A name is asked for only
/// if the policy allows that.
fn by_session(target: &Target, as_json: bool) -> Result<ExitCode> {
    let ask = |addresses: &[IpAddr]| {
        ask_explain(&target.to_string(), addresses).map_err(|error| anyhow!("{error}"))
    };
    let mut explained = ask(&[])?;
    let name = explained.explanation.name.as_ref();
    if name.is_some_and(|name| name.allowed) {
        let addresses = match target.host() {
            Host::Address(address) => vec![*address],
            // The gate knows devices, too.
            Host::Name(name) => asked_for(name),
        };
        explained = ask(&addresses)?;
    }
    if as_json {
        let mut report = json!(explained);
        let fixes = fixes(&explained);
        report["ask_user_to_run"] = fixes.into();
        terminal::print(format_args!("{report:#}\n"))?;
    } else {
        terminal::write(inside_text(&explained).as_bytes())?;
    }
    Ok(exit_code(match explained.explanation.outcome.as_str() {
        "allowed" => Outcome::Allowed,
        "denied" => Outcome::Denied,
        _ => Outcome::Unclear,
    }))
}

/// What the user would have to type, outside.
fn fixes(explained: &Explained) -> Vec<String> {
    let explanation = &explained.explanation;
    if explanation.outcome == Outcome::Allowed.to_string() {
        return Vec::new();
    }
    let answers = explanation.answers.iter().map(|answer| &answer.decision);
    let decisions = explanation.name.iter().chain(answers);
    let mut fixes = Vec::new();
    for (fix, near) in decisions.filter_map(|it| Some((it.fix.as_deref()?, it.near))) {
        let command = denials::command(fix, near);
        if !fixes.contains(&command) {
            fixes.push(command);
        }
    }
    fixes
}

fn inside_text(explained: &Explained) -> String {
    let explanation = &explained.explanation;
    let (target, outcome) = (shown(&explanation.target), shown(&explanation.outcome));
    let mut text = format!("{target}: {outcome}\n");
    let said = |decision: &Disclosed| {
        let word = if decision.allowed {
            "allowed"
        } else {
            "denied"
        };
        format!("{word}: {}\n", shown(&decision.text))
    };
    if let Some(why) = &explained.text {
        text += &format!("  {}\n", shown(why));
    }
    if let Some(name) = &explanation.name {
        text += &format!("  name: {}", said(name));
        if name.allowed && explanation.answers.is_empty() {
            text += "    it has no address, so its connections are not judged\n";
        }
    }
    for answer in &explanation.answers {
        let ports = match answer.ports {
            Some((first, last)) if first == last => format!(" {first}"),
            Some((first, last)) => format!(" {first}-{last}"),
            None => String::new(),
        };
        let protocol = shown(&answer.protocol);
        let decision = said(&answer.decision);
        text += &format!("  {} {protocol}{ports}: {decision}", answer.address);
    }
    if explanation.incomplete {
        text += "  and more; ask about one protocol and port\n";
    }
    if explanation.outcome != Outcome::Allowed.to_string() {
        let commands = fixes(explained);
        let port = explained.host_port;
        let port = port.filter(|port| stockade_gate::danger_of_port(*port).is_none());
        if is_denied_by_policy(explained) {
            let has_command = !commands.is_empty() || port.is_some();
            text += &format!("{}\n", denials::advice(has_command));
        }
        for command in commands {
            text += &format!("  ask the user to run: {command}\n");
        }
        if let Some(port) = port {
            text += &format!(
                "  ask the user to start the session with: stockade run --host-port {port} …\n"
            );
        }
    }
    text
}

/// Without a route nobody has denied anything.
fn is_denied_by_policy(explained: &Explained) -> bool {
    let explanation = &explained.explanation;
    let answers = explanation.answers.iter().map(|answer| &answer.decision);
    let mut decisions = explanation.name.iter().chain(answers);
    explained.host_port.is_some() || decisions.any(|it| !it.allowed && it.reason != "no-route")
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

/// Nobody is asked about a name that may not be asked for, or about a device with an address.
fn addresses(target: &Target, policy: &Policy) -> Vec<IpAddr> {
    let name = match target.host() {
        Host::Address(address) => return vec![*address],
        Host::Name(name) => name,
    };
    if !decide_name(policy, name).is_allowed() {
        return Vec::new();
    }
    let Some(rules) = policy.rules.device(name) else {
        return asked_for(name);
    };
    let of_rule = |rule: &Rule| match (rule.network(), rule.name()) {
        (Some(network), _) => vec![network.addr()],
        (None, Some(pattern)) => asked_for(pattern.name()),
        (None, None) => Vec::new(),
    };
    let found: BTreeSet<IpAddr> = rules.into_iter().flat_map(of_rule).collect();
    found.into_iter().collect()
}

/// The addresses of a name, or a line that there are none.
fn asked_for(name: &Hostname) -> Vec<IpAddr> {
    resolve(name).unwrap_or_else(|error| {
        tell!("stockade: cannot resolve {name}: {error}");
        Vec::new()
    })
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
