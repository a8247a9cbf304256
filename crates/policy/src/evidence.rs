//! What the host knows about a destination at the moment of the decision.

use ipnet::IpNet;

use crate::name::Hostname;

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
    }
}
