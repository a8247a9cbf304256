//! The settings of srt, Anthropic's sandbox runtime. Claude Code's own sandbox has the same
//! sections.
//!
//! Its network is closed but for named hosts, which programs reach through a proxy: by TCP only.
//! Files can be read unless they are denied, and written only if they are allowed.

use stockade_config::Diagnostics;

use super::draft::{Access, Draft, Said};
use super::paths::{absolute, literal};
use super::tree::Node;

/// Settings that give nothing that Stockade gives, and restrict nothing.
const WITHOUT_EFFECT: &str = "$schema ignoreViolations enableWeakerNestedSandbox \
    enableWeakerNetworkIsolation allowAppleEvents ripgrep mandatoryDenySearchDepth allowPty seccomp \
    bwrapPath socatPath javaAgentJarPath windows git allowNestedUserNamespaces \
    allowUnsandboxedCommands autoAllowBashIfSandboxed failIfUnavailable";

pub(super) fn translate(root: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    let around = draft.around;
    draft.base = Some(around.workspace.to_owned());
    let place = root
        .get("network")
        .map_or(&root.place, |network| &network.place);
    draft.say_why(
        Said::Internet(false),
        place,
        "srt allows only the hosts that are listed",
    );
    for (name, node) in root.table()? {
        section(&name.text, node, draft)?;
    }
    let filesystem = root.get("filesystem");
    let is_off = filesystem
        .and_then(|it| it.get("disabled"))
        .is_some_and(Node::says_something);
    let write = filesystem.and_then(|it| it.get("allowWrite"));
    let holds_workspace = |(path, _): (&str, _)| {
        let path = literal(path, false);
        let path = path.and_then(|it| absolute(it, around.home, Some(around.workspace)));
        path.is_some_and(|path| around.workspace.starts_with(path))
    };
    let paths = write.map(Node::texts).transpose()?.unwrap_or_default();
    if !is_off && !paths.into_iter().any(holds_workspace) {
        let place = write.map_or(&root.place, |write| &write.place);
        let why = "it does not have the workspace, which Stockade lets the command write";
        draft.wider(place, "allowWrite", why);
    }
    Ok(())
}

/// A section of the settings, or of `sandbox` in those of Claude Code.
pub(super) fn section(name: &str, node: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    match name {
        "network" => network(node, draft)?,
        "filesystem" => filesystem(node, draft)?,
        known if WITHOUT_EFFECT.split(' ').any(|it| it == known) => {}
        _ if !node.says_something() => {}
        other => draft.unknown(&node.place, other),
    }
    Ok(())
}

fn network(node: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    for (name, node) in node.table()? {
        let (key, place) = (name.text.as_str(), &node.place);
        match key {
            "allowedDomains" => {
                draft.say(Said::Internet(false), place);
                for (host, place) in node.texts()? {
                    draft.allow("tcp://", host, place);
                }
            }
            "deniedDomains" => {
                draft.say(Said::Internet(false), place);
                for (host, place) in node.texts()? {
                    draft.deny(host, place);
                }
            }
            "deniedResolvedAddresses" => {
                for (range, place) in node.texts()? {
                    draft.say(Said::NotResolved(range.to_owned()), place);
                }
            }
            "allowManagedDomainsOnly" if node.flag()? => draft.say(Said::OnlyHere, place),
            // Stockade never asks.
            "strictAllowlist" | "allowManagedDomainsOnly" | "deniedDomainReasons" => {}
            _ if !node.says_something() => {}
            "allowLocalBinding" => {
                let why = "the command has a loopback of its own; --publish shows a port of it";
                draft.left_out(place, key, why);
            }
            "allowUnixSockets" | "allowAllUnixSockets" | "allowMachLookup" => {
                draft.left_out(place, key, "Stockade shows no socket of this machine");
            }
            "parentProxy" | "tlsTerminate" => {
                draft.left_out(place, key, "Stockade connects directly");
            }
            "httpProxyPort" | "socksProxyPort" | "mitmProxy" => {
                let why = "a proxy of yours may deny more, and Stockade does not know what";
                draft.wider(place, key, why);
            }
            other => draft.unknown(place, other),
        }
    }
    Ok(())
}

fn filesystem(node: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    for (name, node) in node.table()? {
        match name.text.as_str() {
            "denyRead" => draft.paths(Access::DenyRead, node)?,
            "allowRead" => draft.paths(Access::Read, node)?,
            "allowWrite" => draft.paths(Access::Write, node)?,
            "denyWrite" => draft.paths(Access::DenyWrite, node)?,
            _ if !node.says_something() => {}
            key @ ("disabled" | "allowGitConfig") => {
                draft.left_out(&node.place, key, "Stockade's own protections stay on");
            }
            other => draft.unknown(&node.place, other),
        }
    }
    Ok(())
}
