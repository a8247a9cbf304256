//! Saying exact bytes, on the laptop itself and in the sandbox, and hearing what comes back.
//!
//! Clients never send what an attacker does. So the bytes are made here, and `say.py` is only
//! the mouth and the ear.

use std::fmt;

use stockade_world::{Laptop, Running};

use super::probe::Place;

const SAY: &str = include_str!("say.py");

/// A message to one place, in pieces that are sent by a call each.
#[derive(Clone, Debug)]
pub(crate) struct Saying {
    transport: &'static str,
    host: String,
    port: u16,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    /// Waits until something is heard.
    Listen,
    /// Waits for a moment.
    Pause,
}

impl Saying {
    /// `host` is a name or an address without brackets.
    pub(crate) fn tcp(host: &str, port: u16, message: impl Into<Vec<u8>>) -> Self {
        Self {
            transport: "tcp",
            host: host.to_owned(),
            port,
            pieces: vec![Piece::Bytes(message.into())],
        }
    }

    pub(crate) fn udp(host: &str, port: u16, message: impl Into<Vec<u8>>) -> Self {
        Self {
            transport: "udp",
            ..Self::tcp(host, port, message)
        }
    }

    /// Cuts the message into pieces of at most this many bytes.
    pub(crate) fn cut(mut self, length: usize) -> Self {
        let cut = |piece: Piece| match piece {
            Piece::Listen | Piece::Pause => vec![piece],
            Piece::Bytes(bytes) => {
                let parts = bytes.chunks(length).map(<[u8]>::to_vec);
                parts.map(Piece::Bytes).collect()
            }
        };
        self.pieces = self.pieces.into_iter().flat_map(cut).collect();
        self
    }

    /// Hesitates after this many bytes of the message.
    pub(crate) fn halting_at(mut self, position: usize) -> Self {
        if let [Piece::Bytes(bytes)] = self.pieces.as_slice() {
            let (start, end) = bytes.split_at(position.min(bytes.len()));
            let [start, end] = [start, end].map(|part| Piece::Bytes(part.to_vec()));
            self.pieces = vec![start, Piece::Pause, end];
        }
        self
    }

    /// Waits for an answer, then goes on.
    pub(crate) fn then(mut self, message: impl Into<Vec<u8>>) -> Self {
        self.pieces.push(Piece::Listen);
        self.pieces.push(Piece::Bytes(message.into()));
        self
    }

    fn line(&self) -> String {
        let written = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => to_hex(bytes),
            Piece::Listen => "-".to_owned(),
            Piece::Pause => "+".to_owned(),
        };
        let pieces: Vec<String> = self.pieces.iter().map(written).collect();
        let (host, port) = (&self.host, self.port);
        format!("{} {host} {port} {}\n", self.transport, pieces.join(" "))
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// All of it. Nothing means that the other side closed without a word.
    Bytes(Vec<u8>),
    /// `silence`, `no address`, or an errno.
    Error(String),
}

impl Heard {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Error(_) => &[],
        }
    }

    /// Refused as "administratively prohibited": nobody was talked to.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(self, Self::Error(error) if ["EHOSTUNREACH", "EACCES"].contains(&&**error))
    }

    /// The codes of all HTTP answers, one after the other. Servers of the world have no reason
    /// to say 400 or 403; the gate has.
    pub(crate) fn statuses(&self) -> String {
        let text = String::from_utf8_lossy(self.bytes());
        let codes = text
            .split("HTTP/1.1 ")
            .skip(1)
            .filter_map(|rest| rest.get(..3));
        codes.collect::<Vec<_>>().join(" ")
    }

    /// What a TLS server said: `hello`, `alert NUMBER`, or nothing of the kind.
    pub(crate) fn tls(&self) -> String {
        match self.bytes() {
            [22, 3, _, _, _, 2, ..] => "hello".to_owned(),
            [21, 3, _, 0, 2, _, description] => format!("alert {description}"),
            _ => format!("{self:?}"),
        }
    }
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "heard \"{}\"", bytes.escape_ascii()),
            Self::Error(error) => f.write_str(error),
        }
    }
}

/// A running `say.py`.
pub(crate) struct Speaker(Running);

impl Speaker {
    #[track_caller]
    pub(crate) fn start(place: Place<'_>, laptop: &Laptop) -> Self {
        Self(place.python(laptop, SAY).spawn().expect("start to speak"))
    }

    /// Says all at once. What was heard has the order of the sayings.
    #[track_caller]
    pub(crate) fn say(&mut self, sayings: &[Saying]) -> Vec<Heard> {
        let lines: String = sayings.iter().map(Saying::line).collect();
        self.0.write(lines + "go\n").expect("write to the speaker");
        let told = self.0.expect("done\n").expect("what was heard");
        let heard: Vec<Heard> = told.lines().filter_map(read).collect();
        assert_eq!(heard.len(), sayings.len(), "{told}");
        heard
    }

    /// One after the other.
    #[track_caller]
    pub(crate) fn say_one(&mut self, saying: &Saying) -> Heard {
        self.say(std::slice::from_ref(saying)).remove(0)
    }

    /// What the session said at its end.
    #[track_caller]
    pub(crate) fn end(self) -> String {
        self.0.wait().expect("end").expect_success().stderr()
    }
}

/// The last line, which is no outcome, is dropped.
fn read(line: &str) -> Option<Heard> {
    match line.strip_prefix("heard ") {
        Some(hex) => Some(Heard::Bytes(from_hex(hex))),
        None if line == "heard" => Some(Heard::Bytes(Vec::new())),
        None if line == "done" => None,
        None => Some(Heard::Error(line.to_owned())),
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        u8::from_str_radix(pair, 16).expect("hexadecimal")
    });
    digits.collect()
}
