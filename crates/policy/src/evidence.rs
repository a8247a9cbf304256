//! What the host knows about a destination at the moment of the decision.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::name::Hostname;
use crate::proxy::is_in_pool;
use crate::registry::{self, Class};

/// The host's word on one destination, asked anew for every flow: routes and
/// addresses come and go while a session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence<'a> {
    pub route: Route,
    /// Whether it is one of the host's own addresses.
    pub own: bool,
    /// The names under which the program inside was given the destination, by the
    /// jail's DNS, and which still hold. The one to be told of comes first.
    pub names: &'a [Hostname],
}

impl Evidence<'_> {
    /// Adds what the host says of an address that the destination carries
    /// inside (see [`Flow::embedded`](crate::Flow::embedded)): the worse of the
    /// two counts. Names are those of the destination itself.
    ///
    /// That the host has no route to the embedded address says nothing: a host
    /// with IPv6 only reaches it through a translator, which does.
    pub fn also(self, embedded: Evidence<'_>) -> Self {
        let route = match (self.route, embedded.route) {
            (Route::Broadcast, _) | (_, Route::Broadcast) => Route::Broadcast,
            (Route::Local, _) | (_, Route::Local) => Route::Local,
            (Route::Default, other @ Route::Specific(_)) => other,
            (route, _) => route,
        };
        Evidence {
            route,
            own: self.own || embedded.own,
            names: self.names,
        }
    }

    /// The same on a host that reaches the internet through a proxy alone: what has a default
    /// route, or none, goes through it. A network that the host has a route to stays near, and so
    /// does every address that is not global: the proxy is no way to either. Without a route, an
    /// address that carries another one stays as well: the proxy might get to a network that the
    /// host knows. `stands_for_name`: the gate gave this address of [`POOL`](crate::POOL) to a name
    /// that only the proxy knows.
    pub fn through_proxy(self, destination: IpAddr, stands_for_name: bool) -> Self {
        let is_global = matches!(registry::classify(destination), Class::Global);
        let is_beyond = is_global || (stands_for_name && is_in_pool(destination));
        let carries_another = registry::embedded(destination).next().is_some();
        match self.route {
            Route::None if carries_another => self,
            Route::Default | Route::None if is_beyond && !self.own => Evidence {
                route: Route::Proxied,
                ..self
            },
            _ => self,
        }
    }
}

/// How the host would send a packet to a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Through a default route: where everything goes that nobody knows.
    Default,
    /// Through a route to this network: a connected subnet, a VPN, a bridge.
    Specific(IpNet),
    /// To itself: an address of the host.
    Local,
    /// To all at once: the broadcast address of one of its subnets.
    Broadcast,
    /// Not at all: no route, or one that says unreachable or prohibited.
    None,
    /// Not by itself, but through the proxy: it is on the internet, or has an address of the gate's
    /// own, which stands for a name that only the proxy knows.
    Proxied,
    /// It is the proxy.
    ToProxy,
}

impl Route {
    /// The route whose entry in the table has this prefix.
    ///
    /// VPNs that take over all traffic leave the default route alone and add
    /// two routes, of one half of all addresses each, which win over it. In IPv6
    /// they do the same to the only block in global use, 2000::/3. A route to at
    /// least half of the internet is a default route.
    pub fn through(prefix: IpNet) -> Route {
        let half = match prefix {
            IpNet::V4(_) => 1,
            IpNet::V6(_) => 4,
        };
        if prefix.prefix_len() <= half {
            Route::Default
        } else {
            Route::Specific(prefix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(prefix: &str) -> Route {
        Route::through(prefix.parse().unwrap())
    }

    #[test]
    fn halves_of_the_internet_count_as_default_routes() {
        for prefix in [
            "0.0.0.0/0",
            "0.0.0.0/1",
            "128.0.0.0/1",
            "::/0",
            "8000::/1",
            "2000::/3",
            "3000::/4",
        ] {
            assert_eq!(through(prefix), Route::Default, "{prefix}");
        }
        for prefix in [
            "64.0.0.0/2",
            "93.0.0.0/8",
            "1.2.3.4/32",
            "2000::/5",
            "2001:db8::/32",
        ] {
            assert_eq!(through(prefix), Route::Specific(prefix.parse().unwrap()));
        }
    }

    #[test]
    fn the_worse_evidence_counts() {
        let vpn = through("93.0.0.0/8");
        let of = |route, own| Evidence {
            route,
            own,
            names: &[],
        };
        let open = of(Route::Default, false);
        assert_eq!(open.also(of(vpn, false)), of(vpn, false));
        assert_eq!(open.also(of(Route::Local, true)), of(Route::Local, true));
        assert_eq!(open.also(of(Route::None, false)), open);
        assert_eq!(of(Route::None, false).also(open), of(Route::None, false));
        assert_eq!(of(vpn, true).also(open), of(vpn, true));
        let nowhere = of(Route::None, false);
        assert_eq!(nowhere.also(of(vpn, false)), nowhere);
        // Nor does a proxy make a way there.
        let embedding = "64:ff9b::5db8:d822".parse().unwrap();
        assert_eq!(nowhere.through_proxy(embedding, false), nowhere);
        let by_proxy = open.through_proxy(embedding, false);
        assert_eq!(by_proxy.route, Route::Proxied);
    }
}
