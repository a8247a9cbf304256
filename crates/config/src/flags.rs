//! Options of the command line, as a layer: the same keys, types and checks as in files.

use std::sync::Arc;

use stockade_policy::Rule;

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    environment::no_forge_changes,
    keys::{Change, Key},
    layer::{Layer, LayerKind, Written},
    source::{Origin, Place, Source, SourceKind, Sourced},
    text::{meant, shown},
    value::{Fault, Given, Instead, Roots},
};

/// Options as they were typed, in their order.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    given: Vec<(Flag, Arc<Source>)>,
}

#[derive(Debug, Clone, Copy)]
enum Flag {
    /// The value is the key's, or an entry of its list.
    Key(Key),
    Off(Key),
    /// The value is `KEY=VALUE`.
    Limit,
    NoForge,
    /// The same as `--unknown ask`.
    Ask,
}

impl Flags {
    /// A key's option with its value.
    pub fn set(&mut self, key: Key, text: impl Into<String>) {
        let flag = match key.spec().flag {
            "--limit" => Flag::Limit,
            _ => Flag::Key(key),
        };
        self.push(flag, key.spec().flag, text);
    }

    /// `--no-internet`, for example
    pub fn off(&mut self, key: Key) {
        let name = format!("--{}", key.spec().off);
        self.push(Flag::Off(key), &name, "");
    }

    /// `--ask`
    pub fn ask(&mut self) {
        self.push(Flag::Ask, "--ask", "");
    }

    /// A rule that the user allowed while the session ran.
    pub fn answered(&mut self, rule: &Rule) {
        self.push(Flag::Key(Key::Allow), ANSWER, rule.to_string());
    }

    pub fn no_forge(&mut self) {
        self.push(Flag::NoForge, "--no-forge", "");
    }

    fn push(&mut self, flag: Flag, name: &str, text: impl Into<String>) {
        let source = Source::new(SourceKind::Flag(name.to_owned()), text);
        self.given.push((flag, source));
    }

    /// Whether none was typed.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// What they say.
    ///
    /// # Errors
    /// With all mistakes in them.
    pub fn layer(&self, roots: &Roots) -> Result<Layer, Diagnostics> {
        let mut layer = Layer::new(LayerKind::Flags);
        let mut wrong = Diagnostics::default();
        for (flag, source) in &self.given {
            let place = Place::whole(source);
            let change = match flag {
                Flag::Key(key) => Change::read(*key, Given::Bare(source.text()), roots),
                Flag::Off(key) => Change::read(*key, Given::Boolean(false), roots),
                Flag::Ask => Change::read(Key::Unknown, Given::Bare("ask"), roots),
                Flag::Limit => limit(source.text(), roots),
                Flag::NoForge => {
                    layer.changes.extend(no_forge_changes(&place));
                    continue;
                }
            };
            match change {
                Ok(change) => layer.changes.push(Written { change, place }),
                Err(fault) => {
                    let span = fault.span.clone().unwrap_or(place.span());
                    wrong.push(Diagnostic::fault(fault, Place::new(source, span)));
                }
            }
        }
        wrong.or(layer)
    }
}

/// Where a rule comes from that the user allowed while the session ran.
const ANSWER: &str = "your answer";

/// Such a rule, as a setting.
#[must_use]
pub fn answered(rule: Rule) -> Sourced<Rule> {
    let source = Source::new(SourceKind::Flag(ANSWER.to_owned()), rule.to_string());
    Sourced {
        value: rule,
        origin: Origin::Written(Place::whole(&source)),
    }
}

fn limit(text: &str, roots: &Roots) -> Result<Change, Fault> {
    let Some((name, given)) = text.split_once('=') else {
        return Err(Fault::new("expected KEY=VALUE, such as memory=8G"));
    };
    let Some(key) = Key::find("limits", name) else {
        let names: Vec<_> = Key::in_section("limits").map(Key::name).collect();
        let (shown, all) = (shown(name), names.join(", "));
        let fault = Fault::new(format!("unknown limit `{shown}`: expected one of {all}"));
        let near = meant(name, names).map(|near| format!("{near}={given}"));
        return Err(fault.at(0..name.len()).instead_if(near));
    };
    let before = name.len() + 1;
    Change::read(key, Given::Bare(given), roots).map_err(|mut fault| {
        let span = fault.span.take().unwrap_or(0..given.len());
        if let Some(Instead::Text(text) | Instead::Bare(text)) = &mut fault.instead {
            *text = format!("{name}={text}");
        }
        fault.at(before + span.start..before + span.end)
    })
}
