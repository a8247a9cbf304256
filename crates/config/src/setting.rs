//! The forms that a setting has: one value, one or none, a list, a table of variables.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    keys::Kind,
    source::{Origin, Sourced},
    text::quoted,
    value::{ConfigValue, VariableName},
};

/// A value as people and other programs read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// In a table, the name it stands for.
    pub name: Option<String>,
    pub value: Value,
    pub origin: Origin,
}

impl Shown {
    fn of<T: ConfigValue>(setting: &Sourced<T>) -> Self {
        Self {
            name: None,
            value: setting.value.to_json(),
            origin: setting.origin.clone(),
        }
    }

    pub fn literal(&self) -> String {
        literal(&self.value)
    }
}

/// A value as TOML has it, fit for a terminal.
pub fn literal(value: &Value) -> String {
    match value.as_str() {
        Some(text) => quoted(text),
        None => value.to_string(),
    }
}

pub(crate) trait Setting {
    const KIND: Kind;
    /// What one change sets or adds.
    type Item;
    fn set(&mut self, value: Self::Item, origin: Origin);
    /// Drops all entries. A scalar always has a value.
    fn clear(&mut self) {}
    fn shown(&self) -> Vec<Shown>;
    /// Whether `other` is higher, or has an entry that this has not.
    fn is_exceeded_by(&self, other: &Self) -> bool;
}

impl<T: ConfigValue + PartialOrd> Setting for Sourced<T> {
    const KIND: Kind = T::KIND;
    type Item = T;

    fn set(&mut self, value: T, origin: Origin) {
        *self = Self { value, origin };
    }

    fn shown(&self) -> Vec<Shown> {
        vec![Shown::of(self)]
    }

    fn is_exceeded_by(&self, other: &Self) -> bool {
        other.value > self.value
    }
}

/// A limit; there is none where nobody sets it.
impl<T: ConfigValue + PartialOrd> Setting for Option<Sourced<T>> {
    const KIND: Kind = T::KIND;
    type Item = T;

    fn set(&mut self, value: T, origin: Origin) {
        *self = Some(Sourced { value, origin });
    }

    fn shown(&self) -> Vec<Shown> {
        self.iter().map(Shown::of).collect()
    }

    fn is_exceeded_by(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(this), Some(other)) => this.is_exceeded_by(other),
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}

impl<T: ConfigValue + PartialEq> Setting for Vec<Sourced<T>> {
    const KIND: Kind = Kind::List(&T::KIND);
    type Item = T;

    fn set(&mut self, value: T, origin: Origin) {
        self.push(Sourced { value, origin });
    }

    fn clear(&mut self) {
        Self::clear(self);
    }

    fn shown(&self) -> Vec<Shown> {
        self.iter().map(Shown::of).collect()
    }

    fn is_exceeded_by(&self, other: &Self) -> bool {
        let is_new = |entry: &Sourced<T>| self.iter().all(|known| known.value != entry.value);
        other.iter().any(is_new)
    }
}

impl Setting for BTreeMap<VariableName, Sourced<String>> {
    const KIND: Kind = Kind::Variables;
    type Item = (VariableName, String);

    fn set(&mut self, (name, value): Self::Item, origin: Origin) {
        self.insert(name, Sourced { value, origin });
    }

    fn shown(&self) -> Vec<Shown> {
        let shown = |(name, setting): (&VariableName, &Sourced<String>)| Shown {
            name: Some(name.to_string()),
            value: setting.value.as_str().into(),
            origin: setting.origin.clone(),
        };
        self.iter().map(shown).collect()
    }

    fn is_exceeded_by(&self, other: &Self) -> bool {
        let is_known = |(name, setting): (&VariableName, &Sourced<String>)| {
            self.get(name)
                .is_some_and(|known| known.value == setting.value)
        };
        !other.iter().all(is_known)
    }
}
