//! Messages as bytes. Numbers are little-endian. Bytes that are not the exact encoding of a
//! message are refused.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use stockade_sys::signals::{Signal, SignalSet};

use super::{Failure, Order, Report, Start, Target};
use crate::facts::{Limit, Resource};

/// The longest path in a report, in bytes.
const LONGEST_PATH: u8 = 200;

impl Order {
    pub(super) fn encode(&self) -> Vec<u8> {
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
            Self::Freeze => vec![3],
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
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
            3 => Self::Freeze,
            _ => return None,
        };
        rest.is_empty().then_some(order)
    }
}

impl Report {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ready => vec![0],
            Self::Failed { what, errno } => {
                let mut bytes = vec![1, what.tag()];
                bytes.extend(errno.to_le_bytes());
                bytes
            }
            Self::Stopped(signal) => vec![2, signal.number()],
            Self::Exited(code) => vec![3, *code],
            Self::Killed(signal) => vec![4, signal.number()],
            Self::Uncovered(path) => {
                let path = path.as_os_str().as_bytes();
                // Enough to know it by.
                let shown = path.get(..LONGEST_PATH.into()).unwrap_or(path);
                let length = u8::try_from(shown.len()).unwrap_or(LONGEST_PATH);
                [&[5, length], shown].concat()
            }
            Self::Frozen => vec![6],
            Self::Awake => vec![7],
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
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
            5 => {
                let length = take_u8(&mut rest)?;
                let (path, after) = rest.split_at_checked(length.into())?;
                rest = after;
                Self::Uncovered(OsStr::from_bytes(path).into())
            }
            6 => Self::Frozen,
            7 => Self::Awake,
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

impl Failure {
    pub(super) const ALL: [Self; 9] = [
        Self::NotFound,
        Self::NotExecutable,
        Self::Fork,
        Self::Limits,
        Self::Filter,
        Self::Descriptors,
        Self::Signals,
        Self::Landlock,
        Self::Capabilities,
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
            Self::Landlock => 7,
            Self::Capabilities => 8,
        }
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.tag() == tag)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn orders() -> Vec<Order> {
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

    pub(crate) fn reports() -> Vec<Report> {
        let mut reports = vec![
            Report::Ready,
            Report::Stopped(Signal::TSTP),
            Report::Exited(255),
            Report::Killed(Signal::KILL),
            Report::Uncovered("/w/.env".into()),
            Report::Frozen,
            Report::Awake,
        ];
        reports.extend(Failure::ALL.map(|what| Report::Failed { what, errno: 2 }));
        reports
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
}
