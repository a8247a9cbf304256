//! Domain names: read from the wire, compared and shown in one form.

use std::fmt;

use super::Malformed;
use crate::cursor::Cursor;

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
                    write!(f, "{}", char::from(byte))?;
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
