//! git's configuration files: read, judged and written.
//!
//! Files of a repository may be hostile. [`read`] asks an installed git, whose reading is the one
//! that matters. [`parse`] is our own port of git's reader (`config.c`). It serves machines without
//! git, finds the positions of settings, and saves a process at the start of a session. A test
//! compares both (`differential_tests`).

mod address;
mod allowed;
mod compose;
#[cfg(test)]
mod differential_tests;
mod own;
mod program;
mod settle;
mod worktree;

use std::{borrow::Cow, ffi::OsStr, ops::Range, os::unix::ffi::OsStrExt as _, path::Path};

pub(crate) use allowed::{Context, Verdict};
pub(crate) use compose::{Composer, is_host_name};
pub(crate) use own::{Own, in_file};
pub(crate) use program::{GitProgram, read};
pub(crate) use settle::{Change, settle};
pub(crate) use worktree::names_absent_worktree;

use crate::facts::absolute;

/// A setting, e.g. `remote.origin.url = …`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Setting {
    /// As git names it: section and name in lower case, the subsection as it is.
    pub(crate) key: Vec<u8>,
    /// `None` where there is no `=`; that means "true".
    pub(crate) value: Option<Vec<u8>>,
}

/// A setting, and the bytes of the file that say it, with the end of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) setting: Setting,
    pub(crate) span: Range<usize>,
}

impl Setting {
    pub(crate) fn key(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.key)
    }

    /// Up to the first dot.
    pub(crate) fn section(&self) -> &[u8] {
        let end = self.key.iter().position(|byte| *byte == b'.');
        self.key.get(..end.unwrap_or(self.key.len())).unwrap_or(&[])
    }

    /// After the last dot.
    pub(crate) fn name(&self) -> &[u8] {
        let dot = self.key.iter().rposition(|byte| *byte == b'.');
        let start = dot.map_or(self.key.len(), |dot| dot + 1);
        self.key.get(start..).unwrap_or(&[])
    }

    /// Between the two, if they are two.
    pub(crate) fn subsection(&self) -> Option<&[u8]> {
        let first = self.key.iter().position(|byte| *byte == b'.')?;
        let last = self.key.iter().rposition(|byte| *byte == b'.')?;
        self.key.get(first + 1..last)
    }

    pub(crate) fn is(&self, section: &str, name: &str) -> bool {
        self.section() == section.as_bytes()
            && self.name() == name.as_bytes()
            && self.subsection().is_none()
    }

    /// Whether it says where a remote is.
    pub(crate) fn is_address(&self) -> bool {
        self.section() == b"remote" && self.name() == b"url" && self.subsection().is_some()
    }

    /// Whether its value is the remote of a branch, or that of pushes.
    pub(crate) fn names_a_remote(&self) -> bool {
        match self.section() {
            b"remote" => self.name() == b"pushdefault",
            b"branch" => matches!(self.name(), b"remote" | b"pushremote"),
            _ => false,
        }
    }

    /// The remote that it is about, if it says anything but where that is.
    pub(crate) fn remote(&self) -> Option<&[u8]> {
        let is_of_one = self.section() == b"remote" && !self.is_address();
        let name = self.subsection().filter(|_| is_of_one);
        name.or_else(|| self.names_a_remote().then(|| self.bytes()))
    }

    /// The remote that it is about, whatever it says.
    pub(crate) fn any_remote(&self) -> Option<&[u8]> {
        let address = self.subsection().filter(|_| self.is_address());
        self.remote().or(address)
    }

    /// Where a remote is, if that is a path: to git, there is no colon before the first slash of one.
    pub(crate) fn remote_at(&self) -> Option<&Path> {
        let is_pushed_to = self.section() == b"remote" && self.name() == b"pushurl";
        let is_one = self.is_address() || (is_pushed_to && self.subsection().is_some());
        let address = self.value.as_deref().filter(|_| is_one)?;
        let path = address.strip_prefix(b"file://").unwrap_or(address);
        let first = path.split(|byte| *byte == b'/').next()?;
        (!first.contains(&b':')).then(|| Path::new(OsStr::from_bytes(path)))
    }

    /// Whether it has git read another file of settings.
    pub(crate) fn is_include(&self) -> bool {
        matches!(self.section(), b"include" | b"includeif") && self.name() == b"path"
    }

    pub(crate) fn value(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.value.as_deref().unwrap_or(b"true")
    }
}

/// A file that git would not read either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The settings of a file, in their order.
pub(crate) fn parse(contents: &[u8]) -> Result<Vec<Setting>, Malformed> {
    let entries = entries(contents)?;
    Ok(entries.into_iter().map(|entry| entry.setting).collect())
}

/// The same, with their places in the file.
pub(crate) fn entries(contents: &[u8]) -> Result<Vec<Entry>, Malformed> {
    let start = if contents.starts_with(BOM) {
        BOM.len()
    } else {
        0
    };
    let mut reader = Reader {
        contents,
        at: start,
        is_at_end: false,
    };
    let mut entries = Vec::new();
    // What keys begin with. Before any section it is nothing, and git takes that.
    let mut stem = Vec::new();
    let mut spent = 0;
    loop {
        let begin = reader.at;
        match reader.next() {
            b'\n' if reader.is_at_end => return Ok(entries),
            byte if is_space(byte) => {}
            b'#' | b';' => while reader.next() != b'\n' {},
            b'[' => {
                stem = reader.section()?;
                stem.push(b'.');
            }
            byte if byte.is_ascii_alphabetic() => {
                let mut key = stem.clone();
                key.push(byte.to_ascii_lowercase());
                let value = reader.setting(&mut key)?;
                spent += key.len() + value.as_ref().map_or(0, Vec::len);
                if spent > MOST {
                    return Err(Malformed);
                }
                let setting = Setting {
                    key: until_nul(key),
                    value: value.map(until_nul),
                };
                let span = begin..reader.at;
                entries.push(Entry { setting, span });
            }
            _ => return Err(Malformed),
        }
    }
}

/// The settings of a file and of those that it includes, in their order. Conditions count as met:
/// which of them are changes with the branch. `read` says what is in a file.
pub(crate) fn with_included(
    path: &Path,
    home: &Path,
    read: &dyn Fn(&Path) -> Vec<Setting>,
) -> Vec<Setting> {
    let mut all = Vec::new();
    let mut left = MOST_INCLUDED;
    include(path, home, read, 0, &mut left, &mut all);
    all
}

fn include(
    path: &Path,
    home: &Path,
    read: &dyn Fn(&Path) -> Vec<Setting>,
    depth: usize,
    left: &mut usize,
    all: &mut Vec<Setting>,
) {
    let Some(rest) = left.checked_sub(1).filter(|_| depth <= DEEPEST) else {
        return;
    };
    *left = rest;
    for setting in read(path) {
        if setting.is_include() {
            let included = path.parent().unwrap_or(path).join(setting.path(home));
            include(&absolute(&included), home, read, depth + 1, left, all);
        }
        all.push(setting);
    }
}

/// How deep files of settings may include one another: as deep as git goes.
pub(crate) const DEEPEST: usize = 10;
/// As many of them are followed.
const MOST_INCLUDED: usize = 256;

/// A long section with many settings would be many times as long when it is written out.
const MOST: usize = 16 << 20;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// git passes strings on that end at the first NUL.
fn until_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

/// git's own idea of it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

struct Reader<'a> {
    contents: &'a [u8],
    at: usize,
    is_at_end: bool,
}

impl Reader<'_> {
    /// The next byte. Lines may end as on Windows, and the last one ends with the file.
    fn next(&mut self) -> u8 {
        let Some(byte) = self.contents.get(self.at).copied() else {
            self.is_at_end = true;
            return b'\n';
        };
        self.at += 1;
        if byte == b'\r' && self.contents.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return b'\n';
        }
        byte
    }

    /// `[section]`, `[section "subsection"]` or the old `[section.subsection]`; also
    /// `[section.sub "section"]`.
    fn section(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                _ if self.is_at_end => return Err(Malformed),
                b']' if name.is_empty() => return Err(Malformed),
                b']' => return Ok(name),
                byte if is_space(byte) => {
                    self.subsection(byte, &mut name)?;
                    return Ok(name);
                }
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(Malformed),
            }
        }
    }

    fn subsection(&mut self, space: u8, name: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut byte = space;
        while is_space(byte) {
            if byte == b'\n' {
                return Err(Malformed);
            }
            byte = self.next();
        }
        if byte != b'"' {
            return Err(Malformed);
        }
        name.push(b'.');
        loop {
            let mut byte = self.next();
            if byte == b'"' {
                break;
            }
            // A backslash stands for what follows it.
            if byte == b'\\' {
                byte = self.next();
            }
            if byte == b'\n' {
                return Err(Malformed);
            }
            name.push(byte);
        }
        (self.next() == b']').then_some(()).ok_or(Malformed)
    }

    /// The rest of a name, and its value.
    fn setting(&mut self, key: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Malformed> {
        let mut byte = self.next();
        while !self.is_at_end && is_key(byte) {
            key.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        match byte {
            b'\n' => Ok(None),
            b'=' => self.value().map(Some),
            _ => Err(Malformed),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut value = Vec::new();
        // Space counts only if something follows it: where it began.
        let mut trim = 0;
        let mut is_quoted = false;
        let mut is_comment = false;
        loop {
            let byte = self.next();
            match byte {
                b'\n' if is_quoted => return Err(Malformed),
                b'\n' => {
                    if trim > 0 {
                        value.truncate(trim);
                    }
                    return Ok(value);
                }
                _ if is_comment => continue,
                byte if is_space(byte) && !is_quoted => {
                    if trim == 0 {
                        trim = value.len();
                    }
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b';' | b'#' if !is_quoted => {
                    is_comment = true;
                    continue;
                }
                _ => trim = 0,
            }
            match byte {
                b'\\' => match self.next() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return Err(Malformed),
                },
                b'"' => is_quoted = !is_quoted,
                byte => value.push(byte),
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
            .map(|Setting { key, value }| {
                let text = |bytes| String::from_utf8(bytes).unwrap();
                (text(key), value.map(text))
            })
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

    #[test]
    fn remotes_that_are_paths_are_told_from_servers() {
        let path = |text: &str| {
            let all = parse(format!("[remote \"a\"]\n{text}\n").as_bytes()).unwrap();
            let path = all.first().unwrap().remote_at()?;
            Some(path.to_str().unwrap().to_owned())
        };
        for (text, expected) in [
            ("url = ./a", Some("./a")),
            ("url = ../a:b", Some("../a:b")),
            ("pushurl = a", Some("a")),
            ("url = file:///a/b", Some("/a/b")),
            ("url = https://example.com/a", None),
            ("url = example.com:a", None),
            ("url", None),
            ("fetch = a", None),
        ] {
            assert_eq!(path(text).as_deref(), expected, "{text}");
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
            let git = git.expect("git, which ./test.sh installs");
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
