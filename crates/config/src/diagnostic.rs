//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;

use crate::{
    render,
    source::Place,
    text::{quoted, shown},
    value::{Fault, Instead},
};

/// One mistake. Its texts are fit for a terminal: whoever makes one has escaped what
/// others wrote.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    pub(crate) title: String,
    /// Where it is, and what to say there.
    pub(crate) at: Option<(Place, String)>,
    /// Other places that have to do with it.
    pub(crate) beside: Vec<(Place, String)>,
    pub(crate) help: Vec<String>,
}

impl Diagnostic {
    /// One that has no place in any text.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            at: None,
            beside: Vec::new(),
            help: Vec::new(),
        }
    }

    pub fn at(title: impl Into<String>, place: Place) -> Self {
        Self {
            at: Some((place, String::new())),
            ..Self::new(title)
        }
    }

    /// What to say right under the place.
    pub(crate) fn label(mut self, text: impl Into<String>) -> Self {
        if let Some((_, label)) = &mut self.at {
            *label = text.into();
        }
        self
    }

    pub(crate) fn beside(mut self, place: &Place, text: impl Into<String>) -> Self {
        self.beside.push((place.clone(), text.into()));
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// A fault of the value that is written at `place`.
    pub(crate) fn fault(fault: Fault, place: Place) -> Self {
        let in_file = place.is_in_file();
        let diagnostic = match fault.is_secret {
            true => Self::new(format!("{place}: {}", fault.message)),
            false => Self::at(fault.message, place),
        };
        let diagnostic = match fault.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        };
        let instead = match fault.instead {
            Some(Instead::Text(text)) if in_file => quoted(&text),
            Some(Instead::Bare(text)) if in_file => shown(&text),
            Some(Instead::Text(text) | Instead::Bare(text)) => format!("`{}`", shown(&text)),
            None => return diagnostic,
        };
        diagnostic.help(format!("write {instead}"))
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn place(&self) -> Option<&Place> {
        self.at.as_ref().map(|(place, _)| place)
    }
}

/// The mistakes that keep a configuration from being used; at least one.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// `value`, if there is nothing wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    pub fn render(&self, colours: bool) -> String {
        render::render(&self.0, colours)
    }

    /// In the order in which a reader of the file meets them.
    pub(crate) fn sort(&mut self) {
        let start = |diagnostic: &Diagnostic| diagnostic.place().map(|place| place.span.start);
        self.0.sort_by_key(start);
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}
