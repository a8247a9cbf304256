//! What the rest of the program asks of a configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stockade_policy::Policy;

use crate::{
    keys::{Change, Effective, Key},
    setting::Shown,
    source::Origin,
    value::Port,
};

impl Effective {
    pub fn policy(&self) -> Policy {
        let allow = self.network.allow.iter();
        let allow = allow.map(|rule| &rule.value);
        let near = self.network.near.iter();
        let near = near.map(|rule| rule.value.rule());
        let devices = self.devices.devices.rules();
        let devices = devices.map(|rule| &rule.value);
        let discovery = self.network.discovery.iter();
        Policy {
            internet: self.network.internet.value,
            rules: allow.chain(near).chain(devices).cloned().collect(),
            discovery: discovery.map(|entry| entry.value).collect(),
        }
    }

    /// Where the rule with this number in [`policy`](Self::policy) was written.
    pub fn origin_of_rule(&self, index: usize) -> Option<&Origin> {
        let allow = self.network.allow.iter().map(|rule| &rule.origin);
        let near = self.network.near.iter().map(|rule| &rule.origin);
        let devices = self.devices.devices.rules().map(|rule| &rule.origin);
        allow.chain(near).chain(devices).nth(index)
    }

    /// Ports of the host's loopback, each once.
    pub fn host_ports(&self) -> Vec<u16> {
        let ports = self.network.host_ports.iter();
        let ports: BTreeSet<_> = ports.map(|port| port.value).collect();
        ports.into_iter().map(Port::get).collect()
    }

    /// Whether the setting has its default value.
    pub fn is_default(&self, key: Key) -> bool {
        canonical(&self.shown(key)) == canonical(&Self::default().shown(key))
    }

    /// SHA-256 of the values in hexadecimal, whatever their order and origin.
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
fn canonical(shown: &[Shown]) -> Vec<String> {
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
