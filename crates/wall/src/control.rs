//! What the warden and the inner stage say to each other, over a socket that keeps
//! messages apart (`SOCK_SEQPACKET`).
//!
//! Both are the same program, so the protocol has no versions. But the inner stage lives
//! among hostile processes: the warden takes each message for hostile bytes, of which
//! only exact encodings of a [`Report`] mean anything. Numbers are little-endian.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType},
};
use stockade_sys::signals::{Signal, SignalSet};

use crate::limits::{Limit, Resource};

/// Longer than any message, so that a longer one is seen to be none.
const LONGEST: usize = 256;

/// From the warden to the inner stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    Start(Start),
    Signal { signal: Signal, target: Target },
    Continue { foreground: bool },
}

/// How the command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its process group gets the terminal.
    pub(crate) foreground: bool,
    /// Signals that the caller had blocked.
    pub(crate) blocked: SignalSet,
    /// Signals that the caller ignored.
    pub(crate) ignored: SignalSet,
    pub(crate) limits: Vec<Limit>,
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The command's process alone, as by kill(2).
    Command,
    /// Its process group, as by the terminal.
    Group,
}

/// From the inner stage to the warden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The sandbox is built, and the command is about to start: orders will be obeyed.
    Ready,
    /// The command was not started: this failed, with this error number.
    Failed {
        what: Failure,
        errno: i32,
    },
    Stopped(Signal),
    Exited(u8),
    Killed(Signal),
}

/// What kept the command from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no such program.
    NotFound,
    /// There is, but it cannot be executed.
    NotExecutable,
    Fork,
    Limits,
    Filter,
    Descriptors,
    Signals,
}

impl Failure {
    const ALL: [Self; 7] = [
        Self::NotFound,
        Self::NotExecutable,
        Self::Fork,
        Self::Limits,
        Self::Filter,
        Self::Descriptors,
        Self::Signals,
    ];

    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::NotFound => 0,
            Self::NotExecutable => 1,
            Self::Fork => 2,
            Self::Limits => 3,
            Self::Filter => 4,
            Self::Descriptors => 5,
            Self::Signals => 6,
        }
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.tag() == tag)
    }
}

impl Order {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Start(start) => {
                let mut bytes = vec![0, u8::from(start.foreground)];
                bytes.extend(start.blocked.bits().to_le_bytes());
                bytes.extend(start.ignored.bits().to_le_bytes());
                for limit in &start.limits {
                    bytes.push(limit.resource.tag());
                    // The kernel's own word for "unlimited".
                    bytes.extend(limit.soft.unwrap_or(u64::MAX).to_le_bytes());
                    bytes.extend(limit.hard.unwrap_or(u64::MAX).to_le_bytes());
                }
                bytes
            }
            Self::Signal { signal, target } => {
                vec![1, signal.number(), u8::from(*target == Target::Group)]
            }
            Self::Continue { foreground } => vec![2, u8::from(*foreground)],
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let order = match tag {
            0 => Self::Start(Start {
                foreground: take_bool(&mut rest)?,
                blocked: SignalSet::from_bits(take_u64(&mut rest)?),
                ignored: SignalSet::from_bits(take_u64(&mut rest)?),
                limits: take_limits(&mut rest)?,
            }),
            1 => Self::Signal {
                signal: take_signal(&mut rest)?,
                target: if take_bool(&mut rest)? {
                    Target::Group
                } else {
                    Target::Command
                },
            },
            2 => Self::Continue {
                foreground: take_bool(&mut rest)?,
            },
            _ => return None,
        };
        rest.is_empty().then_some(order)
    }
}

impl Report {
    fn encode(self) -> Vec<u8> {
        match self {
            Self::Ready => vec![0],
            Self::Failed { what, errno } => {
                let mut bytes = vec![1, what.tag()];
                bytes.extend(errno.to_le_bytes());
                bytes
            }
            Self::Stopped(signal) => vec![2, signal.number()],
            Self::Exited(code) => vec![3, code],
            Self::Killed(signal) => vec![4, signal.number()],
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let report = match tag {
            0 => Self::Ready,
            1 => Self::Failed {
                what: Failure::from_tag(take_u8(&mut rest)?)?,
                errno: take_i32(&mut rest)?,
            },
            2 => Self::Stopped(take_signal(&mut rest)?),
            3 => Self::Exited(take_u8(&mut rest)?),
            4 => Self::Killed(take_signal(&mut rest)?),
            _ => return None,
        };
        rest.is_empty().then_some(report)
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

fn take_u8(bytes: &mut &[u8]) -> Option<u8> {
    take::<1>(bytes).map(|[byte]| byte)
}

fn take_bool(bytes: &mut &[u8]) -> Option<bool> {
    match take_u8(bytes)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    take(bytes).map(i32::from_le_bytes)
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_le_bytes)
}

fn take_signal(bytes: &mut &[u8]) -> Option<Signal> {
    Signal::new(take_u8(bytes)?.into())
}

fn take_limits(bytes: &mut &[u8]) -> Option<Vec<Limit>> {
    let mut limits = Vec::new();
    let bounded = |value| (value != u64::MAX).then_some(value);
    while !bytes.is_empty() {
        limits.push(Limit {
            resource: Resource::from_tag(take_u8(bytes)?)?,
            soft: bounded(take_u64(bytes)?),
            hard: bounded(take_u64(bytes)?),
        });
    }
    Some(limits)
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

    pub(crate) fn order(&self, order: &Order) -> io::Result<()> {
        self.send(&order.encode())
    }

    pub(crate) fn report(&self, report: Report) -> io::Result<()> {
        self.send(&report.encode())
    }

    pub(crate) fn hear_order(&self) -> io::Result<Heard<Order>> {
        self.receive(Order::decode)
    }

    pub(crate) fn hear_report(&self) -> io::Result<Heard<Report>> {
        self.receive(Report::decode)
    }

    /// Never waits: if the other side does not read, that is its loss.
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::send(&self.0, bytes, flags)?;
        Ok(())
    }

    fn receive<T>(&self, decode: impl FnOnce(&[u8]) -> Option<T>) -> io::Result<Heard<T>> {
        let mut buffer = [0; LONGEST];
        match rustix::net::recv(&self.0, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) | Err(Errno::CONNRESET) => Ok(Heard::Gone),
            Ok((length, _)) => Ok(buffer
                .get(..length)
                .and_then(decode)
                .map_or(Heard::Nonsense, Heard::Message)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Heard::Silence),
            Err(error) => Err(error.into()),
        }
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
            Order::Continue { foreground: false },
        ]
    }

    fn reports() -> Vec<Report> {
        let mut reports = vec![
            Report::Ready,
            Report::Stopped(Signal::TSTP),
            Report::Exited(255),
            Report::Killed(Signal::KILL),
        ];
        reports.extend(Failure::ALL.map(|what| Report::Failed { what, errno: 2 }));
        reports
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
            inner.report(report).unwrap();
            assert_eq!(warden.hear_report().unwrap(), Heard::Message(report));
        }
        assert_eq!(warden.hear_report().unwrap(), Heard::Silence);
        drop(inner);
        assert_eq!(warden.hear_report().unwrap(), Heard::Gone);
    }

    #[test]
    fn no_prefix_and_no_extension_of_a_report_is_one() {
        for report in reports() {
            let mut bytes = report.encode();
            for length in 0..bytes.len() {
                assert_eq!(Report::decode(&bytes[..length]), None, "{report:?}");
            }
            bytes.push(0);
            assert_eq!(Report::decode(&bytes), None, "{report:?}");
        }
    }

    #[test]
    fn no_short_message_is_misread() {
        // Every message of up to two bytes: either exact or refused.
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                let bytes = [first, second];
                if let Some(report) = Report::decode(&bytes) {
                    assert_eq!(report.encode(), bytes);
                }
                if let Some(order) = Order::decode(&bytes) {
                    assert_eq!(order.encode(), bytes);
                }
            }
        }
    }

    #[test]
    fn an_overlong_message_is_nonsense_and_does_not_spill_into_the_next() {
        let (warden, inner) = Control::pair().unwrap();
        let inner = Control::from_descriptor(inner);
        inner.send(&[0; 10_000]).unwrap();
        inner.report(Report::Ready).unwrap();
        assert_eq!(warden.hear_report().unwrap(), Heard::Nonsense);
        assert_eq!(warden.hear_report().unwrap(), Heard::Message(Report::Ready));
    }
}
