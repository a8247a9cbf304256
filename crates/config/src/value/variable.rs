//! Names of environment variables.

use std::fmt;

use serde_json::Value;

use super::{ConfigValue, Fault, Given, Roots};
use crate::{keys::Kind, text::shown};

/// A name that every shell and program takes for one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableName(String);

impl VariableName {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::new("the variable name is empty"));
        }
        if let Some((name, value)) = text.split_once('=')
            && Self::parse(name).is_ok()
        {
            let fault =
                Fault::new("expected a variable name only; set values with env.set or --set-env");
            return Err(fault.at(name.len()..name.len() + 1 + value.len()));
        }
        let fits = |(at, c): (usize, char)| {
            c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit())
        };
        match text.char_indices().find(|letter| !fits(*letter)) {
            None => Ok(Self(text.to_owned())),
            Some((at, c)) => {
                let message = if c == '*' {
                    "variable names cannot have wildcards; list each variable".to_owned()
                } else {
                    let c = shown(&c.to_string());
                    format!("invalid character `{c}` in a variable name")
                };
                Err(Fault::new(message).at(at..at + c.len_utf8()))
            }
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ConfigValue for VariableName {
    const KIND: Kind = Kind::Variable;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        Self::parse(given.text().ok_or_else(wrong)?)
    }

    fn to_json(&self) -> Value {
        self.as_str().into()
    }
}

/// A variable and its value: `NAME=VALUE` on the command line.
impl ConfigValue for (VariableName, String) {
    const KIND: Kind = Kind::Variables;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let Given::Bare(text) = given else {
            return Err(wrong());
        };
        let Some((name, value)) = text.split_once('=') else {
            let message = "expected NAME=VALUE; use --pass-env to pass a variable on";
            return Err(Fault::new(message));
        };
        let name_span = 0..name.len();
        let name = VariableName::parse(name).map_err(|fault| match fault.span {
            Some(_) => fault,
            None => fault.at(name_span),
        })?;
        set(name, Given::Bare(value))
    }

    fn to_json(&self) -> Value {
        self.1.as_str().into()
    }
}

/// A variable with the value that a file gives it.
pub(crate) fn set(name: VariableName, given: Given<'_>) -> Result<(VariableName, String), Fault> {
    let Some(value) = given.text() else {
        let fault = Fault::new(format!(
            "invalid value of a variable: expected a string, found {given}"
        ));
        return Err(match given {
            Given::Integer(Some(number)) => fault.instead(number.to_string()),
            Given::Boolean(boolean) => fault.instead(boolean.to_string()),
            _ => fault,
        });
    };
    match value.find('\0') {
        Some(at) => Err(Fault::new("a variable cannot hold a NUL character").at(at..at + 1)),
        None => Ok((name, value.to_owned())),
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
