//! A file to start from: every key with what it does, commented out.

use crate::{
    key::{Item, Key, Kind, SECTIONS},
    text::quoted,
};

/// Widest value that still has its explanation beside it.
const COLUMN: usize = 44;

/// The text of a starter. With a workspace, for a file that is about one.
#[must_use]
pub fn starter(workspace: Option<&str>) -> String {
    let mut text = String::from(
        "# Stockade: what the command inside can reach and see. Every setting is commented out,\n\
         # so the defaults hold. `stockade config show` prints what is in force, and why.\n",
    );
    if let Some(workspace) = workspace {
        text.push_str(&format!("\nworkspace = {}\n", quoted(workspace)));
    }
    for (section, about) in SECTIONS {
        text.push_str(&format!("\n# {about}\n[{section}]\n"));
        for key in Key::in_section(section) {
            let line = format!("# {} = {}", key.name(), example(key));
            text.push_str(&format!("{line:COLUMN$}  # {}\n", key.spec().about));
        }
    }
    text.push_str("\n# The same sections for one command, or for `stockade run --profile NAME`:\n");
    text.push_str("# [profiles.npm.network]\n# publish = [\"3000\"]\n");
    text
}

fn example(key: Key) -> String {
    match key.spec().kind {
        Kind::Choice(words) => format!("{:?}", words.first().copied().unwrap_or_default()),
        Kind::Boolean => match key {
            Key::Github | Key::Gitlab | Key::Nested => "false",
            _ => "true",
        }
        .to_owned(),
        Kind::Count(_) => "4096".to_owned(),
        Kind::Size => "\"8G\"".to_owned(),
        Kind::Time => "\"2h\"".to_owned(),
        Kind::List(Item::Rule) => "[\"192.168.10.21\", \"tcp://10.20.0.0/16:443\"]".to_owned(),
        Kind::List(Item::Port) => "[5432]".to_owned(),
        Kind::List(Item::Published) => "[\"3000\", \"8080:3000\"]".to_owned(),
        Kind::List(Item::Path) => match key {
            Key::Hide => "[\"~/.cache/secrets\"]",
            _ => "[\"~/data\"]",
        }
        .to_owned(),
        Kind::List(Item::Variable) => "[\"EDITOR\"]".to_owned(),
        Kind::List(Item::Host) => "[\"git.example.org\"]".to_owned(),
        Kind::Variables => "{ RUST_BACKTRACE = \"1\" }".to_owned(),
    }
}
