//! Names of environment variables.

use std::fmt;

use super::Fault;
use crate::text::shown;

/// A name that every shell and program takes for one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableName(String);

impl VariableName {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::new("the name of the variable is empty"));
        }
        if let Some((name, value)) = text.split_once('=')
            && Self::parse(name).is_ok()
        {
            let fault =
                Fault::new("this is a name with a value: values are given by env.set or --set-env");
            return Err(fault.at(name.len()..name.len() + 1 + value.len()));
        }
        let fits = |(at, c): (usize, char)| {
            c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit())
        };
        match text.char_indices().find(|letter| !fits(*letter)) {
            None => Ok(Self(text.to_owned())),
            Some((at, c)) => {
                let message = if c == '*' {
                    "names of variables have no wildcards: list each".to_owned()
                } else {
                    format!(
                        "`{}` cannot be in the name of a variable",
                        shown(&c.to_string())
                    )
                };
                Err(Fault::new(message).at(at..at + c.len_utf8()))
            }
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
