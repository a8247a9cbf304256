//! The schema for editors: JSON Schema (draft 2020-12), made from the table of keys.
//!
//! It describes every kind of file at once, so `lock` and `workspace` are in it, which
//! only some may have. It knows the form of values, not their meaning: `config check` does.

use serde_json::{Map, Value, json};

use crate::keys::{Key, Kind, SECTIONS, Section};

pub fn schema() -> Value {
    let mut properties = sections();
    let profile = table(
        &properties,
        "What holds for one command on top of the rest.",
    );
    let names = SECTIONS.iter().map(|section| section.name.to_owned());
    let keys = Key::ALL.iter().map(ToString::to_string);
    let others = json!({
        "profiles": {
            "type": "object",
            "description": "Settings for the command of that name, or for --profile NAME.",
            "propertyNames": { "minLength": 1 },
            "additionalProperties": profile,
        },
        "lock": {
            "type": "array",
            "description": "Keys and sections that only /etc/stockade/config.toml may set. Only there.",
            "items": { "type": "string", "enum": names.chain(keys).collect::<Vec<_>>() },
        },
        "workspace": {
            "type": "string",
            "description": "In ~/.config/stockade/projects: the project that the file is about. In the user's and the administrator's file: \"directory\" or \"repository\", what a session's workspace is if it is not named.",
            "minLength": 1,
        },
    });
    properties.extend(others.as_object().cloned().unwrap_or_default());
    let mut schema = table(&properties, "Configuration of Stockade.");
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Stockade".into();
    schema
}

fn sections() -> Map<String, Value> {
    let section = |section: &Section| {
        if section.name == Key::Devices.section() {
            let mut value = of_kind(Kind::Devices);
            value["description"] = section.about.trim().into();
            return (section.name.to_owned(), value);
        }
        let keys = Key::in_section(section.name);
        let keys = keys.map(|key| {
            let mut value = of_kind(key.spec().kind);
            value["description"] = key.spec().about().into();
            (key.name().to_owned(), value)
        });
        (
            section.name.to_owned(),
            table(&keys.collect(), section.about.trim()),
        )
    };
    SECTIONS.iter().map(section).collect()
}

fn table(properties: &Map<String, Value>, about: &str) -> Value {
    json!({
        "type": "object",
        "description": about,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn of_kind(kind: Kind) -> Value {
    match kind {
        Kind::Choice(words) => json!({ "type": "string", "enum": words }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Count(least) => json!({ "type": "integer", "minimum": least }),
        Kind::Size => json!({ "type": "string", "pattern": "^[0-9]+[BKMGT]$" }),
        Kind::Time => json!({ "type": "string", "pattern": "^[0-9]+[smhd]$" }),
        Kind::Rule | Kind::NearRule | Kind::Path | Kind::Host | Kind::Exemption => {
            json!({ "type": "string", "minLength": 1 })
        }
        Kind::Discovery => {
            json!({ "type": "string", "pattern": "^(epics|udp://[1-9][0-9]{0,4})$" })
        }
        Kind::Proxy => json!({
            "type": "string",
            "pattern": "^(none|environment|(https?|socks5h?)://[^@]+)$",
        }),
        Kind::Port => json!({ "type": "integer", "minimum": 1, "maximum": 65535 }),
        Kind::Published => json!({
            "type": ["string", "integer"],
            "pattern": "^[1-9][0-9]{0,4}(:[1-9][0-9]{0,4})?$",
            "minimum": 1,
            "maximum": 65535,
        }),
        Kind::Variable => json!({ "type": "string", "pattern": VARIABLE }),
        Kind::List(item) => json!({ "type": "array", "items": of_kind(*item) }),
        Kind::Devices => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$" },
            "additionalProperties": {
                "type": ["string", "array"],
                "minLength": 1,
                "minItems": 1,
                "items": { "type": "string", "minLength": 1 },
            },
        }),
        Kind::Variables => json!({
            "type": "object",
            "propertyNames": { "pattern": VARIABLE },
            "additionalProperties": { "type": "string" },
        }),
    }
}

const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
