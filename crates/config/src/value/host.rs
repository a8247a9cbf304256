//! Host names of forges.

use std::fmt;

use serde_json::Value;

use super::{ConfigValue, Fault, Given, Roots};
use crate::{keys::Kind, text::shown};

/// A host name in lower case. It has no wildcard: a token is not for whole domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

impl ConfigValue for HostName {
    const KIND: Kind = Kind::Host;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        parse(given.text().ok_or_else(wrong)?).map(Self)
    }

    fn to_json(&self) -> Value {
        self.0.as_str().into()
    }
}

impl HostName {
    /// # Errors
    /// If it is no host name. The reason does not repeat it.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse(text).map(Self).map_err(|fault| fault.message)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn parse(text: &str) -> Result<String, Fault> {
    if text.is_empty() {
        return Err(Fault::new("the host name is empty"));
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
        let fault = Fault::new("expected a host name, found a URL");
        return Err(fault.instead_if(parse(host).ok()));
    }
    if text.len() > 253 {
        return Err(Fault::new("the host name is longer than 253 bytes"));
    }
    let mut start = 0;
    for label in text.split('.') {
        let span = start..start + label.len();
        start = span.end + 1;
        if label.is_empty() || label.len() > 63 {
            let message = "each part of a host name must have 1 to 63 characters";
            return Err(Fault::new(message).at(span));
        }
        let odd = label
            .char_indices()
            .find(|(_, c)| !c.is_ascii_alphanumeric() && *c != '-');
        if let Some((at, c)) = odd {
            let at = span.start + at;
            let message = format!(
                "invalid character `{}` in a host name",
                shown(&c.to_string())
            );
            return Err(Fault::new(message).at(at..at + c.len_utf8()));
        }
        if label.starts_with('-') || label.ends_with('-') {
            let message = "no part of a host name can begin or end with a hyphen";
            return Err(Fault::new(message).at(span));
        }
    }
    Ok(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_taken_in_lower_case() {
        assert_eq!(parse("Git.Example.ORG").as_deref(), Ok("git.example.org"));
        assert_eq!(parse("forge").as_deref(), Ok("forge"));
    }

    #[test]
    fn what_is_no_host_name_is_refused() {
        for text in [
            "",
            ".",
            "a..b",
            "a.",
            "*.example.org",
            "a b",
            "git@x",
            "-a.b",
            "a_b",
            "ä.de",
            "a\0",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"a.".repeat(127)).is_err());
        assert!(parse(&"a".repeat(64)).is_err());
    }
}
