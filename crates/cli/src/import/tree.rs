//! JSON and TOML as one kind of tree, in which every value knows its place. Pure.
//!
//! Whoever wrote the file may be hostile: the depth is bounded, and a name that is there twice is
//! an error, because programs differ in which one counts.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use stockade_config::{Diagnostic, Diagnostics, Place, Source, shown, toml_table};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

const DEEPEST: usize = 64;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Null,
    Flag(bool),
    Number,
    Text(String),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<(Name, Node)>),
}

#[derive(Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) place: Place,
}

impl Node {
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else {
            return None;
        };
        let mut entries = entries.iter();
        entries
            .find(|(known, _)| known.text == name)
            .map(|(_, node)| node)
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, Diagnostics> {
        Err(Diagnostic::at(format!("expected {expected}"), self.place.clone()).into())
    }

    pub(super) fn flag(&self) -> Result<bool, Diagnostics> {
        match self.value {
            Value::Flag(flag) => Ok(flag),
            _ => self.wrong("true or false"),
        }
    }

    pub(super) fn text(&self) -> Result<&str, Diagnostics> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => self.wrong("a string"),
        }
    }

    pub(super) fn table(&self) -> Result<&[(Name, Self)], Diagnostics> {
        match &self.value {
            Value::Table(entries) => Ok(entries),
            _ => self.wrong("a table of names and values"),
        }
    }

    /// A list of strings, each with its place.
    pub(super) fn texts<'n>(&'n self) -> Result<Vec<(&'n str, &'n Place)>, Diagnostics> {
        let Value::List(entries) = &self.value else {
            return self.wrong("a list");
        };
        let text = |node: &'n Self| Ok((node.text()?, &node.place));
        entries.iter().map(text).collect()
    }

    /// Whether it gives anything: it is there, not false and not empty.
    pub(super) fn says_something(&self) -> bool {
        match &self.value {
            Value::Null | Value::Flag(false) => false,
            Value::List(entries) => !entries.is_empty(),
            Value::Table(entries) => !entries.is_empty(),
            Value::Flag(true) | Value::Number | Value::Text(_) => true,
        }
    }
}

pub(super) fn toml(source: &Arc<Source>) -> Result<Node, Diagnostics> {
    let table = toml_table(source)?;
    Ok(Node {
        place: Place::new(source, 0..0),
        value: of_table(source, table.get_ref()),
    })
}

fn of_table(source: &Arc<Source>, table: &DeTable<'_>) -> Value {
    let entry = |(name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let place = Place::new(source, name.span());
        let text = name.get_ref().clone().into_owned();
        (Name { text, place }, of_value(source, value))
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|(name, _)| name.place.span().start);
    Value::Table(entries)
}

fn of_value(source: &Arc<Source>, spanned: &Spanned<DeValue<'_>>) -> Node {
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Array(entries) => Value::List(
            entries
                .iter()
                .map(|entry| of_value(source, entry))
                .collect(),
        ),
        DeValue::Table(table) => of_table(source, table),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => Value::Number,
    };
    let place = Place::new(source, spanned.span());
    Node { place, value }
}

pub(super) fn json(source: &Arc<Source>) -> Result<Node, Diagnostics> {
    let mut reader = Json { source, at: 0 };
    let node = reader.value(0)?;
    match reader.next() {
        None => Ok(node),
        Some(_) => reader.wrong("expected the end of the file", 1),
    }
}

struct Json<'s> {
    source: &'s Arc<Source>,
    at: usize,
}

impl Json<'_> {
    fn rest(&self) -> &str {
        self.source.text().get(self.at..).unwrap_or_default()
    }

    /// The next character that is no white space.
    fn next(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.rest().chars().next()
    }

    /// A mistake in this many bytes from here.
    fn wrong<T>(&self, title: &str, length: usize) -> Result<T, Diagnostics> {
        let place = Place::new(self.source, self.at..self.at + length);
        Err(Diagnostic::at(title, place).into())
    }

    fn takes(&mut self, wanted: char) -> bool {
        let found = self.next() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Node, Diagnostics> {
        if depth > DEEPEST {
            return self.wrong("the values are nested too deeply", 1);
        }
        let first = self.next();
        let start = self.at;
        let value = match first {
            Some('{') => Value::Table(self.members(depth)?),
            Some('[') => Value::List(self.entries(depth)?),
            Some('"') => Value::Text(self.string()?),
            Some('/' | '#') => return self.wrong("JSON has no comments", 1),
            _ => self.word()?,
        };
        let place = Place::new(self.source, start..self.at);
        Ok(Node { place, value })
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<Node>, Diagnostics> {
        self.at += 1;
        let mut entries = Vec::new();
        while !self.takes(']') {
            if !entries.is_empty() && !self.takes(',') {
                return self.wrong("expected `,` or `]`", 1);
            }
            entries.push(self.value(depth + 1)?);
        }
        Ok(entries)
    }

    fn members(&mut self, depth: usize) -> Result<Vec<(Name, Node)>, Diagnostics> {
        self.at += 1;
        let mut members: Vec<(Name, Node)> = Vec::new();
        let mut names = BTreeSet::new();
        while !self.takes('}') {
            if !members.is_empty() && !self.takes(',') {
                return self.wrong("expected `,` or `}`", 1);
            }
            if self.next() != Some('"') {
                return self.wrong("expected a name in quotes", 1);
            }
            let start = self.at;
            let text = self.string()?;
            let place = Place::new(self.source, start..self.at);
            if !names.insert(text.clone()) {
                let title = format!("duplicate `{}`", shown(&text));
                return Err(Diagnostic::at(title, place).into());
            }
            if !self.takes(':') {
                return self.wrong("expected `:`", 1);
            }
            let node = self.value(depth + 1)?;
            members.push((Name { text, place }, node));
        }
        Ok(members)
    }

    fn string(&mut self) -> Result<String, Diagnostics> {
        let mut escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else {
            return self.wrong("the string does not end", 1);
        };
        let Ok(text) = serde_json::from_str(self.rest().get(..=end).unwrap_or_default()) else {
            return self.wrong(
                "invalid string: a bad escape or a control character",
                end + 1,
            );
        };
        self.at += end + 1;
        Ok(text)
    }

    /// `true`, `false`, `null`, or a number.
    fn word(&mut self) -> Result<Value, Diagnostics> {
        let part = |c: char| c.is_alphanumeric() || "+-.".contains(c);
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches(part).len();
        let value = match serde_json::from_str(rest.get(..length).unwrap_or_default()) {
            Ok(serde_json::Value::Null) => Value::Null,
            Ok(serde_json::Value::Bool(flag)) => Value::Flag(flag),
            Ok(_) => Value::Number,
            Err(_) => return self.wrong("expected a value", length.max(1)),
        };
        self.at += length;
        Ok(value)
    }
}
