//! A question from inside.

use super::message::{AD, CD, DO, Header, OPCODE, Opening, QR, Question, RD};
use super::{Class, Malformed, Name, Type};

/// What a resolver takes in a datagram if it does not say (RFC 1035 §4.2.1).
pub(super) const PLAIN_LIMIT: usize = 512;
/// The most that one UDP datagram over IPv4 can carry.
const DATAGRAM_LIMIT: usize = 65507;

/// A well-formed query with exactly one question.
#[derive(Debug, Clone)]
pub struct Query {
    pub(super) header: Header,
    pub(super) question: Question,
    /// The question as the client wrote it.
    pub(super) question_wire: Vec<u8>,
    pub(super) edns: Option<Edns>,
}

/// What the client said about itself in an OPT record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edns {
    payload: u16,
    pub(super) dnssec_ok: bool,
}

impl Query {
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let opening = Opening::read(bytes)?;
        let header = opening.header;
        if header.flags & QR != 0 {
            return Err(Malformed::NotAQuery);
        }
        if header.flags & OPCODE != 0 {
            return Err(Malformed::Opcode(header.opcode()));
        }
        if header.answers != 0 || header.authorities != 0 {
            return Err(Malformed::AnswersInQuery);
        }
        let edns = opening.edns()?.map(|opt| Edns {
            payload: opt.payload,
            dnssec_ok: opt.flags & DO != 0,
        });
        Ok(Self {
            header,
            question_wire: opening.question_wire.to_vec(),
            question: opening.question,
            edns,
        })
    }

    /// A question of the gate's own.
    pub fn of(name: &Name, qtype: Type) -> Option<Self> {
        let header = Header {
            id: 0,
            flags: RD,
            questions: 1,
            answers: 0,
            authorities: 0,
            additionals: 0,
        };
        let rest = [qtype.0.to_be_bytes(), Class::IN.0.to_be_bytes()].concat();
        let bytes: Vec<u8> = header.bytes().chain(name.wire()).chain(rest).collect();
        Self::parse(&bytes).ok()
    }

    /// The same for all queries that have the same answer: what is sent upstream but for
    /// its identifier.
    pub fn key(&self) -> Vec<u8> {
        self.to_upstream(0)
    }

    /// The identifier that the client gave, and expects in its answer.
    pub fn id(&self) -> u16 {
        self.header.id
    }

    pub fn name(&self) -> &Name {
        &self.question.name
    }

    pub fn qtype(&self) -> Type {
        self.question.qtype
    }

    pub fn qclass(&self) -> Class {
        self.question.qclass
    }

    /// The same question about another name.
    #[must_use]
    pub fn about(&self, name: &Name) -> Self {
        let question = Question {
            name: name.clone(),
            ..self.question.clone()
        };
        let rest = self.question_wire.len().saturating_sub(TYPE_AND_CLASS);
        let (_, rest) = self.question_wire.split_at(rest);
        Self {
            question_wire: name.wire().chain(rest.iter().copied()).collect(),
            question,
            ..self.clone()
        }
    }

    /// The longest answer that the client takes in a datagram.
    pub fn udp_limit(&self) -> usize {
        // RFC 6891 §6.2.3: a smaller size than 512 means 512.
        self.edns.map_or(PLAIN_LIMIT, |edns| {
            usize::from(edns.payload).clamp(PLAIN_LIMIT, DATAGRAM_LIMIT)
        })
    }

    /// The query to send upstream: the client's question and flags, and nothing else of
    /// its message, in which it could have hidden anything: not even the case of its
    /// letters. `id` must be unpredictable from inside.
    pub fn to_upstream(&self, id: u16) -> Vec<u8> {
        let opt = self.our_opt(&[]);
        let header = Header {
            id,
            flags: self.header.flags & (RD | AD | CD),
            questions: 1,
            answers: 0,
            authorities: 0,
            additionals: u16::from(!opt.is_empty()),
        };
        let name = self.question_wire.len().saturating_sub(TYPE_AND_CLASS);
        let (name, rest) = self.question_wire.split_at(name);
        let name = name.iter().map(u8::to_ascii_lowercase);
        let question = name.chain(rest.iter().copied());
        header.bytes().chain(question).chain(opt).collect()
    }
}

/// What follows the name in a question.
const TYPE_AND_CLASS: usize = 4;

/// `message` under another identifier: its first two bytes.
pub(super) fn with_id(mut message: Vec<u8>, id: u16) -> Vec<u8> {
    if let Some(field) = message.first_chunk_mut() {
        *field = id.to_be_bytes();
    }
    message
}
