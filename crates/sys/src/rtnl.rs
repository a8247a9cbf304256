//! Links, addresses, routes and rules: what the jail's set-up writes, and the one
//! question that the policy asks of the host ("by which route would you go there?").

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::OwnedFd,
    thread::sleep,
    time::{Duration, Instant},
};

use libc::{
    IFA_ADDRESS, IFA_BROADCAST, IFA_LOCAL, IFLA_ADDRESS, IFLA_AF_SPEC, IFLA_EXT_MASK, IFLA_IFNAME,
    IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, IFLA_NET_NS_FD, IFLA_OPERSTATE,
    RT_SCOPE_HOST, RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RTA_DST, RTA_GATEWAY, RTA_OIF, RTA_TABLE,
    RTM_GETLINK, RTM_GETROUTE, RTM_NEWADDR, RTM_NEWLINK, RTM_NEWROUTE, RTM_NEWRULE, RTN_BROADCAST,
    RTN_LOCAL, RTN_MULTICAST, RTN_UNICAST, RTPROT_STATIC,
};
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};

use crate::{
    namespace::Network,
    netlink::{self, ACK, Attributes, CREATE, EXCLUSIVE, Message, REQUEST, Socket},
};

/// `lo` has this index in every network namespace.
pub const LOOPBACK: u32 = 1;
/// The table that is looked at without a rule.
const MAIN_TABLE: u32 = 254;

// Names of the kernel's headers that libc does not have, or not for every target.
const RTM_F_LOOKUP_TABLE: u32 = 0x1000;
const RTM_F_FIB_MATCH: u32 = 0x2000;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
const RTEXT_FILTER_SKIP_STATS: u32 = 8;
const IF_OPER_UP: u8 = 6;
const VETH_INFO_PEER: u16 = 1;
const FRA_DST: u16 = 1;
const FRA_PRIORITY: u16 = 6;
const FR_ACT_PROHIBIT: u8 = 8;
// libc has these in another width.
const AF_INET6: u16 = 10;
const IFF_UP: u32 = 1;
const IFF_NOARP: u32 = 0x80;
const RTNH_F_ONLINK: u32 = 4;
const IFA_F_NODAD: u8 = 2;

/// A route socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Routing(Socket);

/// Hears of all changes by which the kernel may find another way to an address, in the network
/// namespace of the thread that opened it.
#[derive(Debug)]
pub struct RouteChanges(OwnedFd);

impl RouteChanges {
    const GROUPS: [libc::c_uint; 10] = [
        libc::RTNLGRP_LINK,
        libc::RTNLGRP_IPV4_IFADDR,
        libc::RTNLGRP_IPV4_ROUTE,
        libc::RTNLGRP_IPV4_RULE,
        libc::RTNLGRP_IPV4_NETCONF,
        libc::RTNLGRP_IPV6_IFADDR,
        libc::RTNLGRP_IPV6_ROUTE,
        libc::RTNLGRP_IPV6_RULE,
        libc::RTNLGRP_IPV6_NETCONF,
        libc::RTNLGRP_NEXTHOP,
    ];
    const MOST: u32 = 1024;

    pub fn open() -> io::Result<Self> {
        let bits = Self::GROUPS
            .iter()
            .fold(0, |bits, group| bits | 1 << (group - 1));
        netlink::open(None, bits).map(Self)
    }

    /// Whether something has changed since this was last asked. What the kernel cannot tell, as
    /// when it had no room for a message, counts as a change.
    pub fn any(&self) -> bool {
        let mut changed = false;
        for _ in 0..Self::MOST {
            // One byte takes the whole message.
            match recv(&self.0, &mut [0_u8; 1], RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => return changed,
                _ => changed = true,
            }
        }
        changed
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteMatch {
    pub kind: RouteKind,
    /// The destination of the matching route: 0.0.0.0/0 for a default route.
    pub prefix: IpAddr,
    pub prefix_length: u8,
    /// The table that the route stands in, which the host's rules chose.
    pub table: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKind {
    Unicast,
    /// One of this host's own addresses.
    Local,
    /// To all on a link, or to all of a group.
    Many,
    Other,
}

impl Routing {
    pub fn open() -> io::Result<Self> {
        Socket::open(None).map(Self)
    }

    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let fixed = interface(index, IFF_UP);
        self.change(Message::new(RTM_NEWLINK, REQUEST | ACK, &fixed))
    }

    /// Waits until a device that is up also sends. Its carrier comes with that of the other end of
    /// its pair, and the kernel attaches its queue some time later, in a thread of its own: what
    /// is sent before is dropped without a word.
    ///
    /// # Errors
    /// `ETIMEDOUT` if it does not come to that.
    pub fn wait_until_it_sends(&mut self, index: u32) -> io::Result<()> {
        const LONGEST: Duration = Duration::from_secs(10);
        const NAP: Duration = Duration::from_micros(100);
        let begin = Instant::now();
        while self.operational_state(index)? != Some(IF_OPER_UP) {
            if begin.elapsed() > LONGEST {
                return Err(Errno::TIMEDOUT.into());
            }
            sleep(NAP);
        }
        Ok(())
    }

    /// Linux 6.8 and newer first do what they had put off, and then tell.
    fn operational_state(&mut self, index: u32) -> io::Result<Option<u8>> {
        let request = Message::new(RTM_GETLINK, REQUEST, &interface(index, 0))
            .attribute_u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
        let replies = self.0.request(request)?;
        let reply = replies.first().filter(|reply| reply.kind == RTM_NEWLINK);
        let attributes = reply.and_then(|reply| reply.payload.get(16..));
        let state = attributes.and_then(|bytes| Attributes(bytes).find(IFLA_OPERSTATE));
        Ok(state.and_then(|state| state.first().copied()))
    }

    /// Makes a pair of devices with the same index and link address, `name` here and `peer_name` in
    /// another namespace. Nobody is asked for link addresses, since both ends have the same. They are
    /// not up.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the kernel lacks that kind of device.
    pub fn add_pair(
        &mut self,
        index: u32,
        name: &str,
        there: &Network,
        peer_name: &str,
    ) -> io::Result<()> {
        // Such that every datagram that a program can send fits, as it does on `lo`.
        const LARGEST: u32 = 65_535;
        // A random one of those that everybody may choose: some programs take it for an identity.
        let mut address = [0x02, 0, 0, 0, 0, 0];
        rustix::rand::getrandom(&mut address[1..], rustix::rand::GetRandomFlags::empty())?;
        let end = |message: Message, name| {
            message
                .attribute_str(IFLA_IFNAME, name)
                .attribute(IFLA_ADDRESS, &address)
                .attribute_u32(IFLA_MTU, LARGEST)
                // A run of datagrams (UDP_SEGMENT) is cut before it comes to the device: whoever
                // copies packets there would take it for one. TCP has no need of runs here.
                .attribute_u32(IFLA_GSO_MAX_SEGS, 1)
        };
        let fixed = interface(index, IFF_NOARP);
        let message = end(addition(RTM_NEWLINK, &fixed), name).nested(IFLA_LINKINFO, |link| {
            let link = link.attribute_str(IFLA_INFO_KIND, "veth");
            link.nested(IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |peer| {
                    end(peer.fixed(&fixed), peer_name)
                        .attribute_u32(IFLA_NET_NS_FD, there.descriptor())
                })
            })
        });
        self.change(message)
    }

    /// Without a link-local address there is one address less that is the jail's own, and no route
    /// to others, at the end of which programs would wait. A kernel without IPv6 refuses, and has
    /// none anyway.
    pub fn without_link_local(&mut self, index: u32) {
        let message = Message::new(RTM_NEWLINK, REQUEST | ACK, &interface(index, 0));
        let _ = self.change(message.nested(IFLA_AF_SPEC, |families| {
            families.nested(AF_INET6, |v6| {
                v6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE])
            })
        }));
    }

    /// Gives the device a /32 or /128 address. One of IPv4 comes with the address of everybody as
    /// its broadcast address: programs ask for that one when they search for devices.
    pub fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let (family, length, bytes) = parts(address);
        // In IPv6 the kernel would first ask the link whether somebody has it already.
        let mut fixed = vec![family, length, IFA_F_NODAD, 0];
        fixed.extend_from_slice(&index.to_ne_bytes());
        let addition = addition(RTM_NEWADDR, &fixed)
            .attribute(IFA_LOCAL, &bytes)
            .attribute(IFA_ADDRESS, &bytes);
        self.change(match address {
            IpAddr::V4(_) => addition.attribute(IFA_BROADCAST, &Ipv4Addr::BROADCAST.octets()),
            IpAddr::V6(_) => addition,
        })
    }

    /// Has every destination of the family arrive here, from wherever, but `neighbour`, which is
    /// behind a device.
    pub fn add_everything_arrives(&mut self, neighbour: IpAddr, device: u32) -> io::Result<()> {
        let (family, length, address) = parts(neighbour);
        let to = route((family, length), (RT_SCOPE_LINK, RTN_UNICAST), 0);
        self.change(
            to.attribute(RTA_DST, &address)
                .attribute_u32(RTA_OIF, device),
        )?;
        let local = route((family, 0), (RT_SCOPE_HOST, RTN_LOCAL), 0);
        self.change(local.attribute_u32(RTA_OIF, LOOPBACK))
    }

    /// Sends every destination of the gateway's family to it, through a device.
    pub fn add_default(&mut self, gateway: IpAddr, device: u32) -> io::Result<()> {
        let (family, _, gateway) = parts(gateway);
        let kind = (RT_SCOPE_UNIVERSE, RTN_UNICAST);
        let default = route((family, 0), kind, RTNH_F_ONLINK);
        self.change(
            default
                .attribute_u32(RTA_OIF, device)
                .attribute(RTA_GATEWAY, &gateway),
        )
    }

    /// Makes calls to every link-local destination of IPv6 fail at once, by whatever device: nobody is
    /// behind them.
    pub fn prohibit_link_local(&mut self, priority: u32) -> io::Result<()> {
        let network = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
        let (family, _, network) = parts(network.into());
        let mut fixed = vec![family, 10, 0, 0, 0, 0, 0, FR_ACT_PROHIBIT];
        fixed.extend_from_slice(&0_u32.to_ne_bytes());
        self.change(
            addition(RTM_NEWRULE, &fixed)
                .attribute_u32(FRA_PRIORITY, priority)
                .attribute(FRA_DST, &network),
        )
    }

    /// The route that the kernel would take to `destination`; none if it has no way
    /// there (no route, or one that says unreachable, prohibited or black hole).
    ///
    /// # Errors
    /// If the kernel cannot be asked, or its answer makes no sense.
    pub fn lookup(&mut self, destination: IpAddr) -> io::Result<Option<RouteMatch>> {
        let (family, length, bytes) = parts(destination);
        let mut fixed = vec![family, length, 0, 0, 0, 0, 0, 0];
        fixed.extend_from_slice(&(RTM_F_FIB_MATCH | RTM_F_LOOKUP_TABLE).to_ne_bytes());
        let request = Message::new(RTM_GETROUTE, REQUEST, &fixed).attribute(RTA_DST, &bytes);
        let replies = match self.0.request(request) {
            Ok(replies) => replies,
            Err(error) if is_no_way(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let nonsense = || io::Error::other("the kernel's answer to a route request makes no sense");
        let reply = replies
            .first()
            .filter(|reply| reply.kind == RTM_NEWROUTE)
            .ok_or_else(nonsense)?;
        let [
            reply_family,
            prefix_length,
            _,
            _,
            small_table,
            _,
            _,
            kind,
            ..,
        ] = *reply.payload.first_chunk::<12>().ok_or_else(nonsense)?;
        if reply_family != family || prefix_length > length {
            return Err(nonsense());
        }
        let attributes = Attributes(&reply.payload[12..]);
        // A number that does not fit the header stands in an attribute.
        let table = attributes
            .find(RTA_TABLE)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(u32::from(small_table), u32::from_ne_bytes);
        let prefix = match attributes.find(RTA_DST) {
            Some(bytes) => address(bytes).ok_or_else(nonsense)?,
            None if destination.is_ipv4() => Ipv4Addr::UNSPECIFIED.into(),
            None => Ipv6Addr::UNSPECIFIED.into(),
        };
        let kind = match kind {
            RTN_UNICAST => RouteKind::Unicast,
            RTN_LOCAL => RouteKind::Local,
            RTN_BROADCAST | RTN_MULTICAST => RouteKind::Many,
            _ => RouteKind::Other,
        };
        Ok(Some(RouteMatch {
            kind,
            prefix,
            prefix_length,
            table,
        }))
    }

    fn change(&mut self, message: Message) -> io::Result<()> {
        self.0.transact(&mut [message])
    }
}

/// A request to make something that is not there yet.
fn addition(kind: u16, fixed: &[u8]) -> Message {
    Message::new(kind, REQUEST | ACK | CREATE | EXCLUSIVE, fixed)
}

/// A request for a route to a prefix of (family, length), with a scope and type.
fn route((family, length): (u8, u8), (scope, kind): (u8, u8), flags: u32) -> Message {
    let mut fixed = vec![family, length, 0, 0, 0, RTPROT_STATIC, scope, kind];
    fixed.extend_from_slice(&flags.to_ne_bytes());
    addition(RTM_NEWROUTE, &fixed).attribute_u32(RTA_TABLE, MAIN_TABLE)
}

/// The errors by which a route lookup says that there is no way: those of a missing
/// route and of the route types unreachable, prohibit and blackhole.
fn is_no_way(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL)
    )
}

/// `struct ifinfomsg` that sets the given flags.
fn interface(index: u32, flags: u32) -> Vec<u8> {
    let mut fixed = vec![0; 4];
    for field in [index, flags, flags] {
        fixed.extend_from_slice(&field.to_ne_bytes());
    }
    fixed
}

/// Address family, length in bits, and bytes.
fn parts(address: IpAddr) -> (u8, u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (2, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (10, 128, address.octets().to_vec()),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_local_by_its_own_prefix() {
        let mut routing = Routing::open().expect("route socket");
        let found = routing
            .lookup(Ipv4Addr::LOCALHOST.into())
            .expect("lookup")
            .expect("a route");
        assert_eq!(found.kind, RouteKind::Local);
        assert!(found.prefix_length >= 8, "{found:?}");
        assert!(found.prefix.is_loopback(), "{found:?}");
    }
}
