//! git's configuration files: read, judged and written without git.
//!
//! They are read to find the user's name and mail, and to tell which settings of a
//! repository make git run programs. Such files may be hostile; so may a repository be in
//! which git itself would be asked.

mod compose;
mod programs;

pub(crate) use compose::{Composer, is_host_name};

/// A setting, e.g. `remote.origin.url = …`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Setting {
    /// In lower case, as is the name: git makes no difference.
    pub(crate) section: String,
    pub(crate) subsection: Option<String>,
    pub(crate) name: String,
    /// `None` where there is no `=`; that means "true".
    pub(crate) value: Option<String>,
}

impl Setting {
    /// As `git config` would name it.
    pub(crate) fn key(&self) -> String {
        match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.name),
            None => format!("{}.{}", self.section, self.name),
        }
    }

    pub(crate) fn is(&self, section: &str, name: &str) -> bool {
        self.section == section && self.subsection.is_none() && self.name == name
    }

    pub(crate) fn value(&self) -> &str {
        self.value.as_deref().unwrap_or("true")
    }
}

/// A file that git would not read either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The settings of a file, in their order.
pub(crate) fn parse(contents: &[u8]) -> Result<Vec<Setting>, Malformed> {
    let text = String::from_utf8_lossy(contents).replace("\r\n", "\n");
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut rest = Rest(text);
    let mut settings = Vec::new();
    let mut section = None;
    loop {
        rest.skip_blanks();
        match rest.peek() {
            None => return Ok(settings),
            Some('[') => section = Some(rest.section()?),
            Some(c) if c.is_ascii_alphabetic() => {
                let (section, subsection) = section.clone().ok_or(Malformed)?;
                let name = rest.name();
                let value = rest.assignment()?;
                settings.push(Setting {
                    section,
                    subsection,
                    name,
                    value,
                });
            }
            Some(_) => return Err(Malformed),
        }
    }
}

/// What is still to be read.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.0.chars();
        let next = characters.next();
        self.0 = characters.as_str();
        next
    }

    /// Space, empty lines and comments.
    fn skip_blanks(&mut self) {
        loop {
            self.0 = self.0.trim_start();
            if !self.0.starts_with(['#', ';']) {
                return;
            }
            self.0 = self.0.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    /// `[section]`, `[section "subsection"]` or the old `[section.subsection]`.
    fn section(&mut self) -> Result<(String, Option<String>), Malformed> {
        self.next();
        let end = self.0.find([']', ' ', '\t', '\n']).ok_or(Malformed)?;
        let (name, rest) = self.0.split_at_checked(end).ok_or(Malformed)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if name.is_empty() || !name.chars().all(fits) {
            return Err(Malformed);
        }
        self.0 = rest.trim_start_matches([' ', '\t']);
        let name = name.to_ascii_lowercase();
        let parts = match self.next() {
            Some(']') => match name.split_once('.') {
                Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
                None => (name, None),
            },
            Some('"') => {
                let subsection = self.subsection()?;
                if self.next() != Some(']') {
                    return Err(Malformed);
                }
                (name, Some(subsection))
            }
            _ => return Err(Malformed),
        };
        Ok(parts)
    }

    /// Up to the closing quote. A backslash stands for what follows it.
    fn subsection(&mut self) -> Result<String, Malformed> {
        let mut subsection = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(subsection),
                Some('\\') => subsection.push(self.next().ok_or(Malformed)?),
                Some('\n') | None => return Err(Malformed),
                Some(c) => subsection.push(c),
            }
        }
    }

    fn name(&mut self) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let end = self.0.find(|c| !fits(c)).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at_checked(end).unwrap_or((self.0, ""));
        self.0 = rest;
        name.to_ascii_lowercase()
    }

    /// What follows the name of a setting, up to the end of the line.
    fn assignment(&mut self) -> Result<Option<String>, Malformed> {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        match self.peek() {
            Some('=') => {
                self.next();
                self.0 = self.0.trim_start_matches([' ', '\t']);
                self.value().map(Some)
            }
            Some('\n' | '#' | ';') | None => Ok(None),
            Some(_) => Err(Malformed),
        }
    }

    fn value(&mut self) -> Result<String, Malformed> {
        let mut value = String::new();
        // Space counts only if something follows it.
        let mut space = String::new();
        let mut is_quoted = false;
        loop {
            let Some(c) = self.next() else {
                return if is_quoted { Err(Malformed) } else { Ok(value) };
            };
            match c {
                '\n' if is_quoted => return Err(Malformed),
                '\n' => return Ok(value),
                '#' | ';' if !is_quoted => {
                    self.0 = self.0.split_once('\n').map_or("", |(_, rest)| rest);
                    return Ok(value);
                }
                ' ' | '\t' if !is_quoted => {
                    space.push(c);
                    continue;
                }
                _ => value.push_str(&std::mem::take(&mut space)),
            }
            match c {
                '"' => is_quoted = !is_quoted,
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => value.push('\u{8}'),
                    Some(c @ ('"' | '\\')) => value.push(c),
                    _ => return Err(Malformed),
                },
                c => value.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<(String, Option<String>)> {
        let settings = parse(text.as_bytes()).unwrap();
        settings
            .into_iter()
            .map(|setting| (setting.key(), setting.value))
            .collect()
    }

    fn one(text: &str) -> String {
        let mut all = keys(&format!("[a]\n{text}\n"));
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0).1.unwrap()
    }

    #[test]
    fn settings_are_found_as_git_finds_them() {
        let text = "# c\n[core]\n\tbare = false ; c\n[Remote \"Or\\\"igin\"] URL=x\n\n\
                    [branch.Main]\n  merge\n[x] a = 1\n b= 2 # c\n";
        let expected = [
            ("core.bare", Some("false")),
            ("remote.Or\"igin.url", Some("x")),
            ("branch.main.merge", None),
            ("x.a", Some("1")),
            ("x.b", Some("2")),
        ]
        .map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned)));
        assert_eq!(keys(text), expected);
    }

    #[test]
    fn quotes_escapes_and_continued_lines_are_undone() {
        assert_eq!(one("k = a \"b  # c\" d"), "a b  # c d");
        assert_eq!(one("k = \"!sh -c \\\"x; y\\\"\""), "!sh -c \"x; y\"");
        assert_eq!(one("k = a\\\n b\\tc"), "a b\tc");
        assert_eq!(one("k = a   "), "a");
        assert_eq!(one("k ="), "");
    }

    #[test]
    fn what_git_would_refuse_is_refused() {
        for text in [
            "a = b",
            "[a\nb = c",
            "[a] b = \"c",
            "[a] b = \\q",
            "[a \"b\nc\"]",
            "[a] b c",
            "[]",
            "[a] = b",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(Malformed), "{text}");
        }
    }

    /// The parser and git itself agree on what a file says.
    #[test]
    fn git_reads_the_same() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config");
        let texts = [
            "[a]\nb = c d \n[A \"B\\\\c\"]\nd\n[x.Y] z = \"; #\" ; end\n",
            "[core]\n\tfsmonitor = \"sh -c \\\"touch x\\\"\"\n[alias]\n\tx = !f() { \\\n y; }; f\n",
            "\u{feff}[a]\r\nb = c\r\n",
        ];
        for text in texts {
            std::fs::write(&file, text).unwrap();
            let git = std::process::Command::new("git")
                .args(["config", "--list", "-z", "--file"])
                .arg(&file)
                .output();
            let Ok(git) = git else {
                eprintln!("skipped: there is no git here");
                return;
            };
            let git = String::from_utf8(git.stdout).unwrap();
            let git: Vec<_> = git
                .split_terminator('\0')
                .map(|entry| match entry.split_once('\n') {
                    Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                    None => (entry.to_owned(), None),
                })
                .collect();
            assert_eq!(keys(text), git, "{text}");
        }
    }
}
