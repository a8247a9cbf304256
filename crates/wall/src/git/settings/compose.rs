//! Writing a configuration file for git.

/// A file in the making. Every value is quoted, so none can become a setting of its own.
#[derive(Debug, Default)]
pub(crate) struct Composer(String);

impl Composer {
    pub(crate) fn section(&mut self, section: &str, subsection: Option<&str>) {
        self.0.push('[');
        self.0.push_str(section);
        if let Some(subsection) = subsection {
            self.0.push_str(" \"");
            for c in subsection.chars() {
                if matches!(c, '"' | '\\') {
                    self.0.push('\\');
                }
                // A line cannot be continued in a section's name.
                if c != '\n' && c != '\0' {
                    self.0.push(c);
                }
            }
            self.0.push('"');
        }
        self.0.push_str("]\n");
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.push('\t');
        self.0.push_str(name);
        self.0.push_str(" = \"");
        for c in value.chars() {
            match c {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\t' => self.0.push_str("\\t"),
                '\u{8}' => self.0.push_str("\\b"),
                // git ends a line at one that stands before a newline; nobody needs it.
                '\r' | '\0' => {}
                c => self.0.push(c),
            }
        }
        self.0.push_str("\"\n");
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// Whether a text can be the host of a URL, with a port or without, and nothing else.
pub(crate) fn is_host_name(text: &str) -> bool {
    let (name, port) = text.split_once(':').unwrap_or((text, "443"));
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    !name.is_empty()
        && !name.starts_with(['-', '.'])
        && name.chars().all(fits)
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::settings::parse;

    #[test]
    fn no_value_breaks_out_of_its_quotes() {
        let values = [
            "Ada \"x\"\n[core]\n\tsshCommand = evil",
            "a # b ; c",
            "trailing \\",
            "\\\"\\n\t\u{8}",
            " spaced ",
            "",
        ];
        for value in values {
            let mut composer = Composer::default();
            composer.section("user", Some("a\"]\\b"));
            composer.set("name", value);
            composer.set("email", "x");
            let settings = parse(composer.finish().as_bytes()).unwrap();
            assert_eq!(settings.len(), 2, "{value:?}");
            assert_eq!(settings[0].key(), "user.a\"]\\b.name");
            assert_eq!(settings[0].value(), value);
        }
    }

    #[test]
    fn hosts_are_hosts() {
        for host in ["github.com", "git.example.org:8443", "forge"] {
            assert!(is_host_name(host), "{host}");
        }
        for host in [
            "", "a b", "a/b", "a\"", "a\nb", "a:0", "a:x", "-a", "user@a", "a:1:2",
        ] {
            assert!(!is_host_name(host), "{host:?}");
        }
    }
}
