//! A file to start from: every key with what it does, commented out.

use crate::{
    keys::{Effective, Key, Kind, SECTIONS},
    text::quoted,
};

/// Widest value that still has its explanation beside it.
const COLUMN: usize = 44;

/// The text of a starter. With a workspace, for a file that is about one.
pub fn starter(workspace: Option<&str>) -> String {
    let mut text = String::from(
        "# Stockade: what the command inside can reach and see. Every setting is commented out,\n\
         # so the defaults hold. `stockade config show` prints what is in force, and why.\n",
    );
    if let Some(workspace) = workspace {
        text.push_str(&format!("\nworkspace = {}\n", quoted(workspace)));
    }
    for section in SECTIONS {
        let (name, about) = (section.name, section.about.trim());
        text.push_str(&format!("\n# {about}\n[{name}]\n"));
        for key in Key::in_section(name) {
            let line = match key.spec().kind {
                Kind::Devices => format!("# {}", example(key)),
                _ => format!("# {} = {}", key.name(), example(key)),
            };
            text.push_str(&format!("{line:COLUMN$}  # {}\n", key.spec().about()));
        }
    }
    text.push_str("\n# The same sections for one command, or for `stockade run --profile NAME`:\n");
    text.push_str("# [profiles.npm.network]\n# publish = [\"3000\"]\n");
    text
}

/// The default of a scalar, where it has one.
fn example(key: Key) -> String {
    match (key.spec().kind, Effective::default().shown(key).first()) {
        (Kind::List(item), _) => format!("[{}]", example_of(*item)),
        (_, Some(default)) => default.literal(),
        _ if key == Key::ProxyLogin => "\"~/.config/stockade/proxy-login\"".to_owned(),
        (kind, None) => example_of(kind).to_owned(),
    }
}

fn example_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Count(_) => "4096",
        Kind::Size => "\"8G\"",
        Kind::Time => "\"2h\"",
        Kind::Rule => "\"192.168.10.21\", \"tcp://10.20.0.0/16:443\"",
        Kind::NearRule => "\"wiki.corp.example:443\", \"*.lab.example\"",
        Kind::Discovery => "\"epics\"",
        Kind::Port => "5432",
        Kind::Published => "\"3000\", \"8080:3000\"",
        Kind::Exemption => "\"corp.example\", \"10.0.0.0/8\"",
        Kind::Path => "\"~/data\"",
        Kind::Variable => "\"EDITOR\"",
        Kind::Host => "\"git.example.org\"",
        Kind::Devices => "pmac = \"tcp://172.23.1.7:1025\"",
        Kind::Variables => "{ RUST_BACKTRACE = \"1\" }",
        // They have a default.
        Kind::Choice(_) | Kind::Boolean | Kind::Proxy | Kind::List(_) => "",
    }
}
