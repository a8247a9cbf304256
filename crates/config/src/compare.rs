//! What a change of configuration changes, and whether it widens the sandbox.

use serde_json::Value;

use crate::{
    effective::{Effective, Shown},
    key::{Key, Kind},
    value::{GitSettings, Hardening, Mode, Root},
};

/// One difference between two configurations.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub key: Key,
    /// In a table, the name it stands for.
    pub name: Option<String>,
    /// `None`: it was not there.
    pub before: Option<Value>,
    /// `None`: it is gone.
    pub after: Option<Value>,
}

/// What is different in `after`, in the order of the keys.
#[must_use]
pub fn differences(before: &Effective, after: &Effective) -> Vec<Difference> {
    Key::ALL
        .into_iter()
        .flat_map(|key| of_key(key, before, after))
        .collect()
}

fn of_key(key: Key, before: &Effective, after: &Effective) -> Vec<Difference> {
    let (before, after) = (before.shown(key), after.shown(key));
    match key.spec().kind {
        Kind::List(_) => {
            let added = missing_in(&before, &after).into_iter();
            let gone = missing_in(&after, &before).into_iter();
            let added = added.map(|value| (None, Some(value)));
            let gone = gone.map(|value| (Some(value), None));
            let difference = |(before, after)| Difference {
                key,
                name: None,
                before,
                after,
            };
            gone.chain(added).map(difference).collect()
        }
        // Scalars are named by nothing, and variables by their names.
        _ => {
            let value = |list: &[Shown], name: &Option<String>| {
                list.iter()
                    .find(|shown| shown.name == *name)
                    .map(|shown| shown.value.clone())
            };
            let mut names: Vec<_> = before
                .iter()
                .chain(&after)
                .map(|s| s.name.clone())
                .collect();
            names.sort();
            names.dedup();
            let difference = |name: Option<String>| Difference {
                key,
                before: value(&before, &name),
                after: value(&after, &name),
                name,
            };
            let all = names.into_iter().map(difference);
            all.filter(|difference| difference.before != difference.after)
                .collect()
        }
    }
}

fn missing_in(there: &[Shown], here: &[Shown]) -> Vec<Value> {
    let mut missing: Vec<Value> = Vec::new();
    for shown in here {
        let known = there.iter().any(|other| other.value == shown.value);
        if !known && !missing.contains(&shown.value) {
            missing.push(shown.value.clone());
        }
    }
    missing
}

/// The keys by which `other` lets the command do more than `this`.
#[must_use]
pub fn wider(this: &Effective, other: &Effective) -> Vec<Key> {
    Key::ALL
        .into_iter()
        .filter(|key| is_wider(*key, this, other))
        .collect()
}

fn is_wider(key: Key, this: &Effective, other: &Effective) -> bool {
    // A limit that nobody set may be any.
    fn limit<T: Ord + Copy>(
        this: &Option<crate::Sourced<T>>,
        other: &Option<crate::Sourced<T>>,
    ) -> bool {
        match (this, other) {
            (Some(this), Some(other)) => other.value > this.value,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
    let entry_missing =
        |from: &Effective, to: &Effective| !missing_in(&to.shown(key), &from.shown(key)).is_empty();
    match key {
        Key::Mode => freedom(other.network.mode.value) > freedom(this.network.mode.value),
        Key::Internet => other.network.internet.value && !this.network.internet.value,
        Key::LogDenials => !other.network.log_denials.value && this.network.log_denials.value,
        Key::Root => other.files.root.value == Root::All && this.files.root.value == Root::System,
        Key::Github => other.forge.github.value && !this.forge.github.value,
        Key::Gitlab => other.forge.gitlab.value && !this.forge.gitlab.value,
        Key::Hardening => {
            other.agent.hardening.value == Hardening::Default
                && this.agent.hardening.value == Hardening::Strict
        }
        Key::Nested => other.agent.nested.value && !this.agent.nested.value,
        Key::GitSettings => {
            other.git.settings.value == GitSettings::Tell
                && this.git.settings.value == GitSettings::Defuse
        }
        Key::Processes => other.limits.processes.value > this.limits.processes.value,
        Key::Memory => limit(&this.limits.memory, &other.limits.memory),
        Key::OpenFiles => limit(&this.limits.open_files, &other.limits.open_files),
        Key::Tmpfs => limit(&this.limits.tmpfs, &other.limits.tmpfs),
        Key::CpuTime => limit(&this.limits.cpu_time, &other.limits.cpu_time),
        // What is no longer hidden is seen.
        Key::Hide => entry_missing(this, other),
        Key::Allow
        | Key::HostPorts
        | Key::Publish
        | Key::Read
        | Key::Write
        | Key::PassEnv
        | Key::ForgeHosts => entry_missing(other, this),
        Key::SetEnv => other.shown(key).iter().any(|shown| {
            let same = |other: &Shown| other.name == shown.name && other.value == shown.value;
            !this.shown(key).iter().any(same)
        }),
    }
}

fn freedom(mode: Mode) -> u8 {
    match mode {
        Mode::None => 0,
        Mode::Jail => 1,
        Mode::Host => 2,
    }
}
