//! Records, and the one message that is put together from them.

use super::{Broken, Hello, Inspection, MAX_HELLO, hello};
use crate::cursor::{Cursor, Short};

pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;
pub(super) const HEARTBEAT: u8 = 24;

pub(super) const CLIENT_HELLO: u8 = 1;

/// What one record holds at most before encryption, and with it (RFC 5246 §6.2).
const MAX_PLAIN: u16 = 1 << 14;
pub(super) const MAX_CIPHERTEXT: u16 = MAX_PLAIN + 2048;
/// Enough for a post-quantum hello in records of a single byte. Bounds the
/// work for a client that sends byte by byte.
pub(super) const MAX_RECORDS: usize = 4096;

/// Looks at everything that a client has sent so far. An answer other than
/// [`Inspection::NeedMore`] stays the same however much follows.
pub fn inspect(sent: &[u8]) -> Inspection {
    match claim(sent) {
        Claim::Undecided => Inspection::NeedMore,
        Claim::NotTls => Inspection::NotTls,
        Claim::Broken(why) => Inspection::Broken(why),
        Claim::Tls => match read(sent) {
            Ok(Some(hello)) => Inspection::Hello(hello),
            Ok(None) => Inspection::NeedMore,
            Err(why) => Inspection::Broken(why),
        },
    }
}

enum Claim {
    Undecided,
    NotTls,
    Tls,
    Broken(Broken),
}

/// Whether a server would take the connection for TLS, by its first bytes. Some servers
/// care little for the version of the first record, and some skip records of other types:
/// they find a hello where nobody looks any more.
fn claim(sent: &[u8]) -> Claim {
    match *sent {
        [] | [CHANGE_CIPHER_SPEC..=HEARTBEAT] => Claim::Undecided,
        [HANDSHAKE, 3, ..] => Claim::Tls,
        [HANDSHAKE, 0..=LAXEST_MAJOR] => Claim::Undecided,
        [HANDSHAKE, major @ 0..=LAXEST_MAJOR, minor, ..] => {
            Claim::Broken(Broken::RecordVersion(u16::from_be_bytes([major, minor])))
        }
        [kind @ CHANGE_CIPHER_SPEC..=HEARTBEAT, 0..=LAXEST_MAJOR, ..] => {
            Claim::Broken(Broken::NoHandshake(kind))
        }
        // Nothing in the record, as in a call of Sun's RPC.
        [0x80, 0, ..] => Claim::NotTls,
        // The start of an SSL 2 hello, or of one of TLS in an SSL 2 record, which some server takes.
        [SSL2_SHORTEST..=SSL2_LONGEST] | [SSL2_SHORTEST..=SSL2_LONGEST, _] => Claim::Undecided,
        [SSL2_SHORTEST..=SSL2_LONGEST, _, CLIENT_HELLO, ..] => Claim::Broken(Broken::Ssl2),
        // A server that takes other versions is a matter of [`super::Search`].
        _ => Claim::NotTls,
    }
}

/// The largest major version of a first record that is refused whatever follows.
pub(super) const LAXEST_MAJOR: u8 = 0x0f;
/// The first byte of a record of SSL 2: a length below 16 KiB, with the top bit set.
pub(super) const SSL2_SHORTEST: u8 = 0x80;
pub(super) const SSL2_LONGEST: u8 = 0xbf;

/// The hello, or nothing while a part of it is missing.
pub(super) fn read(sent: &[u8]) -> Result<Option<Hello>, Broken> {
    let mut cursor = Cursor::new(sent);
    let mut message = Vec::new();
    for _ in 0..MAX_RECORDS {
        let Some(record) = Record::read(&mut cursor)? else {
            return Ok(None);
        };
        let announced = message.len().saturating_add(record.length);
        message.extend_from_slice(record.data);
        if let Some(length) = announced_length(&message)? {
            if announced > length {
                return Err(Broken::Trailing);
            }
            if message.len() == length {
                let body = message.get(HEADER..).unwrap_or_default();
                return hello::parse(body, cursor.position()).map(Some);
            }
        }
        if record.data.len() < record.length {
            return Ok(None);
        }
    }
    Err(Broken::Records)
}

/// Type and length of a handshake message.
pub(super) const HEADER: usize = 4;

/// How long the message says it is, its header included.
fn announced_length(message: &[u8]) -> Result<Option<usize>, Broken> {
    let mut cursor = Cursor::new(message);
    match cursor.u8() {
        Ok(CLIENT_HELLO) => {}
        Ok(other) => return Err(Broken::NoHello(other)),
        Err(Short) => return Ok(None),
    }
    let Ok([high, middle, low]) = cursor.array() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes([0, high, middle, low]));
    match length {
        Ok(length) if length <= MAX_HELLO => Ok(Some(length.saturating_add(HEADER))),
        _ => Err(Broken::TooLong),
    }
}

/// A handshake record in the clear.
struct Record<'a> {
    length: usize,
    /// As much of it as there is.
    data: &'a [u8],
}

impl<'a> Record<'a> {
    /// Nothing while its header is not complete. What there is of it is checked.
    fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Broken> {
        match cursor.u8() {
            Ok(HANDSHAKE) => {}
            Ok(other) => return Err(Broken::Interrupted(other)),
            Err(Short) => return Ok(None),
        }
        let Ok(version) = cursor.u16() else {
            return Ok(None);
        };
        if !is_version(version) {
            return Err(Broken::RecordVersion(version));
        }
        let Ok(length) = cursor.u16() else {
            return Ok(None);
        };
        match length {
            0 => return Err(Broken::EmptyRecord),
            1..=MAX_PLAIN => {}
            _ => return Err(Broken::RecordLength(length)),
        }
        let length = usize::from(length);
        let data = cursor.take(length.min(cursor.rest().len()));
        Ok(data.ok().map(|data| Self { length, data }))
    }
}

/// TLS 1.0 to 1.3. What stands in records and hellos is a relic and means little,
/// but nobody writes anything else.
pub(super) fn is_version(version: u16) -> bool {
    (0x0301..=0x0304).contains(&version)
}
