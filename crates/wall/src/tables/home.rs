//! The parts of the home directory that are shown. Everything else in it is hidden.
//!
//! By the customs of XDG, `.config` holds credentials: only the logins of forges that are on are
//! shown. `.local/share` and `.cache` hold programs, plugins and downloads: both are shown whole.
//! But programs outside execute files there, and some programs keep secrets there. So changes stay
//! inside, and known places of secrets are masked. `.local/state` and `.local/bin` are empty.

/// Downloads of all programs that have no directory of their own for them.
pub(crate) const CACHE: &str = ".cache";

/// Directories that are shown whole. Changes to them never reach the host's.
pub(crate) const SCRATCH: &[(&str, &str)] = &[
    (".local/share", "plugins and data of programs"),
    (CACHE, "downloads and other things that can be had again"),
];

/// Files and directories that can be read.
pub(crate) const READABLE: &[(&str, &str)] = &[(".terminfo", "what the terminal can do")];

/// Programs of `.local/bin` that are shown.
pub(crate) const PROGRAMS: &[&str] = &[".local/bin/uv", ".local/bin/uvx"];

pub(crate) const PROGRAM_REASON: &str = "programs of Python's tools";

/// Where agents install their own programs among their settings, which they can write, and
/// whose. Programs outside run them, whoever has written there.
pub(crate) const PROGRAMS_IN_STATE: &[(&str, &str)] = &[
    (".claude/local", "Claude Code's program, which runs outside"),
    (".codex/packages", "Codex's program, which runs outside"),
    (".codex/bin", "Codex's program, which runs outside"),
    (".gemini/tmp/bin", "programs that Gemini CLI runs outside"),
    (
        ".claude/chrome",
        "Claude Code's program for browsers, which runs outside",
    ),
];

/// What the built-in profiles let agents write: sessions of any profile may have made links there.
pub const AGENTS_STATE: &[&str] = &[
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".aider",
    ".aider.conf.yml",
    ".aider.model.settings.yml",
];

/// What agents outside run of their settings while they run. Inside, these directories are the
/// sandbox's own.
pub(crate) const SCRATCH_IN_STATE: &[(&str, &str)] = &[
    (".claude/shell-snapshots", CLAUDES_SCRIPTS),
    (".claude/session-env", CLAUDES_SCRIPTS),
    (
        ".codex/shell_snapshots",
        "what Codex outside has its shells read is not the sandbox's to read or write",
    ),
    (
        ".codex/tmp",
        "programs that a Codex outside finds first are not the sandbox's to write",
    ),
    (
        ".codex/app-server-control",
        "a Codex outside that takes orders at a socket is not the sandbox's to command",
    ),
];

const CLAUDES_SCRIPTS: &str =
    "what Claude Code outside has its shells read is not the sandbox's to read or write";

/// Directories in those above that start empty.
pub(crate) const EMPTY: &[(&str, &str)] = &[
    (
        ".local/share/applications",
        "no program of the sandbox's enters the desktop's menu",
    ),
    (
        ".local/share/claude",
        "versions that the agent fetches are its own",
    ),
];

pub(crate) const SECRET_REASON: &str = "known to hold secrets";

/// Stockade's own directories. What lies there decides what the next session may do.
pub(crate) const OWN_DIRECTORIES: &[&str] = &[
    ".config/stockade",
    ".local/state/stockade",
    ".local/share/stockade",
];

/// Stores of forges' logins.
pub(crate) const GITHUB: &str = ".config/gh";
pub(crate) const GITLAB: &str = ".config/glab-cli";
