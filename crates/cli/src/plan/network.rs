//! The network that a session would have, each line with its reason, as in the rest of a plan.

use serde_json::{Value, json};
use stockade_config::{Effective, Key, Mode, ProxyInUse, Unknown, shown};

use crate::config;

/// The profile, and the group `network`.
pub(super) fn as_text(effective: &Effective, proxy: Option<&ProxyInUse>) -> String {
    let mut lines = Vec::new();
    if let Some(profile) = &effective.profile {
        lines.push("profile".to_owned());
        lines.push(format!("  {}", shown(profile)));
    }
    lines.push("network".to_owned());
    let line = |what: String, reason: String| format!("  {what:<56}  {reason}");
    lines.extend(
        group(effective, proxy)
            .into_iter()
            .map(|(what, why)| line(what, why)),
    );
    lines.join("\n") + "\n"
}

fn group(effective: &Effective, proxy: Option<&ProxyInUse>) -> Vec<(String, String)> {
    let network = &effective.network;
    let mode = &network.mode;
    let what = match mode.value {
        Mode::Jail => "mode jail: a network of its own, behind a gate",
        Mode::None => "mode none: no network but a loopback of its own",
        Mode::Host => "mode host: NO JAIL, everything that this machine can reach",
    };
    let mut lines = vec![(what.to_owned(), mode.origin.to_string())];
    if mode.value != Mode::Jail {
        if !(network.allow.is_empty()
            && network.near.is_empty()
            && effective.devices.devices.is_empty()
            && network.discovery.is_empty()
            && network.host_ports.is_empty()
            && network.publish.is_empty())
        {
            let reason = format!("only in mode \"jail\", not in \"{}\"", mode.value);
            lines.push(("rules and ports have no effect".to_owned(), reason));
        }
        return lines;
    }
    let internet = if network.internet.value && proxy.is_some() {
        "open: global addresses through the proxy, by TCP alone"
    } else if network.internet.value {
        "open: global addresses by the default route"
    } else {
        "closed: only what the rules allow"
    };
    let origin = network.internet.origin.to_string();
    lines.push((format!("internet {internet}"), origin));
    if let Some(proxy) = proxy {
        lines.push((
            format!("proxy       {}", proxy.describe()),
            proxy.origin.clone(),
        ));
        for exempt in &proxy.proxy.exempt.0 {
            let what = format!("no proxy    for {exempt}");
            lines.push((what, proxy.origin.clone()));
        }
    }
    for rule in &network.allow {
        lines.push((
            format!("allow       {}", rule.value),
            rule.origin.to_string(),
        ));
    }
    for rule in &network.near {
        let what = format!("near        {}", rule.value);
        lines.push((what, rule.origin.to_string()));
    }
    for (name, rules) in effective.devices.devices.iter() {
        for rule in rules {
            let what = format!("device      {name}: {}", rule.value);
            lines.push((what, rule.origin.to_string()));
        }
    }
    for entry in &network.discovery {
        lines.push((
            format!(
                "discovery   {}: searches go to the devices that rules name",
                entry.value
            ),
            entry.origin.to_string(),
        ));
    }
    for port in &network.host_ports {
        let what = format!(
            "host port   {0} inside is this machine's 127.0.0.1:{0}",
            port.value
        );
        lines.push((what, port.origin.to_string()));
    }
    for published in &network.publish {
        let ports = published.value;
        let what = format!(
            "publish     this machine's 127.0.0.1:{} is {} inside",
            ports.outside, ports.inside
        );
        lines.push((what, published.origin.to_string()));
    }
    if network.unknown.value == Unknown::Ask {
        let what = "what no rule covers waits for your answer, where you can be asked";
        lines.push((what.to_owned(), network.unknown.origin.to_string()));
    }
    if !network.log_denials.value {
        let origin = network.log_denials.origin.to_string();
        lines.push(("denials are neither logged nor reported".to_owned(), origin));
    }
    lines
}

/// The keys of the section, as `config show --json` has them.
pub(super) fn as_json(effective: &Effective) -> Value {
    let key = |key: Key| {
        let value = config::key_as_json(key, &effective.shown(key));
        (key.name().to_owned(), value)
    };
    json!(
        Key::in_section("network")
            .chain([Key::Devices])
            .map(key)
            .collect::<serde_json::Map<_, _>>()
    )
}
