//! Host names.
//!
//! A [`Hostname`] is a name by which a program can mean one host and nothing
//! else: letters, digits, hyphens and underscores between dots, in lower case,
//! short enough for DNS, and never something that a resolver would take for an
//! address (`0x7f.1`, `2130706433`). There is one form of each name, so names are
//! equal if their texts are.
//!
//! Names come from two sides. What users write is parsed ([`FromStr`]), and a
//! mistake is an error with the correction. What the program inside sends, in DNS,
//! TLS or HTTP, is read by [`Hostname::from_wire`] and [`Hostname::from_labels`]:
//! it may be in upper case and end in a dot, and what is odd in any other way
//! (NUL, `%00`, line breaks, brackets, other scripts) is no name. Both admit the
//! same set of names.

mod pattern;
mod punycode;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use pattern::{NamePattern, owned_domain};

use crate::rule::ends_in_number;
use crate::syntax::{Fault, Part, Problem, RuleError, check_characters};

/// The length of the longest name, without the dot of the root.
pub(crate) const LONGEST: usize = 253;
const LONGEST_LABEL: usize = 63;
/// Names of special use: programs and resolvers do not ask for them as for others.
const RESERVED: [&str; 10] = [
    "localhost",
    "local",
    "localdomain",
    "arpa",
    "alt",
    "invalid",
    "onion",
    "test",
    "example",
    "internal",
];

/// A valid host name. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hostname {
    /// As the head of this module says; in lower case, without a final dot.
    text: Arc<str>,
}

impl Hostname {
    /// Reads a name as TLS and HTTP carry it: one final dot is dropped.
    pub fn from_wire(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let text = text.strip_suffix('.').unwrap_or(text);
        check(Part::whole(text)).ok()?;
        Some(Self::lower_case(text))
    }

    /// Reads a name as DNS carries it, from the first label to the last before
    /// the root. A dot within a label does not make two of it.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut joined = Vec::new();
        for label in labels {
            if label.is_empty() || label.contains(&b'.') || joined.len() > LONGEST {
                return None;
            }
            if !joined.is_empty() {
                joined.push(b'.');
            }
            joined.extend_from_slice(label);
        }
        Self::from_wire(&joined)
    }

    /// Reads the name of a device, as users write it: one word. It may be that of a top-level
    /// domain (`cam`), as nobody means a host by that.
    ///
    /// # Errors
    /// If it is none, or has a meaning in DNS (RFC 6761) that it would take away.
    pub fn parse_device(text: &str) -> Result<Self, RuleError> {
        let parse = |text: &str| {
            check_characters(text)?;
            let whole = Part::whole(text);
            if text.contains('.') {
                return Err(whole.fault(Problem::DottedDevice));
            }
            if text.contains(|c: char| c.is_ascii_uppercase()) {
                let fault = whole.fault(Problem::CapitalDevice);
                return Err(fault.mend(text.to_ascii_lowercase()));
            }
            let name = hostname(whole)?;
            if RESERVED.contains(&text) {
                return Err(whole.fault(Problem::ReservedDevice(text.to_owned())));
            }
            Ok(name)
        };
        parse(text).map_err(|fault| fault.explain(text, parse))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// From left to right: the host first, the top-level domain last.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text.split('.')
    }

    /// Whether this is a proper subdomain, at whatever depth.
    pub fn is_below(&self, domain: &Hostname) -> bool {
        self.text
            .strip_suffix(domain.as_str())
            .is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether resolvers take it for the loopback of whoever asks (RFC 6761).
    pub fn is_localhost(&self) -> bool {
        self.labels().next_back() == Some("localhost")
    }

    /// The name as a browser would show it, if it has letters that are not ASCII. For people only: they
    /// may look like others.
    pub fn unicode(&self) -> Option<String> {
        let label = |label| punycode::label(label).unwrap_or_else(|| String::from(label));
        let shown: Vec<String> = self.labels().map(label).collect();
        let shown = shown.join(".");
        (shown != self.as_str()).then_some(shown)
    }

    fn lower_case(checked: &str) -> Self {
        Self {
            text: checked.to_ascii_lowercase().into(),
        }
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl FromStr for Hostname {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let parse = |text: &str| {
            check_characters(text)?;
            hostname(Part::whole(text))
        };
        parse(text).map_err(|fault| fault.explain(text, parse))
    }
}

/// Reads a name that a user wrote.
pub(crate) fn hostname(part: Part<'_>) -> Result<Hostname, Fault> {
    check(part)?;
    Ok(Hostname::lower_case(part.text))
}

fn check(part: Part<'_>) -> Result<(), Fault> {
    if part.text.is_empty() {
        return Err(part.fault(Problem::NoTarget));
    }
    if part.text.len() > LONGEST {
        return Err(part.fault(Problem::LongName(part.text.len())));
    }
    if let Some(rest) = part.text.strip_suffix('.')
        && !rest.is_empty()
    {
        return Err(part.tail(rest.len()).fault(Problem::TrailingDot).mend(""));
    }
    for label in part.split('.') {
        check_label(label, part)?;
    }
    if ends_in_number(part.text) {
        return Err(part.fault(Problem::NumericName(part.text.to_owned())));
    }
    Ok(())
}

fn check_label(label: Part<'_>, name: Part<'_>) -> Result<(), Fault> {
    let is_odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if let Some((at, odd)) = label.text.char_indices().find(|(_, c)| is_odd(*c)) {
        let place = label.tail(at).head(odd.len_utf8());
        return Err(place.fault(match odd {
            '%' => Problem::Percent,
            odd => Problem::TargetCharacter(odd),
        }));
    }
    if label.text.is_empty() {
        let fault = label.fault(Problem::EmptyLabel);
        // In other programs a dot in front means all subdomains.
        return Err(match name.text.strip_prefix('.') {
            Some(rest) if !rest.contains("..") => fault.mend_at(name.span(), format!("*.{rest}")),
            _ => fault.mend_at(name.span(), name.text.replace("..", ".")),
        });
    }
    if label.text.len() > LONGEST_LABEL {
        return Err(label.fault(Problem::LongLabel(label.text.len())));
    }
    if label.text.starts_with('-') || label.text.ends_with('-') {
        return Err(label.fault(Problem::HyphenAtEnd(label.text.to_owned())));
    }
    Ok(())
}
