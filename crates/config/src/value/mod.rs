//! Values: a written text → a value of the right type, or an error.
//!
//! A value of one of these types is valid. Files, options and variables are all read by
//! [`ConfigValue::read`], so that none of them can say what another may not.

mod choice;
pub(crate) mod device;
mod discovery;
mod host;
mod path;
mod ports;
mod proxy;
mod rule;
mod units;
mod variable;

use std::{fmt, ops::Range};

use serde_json::Value;

pub use self::{
    choice::{Caches, GitSettings, Hardening, Mode, Notify, Root, Unknown},
    device::DeviceTable,
    host::HostName,
    path::Roots,
    ports::{Port, Published},
    proxy::{LoginFile, ProxySetting},
    rule::NearRule,
    units::{Count, Memory, Seconds, Size},
    variable::VariableName,
};
pub(crate) use self::{path::expand as path, variable::set as set_variable};
use crate::{
    keys::{Key, Kind},
    text::shown,
};

/// The type of a key's value, or of an entry of its list.
pub(crate) trait ConfigValue: Sized {
    const KIND: Kind;
    /// `wrong` says that a value of another type was given.
    fn read(given: Given<'_>, roots: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault>;
    fn to_json(&self) -> Value;
}

/// What was written, as TOML or the command line has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    Text(&'a str),
    /// From the command line, where there are no quotes: it may be any type.
    Bare(&'a str),
    /// `None`: beyond what 64 bits hold.
    Integer(Option<i64>),
    Boolean(bool),
    /// A type that no key takes.
    Other(&'static str),
}

impl<'a> Given<'a> {
    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) | Self::Bare(text) => Some(text),
            _ => None,
        }
    }
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: String,
    /// The wrong bytes of the text; `None`: all of it.
    pub(crate) span: Option<Range<usize>>,
    /// What to write instead, all of it.
    pub(crate) instead: Option<Instead>,
    /// What to do instead, where that is to write something elsewhere.
    pub(crate) help: Option<String>,
    /// The text holds a secret, and is not to be shown.
    pub(crate) is_secret: bool,
}

/// A value to write, in the form in which a flag takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instead {
    Text(String),
    Bare(String),
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span: None,
            instead: None,
            help: None,
            is_secret: false,
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

    pub(crate) fn instead_if(self, text: Option<impl Into<String>>) -> Self {
        match text {
            Some(text) => self.instead(text),
            None => self,
        }
    }

    pub(crate) fn instead_bare(mut self, text: impl Into<String>) -> Self {
        self.instead = Some(Instead::Bare(text.into()));
        self
    }
}

/// The key's type is another one.
pub(crate) fn wrong_type(key: Key, given: Given<'_>) -> Fault {
    Fault::new(match key.spec().kind {
        Kind::List(item) => {
            format!(
                "invalid entry of {key}: expected {}, found {given}",
                expected(*item)
            )
        }
        kind => format!("invalid {key}: expected {}, found {given}", expected(kind)),
    })
}

pub(crate) fn expected(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            match quoted.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, others)) => format!("{} or {last}", others.join(", ")),
                None => String::new(),
            }
        }
        Kind::Count(least) => format!("a number, {least} or more"),
        Kind::List(item) => format!("a list of {}", plural(*item)),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Size => "a size in quotes, such as \"8G\"".to_owned(),
        Kind::Time => "a time in quotes, such as \"2h\"".to_owned(),
        Kind::Rule => "a rule in quotes".to_owned(),
        Kind::NearRule => "a rule for a host name in quotes".to_owned(),
        Kind::Discovery => "\"epics\", or a UDP port such as \"udp://3702\"".to_owned(),
        Kind::Port => "a port, a number without quotes".to_owned(),
        Kind::Published => "a port, such as \"3000\" or \"3000:80\"".to_owned(),
        Kind::Proxy => "a proxy in quotes, such as \"http://proxy.example:3128\"".to_owned(),
        Kind::Exemption => "a domain, an address or a network in quotes".to_owned(),
        Kind::Path => "a path in quotes".to_owned(),
        Kind::Variable => "a variable name in quotes".to_owned(),
        Kind::Host => "a host name in quotes".to_owned(),
        Kind::Devices => "a section of names and rules".to_owned(),
        Kind::Variables => "a table of names and values, such as { NAME = \"value\" }".to_owned(),
    }
}

fn plural(item: Kind) -> &'static str {
    match item {
        Kind::Rule => "rules",
        Kind::NearRule => "rules for host names",
        Kind::Discovery => "searches",
        Kind::Port | Kind::Published => "ports",
        Kind::Path => "paths",
        Kind::Variable => "variable names",
        Kind::Host => "host names",
        _ => "values",
    }
}

impl ConfigValue for bool {
    const KIND: Kind = Kind::Boolean;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        match given {
            Given::Boolean(boolean) => Ok(boolean),
            Given::Bare("true") => Ok(true),
            Given::Bare("false") => Ok(false),
            Given::Bare(text) => {
                let text = shown(text);
                Err(Fault::new(format!(
                    "invalid value `{text}`: expected true or false"
                )))
            }
            Given::Text("true" | "yes" | "on" | "1") | Given::Integer(Some(1)) => {
                Err(wrong().instead_bare("true"))
            }
            Given::Text("false" | "no" | "off" | "0") | Given::Integer(Some(0)) => {
                Err(wrong().instead_bare("false"))
            }
            _ => Err(wrong()),
        }
    }

    fn to_json(&self) -> Value {
        (*self).into()
    }
}
