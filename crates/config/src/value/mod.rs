//! Values: what was written → a value of the right type, or what is wrong with it.
//!
//! A value of one of these types is valid. Files, flags and variables all come through
//! [`change`], so that none of them can say what another may not.

mod host;
mod path;
mod ports;
mod units;
mod variable;
mod words;

use std::{fmt, num::NonZeroU64, ops::Range, path::PathBuf};

use stockade_policy::{Protocol, Rule, Target};

pub(crate) use self::path::expand as path;
pub use self::{
    path::Roots,
    ports::{Port, Published},
    units::{Seconds, Size},
    variable::VariableName,
    words::{GitSettings, Hardening, Mode, Root},
};
use crate::{
    key::{Item, Key, Kind},
    text::{meant, shown},
};

/// One thing that a layer says: a scalar that it sets, or an entry that it adds to a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Mode(Mode),
    Internet(bool),
    Allow(Rule),
    HostPort(Port),
    Publish(Published),
    LogDenials(bool),
    Root(Root),
    Read(PathBuf),
    Write(PathBuf),
    Hide(PathBuf),
    PassEnv(VariableName),
    SetEnv(VariableName, String),
    Github(bool),
    Gitlab(bool),
    ForgeHost(String),
    /// Takes away what earlier layers listed. Only `--no-forge` and its variable say so.
    NoForgeHosts,
    Hardening(Hardening),
    Nested(bool),
    GitSettings(GitSettings),
    Processes(NonZeroU64),
    Memory(Size),
    OpenFiles(NonZeroU64),
    Tmpfs(Size),
    CpuTime(Seconds),
}

impl Change {
    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Mode(_) => Key::Mode,
            Self::Internet(_) => Key::Internet,
            Self::Allow(_) => Key::Allow,
            Self::HostPort(_) => Key::HostPorts,
            Self::Publish(_) => Key::Publish,
            Self::LogDenials(_) => Key::LogDenials,
            Self::Root(_) => Key::Root,
            Self::Read(_) => Key::Read,
            Self::Write(_) => Key::Write,
            Self::Hide(_) => Key::Hide,
            Self::PassEnv(_) => Key::PassEnv,
            Self::SetEnv(..) => Key::SetEnv,
            Self::Github(_) => Key::Github,
            Self::Gitlab(_) => Key::Gitlab,
            Self::ForgeHost(_) | Self::NoForgeHosts => Key::ForgeHosts,
            Self::Hardening(_) => Key::Hardening,
            Self::Nested(_) => Key::Nested,
            Self::GitSettings(_) => Key::GitSettings,
            Self::Processes(_) => Key::Processes,
            Self::Memory(_) => Key::Memory,
            Self::OpenFiles(_) => Key::OpenFiles,
            Self::Tmpfs(_) => Key::Tmpfs,
            Self::CpuTime(_) => Key::CpuTime,
        }
    }
}

/// What was written, as TOML or the command line has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    Text(&'a str),
    /// Of the command line, where there are no quotes: it may be any type.
    Bare(&'a str),
    /// `None`: beyond what 64 bits hold.
    Integer(Option<i64>),
    Boolean(bool),
    /// Nothing that any key takes, by its name.
    Other(&'static str),
}

impl fmt::Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) | Self::Bare(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Boolean(_) => "a boolean",
            Self::Other(name) => name,
        })
    }
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: String,
    /// The bytes of the text that are wrong; all of it if none are told.
    pub(crate) span: Option<Range<usize>>,
    /// What to write instead, all of it.
    pub(crate) instead: Option<Instead>,
    /// What to do instead, where that is to write something elsewhere.
    pub(crate) help: Option<String>,
}

/// A value to write, in the form in which a flag takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instead {
    Text(String),
    /// Without quotes.
    Bare(String),
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span: None,
            instead: None,
            help: None,
        }
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    pub(crate) fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }

    pub(crate) fn instead(mut self, text: impl Into<String>) -> Self {
        self.instead = Some(Instead::Text(text.into()));
        self
    }

    pub(crate) fn instead_bare(mut self, text: impl Into<String>) -> Self {
        self.instead = Some(Instead::Bare(text.into()));
        self
    }
}

/// What a scalar, or an entry of a list, says.
pub(crate) fn change(key: Key, given: Given<'_>, roots: &Roots) -> Result<Change, Fault> {
    let wrong = || wrong_type(key, given);
    match key {
        Key::Mode => word(given, Mode::NAMES, Mode::find, wrong).map(Change::Mode),
        Key::Root => word(given, Root::NAMES, Root::find, wrong).map(Change::Root),
        Key::GitSettings => {
            word(given, GitSettings::NAMES, GitSettings::find, wrong).map(Change::GitSettings)
        }
        Key::Hardening => {
            word(given, Hardening::NAMES, Hardening::find, wrong).map(Change::Hardening)
        }
        Key::Internet => boolean(given, wrong).map(Change::Internet),
        Key::LogDenials => boolean(given, wrong).map(Change::LogDenials),
        Key::Github => boolean(given, wrong).map(Change::Github),
        Key::Gitlab => boolean(given, wrong).map(Change::Gitlab),
        Key::Nested => boolean(given, wrong).map(Change::Nested),
        Key::Allow => rule(given, text(given, wrong)?).map(Change::Allow),
        Key::HostPorts => ports::port(given, wrong).map(Change::HostPort),
        Key::Publish => Published::given(given, wrong).map(Change::Publish),
        Key::Read => path::expand(text(given, wrong)?, roots).map(Change::Read),
        Key::Write => path::expand(text(given, wrong)?, roots).map(Change::Write),
        Key::Hide => path::expand(text(given, wrong)?, roots).map(Change::Hide),
        Key::PassEnv => VariableName::parse(text(given, wrong)?).map(Change::PassEnv),
        Key::ForgeHosts => host::parse(text(given, wrong)?).map(Change::ForgeHost),
        Key::Processes => count(key, given, wrong).map(Change::Processes),
        Key::OpenFiles => count(key, given, wrong).map(Change::OpenFiles),
        Key::Memory => Size::given(given, wrong)
            .and_then(Size::enough_to_start)
            .map(Change::Memory),
        Key::Tmpfs => Size::given(given, wrong).map(Change::Tmpfs),
        Key::CpuTime => Seconds::given(given, wrong).map(Change::CpuTime),
        Key::SetEnv => Err(wrong()),
    }
}

/// What a variable is set to.
pub(crate) fn variable(name: VariableName, given: Given<'_>) -> Result<Change, Fault> {
    let value = match given {
        Given::Text(value) | Given::Bare(value) => value,
        other => {
            let fault = Fault::new(format!("the value of a variable is a string, not {other}"));
            return Err(match other {
                Given::Integer(Some(number)) => fault.instead(number.to_string()),
                Given::Boolean(boolean) => fault.instead(boolean.to_string()),
                _ => fault,
            });
        }
    };
    match value.find('\0') {
        Some(at) => Err(Fault::new("no variable can hold a NUL character").at(at..at + 1)),
        None => Ok(Change::SetEnv(name, value.to_owned())),
    }
}

pub(crate) fn wrong_type(key: Key, given: Given<'_>) -> Fault {
    let (what, expected) = match key.spec().kind {
        Kind::List(item) => (format!("an entry of {key}"), expected_entry(item)),
        kind => (key.to_string(), expected(kind)),
    };
    Fault::new(format!("{what} is {expected}, not {given}"))
}

/// What a key takes, in words.
pub(crate) fn expected(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            format!("one of {}", quoted.join(", "))
        }
        Kind::Boolean => "true or false".to_owned(),
        Kind::Count(least) => format!("a number from {least}"),
        Kind::Size => "a size in quotes, as in \"8G\"".to_owned(),
        Kind::Time => "a time in quotes, as in \"2h\"".to_owned(),
        Kind::List(Item::Rule) => "a list of rules".to_owned(),
        Kind::List(Item::Port | Item::Published) => "a list of ports".to_owned(),
        Kind::List(Item::Path) => "a list of paths".to_owned(),
        Kind::List(Item::Variable) => "a list of names".to_owned(),
        Kind::List(Item::Host) => "a list of host names".to_owned(),
        Kind::Variables => "a table of names and values, as in { NAME = \"value\" }".to_owned(),
    }
}

fn expected_entry(item: Item) -> String {
    match item {
        Item::Rule => "a rule in quotes",
        Item::Port => "a port, a number without quotes",
        Item::Published => "a port, as in \"3000\" or \"3000:80\"",
        Item::Path => "a path in quotes",
        Item::Variable => "a variable's name in quotes",
        Item::Host => "a host name in quotes",
    }
    .to_owned()
}

fn text<'a>(given: Given<'a>, wrong: impl Fn() -> Fault) -> Result<&'a str, Fault> {
    match given {
        Given::Text(text) | Given::Bare(text) => Ok(text),
        _ => Err(wrong()),
    }
}

fn boolean(given: Given<'_>, wrong: impl Fn() -> Fault) -> Result<bool, Fault> {
    match given {
        Given::Boolean(boolean) => Ok(boolean),
        Given::Bare("true") => Ok(true),
        Given::Bare("false") => Ok(false),
        Given::Bare(text) => Err(Fault::new(format!(
            "`{}` is not true or false",
            shown(text)
        ))),
        Given::Text(text @ ("true" | "false")) => Err(wrong().instead_bare(text)),
        Given::Text("yes" | "on" | "1") | Given::Integer(Some(1)) => {
            Err(wrong().instead_bare("true"))
        }
        Given::Text("no" | "off" | "0") | Given::Integer(Some(0)) => {
            Err(wrong().instead_bare("false"))
        }
        _ => Err(wrong()),
    }
}

fn count(key: Key, given: Given<'_>, wrong: impl Fn() -> Fault) -> Result<NonZeroU64, Fault> {
    let least = match key.spec().kind {
        Kind::Count(least) => least,
        _ => 1,
    };
    let too_few = |number: NonZeroU64| {
        let fault = Fault::new(format!(
            "{number} is too few to work with: at least {least}"
        ));
        fault.instead_bare(least.to_string())
    };
    let number: NonZeroU64 = match given {
        Given::Integer(number) => number
            .and_then(|number| u64::try_from(number).ok())
            .and_then(NonZeroU64::new)
            .ok_or_else(|| Fault::new(format!("this is no number from {least}"))),
        Given::Bare(text) => text.parse().map_err(|_| {
            let message = format!("`{}` is no number from {least}", shown(text));
            Fault::new(message)
        }),
        Given::Text(text) if text.parse::<NonZeroU64>().is_ok() => Err(wrong().instead_bare(text)),
        _ => Err(wrong()),
    }?;
    if number.get() < least {
        return Err(too_few(number));
    }
    Ok(number)
}

fn word<T>(
    given: Given<'_>,
    words: &'static [&'static str],
    find: fn(&str) -> Option<T>,
    wrong: impl Fn() -> Fault,
) -> Result<T, Fault> {
    let (Given::Text(text) | Given::Bare(text)) = given else {
        return Err(wrong());
    };
    find(text).ok_or_else(|| {
        let kind = expected(Kind::Choice(words));
        let fault = Fault::new(format!("`{}` is not {kind}", shown(text)));
        match meant(text, words.iter().copied()) {
            Some(word) => fault.instead(word),
            None => fault,
        }
    })
}

fn rule(given: Given<'_>, text: &str) -> Result<Rule, Fault> {
    text.parse().map_err(|error: stockade_policy::RuleError| {
        if let Some(fault) = loopback(given, text) {
            return fault.at(error.span());
        }
        let fault = Fault::new(error.problem().to_string()).at(error.span());
        match error.suggestion() {
            Some(suggestion) => fault.instead(suggestion),
            None => fault,
        }
    })
}

/// The loopback is not for rules. Whoever writes one for it means the host's.
fn loopback(given: Given<'_>, text: &str) -> Option<Fault> {
    let target: Target = text.parse().ok().filter(Target::is_loopback)?;
    // Of the host's loopback, only TCP can be had.
    target
        .protocol()
        .is_none_or(|one| one == Protocol::Tcp)
        .then_some(())?;
    let message = format!(
        "`{}` is the loopback inside, the command's own; ports of this machine's are given one \
         by one",
        target.host()
    );
    let is_typed = matches!(given, Given::Bare(_));
    let flag = Key::HostPorts.spec().flag;
    let help = match (target.port(), is_typed) {
        (Some(port), true) => format!("write `{flag} {port}` instead"),
        (Some(port), false) => format!("write host_ports = [{port}] in [network] instead"),
        (None, true) => format!("write `{flag} PORT` for each that is needed"),
        (None, false) => "list those that are needed as host_ports in [network]".to_owned(),
    };
    Some(Fault::new(message).help(help))
}
