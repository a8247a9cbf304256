//! Files in a workspace that programs outside execute without being asked to.
//!
//! Those that exist are read-only inside, so that a session leaves nothing behind that
//! runs later, outside. Those that do not exist cannot be protected without leaving
//! something in the checkout; when they appear, they are reported ([`crate::Watch`]).

/// Names at the top of a workspace, and who runs them.
pub(crate) const HOST_EXECUTED: &[(&str, &str)] = &[
    (".envrc", "direnv runs it outside"),
    (".vscode", "VS Code runs its tasks outside"),
    (".devcontainer", "editors run its commands outside"),
    (".devcontainer.json", "editors run its commands outside"),
    (".idea", "JetBrains IDEs run its configurations outside"),
    (".zed", "Zed runs its tasks outside"),
    (".fleet", "Fleet runs its configurations outside"),
    (".exrc", "vim may run it outside"),
    (".vimrc", "vim may run it outside"),
    (".nvimrc", "Neovim may run it outside"),
    (".nvim.lua", "Neovim may run it outside"),
    (".dir-locals.el", "Emacs may run it outside"),
    (".gdbinit", "gdb may run it outside"),
    (".lldbinit", "lldb may run it outside"),
    ("mise.toml", "mise may run it outside"),
    (".mise.toml", "mise may run it outside"),
];

/// Names that are a part of the work, so that they stay writable, and are reported if they
/// have changed.
pub(crate) const REPORTED: &[(&str, &str)] = &[
    (".claude/settings.json", "Claude Code runs its hooks"),
    (".claude/settings.local.json", "Claude Code runs its hooks"),
    (".codex/config.toml", "Codex runs its commands"),
    (".gemini/settings.json", "Gemini CLI runs its commands"),
    (".cursor/mcp.json", "Cursor starts its servers"),
    (".mcp.json", "agents start its servers"),
    (".husky", "git runs its hooks"),
    (".pre-commit-config.yaml", "git's hooks run its commands"),
    ("lefthook.yml", "git's hooks run its commands"),
];

/// The same in the home directory, where an agent has its state.
pub(crate) const STATE_REPORTED: &[(&str, &str)] = &[
    (".claude/settings.json", "Claude Code runs its hooks"),
    (".claude/settings.local.json", "Claude Code runs its hooks"),
    (".claude/hooks", "Claude Code may run them"),
    (".claude/agents", "Claude Code does what they say"),
    (".claude/commands", "Claude Code does what they say"),
    (".claude/skills", "Claude Code does what they say"),
    (".codex/config.toml", "Codex runs its commands"),
    (".gemini/settings.json", "Gemini CLI runs its commands"),
];

pub(crate) const HOOKS: &str = "git runs them outside";
pub(crate) const ATTRIBUTES: &str = "says which files git gives to programs";
pub(crate) const REMOTES: &str = "says where git fetches from and pushes to";
pub(crate) const DOT_GIT: &str = "tells git outside where the repository is";
pub(crate) const REDIRECTION: &str = "git takes settings and hooks from where it leads";
