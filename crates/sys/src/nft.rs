//! nftables without the `nft` program: one table with one chain, installed in one
//! atomic batch and read back.
//!
//! A rule is a list of expressions over a register, as in the kernel: load something,
//! compare it, and give a verdict at the end. The register is always the first one,
//! because no rule here needs two values at a time.

use std::{io, net::Ipv4Addr};

use rustix::net::netlink;

use crate::netlink::{ACK, APPEND, Attributes, CREATE, DUMP, EXCLUSIVE, Message, REQUEST, Socket};

const SUBSYSTEM: u16 = 10 << 8;
const NEW_TABLE: u16 = SUBSYSTEM;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const GET_RULE: u16 = SUBSYSTEM | 7;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

const FAMILY_INET: u8 = 1;
/// `struct nfgenmsg`: family, version 0, resource id 0.
const GENERIC: [u8; 4] = [FAMILY_INET, 0, 0, 0];

const REGISTER: u32 = 1;
const REGISTER_VERDICT: u32 = 0;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

// Attribute numbers of linux/netfilter/nf_tables.h.
const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;

const HOOK_PREROUTING: u32 = 0;
/// The place of packet mangling, where tproxy belongs.
const PRIORITY_MANGLE: i32 = -150;

/// A table of family inet whose only chain sees every packet that comes in, and drops
/// what no rule accepts.
#[derive(Debug)]
pub struct Ruleset {
    pub table: &'static str,
    pub chain: &'static str,
    pub rules: Vec<Rule>,
}

/// One rule: expressions from left to right.
#[derive(Debug, Default)]
pub struct Rule {
    expressions: Vec<Expression>,
}

#[derive(Debug)]
struct Expression {
    name: &'static str,
    data: Message,
}

/// What a refused packet's sender is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    TcpReset,
    AdminProhibited,
}

impl Ruleset {
    /// Installs everything or nothing, then reads the rules back and compares.
    ///
    /// # Errors
    /// If the kernel refuses (`ENOENT` for an expression that it does not know), or if
    /// what it shows afterwards is not what was sent.
    pub fn install(&self) -> io::Result<()> {
        let mut socket = Socket::open(Some(netlink::NETFILTER))?;
        socket.transact(&mut self.batch())?;
        self.read_back(&mut socket)
    }

    fn batch(&self) -> Vec<Message> {
        let new = REQUEST | ACK | CREATE;
        // The batch names its subsystem where a generic message has its resource id.
        let [high, low] = (SUBSYSTEM >> 8).to_be_bytes();
        let frame = [0, 0, high, low];
        let mut batch = vec![
            Message::new(BATCH_BEGIN, REQUEST, &frame),
            Message::new(NEW_TABLE, new | EXCLUSIVE, &GENERIC)
                .attribute_str(TABLE_NAME, self.table),
            Message::new(NEW_CHAIN, new | EXCLUSIVE, &GENERIC)
                .attribute_str(CHAIN_TABLE, self.table)
                .attribute_str(CHAIN_NAME, self.chain)
                .nested(CHAIN_HOOK, |hook| {
                    hook.attribute_be32(HOOK_NUMBER, HOOK_PREROUTING)
                        .attribute(HOOK_PRIORITY, &PRIORITY_MANGLE.to_be_bytes())
                })
                .attribute_be32(CHAIN_POLICY, DROP)
                .attribute_str(CHAIN_TYPE, "filter"),
        ];
        batch.extend(self.rules.iter().map(|rule| {
            Message::new(NEW_RULE, new | APPEND, &GENERIC)
                .attribute_str(RULE_TABLE, self.table)
                .attribute_str(RULE_CHAIN, self.chain)
                .nested(RULE_EXPRESSIONS, |list| {
                    rule.expressions.iter().fold(list, |list, expression| {
                        list.nested(LIST_ELEMENT, |element| {
                            element
                                .attribute_str(EXPRESSION_NAME, expression.name)
                                .nested(EXPRESSION_DATA, |data| data.append(&expression.data))
                        })
                    })
                })
        }));
        batch.push(Message::new(BATCH_END, REQUEST, &frame));
        batch
    }

    fn read_back(&self, socket: &mut Socket) -> io::Result<()> {
        let request = Message::new(GET_RULE, REQUEST | DUMP, &GENERIC)
            .attribute_str(RULE_TABLE, self.table)
            .attribute_str(RULE_CHAIN, self.chain);
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
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn ipv4(self) -> Self {
        self.meta_is(15, &[2])
    }

    #[must_use]
    pub fn ipv6(self) -> Self {
        self.meta_is(15, &[10])
    }

    #[must_use]
    pub fn not_from_interface(self, index: u32) -> Self {
        self.meta(4).compare(false, &index.to_ne_bytes())
    }

    #[must_use]
    pub fn tcp(self) -> Self {
        self.meta_is(16, &[6])
    }

    #[must_use]
    pub fn udp(self) -> Self {
        self.meta_is(16, &[17])
    }

    /// ICMP of IPv4, of one type.
    #[must_use]
    pub fn icmp(self, kind: u8) -> Self {
        self.ipv4()
            .meta_is(16, &[1])
            .load(Base::Transport, 0, 1)
            .equals(&[kind])
    }

    /// ICMP of IPv6, of one type.
    #[must_use]
    pub fn icmpv6(self, kind: u8) -> Self {
        self.ipv6()
            .meta_is(16, &[58])
            .load(Base::Transport, 0, 1)
            .equals(&[kind])
    }

    #[must_use]
    pub fn marked(self, mark: u32) -> Self {
        self.meta_is(3, &mark.to_ne_bytes())
    }

    /// IPv4 destination within a prefix; presupposes [`Rule::ipv4`].
    #[must_use]
    pub fn to_ipv4(self, address: Ipv4Addr, prefix_length: u32) -> Self {
        let mask = u32::MAX.checked_shl(32 - prefix_length).unwrap_or(0);
        self.load(Base::Network, 16, 4)
            .mask(&mask.to_be_bytes())
            .equals(&address.octets())
    }

    /// IPv4 source outside a prefix; presupposes [`Rule::ipv4`].
    #[must_use]
    pub fn not_from_ipv4(self, address: Ipv4Addr, prefix_length: u32) -> Self {
        let mask = u32::MAX.checked_shl(32 - prefix_length).unwrap_or(0);
        self.load(Base::Network, 12, 4)
            .mask(&mask.to_be_bytes())
            .compare(false, &address.octets())
    }

    /// IPv6 source other than this; presupposes [`Rule::ipv6`].
    #[must_use]
    pub fn not_from_ipv6(self, address: std::net::Ipv6Addr) -> Self {
        self.load(Base::Network, 8, 16)
            .compare(false, &address.octets())
    }

    /// IPv6 destination; presupposes [`Rule::ipv6`].
    #[must_use]
    pub fn to_ipv6(self, address: std::net::Ipv6Addr) -> Self {
        self.load(Base::Network, 24, 16).equals(&address.octets())
    }

    /// Presupposes [`Rule::tcp`] or [`Rule::udp`].
    #[must_use]
    pub fn to_port(self, port: u16) -> Self {
        self.load(Base::Transport, 2, 2).equals(&port.to_be_bytes())
    }

    /// SYN set and ACK, RST, FIN clear; presupposes [`Rule::tcp`].
    #[must_use]
    pub fn syn(self) -> Self {
        self.load(Base::Transport, 13, 1)
            .mask(&[0b1_0111])
            .equals(&[0b0_0010])
    }

    /// The packet belongs to a socket that has IP_TRANSPARENT set.
    #[must_use]
    pub fn for_transparent_socket(self) -> Self {
        self.with("socket", |m| {
            m.attribute_be32(1, 0).attribute_be32(2, REGISTER)
        })
        .equals(&[1])
    }

    #[must_use]
    pub fn accept(self) -> Self {
        self.verdict(ACCEPT)
    }

    #[must_use]
    pub fn drop(self) -> Self {
        self.verdict(DROP)
    }

    #[must_use]
    pub fn refuse(self, refusal: Refusal) -> Self {
        const TYPE: u16 = 1;
        const CODE: u16 = 2;
        self.with("reject", |m| match refusal {
            Refusal::TcpReset => m.attribute_be32(TYPE, 1),
            Refusal::AdminProhibited => m.attribute_be32(TYPE, 2).attribute(CODE, &[3]),
        })
    }

    /// Hands the packet to the transparent socket of its family that listens at `port`;
    /// presupposes [`Rule::tcp`] or [`Rule::udp`].
    #[must_use]
    pub fn to_listener(self, port: u16) -> Self {
        const EITHER_FAMILY: u32 = 0;
        self.with("immediate", |m| {
            m.attribute_be32(1, REGISTER)
                .nested(2, |data| data.attribute(DATA_VALUE, &port.to_be_bytes()))
        })
        .with("tproxy", |m| {
            m.attribute_be32(1, EITHER_FAMILY)
                .attribute_be32(3, REGISTER)
        })
        .accept()
    }

    fn meta(self, key: u32) -> Self {
        self.with("meta", |m| {
            m.attribute_be32(2, key).attribute_be32(1, REGISTER)
        })
    }

    fn meta_is(self, key: u32, value: &[u8]) -> Self {
        self.meta(key).equals(value)
    }

    fn load(self, base: Base, offset: u32, length: u32) -> Self {
        self.with("payload", |m| {
            m.attribute_be32(1, REGISTER)
                .attribute_be32(2, base as u32)
                .attribute_be32(3, offset)
                .attribute_be32(4, length)
        })
    }

    fn mask(self, mask: &[u8]) -> Self {
        let length = u32::try_from(mask.len()).expect("at most 16");
        self.with("bitwise", |m| {
            m.attribute_be32(1, REGISTER)
                .attribute_be32(2, REGISTER)
                .attribute_be32(3, length)
                .nested(4, |data| data.attribute(DATA_VALUE, mask))
                .nested(5, |data| data.attribute(DATA_VALUE, &vec![0; mask.len()]))
        })
    }

    fn equals(self, value: &[u8]) -> Self {
        self.compare(true, value)
    }

    fn compare(self, equal: bool, value: &[u8]) -> Self {
        self.with("cmp", |m| {
            m.attribute_be32(1, REGISTER)
                .attribute_be32(2, u32::from(!equal))
                .nested(3, |data| data.attribute(DATA_VALUE, value))
        })
    }

    fn verdict(self, code: u32) -> Self {
        self.with("immediate", |m| {
            m.attribute_be32(1, REGISTER_VERDICT).nested(2, |data| {
                data.nested(DATA_VERDICT, |verdict| {
                    verdict.attribute_be32(VERDICT_CODE, code)
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
        let shown = Attributes(rule.find(RULE_EXPRESSIONS).unwrap_or_default());
        let mut elements = shown.into_iter();
        let all = self.expressions.iter().all(|expression| {
            let Some((LIST_ELEMENT, _, element)) = elements.next() else {
                return false;
            };
            let name = Attributes(element)
                .find(EXPRESSION_NAME)
                .unwrap_or_default();
            let data = Attributes(element)
                .find(EXPRESSION_DATA)
                .unwrap_or_default();
            name.strip_suffix(b"\0") == Some(expression.name.as_bytes())
                && contains(Attributes(data), expression.data.attributes(0))
        });
        all && elements.next().is_none()
    }
}

#[derive(Debug, Clone, Copy)]
enum Base {
    Network = 1,
    Transport = 2,
}

fn contains(shown: Attributes<'_>, sent: Attributes<'_>) -> bool {
    sent.into_iter()
        .all(|(kind, nested, value)| match shown.find(kind) {
            Some(found) if nested => contains(Attributes(found), Attributes(value)),
            Some(found) => found == value,
            None => false,
        })
}
