//! The flags of `run` that are settings: each is a key of the configuration, and goes
//! through the same types and checks as a file. Here they are only collected.

use clap::Args;
use stockade_config::{Flags, Key};

#[derive(Debug, Default, Args)]
pub(crate) struct Settings {
    /// Let the command reach this: [PROTO://]TARGET[:PORTS]
    ///
    /// TARGET is an address, a network, a name, or *.name for all below it. PROTO is tcp, udp
    /// or icmp; without it, all of them. PORTS are ports and ranges, separated by commas. IPv6
    /// with ports: [fd00::5]:80. Names count with --internet=false. May be given several times.
    #[arg(long, value_name = "RULE", help_heading = NETWORK)]
    allow: Vec<String>,

    /// Whether the internet is open (it is); if not, only what is allowed
    #[arg(long, value_name = "BOOL", help_heading = NETWORK,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    internet: Option<String>,

    /// The command's network: jail (as usual), none, or host (this machine's, unprotected)
    #[arg(long, value_name = "MODE", help_heading = NETWORK)]
    mode: Option<String>,

    /// Let the command reach this port of this machine's loopback
    ///
    /// It appears inside at the same port of 127.0.0.1 and ::1. TCP only. May be given
    /// several times.
    #[arg(long, value_name = "PORT", help_heading = NETWORK)]
    host_port: Vec<String>,

    /// Show a port of the command's on this machine's loopback: PORT or OUTSIDE:INSIDE
    ///
    /// What listens inside at INSIDE is reached at 127.0.0.1:OUTSIDE and [::1]:OUTSIDE.
    /// TCP only. May be given several times.
    #[arg(long, value_name = "PORT", help_heading = NETWORK)]
    publish: Vec<String>,

    /// Whether denials are logged and told of (they are)
    #[arg(long, value_name = "BOOL", help_heading = NETWORK,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    log_denials: Option<String>,

    /// What is there of the disk, read-only: system (its directories), or all (but homes, /tmp, /run)
    #[arg(long, value_name = "ROOT", help_heading = FILES)]
    root: Option<String>,

    /// Let the command read this file or directory, too
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    read: Vec<String>,

    /// Let the command write this file or directory, too
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    write: Vec<String>,

    /// Hide this file or directory, in the workspace too
    #[arg(long, value_name = "PATH", help_heading = FILES)]
    hide: Vec<String>,

    /// Pass this environment variable on
    #[arg(long, value_name = "NAME", help_heading = ENVIRONMENT)]
    pass_env: Vec<String>,

    /// Set this environment variable inside
    #[arg(long, value_name = "NAME=VALUE", help_heading = ENVIRONMENT)]
    set_env: Vec<String>,

    /// Whether the command can use your GitHub login
    #[arg(long, value_name = "BOOL", help_heading = FORGE,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    github: Option<String>,

    /// Whether the command can use your GitLab login
    #[arg(long, value_name = "BOOL", help_heading = FORGE,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    gitlab: Option<String>,

    /// A further host of these forges
    #[arg(long, value_name = "HOST", help_heading = FORGE)]
    forge_host: Vec<String>,

    /// No login of any forge, whatever the configuration says
    #[arg(long, help_heading = FORGE, conflicts_with_all = ["github", "gitlab", "forge_host"])]
    no_forge: bool,

    /// How narrow the kernel is for the command: default, or strict (no user namespaces inside)
    #[arg(long, value_name = "LEVEL", help_heading = PROCESS)]
    hardening: Option<String>,

    /// What to do with new git settings and hooks that could run programs: defuse, or tell
    ///
    /// defuse undoes them at once and keeps them for `stockade accept` [default]; tell only
    /// reports them at the end.
    #[arg(long, value_name = "WHAT", help_heading = FILES)]
    git_settings: Option<String>,

    /// Let sandboxes work inside the sandbox: bubblewrap, those of Codex and Claude Code
    #[arg(long, value_name = "BOOL", help_heading = PROCESS,
        num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    nested: Option<String>,

    /// Limit what the command can use: processes, memory, open_files, tmpfs or cpu_time
    ///
    /// As in memory=8G, processes=4096, cpu_time=2h. May be given several times.
    #[arg(long, value_name = "KEY=VALUE", help_heading = PROCESS)]
    limit: Vec<String>,
}

const NETWORK: &str = "Network";
const FILES: &str = "Files";
const ENVIRONMENT: &str = "Environment";
const FORGE: &str = "Forges";
const PROCESS: &str = "Process";

impl Settings {
    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags::default();
        for (key, value) in [
            (Key::Mode, &self.mode),
            (Key::Internet, &self.internet),
            (Key::LogDenials, &self.log_denials),
            (Key::Root, &self.root),
            (Key::Github, &self.github),
            (Key::Gitlab, &self.gitlab),
            (Key::Hardening, &self.hardening),
            (Key::GitSettings, &self.git_settings),
            (Key::Nested, &self.nested),
        ] {
            if let Some(value) = value {
                flags.set(key, value);
            }
        }
        for (key, values) in [
            (Key::Allow, &self.allow),
            (Key::HostPorts, &self.host_port),
            (Key::Publish, &self.publish),
            (Key::Read, &self.read),
            (Key::Write, &self.write),
            (Key::Hide, &self.hide),
            (Key::PassEnv, &self.pass_env),
            (Key::SetEnv, &self.set_env),
            (Key::ForgeHosts, &self.forge_host),
        ] {
            for value in values {
                flags.set(key, value);
            }
        }
        for value in &self.limit {
            flags.limit(value);
        }
        if self.no_forge {
            flags.no_forge();
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::PathBuf};

    use clap::{CommandFactory as _, Parser as _};
    use stockade_config::{Kind, Loader, Places};

    use super::*;
    use crate::args::{Arguments, Command};

    /// Flags of `run` that no file can have in its place, and why.
    const NOT_SETTINGS: [(&str, &str); 4] = [
        ("profile", "chooses among tables of the files"),
        ("quiet", "is about this one call"),
        ("no-forge", "is three keys at once"),
        ("help", "is no setting"),
    ];

    fn flags_of_run() -> BTreeSet<String> {
        let mut command = Arguments::command();
        command.build();
        let run = command.find_subcommand("run").expect("run");
        run.get_arguments()
            .filter_map(|flag| flag.get_long())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn every_key_has_a_flag_and_every_flag_a_key() {
        let of_keys: BTreeSet<String> = Key::ALL
            .iter()
            .map(|key| key.spec().flag.trim_start_matches('-').to_owned())
            .collect();
        let exempt: BTreeSet<String> = NOT_SETTINGS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        assert_eq!(&flags_of_run() - &of_keys, exempt);
        assert_eq!(&of_keys - &flags_of_run(), BTreeSet::new());
    }

    /// A value other than the default for each kind of key.
    fn value_for(key: Key) -> &'static str {
        match (key, key.spec().kind) {
            (Key::Mode, _) => "none",
            (Key::Root, _) => "all",
            (Key::Hardening, _) => "strict",
            (Key::GitSettings, _) => "tell",
            (Key::Internet | Key::LogDenials, _) => "=false",
            (Key::Github | Key::Gitlab | Key::Nested, _) => "",
            (Key::Allow, _) => "10.0.0.1",
            (Key::HostPorts | Key::Publish, _) => "3000",
            (Key::PassEnv, _) => "EDITOR",
            (Key::SetEnv, _) => "A=b",
            (Key::ForgeHosts, _) => "git.example.org",
            (_, Kind::Count(_)) => "70",
            (_, Kind::Size) => "8G",
            (_, Kind::Time) => "2h",
            _ => "/data",
        }
    }

    #[test]
    fn every_flag_sets_its_key_and_no_other() {
        for key in Key::ALL {
            let (flag, value) = (key.spec().flag, value_for(key));
            let words = match (key.section(), key.spec().kind) {
                ("limits", _) => vec![flag.to_owned(), format!("{}={value}", key.name())],
                (_, Kind::Boolean) => vec![format!("{flag}{value}")],
                _ => vec![flag.to_owned(), value.to_owned()],
            };
            let start = ["stockade", "run"].map(str::to_owned).into_iter();
            let line = start.chain(words).chain(["true".to_owned()]);
            let arguments = Arguments::try_parse_from(line).expect("a command line");
            let Command::Run(run) = arguments.command else {
                panic!("run")
            };
            let nowhere = PathBuf::from("/nonexistent");
            let mut places = Places::new(&nowhere, &nowhere.join("project"), |_| None);
            places.system = nowhere.join("etc");
            let mut loader = Loader::new(places);
            loader.flags = run.settings.flags();
            let effective = loader.load().expect("a configuration").effective;
            let changed: Vec<Key> = Key::ALL
                .into_iter()
                .filter(|key| !effective.is_default(*key))
                .collect();
            assert_eq!(changed, [key], "{flag}");
            assert_eq!(
                effective
                    .shown(key)
                    .first()
                    .expect("a value")
                    .origin
                    .to_string(),
                flag
            );
        }
    }
}
