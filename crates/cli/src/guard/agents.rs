//! Which agents can be guarded, by which of their own hooks, and in which files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::Comments;

/// An agent whose hooks can keep it from working.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) name: &'static str,
    /// In the directory of its state, or why that is of no use.
    settings: Result<&'static str, &'static str>,
    /// In the workspace.
    workspace: &'static [&'static str],
    /// The administrator's.
    pub(super) system: &'static str,
    pub(super) comments: Comments,
    /// Events whose hooks can refuse, and to which tools a hook applies. First what comes last.
    pub(super) events: &'static [(&'static str, Option<&'static str>)],
    /// A setting that turns all hooks off, and the value that does.
    pub(super) switch: (&'static [&'static str], bool),
}

/// Both hooks stop an agent: no prompt goes to the model, and if one did, no tool would run. Only
/// the exit code 2 does. Hooks at the start of a session cannot refuse it.
pub(super) const GUARDED: &[Guarded] = &[
    Guarded {
        name: "claude",
        settings: Ok("settings.json"),
        workspace: &[".claude/settings.json", ".claude/settings.local.json"],
        system: "/etc/claude-code/managed-settings.json",
        comments: Comments::Refused,
        events: &[("PreToolUse", Some("*")), ("UserPromptSubmit", None)],
        switch: (&["disableAllHooks"], true),
    },
    Guarded {
        name: "gemini",
        settings: Ok("settings.json"),
        workspace: &[".gemini/settings.json"],
        system: "/etc/gemini-cli/settings.json",
        comments: Comments::Allowed,
        events: &[("BeforeTool", Some("*")), ("BeforeAgent", None)],
        switch: (&["hooksConfig", "enabled"], false),
    },
    Guarded {
        name: "codex",
        settings: Err(
            "Codex skips a user's hook silently until you have reviewed and trusted it in its screen",
        ),
        workspace: &[],
        system: "/etc/codex/hooks.json",
        comments: Comments::Refused,
        events: &[("PreToolUse", Some("*")), ("UserPromptSubmit", None)],
        // It is in another file: docs/known-issues.md.
        switch: (&[], true),
    },
];

/// Why others cannot be guarded.
pub(super) fn refusal(name: &str) -> Option<&'static str> {
    match name {
        "aider" => Some("aider has no hooks"),
        _ => None,
    }
}

impl Guarded {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        GUARDED.iter().find(|agent| agent.name == name)
    }

    /// # Errors
    /// Why a guard there would be of no use.
    pub(super) fn user_file(&self, state: &Path) -> Result<PathBuf, &'static str> {
        self.settings.map(|settings| state.join(settings))
    }

    pub(super) fn workspace_files(&self, workspace: &Path) -> impl Iterator<Item = PathBuf> {
        let files = self.workspace.iter();
        files.map(move |file| workspace.join(file))
    }

    /// Whether settings turn all hooks off.
    pub(super) fn turns_off(&self, settings: &Value) -> bool {
        let (path, off) = self.switch;
        let value = path.iter().try_fold(settings, |value, key| value.get(key));
        value.and_then(Value::as_bool) == Some(off)
    }

    /// What the agent runs. If the program is gone, too, the agent is refused.
    pub(super) fn command(&self, program: &str) -> String {
        let name = self.name;
        format!(
            "{}{HEAD} echo 'stockade guard: {name} runs outside of the sandbox, which its guard does not allow. \
             Start it with: stockade {name}' >&2; exit 2; }}",
            quoted(program),
        )
    }

    /// The hook for an event, as the agent's settings have it.
    pub(super) fn hook(&self, matcher: Option<&str>, program: &str) -> Value {
        let command = self.command(program);
        let hook = json!({ "type": "command", "command": command });
        match matcher {
            Some(matcher) => json!({ "matcher": matcher, "hooks": [hook] }),
            None => json!({ "hooks": [hook] }),
        }
    }
}

const HEAD: &str = " inside --quiet || {";

/// The program that a guard's command asks. None if it is no guard's.
pub(super) fn program(command: &str) -> Option<String> {
    let (word, _) = command.split_once(HEAD)?;
    let inner = word.strip_prefix('\'')?.strip_suffix('\'')?;
    let program = inner.replace(QUOTE, "'");
    (quoted(&program) == word && program.starts_with('/')).then_some(program)
}

const QUOTE: &str = "'\\''";

/// As one word of the shell's.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', QUOTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guards_command_tells_its_program_whatever_its_path_is() {
        let claude = Guarded::find("claude").expect("an agent");
        for path in ["/usr/bin/stockade", "/home/o'neil/a b/$(x)/stockade"] {
            assert_eq!(program(&claude.command(path)).as_deref(), Some(path));
        }
        for other in [
            "echo",
            "stockade inside --quiet || {",
            "'x' inside --quiet || {",
        ] {
            assert_eq!(program(other), None);
        }
    }

    #[test]
    fn each_agent_can_be_guarded_or_it_is_said_why_not() {
        for agent in stockade_config::agents() {
            let [is_guarded, is_refused] =
                [Guarded::find(agent).is_some(), refusal(agent).is_some()];
            assert!(is_guarded != is_refused, "{agent}");
        }
    }
}
