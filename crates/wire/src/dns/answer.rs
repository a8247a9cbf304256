//! Answers: those of an upstream resolver, checked, and our own.

use super::message::{CD, DO, Header, OPCODE, Opening, QR, RA, RD, TC};
use super::query::{PLAIN_LIMIT, with_id};
use super::{Malformed, Query, Type};
use crate::cursor::Cursor;

/// Our own buffer for datagrams, as told to clients: the size that the DNS
/// operators agreed on in 2020, because it is never fragmented.
const OUR_PAYLOAD: u16 = 1232;
/// RFC 8914.
const EXTENDED_ERROR: u16 = 15;

/// The outcome that the header of an answer states. `NoError` without records
/// means that the name exists and has nothing of the type asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rcode {
    NoError = 0,
    FormErr = 1,
    ServFail = 2,
    NxDomain = 3,
    NotImp = 4,
    Refused = 5,
}

/// A reason for people, which `dig` prints (RFC 8914).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtendedError {
    pub code: u16,
    pub text: String,
}

impl ExtendedError {
    /// On a list that the client asked for.
    pub const FILTERED: u16 = 17;
    /// Refused by an administrator's policy.
    pub const PROHIBITED: u16 = 18;
    /// No upstream resolver could be reached.
    pub const NO_REACHABLE_AUTHORITY: u16 = 22;
    pub const NETWORK_ERROR: u16 = 23;
}

/// Why bytes are not the answer to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the message is a query, not a response")]
    NotAResponse,
    #[error("the identifier is not the one that was sent")]
    Id,
    #[error("the opcode is not that of a query")]
    Opcode,
    #[error("the response is to another question")]
    Question,
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Tells the sender of something unreadable so. Nothing if it is too short to
/// have an identifier, or a response: two servers could do this forever.
pub fn formerr(bytes: &[u8]) -> Option<Vec<u8>> {
    let asked = Header::read(&mut Cursor::new(bytes)).ok()?;
    if asked.flags & QR != 0 {
        return None;
    }
    let rcode = if asked.flags & OPCODE == 0 {
        Rcode::FormErr
    } else {
        Rcode::NotImp
    };
    let header = Header {
        questions: 0,
        ..response_header(&asked, rcode)
    };
    Some(header.bytes().collect())
}

/// Whether a message says that it is cut short, and the whole is to be had over TCP.
pub fn is_truncated(message: &[u8]) -> bool {
    Header::read(&mut Cursor::new(message)).is_ok_and(|header| header.flags & TC != 0)
}

/// Whether a message says that its sender could not, or would not, answer: another server
/// may know more.
pub fn is_failure(message: &[u8]) -> bool {
    let failures = [Rcode::ServFail, Rcode::NotImp, Rcode::Refused].map(|rcode| rcode as u16);
    Header::read(&mut Cursor::new(message))
        .is_ok_and(|header| failures.contains(&(header.flags & 0x000f)))
}

/// Whether a message says that there is no such name, or that its sender cannot tell.
pub fn is_unknown(message: &[u8]) -> bool {
    let is_no_name = Header::read(&mut Cursor::new(message))
        .is_ok_and(|header| header.flags & 0x000f == Rcode::NxDomain as u16);
    is_no_name || is_failure(message)
}

/// Whether a message says that the name exists, even if it has no records of the type asked for.
pub fn name_exists(message: &[u8]) -> bool {
    Header::read(&mut Cursor::new(message)).is_ok_and(|header| header.flags & 0x000f == 0)
}

pub(super) fn response_header(asked: &Header, rcode: Rcode) -> Header {
    Header {
        id: asked.id,
        flags: QR | (asked.flags & (OPCODE | RD | CD)) | RA | rcode as u16,
        questions: 1,
        answers: 0,
        authorities: 0,
        additionals: 0,
    }
}

impl Query {
    /// Checks that `response` answers this query, sent under `sent_id`, and
    /// gives it back with the client's own identifier and letter case.
    ///
    /// A truncated response may be cut anywhere. If it does not parse as a
    /// whole, it loses its records, which the client must fetch anew anyway.
    pub fn accept(&self, response: &[u8], sent_id: u16) -> Result<Vec<u8>, Mismatch> {
        let header = Header::read(&mut Cursor::new(response))?;
        if header.flags & QR == 0 {
            return Err(Mismatch::NotAResponse);
        }
        if header.id != sent_id {
            return Err(Mismatch::Id);
        }
        if header.flags & OPCODE != 0 {
            return Err(Mismatch::Opcode);
        }
        if Opening::read(response)?.question != self.question {
            return Err(Mismatch::Question);
        }

        let mut answer = with_id(response.to_vec(), self.id());
        // Equal names have equal lengths, so this stays within the question.
        for (theirs, ours) in answer.iter_mut().skip(12).zip(&self.question_wire) {
            *theirs = *ours;
        }
        // Checked as it will be passed on: names may point into the question,
        // and what they find there depends on its letter case.
        match Opening::read(&answer)?.edns() {
            Ok(_) => Ok(answer),
            Err(_) if header.flags & TC != 0 => Ok(self.empty(header, &[])),
            Err(malformed) => Err(malformed.into()),
        }
    }

    /// An answer of our own. The extended error is for clients that speak EDNS;
    /// its text is cut to what fits a plain datagram.
    pub fn error(&self, rcode: Rcode, extended: Option<&ExtendedError>) -> Vec<u8> {
        let options = extended.map_or(Vec::new(), |error| {
            // Header, question, OPT without options, then this option's head.
            let used = self.question_wire.len().saturating_add(12 + 11 + 6);
            let room = PLAIN_LIMIT.saturating_sub(used);
            extended_error_option(error, room)
        });
        let opt = self.our_opt(&options);
        self.empty(response_header(&self.header, rcode), &opt)
    }

    /// Our own OPT record with these options, for a client that sent one.
    pub(super) fn our_opt(&self, options: &[u8]) -> Vec<u8> {
        let Some(edns) = self.edns else {
            return Vec::new();
        };
        let mut opt = vec![0];
        opt.extend(Type::OPT.0.to_be_bytes());
        opt.extend(OUR_PAYLOAD.to_be_bytes());
        opt.extend([0, 0]); // upper bits of the rcode, version
        opt.extend(if edns.dnssec_ok { DO } else { 0 }.to_be_bytes());
        opt.extend(length_field(options.len()));
        opt.extend(options);
        opt
    }

    /// `response`, or if it is longer than `limit`, the message that tells the
    /// client to come back over TCP.
    pub fn fit(&self, response: Vec<u8>, limit: usize) -> Vec<u8> {
        let limit = limit.max(PLAIN_LIMIT);
        if response.len() <= limit {
            return response;
        }
        let Ok(opening) = Opening::read(&response) else {
            return self.error(Rcode::ServFail, None);
        };
        let opt = opening
            .edns()
            .ok()
            .flatten()
            .map_or(&[][..], |opt| opt.wire);
        let mut header = opening.header;
        header.flags |= TC;
        let short = self.empty(header, opt);
        if short.len() <= limit {
            short
        } else {
            self.empty(header, &[])
        }
    }

    /// An answer without records, to the client's identifier and question.
    /// `opt` is an OPT record or nothing.
    fn empty(&self, header: Header, opt: &[u8]) -> Vec<u8> {
        let header = Header {
            id: self.id(),
            questions: 1,
            answers: 0,
            authorities: 0,
            additionals: u16::from(!opt.is_empty()),
            ..header
        };
        let mut message: Vec<u8> = header.bytes().collect();
        message.extend_from_slice(&self.question_wire);
        message.extend_from_slice(opt);
        message
    }
}

fn extended_error_option(error: &ExtendedError, room: usize) -> Vec<u8> {
    let text = error.text.get(..error.text.floor_char_boundary(room));
    let text = text.unwrap_or_default().as_bytes();
    let mut option = Vec::new();
    option.extend(EXTENDED_ERROR.to_be_bytes());
    option.extend(length_field(text.len().saturating_add(2)));
    option.extend(error.code.to_be_bytes());
    option.extend_from_slice(text);
    option
}

/// Everything measured is under 2^16 bytes.
pub(super) fn length_field(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}
