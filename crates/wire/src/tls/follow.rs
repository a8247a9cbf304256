//! What a client sends after its hello, until nothing can change the name.
//!
//! A server that wants another key share answers with HelloRetryRequest, and the
//! client repeats its hello. It has to ask for the same name, but not every server
//! checks that: OpenSSL 3.0 chooses the site by the second name. So the records
//! after the hello are looked at until one shows that no hello can follow:
//!
//! - application data: the keys of TLS 1.3 are in use. A client that announced
//!   early data may send it before a second hello; such a connection is followed
//!   to its end;
//! - a message of an older handshake (certificate or key exchange);
//! - after ChangeCipherSpec, a handshake record that is encrypted. TLS 1.3 sends
//!   an idle ChangeCipherSpec before the second hello, so that record decides.

use super::records::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, CLIENT_HELLO, HANDSHAKE, MAX_CIPHERTEXT, read,
};
use super::{Broken, Hello};
use crate::cursor::Cursor;

const CERTIFICATE: u8 = 11;
const CLIENT_KEY_EXCHANGE: u8 = 16;
/// A Finished message of TLS 1.2: 16 bytes, encrypted with a tag of at least 8 and
/// a nonce of 8, or a tag of 16.
const SHORTEST_FINISHED: usize = 32;

/// The client's side of a connection whose hello was accepted.
#[derive(Debug)]
pub struct Handshake {
    server_name: Option<String>,
    early_data: bool,
    /// The client has sent ChangeCipherSpec.
    changed: bool,
    /// What is left of a record that needs no look.
    skip: usize,
}

/// What to do with bytes that were not released so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Ask again with these bytes and more.
    NeedMore,
    /// The first so many go on their way. Ask again with the rest.
    Release(usize),
    /// These and all that follow go on their way.
    Opaque,
    Broken(Broken),
}

impl Handshake {
    pub fn after(hello: &Hello) -> Self {
        Self {
            server_name: hello.server_name.clone(),
            early_data: hello.early_data,
            changed: false,
            skip: 0,
        }
    }

    /// Looks at what the client sent after the hello and after all that was
    /// released: always from the first byte that was not.
    pub fn next(&mut self, held: &[u8]) -> Next {
        if self.skip > 0 && !held.is_empty() {
            let released = self.skip.min(held.len());
            self.skip = self.skip.saturating_sub(released);
            return Next::Release(released);
        }
        let mut cursor = Cursor::new(held);
        let Ok(kind) = cursor.u8() else {
            return Next::NeedMore;
        };
        match kind {
            APPLICATION_DATA if !self.early_data => return Next::Opaque,
            CHANGE_CIPHER_SPEC | ALERT | HANDSHAKE | APPLICATION_DATA => {}
            other => return Next::Broken(Broken::Interrupted(other)),
        }
        let (Ok(version), Ok(length)) = (cursor.u16(), cursor.u16()) else {
            return Next::NeedMore;
        };
        if version >> 8 != 3 {
            return Next::Broken(Broken::RecordVersion(version));
        }
        if length > MAX_CIPHERTEXT {
            return Next::Broken(Broken::RecordLength(length));
        }
        if kind == HANDSHAKE {
            return self.handshake(held, usize::from(length));
        }
        self.changed |= kind == CHANGE_CIPHER_SPEC;
        self.skip = usize::from(length);
        Next::Release(cursor.position())
    }

    /// A hello, or a message that shows that none will come.
    fn handshake(&self, held: &[u8], length: usize) -> Next {
        let rest = held.get(RECORD_HEADER..).unwrap_or_default();
        let message = rest.get(..length).unwrap_or(rest);
        match message {
            [] if length > 0 => return Next::NeedMore,
            [CERTIFICATE | CLIENT_KEY_EXCHANGE, ..] if !self.changed => return Next::Opaque,
            _ if self.changed && length >= SHORTEST_FINISHED => match looks_plain(message) {
                None => return Next::NeedMore,
                Some(false) => return Next::Opaque,
                Some(true) => {}
            },
            _ => {}
        }
        match read(held) {
            Ok(None) => Next::NeedMore,
            Ok(Some(hello)) if hello.server_name == self.server_name => Next::Release(hello.length),
            Ok(Some(_)) => Next::Broken(Broken::OtherName),
            Err(why) => Next::Broken(why),
        }
    }
}

const RECORD_HEADER: usize = 5;

/// Whether a record is, or starts, a hello rather than being encrypted: by the type and the
/// first byte of the length that a hello starts with. Servers care little for its version, and some
/// for what follows it in the record. One encrypted record in some twenty thousand looks like that
/// by chance, and that resumed session of TLS 1.2 is cut.
fn looks_plain(message: &[u8]) -> Option<bool> {
    match *message {
        // No server takes a longer one.
        [CLIENT_HELLO, 0..=2, ..] => Some(true),
        [] | [CLIENT_HELLO] => None,
        _ => Some(false),
    }
}
