//! Devices: names of the user's own, with the rules of each.

use std::collections::BTreeMap;

use serde_json::Value;
use stockade_policy::{Hostname, Rule, RuleError};

use super::{ConfigValue, Fault, Given, Roots};
use crate::{
    keys::Kind,
    setting::{Setting, Shown},
    source::{Origin, Sourced},
};

/// The rules of each device, in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub struct DeviceTable(BTreeMap<Hostname, Vec<Sourced<Rule>>>);

impl DeviceTable {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The devices by their names, each with its rules.
    pub fn iter(&self) -> impl Iterator<Item = (&Hostname, &[Sourced<Rule>])> {
        self.0.iter().map(|(name, rules)| (name, rules.as_slice()))
    }

    /// All rules, in the order of the devices' names.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Sourced<Rule>> {
        self.0.values().flatten()
    }
}

/// The name of a device.
pub(crate) fn name(text: &str) -> Result<Hostname, Fault> {
    Hostname::parse_device(text).map_err(|error| fault(&error))
}

/// A device with one of the rules that a file gives it.
pub(crate) fn rule(name: &Hostname, given: Given<'_>) -> Result<(Hostname, Rule), Fault> {
    let Some(text) = given.text() else {
        return Err(Fault::new(format!(
            "invalid rule of a device: expected a string, found {given}"
        )));
    };
    let rule = Rule::parse_device(name, text).map_err(|error| fault(&error))?;
    Ok((name.clone(), rule))
}

fn fault(error: &RuleError) -> Fault {
    let fault = Fault::new(error.problem().to_string()).instead_if(error.suggestion());
    fault.at(error.span())
}

/// `NAME=RULE` on the command line.
impl ConfigValue for (Hostname, Rule) {
    const KIND: Kind = Kind::Devices;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let Given::Bare(text) = given else {
            return Err(wrong());
        };
        let Some((device, target)) = text.split_once('=') else {
            let message = "expected NAME=RULE, such as pmac=tcp://172.23.1.7:1025";
            return Err(Fault::new(message));
        };
        let device = name(device)?;
        let before = device.as_str().len() + 1;
        rule(&device, Given::Bare(target)).map_err(|mut fault| {
            let span = fault.span.take().unwrap_or(0..target.len());
            if let Some(super::Instead::Text(text)) = &mut fault.instead {
                *text = format!("{device}={text}");
            }
            fault.at(before + span.start..before + span.end)
        })
    }

    fn to_json(&self) -> Value {
        self.1.to_string().into()
    }
}

impl Setting for DeviceTable {
    const KIND: Kind = Kind::Devices;
    type Item = (Hostname, Rule);

    fn set(&mut self, (name, value): Self::Item, origin: Origin) {
        let rules = self.0.entry(name).or_default();
        if rules.iter().all(|known| known.value != value) {
            rules.push(Sourced { value, origin });
        }
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    /// One entry for each device.
    fn shown(&self) -> Vec<Shown> {
        let shown = |(name, rules): (&Hostname, &[Sourced<Rule>])| {
            let origin = rules.first()?.origin.clone();
            let mut texts: Vec<Value> = rules
                .iter()
                .map(|rule| rule.value.to_string().into())
                .collect();
            let value = match texts.len() {
                1 => texts.pop()?,
                _ => texts.into(),
            };
            Some(Shown {
                name: Some(name.to_string()),
                value,
                origin,
            })
        };
        self.iter().filter_map(shown).collect()
    }

    fn is_exceeded_by(&self, other: &Self) -> bool {
        let is_known = |rule: &Sourced<Rule>| self.rules().any(|known| known.value == rule.value);
        !other.rules().all(is_known)
    }
}
