//! The profiles that are built in, as files of the configuration. They are chosen by the
//! command's name, unless the user names one; what each says can be overridden as by any
//! other file.

/// All that are built in, as the names of their files and the texts. Each but `generic` is
/// named after the command that it is for.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("claude.toml", include_str!("../profiles/claude.toml")),
    ("codex.toml", include_str!("../profiles/codex.toml")),
    ("gemini.toml", include_str!("../profiles/gemini.toml")),
    ("aider.toml", include_str!("../profiles/aider.toml")),
    ("generic.toml", include_str!("../profiles/generic.toml")),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{LayerKind, Places, Source, parse};

    #[test]
    fn each_is_right_and_has_the_profile_of_its_name_only() {
        let places = Places::new(Path::new("/home/dev"), Path::new("/home/dev/w"), |_| None);
        for (file, text) in BUILT_IN {
            let source = Source::file(*file, *text);
            let layer = parse(LayerKind::BuiltIn, &source, &places.roots()).expect(file);
            let names: Vec<_> = layer.profiles().collect();
            assert_eq!(names, [file.strip_suffix(".toml").expect("a file")]);
            assert!(layer.changes.is_empty(), "{file}");
        }
    }

    #[test]
    fn none_gives_a_forge_or_opens_the_disk_or_the_network() {
        for (file, text) in BUILT_IN {
            for section in ["forge", "network", "agent"] {
                assert!(!text.contains(&format!(".{section}]")), "{file}");
            }
            assert!(!text.contains("root ="), "{file}");
        }
    }
}
