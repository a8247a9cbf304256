//! Numbers with a unit: sizes and times. The unit is never guessed.

use std::{fmt, num::NonZeroU64};

use super::{Fault, Given};
use crate::text::shown;

/// A number of bytes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(NonZeroU64);

/// A time, at least a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(NonZeroU64);

const TWO: NonZeroU64 = NonZeroU64::new(2).expect("not zero");

type Units = [(&'static str, u64)];

/// The largest first; powers of 1024, as everywhere where memory is measured.
const SIZES: &Units = &[
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("B", 1),
];
const TIMES: &Units = &[("d", 86400), ("h", 3600), ("m", 60), ("s", 1)];

impl Size {
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0.get()
    }

    /// With less memory than this, no program starts.
    pub(super) fn enough_to_start(self) -> Result<Self, Fault> {
        const LEAST: u64 = 1 << 20;
        if self.bytes() >= LEAST {
            return Ok(self);
        }
        let fault = Fault::new(format!(
            "no program starts with {self} of memory: at least 1M"
        ));
        Err(fault.instead("1M"))
    }

    /// Twice as much, for who needs more.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self(self.0.saturating_mul(TWO))
    }

    pub(super) fn given(given: Given<'_>, wrong: impl Fn() -> Fault) -> Result<Self, Fault> {
        match given {
            // `8GiB` and `8GB` are understood and corrected: there is one way to write it.
            Given::Text(text) | Given::Bare(text) => parse(text, SIZES, "size", "8G").map(Self),
            // A small number is not meant as bytes, and as what it is meant is not known.
            Given::Integer(Some(number)) if number >= 1 << 16 => {
                Err(wrong().instead(format!("{number}B")))
            }
            _ => Err(wrong()),
        }
    }
}

impl Seconds {
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// Twice as much, for who needs more.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self(self.0.saturating_mul(TWO))
    }

    pub(super) fn given(given: Given<'_>, wrong: impl Fn() -> Fault) -> Result<Self, Fault> {
        match given {
            Given::Text(text) | Given::Bare(text) => parse(text, TIMES, "time", "2h").map(Self),
            Given::Integer(Some(number)) if number > 0 => {
                Err(wrong().instead(format!("{number}s")))
            }
            _ => Err(wrong()),
        }
    }
}

fn parse(text: &str, units: &Units, what: &str, example: &str) -> Result<NonZeroU64, Fault> {
    let letters: Vec<_> = units.iter().rev().map(|(unit, _)| *unit).collect();
    let no_value = || {
        Fault::new(format!(
            "`{}` is no {what}: a {what} is a whole number with one of {}, as in \"{example}\"",
            shown(text),
            letters.join(", ")
        ))
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(no_value());
    }
    let known = |unit: &str| units.iter().find(|(name, _)| *name == unit);
    let Some((_, factor)) = known(unit) else {
        let letter = unit
            .trim()
            .trim_end_matches("iB")
            .trim_end_matches(['b', 'B']);
        let guess = units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(letter));
        let fault = no_value().at(if unit.is_empty() {
            0..text.len()
        } else {
            digits..text.len()
        });
        return Err(match guess {
            Some((name, _)) => fault.instead(format!("{number}{name}")),
            None => fault,
        });
    };
    let value = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*factor));
    match value.map(NonZeroU64::new) {
        Some(Some(value)) => Ok(value),
        Some(None) => Err(Fault::new(format!("a {what} of 0 leaves nothing"))),
        None => Err(Fault::new(format!("the {what} is too large"))),
    }
}

fn show(value: u64, units: &Units, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fitting = units
        .iter()
        .find(|(_, factor)| value.is_multiple_of(*factor));
    let (unit, factor) = fitting.copied().unwrap_or(("", 1));
    write!(f, "{}{unit}", value / factor)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.bytes(), SIZES, f)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.get(), TIMES, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Instead;

    fn size(text: &str) -> Result<u64, Fault> {
        Size::given(Given::Text(text), || Fault::new("wrong")).map(Size::bytes)
    }

    #[test]
    fn sizes_are_read_and_shown_in_one_form() {
        for (text, bytes) in [
            ("8G", 8 << 30),
            ("512M", 512 << 20),
            ("1B", 1),
            ("1536K", 1536 << 10),
        ] {
            assert_eq!(size(text), Ok(bytes));
            let shown = Size(NonZeroU64::new(bytes).unwrap()).to_string();
            assert_eq!(shown, text);
        }
        assert_eq!(Seconds(NonZeroU64::new(7200).unwrap()).to_string(), "2h");
        assert_eq!(Seconds(NonZeroU64::new(90).unwrap()).to_string(), "90s");
    }

    #[test]
    fn what_is_nearly_a_size_is_corrected_and_never_taken() {
        for (text, instead) in [
            ("8g", Some("8G")),
            ("8GB", Some("8G")),
            ("8GiB", Some("8G")),
            ("8 G", Some("8G")),
            ("8", None),
            ("", None),
            ("G", None),
            ("-8G", None),
            ("8.5G", None),
            ("0G", None),
            ("99999999999T", None),
            ("99999999999999999999999B", None),
            ("８G", None),
        ] {
            let fault = size(text).expect_err(text);
            assert_eq!(
                fault.instead,
                instead.map(|text| Instead::Text(text.into())),
                "{text}"
            );
        }
    }
}
