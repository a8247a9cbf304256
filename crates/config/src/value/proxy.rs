//! The proxy to the internet, the file with its login, and what goes around it.

use std::{cmp::Ordering, fmt, path::PathBuf};

use serde_json::Value;
use stockade_policy::{Exemption, ProxyAddress};

use super::{ConfigValue, Fault, Given, Roots, path};
use crate::keys::Kind;

/// Which proxy there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxySetting {
    None,
    /// That of the caller's environment, if it names one.
    Environment,
    At(ProxyAddress),
}

/// With a proxy, the internet can be reached where it could not be without. Which one it is makes no
/// difference.
impl PartialOrd for ProxySetting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (one, other) if one == other => Some(Ordering::Equal),
            (Self::None, _) => Some(Ordering::Less),
            (_, Self::None) => Some(Ordering::Greater),
            _ => None,
        }
    }
}

impl fmt::Display for ProxySetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Environment => f.write_str("environment"),
            Self::At(address) => write!(f, "{address}"),
        }
    }
}

impl ConfigValue for ProxySetting {
    const KIND: Kind = Kind::Proxy;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        match given.text().ok_or_else(wrong)? {
            "none" => Ok(Self::None),
            "environment" => Ok(Self::Environment),
            text => match ProxyAddress::parse(text) {
                Ok((address, None)) if text.contains("://") => Ok(Self::At(address)),
                Ok((address, None)) => {
                    let message = "invalid proxy: expected http://, https:// or socks5:// \
                                   before the host, or environment, or none";
                    Err(Fault::new(message).instead(address.to_string()))
                }
                Ok((_, Some(_))) => {
                    let message = "a proxy here has no user and password: others could read them in \
                                   the list of processes, and Stockade prints its settings";
                    let help = "write USER:PASSWORD to a file that only you can read, and name it \
                                with proxy_login (--proxy-login)";
                    Err(secret(message).help(help))
                }
                // It may have a login, too.
                Err(error) if text.contains('@') => Err(secret(error.to_string())),
                Err(error) => Err(Fault::new(format!("invalid proxy: {error}"))),
            },
        }
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

fn secret(message: impl Into<String>) -> Fault {
    Fault {
        is_secret: true,
        ..Fault::new(message)
    }
}

/// A file with the login for the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginFile(pub PathBuf);

/// Which file it is makes no difference.
impl PartialOrd for LoginFile {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl ConfigValue for LoginFile {
    const KIND: Kind = Kind::Path;

    fn read(given: Given<'_>, roots: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        path(given.text().ok_or_else(wrong)?, roots).map(Self)
    }

    fn to_json(&self) -> Value {
        self.0.to_json()
    }
}

impl ConfigValue for Exemption {
    const KIND: Kind = Kind::Exemption;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let text = given.text().ok_or_else(wrong)?;
        text.parse()
            .map_err(|why: String| Fault::new(format!("invalid entry of network.no_proxy: {why}")))
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}
