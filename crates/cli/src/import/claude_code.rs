//! Claude Code's `settings.json`: its sandbox, and its permissions.
//!
//! Permissions limit the tools of Claude Code, and it applies them inside Stockade, too. Those about
//! hosts and files also become settings, so that the commands that it runs are limited as well.

use std::path::{Path, PathBuf};

use stockade_config::{Diagnostics, Place, SourceKind};

use super::draft::{Access, Draft, Said};
use super::{srt, tree::Node};

/// Permissions that only say how Claude Code asks.
const ASKING: &str = "defaultMode disableBypassPermissionsMode disableAutoMode \
                      skipDangerousModePermissionPrompt";

pub(super) fn translate(root: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    draft.base = base(&root.place, draft.around.home);
    let mut others = Vec::new();
    for (name, node) in root.table()? {
        match name.text.as_str() {
            "sandbox" => sandbox(node, draft)?,
            "permissions" => permissions(node, draft)?,
            "$schema" => {}
            other => others.push((other, &name.place)),
        }
    }
    let why = "not about the sandbox; Claude Code reads them itself, inside, too";
    draft.not_about_sandbox(&others, why);
    draft.say(
        Said::Needs("Claude Code", &[("api.anthropic.com", "")]),
        &root.place,
    );
    Ok(())
}

/// Where relative paths start: `~/.claude` for the user's settings, the project for its own. Those
/// elsewhere have no such place.
fn base(place: &Place, home: &Path) -> Option<PathBuf> {
    let SourceKind::File(path) = place.source().kind() else {
        return None;
    };
    let directory = path
        .parent()
        .filter(|it| it.file_name() == Some(".claude".as_ref()))?;
    let project = directory.parent()?;
    Some(if project == home { directory } else { project }.to_owned())
}

fn sandbox(node: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    for (name, node) in node.table()? {
        let (key, place) = (name.text.as_str(), &node.place);
        match key {
            "enabled" if node.flag()? => {
                let why = "its sandbox allows only the hosts that are listed";
                draft.say_why(Said::Internet(false), place, why);
            }
            "enabled" => draft.left_out(place, "enabled = false", "Stockade is always on"),
            "excludedCommands" if node.says_something() => {
                draft.left_out(place, key, "in Stockade, no command is outside");
            }
            other => srt::section(other, node, draft)?,
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Allow,
    Deny,
    Ask,
}

fn permissions(node: &Node, draft: &mut Draft<'_>) -> Result<(), Diagnostics> {
    let mut tools = Vec::new();
    for (name, node) in node.table()? {
        let list = match name.text.as_str() {
            "allow" => List::Allow,
            "deny" => List::Deny,
            "ask" => List::Ask,
            "additionalDirectories" => {
                draft.paths(Access::Read, node)?;
                continue;
            }
            other => {
                if !ASKING.split(' ').any(|it| it == other) && node.says_something() {
                    draft.unknown(&node.place, other);
                }
                continue;
            }
        };
        for (text, place) in node.texts()? {
            match text.strip_suffix(')').and_then(|it| it.split_once('(')) {
                Some(("WebFetch", host)) if host.starts_with("domain:") => {
                    let host = host.trim_start_matches("domain:").trim().to_owned();
                    draft.say(Said::Fetch(list == List::Allow, host), place);
                }
                Some(("Read", path)) => file(list, Access::Read, path, place, draft),
                Some(("Edit", path)) => file(list, Access::Write, path, place, draft),
                // New versions do not consult these, so they allow nothing.
                Some(("Write" | "MultiEdit" | "NotebookEdit", path)) if list != List::Allow => {
                    file(list, Access::Write, path, place, draft);
                }
                _ => tools.push((text, place)),
            }
        }
    }
    let why = "about tools; Claude Code applies them itself, inside, too";
    draft.not_about_sandbox(&tools, why);
    Ok(())
}

/// A rule about files. Its path is a pattern of gitignore: `//x` is absolute, `/x` starts at the
/// settings' place, and a name without a slash is meant in every directory.
fn file(list: List, access: Access, pattern: &str, place: &Place, draft: &mut Draft<'_>) {
    let access = match (list, access) {
        (List::Ask, _) => {
            let why = "Claude Code asks before its own tools do it; Stockade never asks";
            return draft.wider(place, pattern, why);
        }
        (List::Allow, access) => access,
        (List::Deny, Access::Read) => Access::DenyRead,
        (List::Deny, _) => Access::DenyWrite,
    };
    let of_file = draft.base.clone();
    let path = match pattern.strip_prefix('/') {
        Some(rest) => rest,
        None => {
            draft.base = Some(draft.around.workspace.to_owned());
            pattern
        }
    };
    draft.path(access, path, place);
    draft.base = of_file;
    let is_anywhere = !pattern.trim_end_matches('/').contains(['/', '*']) && pattern != "~";
    if list == List::Deny && is_anywhere {
        let why = "it is meant in every directory, and Stockade finds only the one at the top";
        draft.wider(place, pattern, why);
    }
}
