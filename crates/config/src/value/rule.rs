//! Rules, those of `near`, and what to write instead of one for the loopback.

use std::fmt;

use serde_json::Value;
use stockade_policy::{Protocol, Rule, RuleError, Target};

use super::{ConfigValue, Fault, Given, Roots};
use crate::keys::{Key, Kind};

impl ConfigValue for Rule {
    const KIND: Kind = Kind::Rule;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let text = given.text().ok_or_else(wrong)?;
        text.parse().map_err(|error: RuleError| {
            let fault = loopback(given, text).unwrap_or_else(|| {
                Fault::new(error.problem().to_string()).instead_if(error.suggestion())
            });
            fault.at(error.span())
        })
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

/// A rule for names that may lead to private addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearRule(Rule);

impl NearRule {
    pub(crate) fn new(rule: &Rule) -> Option<Self> {
        rule.is_near().then(|| Self(rule.clone()))
    }

    pub fn rule(&self) -> &Rule {
        &self.0
    }
}

impl ConfigValue for NearRule {
    const KIND: Kind = Kind::NearRule;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let text = given.text().ok_or_else(wrong)?;
        let fault = |error: RuleError| {
            let fault = loopback(given, text).unwrap_or_else(|| {
                Fault::new(error.problem().to_string()).instead_if(error.suggestion())
            });
            fault.at(error.span())
        };
        Rule::parse_near(text).map(Self).map_err(fault)
    }

    fn to_json(&self) -> Value {
        self.0.to_string().into()
    }
}

impl fmt::Display for NearRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A rule for the loopback is not possible. Its author means the host's loopback.
fn loopback(given: Given<'_>, text: &str) -> Option<Fault> {
    let target: Target = text.parse().ok().filter(Target::is_loopback)?;
    // Of the host's loopback, only TCP can be reached.
    if target.protocol().is_some_and(|one| one != Protocol::Tcp) {
        return None;
    }
    let message = format!(
        "`{}` is the sandbox's own loopback; ports of this machine are allowed one by one",
        target.host()
    );
    let is_typed = matches!(given, Given::Bare(_));
    let flag = Key::HostPorts.spec().flag;
    let help = match (target.port(), is_typed) {
        (Some(port), true) => format!("write `{flag} {port}` instead"),
        (Some(port), false) => format!("write host_ports = [{port}] in [network] instead"),
        (None, true) => format!("write `{flag} PORT` for each port"),
        (None, false) => "list the ports as host_ports in [network]".to_owned(),
    };
    Some(Fault::new(message).help(help))
}
