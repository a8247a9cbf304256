//! The asking side, for the user's other commands.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use serde::de::DeserializeOwned;

use super::{Answer, LiveSnapshot, Means};
use crate::control::{ControlError, Request};

/// A snapshot of very many flows is long.
const LONGEST: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a running session that stays open.
#[derive(Debug)]
pub struct LiveConnection {
    stream: BufReader<UnixStream>,
}

impl LiveConnection {
    /// Over a connection of [`connect`](crate::connect).
    ///
    /// # Errors
    /// If the socket does not take a time-out.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        Self::with_patience(stream, PATIENCE)
    }

    /// The same for somebody who waits no longer than this for an answer: a session that is suspended
    /// gives none.
    ///
    /// # Errors
    /// If the socket does not take a time-out.
    pub fn with_patience(stream: UnixStream, patience: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let stream = BufReader::new(stream);
        Ok(Self { stream })
    }

    /// The session now. With `attends`, whoever has this connection answers its questions from now on.
    ///
    /// # Errors
    /// If it has ended, or does not answer in a way that is understood here.
    pub fn snapshot(&mut self, attends: bool) -> Result<LiveSnapshot, ControlError> {
        let reply: Result<LiveSnapshot, String> = self.ask(&Request::Live { attends })?;
        reply.map_err(|why| ControlError::NoAnswer(io::Error::other(why)))
    }

    /// Answers a question. The inner error says why that has no effect: it is answered already, for
    /// example, or the file cannot be written.
    ///
    /// # Errors
    /// If the session has ended, or does not answer in a way that is understood here.
    pub fn answer(
        &mut self,
        question: u64,
        answer: Answer,
        by: Means,
    ) -> Result<Result<(), String>, ControlError> {
        self.ask(&Request::Answer {
            question,
            answer,
            by,
        })
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ControlError> {
        let request = serde_json::to_string(request).map_err(io::Error::from)?;
        writeln!(self.stream.get_mut(), "{request}")?;
        let mut line = String::new();
        let read = (&mut self.stream).take(LONGEST).read_line(&mut line);
        if read.map_err(ControlError::NoAnswer)? == 0 {
            let gone = io::ErrorKind::UnexpectedEof.into();
            return Err(ControlError::NoAnswer(gone));
        }
        serde_json::from_str(&line).map_err(ControlError::OtherVersion)
    }
}
