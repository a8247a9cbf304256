//! The client's side of a connection, request after request.

use super::chunked::{self, Trailers};
use super::head::{self, Body, Parsed};
use super::lines::Lines;
use super::opening::{Meant, Opening};
use super::{Broken, Head, Kind, MAX_HEAD, Step};

/// Reads the requests of one connection. It keeps no bytes: the caller holds those
/// that were not released, and always shows all of them.
#[derive(Debug)]
pub struct Requests {
    state: State,
    /// Within the bytes that are held.
    lines: Lines,
    begun: bool,
    /// The last head asked for WebSocket, and the client has sent nothing since.
    may_switch: bool,
}

#[derive(Debug)]
enum State {
    Opening(Opening),
    /// In a head; the current line starts here.
    Head(usize),
    /// So much of the body is left.
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers(Trailers),
    Opaque,
}

impl Default for Requests {
    fn default() -> Self {
        Self::new()
    }
}

impl Requests {
    pub fn new() -> Self {
        Self {
            state: State::Opening(Opening::default()),
            lines: Lines::default(),
            begun: false,
            may_switch: false,
        }
    }

    /// What to do with `held`: everything that came and was not released. After
    /// [`Step::NotHttp`] or [`Step::Broken`] there is nothing more to ask.
    pub fn step(&mut self, held: &[u8]) -> Step {
        self.may_switch &= held.is_empty();
        if let State::Opening(opening) = &mut self.state {
            match opening.look(held) {
                Meant::Undecided => return Step::NeedMore,
                Meant::NotHttp => return Step::NotHttp,
                Meant::Broken(why) => return Step::Broken(why),
                Meant::Http => self.state = State::Head(0),
            }
        }
        self.read(held).unwrap_or_else(Step::Broken)
    }

    /// The server has spoken, and not HTTP. If no request has begun, only a line that names HTTP
    /// begins one.
    pub fn greeted(&mut self) {
        if let State::Opening(opening) = &mut self.state {
            opening.greeted();
        }
    }

    /// The server has agreed to the switch that the last head asked for. `false` if
    /// there is none to agree to: then the connection must not go on.
    pub fn switched(&mut self) -> bool {
        if self.may_switch {
            self.state = State::Opaque;
        }
        self.may_switch
    }

    /// Whether what is left when the client ends may go on its way: nothing, or a
    /// start of something that is not HTTP and was too short to tell. The rest of a
    /// request may not.
    pub fn may_end(&self, held: &[u8]) -> bool {
        held.is_empty()
            || match &self.state {
                State::Opening(opening) => opening.is_foreign(held),
                State::Opaque => true,
                _ => false,
            }
    }

    fn read(&mut self, held: &[u8]) -> Result<Step, Broken> {
        match &mut self.state {
            State::Opening(_) => Ok(Step::NeedMore),
            State::Opaque => Ok(Step::Opaque),
            State::Head(_) => self.head(held),
            State::Body(left) => {
                let released = take(left, held);
                if *left == 0 {
                    self.enter(State::Head(0));
                }
                Ok(released)
            }
            State::Chunk(left) => {
                let released = take(left, held);
                if *left == 0 {
                    self.enter(State::ChunkEnd);
                }
                Ok(released)
            }
            State::ChunkSize => {
                let Some((line, end)) = self.line(held, chunked::MAX_LINE, Broken::Chunk)? else {
                    return Ok(Step::NeedMore);
                };
                self.enter(match chunked::size(line)? {
                    0 => State::Trailers(Trailers::default()),
                    size => State::Chunk(size),
                });
                Ok(Step::Release(end))
            }
            State::ChunkEnd => match held {
                [] | [b'\r'] => Ok(Step::NeedMore),
                [b'\r', b'\n', ..] => {
                    self.enter(State::ChunkSize);
                    Ok(Step::Release(2))
                }
                _ => Err(Broken::Chunk),
            },
            State::Trailers(trailers) => {
                let room = trailers.room();
                let Some((line, end)) = self.line(held, room, Broken::Trailer)? else {
                    return Ok(Step::NeedMore);
                };
                self.trailer(line, end)
            }
        }
    }

    fn trailer(&mut self, line: &[u8], end: usize) -> Result<Step, Broken> {
        match &mut self.state {
            State::Trailers(trailers) if !line.is_empty() => {
                trailers.add(line, end)?;
                self.lines = Lines::default();
            }
            _ => self.enter(State::Head(0)),
        }
        Ok(Step::Release(end))
    }

    /// Goes on to the next line of a head that may have come in part.
    fn head(&mut self, held: &[u8]) -> Result<Step, Broken> {
        let view = held.get(..MAX_HEAD).unwrap_or(held);
        while let State::Head(start) = &mut self.state {
            let Some((line, end)) = self.lines.line(view, *start)? else {
                if view.len() == MAX_HEAD {
                    return Err(Broken::HeadTooLong);
                }
                return Ok(Step::NeedMore);
            };
            match (line, *start) {
                ([], 0) => return Err(Broken::LeadingSpace),
                ([], _) => return self.request(view.get(..end).unwrap_or_default()),
                (line, 0) => head::check_version(line)?,
                _ => {}
            }
            *start = end;
        }
        Ok(Step::NeedMore)
    }

    fn request(&mut self, head: &[u8]) -> Result<Step, Broken> {
        let Parsed {
            authority,
            kind,
            body,
        } = head::parse(head)?;
        if kind == Kind::WebSocket && self.begun {
            return Err(Broken::Upgrade);
        }
        self.begun = true;
        self.may_switch = kind == Kind::WebSocket;
        self.enter(match (kind, body) {
            (Kind::Connect, _) => State::Opaque,
            (_, Body::Length(0)) => State::Head(0),
            (_, Body::Length(length)) => State::Body(length),
            (_, Body::Chunked) => State::ChunkSize,
        });
        Ok(Step::Head(Head {
            authority,
            kind,
            length: head.len(),
        }))
    }

    /// What follows begins with the first byte that is held next.
    fn enter(&mut self, state: State) {
        self.state = state;
        self.lines = Lines::default();
    }

    /// The first line of what is held, if it is complete within `limit` bytes.
    fn line<'a>(
        &mut self,
        held: &'a [u8],
        limit: usize,
        too_long: Broken,
    ) -> Result<Option<(&'a [u8], usize)>, Broken> {
        let view = held.get(..limit).unwrap_or(held);
        match self.lines.line(view, 0)? {
            None if view.len() == limit => Err(too_long),
            line => Ok(line),
        }
    }
}

/// Releases what there is of the bytes that are `left`.
fn take(left: &mut u64, held: &[u8]) -> Step {
    let there = u64::try_from(held.len()).unwrap_or(u64::MAX);
    let taken = there.min(*left);
    *left = left.saturating_sub(taken);
    match usize::try_from(taken) {
        Ok(0) | Err(_) => Step::NeedMore,
        Ok(count) => Step::Release(count),
    }
}
