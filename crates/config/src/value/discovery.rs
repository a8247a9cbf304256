//! Searches for devices that are passed on.

use serde_json::Value;
use stockade_policy::{Discovery, DiscoveryError};

use super::{ConfigValue, Fault, Given, Roots};
use crate::{keys::Kind, text::shown};

impl ConfigValue for Discovery {
    const KIND: Kind = Kind::Discovery;

    fn read(given: Given<'_>, _: &Roots, wrong: &dyn Fn() -> Fault) -> Result<Self, Fault> {
        let text = given.text().ok_or_else(wrong)?;
        text.parse().map_err(|DiscoveryError| {
            let message = format!(
                "invalid search `{}`: expected epics, or udp://PORT",
                shown(text)
            );
            Fault::new(message).instead_if(meant(text))
        })
    }

    fn to_json(&self) -> Value {
        self.to_string().into()
    }
}

/// What somebody most likely means: the name in other letters, or a port alone.
fn meant(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    [format!("udp://{lower}"), lower]
        .into_iter()
        .find(|text| text.parse::<Discovery>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Instead;

    #[test]
    fn what_is_meant_is_proposed() {
        let roots = Roots {
            home: "/home".into(),
            workspace: None,
        };
        for (text, instead) in [
            ("EPICS", Some("epics")),
            ("5064", Some("udp://5064")),
            ("mdns", None),
            ("tcp://5064", None),
        ] {
            let fault = Discovery::read(Given::Text(text), &roots, &|| Fault::new("wrong"));
            let instead = instead.map(|text| Instead::Text(text.to_owned()));
            assert_eq!(fault.expect_err(text).instead, instead, "{text}");
        }
    }
}
