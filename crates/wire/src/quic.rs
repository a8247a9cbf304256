//! Telling QUIC from other datagrams.
//!
//! A client of QUIC begins with packets that have the long header, whose first bytes are the same
//! in all versions (RFC 8999): a byte with the top bit set, the version, and two identifiers with
//! their lengths. The next bit is set as well, unless both sides agreed to clear it at random
//! (RFC 9287). Other protocols have such bytes by chance, so what is said depends on the version:
//!
//! - one that servers are known to speak, or that asks them which they speak, decides alone;
//! - any other one counts if the bit is set, the identifiers are as short as RFC 9000 has them,
//!   and the datagram is as long as a client's first one must be.
//!
//! A long search of pvAccess (EPICS) would count by chance. No server of QUIC speaks the version that
//! its header would be.

use crate::cursor::Cursor;

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
/// RFC 9000 §14.1: servers discard first packets in shorter datagrams.
const SHORTEST_FIRST: usize = 1200;
/// RFC 9000 §17.2.
const LONGEST_ID: u8 = 20;

/// Whether some server could take a client's datagram for the start of a QUIC connection.
pub fn has_long_header(datagram: &[u8]) -> bool {
    let mut cursor = Cursor::new(datagram);
    let (Ok(first), Ok(version)) = (cursor.u8(), cursor.u32()) else {
        return false;
    };
    if first & LONG == 0 {
        return false;
    }
    if is_known(version) {
        return true;
    }
    let Some(rest) = after_identifiers(cursor) else {
        return false;
    };
    match version {
        // The list of versions with which servers answer.
        0 => rest > 0 && rest.is_multiple_of(4),
        _ => first & FIXED != 0 && datagram.len() >= SHORTEST_FIRST && !is_pva_search(datagram),
    }
}

/// Whether it is one search message of pvAccess: the magic byte, the protocol's version, flags, the
/// command, and the length of what follows, in the byte order that the highest flag says.
fn is_pva_search(datagram: &[u8]) -> bool {
    let Some(([0xca, 1 | 2, flags, 3, length @ ..], rest)) = datagram.split_first_chunk::<8>()
    else {
        return false;
    };
    let length = match flags & 0x80 {
        0 => u32::from_le_bytes(*length),
        _ => u32::from_be_bytes(*length),
    };
    u32::try_from(rest.len()) == Ok(length)
}

/// How many bytes follow the two identifiers.
fn after_identifiers(mut cursor: Cursor<'_>) -> Option<usize> {
    for _ in 0..2 {
        let length = cursor.u8().ok().filter(|length| *length <= LONGEST_ID)?;
        cursor.take(length.into()).ok()?;
    }
    Some(cursor.rest().len())
}

/// Versions of servers in use: 1 and 2 with their drafts, and those of Google, Facebook and
/// Microsoft. And the ones that no server has, which clients use to learn the others (RFC 9000
/// §15).
fn is_known(version: u32) -> bool {
    const VERSION_2: [u32; 2] = [0x6b33_43cf, 0x709a_50c4];
    let bytes = version.to_be_bytes();
    version == 1
        || VERSION_2.contains(&version)
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
        || matches!(
            bytes,
            [0xff, 0, 0, _]
                | [0xfa, 0xce, 0xb0, _]
                | [0xab, 0xcd, 0, _]
                | [b'Q' | b'T' | b'P', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9']
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(first: u8, version: u32, length: usize) -> Vec<u8> {
        let mut packet = vec![first];
        packet.extend(version.to_be_bytes());
        packet.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
        packet.resize(length.max(packet.len()), 0x5a);
        packet
    }

    #[test]
    fn first_packets_of_every_version_are_known() {
        for version in [
            1,
            0x6b33_43cf,
            0xff00_001d,
            0xface_b002,
            0x5130_3433,
            0x5130_3530,
            0x1a2a_3a4a,
            0x0a0a_0a0a,
        ] {
            // Each type of packet, with the bit and without.
            for first in [0xc0, 0xc3, 0xd0, 0xe1, 0xff, 0x80, 0x83, 0x9f] {
                assert!(has_long_header(&packet(first, version, 1200)));
                assert!(has_long_header(&packet(first, version, 40)));
            }
            assert!(!has_long_header(&packet(0x40, version, 1200)));
        }
        assert!(has_long_header(&packet(0xc0, 0x1234_5678, 1200)));
        assert!(!has_long_header(&packet(0xc0, 0x1234_5678, 1199)));
        let negotiation = [&packet(0x80, 0, 15)[..], &[0, 0, 0, 1]].concat();
        assert!(has_long_header(&negotiation));
    }

    #[test]
    fn a_long_search_of_pvaccess_is_no_quic() {
        // 1300 bytes follow the header: a number of this search, which is small, and names.
        let search = |flags: u8, length: [u8; 4]| {
            let names = [0x5a; 1296];
            [&[0xca, 2, flags, 3][..], &length, &[0; 4], &names].concat()
        };
        let (little, big) = (1300_u32.to_le_bytes(), 1300_u32.to_be_bytes());
        assert!(!has_long_header(&search(0, little)));
        assert!(!has_long_header(&search(0x80, big)));
        // What only begins like one may be something else.
        assert!(has_long_header(&search(0, 1299_u32.to_le_bytes())));
        assert!(has_long_header(&search(0x80, little)));
    }

    #[test]
    fn other_protocols_are_no_quic() {
        let ntp = [&[0xe3][..], &[0; 47]].concat();
        let old_ntp = [&[0xe3, 0, 6, 0xe9][..], &[0; 44]].concat();
        let rtp = [&[0x80, 0x60, 0x12, 0x34, 0, 0, 0x10][..], &[7; 1393]].concat();
        let rtcp = [&[0x80, 0xc8, 0, 6][..], &[1; 24]].concat();
        let game = b"\xff\xff\xff\xffTSource Engine Query\0";
        for other in [
            &b""[..],
            b"\x80",
            b"\x80\0\0\0",
            &ntp,
            &old_ntp,
            &rtp,
            &rtcp,
            game,
            b"\x16\xfe\xfd\0\0\0\0\0\0\0\0\0\x8f\x01", // DTLS
            b"\0\x01\0\0\x21\x12\xa4\x42",             // STUN
            b"\x01\0\0\0WireGuard",
            b"\x38OpenVPN",
        ] {
            assert!(!has_long_header(other), "{other:?}");
        }
    }
}
