//! Hellos of real clients, which were captured at a listener on the loopback, and
//! hellos made here, each wrong in one way.

mod follow;
mod hello;
mod late;

use super::*;

const OPENSSL: &[u8] = include_bytes!("captured/openssl13.bin");
const OPENSSL_12: &[u8] = include_bytes!("captured/openssl12.bin");
const OPENSSL_NO_NAME: &[u8] = include_bytes!("captured/openssl_none.bin");
const CURL: &[u8] = include_bytes!("captured/curl.bin");
const PYTHON: &[u8] = include_bytes!("captured/python.bin");
const NODE: &[u8] = include_bytes!("captured/node.bin");

/// A hello that can be made wrong.
#[derive(Clone)]
struct Draft {
    version: u16,
    extensions: Vec<u8>,
}

impl Draft {
    fn new() -> Self {
        Self {
            version: 0x0303,
            extensions: Vec::new(),
        }
    }

    fn named(name: &[u8]) -> Self {
        Self::new().with(0, &name_list(&[(0, name)]))
    }

    fn with(mut self, kind: u16, data: &[u8]) -> Self {
        self.extensions.extend(kind.to_be_bytes());
        self.extensions.extend(vector(data));
        self
    }

    /// The handshake message.
    fn message(&self) -> Vec<u8> {
        let mut body = self.version.to_be_bytes().to_vec();
        body.extend([7; 32]);
        body.push(0); // session
        body.extend(vector(&[0x13, 0x01]));
        body.extend([1, 0]); // compression: none
        body.extend(vector(&self.extensions));
        message(1, &body)
    }

    /// In one record.
    fn bytes(&self) -> Vec<u8> {
        record(&self.message())
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind], &length[1..], body].concat()
}

fn vector(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap().to_be_bytes();
    [&length, data].concat()
}

fn record(data: &[u8]) -> Vec<u8> {
    typed_record(22, data)
}

fn typed_record(kind: u8, data: &[u8]) -> Vec<u8> {
    [&[kind, 3, 1], &vector(data)[..]].concat()
}

/// The message in records of at most so many bytes.
fn split(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(record).collect()
}

fn name_list(names: &[(u8, &[u8])]) -> Vec<u8> {
    let entry = |(kind, name): &(u8, &[u8])| [&[*kind], &vector(name)[..]].concat();
    vector(&names.iter().flat_map(entry).collect::<Vec<u8>>())
}

fn hello(sent: &[u8]) -> Hello {
    match inspect(sent) {
        Inspection::Hello(hello) => hello,
        other => panic!("{other:?}"),
    }
}

fn name(sent: &[u8]) -> Option<String> {
    hello(sent).server_name
}

fn refusal(sent: &[u8]) -> Broken {
    match inspect(sent) {
        Inspection::Broken(why) => why,
        other => panic!("{other:?}"),
    }
}

/// What is said about the shortest prefix on which anything is said, having seen
/// that nothing else is said about longer ones.
fn every_prefix(sent: &[u8]) -> Inspection {
    let mut opinions = (0..=sent.len()).map(|end| inspect(&sent[..end]));
    let first = opinions
        .find(|opinion| *opinion != Inspection::NeedMore)
        .unwrap_or(Inspection::NeedMore);
    for later in opinions {
        assert_eq!(later, first);
    }
    first
}
