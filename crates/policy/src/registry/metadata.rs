//! Services by which clouds hand credentials to whoever asks from the machine.
//!
//! Some have public numbers or lie in ranges that people allow as a whole, so
//! they are known one by one: no rule covers them unless it names the address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, PartialEq, Eq)]
pub struct Metadata {
    pub address: IpAddr,
    pub name: &'static str,
}

/// The metadata service at exactly this address.
pub fn metadata(address: IpAddr) -> Option<&'static Metadata> {
    SERVICES.iter().find(|service| service.address == address)
}

const fn v4(address: [u8; 4], name: &'static str) -> Metadata {
    let [a, b, c, d] = address;
    let address = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    Metadata { address, name }
}

const fn v6(address: [u16; 8], name: &'static str) -> Metadata {
    let [a, b, c, d, e, f, g, h] = address;
    let address = IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h));
    Metadata { address, name }
}

#[rustfmt::skip]
static SERVICES: &[Metadata] = &[
    v4([169, 254, 169, 254], "AWS, Azure, Google Cloud and others"),
    v4([169, 254, 170, 2], "AWS ECS task credentials"),
    v4([169, 254, 170, 23], "AWS EKS pod identity"),
    v4([168, 63, 129, 16], "Azure WireServer"),
    v4([100, 100, 100, 200], "Alibaba Cloud"),
    v4([100, 96, 0, 96], "Volcano Engine"),
    v4([169, 254, 0, 23], "Tencent Cloud"),
    v4([169, 254, 42, 42], "Scaleway"),
    v4([192, 0, 0, 192], "Oracle Cloud Classic"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], "AWS"),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], "AWS EKS pod identity"),
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], "Google Cloud"),
    v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], "Oracle Cloud"),
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], "Scaleway"),
    v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1], "Akamai"),
    v6([0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200], "Alibaba Cloud"),
];
