//! Variables that users of earlier sandboxes have set, as aliases of keys.

use std::{ffi::OsString, sync::Arc};

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    keys::{Change, Key},
    layer::{Layer, LayerKind, Written},
    source::{Place, Source, SourceKind},
    value::{Given, Mode, Roots},
};

const EGRESS_JAIL: &str = "CLAUDE_SANDBOX_EGRESS_JAIL";
const ALLOW_IP: &str = "CLAUDE_SANDBOX_ALLOW_IP";
const NO_FORGE: &str = "CLAUDE_SANDBOX_NO_FORGE";

/// What the environment says. `variable` looks it up.
///
/// - `CLAUDE_SANDBOX_EGRESS_JAIL=0` is `network.mode = "host"`. Any other value says that
///   the jail is wanted, which nobody has to say.
/// - `CLAUDE_SANDBOX_ALLOW_IP`, rules with blanks or commas between, is `network.allow`.
/// - `CLAUDE_SANDBOX_NO_FORGE`, unless empty or `0`, turns all forges off.
///
/// # Errors
/// If a variable is set to what its key cannot be.
pub fn layer(
    variable: impl Fn(&str) -> Option<OsString>,
    roots: &Roots,
) -> Result<Layer, Diagnostics> {
    let mut layer = Layer::new(LayerKind::Environment);
    let mut wrong = Diagnostics::default();
    let mut read = |name: &'static str| -> Option<Arc<Source>> {
        match variable(name)?.into_string() {
            Ok(text) => Some(Source::new(SourceKind::Environment(name), text)),
            Err(_) => {
                wrong.push(Diagnostic::new(format!("the variable {name} is not UTF-8")));
                None
            }
        }
    };
    let [jail, allow, no_forge] = [EGRESS_JAIL, ALLOW_IP, NO_FORGE].map(&mut read);
    if let Some(source) = jail.filter(|source| source.text() == "0") {
        let (change, place) = (Change::Mode(Mode::Host), Place::whole(&source));
        layer.changes.push(Written { change, place });
    }
    if let Some(source) = no_forge.filter(|source| !["", "0"].contains(&source.text())) {
        let place = Place::whole(&source);
        layer.changes.extend(no_forge_changes(&place));
    }
    if let Some(source) = allow {
        for span in words(source.text()) {
            let word = source.text().get(span.clone()).unwrap_or_default();
            match Change::read(Key::Allow, Given::Bare(word), roots) {
                Ok(change) => {
                    let place = Place::new(&source, span);
                    layer.changes.push(Written { change, place });
                }
                Err(mut fault) => {
                    let part = fault.span.take().unwrap_or(0..word.len());
                    let part = span.start + part.start..span.start + part.end;
                    wrong.push(Diagnostic::fault(fault, Place::new(&source, part)));
                }
            }
        }
    }
    wrong.or(layer)
}

/// All forges off, whatever earlier layers say.
pub(crate) fn no_forge_changes(place: &Place) -> impl Iterator<Item = Written> {
    let all = [
        Change::Github(false),
        Change::Gitlab(false),
        Change::Clear(Key::ForgeHosts),
    ];
    let place = place.clone();
    all.into_iter().map(move |change| Written {
        change,
        place: place.clone(),
    })
}

fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut words = Vec::new();
    let mut start = 0;
    for part in text.split_inclusive(|c: char| c.is_whitespace() || c == ',') {
        let word = part.trim_end_matches(|c: char| c.is_whitespace() || c == ',');
        if !word.is_empty() {
            words.push(start..start + word.len());
        }
        start += part.len();
    }
    words
}
