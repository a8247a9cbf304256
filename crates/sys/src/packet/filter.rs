//! Classic BPF programs over a packet that starts at its IP header.
//!
//! They spare the gate the packets that do not concern it; what passes is parsed with care.
//! Not passing a packet that matters would only leave it unanswered. One thing nobody looks at
//! again: that datagrams have the jail's own address as their source.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use socket2::SockFilter;

const LOAD_WORD: u16 = 0x20;
const LOAD_WORD_INDEXED: u16 = 0x40;
const LOAD_HALF: u16 = 0x28;
const LOAD_HALF_INDEXED: u16 = 0x48;
const LOAD_BYTE: u16 = 0x30;
const LOAD_BYTE_INDEXED: u16 = 0x50;
const LOAD_X_HEADER_LENGTH: u16 = 0xb1;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Where a program finds the packet's mark.
const MARK: u32 = 0xffff_f000 + 20;
/// Where it finds to whom the packet is: to this host, or to many.
const PACKET_TYPE: u32 = 0xffff_f000 + 4;
const TAKE: u32 = 0xffff;

/// As many ports of loopback as a program may look for.
pub(super) const MOST_PORTS: usize = 64;
const TCP: u32 = 6;
const UDP: u32 = 17;
const ICMP: u32 = 1;
const ICMPV6: u32 = 58;
/// FIN, SYN, RST and ACK, of which a SYN has only its own.
const FLAGS: u32 = 0b1_0111;
const SYN: u32 = 0b0_0010;
const RST_ACK: u32 = 0b1_0100;

/// Where an instruction leads to, besides the next one.
enum Next {
    Go,
    IgnoreUnless,
    IgnoreIf,
    TakeIf,
    /// Over as many instructions, if the comparison holds.
    SkipIf(u8),
    /// The same, if it does not hold.
    SkipUnless(u8),
}
use Next::{Go, IgnoreIf, IgnoreUnless, SkipIf, SkipUnless, TakeIf};

type Steps = Vec<(u16, u32, Next)>;

/// An unmarked TCP SYN to neither loopback nor `own`, or to one of `ports` of loopback. Of IPv4, a
/// first fragment; of IPv6, also a packet with an extension header that could hold one.
pub(super) fn foreign_syn(own: IpAddr, ports: &[u16], mark: u32) -> Vec<SockFilter> {
    const HOP_BY_HOP: u32 = 0;
    const ROUTING: u32 = 43;
    const DESTINATION: u32 = 60;
    let mut steps = vec![(LOAD_WORD, MARK, Go), (JUMP_EQUAL, mark, IgnoreIf)];
    let (load_flags, load_port) = match own {
        IpAddr::V4(_) => {
            steps.extend(first_of_protocol_v4(TCP));
            ((LOAD_BYTE_INDEXED, 13, Go), (LOAD_HALF_INDEXED, 2, Go))
        }
        IpAddr::V6(_) => {
            steps.extend([
                (LOAD_BYTE, 6, Go),
                (JUMP_EQUAL, HOP_BY_HOP, SkipIf(6)),
                (JUMP_EQUAL, ROUTING, SkipIf(5)),
                (JUMP_EQUAL, DESTINATION, SkipIf(4)),
                (JUMP_EQUAL, TCP, IgnoreUnless),
            ]);
            ((LOAD_BYTE, 40 + 13, Go), (LOAD_HALF, 40 + 2, Go))
        }
    };
    steps.push(load_flags);
    steps.push((AND, FLAGS, Go));
    steps.push((JUMP_EQUAL, SYN, IgnoreUnless));
    steps.extend(foreign(own, one_of(load_port, ports)));
    assemble(steps)
}

/// An echo request to neither loopback nor `own`: a first fragment, without extension headers.
pub(super) fn foreign_echo(own: IpAddr) -> Vec<SockFilter> {
    const ECHO_REQUEST: u32 = 8;
    const ECHO_REQUEST_V6: u32 = 128;
    let mut steps = match own {
        IpAddr::V4(_) => {
            let mut steps = first_of_protocol_v4(ICMP);
            steps.push((LOAD_BYTE_INDEXED, 0, Go));
            steps.push((JUMP_EQUAL, ECHO_REQUEST, IgnoreUnless));
            steps
        }
        IpAddr::V6(_) => vec![
            (LOAD_BYTE, 6, Go),
            (JUMP_EQUAL, ICMPV6, IgnoreUnless),
            (LOAD_BYTE, 40, Go),
            (JUMP_EQUAL, ECHO_REQUEST_V6, IgnoreUnless),
        ],
    };
    steps.extend(foreign(own, ignore()));
    assemble(steps)
}

/// A UDP datagram from `own`, to another port than `except`, and to neither many, loopback nor `own`.
/// Of IPv6, also each fragment of one, whatever its port.
pub(super) fn datagram(own: IpAddr, except: u16) -> Vec<SockFilter> {
    const FRAGMENT: u32 = 44;
    let mut steps = foreign(own, ignore());
    match own {
        IpAddr::V4(own) => {
            steps.extend([
                (LOAD_WORD, 12, Go),
                (JUMP_EQUAL, u32::from(own), IgnoreUnless),
                (LOAD_WORD, 16, Go),
                (JUMP_EQUAL, u32::from(Ipv4Addr::BROADCAST), IgnoreIf),
                (AND, 0xf000_0000, Go),
                (JUMP_EQUAL, 0xe000_0000, IgnoreIf),
            ]);
            steps.extend(first_of_protocol_v4(UDP));
            steps.push((LOAD_HALF_INDEXED, 2, Go));
            steps.push((JUMP_EQUAL, u32::from(except), IgnoreIf));
        }
        IpAddr::V6(own) => {
            for (word, destination, _) in words(own) {
                // The source stands 16 bytes before the destination.
                steps.push((LOAD_WORD, destination - 16, Go));
                steps.push((JUMP_EQUAL, word, IgnoreUnless));
            }
            steps.extend([
                (LOAD_BYTE, 24, Go),
                (JUMP_EQUAL, 0xff, IgnoreIf),
                (LOAD_BYTE, 6, Go),
                (JUMP_EQUAL, FRAGMENT, SkipIf(4)),
                (JUMP_EQUAL, UDP, IgnoreUnless),
                (LOAD_HALF, 40 + 2, Go),
                (JUMP_EQUAL, u32::from(except), IgnoreIf),
                (RETURN, TAKE, Go),
                (LOAD_BYTE, 40, Go),
                (JUMP_EQUAL, UDP, IgnoreUnless),
            ]);
        }
    }
    assemble(steps)
}

/// A packet whose fixed header is followed by none of TCP, UDP and ICMP, to neither loopback nor
/// `own`.
pub(super) fn foreign_protocol(own: IpAddr) -> Vec<SockFilter> {
    let (field, icmp) = match own {
        IpAddr::V4(_) => (9, ICMP),
        IpAddr::V6(_) => (6, ICMPV6),
    };
    let mut steps = vec![
        (LOAD_BYTE, field, Go),
        (JUMP_EQUAL, TCP, IgnoreIf),
        (JUMP_EQUAL, UDP, IgnoreIf),
        (JUMP_EQUAL, icmp, IgnoreIf),
    ];
    steps.extend(foreign(own, ignore()));
    assemble(steps)
}

/// A UDP datagram to a group or to everybody, of either family.
pub(super) fn to_many() -> Vec<SockFilter> {
    const VERSION: u32 = 0xf0;
    const VERSION_6: u32 = 0x60;
    let mut v4 = first_of_protocol_v4(UDP);
    v4.push((LOAD_WORD, 16, Go));
    v4.push((JUMP_EQUAL, u32::from(Ipv4Addr::BROADCAST), TakeIf));
    v4.extend(group_v4());
    v4.extend(ignore());
    let mut steps = vec![
        (LOAD_BYTE, 0, Go),
        (AND, VERSION, Go),
        (JUMP_EQUAL, VERSION_6, SkipIf(length(&v4))),
    ];
    steps.extend(v4);
    steps.extend([
        (LOAD_BYTE, 6, Go),
        (JUMP_EQUAL, UDP, IgnoreUnless),
        (LOAD_BYTE, 24, Go),
        (JUMP_EQUAL, 0xff, IgnoreUnless),
    ]);
    assemble(steps)
}

/// A packet to this host alone.
pub(super) fn to_one() -> Vec<SockFilter> {
    const TO_THIS_HOST: u32 = 0;
    assemble(vec![
        (LOAD_WORD, PACKET_TYPE, Go),
        (JUMP_EQUAL, TO_THIS_HOST, IgnoreUnless),
    ])
}

fn group_v4() -> Steps {
    vec![
        (LOAD_WORD, 16, Go),
        (AND, 0xf000_0000, Go),
        (JUMP_EQUAL, 0xe000_0000, TakeIf),
    ]
}

/// A reset from 127.0.0.1 that answers a SYN: its sequence number is zero.
pub(super) fn refusal_v4() -> Vec<SockFilter> {
    let mut steps = vec![
        (LOAD_WORD, 12, Go),
        (JUMP_EQUAL, u32::from(Ipv4Addr::LOCALHOST), IgnoreUnless),
    ];
    steps.extend(first_of_protocol_v4(TCP));
    steps.extend([
        (LOAD_BYTE_INDEXED, 13, Go),
        (AND, FLAGS, Go),
        (JUMP_EQUAL, RST_ACK, IgnoreUnless),
        (LOAD_WORD_INDEXED, 4, Go),
        (JUMP_EQUAL, 0, IgnoreUnless),
    ]);
    assemble(steps)
}

/// The same from ::1.
pub(super) fn refusal_v6() -> Vec<SockFilter> {
    let mut steps = vec![
        (LOAD_BYTE, 6, Go),
        (JUMP_EQUAL, TCP, IgnoreUnless),
        (LOAD_BYTE, 40 + 13, Go),
        (AND, FLAGS, Go),
        (JUMP_EQUAL, RST_ACK, IgnoreUnless),
        (LOAD_WORD, 40 + 4, Go),
        (JUMP_EQUAL, 0, IgnoreUnless),
    ];
    for (word, destination, _) in words(Ipv6Addr::LOCALHOST) {
        // The source stands 16 bytes before the destination.
        steps.push((LOAD_WORD, destination - 16, Go));
        steps.push((JUMP_EQUAL, word, IgnoreUnless));
    }
    assemble(steps)
}

/// Leaves the length of the IP header in the index register.
fn first_of_protocol_v4(protocol: u32) -> Steps {
    vec![
        (LOAD_BYTE, 9, Go),
        (JUMP_EQUAL, protocol, IgnoreUnless),
        (LOAD_HALF, 6, Go),
        (AND, 0x1fff, Go),
        (JUMP_EQUAL, 0, IgnoreUnless),
        (LOAD_X_HEADER_LENGTH, 0, Go),
    ]
}

/// Takes what is neither to `own` nor to loopback; `loopback` decides about the latter.
fn foreign(own: IpAddr, loopback: Steps) -> Steps {
    let mut steps = match own {
        IpAddr::V4(own) => vec![
            (LOAD_WORD, 16, Go),
            (JUMP_EQUAL, u32::from(own), IgnoreIf),
            (AND, 0xff00_0000, Go),
            (JUMP_EQUAL, 0x7f00_0000, SkipUnless(length(&loopback))),
        ],
        IpAddr::V6(own) => {
            let mut steps = equal_v6(own, ignore());
            steps.extend(equal_v6(Ipv6Addr::LOCALHOST, loopback));
            return steps;
        }
    };
    steps.extend(loopback);
    steps
}

/// Runs `then` if the destination is `address`, and jumps over it otherwise.
fn equal_v6(address: Ipv6Addr, then: Steps) -> Steps {
    let mut steps = Vec::new();
    for (word, offset, left) in words(address) {
        steps.push((LOAD_WORD, offset, Go));
        steps.push((JUMP_EQUAL, word, SkipUnless(2 * left + length(&then))));
    }
    steps.extend(then);
    steps
}

fn ignore() -> Steps {
    vec![(RETURN, 0, Go)]
}

/// Takes the packet if the field that `load` loads is one of `ports`, else ignores it.
fn one_of(load: (u16, u32, Next), ports: &[u16]) -> Steps {
    let mut steps = vec![load];
    steps.extend(
        ports
            .iter()
            .map(|port| (JUMP_EQUAL, u32::from(*port), TakeIf)),
    );
    steps.extend(ignore());
    steps
}

/// Jumps reach 255 instructions far; [`MOST_PORTS`] sees to it that this is enough.
fn length(steps: &Steps) -> u8 {
    u8::try_from(steps.len()).expect("programs here are short")
}

/// The words of a destination address, where they stand, and how many follow.
fn words(address: Ipv6Addr) -> [(u32, u32, u8); 4] {
    let [a, b, c, d, e, f, g, h] = address.segments().map(u32::from);
    [
        (a << 16 | b, 24, 3),
        (c << 16 | d, 28, 2),
        (e << 16 | f, 32, 1),
        (g << 16 | h, 36, 0),
    ]
}

/// Adds the two ends and turns the ways into distances.
fn assemble(mut steps: Steps) -> Vec<SockFilter> {
    let take = steps.len();
    steps.push((RETURN, TAKE, Go));
    steps.push((RETURN, 0, Go));
    steps
        .into_iter()
        .enumerate()
        .map(|(at, (code, operand, next))| {
            let to_take = u8::try_from(take.saturating_sub(at + 1));
            let to_take = to_take.expect("programs here are short");
            let to_ignore = to_take.saturating_add(1);
            let (if_true, if_false) = match next {
                Go => (0, 0),
                IgnoreUnless => (0, to_ignore),
                IgnoreIf => (to_ignore, 0),
                TakeIf => (to_take, 0),
                SkipIf(distance) => (distance, 0),
                SkipUnless(distance) => (0, distance),
            };
            SockFilter::new(code, if_true, if_false, operand)
        })
        .collect()
}
