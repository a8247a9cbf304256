//! What was denied in a session, folded by what it was.

use std::{cmp::Reverse, collections::HashMap, fmt};

use stockade_policy::{Flow, Hostname, NameVerdict, Rule, Verdict};

/// What was denied.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    Flow(Flow),
    /// A question for a name.
    Name(String),
    /// A connection that may be made, but showed a name that it may not.
    Claim(Flow, String),
    /// A connection to this port of the loopback inside, where nobody listens. The host does.
    HostPort(u16),
    /// A packet of which no flow can be made.
    Packet(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(flow) => write!(f, "{flow}"),
            Self::Name(name) => write!(f, "the name {name}"),
            Self::Claim(flow, name) => write!(f, "{name} at {flow}"),
            Self::HostPort(port) => write!(f, "localhost:{port}"),
            Self::Packet(what) => f.write_str(what),
        }
    }
}

/// Why.
#[derive(Debug, Clone)]
pub enum Ruling {
    Flow(Box<Verdict>),
    Name(Box<NameVerdict>),
    /// The loopback inside is not the host's.
    HostPort(u16),
    /// Not a matter of rules.
    Odd(String),
}

/// The narrowest change of the settings that would have allowed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// A rule more.
    Allow(Rule),
    /// A port of the host's loopback.
    HostPort(u16),
}

impl Ruling {
    #[must_use]
    pub fn fix(&self) -> Option<Fix> {
        match self {
            Self::Flow(verdict) => verdict.fix().cloned().map(Fix::Allow),
            Self::Name(verdict) => verdict.fix().map(Fix::Allow),
            Self::HostPort(port) => Some(Fix::HostPort(*port)),
            Self::Odd(_) => None,
        }
    }
}

/// What is to be added to the settings: an entry of `allow`, or a key.
impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(rule) => write!(f, "{rule}"),
            Self::HostPort(port) => write!(f, "host_ports = [{port}]"),
        }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(verdict) => write!(f, "{}", verdict.reason()),
            Self::Name(verdict) => write!(f, "{verdict}"),
            Self::HostPort(_) => f.write_str(
                "nobody listens there inside; this machine does, but the loopback inside is the \
                 command's own",
            ),
            Self::Odd(why) => f.write_str(why),
        }
    }
}

/// Something that was denied, and how often.
#[derive(Debug, Clone)]
pub struct Denial {
    pub subject: Subject,
    pub ruling: Ruling,
    pub count: u64,
}

/// All denials of a session. A program inside can make any number of them, so only so
/// many are remembered; the rest are counted.
#[derive(Debug, Default)]
pub struct Denials {
    known: HashMap<Subject, (Ruling, u64)>,
    others: u64,
}

impl Denials {
    const REMEMBERED: usize = 256;

    /// Tells whether it is the first of its kind, of those that are remembered.
    pub(crate) fn record(&mut self, subject: Subject, ruling: Ruling) -> bool {
        if let Some((_, count)) = self.known.get_mut(&subject) {
            *count += 1;
            false
        } else if self.known.len() < Self::REMEMBERED {
            self.known.insert(subject, (ruling, 1));
            true
        } else {
            self.others += 1;
            false
        }
    }

    /// The most frequent first.
    #[must_use]
    pub fn by_count(&self) -> Vec<Denial> {
        let mut all: Vec<_> = self
            .known
            .iter()
            .map(|(subject, (ruling, count))| Denial {
                subject: subject.clone(),
                ruling: ruling.clone(),
                count: *count,
            })
            .collect();
        all.sort_by_key(|denial| (Reverse(denial.count), denial.subject.to_string()));
        all
    }

    /// Denied attempts of what is not remembered.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }
}

/// A name that a program inside made up, for people: no more of it than fits, and nothing
/// that a terminal would act on.
pub(crate) fn shown(name: &str) -> String {
    const SHOWN: usize = 80;
    let short: String = name.chars().take(SHOWN).collect();
    let dots = if short.len() < name.len() { "…" } else { "" };
    format!("{}{dots}", short.escape_debug())
}

/// For a name that is one.
impl From<&Hostname> for Subject {
    fn from(name: &Hostname) -> Self {
        Self::Name(name.to_string())
    }
}
