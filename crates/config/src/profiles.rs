//! The profiles that are built in, as files of the configuration. They are chosen by the
//! command's name, unless the user names one; what each says can be overridden as by any
//! other file.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

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

/// A variable that says where an agent keeps its state instead of in the usual place.
#[derive(Debug, Clone, Copy)]
pub struct StateVariable {
    pub profile: &'static str,
    pub name: &'static str,
    /// Where the state is below the directory that the variable names.
    below: &'static str,
    /// The usual places, below the home: a directory, then files beside it. With the variable, the
    /// agent keeps these in the directory.
    pub usual: &'static [&'static str],
}

/// One for each agent that has such a variable.
pub const STATE_VARIABLES: &[StateVariable] = &[
    StateVariable {
        profile: "claude",
        name: "CLAUDE_CONFIG_DIR",
        below: "",
        usual: &[".claude", ".claude.json"],
    },
    StateVariable {
        profile: "codex",
        name: "CODEX_HOME",
        below: "",
        usual: &[".codex"],
    },
    StateVariable {
        profile: "gemini",
        name: "GEMINI_CLI_HOME",
        below: ".gemini",
        usual: &[".gemini"],
    },
];

impl StateVariable {
    /// The directory with the state, by this value of the variable; `None` if that is empty, which
    /// agents take for unset.
    ///
    /// # Errors
    /// Why the value cannot be used.
    pub fn directory(&self, value: &OsStr) -> Option<Result<PathBuf, &'static str>> {
        if value.is_empty() {
            return None;
        }
        let directory = Path::new(value);
        let climbs = directory.components().any(|it| it == Component::ParentDir);
        Some(match value.to_str() {
            None => Err("is not UTF-8"),
            Some(_) if !directory.is_absolute() => Err("is not an absolute path"),
            Some(_) if climbs => Err("has `..` in it"),
            // By its components, without a slash at the end.
            Some(_) => Ok(directory.join(self.below).components().collect()),
        })
    }
}

/// The agents that have a profile, by the names of their commands.
pub fn agents() -> impl Iterator<Item = &'static str> {
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    names.filter(|name| *name != GENERIC)
}

#[cfg(test)]
mod tests {
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
    fn a_state_variable_passes_and_names_places_of_its_profile() {
        for variable in STATE_VARIABLES {
            let (_, text) = BUILT_IN
                .iter()
                .find(|(name, _)| *name == variable.profile)
                .expect(variable.name);
            assert!(text.contains(&format!("\"{}\",\n", variable.name)));
            for usual in variable.usual {
                assert!(text.contains(&format!("\"~/{usual}\"")), "{usual}");
            }
        }
    }

    /// What they give is more than a model.
    #[test]
    fn no_profile_passes_the_keys_of_a_cloud_and_generic_passes_nothing() {
        for (name, text) in BUILT_IN {
            for key in ["AWS_SECRET", "AWS_ACCESS", "AWS_SESSION", "AWS_PROFILE"] {
                assert!(!text.contains(key), "{name}: {key}");
            }
            assert!(
                !text.contains("\"GOOGLE_APPLICATION_CREDENTIALS\""),
                "{name}"
            );
        }
        let (_, generic) = BUILT_IN.last().unwrap();
        assert!(!generic.contains("pass"));
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
