//! Layers → one configuration. Pure.
//!
//! # Theory of operation
//! The later layer overrules the earlier: a scalar has the last value, a list has the entries
//! of all layers. Within the files, what is said for every command comes
//! before what is said in the profile, so that the user's profile overrules the user's
//! own base; the environment and the command line come last, and overrule profiles.
//!
//! ```text
//! built in                                      its table of the chosen profile
//! /etc, user, workspace, project                their bases
//! /etc, user, workspace, project                their tables of the chosen profile
//! environment, flags
//! ```
//!
//! A key that the administrator locked can be set in the administrator's file alone. No other
//! file can add to a locked list, because an entry widens the sandbox.

use std::collections::BTreeSet;

use stockade_policy::Rule;

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    keys::{Effective, Key},
    layer::{Layer, LayerKind, Lock, Written},
    profiles::GENERIC,
    source::{Origin, Place, Sourced},
    text::{meant, shown},
    value::{Published, Unknown},
};

/// Which profile is wanted.
#[derive(Debug, Clone, Default)]
pub enum Choice {
    /// None: the settings for every command.
    #[default]
    None,
    /// That of a command which has none of its own.
    Other,
    /// The one of this command's name, or else `generic`, if there is one.
    Command(String),
    /// This one. The place is the flag's.
    Named(String, Place),
}

/// Makes one configuration of all layers. Their order is that of their kinds.
///
/// # Errors
/// If a layer sets a locked key, the profile does not exist, or layers contradict each other.
pub fn merge(layers: &[Layer], choice: &Choice) -> Result<Effective, Diagnostics> {
    let mut wrong = Diagnostics::default();
    let mut layers: Vec<&Layer> = layers.iter().collect();
    layers.sort_by_key(|layer| layer.kind);
    check_locks(&layers, &mut wrong);
    let profile = match chosen(&layers, choice) {
        Ok(profile) => profile,
        Err(problem) => {
            wrong.push(problem);
            None
        }
    };
    let mut effective = Effective {
        profile: profile.map(str::to_owned),
        ..Effective::default()
    };
    for written in in_order(&layers, profile) {
        effective.apply(&written.change, Origin::Written(written.place.clone()));
    }
    check_ports(&effective, &mut wrong);
    check_devices(&effective, &mut wrong);
    check_ask(&effective, &layers, &mut wrong);
    wrong.or(effective)
}

fn in_order<'l>(layers: &[&'l Layer], profile: Option<&str>) -> Vec<&'l Written> {
    let (files, typed): (Vec<&Layer>, Vec<&Layer>) =
        layers.iter().partition(|layer| layer.kind.is_file());
    let bases = files.iter().flat_map(|layer| &layer.changes);
    let of_profile = |built_in: bool| {
        let files = files.iter();
        let files = files.filter(move |layer| (layer.kind == LayerKind::BuiltIn) == built_in);
        let profiles = files.flat_map(|layer| &layer.profiles);
        let chosen = profiles.filter(|candidate| Some(candidate.name.as_str()) == profile);
        chosen.flat_map(|profile| &profile.changes)
    };
    // The user's settings for every command overrule a built-in profile.
    of_profile(true)
        .chain(bases)
        .chain(of_profile(false))
        .chain(typed.iter().flat_map(|layer| &layer.changes))
        .collect()
}

fn chosen<'c>(layers: &[&Layer], choice: &'c Choice) -> Result<Option<&'c str>, Diagnostic> {
    let names: BTreeSet<&str> = layers.iter().flat_map(|layer| layer.profiles()).collect();
    match choice {
        Choice::None => Ok(None),
        Choice::Command(name) if names.contains(name.as_str()) => Ok(Some(name)),
        Choice::Other | Choice::Command(_) => Ok(names.contains(GENERIC).then_some(GENERIC)),
        Choice::Named(name, _) if names.contains(name.as_str()) => Ok(Some(name)),
        Choice::Named(name, place) => {
            let title = format!("unknown profile `{}`", shown(name));
            let problem = Diagnostic::at(title, place.clone());
            let all: Vec<String> = names
                .iter()
                .map(|name| format!("`{}`", shown(name)))
                .collect();
            Err(match meant(name, names.iter().copied()) {
                Some(near) => problem.help(format!("did you mean `{}`?", shown(near))),
                None if all.is_empty() => problem.help("no file has a [profiles] table"),
                None => problem.help(format!("expected one of {}", all.join(", "))),
            })
        }
    }
}

fn check_locks(layers: &[&Layer], wrong: &mut Diagnostics) {
    let locks: Vec<&Lock> = layers.iter().flat_map(|layer| &layer.locks).collect();
    let bound = layers.iter().filter(|layer| layer.kind > LayerKind::System);
    for written in bound.flat_map(|layer| layer.all_changes()) {
        let key = written.change.key();
        if let Some(lock) = locks.iter().find(|lock| lock.covers(key)) {
            let title = format!("{key} is locked by the administrator of this machine");
            let problem = Diagnostic::at(title, written.place.clone()).label("set here");
            let problem = problem.beside(&lock.place, "locked here");
            wrong.push(problem.help(match written.place.source().kind() {
                crate::SourceKind::File(_) | crate::SourceKind::BuiltIn(_) => {
                    "remove it from this file"
                }
                crate::SourceKind::Flag(_) => "leave the option out",
                crate::SourceKind::Environment(_) => "unset the variable",
            }));
        }
    }
}

/// Every answer adds a rule, if only for a moment.
fn check_ask(effective: &Effective, layers: &[&Layer], wrong: &mut Diagnostics) {
    let mut locks = layers.iter().flat_map(|layer| &layer.locks);
    let unknown = &effective.network.unknown;
    if let (Unknown::Ask, Origin::Written(place)) = (unknown.value, &unknown.origin)
        && let Some(lock) = locks.find(|lock| lock.covers(Key::Allow))
    {
        let title = format!(
            "{} cannot be \"ask\": {} is locked by the administrator of this machine",
            Key::Unknown,
            Key::Allow
        );
        let problem = Diagnostic::at(title, place.clone()).label("set here");
        let problem = problem.beside(&lock.place, "locked here");
        wrong.push(problem.help("every answer would add a rule; leave it at \"deny\""));
    }
}

/// A port has one meaning on each side.
fn check_ports(effective: &Effective, wrong: &mut Diagnostics) {
    let publish = &effective.network.publish;
    for (index, published) in publish.iter().enumerate() {
        let Published { outside, inside } = published.value;
        let taken = |other: &&Sourced<Published>| {
            other.value.outside == outside && other.value.inside != inside
        };
        if let Some(other) = publish.iter().take(index).find(taken) {
            let title = format!(
                "port {outside} of this machine is published twice, for {} and for {inside}",
                other.value.inside
            );
            wrong.push(two_places(title, &published.origin, &other.origin));
        }
        let both = effective
            .network
            .host_ports
            .iter()
            .find(|port| port.value == inside);
        if let Some(port) = both {
            let title = format!("port {inside} cannot be both published and a host port");
            wrong.push(
                two_places(title, &published.origin, &port.origin).help("remove one of them"),
            );
        }
    }
}

/// A device has one meaning: two files, or a file and the command line, do not share one. Else a
/// project's file could lead the name of a device elsewhere. A device with a host name has that host
/// alone: its rules are judged by the device's name, so they would count for its other hosts, too.
fn check_devices(effective: &Effective, wrong: &mut Diagnostics) {
    for (name, rules) in effective.devices.devices.iter() {
        let Some(first) = rules.first() else { continue };
        let place = |origin: &Origin| match origin {
            Origin::Written(place) => Some(place.source().name()),
            Origin::BuiltIn => None,
        };
        let other = |rule: &&Sourced<Rule>| place(&rule.origin) != place(&first.origin);
        if let Some(other) = rules.iter().find(other) {
            let title = format!("device `{name}` is defined twice");
            let problem = two_places(title, &other.origin, &first.origin);
            wrong.push(problem.help("remove one of them, or give it another name"));
        }
        let host = |rule: &Sourced<Rule>| rule.value.name().cloned();
        if let Some(other) = rules.iter().find(|rule| host(rule) != host(first)) {
            let title = format!("device `{name}` has a host name and another host");
            let problem = two_places(title, &other.origin, &first.origin);
            wrong.push(problem.help("make a device of each host"));
        }
    }
}

fn two_places(title: String, at: &Origin, beside: &Origin) -> Diagnostic {
    match (at, beside) {
        (Origin::Written(at), Origin::Written(beside)) => Diagnostic::at(title, at.clone())
            .label("here")
            .beside(beside, "and here"),
        (Origin::Written(at), Origin::BuiltIn) => Diagnostic::at(title, at.clone()),
        (Origin::BuiltIn, _) => Diagnostic::new(title),
    }
}
