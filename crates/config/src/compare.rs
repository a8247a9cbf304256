//! What a change of configuration changes, and whether it widens the sandbox.

use serde_json::Value;

use crate::{
    keys::{Effective, Key, Kind, Widens},
    setting::Shown,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub key: Key,
    /// In a table, the name it stands for.
    pub name: Option<String>,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

/// What is different in `after`, in the order of the keys.
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
pub fn wider(this: &Effective, other: &Effective) -> Vec<Key> {
    let is_wider = |key: &Key| match key.spec().widens {
        Widens::More => this.is_exceeded_by(other, *key),
        Widens::Less => other.is_exceeded_by(this, *key),
    };
    Key::ALL.into_iter().filter(is_wider).collect()
}
