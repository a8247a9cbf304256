//! Numbers: counts, and sizes and times with a unit. The unit is never guessed.

use std::{fmt, num::NonZeroU64};

use serde_json::Value;

use super::{ConfigValue, Fault, Given, Roots, expected};
use crate::{keys::Kind, text::shown};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count<const LEAST: u64>(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size<const LEAST: u64 = 1>(NonZeroU64);

/// With less memory, no program starts.
pub type Memory = Size<{ 1 << 20 }>;

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

impl<const LEAST: u64> Count<LEAST> {
    pub(crate) const fn new(number: u64) -> Self {
        assert!(number >= LEAST, "too few");
        Self(number)
    }

    pub fn get(self) -> u64 {
        self.0
    }
}

impl<const LEAST: u64> ConfigValue for Count<LEAST> {
    const KIND: Kind = Kind::Count(LEAST);

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let number = match given {
            Given::Integer(number) => number.and_then(|number| u64::try_from(number).ok()),
            Given::Bare(text) => text.parse().ok(),
            Given::Text(text) if text.parse::<u64>().is_ok() => {
                return Err(wrong().instead_bare(text));
            }
            _ => return Err(wrong()),
        };
        match number {
            Some(number) if number >= LEAST => Ok(Self(number)),
            Some(1..) => {
                let fault = Fault::new(format!("too low: expected {}", expected(Self::KIND)));
                Err(fault.instead_bare(LEAST.to_string()))
            }
            _ => Err(Fault::new(format!(
                "invalid number: expected {}",
                expected(Self::KIND)
            ))),
        }
    }

    fn to_json(&self) -> Value {
        self.0.into()
    }
}

impl<const LEAST: u64> Size<LEAST> {
    pub fn bytes(self) -> u64 {
        self.0.get()
    }

    /// Twice as much, for a session that needs more.
    pub fn doubled(self) -> Self {
        Self(self.0.saturating_mul(TWO))
    }
}

impl<const LEAST: u64> ConfigValue for Size<LEAST> {
    const KIND: Kind = Kind::Size;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let size = match given {
            // `8GiB` and `8GB` are understood and corrected: there is one way to write it.
            Given::Text(text) | Given::Bare(text) => parse(text, SIZES, "size", "8G")?,
            // A small number is not meant as bytes, and nobody knows as what else.
            Given::Integer(Some(number)) if number >= 1 << 16 => {
                return Err(wrong().instead(format!("{number}B")));
            }
            _ => return Err(wrong()),
        };
        if size.get() >= LEAST {
            return Ok(Self(size));
        }
        let least = Size::<1>(NonZeroU64::new(LEAST).unwrap_or(size)).to_string();
        Err(Fault::new(format!("too small: expected at least {least}")).instead(least))
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

impl Seconds {
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// Twice as long, for a session that needs more.
    pub fn doubled(self) -> Self {
        Self(self.0.saturating_mul(TWO))
    }
}

impl ConfigValue for Seconds {
    const KIND: Kind = Kind::Time;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        match given {
            Given::Text(text) | Given::Bare(text) => parse(text, TIMES, "time", "2h").map(Self),
            Given::Integer(Some(number)) if number > 0 => {
                Err(wrong().instead(format!("{number}s")))
            }
            _ => Err(wrong()),
        }
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

fn parse(text: &str, units: &Units, what: &str, example: &str) -> Result<NonZeroU64, Fault> {
    let letters: Vec<_> = units.iter().rev().map(|(unit, _)| *unit).collect();
    let no_value = || {
        Fault::new(format!(
            "invalid {what} `{}`: expected a whole number with a unit ({}), such as \"{example}\"",
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
        let start = if unit.is_empty() { 0 } else { digits };
        let fault = no_value().at(start..text.len());
        return Err(fault.instead_if(guess.map(|(name, _)| format!("{number}{name}"))));
    };
    let value = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*factor));
    match value.map(NonZeroU64::new) {
        Some(Some(value)) => Ok(value),
        Some(None) => Err(Fault::new(format!("the {what} must be more than 0"))),
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

impl<const LEAST: u64> fmt::Display for Size<LEAST> {
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
        let roots = Roots {
            home: "/home".into(),
            workspace: None,
        };
        let size = Size::<1>::read(Given::Text(text), &roots, &|| Fault::new("wrong"));
        size.map(Size::bytes)
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
            let shown = Size::<1>(NonZeroU64::new(bytes).unwrap()).to_string();
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
