//! Sets of ports.

use std::fmt;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::syntax::{Fault, Part, Problem};

/// A non-empty set of ports. Cheap to clone, as verdicts carry rules around.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ports {
    /// In ascending order, with a gap between any two.
    ranges: Arc<[RangeInclusive<u16>]>,
}

impl Ports {
    /// These ports; none if there are none.
    pub(crate) fn of(ports: impl IntoIterator<Item = NonZeroU16>) -> Option<Self> {
        let ranges: Vec<_> = ports
            .into_iter()
            .map(|port| port.get()..=port.get())
            .collect();
        (!ranges.is_empty()).then(|| Self {
            ranges: merge(ranges).into(),
        })
    }

    pub fn contains(&self, port: NonZeroU16) -> bool {
        self.ranges.iter().any(|range| range.contains(&port.get()))
    }

    /// In ascending order, with a gap between any two.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u16>> {
        self.ranges.iter().cloned()
    }

    pub(crate) fn bounds(&self) -> (u16, u16) {
        match &*self.ranges {
            [first, .., last] => (*first.start(), *last.end()),
            [only] => (*only.start(), *only.end()),
            [] => (0, 0),
        }
    }

    pub(crate) fn single(&self) -> Option<NonZeroU16> {
        match *self.ranges {
            [ref range] if range.start() == range.end() => NonZeroU16::new(*range.start()),
            _ => None,
        }
    }

    /// Reads `80`, `5064-5065` or a list of both with commas.
    pub(crate) fn parse(text: Part<'_>) -> Result<Self, Fault> {
        let mut ranges = Vec::new();
        for item in text.split(',') {
            ranges.push(range(item)?);
        }
        Ok(Self {
            ranges: merge(ranges).into(),
        })
    }
}

impl From<NonZeroU16> for Ports {
    fn from(port: NonZeroU16) -> Self {
        Self {
            ranges: Arc::new([port.get()..=port.get()]),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", range.start())?;
            if range.start() != range.end() {
                write!(f, "-{}", range.end())?;
            }
        }
        Ok(())
    }
}

fn range(item: Part<'_>) -> Result<RangeInclusive<u16>, Fault> {
    let Some((first, last)) = item.split_once("-") else {
        let port = port(item)?;
        return Ok(port..=port);
    };
    if first.text.is_empty() || last.text.is_empty() {
        return Err(item.fault(Problem::HalfRange(item.text.to_owned())));
    }
    let (first, last) = (port(first)?, port(last)?);
    if first > last {
        return Err(item
            .fault(Problem::BackwardRange)
            .mend(format!("{last}-{first}")));
    }
    Ok(first..=last)
}

fn port(item: Part<'_>) -> Result<u16, Fault> {
    let fault = item.fault(Problem::Port(item.text.to_owned()));
    let digits = item.text.trim_start_matches('0');
    if let Some((port, _path)) = item.text.split_once('/') {
        return Err(fault.mend(port));
    }
    // `parse` alone would take a plus sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fault);
    }
    if digits != item.text {
        return Err(fault.mend(digits));
    }
    digits.parse().map_err(|_| fault)
}

/// Sorts ranges and joins those that touch.
fn merge(mut ranges: Vec<RangeInclusive<u16>>) -> Vec<RangeInclusive<u16>> {
    ranges.sort_unstable_by_key(|range| *range.start());
    let mut merged: Vec<RangeInclusive<u16>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if *range.start() <= last.end().saturating_add(1) => {
                *last = *last.start()..=*last.end().max(range.end());
            }
            _ => merged.push(range),
        }
    }
    merged
}
