//! The protocol between the warden and the inner stage, over a socket that keeps messages
//! apart (`SOCK_SEQPACKET`).
//!
//! Both are the same program, so the protocol has no versions. But the inner stage lives among
//! hostile processes: the warden treats each message as hostile bytes, and accepts only exact
//! encodings of a [`Report`].

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use stockade_sys::signals::{Signal, SignalSet};

use crate::{
    encoding::{decode, encode},
    facts::Limit,
};

/// Longer than any message, so that a longer one is seen to be none.
const LONGEST: usize = 2048;

/// From the warden to the inner stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    Start(Start),
    Signal {
        #[serde(with = "signal")]
        signal: Signal,
        target: Target,
    },
    /// Everything inside stops, since the warden is about to.
    Freeze,
    /// What was stopped by us goes on, and so does the command.
    Continue {
        foreground: bool,
    },
}

/// How the command starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Its process group gets the terminal.
    pub(crate) foreground: bool,
    /// Signals that the caller had blocked.
    #[serde(with = "signal_set")]
    pub(crate) blocked: SignalSet,
    /// Signals that the caller ignored.
    #[serde(with = "signal_set")]
    pub(crate) ignored: SignalSet,
    pub(crate) limits: Vec<Limit>,
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Target {
    /// The command's process alone, as by kill(2).
    Command,
    /// Its process group, as by the terminal.
    Group,
}

/// From the inner stage to the warden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The sandbox is built, and the command is about to start: orders will be obeyed.
    Ready,
    /// The command was not started: this failed, with this error number.
    Failed {
        what: Failure,
        errno: i32,
    },
    Stopped(#[serde(with = "signal")] Signal),
    /// Nothing inside runs any more, as ordered.
    Frozen,
    /// Something inside did not stop, or ran again. All inside is dead.
    Awake,
    Exited(u8),
    Killed(#[serde(with = "signal")] Signal),
    /// What was covered at this path is not any more. All inside is about to die.
    Uncovered(#[serde(with = "crate::encoding::bytes")] PathBuf),
}

impl Report {
    pub(crate) fn uncovered(path: &Path) -> Self {
        // Enough to know it by.
        const LONGEST: usize = 200;
        let path = path.as_os_str().as_bytes();
        let path = path.get(..LONGEST).unwrap_or(path);
        Self::Uncovered(OsStr::from_bytes(path).into())
    }
}

/// What kept the command from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    /// There is no such program.
    NotFound,
    /// There is, but it cannot be executed.
    NotExecutable,
    Fork,
    Limits,
    Landlock,
    Capabilities,
    Filter,
    Descriptors,
    Signals,
}

/// What was heard from the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard<T> {
    Message(T),
    /// Bytes that mean nothing.
    Nonsense,
    /// Nothing, at the moment.
    Silence,
    /// The other side is gone.
    Gone,
}

/// One end of the socket.
#[derive(Debug)]
pub(crate) struct Control(OwnedFd);

impl Control {
    /// Two ends, both of which close on exec.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (warden, inner) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(warden), inner))
    }

    pub(crate) fn from_descriptor(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Another hold of this end.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Ends the conversation, for every holder of this end.
    pub(crate) fn end(&self) {
        // It has ended already, then.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }

    pub(crate) fn order(&self, order: &Order) -> io::Result<()> {
        self.send(&encode(order)?)
    }

    pub(crate) fn report(&self, report: &Report) -> io::Result<()> {
        self.send(&encode(report)?)
    }

    pub(crate) fn hear_order(&self) -> io::Result<Heard<Order>> {
        self.receive()
    }

    pub(crate) fn hear_report(&self) -> io::Result<Heard<Report>> {
        self.receive()
    }

    /// Whether there is something to hear.
    pub(crate) fn has_news(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
    }

    /// Never waits: if the other side does not read, that is its loss.
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::send(&self.0, bytes, flags)?;
        Ok(())
    }

    fn receive<T: Serialize + DeserializeOwned>(&self) -> io::Result<Heard<T>> {
        let mut buffer = [0; LONGEST];
        let mut receive = || rustix::net::recv(&self.0, &mut buffer, RecvFlags::DONTWAIT);
        let mut received = receive();
        // The other side went without having read all of ours. That is said once, and before
        // the last words of its own, which are still there.
        if received == Err(Errno::CONNRESET) {
            received = receive();
        }
        match received {
            Ok((0, _)) | Err(Errno::CONNRESET) => Ok(Heard::Gone),
            Ok((length, _)) => Ok(buffer
                .get(..length)
                .and_then(exactly)
                .map_or(Heard::Nonsense, Heard::Message)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Heard::Silence),
            Err(error) => Err(error.into()),
        }
    }
}

/// The message of which these bytes are the one encoding.
fn exactly<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let is_exact = |message: &T| encode(message).is_ok_and(|encoded| encoded == bytes);
    decode(bytes).filter(is_exact)
}

/// A signal as its number.
mod signal {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::Signal;

    pub(super) fn serialize<S: Serializer>(signal: &Signal, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(signal.number())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Signal, D::Error> {
        let number = u8::deserialize(from)?;
        Signal::new(number.into()).ok_or_else(|| D::Error::custom("no signal"))
    }
}

/// Signals as the kernel's bits.
mod signal_set {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::SignalSet;

    pub(super) fn serialize<S: Serializer>(set: &SignalSet, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(set.bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SignalSet, D::Error> {
        u64::deserialize(from).map(SignalSet::from_bits)
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Resource;

    const FAILURES: [Failure; 9] = [
        Failure::NotFound,
        Failure::NotExecutable,
        Failure::Fork,
        Failure::Limits,
        Failure::Filter,
        Failure::Descriptors,
        Failure::Signals,
        Failure::Landlock,
        Failure::Capabilities,
    ];

    fn orders() -> Vec<Order> {
        vec![
            Order::Start(Start {
                foreground: true,
                blocked: SignalSet::EMPTY.with(Signal::HUP),
                ignored: SignalSet::from_bits(u64::MAX),
                limits: vec![
                    Limit {
                        resource: Resource::Core,
                        soft: Some(0),
                        hard: None,
                    },
                    Limit {
                        resource: Resource::OpenFiles,
                        soft: Some(1024),
                        hard: Some(4096),
                    },
                ],
            }),
            Order::Signal {
                signal: Signal::TERM,
                target: Target::Group,
            },
            Order::Freeze,
            Order::Continue { foreground: false },
        ]
    }

    fn reports() -> Vec<Report> {
        let mut reports = vec![
            Report::Ready,
            Report::Stopped(Signal::TSTP),
            Report::Exited(255),
            Report::Killed(Signal::KILL),
            Report::Uncovered("/w/.env".into()),
            Report::Frozen,
            Report::Awake,
        ];
        reports.extend(FAILURES.map(|what| Report::Failed { what, errno: 2 }));
        reports
    }

    #[test]
    fn no_prefix_and_no_extension_of_a_report_is_one() {
        for report in reports() {
            let mut bytes = encode(&report).unwrap();
            for length in 0..bytes.len() {
                assert_eq!(exactly::<Report>(&bytes[..length]), None, "{report:?}");
            }
            bytes.push(0);
            assert_eq!(exactly::<Report>(&bytes), None, "{report:?}");
        }
    }

    #[test]
    fn no_short_message_is_misread() {
        // Every message of up to two bytes: either exact or refused.
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                let bytes = [first, second];
                if let Some(report) = exactly::<Report>(&bytes) {
                    assert_eq!(encode(&report).unwrap(), bytes);
                }
                if let Some(order) = exactly::<Order>(&bytes) {
                    assert_eq!(encode(&order).unwrap(), bytes);
                }
            }
        }
    }

    #[test]
    fn what_is_said_is_what_is_heard() {
        let (warden, inner) = Control::pair().unwrap();
        let inner = Control::from_descriptor(inner);
        for order in orders() {
            warden.order(&order).unwrap();
            assert_eq!(inner.hear_order().unwrap(), Heard::Message(order));
        }
        for report in reports() {
            inner.report(&report).unwrap();
            assert_eq!(warden.hear_report().unwrap(), Heard::Message(report));
        }
        assert_eq!(warden.hear_report().unwrap(), Heard::Silence);
        drop(inner);
        assert_eq!(warden.hear_report().unwrap(), Heard::Gone);
    }

    #[test]
    fn last_words_are_heard_although_an_order_was_not() {
        let (warden, inner) = Control::pair().unwrap();
        let inner = Control::from_descriptor(inner);
        inner.report(&Report::Exited(7)).unwrap();
        for order in orders() {
            warden.order(&order).unwrap();
        }
        drop(inner);
        assert_eq!(
            warden.hear_report().unwrap(),
            Heard::Message(Report::Exited(7))
        );
        assert_eq!(warden.hear_report().unwrap(), Heard::Gone);
    }

    #[test]
    fn an_overlong_message_is_nonsense_and_does_not_spill_into_the_next() {
        let (warden, inner) = Control::pair().unwrap();
        let inner = Control::from_descriptor(inner);
        inner.send(&[0; 10_000]).unwrap();
        inner.report(&Report::Ready).unwrap();
        assert_eq!(warden.hear_report().unwrap(), Heard::Nonsense);
        assert_eq!(warden.hear_report().unwrap(), Heard::Message(Report::Ready));
    }
}
