//! Flags of the command line, as a layer: the same keys, types and checks as in files.

use std::sync::Arc;

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    environment::no_forge_changes,
    key::{Key, Kind},
    layer::{Layer, LayerKind, Written},
    source::{Place, Source, SourceKind},
    text::{meant, shown},
    value::{self, Change, Fault, Given, Roots, VariableName},
};

/// Flags as they were typed, in their order.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    given: Vec<(Flag, Arc<Source>)>,
}

#[derive(Debug, Clone, Copy)]
enum Flag {
    /// The value is the key's, or an entry of its list.
    Key(Key),
    /// The value is `KEY=VALUE`.
    Limit,
    /// The value is `NAME=VALUE`.
    SetEnv,
    NoForge,
}

impl Flags {
    /// A key's flag with its value: for keys whose flag is theirs alone.
    pub fn set(&mut self, key: Key, text: impl Into<String>) {
        let flag = match key.spec().kind {
            Kind::Variables => Flag::SetEnv,
            _ if key.section() == "limits" => Flag::Limit,
            _ => Flag::Key(key),
        };
        self.push(flag, key.spec().flag, text);
    }

    /// `--limit KEY=VALUE`
    pub fn limit(&mut self, text: impl Into<String>) {
        self.push(Flag::Limit, Key::Memory.spec().flag, text);
    }

    /// `--no-forge`
    pub fn no_forge(&mut self) {
        self.push(Flag::NoForge, "--no-forge", "");
    }

    fn push(&mut self, flag: Flag, name: &str, text: impl Into<String>) {
        let source = Source::new(SourceKind::Flag(name.to_owned()), text);
        self.given.push((flag, source));
    }

    /// What they say.
    ///
    /// # Errors
    /// With all that is wrong with them.
    pub fn layer(&self, roots: &Roots) -> Result<Layer, Diagnostics> {
        let mut layer = Layer::new(LayerKind::Flags);
        let mut wrong = Diagnostics::default();
        for (flag, source) in &self.given {
            let place = Place::whole(source);
            let change = match flag {
                Flag::Key(key) => value::change(*key, Given::Bare(source.text()), roots),
                Flag::Limit => limit(source.text(), roots),
                Flag::SetEnv => set_env(source.text()),
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

fn limit(text: &str, roots: &Roots) -> Result<Change, Fault> {
    let names = || Key::in_section("limits").map(Key::name);
    let Some((name, given)) = text.split_once('=') else {
        return Err(Fault::new("a limit is KEY=VALUE, as in memory=8G"));
    };
    let Some(key) = Key::find("limits", name) else {
        let all: Vec<_> = names().collect();
        let message = format!(
            "`{}` is no limit: there are {}",
            shown(name),
            all.join(", ")
        );
        let fault = Fault::new(message).at(0..name.len());
        return Err(match meant(name, names()) {
            Some(near) => fault.instead(format!("{near}={given}")),
            None => fault,
        });
    };
    let before = name.len() + 1;
    value::change(key, Given::Bare(given), roots).map_err(|mut fault| {
        let span = fault.span.take().unwrap_or(0..given.len());
        if let Some(value::Instead::Text(text) | value::Instead::Bare(text)) = &mut fault.instead {
            *text = format!("{name}={text}");
        }
        fault.at(before + span.start..before + span.end)
    })
}

fn set_env(text: &str) -> Result<Change, Fault> {
    let Some((name, given)) = text.split_once('=') else {
        return Err(Fault::new(
            "a variable is set by NAME=VALUE; --pass-env passes one on",
        ));
    };
    let name_length = name.len();
    let name = VariableName::parse(name).map_err(|fault| {
        let span = fault.span.clone().unwrap_or(0..name_length);
        fault.at(span)
    })?;
    value::variable(name, Given::Bare(given))
}
