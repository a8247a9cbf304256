//! What the user wants, as a whole.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::discovery::Discovery;
use crate::flow::Flow;
use crate::name::Hostname;
use crate::rule::Rule;
use crate::rules::RuleSet;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether the internet is open. If not, only the rules are.
    pub internet: bool,
    pub rules: RuleSet,
    /// The searches for devices that are passed on.
    pub discovery: Vec<Discovery>,
}

impl Policy {
    /// The same with one rule more, the last.
    #[must_use]
    pub fn with(&self, rule: Rule) -> Self {
        Self {
            rules: self.rules.iter().cloned().chain([rule]).collect(),
            discovery: self.discovery.clone(),
            ..*self
        }
    }

    /// By which transports a rule names this address as a name server. A rule for a network does
    /// not: nobody has said that a name server is in it.
    #[must_use]
    pub fn name_server(&self, address: IpAddr) -> NameServer {
        let is_named = |flow: Option<Flow>| {
            let mut rules = self.rules.iter();
            flow.is_some_and(|flow| rules.any(|rule| rule.is_for(address) && rule.serves(&flow)))
        };
        let server = SocketAddr::new(address, DNS);
        NameServer {
            udp: is_named(Flow::udp(server)),
            tcp: is_named(Flow::tcp(server)),
        }
    }

    /// Whether the name may lead to private addresses, for some protocol and port.
    #[must_use]
    pub fn is_near(&self, name: &Hostname) -> bool {
        self.rules.has_near(name)
    }

    /// Whether any name may.
    #[must_use]
    pub fn has_near_names(&self) -> bool {
        self.rules.iter().any(Rule::is_near)
    }

    /// Rules that change no decision as the policy stands: each with its number
    /// and the reason. To be warned of, as their author believes otherwise.
    pub fn idle_rules(&self) -> impl Iterator<Item = (usize, &Rule, Idle)> {
        let mut seen = HashMap::new();
        self.rules
            .iter()
            .enumerate()
            .filter_map(move |(index, rule)| {
                let first = *seen.entry(rule).or_insert(index);
                if first != index {
                    Some((index, rule, Idle::Repeated { first }))
                } else if self.internet && rule.name().is_some() && !rule.is_near() {
                    Some((index, rule, Idle::InternetOpen))
                } else {
                    None
                }
            })
    }
}

const DNS: u16 = 53;

/// How a name server that a rule names can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NameServer {
    pub udp: bool,
    pub tcp: bool,
}

impl NameServer {
    /// Whether it can be asked at all.
    #[must_use]
    pub fn is_named(self) -> bool {
        self.udp || self.tcp
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// The rule of this number says the same.
    Repeated { first: usize },
    /// Rules of `allow` for names open the internet only, and that is open.
    InternetOpen,
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Idle::Repeated { .. } => "an earlier rule says the same",
            Idle::InternetOpen => {
                "the internet is open already. To allow only your rules, close it (--no-internet, \
                 `internet = false`); for private hosts use --near (`near`)"
            }
        })
    }
}
