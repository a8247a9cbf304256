//! What is wrong with a rule, where, and what to write instead.

use std::fmt;
use std::ops::Range;

use crate::registry::Special;

/// A rule that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    problem: Problem,
    span: Range<usize>,
    suggestion: Option<String>,
}

impl RuleError {
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The bytes of the rule that are wrong, for a caret under them. Empty, at
    /// the place, where something is missing.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The rule with the smallest change that makes it one.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; write `{suggestion}`")?;
        }
        Ok(())
    }
}

impl std::error::Error for RuleError {}

/// The kinds of mistakes. Quoted parts of the rule are escaped for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the rule is empty")]
    Empty,
    #[error("the character {} (U+{:04X}) cannot be in a rule", .0.escape_debug(), u32::from(*.0))]
    Character(char),
    #[error("`{}` is no protocol: there are tcp, udp and icmp", .0.escape_debug())]
    Protocol(String),
    #[error("the rule names no target")]
    NoTarget,
    #[error("`{}` is neither an address nor a network", .0.escape_debug())]
    Target(String),
    #[error("`{0}` is a host name: rules for names are not there yet, an address is needed")]
    HostName(String),
    #[error("percent escapes are not decoded in rules")]
    Percent,
    #[error("rules have no zones: addresses are judged without the link they are on")]
    Zone,
    #[error("`{0}` has a leading zero, which other programs read as octal")]
    LeadingZero(String),
    #[error("`{0}` is a hexadecimal number: an IPv4 address is four decimal numbers")]
    Hexadecimal(String),
    #[error("an IPv4 address is four decimal numbers, from 0 to 255")]
    Ipv4,
    #[error("`{}` is no IPv6 address", .0.escape_debug())]
    Ipv6(String),
    #[error("brackets are for IPv6 addresses")]
    BracketedIpv4,
    #[error("a bracket is open or misplaced: they enclose the address or network")]
    Brackets,
    #[error("an IPv6 target with ports needs brackets")]
    MissingBrackets,
    #[error("an IPv4 address is written in its own form, not as IPv6")]
    Mapped,
    #[error("`{}` is no prefix length from 0 to {max}", text.escape_debug())]
    PrefixLength { text: String, max: u8 },
    #[error("the address has bits set beyond its /{0} prefix")]
    HostBits(u8),
    #[error("`{}` is no port from 1 to 65535", .0.escape_debug())]
    Port(String),
    #[error("the port range runs backwards")]
    BackwardRange,
    #[error("icmp has no ports")]
    IcmpPorts,
    #[error("no rule can allow this: {target} {special}, which nothing inside can reach")]
    NeverReachable { target: String, special: Special },
}

/// A mistake as the parser sees it: what to replace by what is a guess yet.
#[derive(Debug)]
pub(super) struct Fault {
    problem: Problem,
    span: Range<usize>,
    replacement: Option<(Range<usize>, String)>,
}

impl Fault {
    pub(super) fn new(problem: Problem, span: Range<usize>) -> Self {
        Self {
            problem,
            span,
            replacement: None,
        }
    }

    /// The wrong part, and no more, should be `text`.
    pub(super) fn mend(self, text: impl Into<String>) -> Self {
        let span = self.span.clone();
        self.mend_at(span, text)
    }

    pub(super) fn mend_at(mut self, span: Range<usize>, text: impl Into<String>) -> Self {
        self.replacement = Some((span, text.into()));
        self
    }

    /// For the user: with a suggestion that is a rule, or none. A rule may have
    /// several mistakes; a few of them are mended one after the other.
    pub(super) fn explain(self, text: &str) -> RuleError {
        const ATTEMPTS: usize = 4;
        let mut candidate = self.apply(text);
        for _ in 0..ATTEMPTS {
            let Some(attempt) = &candidate else { break };
            match super::parse::rule(attempt) {
                Ok(_) => break,
                Err(next) => candidate = next.apply(attempt),
            }
        }
        RuleError {
            problem: self.problem,
            span: self.span,
            suggestion: candidate.filter(|attempt| super::parse::rule(attempt).is_ok()),
        }
    }

    fn apply(&self, text: &str) -> Option<String> {
        let (span, replacement) = self.replacement.as_ref()?;
        let before = text.get(..span.start)?;
        let after = text.get(span.end..)?;
        Some([before, replacement, after].concat())
    }
}

/// A piece of the rule that knows its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    start: usize,
}

impl<'a> Part<'a> {
    pub(super) fn whole(text: &'a str) -> Self {
        Self { text, start: 0 }
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.start..self.start.saturating_add(self.text.len())
    }

    pub(super) fn fault(&self, problem: Problem) -> Fault {
        Fault::new(problem, self.span())
    }

    pub(super) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let (before, _) = self.text.split_once(separator)?;
        Some(self.split_around(before.len(), separator.len()))
    }

    pub(super) fn rsplit_once(self, separator: &str) -> Option<(Self, Self)> {
        let (before, _) = self.text.rsplit_once(separator)?;
        Some(self.split_around(before.len(), separator.len()))
    }

    pub(super) fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut start = self.start;
        self.text.split(separator).map(move |text| {
            let part = Self { text, start };
            start = part.span().end.saturating_add(separator.len_utf8());
            part
        })
    }

    pub(super) fn strip_prefix(self, prefix: &str) -> Option<Self> {
        let text = self.text.strip_prefix(prefix)?;
        let start = self.start.saturating_add(prefix.len());
        Some(Self { text, start })
    }

    /// From where this part starts to where `later` does.
    pub(super) fn up_to(self, later: Part<'_>) -> Self {
        let length = later.start.saturating_sub(self.start);
        let text = self.text.get(..length).unwrap_or_default();
        Self { text, ..self }
    }

    /// The parts before and after `width` bytes at `at`.
    fn split_around(self, at: usize, width: usize) -> (Self, Self) {
        let before = self.text.get(..at).unwrap_or_default();
        let skipped = at.saturating_add(width);
        let after = self.text.get(skipped..).unwrap_or_default();
        (
            Self {
                text: before,
                start: self.start,
            },
            Self {
                text: after,
                start: self.start.saturating_add(skipped),
            },
        )
    }
}
