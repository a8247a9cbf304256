//! What a program inside may be told of the policy.
//!
//! # Theory of operation
//! A program that tries a connection learns whether it is allowed, denied, or has no route. It
//! knows the address, its registry entry and the names that it asked for. It may also know the
//! rules. All else behind a decision is about the host: its routes, its own addresses, the
//! broadcast addresses of its subnets, and the files that rules stand in.
//!
//! So a denial is decided once more without the host. If the policy denies the flow even to a host
//! on the internet, that decision has nothing of the host in it, and is told. Otherwise the flow
//! was denied because of where the destination is, which is what the attempt tells, too; which of
//! the host's facts it was is not told. Evidence that the attempt does not tell apart gives the
//! same words (a property test holds that).

use std::net::IpAddr;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use crate::decide::decide;
use crate::evidence::{Evidence, Route};
use crate::explain::{Outcome, flow, stretches};
use crate::flow::Flow;
use crate::name::Hostname;
use crate::names::{NameVerdict, decide_name};
use crate::policy::Policy;
use crate::rule::Rule;
use crate::target::{Host, Target};
use crate::verdict::{Decider, Reason, Restriction, Verdict};

/// The fix of this reason is for TCP, whatever was asked about.
const QUIC: &str = "quic";

/// Decisions in one explanation. Whoever asks costs the gate no more, however many rules there are.
const DECISIONS: usize = 256;

/// One decision, as programs inside hear of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disclosed {
    pub allowed: bool,
    /// A short name that stays the same over versions.
    pub reason: String,
    /// The reason, as a sentence.
    pub text: String,
    /// The rule that allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The narrowest rule that would allow it. None for what hands out credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Whether that rule is one for private addresses of a name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub near: bool,
}

/// What is told of a decision on a flow. `policy` is the one that it was made by.
#[must_use]
pub fn disclose(policy: &Policy, verdict: &Verdict) -> Disclosed {
    let flow = verdict.flow();
    let without_host = |route| {
        let (own, names) = (false, verdict.names());
        decide(policy, flow, &Evidence { route, own, names })
    };
    match verdict.reason() {
        // Of two decisions that allow it, which one it was depends on the host's routes.
        Reason::Name { .. } => {
            let far = without_host(Route::Default);
            return allowed(if far.is_allowed() { &far } else { verdict });
        }
        Reason::Internet | Reason::InternetByProxy | Reason::Rule { .. } => {
            return allowed(verdict);
        }
        Reason::NoRoute => {
            let text = format!("there is no route to {}", flow.destination());
            return told(verdict, text, None);
        }
        // The program used an address that it was given for another name: it is no accident.
        Reason::OtherName { .. } => return told(verdict, verdict.to_string(), None),
        _ => {}
    }
    let far = without_host(Route::Default);
    if !far.is_allowed() {
        let fix = far.fix().filter(|_| !gives_credentials(&far)).cloned();
        return told(&far, far.to_string(), fix);
    }
    let destination = flow.destination();
    let near = without_host(Route::Specific(destination.into()));
    let (reason, text, fix) = match near.reason() {
        Reason::Inward { rule, .. } => (
            near.reason().name(),
            format!(
                "rule `{rule}` covers the name, but rules for names open the internet only, and \
                 {destination} is not on the internet here"
            ),
            near.fix().cloned(),
        ),
        _ if !near.is_allowed() => (
            "near",
            format!("{destination} is not on the internet here, and no rule names it"),
            near.fix().cloned(),
        ),
        _ => (
            "near",
            format!("no rule names {destination} itself, and it needs one that does"),
            None,
        ),
    };
    Disclosed {
        allowed: false,
        reason: reason.to_owned(),
        text,
        rule: None,
        near: fix.as_ref().is_some_and(Rule::is_near),
        fix: fix.map(|fix| fix.to_string()),
    }
}

fn allowed(verdict: &Verdict) -> Disclosed {
    let text = match verdict.reason() {
        Reason::Rule { rule, .. } | Reason::Name { rule, .. } => format!("rule `{rule}` allows it"),
        _ => "the internet is open".to_owned(),
    };
    told(verdict, text, None)
}

/// What is told of a decision on a name, which the policy alone makes.
#[must_use]
pub fn disclose_name(verdict: &NameVerdict) -> Disclosed {
    let rule = match verdict.decided_by() {
        Decider::Rule { rule, .. } => Some(rule.to_string()),
        Decider::BuiltIn(_) => None,
    };
    Disclosed {
        allowed: verdict.is_allowed(),
        reason: verdict.reason().name().to_owned(),
        text: verdict.to_string(),
        rule,
        near: verdict.fix().is_some_and(|fix| fix.is_near()),
        fix: verdict.fix().map(|fix| fix.to_string()),
    }
}

fn told(verdict: &Verdict, text: String, fix: Option<Rule>) -> Disclosed {
    let rule = match verdict.decided_by() {
        Decider::Rule { rule, .. } => Some(rule.to_string()),
        Decider::BuiltIn(_) => None,
    };
    Disclosed {
        allowed: verdict.is_allowed(),
        reason: verdict.reason().name().to_owned(),
        text,
        rule,
        near: fix.as_ref().is_some_and(Rule::is_near),
        fix: fix.map(|fix| fix.to_string()),
    }
}

fn gives_credentials(verdict: &Verdict) -> bool {
    matches!(
        verdict.reason(),
        Reason::Restricted {
            restriction: Restriction::Metadata { .. },
            ..
        }
    )
}

/// What a program inside is told about a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideExplanation {
    pub target: String,
    /// `allowed`, `denied` or `unclear`.
    pub outcome: String,
    /// Whether the name may be asked for, if the target is a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Disclosed>,
    pub answers: Vec<InsideAnswer>,
    /// There are more answers than these: too many rules are about the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// A decision, and all it holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideAnswer {
    pub address: IpAddr,
    pub protocol: String,
    /// The first and the last; none for a protocol without ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<(u16, u16)>,
    #[serde(flatten)]
    pub decision: Disclosed,
}

/// Explains the policy to a program inside. `hosts` are the addresses that the target has, each with
/// the evidence of the gate: the names are those that the program was given the address for.
pub fn explain_inside<'a>(
    policy: &Policy,
    target: &Target,
    hosts: impl IntoIterator<Item = (IpAddr, Evidence<'a>)>,
) -> InsideExplanation {
    let mut explanation = InsideExplanation {
        target: target.to_string(),
        outcome: Outcome::Unclear.to_string(),
        name: None,
        answers: Vec::new(),
        incomplete: false,
    };
    let mut room = DECISIONS;
    if let Host::Name(name) = target.host() {
        let verdict = decide_name(policy, name);
        explanation.name = Some(disclose_name(&verdict));
        if !verdict.is_allowed() {
            explanation.outcome = Outcome::Denied.to_string();
            return explanation;
        }
    }
    for (address, evidence) in hosts {
        // A name that the program was not given this address for is none of it.
        let named: &[Hostname] = match target.host() {
            Host::Name(name) if evidence.names.contains(name) => std::slice::from_ref(name),
            Host::Name(_) => continue,
            Host::Address(_) => evidence.names,
        };
        let evidence = Evidence {
            names: named,
            ..evidence
        };
        let answers = &mut explanation.answers;
        explanation.incomplete |= !ask(policy, target, (address, &evidence), answers, &mut room);
    }
    if !explanation.incomplete {
        explanation.outcome = outcome(&explanation.answers).to_string();
    }
    explanation
}

/// Whether there was room for all decisions.
fn ask(
    policy: &Policy,
    target: &Target,
    (address, evidence): (IpAddr, &Evidence<'_>),
    answers: &mut Vec<InsideAnswer>,
    room: &mut usize,
) -> bool {
    let address = address.to_canonical();
    for protocol in target.protocols() {
        for ports in stretches(policy, target, *protocol, address, evidence) {
            let Some(left) = room.checked_sub(1) else {
                return false;
            };
            *room = left;
            let ports = ports.map(|ports| (*ports.start(), *ports.end()));
            let first = ports.and_then(|(first, _)| NonZeroU16::new(first));
            let Some(flow) = flow(*protocol, address, first) else {
                continue;
            };
            let mut decision = disclose(policy, &decide(policy, &flow, evidence));
            decision.text = widened(&decision.text, &flow, target);
            if decision.reason != QUIC {
                decision.fix = decision.fix.map(|fix| asked(&fix, target));
            }
            let protocol = protocol.to_string();
            match answers.last_mut() {
                Some(last)
                    if last.address == address
                        && last.protocol == protocol
                        && last.decision == decision =>
                {
                    if let (Some(all), Some(more)) = (&mut last.ports, ports) {
                        all.1 = more.1;
                    }
                }
                _ => answers.push(InsideAnswer {
                    address,
                    protocol,
                    ports,
                    decision,
                }),
            }
        }
    }
    true
}

/// A sentence about the first port of several is about all of them.
fn widened(text: &str, flow: &Flow, target: &Target) -> String {
    match target.port() {
        Some(_) => text.to_owned(),
        None => text.replace(&flow.to_string(), &flow.destination().to_string()),
    }
}

/// A fix as wide as the question: for its protocol and port, if it has one.
fn asked(fix: &str, target: &Target) -> String {
    let as_asked = |rule: Rule| rule.with_services(target.protocol(), target.port());
    let rule: Result<Rule, _> = fix.parse();
    rule.map_or_else(|_| fix.to_owned(), |rule| as_asked(rule).to_string())
}

/// As for people: QUIC is what programs do without.
fn outcome(answers: &[InsideAnswer]) -> Outcome {
    let is_dispensable = |decision: &Disclosed| [QUIC, "no-route"].contains(&&*decision.reason);
    let (mut allowed, mut denied, mut dispensable) = (false, false, false);
    for InsideAnswer { decision, .. } in answers {
        match decision.allowed {
            true => allowed = true,
            false if is_dispensable(decision) => dispensable = true,
            false => denied = true,
        }
    }
    Outcome::of(allowed, denied, dispensable)
}
