//! Why a flow is allowed or denied.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use ipnet::IpNet;

use super::Restriction;
use crate::discovery::Discovery;
use crate::flow::Flow;
use crate::name::Hostname;
use crate::registry::{self, Special};
use crate::rule::Rule;

/// Why a flow is allowed or denied. `Display` of the [`Verdict`](super::Verdict) is a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Allowed: a user's rule for addresses covers it.
    Rule { index: usize, rule: Rule },
    /// Allowed: it is on the internet, which is open.
    Internet,
    /// Allowed: it is on the internet, which is open, and the host reaches it through its proxy.
    InternetByProxy,
    /// Allowed: a user's rule covers a name of it. It is on the internet, or the rule is of `near`.
    Name {
        name: Hostname,
        index: usize,
        rule: Rule,
    },
    /// Allowed: a search for devices, for these alone.
    Search {
        devices: Vec<SocketAddr>,
        /// Those that the user named by a host name, by their own names. Whether it goes where these
        /// are is decided when that is known.
        named: Vec<Hostname>,
    },
    /// Denied: a search for devices, which the user has not let pass.
    SearchOff {
        discovery: Discovery,
        /// Whether a rule names a device that it could go to.
        has_devices: bool,
    },
    /// Denied: a search for devices, of which no rule names one.
    NobodyToAsk {
        /// A rule for a network, which is not asked as a whole, or for names of no device.
        too_wide: Option<Rule>,
    },
    /// Denied: a datagram to a program that searches, from somewhere that no rule covers.
    OtherAnswer,
    /// Denied: out of reach from any jail.
    NeverReachable(Special),
    /// Denied: the broadcast address of a subnet of the host's. A rule may hold it, in vain.
    Broadcast { idle: Option<Rule> },
    /// Denied: only a rule that means this destination would allow it.
    Restricted {
        restriction: Restriction,
        /// A rule that holds the address, but does not mean it.
        too_wide: Option<Rule>,
    },
    /// Denied: the internet is closed and no rule covers the flow, nor a name of its destination.
    NotListed { name: Option<Hostname> },
    /// Denied: not on the internet.
    Near(Near),
    /// Denied: not on the internet, to which a rule that covers its name is limited.
    Inward {
        near: Near,
        name: Hostname,
        index: usize,
        rule: Rule,
    },
    /// Denied: of rules for names, none can admit what does not show its name.
    Quic { name: Hostname },
    /// Denied: the program says a name under which it was not given the destination.
    OtherName { claimed: Hostname },
    /// Denied: the host reaches it through its proxy, which carries TCP alone.
    NotThroughProxy,
    /// Denied: a global address that the host cannot reach either.
    NoRoute,
}

impl Reason {
    /// A short name that stays the same over versions, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::Rule { .. } => "rule",
            Reason::Internet | Reason::InternetByProxy => "internet",
            Reason::Name { .. } => "name",
            Reason::Search { .. } => "discovery",
            Reason::SearchOff { .. } => "discovery-off",
            Reason::NobodyToAsk { .. } => "no-device",
            Reason::OtherAnswer => "other-answer",
            Reason::NeverReachable(_) => "never-reachable",
            Reason::Broadcast { .. } => "broadcast-address",
            Reason::Restricted { restriction, .. } => restriction.name(),
            Reason::NotListed { .. } => "internet-off",
            Reason::Near(near) => near.name(),
            Reason::Inward { .. } => "name-points-inward",
            Reason::Quic { .. } => "quic",
            Reason::OtherName { .. } => "other-name",
            Reason::NotThroughProxy => "not-through-proxy",
            Reason::NoRoute => "no-route",
        }
    }

    /// The reason why this flow is allowed or denied, as a sentence.
    pub(super) fn say(
        &self,
        flow: &Flow,
        device: Option<&Hostname>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let address = flow.destination();
        let destination = match device {
            Some(device) => format!("{address} (device {device})"),
            None => address.to_string(),
        };
        match self {
            Reason::Rule { rule, .. } => write!(f, "rule `{rule}` covers {destination}"),
            Reason::Internet => write!(
                f,
                "{destination} is a global address, which the host reaches through its default route"
            ),
            Reason::InternetByProxy => write!(
                f,
                "{destination} is on the internet, which the host reaches through its proxy"
            ),
            Reason::Name { name, rule, .. } => {
                let rule = rule.described();
                write!(f, "{rule} covers {name}, which is at {destination}")
            }
            Reason::Search { devices, named } => {
                let addresses = devices.iter().map(|it| it.ip().to_string());
                let named = named.iter().map(|device| format!("device {device}"));
                let devices: Vec<_> = addresses.chain(named).collect();
                write!(
                    f,
                    "the search goes to each device that a rule names for it, and to nobody else: {}",
                    devices.join(", ")
                )
            }
            Reason::SearchOff { discovery, .. } => write!(
                f,
                "a search for devices goes to everybody on the network, and does not leave the jail; \
                 `discovery = [\"{discovery}\"]` sends it to the devices that rules allow, and to \
                 nobody else"
            ),
            Reason::NobodyToAsk { too_wide } => {
                let port = flow.port().map_or(0, NonZeroU16::get);
                write!(f, "no rule names a device for searches at UDP port {port}")?;
                match too_wide {
                    Some(rule) if rule.is_near() => {
                        write!(
                            f,
                            "; near rule `{rule}` is for names, which are not searched"
                        )?;
                    }
                    Some(rule) => {
                        write!(f, "; rule `{rule}` is for a network, which is not searched")?;
                    }
                    None => {}
                }
                f.write_str(": allow each device by its address, or name it in `[devices]`")
            }
            Reason::OtherAnswer => write!(
                f,
                "{flow} answered a search for devices, but no rule covers it; a device may have \
                 several addresses and ports, but any host of the network can send such an answer"
            ),
            Reason::NeverReachable(special) => {
                write!(f, "{destination} {special}, which nothing inside can reach")?;
                f.write_str(special.instead())
            }
            Reason::Broadcast { idle } => {
                write!(f, "{destination} {BROADCAST}")?;
                match idle {
                    Some(rule) => write!(f, "; rule `{rule}` does not change that"),
                    None => Ok(()),
                }
            }
            Reason::Restricted {
                restriction,
                too_wide,
            } => {
                write!(f, "{destination} {restriction}")?;
                match too_wide {
                    Some(rule) => write!(f, "; rule `{rule}` is too wide to cover that"),
                    None => Ok(()),
                }
            }
            Reason::NotListed { name } => {
                write!(f, "the internet is closed, and no rule covers {flow}")?;
                match name {
                    Some(name) => write!(f, " ({name})"),
                    None => Ok(()),
                }
            }
            Reason::Near(near) => write!(f, "{destination} {near}"),
            Reason::Inward {
                near, name, rule, ..
            } => {
                let but = if !rule.is_near() && near.is_open_to_names(address) {
                    "only rules of `near` open private addresses by a name"
                } else {
                    "no name opens an address of this kind"
                };
                let rule = rule.described();
                write!(
                    f,
                    "{name} points inward: {destination} {near}; {rule} covers the name, but {but}"
                )
            }
            Reason::Quic { name } => write!(
                f,
                "QUIC to {destination} hides whether it is for {name}, so no rule for a name admits \
                 it; programs fall back to TCP"
            ),
            Reason::OtherName { claimed } => write!(
                f,
                "the program asks for {claimed} at {destination}, which it was given under other names"
            ),
            Reason::NotThroughProxy => write!(
                f,
                "the internet is reached through a proxy, which carries TCP alone; `no_proxy` \
                 lists what this machine reaches without it"
            ),
            Reason::NoRoute => write!(f, "the host has no route to {destination}"),
        }
    }
}

/// What an address is that stands for a whole subnet. To be read after it.
pub const BROADCAST: &str =
    "is a broadcast address; broadcasts do not leave the jail: name the device's own address";

/// What keeps a destination from being on the internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near {
    /// It is no global address.
    Special(Special),
    /// It is of a network that the host knows.
    Known(IpNet),
}

impl Near {
    /// Whether a rule of `near` for a name opens it.
    pub(crate) fn is_open_to_names(self, destination: IpAddr) -> bool {
        // One that carries another address inside is not what it seems.
        let is_plain = registry::embedded(destination).next().is_none();
        is_plain
            && match self {
                Near::Special(special) => special.is_private(),
                Near::Known(_) => true,
            }
    }

    fn name(self) -> &'static str {
        match self {
            Near::Special(_) => "special-address",
            Near::Known(_) => "known-network",
        }
    }
}

/// To be read after the destination.
impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Near::Special(special) => write!(f, "{special}"),
            Near::Known(network) => write!(
                f,
                "is reached through {network}, not through the host's default route"
            ),
        }
    }
}
