//! The keys: every setting there is, in one table.
//!
//! Files, locks, `config show`, the schema for editors, the starter file and the options of
//! `run` all go by this table. A new key is one entry here, and the code that uses its value.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use stockade_policy::{Discovery, Exemption, Rule};

use crate::{
    setting::{Setting, Shown},
    source::{Origin, Sourced},
    value::{
        Caches, ConfigValue, Count, DeviceTable, Fault, GitSettings, Given, Hardening, HostName,
        LoginFile, Memory, Mode, NearRule, Notify, Port, ProxySetting, Published, Root, Roots,
        Seconds, Size, Unknown, VariableName, wrong_type,
    },
};

// An entry: the help (the first line is also in the schema and the starter file), then the
// key's names in the code and in files, its type, default and option, and whether a higher
// value, or one more entry, gives the command more or less.
keys! {
    /// What the command can reach.
    [network] Network, "Network" {
        /// The command's network: jail (filtered), none, or host (this machine's, unprotected)
        Mode mode: Sourced<Mode> = Mode::Jail.into(), "mode", More;

        /// Allow internet access
        ///
        /// Without it, the command reaches only what `allow` rules name.
        Internet internet: Sourced<bool> = true.into(), "internet", More;

        /// Allow a target: [PROTO://]TARGET[:PORTS]
        ///
        /// TARGET is an address, a network, a host name, or *.name for all names below it. PROTO
        /// is tcp, udp or icmp; without it, all of them. PORTS are ports and ranges, separated by
        /// commas. An IPv6 address with ports needs brackets: [fd00::5]:80. Host names apply only
        /// with --no-internet, and never open private addresses; use --near for those.
        /// Can be repeated.
        Allow allow: Vec<Sourced<Rule>> = Vec::new(), "allow", More;

        /// A host name that the command can reach at a private address: [PROTO://]NAME[:PORTS]
        ///
        /// NAME is a host name, or *.name for all names below it. This machine's resolvers look it
        /// up, and its addresses may be private or on the internet. It never opens this machine
        /// itself, link-local addresses or cloud metadata. Whoever controls the name's DNS chooses
        /// the address. Can be repeated.
        Near near: Vec<Sourced<NearRule>> = Vec::new(), "near", More;
        /// Searches for devices to pass on: epics, or udp://PORT
        ///
        /// A broadcast or multicast datagram to such a port goes to each device that a
        /// rule names by its address for that port, and to nobody else. epics stands for UDP ports
        /// 5064, 5065 and 5076. Your EPICS variables are passed on, too. Can be repeated.
        Discovery discovery: Vec<Sourced<Discovery>> = Vec::new(), "discovery", More;

        /// A TCP port of this machine's loopback that the command can reach
        ///
        /// It appears inside at the same port of 127.0.0.1 and ::1. Can be repeated.
        HostPorts host_ports: Vec<Sourced<Port>> = Vec::new(), "host-port", More;

        /// A TCP port of the command to open on this machine's loopback: PORT or OUTSIDE:INSIDE
        ///
        /// 127.0.0.1:OUTSIDE and [::1]:OUTSIDE lead to INSIDE. Can be repeated.
        Publish publish: Vec<Sourced<Published>> = Vec::new(), "publish", More;

        /// What happens to what no rule covers: deny, or ask you while the command waits
        ///
        /// With ask, the connection or name waits for up to a minute for your answer: in
        /// `stockade watch`, a tmux popup or a desktop notification. Where nobody can be asked, it is
        /// denied at once.
        Unknown unknown: Sourced<Unknown> = Unknown::Deny.into(), "unknown", More;

        /// Where the first denial of each target is shown at once: auto, tmux, desktop or off
        ///
        /// tmux shows it in the status line, desktop as a notification. auto is tmux inside tmux, and
        /// off elsewhere.
        Notify notify: Sourced<Notify> = Notify::Auto.into(), "notify", Less;

        /// The proxy to the internet: http://HOST:PORT (or https, socks5), environment, or none
        ///
        /// Stockade itself speaks to the proxy; programs inside need no proxy setting. environment
        /// is the proxy that https_proxy, all_proxy or http_proxy names, with no_proxy.
        Proxy proxy: Sourced<ProxySetting> = ProxySetting::None.into(), "proxy", More;

        /// A file with USER:PASSWORD for the proxy, which only you can read
        ProxyLogin proxy_login: Option<Sourced<LoginFile>> = None, "proxy-login", Less;

        /// What this machine reaches without the proxy: a domain, an address or a network
        ///
        /// A domain includes all names below it. Can be repeated.
        NoProxy no_proxy: Vec<Sourced<Exemption>> = Vec::new(), "no-proxy", More;

        /// Log denials, and report them at the end
        LogDenials log_denials: Sourced<bool> = true.into(), "log-denials", Less;
    }

    /// Hosts of a laboratory or a company that have names of your own.
    [devices] Devices, "Network" {
        /// A device with a name that works inside: NAME=RULE, or NAME = "RULE" in a file
        ///
        /// RULE is [PROTO://]TARGET[:PORTS] with one address or one host name, and is allowed. Inside, NAME
        /// resolves to it; the log and the receipt use NAME. Repeat it with the same NAME for further rules.
        Devices devices: DeviceTable = DeviceTable::default(), "device", More;
    }

    /// What the command sees of the disk.
    [files] Files, "Files" {
        /// What the command can read of the disk: system (its directories) or all
        ///
        /// all is the whole disk except home directories, /tmp, /var/tmp and /run.
        Root root: Sourced<Root> = Root::System.into(), "root", More;

        /// A file or directory that the command can also read; it must exist
        Read read: Vec<Sourced<PathBuf>> = Vec::new(), "read", More;

        /// A file or directory that the command can also write; it must exist
        Write write: Vec<Sourced<PathBuf>> = Vec::new(), "write", More;

        /// A file or directory to hide, in the workspace too; it must exist
        Hide hide: Vec<Sourced<PathBuf>> = Vec::new(), "hide", Less;

        /// Package caches and ~/.cache: keep changes for this workspace, scratch, or empty
        ///
        /// The host's caches never change. keep: the next session in this workspace has what this
        /// one downloads. scratch: changes are gone at the end. empty: caches also start empty.
        Caches caches: Sourced<Caches> = Caches::Keep.into(), "caches", More;
    }

    /// Which environment variables the command gets.
    [env] Env, "Environment" {
        /// An environment variable to pass on, if it is set
        PassEnv pass: Vec<Sourced<VariableName>> = Vec::new(), "pass-env", More;

        /// An environment variable to set inside
        SetEnv set: BTreeMap<VariableName, Sourced<String>> = BTreeMap::new(), "set-env", More;
    }

    /// Which of your logins for code forges the command gets.
    [forge] Forge, "Forges" {
        /// Let the command use your GitHub login, or the one of `stockade auth`
        Github github: Sourced<bool> = false.into(), "github", More;

        /// Let the command use your GitLab login, or the one of `stockade auth`
        Gitlab gitlab: Sourced<bool> = false.into(), "gitlab", More;

        /// A further host of these forges; has no effect unless one of them is on
        ForgeHosts hosts: Vec<Sourced<HostName>> = Vec::new(), "forge-host", More;
    }

    /// How much of the kernel's interface the command gets.
    [agent] Agent, "Process" {
        /// Kernel restrictions: default, or strict (no user namespaces inside)
        ///
        /// With strict, files that run by themselves outside, such as .envrc, are read-only even
        /// if git tracks them.
        Hardening hardening: Sourced<Hardening> = Hardening::Default.into(), "hardening", Less;

        /// Let sandboxes work inside the sandbox: bubblewrap, those of Codex and Claude Code
        Nested nested: Sourced<bool> = false.into(), "nested", More;
    }

    /// What happens to git settings and hooks that a session leaves behind.
    [git] Git, "Files" {
        /// New git settings and hooks that could run programs: defuse, or tell
        ///
        /// defuse undoes them at once and keeps them for `stockade accept`; tell only reports
        /// them at the end.
        GitSettings settings: Sourced<GitSettings> = GitSettings::Defuse.into(), "git-settings", More;
    }

    /// How much the command and everything that it starts can use.
    [limits] Limits, "Process" {
        /// Processes and threads at a time
        // Enough for any build or browser, and few enough for the machine to stay usable.
        Processes processes: Sourced<Count<1>> = Count::new(4096).into(), "limit", More;

        /// Memory of all processes together, or of each where there is no control group
        Memory memory: Option<Sourced<Memory>> = None, "limit", More;

        /// Open files of each process
        // With fewer than 16, a program cannot even load its libraries.
        OpenFiles open_files: Option<Sourced<Count<16>>> = None, "limit", More;

        /// Files in memory together: /tmp, the home directory and others
        Tmpfs tmpfs: Option<Sourced<Size>> = None, "limit", More;

        /// Processor time of each process
        CpuTime cpu_time: Option<Sourced<Seconds>> = None, "limit", More;
    }
}

/// What can stand as the value of a key, or as an entry of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Choice(&'static [&'static str]),
    Boolean,
    /// A number, at least this.
    Count(u64),
    /// A number of bytes with its unit.
    Size,
    /// A time with its unit.
    Time,
    Rule,
    /// A rule for names only.
    NearRule,
    Discovery,
    Port,
    Published,
    /// Where a proxy is.
    Proxy,
    /// What goes around it.
    Exemption,
    Path,
    Variable,
    Host,
    List(&'static Self),
    /// A table of names and texts.
    Variables,
    /// A section that is a table of names, and of a rule or a list of rules each.
    Devices,
}

/// Whether a higher value, or one more entry, gives the command more or less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Widens {
    More,
    Less,
}

#[derive(Debug, Clone, Copy)]
pub struct Spec {
    pub section: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    /// The option of `run` that sets it, with its dashes.
    pub flag: &'static str,
    /// The same without.
    pub option: &'static str,
    /// The option that turns it off, if it is a boolean.
    pub off: &'static str,
    pub help: &'static [&'static str],
    pub widens: Widens,
}

impl Spec {
    pub fn about(&self) -> &'static str {
        self.help.first().copied().unwrap_or_default().trim()
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Section {
    pub name: &'static str,
    pub about: &'static str,
    /// Where its options stand in the help.
    pub heading: &'static str,
}

impl Key {
    pub fn section(self) -> &'static str {
        self.spec().section
    }

    pub fn name(self) -> &'static str {
        self.spec().name
    }

    pub fn find(section: &str, name: &str) -> Option<Self> {
        Self::in_section(section).find(|key| key.name() == name)
    }

    pub fn in_section(section: &str) -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(move |key| key.section() == section)
    }
}

/// As in `network.allow`. A section that is one table is named by itself.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.spec().kind == Kind::Devices {
            return f.write_str(self.section());
        }
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
        }
    }

    /// Only what depends on the prose is left to the page.
    #[test]
    fn the_page_about_the_configuration_has_every_key() {
        let page = include_str!("../../../docs/configuration.md");
        for key in Key::ALL {
            let row = |line: &&str| {
                let mut cells = line.split('|').skip(1);
                let names = cells.next().unwrap_or_default();
                names.contains(&format!("`{}`", key.name())) && line.contains(key.spec().flag)
            };
            assert!(page.lines().any(|line| row(&line)), "{key}");
        }
    }
}
