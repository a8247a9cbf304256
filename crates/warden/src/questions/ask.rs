//! The asking side, which runs inside, or outside and must notice that.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::IpAddr,
    os::unix::net::UnixStream,
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt},
    process::geteuid,
    thread::{SecureComputingMode, no_new_privs, secure_computing_mode},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use stockade_sys::socket::peer;
use stockade_wall::SESSION_SOCKET;

use super::{
    BUSY, DenialsInside, Explained, LONGEST_ANSWER, Misunderstood, PROTOCOL, Question, Reply,
};

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often a busy session is asked again, and after how long.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(400);

/// The session that this process is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    pub session: String,
}

/// Why this process is not known to be in a session.
#[derive(Debug, thiserror::Error)]
pub enum NotInside {
    #[error("no session socket at {SESSION_SOCKET}")]
    NoSocket,
    #[error("this process is confined by no system call filter, as all processes of a session are")]
    Unconfined,
    #[error(
        "{SESSION_SOCKET} is not a session's: process {0}, which is not outside, listens there"
    )]
    ListenerInside(u32),
    #[error("{SESSION_SOCKET} is not a session's: user {0} listens there")]
    OtherUser(u32),
    #[error("{SESSION_SOCKET} cannot be asked: {0}")]
    Unreachable(io::Error),
    #[error("{SESSION_SOCKET} does not answer: {0}")]
    NoAnswer(io::Error),
    #[error("{SESSION_SOCKET} does not answer this process as one of its session")]
    Refused,
    #[error("the session's program is another version (protocol {0}, here {PROTOCOL})")]
    OtherVersion(u32),
    #[error("{SESSION_SOCKET} answers nonsense")]
    Nonsense,
    #[error("the session does not answer this: {0}")]
    NotAnswered(String),
}

/// Which session this process is in, proven by the kernel. No variable, file or name counts.
///
/// # Errors
/// If it is in none, or that cannot be shown.
pub fn ask_inside() -> Result<Inside, NotInside> {
    inside(&asked(&Question::Inside {})?)
}

/// What the policy of this session says about a target. The addresses are those of a name, as this
/// process was given them.
///
/// # Errors
/// If this process is in no session, or the target is none.
pub fn ask_explain(target: &str, addresses: &[IpAddr]) -> Result<Explained, NotInside> {
    let (target, addresses) = (target.to_owned(), addresses.to_vec());
    let question = Question::Explain { target, addresses };
    for _ in 0..ATTEMPTS {
        match understand(&asked(&question)?) {
            Err(NotInside::NotAnswered(why)) if why == BUSY => thread::sleep(PAUSE),
            answer => return answer,
        }
    }
    understand(&asked(&question)?)
}

/// What was denied in this session.
///
/// # Errors
/// If this process is in no session.
pub fn ask_denials() -> Result<DenialsInside, NotInside> {
    understand(&asked(&Question::Denials {})?)
}

fn asked(question: &Question) -> Result<Vec<u8>, NotInside> {
    let stream = session_socket()?;
    let answer = ask(&stream, question).map_err(NotInside::NoAnswer)?;
    match answer.is_empty() {
        true => Err(NotInside::Refused),
        false => Ok(answer),
    }
}

/// A connection to the session. Whoever listens is outside of all process namespaces of this process,
/// which is true of nothing that a program inside could start, and of nothing that runs beside an
/// agent outside.
fn session_socket() -> Result<UnixStream, NotInside> {
    let unreachable = |error: Errno| match error {
        Errno::NOENT | Errno::NOTDIR | Errno::CONNREFUSED => NotInside::NoSocket,
        error => NotInside::Unreachable(error.into()),
    };
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None).map_err(unreachable)?;
    // Also for the connection, if others wait for theirs.
    for timeout in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&socket, timeout, Some(PATIENCE)).map_err(unreachable)?;
    }
    let address = SocketAddrUnix::new(SESSION_SOCKET).map_err(unreachable)?;
    connect(&socket, &address).map_err(unreachable)?;
    let peer = peer(&socket).map_err(NotInside::Unreachable)?;
    if let Some(process) = peer.process {
        return Err(NotInside::ListenerInside(process));
    }
    if peer.user != geteuid().as_raw() {
        return Err(NotInside::OtherUser(peer.user));
    }
    // Neither can be taken back by a process that has it.
    let is_filtered = secure_computing_mode() == Ok(SecureComputingMode::Filter);
    if !is_filtered || no_new_privs() != Ok(true) {
        return Err(NotInside::Unconfined);
    }
    Ok(socket.into())
}

fn ask(mut stream: &UnixStream, question: &Question) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(question)?;
    line.push(b'\n');
    // In one piece, without a signal if nobody listens.
    stream.write_all(&line)?;
    let mut answer = Vec::new();
    let most = u64::try_from(LONGEST_ANSWER + 1).unwrap_or_default();
    BufReader::new(stream.take(most)).read_until(b'\n', &mut answer)?;
    Ok(answer)
}

fn understand<T: DeserializeOwned>(answer: &[u8]) -> Result<T, NotInside> {
    let reply: Reply<serde_json::Value> =
        serde_json::from_slice(answer).map_err(|_| NotInside::Nonsense)?;
    if reply.protocol != PROTOCOL {
        return Err(NotInside::OtherVersion(reply.protocol));
    }
    if let Ok(Misunderstood { error }) = serde_json::from_value(reply.answer.clone()) {
        return Err(NotInside::NotAnswered(error));
    }
    serde_json::from_value(reply.answer).map_err(|_| NotInside::Nonsense)
}

fn inside(answer: &[u8]) -> Result<Inside, NotInside> {
    let inside: Inside = understand(answer).map_err(|error| match error {
        NotInside::NotAnswered(_) => NotInside::Refused,
        error => error,
    })?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match !inside.session.is_empty() && inside.session.bytes().all(is_name) {
        true => Ok(inside),
        false => Err(NotInside::Nonsense),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::SessionView;

    #[test]
    fn an_answer_names_a_session_or_is_none() {
        let answer = |line: &[u8]| SessionView::bare("17-4-ab").answer(line).into_bytes();
        let said = inside(&answer(br#"{"ask":"inside"}"#));
        assert_eq!(said.expect("an answer").session, "17-4-ab");
        for nonsense in [
            "",
            "{}",
            r#"{"protocol":1}"#,
            r#"{"protocol":1,"session":""}"#,
            r#"{"protocol":1,"session":"a\u001b[2J"}"#,
            r#"{"protocol":1,"session":7}"#,
            r#"{"protocol":1,"session":"#,
        ] {
            let said = inside(nonsense.as_bytes());
            assert!(matches!(said, Err(NotInside::Nonsense)), "{nonsense}");
        }
        let later = inside(br#"{"protocol":2,"session":"a"}"#);
        assert!(matches!(later, Err(NotInside::OtherVersion(2))));
        let refused = inside(&answer(b""));
        assert!(matches!(refused, Err(NotInside::Refused)));
    }
}
