//! A list of hosts in TOML: `[sandbox]` with `unshare_net`, `[sandbox.net_allow]` with `hosts`,
//! `cidrs` and `log_denials`.
//!
//! Its filter is about addresses, whatever the protocol, so rules are for all protocols.

use stockade_config::{Diagnostics, Mode};

use super::draft::{Draft, Said};
use super::tree::Node;

pub(super) fn translate(sandbox: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    let has_hosts = sandbox.get("net_allow").is_some();
    for (name, node) in sandbox.table()? {
        match name.text.as_str() {
            "net_allow" => {
                draft.say(Said::Internet(false), &name.place);
                net_allow(node, draft)?;
            }
            // A list of hosts closes the network, whatever this says.
            "unshare_net" if node.flag()? && !has_hosts => {
                draft.say(Said::Mode(Mode::None), &node.place);
            }
            "unshare_net" if !has_hosts => {
                let why = "Stockade's jail stays on; mode = \"host\" would turn it off";
                draft.left_out(&node.place, "unshare_net = false", why);
            }
            // Stockade always clears the environment.
            "unshare_net" | "clean_env" => {}
            other => draft.unknown(&name.place, other),
        }
    }
    Ok(())
}

fn net_allow(node: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    for (name, node) in node.table()? {
        match name.text.as_str() {
            "hosts" | "cidrs" => {
                for (text, place) in node.texts()? {
                    draft.allow("", text, place);
                }
            }
            "log_denials" => draft.say(Said::LogDenials(node.flag()?), &node.place),
            other => draft.unknown(&name.place, other),
        }
    }
    Ok(())
}
