//! Where package managers find packages, and which versions of tools to use, from the user's own
//! settings, without logins.
//!
//! The settings of pip, uv, npm and cargo name the indexes that a company's network has instead of
//! the public ones. They also hold passwords and tokens, and name programs. So the files stay
//! outside. What is shown in their place has only what is known here: addresses of indexes, names of
//! hosts, and tools with their versions. Everything else is left out.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::{is_led_from_inside, place::look, variable};
use crate::nofollow;

/// A file of a package manager's, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexFile {
    /// Where it is, inside and outside.
    pub(crate) at: PathBuf,
    pub(crate) text: String,
    /// The variable by which the tool finds it, if it is not in its usual place.
    pub(crate) variable: Option<&'static str>,
    /// The file that holds a login for one of the indexes, if there is one.
    pub(crate) login: Option<PathBuf>,
}

/// What of a file is taken over.
#[derive(Debug, Default, PartialEq, Eq)]
struct Taken {
    text: String,
    /// Something was left out that may be a login for what was taken.
    has_login: bool,
}

type Table = Map<String, Value>;
type Read = fn(&str) -> Taken;

/// Variables that name such a file.
const NAMED: [(&str, Read); 4] = [
    ("PIP_CONFIG_FILE", pip),
    ("UV_CONFIG_FILE", uv),
    ("NPM_CONFIG_USERCONFIG", npm),
    ("npm_config_userconfig", npm),
];

/// The user's files that name an index. Those that a link leads to from where the command can write
/// are left out.
pub(super) fn find(
    home: &Path,
    environment: &[(OsString, OsString)],
    writable: &[PathBuf],
) -> Vec<IndexFile> {
    let path = |name: &str| {
        let value = variable(environment, name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let settings = path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let cargo = path("CARGO_HOME").and_then(|path| Some(look(&path)?.at));
    let cargo = cargo.unwrap_or_else(|| home.join(".cargo"));
    // The caller's XDG_CONFIG_HOME does not pass.
    let in_config = |name: &str| (settings.join(name), home.join(".config").join(name));
    let same = |path: PathBuf| (path.clone(), path);
    let files: [((PathBuf, PathBuf), Read); 8] = [
        (in_config("pip/pip.conf"), pip),
        (same(home.join(".pip/pip.conf")), pip),
        (in_config("uv/uv.toml"), uv),
        (same(home.join(".npmrc")), npm),
        (same(cargo.join("config.toml")), cargo_config),
        (same(cargo.join("config")), cargo_config),
        (in_config("mise/config.toml"), mise),
        (same(home.join(".tool-versions")), tool_versions),
    ];
    let read = |path: &Path| {
        let contents = nofollow::read_through_links(path).ok()?;
        let is_safe = !is_led_from_inside(path, writable);
        String::from_utf8(contents).ok().filter(|_| is_safe)
    };
    let find = |((from, at), take): ((PathBuf, PathBuf), Read), variable| {
        let Taken { text, has_login } = take(&read(&from)?);
        if text.is_empty() {
            return None;
        }
        let credentials = from.with_file_name("credentials.toml");
        let is_cargo = from.starts_with(&cargo);
        let login = if has_login {
            Some(from)
        } else if is_cargo && read(&credentials).is_some_and(|it| has_token_for(&it, &text)) {
            Some(credentials)
        } else {
            None
        };
        Some(IndexFile {
            at,
            text,
            variable,
            login,
        })
    };
    let usual = files.into_iter().filter_map(|file| find(file, None));
    let named = NAMED.into_iter().filter_map(|(name, take)| {
        let at = look(&path(name)?)?.at;
        find((same(at), take), Some(name))
    });
    usual.chain(named).collect()
}

/// An address of an index without a login, and whether there was one. `None` if the address is of an
/// unknown form, or may hold a token elsewhere.
pub(crate) fn address(url: &str) -> Option<(String, bool)> {
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https", "sparse+http", "sparse+https"].contains(&scheme) {
        return None;
    }
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (Some(login), host),
        None => (None, authority),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:[]+".contains(c);
    let is_token = |part: &str| {
        let is_letter = |c: char| c.is_ascii_alphabetic();
        // Whatever stands between: a UUID is one, too.
        part.chars().filter(char::is_ascii_alphanumeric).count() >= 16
            && part.contains(|c: char| c.is_ascii_digit())
            && part.contains(is_letter)
    };
    let port = match host.rsplit_once(':') {
        Some((_, port)) if !host.ends_with(']') => port,
        _ => "",
    };
    // What is no number may be a password whose login has no end.
    let is_known = !host.is_empty()
        && port.chars().all(|c| c.is_ascii_digit())
        && host.chars().chain(path.chars()).all(is_plain)
        && !path.split('/').any(is_token);
    is_known.then(|| (format!("{scheme}://{host}{path}"), login.is_some()))
}

/// The value of a variable that names indexes, with blanks between and a name before each, without
/// logins; and whether something was left out.
pub(crate) fn addresses(value: &OsStr) -> (String, bool) {
    let mut left_out = value.to_str().is_none();
    let words = value.to_str().unwrap_or_default().split_whitespace();
    let words = words.filter_map(|word| {
        let (name, url) = match word.split_once('=') {
            Some((name, url)) if is_name(name) => (Some(name), url),
            _ => (None, word),
        };
        let Some((url, had_login)) = address(url) else {
            left_out = true;
            return None;
        };
        left_out |= had_login;
        Some(match name {
            Some(name) => format!("{name}={url}"),
            None => url,
        })
    });
    let words: Vec<_> = words.collect();
    (words.join(" "), left_out)
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

fn is_host(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

impl Taken {
    /// An address, if it is of a known form.
    fn address(&mut self, url: &str) -> Option<String> {
        match address(url) {
            Some((url, had_login)) => {
                self.has_login |= had_login;
                Some(url)
            }
            None => {
                self.has_login = true;
                None
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// pip's settings: sections, and values that go on in indented lines.
fn pip(text: &str) -> Taken {
    let mut taken = Taken::default();
    let mut section = None;
    let mut written = None;
    let mut key = String::new();
    for line in text.lines() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = Some(name.to_owned()).filter(|name| is_name(name));
            key.clear();
            continue;
        }
        let value = match line.split_once(['=', ':']) {
            Some((name, value)) if !is_indented => {
                key = name.trim().to_ascii_lowercase().replace('_', "-");
                value
            }
            _ => line,
        };
        let Some(section) = &section else { continue };
        for word in value.split_whitespace() {
            let word = match key.as_str() {
                "index-url" | "extra-index-url" => taken.address(word),
                "trusted-host" => Some(word.to_owned()).filter(|it| is_host(it)),
                _ => None,
            };
            let Some(word) = word else { continue };
            let place = Some((section.clone(), key.clone()));
            if written.as_ref().map(|(section, _)| section) != Some(section) {
                taken.line(&format!("[{section}]"));
            }
            if written != place {
                taken.line(&format!("{key} = {word}"));
                written = place;
            } else if key != "index-url" {
                taken.line(&format!("    {word}"));
            }
        }
    }
    taken
}

/// npm's settings: lines with a name and a value.
fn npm(text: &str) -> Taken {
    let mut taken = Taken::default();
    let mut logins = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim().trim_matches(['"', '\'']));
        let scope = name.strip_suffix(":registry");
        let scope = scope.and_then(|scope| scope.strip_prefix('@'));
        if name == "registry" || scope.is_some_and(is_name) {
            if let Some(url) = taken.address(value) {
                taken.line(&format!("{name}={url}"));
            }
        } else if name.starts_with("//") || name.starts_with('_') {
            logins.push(name.to_owned());
        }
    }
    // `//host/path/:_authToken` is for that host; without a host it is for the first registry.
    taken.has_login |= logins.iter().any(|login| match login.strip_prefix("//") {
        Some(rest) => {
            let host = rest.split(['/', ':']).next().unwrap_or_default();
            taken.text.contains(&format!("://{host}"))
        }
        None => !taken.text.is_empty(),
    });
    taken
}

/// What is no TOML has nothing in it. Of its values, texts, numbers and truths count.
fn parsed(text: &str) -> Table {
    fn table(from: &DeTable<'_>) -> Table {
        let entries = from.iter();
        let entry = |(name, it): (&toml::Spanned<_>, &toml::Spanned<_>)| {
            let name: &std::borrow::Cow<'_, str> = name.get_ref();
            (name.to_string(), value(it.get_ref()))
        };
        entries.map(entry).collect()
    }
    fn value(from: &DeValue<'_>) -> Value {
        match from {
            DeValue::String(text) => text.to_string().into(),
            DeValue::Boolean(is_on) => (*is_on).into(),
            DeValue::Integer(number) => number.to_string().parse::<i64>().ok().into(),
            DeValue::Array(all) => all.iter().map(|it| value(it.get_ref())).collect(),
            DeValue::Table(inner) => table(inner).into(),
            DeValue::Float(_) | DeValue::Datetime(_) => Value::Null,
        }
    }
    DeTable::parse(text).map_or_else(|_| Table::new(), |all| table(all.get_ref()))
}

fn table<'t>(table: &'t Table, name: &str) -> impl Iterator<Item = (&'t String, &'t Value)> {
    let inner = table.get(name).and_then(Value::as_object);
    inner.into_iter().flatten()
}

/// cargo's settings. Those that name programs, and that build scripts and linkers obey, are not
/// among what is taken.
fn cargo_config(text: &str) -> Taken {
    let mut taken = Taken::default();
    let all = parsed(text);
    for (kind, address, names) in [
        ("source", "registry", &["replace-with"][..]),
        ("registries", "index", &[]),
    ] {
        for (name, entry) in table(&all, kind) {
            let Some(entry) = entry.as_object().filter(|_| is_name(name)) else {
                continue;
            };
            let text = |key: &str| entry.get(key).and_then(Value::as_str);
            let mut lines = Vec::new();
            if let Some(url) = text(address) {
                let url = taken.address(url);
                lines.extend(url.map(|url| format!("{address} = \"{url}\"")));
            }
            for key in names {
                let value = text(key).filter(|value| is_name(value));
                lines.extend(value.map(|value| format!("{key} = \"{value}\"")));
            }
            if !lines.is_empty() {
                taken.has_login |= entry.contains_key("token");
                taken.line(&format!("[{kind}.{name}]"));
                lines.iter().for_each(|line| taken.line(line));
            }
        }
    }
    let default = all.get("registry").and_then(|it| it.get("default"));
    if let Some(name) = default.and_then(Value::as_str).filter(|it| is_name(it)) {
        taken.line(&format!("[registry]\ndefault = \"{name}\""));
    }
    let net: Vec<_> = table(&all, "net")
        .filter(|(name, _)| ["git-fetch-with-cli", "retry", "offline"].contains(&name.as_str()))
        .filter(|(_, value)| value.is_boolean() || value.is_i64())
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if !net.is_empty() {
        taken.line("[net]");
        net.iter().for_each(|line| taken.line(line));
    }
    taken
}

/// Whether cargo's file of logins has one for a registry of these settings.
fn has_token_for(credentials: &str, settings: &str) -> bool {
    let (credentials, settings) = (parsed(credentials), parsed(settings));
    let has_token = |name: &String| table(&credentials, "registries").any(|(it, _)| it == name);
    table(&settings, "registries").any(|(name, _)| has_token(name))
}

/// uv's settings.
fn uv(text: &str) -> Taken {
    let mut taken = Taken::default();
    let all = parsed(text);
    uv_lists(&all, &mut taken);
    let indexes = all.get("index").and_then(Value::as_array);
    for index in indexes.into_iter().flatten().filter_map(Value::as_object) {
        let url = index.get("url").and_then(Value::as_str);
        let Some(url) = url.and_then(|url| taken.address(url)) else {
            continue;
        };
        taken.line(&format!("[[index]]\nurl = \"{url}\""));
        let name = index.get("name").and_then(Value::as_str);
        if let Some(name) = name.filter(|name| is_name(name)) {
            taken.line(&format!("name = \"{name}\""));
        }
        for key in ["default", "explicit"] {
            if let Some(is_on) = index.get(key).and_then(Value::as_bool) {
                taken.line(&format!("{key} = {is_on}"));
            }
        }
    }
    if let Some(pip) = all.get("pip").and_then(Value::as_object) {
        let before = taken.text.len();
        uv_lists(pip, &mut taken);
        if taken.text.len() > before {
            taken.text.insert_str(before, "[pip]\n");
        }
    }
    taken
}

/// mise's settings: the tools. Its variables (`[env]`) may be logins.
fn mise(text: &str) -> Taken {
    let mut taken = Taken::default();
    for (name, value) in table(&parsed(text), "tools").filter(|(name, _)| is_tool(name)) {
        let version = value.get("version").unwrap_or(value);
        let all = version
            .as_array()
            .map_or(std::slice::from_ref(version), Vec::as_slice);
        let all: Vec<_> = all
            .iter()
            .filter_map(Value::as_str)
            .filter(|it| is_tool(it))
            .collect();
        if taken.text.is_empty() {
            taken.line("[tools]");
        }
        taken.line(&format!("{name:?} = {all:?}"));
    }
    taken
}

/// What asdf and mise read in the home: lines with a tool and versions.
fn tool_versions(text: &str) -> Taken {
    let mut taken = Taken::default();
    for line in text.lines() {
        let words: Vec<_> = line
            .split_whitespace()
            .take_while(|it| !it.starts_with('#'))
            .collect();
        if words.len() > 1 && words.iter().all(|word| is_tool(word)) {
            taken.line(&words.join(" "));
        }
    }
    taken
}

/// A tool, or a version of one. Not an address, which may hold a login.
fn is_tool(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:/@+".contains(c);
    !text.is_empty() && text.chars().all(is_plain) && !text.contains("//")
}

fn uv_lists(table: &Table, taken: &mut Taken) {
    let index = table.get("index-url").and_then(Value::as_str);
    if let Some(url) = index.and_then(|url| taken.address(url)) {
        taken.line(&format!("index-url = \"{url}\""));
    }
    let list = |key: &str| {
        table
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let extra = list("extra-index-url").filter_map(Value::as_str);
    let extra: Vec<_> = extra.filter_map(|url| taken.address(url)).collect();
    if !extra.is_empty() {
        taken.line(&format!("extra-index-url = {extra:?}"));
    }
    let hosts = list("allow-insecure-host").filter_map(Value::as_str);
    let hosts: Vec<_> = hosts.filter(|host| is_host(host)).collect();
    if !hosts.is_empty() {
        taken.line(&format!("allow-insecure-host = {hosts:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn addresses_lose_their_logins_and_strange_ones_are_left_out() {
        for (url, kept, had_login) in [
            ("https://i.test/simple/", "https://i.test/simple/", false),
            (
                "https://i.test/artifactory/api/pypi/pypi-all/v2",
                "https://i.test/artifactory/api/pypi/pypi-all/v2",
                false,
            ),
            ("https://u:p@i.test:8/x", "https://i.test:8/x", true),
            ("http://u@v:p@i.test", "http://i.test", true),
            (
                "sparse+https://i.test/x/",
                "sparse+https://i.test/x/",
                false,
            ),
        ] {
            assert_eq!(address(url), Some((kept.to_owned(), had_login)), "{url}");
        }
        for url in [
            "https://i.test/?token=x",
            "https://i.test/#x",
            "https://u:SECRET/x",
            "https://u:p/w@i.test/",
            "https://i.test/a1b2c3d4e5f6g7h8/simple",
            "https://i.test/6f1c2a34-9b1d-4c55-8a77-0123456789ab/simple",
            "https://i.test/a1b2.c3d4_e5f6~g7h8/simple",
            "https://i.test/${TOKEN}/",
            "https://i.test/\"x",
            "https://",
            "ssh://git@i.test/x",
            "file:///etc/passwd",
            "i.test",
        ] {
            assert_eq!(address(url), None, "{url}");
        }
        let several = addresses(OsStr::new("own=https://u:p@a.test/ https://b.test/"));
        assert_eq!(several.0, "own=https://a.test/ https://b.test/");
        assert!(several.1);
    }

    #[test]
    fn of_pips_settings_the_indexes_are_taken() {
        let taken = pip(
            "[global]\n# a note\nindex_url = https://u:p@i.test/simple\nproxy = http://u:p@x\n\
             extra-index-url =\n    https://a.test/s\n    https://b.test/s\n\
             [install]\ntrusted-host: a.test b.test\nclient-cert = /k\n  https://c.test/\n",
        );
        assert_eq!(
            taken.text,
            "[global]\nindex-url = https://i.test/simple\nextra-index-url = https://a.test/s\n    \
             https://b.test/s\n[install]\ntrusted-host = a.test\n    b.test\n"
        );
        assert!(taken.has_login);
    }

    #[test]
    fn of_npms_settings_the_registries_are_taken() {
        let taken = npm(
            "registry = \"https://r.test/npm/\"\n@own:registry=https://o.test/\n\
             //other.test/:_authToken=SECRET\nscript-shell=/tmp/x\n; registry=https://no.test\n",
        );
        let text = "registry=https://r.test/npm/\n@own:registry=https://o.test/\n";
        assert_eq!(taken.text, text);
        assert!(!taken.has_login);
        let login = |line: &str| npm(&format!("{line}\nregistry=https://r.test/npm/\n")).has_login;
        assert!(login("//r.test/npm/:_authToken=SECRET"));
        assert!(login("_auth=SECRET"));
        // Without a registry of its own, a login is for publishing.
        assert_eq!(npm("//r.test/:_authToken=SECRET\n"), Taken::default());
    }

    #[test]
    fn of_cargos_settings_sources_and_registries_are_taken() {
        let taken = cargo_config(
            "[source.crates-io]\nreplace-with = 'own'\n[source.own]\nregistry = 'sparse+https://i.test/'\n\
             directory = '/etc'\n[registries.own]\nindex = 'https://u:p@i.test/git'\ntoken = 'SECRET'\n\
             credential-provider = 'evil'\n[net]\nretry = 3\ngit-fetch-with-cli = true\n\
             [build]\nrustc-wrapper = '/tmp/x'\n[target.x]\nrunner = 'evil'\n[env]\nLD_PRELOAD = 'x'\n",
        );
        let expected = "[source.crates-io]\nreplace-with = \"own\"\n[source.own]\n\
             registry = \"sparse+https://i.test/\"\n[registries.own]\nindex = \"https://i.test/git\"\n\
             [net]\ngit-fetch-with-cli = true\nretry = 3\n";
        let (kept, expected) = (parsed(&taken.text), parsed(expected));
        assert_eq!(kept, expected, "{}", taken.text);
        assert!(taken.has_login);
        assert!(has_token_for("[registries.own]\ntoken = 'x'", &taken.text));
        assert!(!has_token_for(
            "[registries.else]\ntoken = 'x'",
            &taken.text
        ));
    }

    #[test]
    fn of_uvs_settings_the_indexes_are_taken() {
        let taken = uv(
            "index-url = 'https://i.test/s'\nkeyring-provider = 'subprocess'\n\
             [[index]]\nname = 'own'\nurl = 'https://u:p@o.test/s'\ndefault = true\n\
             [pip]\nextra-index-url = ['https://a.test/s', 'file:///etc']\n",
        );
        let expected = "index-url = \"https://i.test/s\"\n[[index]]\nurl = \"https://o.test/s\"\n\
             name = \"own\"\ndefault = true\n[pip]\nextra-index-url = [\"https://a.test/s\"]\n";
        assert_eq!(taken.text, expected);
        assert!(taken.has_login && !parsed(&taken.text).is_empty());
    }

    #[test]
    fn of_the_settings_of_version_managers_tools_are_taken() {
        let taken = mise(
            "[env]\nTOKEN = 'SECRET'\n[tools]\nnode = '22'\npython = ['3.12', '3.11']\n\
             'npm:@a/b' = { version = 'latest', postinstall = 'evil' }\n'http:https://u:p@h/x' = '1'\n\
             [hooks]\nenter = 'evil'\n",
        );
        let expected =
            "[tools]\nnode = ['22']\npython = ['3.12', '3.11']\n'npm:@a/b' = ['latest']\n";
        assert_eq!(parsed(&taken.text), parsed(expected), "{}", taken.text);
        assert!(!taken.has_login);
        let taken = tool_versions("# mine\nnodejs 22.1.0 system # both\nx\nruby path:$(evil)\n");
        assert_eq!(taken.text, "nodejs 22.1.0 system\n");
    }

    #[test]
    fn what_is_no_settings_file_or_planted_gives_nothing() {
        let place = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(place.path()).unwrap();
        let work = home.join("work");
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(home.join(".cargo")).unwrap();
        fs::write(home.join(".cargo/config.toml"), "not = [toml").unwrap();
        let line = "registry=https://r.test/\n";
        fs::write(home.join("npmrc"), line).unwrap();
        std::os::unix::fs::symlink("work/npmrc", home.join(".npmrc")).unwrap();
        std::os::unix::fs::symlink("../npmrc", work.join("npmrc")).unwrap();
        let find = || find(&home, &[], std::slice::from_ref(&work));
        assert_eq!(find(), []);
        fs::remove_file(home.join(".npmrc")).unwrap();
        std::os::unix::fs::symlink("npmrc", home.join(".npmrc")).unwrap();
        let found = find();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, line);
    }
}
