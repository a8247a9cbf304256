//! The profiles that are built in, as configuration. They are chosen by the command's name,
//! unless the user names one; what each says can be overridden as by any other file.

/// A profile: a name and the text of its file, in the form of a `[profiles.NAME]` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    pub name: &'static str,
    pub text: &'static str,
}

/// For commands that no other profile is named after.
pub const GENERIC: &str = "generic";

/// All that are built in. Each but [`GENERIC`] is named after the command that it is for.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "claude",
        text: include_str!("../profiles/claude.toml"),
    },
    Profile {
        name: "codex",
        text: include_str!("../profiles/codex.toml"),
    },
    Profile {
        name: "gemini",
        text: include_str!("../profiles/gemini.toml"),
    },
    Profile {
        name: "aider",
        text: include_str!("../profiles/aider.toml"),
    },
    Profile {
        name: GENERIC,
        text: include_str!("../profiles/generic.toml"),
    },
];

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;

    /// The sections and keys that configuration has.
    const KEYS: &[(&str, &[&str])] = &[
        ("files", &["root", "read", "write", "hide"]),
        ("env", &["pass", "set"]),
        ("forge", &["github", "gitlab", "hosts"]),
        ("agent", &["hardening", "state"]),
        (
            "limits",
            &["processes", "memory", "open_files", "tmpfs", "cpu_time"],
        ),
        ("network", &["mode", "internet", "allow"]),
    ];

    #[test]
    fn profiles_use_the_keys_of_configuration_only() {
        for profile in PROFILES {
            let table = DeTable::parse(profile.text).expect(profile.name);
            for (section, keys) in table.get_ref() {
                let section = section.get_ref();
                let known = KEYS.iter().find(|(name, _)| name == section);
                let (_, known) = known.unwrap_or_else(|| panic!("{}: {section}", profile.name));
                for key in keys.get_ref().as_table().expect("a section").keys() {
                    let key = key.get_ref();
                    assert!(
                        known.contains(&key.as_ref()),
                        "{}: {section}.{key}",
                        profile.name
                    );
                }
            }
        }
    }

    #[test]
    fn no_profile_gives_a_forge_or_opens_the_disk() {
        for profile in PROFILES {
            assert!(!profile.text.contains("[forge"), "{}", profile.name);
            assert!(!profile.text.contains("root ="), "{}", profile.name);
        }
    }
}
