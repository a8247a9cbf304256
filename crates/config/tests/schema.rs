//! The schema for editors, and the starter, against what is really read.

use std::collections::BTreeSet;

use serde_json::Value;
use stockade_config::{Key, LayerKind, Roots, SECTIONS, Source, parse, schema, starter};

fn reads(kind: LayerKind, text: &str) -> bool {
    let roots = Roots {
        home: "/home/ada".into(),
        workspace: Some("/home/ada/project".into()),
    };
    parse(kind, &Source::file("/f.toml", text), &roots).is_ok()
}

fn properties(value: &Value) -> BTreeSet<String> {
    assert_eq!(
        value["additionalProperties"], false,
        "unknown keys are errors: {value}"
    );
    let properties = value["properties"].as_object().expect("properties");
    properties.keys().cloned().collect()
}

/// A value that the schema allows, as TOML.
fn example(schema: &Value) -> String {
    if let Some(first) = schema["enum"].get(0) {
        return first.to_string();
    }
    let kind = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str())
        .expect("a type");
    match (kind, schema["pattern"].as_str()) {
        ("boolean", _) => "true".to_owned(),
        ("integer", _) => schema["minimum"].to_string(),
        ("array", _) => format!("[{}]", example(&schema["items"])),
        ("object", _) => "{ NAME = \"text\" }".to_owned(),
        ("string", Some(pattern)) if pattern.contains("[BKMGT]") => "\"8G\"".to_owned(),
        ("string", Some(pattern)) if pattern.contains("[smhd]") => "\"2h\"".to_owned(),
        ("string", Some(pattern)) if pattern.starts_with("^[1-9]") => "\"3000:80\"".to_owned(),
        ("string", Some(pattern)) if pattern.contains("epics") => "\"udp://3702\"".to_owned(),
        ("string", Some(_)) => "\"NAME\"".to_owned(),
        // A rule or path or host name.
        ("string", None) if schema["description"].is_string() => "\"/data\"".to_owned(),
        (kind, _) => panic!("no example of {kind}"),
    }
}

/// What a list of free texts can hold.
fn free_text(key: Key) -> Option<&'static str> {
    match key {
        Key::Allow => Some("[\"10.0.0.1\"]"),
        Key::Proxy => Some("\"socks5://proxy.example:1080\""),
        Key::NoProxy => Some("[\"10.0.0.0/8\"]"),
        Key::Near => Some("[\"*.lab.example\"]"),
        Key::Read | Key::Write | Key::Hide => Some("[\"/data\"]"),
        Key::ForgeHosts => Some("[\"git.example.org\"]"),
        _ => None,
    }
}

#[test]
fn the_schema_has_the_keys_that_are_read_and_no_others() {
    let schema = schema();
    let sections: BTreeSet<String> = SECTIONS
        .iter()
        .map(|section| section.name.to_owned())
        .collect();
    let others = ["profiles", "lock", "workspace"].map(str::to_owned);
    assert_eq!(properties(&schema), &sections | &others.into());
    let profile = &schema["properties"]["profiles"]["additionalProperties"];
    assert_eq!(properties(profile), sections);
    // That one is a table of names.
    for section in sections.iter().filter(|section| *section != "devices") {
        let keys: BTreeSet<String> = Key::in_section(section)
            .map(|key| key.name().to_owned())
            .collect();
        for place in [&schema, profile] {
            assert_eq!(properties(&place["properties"][section]), keys);
        }
    }
}

#[test]
fn what_the_schema_allows_is_read() {
    let schema = schema();
    for key in Key::ALL.into_iter().filter(|key| *key != Key::Devices) {
        let of_key = &schema["properties"][key.section()]["properties"][key.name()];
        let value = free_text(key).map_or_else(|| example(of_key), str::to_owned);
        for text in [
            format!("{key} = {value}\n"),
            format!("profiles.x.{key} = {value}\n"),
        ] {
            assert!(reads(LayerKind::User, &text), "{text}");
        }
        // Every word of a choice.
        for word in of_key["enum"].as_array().into_iter().flatten() {
            assert!(
                reads(LayerKind::User, &format!("{key} = {word}\n")),
                "{key} {word}"
            );
        }
    }
    assert!(reads(LayerKind::User, "network.publish = [3000]\n"));
    let device = &schema["properties"]["devices"]["additionalProperties"];
    assert_eq!(device["type"], serde_json::json!(["string", "array"]));
    for value in ["\"10.0.0.7\"", "[\"10.0.0.7\"]"] {
        for text in [
            format!("devices.pmac = {value}\n"),
            format!("profiles.x.devices.pmac = {value}\n"),
        ] {
            assert!(reads(LayerKind::User, &text), "{text}");
        }
    }
    for lock in schema["properties"]["lock"]["items"]["enum"]
        .as_array()
        .expect("locks")
    {
        assert!(
            reads(LayerKind::System, &format!("lock = [{lock}]\n")),
            "{lock}"
        );
    }
    assert!(reads(
        LayerKind::Project,
        "workspace = \"/home/ada/project\"\n"
    ));
}

#[test]
fn what_has_a_type_that_the_schema_does_not_allow_is_refused() {
    let schema = schema();
    for key in Key::ALL.into_iter().filter(|key| *key != Key::Devices) {
        let of_key = &schema["properties"][key.section()]["properties"][key.name()];
        for (kind, value) in [
            ("boolean", "true"),
            ("integer", "70"),
            ("number", "7.5"),
            ("string", "\"/text\""),
            ("array", "[]"),
            ("object", "{}"),
        ] {
            let allowed = of_key["type"] == kind;
            let words = of_key["enum"].is_array() || of_key["pattern"].is_string();
            // A word must be one of those that there are, too.
            let read = reads(LayerKind::User, &format!("{key} = {value}\n"));
            assert_eq!(read, allowed && !words, "{key} = {value}");
            if let Some(items) = of_key.get("items").filter(|_| kind != "array") {
                let allowed = items["type"] == kind
                    || items["type"]
                        .as_array()
                        .is_some_and(|kinds| kinds.iter().any(|k| k == kind));
                let read = reads(LayerKind::User, &format!("{key} = [{value}]\n"));
                assert!(allowed || !read, "{key} = [{value}]");
            }
        }
    }
}

#[test]
fn the_starter_says_nothing_and_each_of_its_lines_can_be_used() {
    let plain = starter(None);
    assert!(reads(LayerKind::Workspace, &plain));
    let about = starter(Some("/home/ada/my \"odd\" \\ pro\u{1b}ject"));
    assert!(reads(LayerKind::Project, &about), "{about}");

    let is_setting = |line: &str| line.starts_with("# ") && line.contains(" = ");
    let settings: Vec<usize> = plain
        .lines()
        .enumerate()
        .filter(|(_, line)| is_setting(line))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(settings.len(), Key::ALL.len() + 1);
    for at in settings.iter().take(Key::ALL.len()) {
        let uncommented: Vec<&str> = plain
            .lines()
            .enumerate()
            .map(|(number, line)| {
                if number == *at {
                    line.trim_start_matches("# ")
                } else {
                    line
                }
            })
            .collect();
        let text = uncommented.join("\n");
        assert!(reads(LayerKind::Workspace, &text), "{}", uncommented[*at]);
    }
}
