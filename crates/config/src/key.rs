//! The keys: every setting there is, in one table.
//!
//! Parsing, locks, `config show`, the schema for editors and the flags of `run` all go by
//! this table, so that a key which one of them forgets does not exist for any of them.

use std::fmt;

use crate::value::{GitSettings, Hardening, Mode, Root};

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    Mode,
    Internet,
    Allow,
    HostPorts,
    Publish,
    LogDenials,
    Root,
    Read,
    Write,
    Hide,
    PassEnv,
    SetEnv,
    Github,
    Gitlab,
    ForgeHosts,
    Hardening,
    Nested,
    GitSettings,
    Processes,
    Memory,
    OpenFiles,
    Tmpfs,
    CpuTime,
}

/// What can stand as the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    Boolean,
    /// A number of things, so many at least.
    Count(u64),
    /// A number of bytes with its unit.
    Size,
    /// A time with its unit.
    Time,
    /// A list, each entry one of these.
    List(Item),
    /// A table of names and texts.
    Variables,
}

/// What can stand in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Rule,
    Port,
    Published,
    Path,
    Variable,
    Host,
}

/// All that is to be known of a key.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    pub section: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    /// The flag of `run` that sets it.
    pub flag: &'static str,
    pub about: &'static str,
}

/// The sections with what they are about, in the order in which they are shown.
pub const SECTIONS: [(&str, &str); 7] = [
    ("network", "What the command can reach."),
    ("files", "What the command sees of the disk."),
    ("env", "Which environment variables the command gets."),
    (
        "forge",
        "Whose credentials for pushing code the command gets.",
    ),
    (
        "agent",
        "How much the command's own kernel interface is narrowed.",
    ),
    (
        "git",
        "What becomes of settings and hooks of git that a session leaves behind.",
    ),
    (
        "limits",
        "How much the command and all it starts can use up.",
    ),
];

impl Key {
    pub const ALL: [Self; 23] = [
        Self::Mode,
        Self::Internet,
        Self::Allow,
        Self::HostPorts,
        Self::Publish,
        Self::LogDenials,
        Self::Root,
        Self::Read,
        Self::Write,
        Self::Hide,
        Self::PassEnv,
        Self::SetEnv,
        Self::Github,
        Self::Gitlab,
        Self::ForgeHosts,
        Self::Hardening,
        Self::Nested,
        Self::GitSettings,
        Self::Processes,
        Self::Memory,
        Self::OpenFiles,
        Self::Tmpfs,
        Self::CpuTime,
    ];

    #[must_use]
    pub const fn spec(self) -> Spec {
        use Item::{Host, Path, Port, Published, Rule, Variable};
        use Kind::{Boolean, Choice, Count, List, Size, Time, Variables};
        let (section, name, kind, flag, about) = match self {
            Self::Mode => (
                "network",
                "mode",
                Choice(Mode::NAMES),
                "--mode",
                "\"jail\": a network of its own; \"none\": no network; \"host\": this machine's, unprotected",
            ),
            Self::Internet => (
                "network",
                "internet",
                Boolean,
                "--internet",
                "whether the internet is open; if not, only what `allow` lists",
            ),
            Self::Allow => (
                "network",
                "allow",
                List(Rule),
                "--allow",
                "rules: [proto://]target[:ports]; names count only if the internet is closed",
            ),
            Self::HostPorts => (
                "network",
                "host_ports",
                List(Port),
                "--host-port",
                "TCP ports of this machine's loopback that appear inside",
            ),
            Self::Publish => (
                "network",
                "publish",
                List(Published),
                "--publish",
                "TCP ports inside that appear on this machine's loopback: \"PORT\" or \"OUTSIDE:INSIDE\"",
            ),
            Self::LogDenials => (
                "network",
                "log_denials",
                Boolean,
                "--log-denials",
                "whether denials are logged and told of",
            ),
            Self::Root => (
                "files",
                "root",
                Choice(Root::NAMES),
                "--root",
                "\"system\": the system's directories; \"all\": the whole disk, read-only, but the home directory, /tmp, /var/tmp and /run",
            ),
            Self::Read => (
                "files",
                "read",
                List(Path),
                "--read",
                "files and directories that can also be read; each must exist",
            ),
            Self::Write => (
                "files",
                "write",
                List(Path),
                "--write",
                "files and directories that can also be written; each must exist",
            ),
            Self::Hide => (
                "files",
                "hide",
                List(Path),
                "--hide",
                "files and directories that are hidden, in the workspace too; each must exist",
            ),
            Self::PassEnv => (
                "env",
                "pass",
                List(Variable),
                "--pass-env",
                "variables that are passed on if they are set",
            ),
            Self::SetEnv => (
                "env",
                "set",
                Variables,
                "--set-env",
                "variables with the values they have inside",
            ),
            Self::Github => (
                "forge",
                "github",
                Boolean,
                "--github",
                "whether the command can use your GitHub login",
            ),
            Self::Gitlab => (
                "forge",
                "gitlab",
                Boolean,
                "--gitlab",
                "whether the command can use your GitLab login",
            ),
            Self::ForgeHosts => (
                "forge",
                "hosts",
                List(Host),
                "--forge-host",
                "further hosts of these forges, if one of them is on",
            ),
            Self::Hardening => (
                "agent",
                "hardening",
                Choice(Hardening::NAMES),
                "--hardening",
                "\"default\": programs inside can make user namespaces; \"strict\": they cannot",
            ),
            Self::Nested => (
                "agent",
                "nested",
                Boolean,
                "--nested",
                "whether sandboxes work inside the sandbox (bubblewrap, those of Codex and Claude Code)",
            ),
            Self::GitSettings => (
                "git",
                "settings",
                Choice(GitSettings::NAMES),
                "--git-settings",
                "\"defuse\": put back settings and hooks of git that a session leaves behind; \"tell\": only report them",
            ),
            Self::Processes => (
                "limits",
                "processes",
                Count(1),
                "--limit",
                "processes and threads at a time",
            ),
            Self::Memory => (
                "limits",
                "memory",
                Size,
                "--limit",
                "memory of all processes together, or of each where only that can be had, as in \"8G\" (B, K, M, G, T)",
            ),
            Self::OpenFiles => (
                "limits",
                "open_files",
                // With fewer, a program cannot even load its libraries.
                Count(16),
                "--limit",
                "open files of each process",
            ),
            Self::Tmpfs => (
                "limits",
                "tmpfs",
                Size,
                "--limit",
                "files in memory (/tmp, the home directory and others) together, as in \"2G\" (B, K, M, G, T)",
            ),
            Self::CpuTime => (
                "limits",
                "cpu_time",
                Time,
                "--limit",
                "processor time of each process, as in \"2h\" (s, m, h, d)",
            ),
        };
        Spec {
            section,
            name,
            kind,
            flag,
            about,
        }
    }

    #[must_use]
    pub fn section(self) -> &'static str {
        self.spec().section
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The key of this name in this section.
    #[must_use]
    pub fn find(section: &str, name: &str) -> Option<Self> {
        Self::in_section(section).find(|key| key.name() == name)
    }

    pub fn in_section(section: &str) -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(move |key| key.section() == section)
    }
}

/// As in `network.allow`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_name_and_in_a_section_that_exists() {
        for key in Key::ALL {
            assert_eq!(Key::find(key.section(), key.name()), Some(key));
            assert!(
                SECTIONS.iter().any(|(name, _)| *name == key.section()),
                "{key}"
            );
        }
        for (section, _) in SECTIONS {
            assert!(
                Key::in_section(section).next().is_some(),
                "[{section}] is empty"
            );
        }
    }
}
