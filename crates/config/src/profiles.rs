//! The profiles that are built in, as files of the configuration. They are chosen by the
//! command's name, unless the user names one; what each says can be overridden as by any
//! other file.

/// The profile of commands that have none of their own.
pub const GENERIC: &str = "generic";

/// All that are built in: name and text. Each but [`GENERIC`] is named after the command that
/// it is for, an agent.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("claude", include_str!("../profiles/claude.toml")),
    ("codex", include_str!("../profiles/codex.toml")),
    ("gemini", include_str!("../profiles/gemini.toml")),
    ("aider", include_str!("../profiles/aider.toml")),
    (GENERIC, include_str!("../profiles/generic.toml")),
];

/// In addition for Claude Code, if its own settings turn its sandbox on.
pub const CLAUDE_SANDBOX: (&str, &str) = ("claude", "[profiles.claude.agent]\nnested = true\n");

/// The agents that have a profile, by the names of their commands.
pub fn agents() -> impl Iterator<Item = &'static str> {
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    names.filter(|name| *name != GENERIC)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{LayerKind, Places, Source, SourceKind, parse};

    #[test]
    fn each_is_right_and_has_the_profile_of_its_name_only() {
        let places = Places::new(Path::new("/home/dev"), Path::new("/home/dev/w"), |_| None);
        for (name, text) in BUILT_IN {
            let source = Source::new(SourceKind::BuiltIn(name), *text);
            let layer = parse(LayerKind::BuiltIn, &source, &places.roots()).expect(name);
            let names: Vec<_> = layer.profiles().collect();
            assert_eq!(names, [*name]);
            assert!(layer.changes.is_empty(), "{name}");
        }
    }

    #[test]
    fn none_gives_a_forge_or_opens_the_disk_or_the_network() {
        for (name, text) in BUILT_IN {
            for section in ["forge", "network"] {
                assert!(!text.contains(&format!(".{section}]")), "{name}");
            }
            assert!(!text.contains("hardening"), "{name}");
            assert!(!text.contains("root ="), "{name}");
        }
    }
}
