//! What is wrong with a text, where, and what to write instead.
//!
//! Rules, host names and targets are read by one kind of parser: it works on
//! [`Part`]s of the text, which know their place, and ends at the first [`Fault`],
//! which may know what was meant. Only a correction that parses is suggested.

use std::fmt;
use std::ops::Range;

use crate::registry::Special;

/// A rule, host name or target that was refused.
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

    /// The bytes of the text that are wrong, for a caret under them. Empty, at
    /// the place, where something is missing.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The text with the smallest change that makes it a good one.
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

/// The kinds of mistakes. Quoted parts of the text are escaped for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the rule is empty")]
    Empty,
    #[error("the character {} (U+{:04X}) cannot be in a rule", .0.escape_debug(), u32::from(*.0))]
    Character(char),
    #[error("{} (U+{:04X}) is not ASCII: write the name in its ASCII form, with `xn--`", .0.escape_debug(), u32::from(*.0))]
    Idn(char),
    #[error("`{}` is no protocol: there are tcp, udp and icmp", .0.escape_debug())]
    Protocol(String),
    #[error("`{0}` is a protocol: `://` comes between it and the target")]
    Slashes(String),
    #[error("there is no address and no name")]
    NoTarget,
    #[error("`{}` cannot be in an address or a host name", .0.escape_debug())]
    TargetCharacter(char),
    #[error("a user name says nothing about where a connection goes")]
    User,
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
    #[error("a network is written with the length of its prefix, not with `*`")]
    StarInAddress,
    #[error("a range of addresses is a network, or a rule for each of them")]
    AddressRange,
    #[error("`{}` is no IPv6 address", .0.escape_debug())]
    Ipv6(String),
    #[error("brackets are for IPv6 addresses")]
    NeedlessBrackets,
    #[error("a bracket is open or misplaced: they enclose the address or network")]
    Brackets,
    #[error("an IPv6 target with ports needs brackets")]
    MissingBrackets,
    #[error("an IPv4 address is written in its own form, not as IPv6")]
    Mapped,
    #[error("invalid prefix length `{}`: expected 0 to {max}", text.escape_debug())]
    PrefixLength { text: String, max: u8 },
    #[error("the address has bits set beyond its /{0} prefix")]
    HostBits(u8),
    #[error("a host name has neither a prefix length nor a path")]
    Path,
    #[error("a dot at the end is left out: every host name is a full one")]
    TrailingDot,
    #[error("a host name has no empty parts between its dots")]
    EmptyLabel,
    #[error("a part of a host name has at most 63 characters, this one has {0}")]
    LongLabel(usize),
    #[error("a host name has at most 253 characters, this one has {0}")]
    LongName(usize),
    #[error("`{0}` begins or ends with a hyphen, which no part of a host name does")]
    HyphenAtEnd(String),
    #[error("`{0}` is an address or meant as one: no host name ends in a number")]
    NumericName(String),
    #[error("`*` alone is every name: that is what `internet = true` is for")]
    StarAlone,
    #[error("`*` stands for all subdomains, at the start and before a dot, as in `*.example.org`")]
    Star,
    #[error(
        "`*.{0}` is too wide: anybody can have a name below `{0}`, which is a public suffix; \
         name whose, as in `*.example.{0}`"
    )]
    PublicSuffix(String),
    #[error(
        "`{0}` is the jail's own loopback; a port of the host's loopback is opened by `host_ports`"
    )]
    Localhost(String),
    #[error(
        "UDP port 443 is QUIC, which hides the name it is for: a rule for a name cannot open it, \
         and programs fall back to TCP"
    )]
    Quic,
    #[error("invalid port `{}`: ports are 1 to 65535", .0.escape_debug())]
    Port(String),
    #[error(
        "`{}` lacks an end: a range of ports has two, as in 5064-5065, up to 65535",
        .0.escape_debug()
    )]
    HalfRange(String),
    #[error("the port range runs backwards")]
    BackwardRange,
    #[error("icmp has no ports")]
    IcmpPorts,
    #[error(
        "no rule can allow this: {target} {special}, which nothing inside can reach{}",
        special.instead()
    )]
    NeverReachable { target: String, special: Special },
    #[error("`near` has host names only: an address belongs in `allow`")]
    NearAddress,
    #[error("a device is one host: write its address or its name; a network belongs in `allow`")]
    SeveralHosts,
    #[error("the name of a device has no dots: it is one word, as in `pmac`")]
    DottedDevice,
    #[error("the name of a device is written in small letters")]
    CapitalDevice,
    #[error("`{0}` has a meaning of its own in DNS: give the device another name")]
    ReservedDevice(String),
    #[error("the question is about one host: name an address of the network")]
    NotOneHost,
    #[error("the question is about one host: name one that `{}` may stand for", .0.escape_debug())]
    NotOneName(String),
    #[error("there is nothing to ask about: name an address, a host or a URL")]
    NothingAsked,
    #[error("the question is about one port, or about all if none is given")]
    NotOnePort,
    #[error(
        "`{}` is no scheme that says which port is meant: name protocol and port, \
         as in `tcp://example.org:8443`",
        .0.escape_debug()
    )]
    Scheme(String),
}

/// A mistake as the parser sees it: what to replace by what is a guess yet.
#[derive(Debug)]
pub(crate) struct Fault {
    problem: Problem,
    span: Range<usize>,
    replacement: Option<(Range<usize>, String)>,
}

impl Fault {
    pub(crate) fn new(problem: Problem, span: Range<usize>) -> Self {
        Self {
            problem,
            span,
            replacement: None,
        }
    }

    /// The wrong part, and no more, should be `text`.
    pub(crate) fn mend(self, text: impl Into<String>) -> Self {
        let span = self.span.clone();
        self.mend_at(span, text)
    }

    pub(crate) fn mend_at(mut self, span: Range<usize>, text: impl Into<String>) -> Self {
        self.replacement = Some((span, text.into()));
        self
    }

    /// For the user: with a suggestion that parses, or none. A text may have
    /// several mistakes; a few of them are mended one after the other.
    pub(crate) fn explain<T>(
        self,
        text: &str,
        parse: impl Fn(&str) -> Result<T, Fault>,
    ) -> RuleError {
        const ATTEMPTS: usize = 4;
        let mut candidate = self.apply(text);
        for _ in 0..ATTEMPTS {
            let Some(attempt) = &candidate else { break };
            match parse(attempt) {
                Ok(_) => break,
                Err(next) => candidate = next.apply(attempt),
            }
        }
        RuleError {
            problem: self.problem,
            span: self.span,
            suggestion: candidate.filter(|attempt| parse(attempt).is_ok()),
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
pub(crate) struct Part<'a> {
    pub(crate) text: &'a str,
    start: usize,
}

impl<'a> Part<'a> {
    pub(crate) fn whole(text: &'a str) -> Self {
        Self { text, start: 0 }
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.start.saturating_add(self.text.len())
    }

    pub(crate) fn fault(&self, problem: Problem) -> Fault {
        Fault::new(problem, self.span())
    }

    pub(crate) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let (before, _) = self.text.split_once(separator)?;
        Some(self.split_around(before.len(), separator.len()))
    }

    pub(crate) fn rsplit_once(self, separator: &str) -> Option<(Self, Self)> {
        let (before, _) = self.text.rsplit_once(separator)?;
        Some(self.split_around(before.len(), separator.len()))
    }

    pub(crate) fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut start = self.start;
        self.text.split(separator).map(move |text| {
            let part = Self { text, start };
            start = part.span().end.saturating_add(separator.len_utf8());
            part
        })
    }

    pub(crate) fn strip_prefix(self, prefix: &str) -> Option<Self> {
        let text = self.text.strip_prefix(prefix)?;
        let start = self.start.saturating_add(prefix.len());
        Some(Self { text, start })
    }

    pub(crate) fn tail(self, length: usize) -> Self {
        self.split_around(length, 0).1
    }

    pub(crate) fn head(self, length: usize) -> Self {
        self.split_around(length, 0).0
    }

    /// From where this part starts to where `later` does.
    pub(crate) fn up_to(self, later: Part<'_>) -> Self {
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

/// Everything here is visible ASCII. What looks like a digit or a dot in another script
/// is not one, and what cannot be seen hides something.
pub(crate) fn check_characters(text: &str) -> Result<(), Fault> {
    let Some((start, odd)) = text.char_indices().find(|(_, c)| !c.is_ascii_graphic()) else {
        return Ok(());
    };
    let span = start..start.saturating_add(odd.len_utf8());
    let seen = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    let seen: String = seen.chars().map(as_ascii).collect();
    let problem = if odd.is_alphabetic() && as_ascii(odd) == odd {
        Problem::Idn(odd)
    } else {
        Problem::Character(odd)
    };
    Err(Fault::new(problem, span).mend_at(0..text.len(), seen))
}

/// The ASCII character that a full-width form, or a digit of a script in wide
/// use, stands for.
fn as_ascii(c: char) -> char {
    const DIGIT_ZEROS: [char; 3] = ['\u{660}', '\u{6f0}', '\u{966}'];
    let full_width = u32::from(c).checked_sub(0xfee0).and_then(char::from_u32);
    let digit = DIGIT_ZEROS.iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(u32::from(*zero))?;
        char::from_digit(value, 10)
    });
    full_width
        .filter(char::is_ascii_graphic)
        .or(digit)
        .unwrap_or(c)
}
