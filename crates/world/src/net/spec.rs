//! What a host is to be, before there is one.

use std::net::IpAddr;

use super::lan;

/// A host: a name for the test, addresses, and where it is wired to.
#[derive(Clone, Debug)]
pub struct HostSpec {
    pub(crate) name: String,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) networks: Vec<String>,
    pub(crate) dns_names: Vec<String>,
    pub(crate) place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind the router, reached by the laptop's default route.
    Internet,
    /// On the laptop's own subnet.
    Lan,
    /// On a bridge of the laptop itself, as a container is.
    Bridge(String),
}

impl HostSpec {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            addresses: Vec::new(),
            networks: Vec::new(),
            dns_names: Vec::new(),
            place: Place::Internet,
        }
    }

    /// Adds an address. Any address goes: it exists in the world only.
    ///
    /// Panics if `address` is none.
    #[track_caller]
    pub fn at(mut self, address: &str) -> Self {
        self.addresses.push(parse(address));
        self
    }

    /// Makes every address of a network the host's: `"45.60.0.0/16"`. Only for a host
    /// behind the router.
    pub fn at_all_of(mut self, network: &str) -> Self {
        self.networks.push(network.to_owned());
        self
    }

    /// Lets the world's resolver know the host by this name.
    pub fn named(mut self, dns_name: &str) -> Self {
        self.dns_names.push(dns_name.to_owned());
        self
    }

    /// Wires the host to the laptop's subnet instead of the router.
    pub fn on_lan(mut self) -> Self {
        self.place = Place::Lan;
        self
    }

    /// A host on the LAN may also carry an address of no one's subnet; it is
    /// then routed to the LAN instead of being part of it.
    pub(crate) fn is_on_lan_subnet(&self, address: IpAddr) -> bool {
        self.place == Place::Lan
            && match address {
                IpAddr::V4(v4) => v4.octets()[..3] == lan::ROUTER.octets()[..3],
                IpAddr::V6(v6) => v6.octets()[..8] == lan::ROUTER_V6.octets()[..8],
            }
    }

    /// Wires the host to a bridge made by [`crate::World::add_bridge`].
    pub fn on_bridge(mut self, bridge: &str) -> Self {
        self.place = Place::Bridge(bridge.to_owned());
        self
    }
}

/// What the router does with packets to an address at which nobody lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadEnd {
    /// Drops them without a word: connections time out.
    BlackHole,
    /// Answers ICMP host unreachable.
    Unreachable,
    /// Answers ICMP administratively prohibited.
    Prohibited,
}

impl DeadEnd {
    pub(crate) fn route_type(self) -> &'static str {
        match self {
            Self::BlackHole => "blackhole",
            Self::Unreachable => "unreachable",
            Self::Prohibited => "prohibit",
        }
    }
}

#[track_caller]
pub(crate) fn parse(address: &str) -> IpAddr {
    match address.parse() {
        Ok(address) => address,
        Err(_) => panic!("`{address}` is not an IP address"),
    }
}
