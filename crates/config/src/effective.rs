//! What is in force: every setting with a value, and each value with its origin.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    path::PathBuf,
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stockade_policy::{Policy, Rule};

use crate::{
    key::Key,
    source::{Origin, Sourced},
    text::quoted,
    value::{
        Change, GitSettings, Hardening, Mode, Port, Published, Root, Seconds, Size, VariableName,
    },
};

/// The configuration that a session is made from.
#[derive(Debug, Clone)]
pub struct Effective {
    pub network: Network,
    pub files: Files,
    pub env: Env,
    pub forge: Forge,
    pub agent: Agent,
    pub git: GitConfig,
    pub limits: Limits,
    /// The profile that was applied.
    pub profile: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Network {
    pub mode: Sourced<Mode>,
    pub internet: Sourced<bool>,
    pub allow: Vec<Sourced<Rule>>,
    pub host_ports: Vec<Sourced<Port>>,
    pub publish: Vec<Sourced<Published>>,
    pub log_denials: Sourced<bool>,
}

/// All paths are absolute.
#[derive(Debug, Clone)]
pub struct Files {
    pub root: Sourced<Root>,
    pub read: Vec<Sourced<PathBuf>>,
    pub write: Vec<Sourced<PathBuf>>,
    pub hide: Vec<Sourced<PathBuf>>,
}

#[derive(Debug, Clone, Default)]
pub struct Env {
    pub pass: Vec<Sourced<VariableName>>,
    pub set: BTreeMap<VariableName, Sourced<String>>,
}

#[derive(Debug, Clone)]
pub struct Forge {
    pub github: Sourced<bool>,
    pub gitlab: Sourced<bool>,
    pub hosts: Vec<Sourced<String>>,
}

#[derive(Debug, Clone)]
pub struct Agent {
    pub hardening: Sourced<Hardening>,
    pub nested: Sourced<bool>,
}

#[derive(Debug, Clone)]
pub struct GitConfig {
    pub settings: Sourced<GitSettings>,
}

/// `None`: nobody set it, and there is none but the caller's own.
#[derive(Debug, Clone)]
pub struct Limits {
    pub processes: Sourced<NonZeroU64>,
    pub memory: Option<Sourced<Size>>,
    pub open_files: Option<Sourced<NonZeroU64>>,
    pub tmpfs: Option<Sourced<Size>>,
    pub cpu_time: Option<Sourced<Seconds>>,
}

/// Enough for any build or browser, and few enough for the machine to stay usable.
const USUAL_PROCESSES: NonZeroU64 = NonZeroU64::new(4096).expect("not zero");

/// What is in force where nobody says anything: the jail with the internet, and of files,
/// variables and credentials nothing that has to be asked for.
impl Default for Effective {
    fn default() -> Self {
        Self {
            network: Network {
                mode: Sourced::built_in(Mode::Jail),
                internet: Sourced::built_in(true),
                allow: Vec::new(),
                host_ports: Vec::new(),
                publish: Vec::new(),
                log_denials: Sourced::built_in(true),
            },
            files: Files {
                root: Sourced::built_in(Root::System),
                read: Vec::new(),
                write: Vec::new(),
                hide: Vec::new(),
            },
            env: Env::default(),
            forge: Forge {
                github: Sourced::built_in(false),
                gitlab: Sourced::built_in(false),
                hosts: Vec::new(),
            },
            agent: Agent {
                hardening: Sourced::built_in(Hardening::Default),
                nested: Sourced::built_in(false),
            },
            git: GitConfig {
                settings: Sourced::built_in(GitSettings::Defuse),
            },
            limits: Limits {
                processes: Sourced::built_in(USUAL_PROCESSES),
                memory: None,
                open_files: None,
                tmpfs: None,
                cpu_time: None,
            },
            profile: None,
        }
    }
}

/// A value as people and other programs read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// In a table, the name it stands for.
    pub name: Option<String>,
    pub value: Value,
    pub origin: Origin,
}

impl Effective {
    /// What the gate judges flows by.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy {
            internet: self.network.internet.value,
            rules: self
                .network
                .allow
                .iter()
                .map(|rule| rule.value.clone())
                .collect(),
        }
    }

    /// Where the rule with this number in [`policy`](Self::policy) was written.
    #[must_use]
    pub fn origin_of_rule(&self, index: usize) -> Option<&Origin> {
        self.network.allow.get(index).map(|rule| &rule.origin)
    }

    /// Ports of the host's loopback, each once.
    #[must_use]
    pub fn host_ports(&self) -> Vec<u16> {
        let ports: BTreeSet<_> = self
            .network
            .host_ports
            .iter()
            .map(|port| port.value)
            .collect();
        ports.into_iter().map(Port::get).collect()
    }

    pub(crate) fn apply(&mut self, change: &Change, origin: Origin) {
        fn entry<T: Clone>(value: &T, origin: Origin) -> Sourced<T> {
            Sourced {
                value: value.clone(),
                origin,
            }
        }
        match change {
            Change::Mode(mode) => self.network.mode = entry(mode, origin),
            Change::Internet(on) => self.network.internet = entry(on, origin),
            Change::Allow(rule) => self.network.allow.push(entry(rule, origin)),
            Change::HostPort(port) => self.network.host_ports.push(entry(port, origin)),
            Change::Publish(ports) => self.network.publish.push(entry(ports, origin)),
            Change::LogDenials(on) => self.network.log_denials = entry(on, origin),
            Change::Root(root) => self.files.root = entry(root, origin),
            Change::Read(path) => self.files.read.push(entry(path, origin)),
            Change::Write(path) => self.files.write.push(entry(path, origin)),
            Change::Hide(path) => self.files.hide.push(entry(path, origin)),
            Change::PassEnv(name) => self.env.pass.push(entry(name, origin)),
            Change::SetEnv(name, value) => {
                self.env.set.insert(name.clone(), entry(value, origin));
            }
            Change::Github(on) => self.forge.github = entry(on, origin),
            Change::Gitlab(on) => self.forge.gitlab = entry(on, origin),
            Change::ForgeHost(host) => self.forge.hosts.push(entry(host, origin)),
            Change::NoForgeHosts => self.forge.hosts.clear(),
            Change::Hardening(hardening) => self.agent.hardening = entry(hardening, origin),
            Change::Nested(on) => self.agent.nested = entry(on, origin),
            Change::GitSettings(settings) => self.git.settings = entry(settings, origin),
            Change::Processes(count) => self.limits.processes = entry(count, origin),
            Change::Memory(size) => self.limits.memory = Some(entry(size, origin)),
            Change::OpenFiles(count) => self.limits.open_files = Some(entry(count, origin)),
            Change::Tmpfs(size) => self.limits.tmpfs = Some(entry(size, origin)),
            Change::CpuTime(time) => self.limits.cpu_time = Some(entry(time, origin)),
        }
    }

    /// The value of a scalar, or the entries of a list or table, in a form that is the
    /// same for all keys. Empty: the list is, or nobody set the limit.
    #[must_use]
    pub fn shown(&self, key: Key) -> Vec<Shown> {
        fn one<T>(setting: &Sourced<T>, value: impl Fn(&T) -> Value) -> Vec<Shown> {
            all([setting], value)
        }
        fn all<'s, T: 's>(
            settings: impl IntoIterator<Item = &'s Sourced<T>>,
            value: impl Fn(&T) -> Value,
        ) -> Vec<Shown> {
            let shown = |setting: &Sourced<T>| Shown {
                name: None,
                value: value(&setting.value),
                origin: setting.origin.clone(),
            };
            settings.into_iter().map(shown).collect()
        }
        fn text(value: &impl ToString) -> Value {
            value.to_string().into()
        }
        let path = |path: &PathBuf| Value::from(path.to_string_lossy());
        let boolean = |on: &bool| Value::from(*on);
        match key {
            Key::Mode => one(&self.network.mode, text),
            Key::Internet => one(&self.network.internet, boolean),
            Key::Allow => all(&self.network.allow, text),
            Key::HostPorts => all(&self.network.host_ports, |port| port.get().into()),
            Key::Publish => all(&self.network.publish, text),
            Key::LogDenials => one(&self.network.log_denials, boolean),
            Key::Root => one(&self.files.root, text),
            Key::Read => all(&self.files.read, path),
            Key::Write => all(&self.files.write, path),
            Key::Hide => all(&self.files.hide, path),
            Key::PassEnv => all(&self.env.pass, text),
            Key::SetEnv => {
                let shown = |(name, value): (&VariableName, &Sourced<String>)| Shown {
                    name: Some(name.to_string()),
                    value: value.value.clone().into(),
                    origin: value.origin.clone(),
                };
                self.env.set.iter().map(shown).collect()
            }
            Key::Github => one(&self.forge.github, boolean),
            Key::Gitlab => one(&self.forge.gitlab, boolean),
            Key::ForgeHosts => all(&self.forge.hosts, text),
            Key::Hardening => one(&self.agent.hardening, text),
            Key::Nested => one(&self.agent.nested, boolean),
            Key::GitSettings => one(&self.git.settings, text),
            Key::Processes => one(&self.limits.processes, |count| count.get().into()),
            Key::Memory => all(&self.limits.memory, text),
            Key::OpenFiles => all(&self.limits.open_files, |count| count.get().into()),
            Key::Tmpfs => all(&self.limits.tmpfs, text),
            Key::CpuTime => all(&self.limits.cpu_time, text),
        }
    }

    /// Whether the setting has the value that it has where nobody says anything.
    #[must_use]
    pub fn is_default(&self, key: Key) -> bool {
        canonical(&self.shown(key)) == canonical(&Self::default().shown(key))
    }

    /// A name for what is in force, whoever said so: SHA-256 in hexadecimal, the same for
    /// the same values in any order.
    #[must_use]
    pub fn hash(&self) -> String {
        let values: BTreeMap<String, Vec<String>> = Key::ALL
            .into_iter()
            .map(|key| (key.to_string(), canonical(&self.shown(key))))
            .collect();
        let text = serde_json::json!({ "version": 1, "values": values }).to_string();
        hex(&Sha256::digest(text.as_bytes()))
    }
}

impl Change {
    /// The key, the name in a table, and the value, as [`Effective::shown`] has them.
    pub(crate) fn parts(&self) -> (Key, Option<String>, Option<Value>) {
        let mut alone = Effective::default();
        alone.apply(self, Origin::BuiltIn);
        let shown = alone.shown(self.key()).pop();
        let (name, value) = shown.map_or((None, None), |shown| (shown.name, Some(shown.value)));
        (self.key(), name, value)
    }
}

/// The values alone, each once, in one order.
pub(crate) fn canonical(shown: &[Shown]) -> Vec<String> {
    let text = |shown: &Shown| match &shown.name {
        Some(name) => format!("{name}={}", shown.value),
        None => shown.value.to_string(),
    };
    let values: BTreeSet<_> = shown.iter().map(text).collect();
    values.into_iter().collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Shown {
    /// The value as TOML has it, fit for a terminal.
    #[must_use]
    pub fn literal(&self) -> String {
        literal(&self.value)
    }
}

/// A value as TOML has it, fit for a terminal.
#[must_use]
pub fn literal(value: &Value) -> String {
    match value.as_str() {
        Some(text) => quoted(text),
        None => value.to_string(),
    }
}
