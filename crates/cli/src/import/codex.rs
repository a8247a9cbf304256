//! Codex's `config.toml`: `sandbox_mode` with its table, or a permission profile.
//!
//! Its network is closed unless the file opens it. Named hosts are reached through a proxy; Stockade
//! allows them by TCP. A port in the name of a host means nothing to Codex, and is kept here: that is
//! narrower.

use stockade_config::{Diagnostic, Diagnostics};

use super::draft::{Access, Draft, Said};
use super::tree::{Node, Value};

/// How often a profile may extend another.
const MOST_PARENTS: usize = 8;

const WRITES: &str = "Stockade lets the command write the workspace";
const DEFAULTS: &str = "Stockade's own defaults apply instead";

/// The keys that are translated.
const KNOWN: &str = "sandbox_mode sandbox_workspace_write default_permissions permissions profile";

pub(super) fn translate(root: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    let profile = match root.get("profile") {
        Some(name) => root
            .get("profiles")
            .and_then(|all| all.get(name.text().ok()?)),
        None => None,
    };
    let mode_of = |it: &'_ Node| it.get("sandbox_mode").is_some();
    let modes: Vec<_> = [Some(root), profile]
        .into_iter()
        .flatten()
        .filter(|it| mode_of(it))
        .collect();
    let details = root.get("sandbox_workspace_write");
    for table in &modes {
        if let Some(node) = table.get("sandbox_mode") {
            mode(node, details, draft)?;
        }
    }
    if let Some(details) = details {
        workspace_write(details, draft)?;
    }
    match root.get("default_permissions") {
        Some(node) if !modes.is_empty() => {
            let why = "sandbox_mode comes before permission profiles";
            draft.left_out(&node.place, "default_permissions", why);
        }
        Some(node) => permissions(root, node, draft)?,
        None if modes.is_empty() => {
            let why = "Codex closes the network unless told otherwise";
            draft.say_why(Said::Internet(false), &root.place, why);
        }
        None => {}
    }
    let names = root.table()?.iter();
    let names = names.map(|(name, _)| (name.text.as_str(), &name.place));
    let others: Vec<_> = names
        .filter(|(name, _)| !KNOWN.split(' ').any(|it| it == *name))
        .collect();
    let why = "not about files and network; Codex reads them itself, inside, too";
    draft.not_about_sandbox(&others, why);
    let hosts = &[
        ("chatgpt.com", " (with a ChatGPT login)"),
        ("api.openai.com", " (with an API key)"),
    ];
    draft.say(Said::Needs("Codex", hosts), &root.place);
    Ok(())
}

fn mode(node: &Node, details: Option<&Node>, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    let place = &node.place;
    match node.text()? {
        "workspace-write" => match details.and_then(|it| it.get("network_access")) {
            Some(access) => draft.say(Said::Internet(access.flag()?), &access.place),
            None => {
                let why = "network_access is false by default";
                draft.say_why(Said::Internet(false), place, why);
            }
        },
        "read-only" => {
            draft.say(Said::Internet(false), place);
            draft.wider(place, "sandbox_mode = \"read-only\"", WRITES);
        }
        "danger-full-access" => draft.left_out(place, "danger-full-access", DEFAULTS),
        _ => {
            return Err(expected(
                node,
                "\"read-only\", \"workspace-write\" or \"danger-full-access\"",
            ));
        }
    }
    Ok(())
}

fn workspace_write(node: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    for (name, node) in node.table()? {
        match name.text.as_str() {
            "writable_roots" => draft.paths(Access::Write, node)?,
            // Read with the mode. And /tmp inside is the command's own, always.
            "network_access" | "exclude_tmpdir_env_var" | "exclude_slash_tmp" => drop(node.flag()?),
            other => draft.unknown(&name.place, other),
        }
    }
    Ok(())
}

/// The chosen profile and those that it extends. Each is translated, so of two that disagree the
/// narrower counts.
fn permissions(root: &Node, chosen: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    let (mut profiles, mut next) = (Vec::new(), Some(chosen));
    let (mut opens, mut writes) = (false, false);
    while let Some(node) = next.take() {
        match node.text()? {
            ":read-only" => {}
            ":workspace" => writes = true,
            ":danger-full-access" => {
                draft.left_out(&node.place, ":danger-full-access", DEFAULTS);
                (opens, writes) = (true, true);
            }
            name => {
                let profile = root.get("permissions").and_then(|all| all.get(name));
                let profile =
                    profile.ok_or_else(|| expected(node, "a profile of [permissions]"))?;
                if profiles.len() == MOST_PARENTS {
                    return Err(expected(node, "fewer profiles that extend each other"));
                }
                profiles.push(profile);
                next = profile.get("extends");
            }
        }
    }
    // The first that says so is the nearest to the chosen one.
    let networks = profiles.iter().filter_map(|profile| profile.get("network"));
    let enabled = networks.filter_map(|network| network.get("enabled")).next();
    opens |= enabled.map(Node::flag).transpose()?.unwrap_or(false);
    for profile in profiles {
        for (name, node) in profile.table()? {
            match name.text.as_str() {
                "network" => network(root, node, opens, draft)?,
                "filesystem" => writes |= filesystem(node, draft)?,
                "extends" | "description" => {}
                other => draft.unknown(&name.place, other),
            }
        }
    }
    if !opens {
        let why = "no profile enables the network";
        draft.say_why(Said::Internet(false), &chosen.place, why);
    }
    if !writes {
        draft.wider(&chosen.place, "default_permissions", WRITES);
    }
    Ok(())
}

fn network(
    root: &Node,
    node: &Node,
    opens: bool,
    draft: &mut Draft<'_>,
) -> Result<(), Diagnostics> {
    let proxy = root
        .get("features")
        .and_then(|all| all.get("network_proxy"));
    let filters = node.get("domains").is_some() || proxy.is_some_and(Node::says_something);
    for (name, node) in node.table()? {
        match name.text.as_str() {
            "enabled" => draft.say(Said::Internet(node.flag()? && !filters), &node.place),
            "domains" => {
                draft.say(Said::Internet(false), &name.place);
                for (host, node) in node.table()? {
                    domain(&host.text, node, opens, draft)?;
                }
            }
            "mode" if node.text()? == "full" => {}
            // Limits what is said to a host, which Stockade cannot.
            "mode" | "mitm" => draft.deny("*", &node.place),
            "unix_sockets"
            | "dangerously_allow_all_unix_sockets"
            | "proxy_url"
            | "enable_socks5"
            | "socks_url"
            | "enable_socks5_udp"
            | "allow_upstream_proxy"
            | "allow_local_binding"
            | "dangerously_allow_non_loopback_proxy" => {}
            other => draft.unknown(&name.place, other),
        }
    }
    Ok(())
}

fn domain(text: &str, node: &Node, opens: bool, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    // The domain and all below it.
    let both = text
        .strip_prefix("**.")
        .map(|domain| vec![domain.to_owned(), format!("*.{domain}")]);
    for host in both.unwrap_or_else(|| vec![text.to_owned()]) {
        match node.text()? {
            "allow" if opens => draft.allow("tcp://", &host, &node.place),
            "allow" => draft.left_out(&node.place, &host, "the network is not enabled"),
            "deny" => draft.deny(&host, &node.place),
            _ => return Err(expected(node, "\"allow\" or \"deny\"")),
        }
    }
    Ok(())
}

/// Whether the profile lets the workspace be written.
fn filesystem(node: &Node, draft: &mut Draft<'_>) -> Result<bool, Diagnostics> {
    let mut writes = false;
    for (name, node) in node.table()? {
        let place = &node.place;
        // One access for all of it, or one for each part.
        let parts = match &node.value {
            Value::Table(parts) => parts
                .iter()
                .map(|(it, node)| (it.text.as_str(), node))
                .collect(),
            _ => vec![(".", node)],
        };
        match name.text.as_str() {
            // The last ones are private inside, always.
            "glob_scan_max_depth" | ":tmpdir" | ":slash_tmp" => {}
            ":root" | ":minimal" if access(node)? == Access::DenyRead => {
                draft.wider(
                    place,
                    &name.text,
                    "Stockade shows the system and parts of your home",
                );
            }
            ":root" | ":minimal" => {
                let why = "Stockade shows the system's directories; root = \"all\" shows the disk";
                draft.left_out(place, &name.text, why);
                writes |= access(node)? == Access::Write;
            }
            ":workspace_roots" => {
                draft.base = Some(draft.around.workspace.to_owned());
                for (path, node) in parts {
                    let access = match access(node)? {
                        // It could be written otherwise.
                        Access::Read => Access::DenyWrite,
                        other => other,
                    };
                    writes |= access == Access::Write && path == ".";
                    draft.path(access, path, &node.place);
                }
                draft.base = None;
            }
            special if special.starts_with(':') => draft.unknown(place, special),
            path => {
                for (part, node) in parts {
                    let whole = match part {
                        "." => path.to_owned(),
                        part => format!("{path}/{part}"),
                    };
                    draft.path(access(node)?, &whole, &node.place);
                }
            }
        }
    }
    Ok(writes)
}

fn access(node: &Node) -> Result<Access, Diagnostics> {
    match node.text()? {
        "read" => Ok(Access::Read),
        "write" => Ok(Access::Write),
        "deny" | "none" => Ok(Access::DenyRead),
        _ => Err(expected(node, "\"read\", \"write\" or \"deny\"")),
    }
}

fn expected(node: &Node, what: &str) -> Diagnostics {
    Diagnostic::at(format!("expected {what}"), node.place.clone()).into()
}
