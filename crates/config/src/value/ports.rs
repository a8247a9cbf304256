//! Ports of the two loopbacks.

use std::{fmt, net::Ipv4Addr, num::NonZeroU16};

use serde_json::Value;

use super::{ConfigValue, Fault, Given, Roots};
use crate::{keys::Kind, text::shown};

pub type Port = NonZeroU16;

/// A port inside, and where it is seen outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    pub outside: Port,
    pub inside: Port,
}

impl ConfigValue for Port {
    const KIND: Kind = Kind::Port;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        match given {
            Given::Integer(number) => from_integer(number),
            Given::Bare(text) => parse(text, text),
            Given::Text(text) if parse(text, text).is_ok() => Err(wrong().instead_bare(text)),
            _ => Err(wrong()),
        }
    }

    fn to_json(&self) -> Value {
        self.get().into()
    }
}

impl ConfigValue for Published {
    const KIND: Kind = Kind::Published;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        if let Given::Integer(number) = given {
            let port = from_integer(number)?;
            return Ok(Self {
                outside: port,
                inside: port,
            });
        }
        let text = given.text().ok_or_else(wrong)?;
        let (outside, inside) = text.split_once(':').unwrap_or((text, text));
        if inside.contains(':') || outside.contains('.') {
            let fault = Fault::new("expected PORT or OUTSIDE:INSIDE, such as `8080:3000`");
            // The address is always the loopback's.
            let ports = text
                .split_once(':')
                .filter(|(address, _)| is_loopback(address));
            return Err(fault.instead_if(ports.map(|(_, ports)| ports)));
        }
        Ok(Self {
            outside: parse(text, outside)?,
            inside: parse(text, inside)?,
        })
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.outside)?;
        if self.inside != self.outside {
            write!(f, ":{}", self.inside)?;
        }
        Ok(())
    }
}

/// As others have it before the ports.
fn is_loopback(text: &str) -> bool {
    text == "localhost"
        || text
            .parse()
            .is_ok_and(|address: Ipv4Addr| address.is_loopback())
}

fn from_integer(number: Option<i64>) -> Result<Port, Fault> {
    number
        .and_then(|number| u16::try_from(number).ok())
        .and_then(Port::new)
        .ok_or_else(|| Fault::new("invalid port: expected 1 to 65535"))
}

/// The port that a part of the text is.
fn parse(whole: &str, part: &str) -> Result<Port, Fault> {
    let decimal = !part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
    let port = part.parse().ok().filter(|_| decimal);
    port.ok_or_else(|| {
        let start = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
        let message = format!("invalid port `{}`: expected 1 to 65535", shown(part));
        Fault::new(message).at(start..start + part.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Instead;

    fn published(text: &str) -> Result<String, Fault> {
        let roots = Roots {
            home: "/home".into(),
            workspace: None,
        };
        let published = Published::read(Given::Text(text), &roots, &|| Fault::new("wrong"))?;
        Ok(published.to_string())
    }

    #[test]
    fn a_port_alone_is_the_same_on_both_sides() {
        assert_eq!(published("3000").as_deref(), Ok("3000"));
        assert_eq!(published("3000:80").as_deref(), Ok("3000:80"));
        assert_eq!(published("80:80").as_deref(), Ok("80"));
    }

    #[test]
    fn what_is_no_port_is_pointed_at() {
        for (text, span) in [
            ("", 0..0),
            ("0", 0..1),
            ("65536", 0..5),
            ("+80", 0..3),
            ("080", 0..3),
            ("3000:", 5..5),
            ("3000:http", 5..9),
        ] {
            assert_eq!(published(text).expect_err(text).span, Some(span), "{text}");
        }
    }

    #[test]
    fn an_address_before_the_ports_is_left_out() {
        for (text, instead) in [
            ("1:2:3", None),
            ("127.0.0.1:80", Some("80")),
            ("127.0.0.1:8080:80", Some("8080:80")),
            ("localhost:8080:80", Some("8080:80")),
            ("0.0.0.0:80", None),
        ] {
            let fault = published(text).expect_err(text);
            assert!(fault.message.contains("OUTSIDE:INSIDE"), "{fault:?}");
            let instead = instead.map(|text| Instead::Text(text.to_owned()));
            assert_eq!(fault.instead, instead, "{text}");
        }
    }
}
