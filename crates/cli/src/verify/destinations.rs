//! Destinations that nobody is to reach, and what the policy says of them.
//!
//! They are tried only where the policy denies them and a jail stands, so that no packet
//! leaves the machine.

use std::net::{IpAddr, SocketAddr};

use stockade_config::Effective;
use stockade_policy::{Flow, decide, registry};

use super::messages::{Target, Transport};

/// One address of each private or special range, where it is not likely that anybody is, and
/// the services that hand out credentials.
const ADDRESSES: [&str; 18] = [
    "10.255.255.254",
    "172.31.255.254",
    "192.168.255.254",
    "100.127.255.254",
    "169.254.255.254",
    "198.18.255.254",
    "fd7f:ffff:ffff:ffff::1",
    "fec0::ffff:1",
    "64:ff9b::10.255.255.254",
    "2002:aff:fffe::1",
    // Metadata services.
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
];

pub(super) fn is_metadata(address: IpAddr) -> bool {
    registry::metadata(address).is_some()
}

/// Those that are denied, and those that a rule opens.
pub(super) fn sorted(effective: &Effective) -> (Vec<Target>, Vec<IpAddr>) {
    let mut denied = Vec::new();
    let mut opened = Vec::new();
    for address in ADDRESSES.iter().filter_map(|text| text.parse().ok()) {
        for (transport, port) in [(Transport::Tcp, 80), (Transport::Udp, 161)] {
            let address = SocketAddr::new(address, port);
            let target = Target { transport, address };
            if is_allowed(effective, &target) {
                opened.push(address.ip());
            } else {
                denied.push(target);
            }
        }
    }
    opened.dedup();
    (denied, opened)
}

/// Whether the policy lets a session go there. If the kernel cannot be asked for the way, it
/// may.
pub(super) fn is_allowed(effective: &Effective, target: &Target) -> bool {
    let flow = match target.transport {
        Transport::Tcp => Flow::tcp(target.address),
        Transport::Udp => Flow::udp(target.address),
    };
    let evidence = stockade_gate::host_evidence(target.address.ip());
    match (flow, evidence) {
        (Some(flow), Ok(evidence)) => decide(&effective.policy(), &flow, &evidence).is_allowed(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_all_of_them_are_denied_and_both_kinds_are_among_them() {
        let (denied, opened) = sorted(&Effective::default());
        assert_eq!(opened, [] as [IpAddr; 0]);
        assert_eq!(denied.len(), 2 * ADDRESSES.len());
        let metadata = denied
            .iter()
            .filter(|it| is_metadata(it.address.ip()))
            .count();
        assert_eq!(metadata, 2 * 8);
    }
}
