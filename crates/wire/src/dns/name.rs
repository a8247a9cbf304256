//! Domain names: read from the wire, compared and shown in one form.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Malformed;
use crate::cursor::Cursor;

const MAX_LABEL: usize = 63;
/// RFC 1035 §2.3.4: lengths included, the closing root label too.
const MAX_WIRE_LENGTH: usize = 255;
/// The longest name has 127 labels, and compression gains nothing from a pointer
/// to a pointer: a name that hops more often is made to waste time.
const MAX_POINTERS: usize = 127;
/// No name starts inside the header.
const HEADER_LENGTH: usize = 12;

/// A domain name. Names are equal when they differ only in the case of ASCII
/// letters, as the protocol has it.
///
/// A label may hold any byte, and what comes from the wire may be hostile:
/// `Display` writes letters, digits, hyphen, underscore and asterisk as they
/// are and everything else as `\DDD`, so it is safe in a log or a terminal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// Wire form in lower case, without compression and without the closing
    /// root label: each label after its length. Nothing for the root.
    labels: Box<[u8]>,
}

impl Name {
    /// Reads a name, following compression pointers into the message.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut labels = Vec::new();
        walk(cursor, |label| labels.extend_from_slice(label))?;
        labels.make_ascii_lowercase();
        Ok(Self {
            labels: labels.into(),
        })
    }

    /// Steps over a name, checking it as [`Name::read`] does.
    pub(super) fn skip(cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        walk(cursor, |_| ())
    }

    /// Reads a name as it was written, without compression.
    pub(super) fn expand(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Malformed> {
        let mut labels = Vec::new();
        walk(cursor, |label| labels.extend_from_slice(label))?;
        labels.push(0);
        Ok(labels)
    }

    /// The name that `text` is a plain host name of, or nothing. A dot at its end
    /// changes nothing.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut labels = Vec::new();
        for label in text.strip_suffix('.').unwrap_or(text).split('.') {
            let length = u8::try_from(label.len()).ok()?;
            if label.is_empty() || label.len() > MAX_LABEL || !label.bytes().all(is_plain) {
                return None;
            }
            labels.push(length);
            labels.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        (labels.len() < MAX_WIRE_LENGTH).then(|| Self {
            labels: labels.into(),
        })
    }

    /// The name as text in lower case, without a dot at the end. Nothing if a byte
    /// is no letter, digit, hyphen or underscore: what looks like text might then
    /// mean something else to another reader. Nothing for the root either.
    pub fn text(&self) -> Option<String> {
        let plain = self.labels().flatten().copied().all(is_plain);
        (plain && !self.is_root()).then(|| self.to_string())
    }

    /// Wire form, without compression.
    pub(super) fn wire(&self) -> impl Iterator<Item = u8> {
        self.labels.iter().copied().chain([0])
    }

    /// What stands in front of `suffix`, if the name ends with that.
    pub fn below(&self, suffix: &Name) -> Option<Below> {
        let mut below = Below::default();
        let mut cursor = Cursor::new(&self.labels);
        while cursor.rest() != &*suffix.labels {
            let length = usize::from(cursor.u8().ok()?);
            cursor.take(length).ok()?;
            below.labels = below.labels.saturating_add(1);
            below.longest = below.longest.max(length);
            below.length = below.length.saturating_add(length);
        }
        Some(below)
    }

    /// The address that the name stands for in the other direction (RFC 1035
    /// §3.5, RFC 3596 §2.5).
    pub fn reversed_address(&self) -> Option<IpAddr> {
        if self.labels().last() != Some(b"arpa") {
            return None;
        }
        let text = self.text()?;
        if let Some(octets) = text.strip_suffix(".in-addr.arpa") {
            let address: Ipv4Addr = octets.parse().ok()?;
            let [a, b, c, d] = address.octets();
            return Some(Ipv4Addr::new(d, c, b, a).into());
        }
        let nibbles = text.strip_suffix(".ip6.arpa")?;
        let mut bits = 0_u128;
        let mut count = 0_u32;
        for nibble in nibbles.rsplit('.') {
            if nibble.len() != 1 || count == 32 {
                return None;
            }
            bits = bits << 4 | u128::from(u8::from_str_radix(nibble, 16).ok()?);
            count = count.saturating_add(1);
        }
        (count == 32).then(|| Ipv6Addr::from_bits(bits).into())
    }

    pub(super) fn is_root(&self) -> bool {
        self.labels.is_empty()
    }

    /// The labels from left to right, in lower case.
    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        let mut cursor = Cursor::new(&self.labels);
        std::iter::from_fn(move || {
            let length = cursor.u8().ok()?;
            cursor.take(usize::from(length)).ok()
        })
    }
}

/// How much a name says below a name that is known, which is how much a query
/// can carry to the servers of that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Below {
    pub labels: usize,
    pub longest: usize,
    /// The lengths of all labels, together.
    pub length: usize,
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_".contains(&byte)
}

/// Calls `each` with every label of the name, its length byte in front.
fn walk(cursor: &mut Cursor<'_>, mut each: impl FnMut(&[u8])) -> Result<(), Malformed> {
    let mut reader = *cursor;
    // A pointer leads to before the place where the name it ends started, so
    // a loop is impossible.
    let mut limit = reader.position();
    let mut pointers = 0_usize;
    let mut length = 1_usize; // the closing root label
    loop {
        let start = reader.position();
        let first = reader.u8()?;
        match first >> 6 {
            0b00 => {
                reader.take(usize::from(first))?;
                if pointers == 0 {
                    *cursor = reader;
                }
                if first == 0 {
                    return Ok(());
                }
                let label = reader.since(start);
                length = length.saturating_add(label.len());
                if length > MAX_WIRE_LENGTH {
                    return Err(Malformed::Name);
                }
                each(label);
            }
            0b11 => {
                let target = usize::from(u16::from_be_bytes([first & 0x3f, reader.u8()?]));
                if pointers == 0 {
                    *cursor = reader;
                }
                pointers = pointers.saturating_add(1);
                if target < HEADER_LENGTH || target >= limit || pointers > MAX_POINTERS {
                    return Err(Malformed::Name);
                }
                limit = target;
                reader = reader.jump(target)?;
            }
            // 01 and 10 were never put to use.
            _ => return Err(Malformed::Name),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        for (index, label) in self.labels().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            for &byte in label {
                if byte.is_ascii_alphanumeric() || b"-_*".contains(&byte) {
                    f.write_char(char::from(byte))?;
                } else {
                    write!(f, "\\{byte:03}")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}
