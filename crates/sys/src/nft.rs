//! nftables without the `nft` program: one table with one chain, installed in one
//! atomic batch and read back.
//!
//! A rule is a list of expressions over a register, as in the kernel: load something,
//! compare it, and give a verdict at the end. The register is always the first one,
//! because no rule here needs two values at a time.

use std::{
    ffi::c_int,
    io,
    net::{Ipv4Addr, Ipv6Addr},
};

use rustix::net::netlink;

use crate::netlink::{ACK, APPEND, Attributes, CREATE, DUMP, EXCLUSIVE, Message, REQUEST, Socket};

/// libc has all numbers as `c_int`; some are shorter on the wire.
const fn byte(number: c_int) -> u8 {
    let [.., low] = number.to_be_bytes();
    low
}

const fn two_bytes(number: c_int) -> u16 {
    let [_, _, high, low] = number.to_be_bytes();
    u16::from_be_bytes([high, low])
}

const fn message(kind: c_int) -> u16 {
    two_bytes(libc::NFNL_SUBSYS_NFTABLES << 8 | kind)
}

const NEW_RULE: u16 = message(libc::NFT_MSG_NEWRULE);
const NEW: u16 = REQUEST | ACK | CREATE;

/// `struct nfgenmsg`: family, version 0, resource id 0.
const GENERIC: [u8; 4] = [byte(libc::NFPROTO_INET), byte(libc::NFNETLINK_V0), 0, 0];

// Names of linux/netfilter/nf_tables.h that libc does not have.
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NFTA_META_DREG: u16 = 1;
const NFTA_META_KEY: u16 = 2;
const NFTA_PAYLOAD_DREG: u16 = 1;
const NFTA_PAYLOAD_BASE: u16 = 2;
const NFTA_PAYLOAD_OFFSET: u16 = 3;
const NFTA_PAYLOAD_LEN: u16 = 4;
const NFTA_BITWISE_SREG: u16 = 1;
const NFTA_BITWISE_DREG: u16 = 2;
const NFTA_BITWISE_LEN: u16 = 3;
const NFTA_BITWISE_MASK: u16 = 4;
const NFTA_BITWISE_XOR: u16 = 5;
const NFTA_CMP_SREG: u16 = 1;
const NFTA_CMP_OP: u16 = 2;
const NFTA_CMP_DATA: u16 = 3;
const NFTA_IMMEDIATE_DREG: u16 = 1;
const NFTA_IMMEDIATE_DATA: u16 = 2;

/// The flags of a TCP header, as linux/tcp.h has them: libc has no names for them on Linux.
const TCP_FIN: u8 = 0x01;
const TCP_SYN: u8 = 0x02;
const TCP_RST: u8 = 0x04;
const TCP_ACK: u8 = 0x10;

/// A table of family inet whose only chain sees every packet that comes in, and drops
/// what no rule accepts.
#[derive(Debug)]
pub struct Ruleset {
    pub table: &'static str,
    pub chain: &'static str,
    pub rules: Vec<Rule>,
}

#[derive(Debug, Default)]
#[must_use]
pub struct Rule {
    expressions: Vec<Expression>,
}

#[derive(Debug)]
struct Expression {
    name: &'static str,
    data: Message,
}

impl Ruleset {
    /// Installs everything or nothing, then reads the rules back and compares.
    ///
    /// # Errors
    /// If the kernel refuses, or if what it shows afterwards is not what was sent.
    pub fn install(&self) -> io::Result<()> {
        let mut socket = Socket::open(Some(netlink::NETFILTER))?;
        socket.transact(&mut self.batch())?;
        self.read_back(&mut socket)
    }

    fn batch(&self) -> Vec<Message> {
        // The batch names its subsystem where a generic message has its resource id.
        let [high, low] = two_bytes(libc::NFNL_SUBSYS_NFTABLES).to_be_bytes();
        let frame = [0, 0, high, low];
        let mut batch = vec![
            Message::new(two_bytes(libc::NFNL_MSG_BATCH_BEGIN), REQUEST, &frame),
            Message::new(message(libc::NFT_MSG_NEWTABLE), NEW | EXCLUSIVE, &GENERIC)
                .attribute_str(NFTA_TABLE_NAME, self.table),
            Message::new(message(libc::NFT_MSG_NEWCHAIN), NEW | EXCLUSIVE, &GENERIC)
                .attribute_str(NFTA_CHAIN_TABLE, self.table)
                .attribute_str(NFTA_CHAIN_NAME, self.chain)
                .nested(NFTA_CHAIN_HOOK, |hook| {
                    // The place where packets may be changed.
                    hook.attribute_be32(NFTA_HOOK_HOOKNUM, libc::NF_INET_PRE_ROUTING)
                        .attribute_be32(NFTA_HOOK_PRIORITY, libc::NF_IP_PRI_MANGLE)
                })
                .attribute_be32(NFTA_CHAIN_POLICY, libc::NF_DROP)
                .attribute_str(NFTA_CHAIN_TYPE, "filter"),
        ];
        batch.extend(self.rules.iter().map(|rule| {
            Message::new(NEW_RULE, NEW | APPEND, &GENERIC)
                .attribute_str(NFTA_RULE_TABLE, self.table)
                .attribute_str(NFTA_RULE_CHAIN, self.chain)
                .nested(NFTA_RULE_EXPRESSIONS, |list| {
                    rule.expressions.iter().fold(list, |list, expression| {
                        list.nested(NFTA_LIST_ELEM, |element| {
                            element
                                .attribute_str(NFTA_EXPR_NAME, expression.name)
                                .nested(NFTA_EXPR_DATA, |data| data.append(&expression.data))
                        })
                    })
                })
        }));
        batch.push(Message::new(
            two_bytes(libc::NFNL_MSG_BATCH_END),
            REQUEST,
            &frame,
        ));
        batch
    }

    fn read_back(&self, socket: &mut Socket) -> io::Result<()> {
        let request = Message::new(message(libc::NFT_MSG_GETRULE), REQUEST | DUMP, &GENERIC)
            .attribute_str(NFTA_RULE_TABLE, self.table)
            .attribute_str(NFTA_RULE_CHAIN, self.chain);
        let shown = socket.request(request)?;
        let matches = shown.len() == self.rules.len()
            && self.rules.iter().zip(&shown).all(|(rule, reply)| {
                let attributes = Attributes(reply.payload.get(GENERIC.len()..).unwrap_or_default());
                reply.kind == NEW_RULE && rule.is_shown_by(attributes)
            });
        if matches {
            Ok(())
        } else {
            Err(io::Error::other(
                "the packet filter that the kernel shows is not the one sent",
            ))
        }
    }
}

impl Rule {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn ipv4(self) -> Self {
        self.meta_is(libc::NFT_META_NFPROTO, &[byte(libc::NFPROTO_IPV4)])
    }

    pub fn ipv6(self) -> Self {
        self.meta_is(libc::NFT_META_NFPROTO, &[byte(libc::NFPROTO_IPV6)])
    }

    pub fn from_interface(self, index: u32) -> Self {
        self.meta_is(libc::NFT_META_IIF, &index.to_ne_bytes())
    }

    pub fn not_from_interface(self, index: u32) -> Self {
        self.meta(libc::NFT_META_IIF).differs(&index.to_ne_bytes())
    }

    pub fn tcp(self) -> Self {
        self.protocol(libc::IPPROTO_TCP)
    }

    pub fn udp(self) -> Self {
        self.protocol(libc::IPPROTO_UDP)
    }

    pub fn icmp(self, kind: u8) -> Self {
        self.ipv4()
            .protocol(libc::IPPROTO_ICMP)
            .load(libc::NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1)
            .equals(&[kind])
    }

    pub fn icmpv6(self, kind: u8) -> Self {
        self.ipv6()
            .protocol(libc::IPPROTO_ICMPV6)
            .load(libc::NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1)
            .equals(&[kind])
    }

    pub fn marked(self, mark: u32) -> Self {
        self.meta_is(libc::NFT_META_MARK, &mark.to_ne_bytes())
    }

    pub fn not_marked(self, mark: u32) -> Self {
        self.meta(libc::NFT_META_MARK).differs(&mark.to_ne_bytes())
    }

    /// IPv4 destination within a prefix; presupposes [`Rule::ipv4`].
    pub fn to_ipv4(self, address: Ipv4Addr, prefix_length: u32) -> Self {
        let mask = u32::MAX.checked_shl(32 - prefix_length).unwrap_or(0);
        self.load(libc::NFT_PAYLOAD_NETWORK_HEADER, 16, 4)
            .mask(&mask.to_be_bytes())
            .equals(&address.octets())
    }

    /// IPv4 source other than this; presupposes [`Rule::ipv4`].
    pub fn not_from_ipv4(self, address: Ipv4Addr) -> Self {
        self.load(libc::NFT_PAYLOAD_NETWORK_HEADER, 12, 4)
            .differs(&address.octets())
    }

    /// IPv6 source other than this; presupposes [`Rule::ipv6`].
    pub fn not_from_ipv6(self, address: Ipv6Addr) -> Self {
        self.load(libc::NFT_PAYLOAD_NETWORK_HEADER, 8, 16)
            .differs(&address.octets())
    }

    /// IPv6 destination; presupposes [`Rule::ipv6`].
    pub fn to_ipv6(self, address: Ipv6Addr) -> Self {
        self.load(libc::NFT_PAYLOAD_NETWORK_HEADER, 24, 16)
            .equals(&address.octets())
    }

    /// IPv6 destination that is a group; presupposes [`Rule::ipv6`].
    pub fn to_group(self) -> Self {
        self.load(libc::NFT_PAYLOAD_NETWORK_HEADER, 24, 1)
            .equals(&[0xff])
    }

    /// What follows the fixed header; presupposes [`Rule::ipv6`].
    pub fn next_header(self, number: u8) -> Self {
        self.load(libc::NFT_PAYLOAD_NETWORK_HEADER, 6, 1)
            .equals(&[number])
    }

    /// Presupposes [`Rule::tcp`] or [`Rule::udp`].
    pub fn to_port(self, port: u16) -> Self {
        self.load(libc::NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2)
            .equals(&port.to_be_bytes())
    }

    /// SYN set and ACK, RST, FIN clear; presupposes [`Rule::tcp`].
    pub fn syn(self) -> Self {
        self.load(libc::NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1)
            .mask(&[TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK])
            .equals(&[TCP_SYN])
    }

    pub fn accept(self) -> Self {
        self.verdict(libc::NF_ACCEPT)
    }

    pub fn drop(self) -> Self {
        self.verdict(libc::NF_DROP)
    }

    fn meta(self, key: c_int) -> Self {
        self.with("meta", |m| {
            m.attribute_be32(NFTA_META_KEY, key)
                .attribute_be32(NFTA_META_DREG, libc::NFT_REG_1)
        })
    }

    fn meta_is(self, key: c_int, value: &[u8]) -> Self {
        self.meta(key).equals(value)
    }

    fn protocol(self, number: c_int) -> Self {
        self.meta_is(libc::NFT_META_L4PROTO, &[byte(number)])
    }

    fn load(self, base: c_int, offset: c_int, length: c_int) -> Self {
        self.with("payload", |m| {
            m.attribute_be32(NFTA_PAYLOAD_DREG, libc::NFT_REG_1)
                .attribute_be32(NFTA_PAYLOAD_BASE, base)
                .attribute_be32(NFTA_PAYLOAD_OFFSET, offset)
                .attribute_be32(NFTA_PAYLOAD_LEN, length)
        })
    }

    fn mask(self, mask: &[u8]) -> Self {
        let length = c_int::try_from(mask.len()).expect("at most 16");
        self.with("bitwise", |m| {
            m.attribute_be32(NFTA_BITWISE_SREG, libc::NFT_REG_1)
                .attribute_be32(NFTA_BITWISE_DREG, libc::NFT_REG_1)
                .attribute_be32(NFTA_BITWISE_LEN, length)
                .nested(NFTA_BITWISE_MASK, |data| {
                    data.attribute(NFTA_DATA_VALUE, mask)
                })
                .nested(NFTA_BITWISE_XOR, |data| {
                    data.attribute(NFTA_DATA_VALUE, &vec![0; mask.len()])
                })
        })
    }

    fn equals(self, value: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_EQ, value)
    }

    fn differs(self, value: &[u8]) -> Self {
        self.compare(libc::NFT_CMP_NEQ, value)
    }

    fn compare(self, operator: c_int, value: &[u8]) -> Self {
        self.with("cmp", |m| {
            m.attribute_be32(NFTA_CMP_SREG, libc::NFT_REG_1)
                .attribute_be32(NFTA_CMP_OP, operator)
                .nested(NFTA_CMP_DATA, |data| data.attribute(NFTA_DATA_VALUE, value))
        })
    }

    fn verdict(self, code: c_int) -> Self {
        self.with("immediate", |m| {
            m.attribute_be32(NFTA_IMMEDIATE_DREG, libc::NFT_REG_VERDICT)
                .nested(NFTA_IMMEDIATE_DATA, |data| {
                    data.nested(NFTA_DATA_VERDICT, |verdict| {
                        verdict.attribute_be32(NFTA_VERDICT_CODE, code)
                    })
                })
        })
    }

    fn with(mut self, name: &'static str, fill: impl FnOnce(Message) -> Message) -> Self {
        self.expressions.push(Expression {
            name,
            data: fill(Message::new(0, 0, &[])),
        });
        self
    }

    /// Whether a rule as the kernel shows it has these expressions in this order, each
    /// with at least the attributes that were sent (the kernel adds defaults).
    fn is_shown_by(&self, rule: Attributes<'_>) -> bool {
        let shown = Attributes(rule.find(NFTA_RULE_EXPRESSIONS).unwrap_or_default());
        let mut elements = shown.iter();
        let all = self.expressions.iter().all(|expression| {
            let Some((NFTA_LIST_ELEM, _, element)) = elements.next() else {
                return false;
            };
            let name = Attributes(element).find(NFTA_EXPR_NAME).unwrap_or_default();
            let data = Attributes(element).find(NFTA_EXPR_DATA).unwrap_or_default();
            name.strip_suffix(b"\0") == Some(expression.name.as_bytes())
                && contains(Attributes(data), expression.data.attributes(0))
        });
        all && elements.next().is_none()
    }
}

fn contains(shown: Attributes<'_>, sent: Attributes<'_>) -> bool {
    sent.iter()
        .all(|(kind, nested, value)| match shown.find(kind) {
            Some(found) if nested => contains(Attributes(found), Attributes(value)),
            Some(found) => found == value,
            None => false,
        })
}
