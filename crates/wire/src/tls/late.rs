//! Hellos that come later in a connection, as after STARTTLS. They are looked for at every byte of what
//! the client sends: where a server reads one depends on how it reads (docs/decisions/0018).
//!
//! - a *candidate* begins with the header of a handshake record, of any version: some servers take
//!   any. Most are none after a few bytes more;
//! - one that has the shape of a hello is read like a first hello when its last byte is there,
//!   and is a hello or [`Broken`]. No server acts on a part of one, so its first bytes may have
//!   left before;
//! - candidates may lie inside each other, and each is followed: a client could wrap the hello
//!   that the server reads in one that it does not.

use super::records::{
    CHANGE_CIPHER_SPEC, CLIENT_HELLO, HANDSHAKE, HEADER, HEARTBEAT, LAXEST_MAJOR, MAX_RECORDS,
    SSL2_LONGEST, SSL2_SHORTEST, read,
};
use super::{Broken, Hello, MAX_HELLO};
use crate::cursor::{Cursor, Short};

/// Candidates that are followed at a time. Clients of old have one.
const MOST: usize = 32;
/// A record of another type that some servers skip inside a hello: a warning, or a change of
/// ciphers.
const SHORT_RECORD: usize = 2;
/// The longest record that a server is known to take.
const LONGEST_RECORD: u16 = 33_093;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Late {
    Hello(Hello),
    Broken(Broken),
}

/// Looks at what a client sends, in whatever pieces, for hellos.
#[derive(Debug, Default)]
pub struct Search {
    /// What was passed, from the first byte of the first candidate on.
    kept: Vec<u8>,
    candidates: Vec<Candidate>,
    work: Work,
}

/// How many records have been looked at, over all candidates, and how many may be. A client that
/// wraps candidates in each other would otherwise make that grow with the square of what it sends.
/// To read a whole message counts as well.
#[derive(Debug, Default)]
struct Work {
    done: usize,
    allowed: usize,
}

/// What each connection may have from the start.
const FREE_WORK: usize = 1 << 12;
/// And for each byte that is passed.
const WORK_PER_BYTE: usize = 2;
/// So many bytes of a whole message are as much work as a record.
const BYTES_PER_WORK: usize = 64;

/// What all connections together may have beyond that. It is enough for the oddest hello that tests
/// know, sent byte by byte; no ordinary client needs any of it.
pub const SPARE_WORK: usize = 1 << 20;

impl Work {
    /// Whether what was done may be, with what others leave.
    fn is_allowed(&mut self, spare: &mut usize) -> bool {
        let beyond = self.done.saturating_sub(self.allowed);
        let Some(rest) = spare.checked_sub(beyond) else {
            return false;
        };
        *spare = rest;
        self.allowed = self.allowed.max(self.done);
        true
    }
}

/// The start of what could be a hello, within the bytes that are kept.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    start: usize,
    /// Before so many bytes are there, nothing more is known of it.
    wanted: usize,
}

/// What a candidate is.
enum Shape {
    None,
    /// Ask again with so many bytes.
    Undecided(usize),
    /// The message, and whether a server has to be very lax to take it.
    Whole(Vec<u8>, bool),
    Broken(Broken),
}

impl Search {
    /// How many bytes are kept, for who limits that.
    pub fn kept(&self) -> usize {
        self.kept.capacity()
    }

    /// Looks at the next bytes, before they leave. The first error of `judge` ends it. What it takes
    /// beyond a connection's own is taken from `spare`.
    ///
    /// # Errors
    /// Those of `judge`.
    pub fn pass<E>(
        &mut self,
        bytes: &[u8],
        spare: &mut usize,
        mut judge: impl FnMut(Late) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut open = Vec::new();
        let work = &mut self.work;
        work.allowed = work
            .allowed
            .max(FREE_WORK)
            .saturating_add(bytes.len().saturating_mul(WORK_PER_BYTE));
        let work = &mut (work, spare);
        if self.candidates.is_empty() {
            scan(bytes, 0, work, &mut open, &mut judge)?;
            if let Some(from) = first(&open) {
                self.kept = bytes.get(from..).unwrap_or_default().to_vec();
                self.follow_from(from, open);
            }
            return Ok(());
        }
        let fresh = self.kept.len();
        self.kept.extend_from_slice(bytes);
        for candidate in self.candidates.drain(..) {
            if candidate.wanted <= self.kept.len() {
                follow(&self.kept, candidate.start, work, &mut open, &mut judge)?;
            } else {
                open.push(candidate);
            }
        }
        scan(&self.kept, fresh, work, &mut open, &mut judge)?;
        match first(&open) {
            Some(from) => {
                self.kept.drain(..from);
                self.follow_from(from, open);
            }
            None => self.kept = Vec::new(),
        }
        Ok(())
    }

    /// What is kept begins at `from` now.
    fn follow_from(&mut self, from: usize, candidates: Vec<Candidate>) {
        self.candidates = candidates;
        for Candidate { start, wanted } in &mut self.candidates {
            *start = start.saturating_sub(from);
            *wanted = wanted.saturating_sub(from);
        }
    }
}

fn first(candidates: &[Candidate]) -> Option<usize> {
    candidates.iter().map(|candidate| candidate.start).min()
}

/// Looks for candidates that begin at `from` or later.
fn scan<E>(
    bytes: &[u8],
    from: usize,
    work: &mut (&mut Work, &mut usize),
    open: &mut Vec<Candidate>,
    judge: &mut impl FnMut(Late) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = from;
    while let Some(rest) = bytes.get(at..)
        && let Some(offset) = rest.iter().position(|byte| is_start(*byte))
    {
        at = at.saturating_add(offset);
        follow(bytes, at, work, open, judge)?;
        at = at.saturating_add(1);
    }
    Ok(())
}

fn is_start(byte: u8) -> bool {
    byte == HANDSHAKE || is_ssl2(byte)
}

/// GnuTLS takes the data of SSL 2 records for parts of a hello, too.
fn is_ssl2(byte: u8) -> bool {
    (SSL2_SHORTEST..=SSL2_LONGEST).contains(&byte)
}

fn follow<E>(
    bytes: &[u8],
    start: usize,
    (work, spare): &mut (&mut Work, &mut usize),
    open: &mut Vec<Candidate>,
    judge: &mut impl FnMut(Late) -> Result<(), E>,
) -> Result<(), E> {
    let candidate = bytes.get(start..).unwrap_or_default();
    let shape = shape(candidate, &mut work.done);
    if !work.is_allowed(spare) {
        return judge(Late::Broken(Broken::Nested));
    }
    match shape {
        Shape::None => Ok(()),
        Shape::Undecided(wanted) => {
            let wanted = start.saturating_add(wanted);
            open.push(Candidate { start, wanted });
            if open.len() > MOST {
                return judge(Late::Broken(Broken::Nested));
            }
            Ok(())
        }
        Shape::Broken(why) => judge(Late::Broken(why)),
        Shape::Whole(message, is_odd) if is_odd && !fits(&message) => Ok(()),
        Shape::Whole(..) => match read(candidate) {
            Ok(Some(hello)) => judge(Late::Hello(hello)),
            // It is whole to a reader that is less strict.
            Ok(None) => judge(Late::Broken(Broken::Length)),
            Err(why) => judge(Late::Broken(why)),
        },
    }
}

/// Whether some server would read a hello here. Lax where servers are: in the versions of
/// records, and in records of other types between those of the hello.
fn shape(bytes: &[u8], looked_at: &mut usize) -> Shape {
    let mut cursor = Cursor::new(bytes);
    let mut message = Message::default();
    let mut is_odd = false;
    for _ in 0..MAX_RECORDS {
        *looked_at = looked_at.saturating_add(1);
        let header = cursor.position();
        let Ok(kind) = cursor.u8() else {
            return Shape::Undecided(header.saturating_add(1));
        };
        let is_ssl2 = is_ssl2(kind);
        let announced = if is_ssl2 {
            cursor
                .u8()
                .map(|low| u16::from_be_bytes([kind & 0x7f, low]))
        } else {
            cursor.u16().and_then(|version| {
                is_odd |= version >> 8 > u16::from(LAXEST_MAJOR);
                cursor.u16()
            })
        };
        let Ok(announced) = announced else {
            let header_length = if is_ssl2 { 2 } else { 5 };
            return Shape::Undecided(header.saturating_add(header_length));
        };
        is_odd |= is_ssl2;
        let is_record = is_ssl2
            || ((CHANGE_CIPHER_SPEC..=HEARTBEAT).contains(&kind) && announced <= LONGEST_RECORD);
        let is_handshake = is_ssl2 || kind == HANDSHAKE;
        let record = usize::from(announced);
        if !is_record || (!is_handshake && record > SHORT_RECORD) {
            return Shape::None;
        }
        let there = cursor.rest().len().min(record);
        let Ok(data) = cursor.take(there) else {
            return Shape::None;
        };
        let missing = record.saturating_sub(there);
        let end = cursor.position().saturating_add(missing);
        if !is_handshake {
            if missing > 0 {
                return Shape::Undecided(end);
            }
            continue;
        }
        if record == 0 && message.length == 0 {
            // If the next record begins a hello, it is a candidate of its own.
            return Shape::None;
        }
        match message.add(data) {
            Look::None => return Shape::None,
            Look::Undecided if missing > 0 => {
                return Shape::Undecided(cursor.position().saturating_add(1));
            }
            Look::Undecided => {}
            // With an odd version, it takes all of it to tell a hello from chance.
            Look::Hello(whole, true) if whole > MAX_HELLO.saturating_add(HEADER) && !is_odd => {
                return Shape::Broken(Broken::TooLong);
            }
            Look::Hello(whole, is_plausible) if message.length >= whole => {
                *looked_at = looked_at.saturating_add(whole / BYTES_PER_WORK);
                let mut message = message.parts.concat();
                message.truncate(whole);
                return Shape::Whole(message, is_odd || !is_plausible);
            }
            Look::Hello(whole, _) if missing > 0 => {
                let rest = whole.saturating_sub(message.length);
                return Shape::Undecided(end.min(cursor.position().saturating_add(rest)));
            }
            Look::Hello(..) => {}
        }
    }
    // More records than any reader takes, and not yet known to be no hello.
    Shape::Broken(Broken::Records)
}

/// A message in the records that it comes in. Any byte could begin one, and nearly all of these are none by their
/// start, so no more than that is copied before it is whole.
#[derive(Default)]
struct Message<'a> {
    start: Vec<u8>,
    parts: Vec<&'a [u8]>,
    length: usize,
}

impl<'a> Message<'a> {
    /// Adds the data of the next record.
    fn add(&mut self, data: &'a [u8]) -> Look {
        if self.length == 0
            && let Look::None = look(data)
        {
            return Look::None;
        }
        let room = LOOKED_AT.saturating_sub(self.start.len());
        self.start
            .extend_from_slice(data.get(..room).unwrap_or(data));
        self.parts.push(data);
        self.length = self.length.saturating_add(data.len());
        look(&self.start)
    }
}

enum Look {
    None,
    Undecided,
    /// A hello of this length. Whether its version is one that clients could have.
    Hello(usize, bool),
}

/// The shortest body: with one cipher and one compression.
const SHORTEST: usize = 2 + 32 + 1 + 2 + 2 + 2;

/// As much of a message as [`look`] reads.
const LOOKED_AT: usize = HEADER + 2 + 32 + 1 + 255 + 2;

/// What the start of a message tells: its type, length, version, random number, session, and the
/// length of its ciphers.
fn look(message: &[u8]) -> Look {
    let read = || -> Result<Look, Short> {
        let mut cursor = Cursor::new(message);
        if cursor.u8()? != CLIENT_HELLO {
            return Ok(Look::None);
        }
        let high = cursor.u8()?;
        // Longer ones than servers take are none.
        if high > 2 {
            return Ok(Look::None);
        }
        let length = usize::from(high) << 16 | usize::from(cursor.u16()?);
        if length < SHORTEST {
            return Ok(Look::None);
        }
        let is_plausible = (3..=LAXEST_MAJOR).contains(&cursor.u8()?);
        cursor.take(1 + 32)?; // minor version, random number
        let session = cursor.u8()?;
        cursor.take(session.into())?;
        let suites = cursor.u16()?;
        let least = SHORTEST
            .saturating_sub(2)
            .saturating_add(session.into())
            .saturating_add(suites.into());
        if suites == 0 || suites % 2 == 1 || least > length {
            return Ok(Look::None);
        }
        Ok(Look::Hello(length.saturating_add(HEADER), is_plausible))
    };
    read().unwrap_or(Look::Undecided)
}

/// Whether all lengths in a message fit, as they hardly do by chance. No server takes one in which
/// they do not.
fn fits(message: &[u8]) -> bool {
    const LONGEST_SESSION: u8 = 32;
    let read = || -> Result<bool, Short> {
        let mut cursor = Cursor::new(message);
        cursor.take(HEADER + 2 + 32)?;
        let session = cursor.u8()?;
        cursor.take(session.into())?;
        let suites = cursor.u16()?;
        cursor.take(suites.into())?;
        let compressions = cursor.u8()?;
        cursor.take(compressions.into())?;
        let mut fits = session <= LONGEST_SESSION && compressions > 0;
        if !cursor.rest().is_empty() {
            fits &= usize::from(cursor.u16()?) == cursor.rest().len();
        }
        while !cursor.rest().is_empty() {
            cursor.u16()?;
            let length = cursor.u16()?;
            cursor.take(length.into())?;
        }
        Ok(fits)
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidates in each other, which turn out to be none at the very end.
    fn wrapped(record: &[u8]) -> Vec<u8> {
        let mut bytes = record.repeat(16_384 / record.len());
        bytes.extend([0xff; 8]);
        bytes
    }

    /// Each byte of these could begin a record of 16 KB, and none begins a hello.
    #[test]
    fn what_is_no_hello_by_its_start_is_not_copied() {
        let mut message = Message::default();
        assert!(matches!(message.add(&[0xbf; 16_384]), Look::None));
        assert_eq!(message.start.capacity() + message.parts.capacity(), 0);
        // Nor is one that seems to be a hello, before it is whole.
        let mut hello = [0; 16_384];
        hello[0] = CLIENT_HELLO;
        hello[2] = 0x3f;
        hello[4] = 3;
        hello[40] = 2;
        assert!(matches!(message.add(&hello[..1]), Look::Undecided));
        assert!(matches!(
            message.add(&hello[1..]),
            Look::Hello(16_132, true)
        ));
        assert_eq!(message.start.len(), LOOKED_AT);
    }

    #[test]
    fn to_read_a_whole_message_is_work() {
        let mut odd = [0; 16_384];
        odd[..6].copy_from_slice(&[0x16, 0xff, 3, 0x3f, 0xfb, CLIENT_HELLO]);
        odd[7] = 0x3f;
        odd[8] = 0xf7;
        odd[45] = 2;
        let (mut done, whole) = (0, odd.len() - 5);
        let shape = shape(&odd, &mut done);
        assert!(matches!(shape, Shape::Whole(message, true) if message.len() == whole));
        assert!(done > whole / BYTES_PER_WORK, "{done}");
    }

    #[test]
    fn work_grows_with_what_is_sent_and_no_faster() {
        let empty = wrapped(b"\x16\x03\x03\x00\x00");
        let mut search = Search::default();
        let mut spare = SPARE_WORK;
        let fine: Result<(), Late> = search.pass(&empty, &mut spare, Err);
        assert_eq!((fine, spare), (Ok(()), SPARE_WORK));
        assert!(search.work.done < empty.len(), "{}", search.work.done);

        // A byte of a hello's start in each record: type, length, version.
        let start: Vec<u8> = [1, 0, 0x40, 0, 3, 3]
            .iter()
            .flat_map(|byte| [0x16, 3, 3, 0, 1, *byte])
            .collect();
        let bytes = wrapped(&start);
        let mut search = Search::default();
        let end = (0..200).find_map(|_| search.pass(&bytes, &mut spare, Err).err());
        assert_eq!(end, Some(Late::Broken(Broken::Nested)));
        assert!(search.work.done <= search.work.allowed + MAX_RECORDS);
        // Other connections have nothing left of what all share, and what is their own.
        let mut others = Search::default();
        assert!(others.pass(&bytes, &mut spare, Err).is_err());
        assert!(others.work.done <= others.work.allowed + MAX_RECORDS);
        let noise: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
        let mut others = Search::default();
        let fine: Result<(), Late> = others.pass(&noise, &mut spare, Err);
        assert_eq!(fine, Ok(()));
    }
}
