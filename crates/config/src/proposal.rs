//! What a `.stockade.toml` would change, for a person to agree to or not.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    compare::{Difference, differences},
    diagnostic::{Diagnostic, Diagnostics},
    files::workspace_file,
    layer::{Layer, Written},
    load::Loader,
    merge::{Choice, merge},
    source::Source,
    trust::{Record, Trust},
};

/// A file that could be trusted.
#[derive(Debug)]
pub struct Proposal {
    /// What agreeing to it records.
    pub record: Record,
    /// It is what was agreed to already.
    pub trusted: bool,
    /// For all commands first, then for each profile that the file has.
    pub effects: Vec<Effect>,
}

#[derive(Debug)]
pub struct Effect {
    /// `None`: for all commands.
    pub profile: Option<String>,
    pub differences: Vec<Difference>,
    /// What it says that changes nothing now, because other files say the same, or
    /// overrule it; as text with its line.
    pub idle: Vec<String>,
}

impl Loader {
    /// What the workspace's file would change; none if there is no such file. What is
    /// typed or in the environment plays no part.
    ///
    /// # Errors
    /// If the file, or any other, cannot be used.
    pub fn proposal(&self) -> Result<Option<Proposal>, Diagnostics> {
        let Some(text) = workspace_file(&self.places.workspace_file())? else {
            return Ok(None);
        };
        let layer = self.parse_workspace(&text)?;
        let record = match std::str::from_utf8(&text.bytes) {
            Ok(text) => Record::of(text),
            Err(error) => return Err(Diagnostic::new(error.to_string()).into()),
        };
        let read = self.read_files();
        read.wrong.or(())?;
        let names: BTreeSet<&str> = layer.profiles().collect();
        let profiles = std::iter::once(None).chain(names.into_iter().map(Some));
        let effects = profiles.map(|profile| effect(&read.layers, &layer, profile));
        let trusted = Trust::new(&self.places)
            .recorded()?
            .is_some_and(|known| known == record);
        Ok(Some(Proposal {
            trusted,
            effects: effects.collect::<Result<_, _>>()?,
            record,
        }))
    }
}

fn effect(others: &[Layer], layer: &Layer, profile: Option<&str>) -> Result<Effect, Diagnostics> {
    // A profile that only this file has is none before.
    let choice = profile.map_or(Choice::None, |name| Choice::Command(name.to_owned()));
    let before = merge(others, &choice)?;
    let all: Vec<Layer> = others.iter().chain([layer]).cloned().collect();
    let after = merge(&all, &choice)?;
    let differences = differences(&before, &after);
    let said = match profile {
        None => &layer.changes,
        Some(name) => match layer.profiles.iter().find(|profile| profile.name == name) {
            Some(profile) => &profile.changes,
            None => &layer.changes,
        },
    };
    let changes_nothing = |written: &&Written| {
        let (key, name, value) = written.change.parts();
        // A device is shown with all of its rules.
        let is_in = |after: &Option<Value>| match (after, &value) {
            (Some(Value::Array(all)), Some(one)) => all.contains(one),
            (after, value) => after == value,
        };
        !differences.iter().any(|difference| {
            difference.key == key && difference.name == name && is_in(&difference.after)
        })
    };
    let line = |written: &Written| {
        let source: &Source = written.place.source();
        let span = written.place.span();
        let text = source.text().get(span).unwrap_or_default();
        format!(
            "{} {} (line {})",
            written.change.key(),
            crate::shown(text),
            written.place.line()
        )
    };
    let idle = said.iter().filter(changes_nothing).map(line).collect();
    Ok(Effect {
        profile: profile.map(str::to_owned),
        differences,
        idle,
    })
}
