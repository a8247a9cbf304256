//! What a client says before its server does, for who lets it pass unread.
//!
//! Its first line is no request by its own look. But waitress and servers of HTTP/0.9 take any two words
//! for one, and the JDK's server any three. Which site is meant then stands behind that line: in a Host, or
//! in a request that follows before anything is answered. So the lines behind it are looked at. A body
//! would hide where a request begins, so what announces one is refused, too.
//!
//! A URL in the second word names the site by itself, whatever the first one is: waitress takes any word
//! without small letters for a method, and Python's server splits words at more white space than others.
//! Records that begin with a bracket (JSON, XML, syslog) often have one there, and pass.
//!
//! Protocols whose first line is one word are not looked at: nearly no server takes that for a part of a request.

use super::Broken;
use super::opening::{LateRequest, is_space};

/// Looks at lines until the server has said something.
#[derive(Debug)]
pub struct Unanswered {
    readings: [Reading; 3],
    field: Field,
    /// How much of `://` has just come.
    url: usize,
    requests: LateRequest,
    /// The last byte ended a line, to somebody.
    is_at_start: bool,
    /// The last one was a carriage return.
    is_return: bool,
    /// The line has no byte so far, besides carriage returns.
    is_empty: bool,
}

/// What servers make of it that end a first line in one of three ways.
#[derive(Debug)]
struct Reading {
    end: End,
    part: Part,
    /// There was a line that could be a request.
    is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Feed,
    ReturnFeed,
    Either,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// In a line that may be a request. It has so many words so far; more than three are not counted.
    Line {
        words: u8,
        is_in_word: bool,
        /// It begins with a bracket.
        is_record: bool,
    },
    /// Behind such a line.
    Fields,
    /// Behind another one, up to an empty line.
    Text,
    /// Nothing is a request any more.
    Over,
}

const START: Part = Part::Line {
    words: 0,
    is_in_word: false,
    is_record: false,
};

impl Default for Unanswered {
    fn default() -> Self {
        let reading = |end| Reading {
            end,
            part: START,
            is_open: false,
        };
        Self {
            readings: [End::Feed, End::ReturnFeed, End::Either].map(reading),
            field: Field::default(),
            url: 0,
            requests: LateRequest::default(),
            is_at_start: true,
            is_return: false,
            is_empty: true,
        }
    }
}

impl Unanswered {
    /// Looks at the next bytes, before they leave. All that the client has sent has to be shown.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        for piece in bytes.split_inclusive(|byte| b"\r\n".contains(byte)) {
            if self.readings.iter().all(|it| it.part == Part::Over) {
                self.requests = LateRequest::default();
                break;
            }
            if self.readings.iter().any(|it| it.is_open) {
                if self.is_at_start {
                    self.requests.turn();
                }
                if self.requests.pass(piece) {
                    return Err(Broken::Late);
                }
            }
            self.look(piece)?;
        }
        Ok(())
    }

    /// How many bytes are kept.
    pub fn kept(&self) -> usize {
        self.requests.kept()
    }

    /// Looks at a line, or at a part of one.
    fn look(&mut self, piece: &[u8]) -> Result<(), Broken> {
        let (text, end) = match piece {
            [text @ .., end] if b"\r\n".contains(end) => (text, Some(*end)),
            text => (text, None),
        };
        if !text.is_empty() {
            (self.is_at_start, self.is_return, self.is_empty) = (false, false, false);
        }
        for byte in text {
            if self.field.is_other && self.readings.iter().all(|it| it.part.is_known()) {
                break;
            }
            let names_field = self.field.take(*byte);
            if names_field && self.readings.iter().any(|it| it.part == Part::Fields) {
                return Err(Broken::Behind);
            }
            for reading in &mut self.readings {
                reading.part.take(*byte);
            }
            self.url = match (self.url, byte) {
                (_, b':') => 1,
                (1, b'/') => 2,
                (2, b'/') if self.readings.iter().any(|it| it.part.is_in_target()) => {
                    return Err(Broken::Url);
                }
                _ => 0,
            };
        }
        if let Some(end) = end {
            self.end(end);
        }
        Ok(())
    }

    fn end(&mut self, byte: u8) {
        for reading in &mut self.readings {
            let is_end = match reading.end {
                End::Feed => byte == b'\n',
                End::ReturnFeed => byte == b'\n' && self.is_return,
                End::Either => true,
            };
            reading.part = match reading.part {
                Part::Line { words: 0, .. } => START,
                Part::Line { words: 1, .. } if is_end && !reading.is_open => Part::Over,
                Part::Line { words: 1, .. } if is_end => Part::Text,
                Part::Line { .. } if is_end => Part::Fields,
                Part::Fields | Part::Text if byte == b'\n' && self.is_empty => START,
                part => part,
            };
            reading.is_open |= reading.part == Part::Fields;
            // To those who need more for an end, it is white space, or a byte like any other.
            reading.part.take(byte);
        }
        self.field = Field::default();
        self.url = 0;
        self.is_at_start = true;
        self.is_return = byte == b'\r';
        self.is_empty |= byte == b'\n';
    }
}

impl Part {
    /// No other byte of the line matters.
    fn is_known(self) -> bool {
        !matches!(self, Self::Line { words: 0..=2, .. })
    }

    /// In what a server that takes the line for a request takes for its target.
    fn is_in_target(self) -> bool {
        let Self::Line {
            words, is_record, ..
        } = self
        else {
            return false;
        };
        words == 2 && !is_record
    }

    /// The next byte, if it is one of the line.
    fn take(&mut self, byte: u8) {
        if let Self::Line {
            words,
            is_in_word,
            is_record,
        } = self
            && (byte != b'\n' || *words > 0)
        {
            // And what is white space to Python.
            let is_word = !is_space(byte) && !matches!(byte, 0x1c..=0x1f | 0x85 | 0xa0);
            if is_word && !*is_in_word {
                *is_record |= *words == 0 && b"{[<".contains(&byte);
                *words = words.saturating_add(1).min(3);
            }
            *is_in_word = is_word;
        }
    }
}

/// The beginning of a line, as far as it may be the name of a field that matters.
#[derive(Debug, Default)]
struct Field {
    name: [u8; LONGEST],
    length: usize,
    /// Only a colon may follow.
    is_complete: bool,
    is_other: bool,
}

const NAMES: [&[u8]; 3] = [b"host", b"content-length", b"transfer-encoding"];
const LONGEST: usize = 17;

impl Field {
    /// Takes the next byte of the line. Whether it completes such a name.
    fn take(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.is_other => {}
            b':' => {
                let name = self.name.get(..self.length).unwrap_or_default();
                self.is_other = true;
                return NAMES.contains(&name);
            }
            byte if is_space(byte) => self.is_complete = self.length > 0,
            byte => match self.name.get_mut(self.length) {
                Some(place) if !self.is_complete => {
                    *place = byte.to_ascii_lowercase();
                    self.length = self.length.saturating_add(1);
                }
                _ => self.is_other = true,
            },
        }
        false
    }
}
