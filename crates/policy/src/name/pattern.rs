//! Patterns of host names, as rules have them: one name, or all below one.

use std::fmt;

use super::{Hostname, LONGEST, hostname};
use crate::syntax::{Fault, Part, Problem};

/// `example.org`, or `*.example.org`: all subdomains at any depth, but not the
/// domain itself. A wildcard is never right over a public suffix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamePattern {
    /// The name itself, or what comes after `*.`.
    name: Hostname,
    wildcard: bool,
}

impl NamePattern {
    /// Covers one name only. None if a rule for it could never have an effect.
    pub(crate) fn exactly(name: &Hostname) -> Option<Self> {
        (!name.is_localhost()).then(|| Self {
            name: name.clone(),
            wildcard: false,
        })
    }

    pub fn covers(&self, name: &Hostname) -> bool {
        if self.wildcard {
            name.is_below(&self.name)
        } else {
            *name == self.name
        }
    }

    /// The name itself, or the domain whose subdomains are meant.
    pub fn name(&self) -> &Hostname {
        &self.name
    }

    /// Whether its top-level domain is one of the internet, and not a private one (`lan`, `corp`).
    pub fn is_public(&self) -> bool {
        psl::suffix(self.name.as_str().as_bytes()).is_some_and(|suffix| suffix.is_known())
    }

    /// Whether it is known that strangers can have names somewhere below it, as in `*.amazonaws.com`: there is a
    /// public suffix (`s3.amazonaws.com`) further down, or something else where anybody can rent names.
    pub fn holds_strangers(&self) -> bool {
        let mut rented = RENTED.iter().filter_map(|it| it.parse::<Hostname>().ok());
        let is_near =
            |it: Hostname| it == self.name || it.is_below(&self.name) || self.name.is_below(&it);
        self.wildcard && (self.holds_public_suffix() || rented.any(is_near))
    }

    fn holds_public_suffix(&self) -> bool {
        use psl::Psl as _;
        let mut asked = 0_usize;
        let labels = self.name.as_str().rsplit('.').map(str::as_bytes);
        let count = labels.clone().count();
        // The list is a tree: whether there is more below a name shows in whether it asks for one label more.
        psl::List.find(
            labels
                .chain([&b""[..]])
                .inspect(|_| asked = asked.saturating_add(1)),
        );
        asked > count
    }

    pub fn is_wildcard(&self) -> bool {
        self.wildcard
    }

    /// The more, the fewer names of all that both cover.
    pub(crate) fn specificity(&self) -> impl Ord + use<> {
        (!self.wildcard, self.name.as_str().len())
    }

    pub(crate) fn parse(part: Part<'_>) -> Result<Self, Fault> {
        if part.text == "*" {
            return Err(part.fault(Problem::StarAlone));
        }
        let (name, wildcard) = match part.strip_prefix("*.") {
            Some(domain) if !domain.text.contains('*') => (hostname(domain)?, true),
            None if !part.text.contains('*') => (hostname(part)?, false),
            _ => return Err(misplaced_star(part)),
        };
        if name.is_localhost() {
            return Err(part.fault(Problem::Localhost(part.text.to_ascii_lowercase())));
        }
        // No name below a domain of this length fits into DNS.
        if part.text.len() > LONGEST {
            return Err(part.fault(Problem::LongName(part.text.len())));
        }
        if wildcard && is_public_suffix(&name) {
            return Err(part.fault(Problem::PublicSuffix(name.to_string())));
        }
        Ok(Self { name, wildcard })
    }
}

/// Storage and hosting services whose users have names of their own, and that the public suffix list lacks.
const RENTED: [&str; 11] = [
    "aliyuncs.com",
    "backblazeb2.com",
    "bcebos.com",
    "myhuaweicloud.com",
    "myqcloud.com",
    "oraclecloud.com",
    "qiniucs.com",
    "r2.cloudflarestorage.com",
    "storage.googleapis.com",
    "volces.com",
    "wasabisys.com",
];

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wildcard {
            f.write_str("*.")?;
        }
        write!(f, "{}", self.name)
    }
}

/// What comes after the last star is the domain that was meant, if anything is.
fn misplaced_star(part: Part<'_>) -> Fault {
    let fault = part.fault(Problem::Star);
    match part.text.rsplit_once('*') {
        Some((_, rest)) => fault.mend(format!("*.{}", rest.trim_start_matches('.'))),
        None => fault,
    }
}

/// The part of a name that has one owner: `example.co.uk` of `www.example.co.uk`.
#[must_use]
pub fn owned_domain(name: &str) -> &str {
    psl::domain_str(name).unwrap_or(name)
}

/// Whether strangers can have names right below this one. Top-level domains that
/// the list does not know are private ones (`lan`, `corp`), with one owner.
fn is_public_suffix(name: &Hostname) -> bool {
    let whole_is_suffix = |name: &str| {
        psl::suffix(name.as_bytes())
            .is_some_and(|suffix| suffix.is_known() && suffix == name.as_bytes())
    };
    // The list may hold the names below instead of the name: `*.ck`.
    whole_is_suffix(name.as_str()) || whole_is_suffix(&format!("any.{name}"))
}
