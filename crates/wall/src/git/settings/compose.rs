//! Writing settings of git's.

/// A file in the making. Every value is quoted, so none can become a setting of its own.
#[derive(Debug, Default)]
pub(crate) struct Composer(Vec<u8>);

impl Composer {
    pub(crate) fn section(&mut self, section: &str, subsection: Option<&str>) {
        // A line cannot be continued in a section's name.
        let subsection = subsection.map(|text| text.replace(['\n', '\0'], ""));
        let subsection = subsection.as_deref().map(str::as_bytes);
        write_section(section.as_bytes(), subsection, &mut self.0);
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        // git ends a line at a return that stands before a newline; nobody needs it.
        let value = value.replace(['\r', '\0'], "");
        self.0.extend(format!("\t{name} = ").as_bytes());
        write_quoted(value.as_bytes(), &mut self.0);
        self.0.push(b'\n');
    }

    pub(crate) fn finish(self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// The line that begins a section.
pub(super) fn write_section(section: &[u8], subsection: Option<&[u8]>, to: &mut Vec<u8>) {
    to.push(b'[');
    to.extend(section);
    if let Some(subsection) = subsection {
        to.extend(b" \"");
        for byte in subsection {
            if matches!(byte, b'"' | b'\\') {
                to.push(b'\\');
            }
            to.push(*byte);
        }
        to.push(b'"');
    }
    to.extend(b"]\n");
}

pub(super) fn write_quoted(value: &[u8], to: &mut Vec<u8>) {
    to.push(b'"');
    for byte in value {
        match byte {
            b'"' => to.extend(b"\\\""),
            b'\\' => to.extend(b"\\\\"),
            b'\n' => to.extend(b"\\n"),
            b'\t' => to.extend(b"\\t"),
            8 => to.extend(b"\\b"),
            byte => to.push(*byte),
        }
    }
    to.push(b'"');
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
