//! The proxy of a session, as the gate takes it.

use std::{net::IpAddr, time::Duration};

use anyhow::{Context as _, Result};
use stockade_config::{Diagnostics, Effective, Loader, Mode, proxy_variables};
use stockade_gate::{
    Proxies, Proxy, Trust, completed, host_evidence, host_evidence_by_proxy, look_up,
};
use stockade_policy::{Evidence, Flow, Host, Policy, ProxyAddress, ProxyScheme, Reason, decide};

/// The proxy in use, and those that variables name.
///
/// # Errors
/// If the proxy, or its login, cannot be relied on.
pub(crate) fn proxies(loader: &Loader, effective: &Effective) -> Result<Proxies> {
    let in_use = loader.proxy(effective).map_err(Diagnostics::from)?;
    let used = match in_use {
        None => None,
        Some(in_use) => Some(Proxy {
            trust: trust(loader, &in_use.proxy.address)?,
            domains: in_use.proxy.domains(),
            address: in_use.proxy.address,
            login: in_use.proxy.login,
            login_variable: in_use.proxy.login_variable,
            exempt: in_use.proxy.exempt,
        }),
    };
    Ok(Proxies {
        used,
        named: proxy_variables(&loader.environment).collect(),
    })
}

/// What a proxy in TLS is known by.
fn trust(loader: &Loader, address: &ProxyAddress) -> Result<Option<Trust>> {
    if address.scheme != ProxyScheme::Https {
        return Ok(None);
    }
    let file = loader.proxy_authorities().map_err(Diagnostics::from)?;
    let trust = Trust::new(file.text());
    let trust =
        trust.with_context(|| format!("cannot use the proxy {address} with {}", file.name()))?;
    Ok(Some(trust))
}

/// How long a proxy is looked for.
const LIMIT: Duration = Duration::from_millis(500);

/// Where a proxy is, as this machine finds it now.
pub(crate) fn located(address: &ProxyAddress) -> Vec<IpAddr> {
    match &address.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => look_up(name, LIMIT),
    }
}

/// Settings that let the command speak to a proxy itself, which then goes around all others.
pub(crate) fn allowed_proxies(effective: &Effective, proxies: &Proxies) -> Vec<String> {
    let (policy, ports) = (effective.policy(), &effective.network.host_ports);
    let in_use = proxies.used.as_ref();
    let is_open = policy.internet && in_use.is_none();
    let has_settings = is_open || !policy.rules.is_empty() || !ports.is_empty();
    if effective.network.mode.value != Mode::Jail || !has_settings {
        return Vec::new();
    }
    let in_use = in_use.map(|used| (used, located(&used.address)));
    let used = proxies.used.iter().map(|used| (None, &used.address));
    let named = proxies
        .named
        .iter()
        .map(|(variable, address)| (Some(*variable), address));
    let mut known: Vec<ProxyAddress> = Vec::new();
    let mut warnings = Vec::new();
    for (variable, address) in used.chain(named) {
        if known.contains(address) {
            continue;
        }
        known.push(address.clone());
        let (whose, instead) = match variable {
            Some(variable) if proxies.used.is_none() => (
                format!("that {variable} names"),
                "remove it and add --proxy environment",
            ),
            Some(variable) => (format!("that {variable} names"), "remove it"),
            None => ("in use".to_owned(), "remove it"),
        };
        for found in located(address) {
            let opening = match opening(&policy, in_use.as_ref(), (address, found)) {
                Some(Reason::Rule { index, rule } | Reason::Name { index, rule, .. }) => {
                    let origin = effective.origin_of_rule(index).map(ToString::to_string);
                    let rule = format!("rule `{rule}` ({})", origin.unwrap_or_default());
                    Some((rule, instead))
                }
                Some(Reason::Internet) if is_open => {
                    Some(("the open internet".to_owned(), "add --proxy environment"))
                }
                _ => None,
            };
            // A relay on this machine.
            let is_it = |port: u16| found.is_loopback() && port == address.port.get();
            let ports = ports.iter().filter(|port| is_it(port.value.get()));
            let ports = ports.map(|port| {
                let (port, origin) = (port.value.get(), &port.origin);
                (format!("host port {port} ({origin})"), instead)
            });
            warnings.extend(opening.into_iter().chain(ports).map(|(setting, instead)| {
                format!(
                    "{setting} allows the proxy {whose}: whoever speaks to it reaches everything that \
                     it does, whatever the rules say; {instead}"
                )
            }));
        }
    }
    warnings
}

/// Why the command may or may not speak to a proxy that is found at this address. Nothing if the
/// kernel cannot be asked.
fn opening(
    policy: &Policy,
    in_use: Option<&(&Proxy, Vec<IpAddr>)>,
    (proxy, found): (&ProxyAddress, IpAddr),
) -> Option<Reason> {
    let names = match &proxy.host {
        Host::Address(_) => Vec::new(),
        Host::Name(name) => completed(name),
    };
    let evidence = match in_use {
        Some((used, located)) => host_evidence_by_proxy(found, &names, (used, located)).ok()?,
        None => Evidence {
            names: &names,
            ..host_evidence(found).ok()?
        },
    };
    let flow = Flow::tcp((found, proxy.port.get()).into())?;
    Some(decide(policy, &flow, &evidence).reason().clone())
}
