//! The command's environment: an allowlist, and what the configuration asks for.
//!
//! A variable that is not named does not pass. So a token in a variable that nobody thought of stays
//! outside, and so do the hooks of loaders and interpreters (`LD_PRELOAD`, `BASH_ENV`,
//! `NODE_OPTIONS`, `PYTHONPATH`, `GIT_*` …). The configuration passes variables one by one, by their
//! whole names, hooks included: `pass = ["LD_LIBRARY_PATH"]` is no accident. Only the command gets
//! them; neither bubblewrap nor the inner stage does.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{GIT_CONFIG, Reason, Step, search_path as directories};
use crate::{
    config::{Asked, Config},
    error::Error,
    facts::{Facts, indexes},
};

/// A variable that the command gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: OsString,
    pub value: OsString,
    pub reason: Reason,
    /// The value may hold a login, and is not to be printed.
    pub is_private: bool,
}

impl Variable {
    /// The value for people, unless it is private.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.is_private {
            match self.value.len() {
                1 => "(1 byte, not shown)".to_owned(),
                bytes => format!("({bytes} bytes, not shown)"),
            }
        } else {
            format!("{:?}", self.value)
        }
    }
}

/// Variables that name files with certificates. The files are shown, too.
pub(crate) const CERTIFICATES: &[&str] = &[
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
];

/// Variables that name proxies. Their values can have a login in them.
const PROXIES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
];

/// Variables that name what is reached without a proxy.
const EXEMPTIONS: &[&str] = &["no_proxy", "NO_PROXY"];

/// Whether a variable names a proxy, or what is reached without one.
pub(crate) fn is_about_proxy(name: &OsStr) -> bool {
    PROXIES.iter().chain(EXEMPTIONS).any(|known| name == *known)
}

/// Variables that name indexes of packages. Their values can have logins in them.
const INDEXES: &[&str] = &[
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
];

/// Variables that tell clients and servers of EPICS where to look. Not whatever begins so: those of
/// its TLS name files with keys, and their passwords.
const EPICS: &[&str] = &[
    "EPICS_CA_ADDR_LIST",
    "EPICS_CA_AUTO_ADDR_LIST",
    "EPICS_CA_NAME_SERVERS",
    "EPICS_CA_SERVER_PORT",
    "EPICS_CA_REPEATER_PORT",
    "EPICS_CA_CONN_TMO",
    "EPICS_CA_BEACON_PERIOD",
    "EPICS_CA_MAX_SEARCH_PERIOD",
    "EPICS_CA_MCAST_TTL",
    "EPICS_CA_MAX_ARRAY_BYTES",
    "EPICS_CA_AUTO_ARRAY_BYTES",
    "EPICS_CAS_INTF_ADDR_LIST",
    "EPICS_CAS_SERVER_PORT",
    "EPICS_CAS_BEACON_ADDR_LIST",
    "EPICS_CAS_AUTO_BEACON_ADDR_LIST",
    "EPICS_CAS_BEACON_PORT",
    "EPICS_CAS_BEACON_PERIOD",
    "EPICS_CAS_IGNORE_ADDR_LIST",
    "EPICS_PVA_ADDR_LIST",
    "EPICS_PVA_AUTO_ADDR_LIST",
    "EPICS_PVA_NAME_SERVERS",
    "EPICS_PVA_SERVER_PORT",
    "EPICS_PVA_BROADCAST_PORT",
    "EPICS_PVA_CONN_TMO",
    "EPICS_PVA_MAX_ARRAY_BYTES",
    "EPICS_PVA_INTF_ADDR_LIST",
    "EPICS_PVAS_INTF_ADDR_LIST",
    "EPICS_PVAS_SERVER_PORT",
    "EPICS_PVAS_BROADCAST_PORT",
    "EPICS_PVAS_BEACON_ADDR_LIST",
    "EPICS_PVAS_AUTO_BEACON_ADDR_LIST",
    "EPICS_PVAS_IGNORE_ADDR_LIST",
    "EPICS_TZ",
];

/// Variables that pass as they are, and why.
const PASSED: &[(&[&str], &str)] = &[
    (&["USER", "LOGNAME", "SHELL"], "who the user is"),
    (
        &["LANG", "LANGUAGE", "LOCALE_ARCHIVE", "TZ"],
        "language and time zone",
    ),
    (
        &[
            "TERM",
            "COLORTERM",
            "TERM_PROGRAM",
            "TERM_PROGRAM_VERSION",
            "NO_COLOR",
            "FORCE_COLOR",
        ],
        "what the terminal can do",
    ),
    (&["EDITOR", "VISUAL", "PAGER"], "which tools the user likes"),
    (CERTIFICATES, "which certificates this network trusts"),
    (&["SSL_CERT_DIR"], "which certificates this network trusts"),
];

const WAY_OUT: &str = "how this network reaches the internet";

/// The categories of locales, each after `LC_`. Not whatever begins so: people send passwords in
/// such variables, because ssh servers take them.
const LOCALE_CATEGORIES: [&str; 13] = [
    "ALL",
    "ADDRESS",
    "COLLATE",
    "CTYPE",
    "IDENTIFICATION",
    "MEASUREMENT",
    "MESSAGES",
    "MONETARY",
    "NAME",
    "NUMERIC",
    "PAPER",
    "TELEPHONE",
    "TIME",
];

/// The search path where the caller has none.
pub(crate) const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that say where the sandbox's own things are.
const OWN: &[&str] = &["HOME", "STOCKADE", "STOCKADE_SESSION"];

/// The command's environment, from the caller's.
pub(crate) fn environment(
    config: &Config,
    facts: &Facts,
    files: &[Step],
) -> Result<Vec<Variable>, Error> {
    let mut environment = Environment(Vec::new());
    environment.put("STOCKADE", "1", "so that programs can tell");
    let session = config.session.as_deref().unwrap_or("(its name)");
    environment.put(
        "STOCKADE_SESSION",
        session,
        "names the session, for prompts",
    );
    environment.put("HOME", &facts.home.named, "private");
    environment.put(
        "PATH",
        search_path(config, facts, files),
        "absolute directories only; ~/.local/bin last",
    );
    for (names, reason) in PASSED {
        for name in *names {
            if let Some(value) = facts.variable(name) {
                environment.put(name, value, reason);
            }
        }
    }
    for name in EPICS.iter().filter(|_| config.discovery) {
        if let Some(value) = facts.variable(name) {
            environment.put(name, value, "where to look for devices: discovery is on");
        }
    }
    let caches = &facts.caches.variables;
    for name in facts.toolchains.variables.iter().chain(caches) {
        if let Some(value) = facts.variable(name) {
            environment.put(name, value, "which tools to use, and where they are");
        }
    }
    if let Some(store) = &facts.caches.store {
        let reason = "pnpm's store, since there is none in PNPM_HOME";
        environment.put("npm_config_store_dir", store, reason);
    }
    if !config.has_proxy {
        for name in PROXIES {
            if let Some(value) = facts.variable(name) {
                environment.put(name, without_login(value), WAY_OUT);
            }
        }
        for name in EXEMPTIONS {
            if let Some(value) = facts.variable(name) {
                environment.put(name, value, WAY_OUT);
            }
        }
    }
    for name in INDEXES {
        if let Some(value) = facts.variable(name) {
            let (addresses, _) = indexes::addresses(value);
            if !addresses.is_empty() {
                environment.put(name, addresses, "where packages are found");
            }
        }
    }
    for file in &facts.indexes {
        if let Some(name) = file.variable {
            environment.put(name, &file.at, "where packages are found");
        }
    }
    for (name, value) in &facts.environment {
        let category = name.to_str().and_then(|name| name.strip_prefix("LC_"));
        if category.is_some_and(|category| LOCALE_CATEGORIES.contains(&category)) {
            environment.put(name, value, "language");
        }
    }
    if let Some(named) = facts.variable("TMPDIR") {
        // The host's is not there, unless it is a part of the workspace.
        let is_there = Path::new(named).starts_with(&facts.workspace);
        let directory = if is_there { named } else { "/tmp".as_ref() };
        environment.put("TMPDIR", directory, "a directory that is there");
    }
    // The user's own is that of the private home, where `git config --global` can write.
    let git = "git's settings are the sandbox's own";
    environment.put("GIT_CONFIG_SYSTEM", GIT_CONFIG, git);
    // Otherwise it tries to link files of its cache into the workspace, and warns that it cannot.
    let copy = facts.variable("UV_LINK_MODE").unwrap_or("copy".as_ref());
    environment.put("UV_LINK_MODE", copy, "uv's cache is on another file system");

    for Asked { value: name, by } in &config.pass {
        check(name, OsStr::new(""))?;
        if config.has_proxy && is_about_proxy(name) {
            continue;
        }
        let value = facts.environment.iter().find(|(key, _)| key == name);
        if let Some((_, value)) = value {
            environment.set(name, value, format!("passed on: {by}").into(), true);
        }
    }
    for (name, Asked { value, by }) in &config.set {
        check(name, value)?;
        environment.set(name, value, format!("set: {by}").into(), true);
    }
    Ok(environment.0)
}

/// The caller's variables of EPICS that do not pass, because searches for devices do not.
pub(crate) fn without_discovery<'a>(
    config: &'a Config,
    facts: &'a Facts,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let is_asked = |name: &str| {
        config.pass.iter().any(|asked| asked.value == name)
            || config.set.iter().any(|(asked, _)| asked == name)
    };
    let names = EPICS.iter().copied().filter(|_| !config.discovery);
    names.filter(move |name| facts.variable(name).is_some() && !is_asked(name))
}

/// The caller's variables for proxies and indexes that have a login, which is not passed on.
pub(crate) fn without_logins<'a>(
    config: &Config,
    facts: &'a Facts,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let asked: Vec<_> = (config.pass.iter().map(|asked| asked.value.clone()))
        .chain(config.set.iter().map(|(name, _)| name.clone()))
        .collect();
    let has_proxy = config.has_proxy;
    let proxies = PROXIES.iter().copied().filter(move |name| {
        if has_proxy {
            return false;
        }
        let value = facts.variable(name);
        value.is_some_and(|value| without_login(value) != value)
    });
    let indexes = INDEXES.iter().copied().filter(|name| {
        let value = facts.variable(name);
        value.is_some_and(|value| indexes::addresses(value).1)
    });
    proxies
        .chain(indexes)
        .filter(move |name| !asked.iter().any(|asked| asked == name))
}

/// The address of a proxy without `user:password@`. Up to the last `@`, since programs differ in
/// what they take for a part of a password.
fn without_login(address: &OsStr) -> OsString {
    let bytes = address.as_bytes();
    let Some(at) = bytes.iter().rposition(|byte| *byte == b'@') else {
        return address.to_owned();
    };
    let (login, host) = bytes.split_at(at);
    let end = login.windows(3).position(|part| part == b"://");
    let scheme = end.and_then(|end| login.get(..end + 3)).unwrap_or_default();
    // A scheme has no colon; what has one is a part of the login.
    let is_scheme = scheme.iter().filter(|byte| **byte == b':').count() == 1;
    let scheme = if is_scheme { scheme } else { &[] };
    OsString::from_vec([scheme, host.get(1..).unwrap_or_default()].concat())
}

struct Environment(Vec<Variable>);

impl Environment {
    fn put(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>, reason: &'static str) {
        self.set(name, value, reason.into(), false);
    }

    /// The last value wins. What is private may hold a login.
    fn set(
        &mut self,
        name: impl AsRef<OsStr>,
        value: impl AsRef<OsStr>,
        reason: Reason,
        is_private: bool,
    ) {
        let name = name.as_ref();
        self.0.retain(|variable| variable.name != name);
        self.0.push(Variable {
            name: name.to_owned(),
            value: value.as_ref().to_owned(),
            reason,
            is_private,
        });
    }
}

fn check(name: &OsStr, value: &OsStr) -> Result<(), Error> {
    let refused = |why| {
        let name = name.to_owned();
        Err(Error::VariableRefused { name, why })
    };
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return refused("that is no name");
    }
    if OWN.iter().any(|own| name == *own) {
        return refused("the sandbox sets it itself");
    }
    if [name, value]
        .iter()
        .any(|text| text.as_bytes().contains(&0))
    {
        return refused("no variable can hold a NUL");
    }
    Ok(())
}

/// The caller's `PATH` without what would be looked up in the current directory, and
/// with `~/.local/bin` last: what is written there inside must not shadow the system's
/// programs. Stockade's own directories, with the shims, are not there inside.
fn search_path(config: &Config, facts: &Facts, files: &[Step]) -> OsString {
    let local = |home: &Path| home.join(".local/bin");
    let last = local(&facts.home.named);
    let caller = facts.variable("PATH").unwrap_or(USUAL_PATH.as_ref());
    let inside = |named: PathBuf| {
        let found = facts.search_path.iter().find(|(known, _)| *known == named);
        match found.map(|(named, real)| directories::look(named, real, files)) {
            Some(directories::Directory::Elsewhere(real)) => real,
            _ => named,
        }
    };
    let mut directories: Vec<PathBuf> = std::env::split_paths(caller)
        .filter(|directory| directory.is_absolute())
        .filter(|directory| *directory != last && *directory != local(&facts.home.real))
        .filter(|directory| !directories::is_own(directory, config, facts))
        .map(inside)
        .collect();
    for installation in facts.installation.iter().chain(&facts.brought) {
        directories.extend(installation.search.iter().cloned());
    }
    directories.push(last);
    let bytes = directories
        .iter()
        .map(|directory| directory.as_os_str().as_bytes())
        // A directory whose name has a colon cannot be in a search path.
        .filter(|directory| !directory.contains(&b':'))
        .collect::<Vec<_>>()
        .join(&b':');
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::facts;

    fn value(name: &str, caller: &[(&str, &str)]) -> Option<OsString> {
        let mut facts = facts();
        facts.environment = caller.iter().map(|(k, v)| (k.into(), v.into())).collect();
        environment(&Config::default(), &facts, &[])
            .unwrap()
            .into_iter()
            .find(|variable| variable.name == name)
            .map(|variable| variable.value)
    }

    #[test]
    fn secrets_and_hooks_do_not_pass() {
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "DISPLAY",
            "XDG_RUNTIME_DIR",
            "LD_PRELOAD",
            "BASH_ENV",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "GIT_SSH_COMMAND",
            "COLUMNS",
        ] {
            assert_eq!(value(name, &[(name, "x")]), None, "{name}");
        }
    }

    #[test]
    fn locale_terminal_and_proxies_pass_unchanged() {
        for name in [
            "LANG",
            "LC_ALL",
            "TERM",
            "TZ",
            "https_proxy",
            "SSL_CERT_FILE",
        ] {
            assert_eq!(
                value(name, &[(name, "a\nb")]),
                Some("a\nb".into()),
                "{name}"
            );
        }
    }

    #[test]
    fn variables_of_epics_pass_with_discovery_but_for_those_of_its_keys() {
        let mut facts = facts();
        let names = ["EPICS_CA_ADDR_LIST", "EPICS_PVA_TLS_KEYCHAIN", "EPICS_X"];
        facts.environment = names.map(|name| (name.into(), "x".into())).into();
        for discovery in [false, true] {
            let config = Config {
                discovery,
                ..Config::default()
            };
            let passed = environment(&config, &facts, &[]).unwrap().into_iter();
            let passed: Vec<_> = passed
                .map(|variable| variable.name)
                .filter(|name| name.to_string_lossy().starts_with("EPICS"))
                .collect();
            let (wanted, told) = if discovery {
                (&names[..1], &[][..])
            } else {
                (&[][..], &names[..1])
            };
            assert_eq!(passed, wanted);
            let said: Vec<_> = without_discovery(&config, &facts).collect();
            assert_eq!(said, told);
        }
    }

    #[test]
    fn proxies_pass_without_their_logins() {
        for (given, passed) in [
            ("http://proxy:3128", "http://proxy:3128"),
            ("http://u:p@proxy:3128/", "http://proxy:3128/"),
            ("http://u:p/@w@proxy", "http://proxy"),
            ("u:p@proxy:1", "proxy:1"),
            ("u:http://p@proxy", "proxy"),
            ("socks5h://u@[fd00::1]:9", "socks5h://[fd00::1]:9"),
            ("@", ""),
        ] {
            for name in PROXIES {
                let value = value(name, &[(name, given)]);
                assert_eq!(value, Some(passed.into()), "{name}={given}");
            }
        }
    }

    #[test]
    fn the_search_path_has_no_relative_directory() {
        let path = value("PATH", &[("PATH", ":/usr/bin:.:bin:/opt/x/bin:")]);
        assert_eq!(
            path,
            Some("/usr/bin:/opt/x/bin:/home/ada/.local/bin".into())
        );
    }

    #[test]
    fn the_private_bin_directory_comes_last_even_if_the_caller_had_it_first() {
        let path = value("PATH", &[("PATH", "/home/ada/.local/bin:/usr/bin")]);
        assert_eq!(path, Some("/usr/bin:/home/ada/.local/bin".into()));
    }

    #[test]
    fn without_a_search_path_the_usual_one_is_taken() {
        let path = value("PATH", &[]).unwrap();
        assert!(path.as_bytes().starts_with(USUAL_PATH.as_bytes()));
    }

    #[test]
    fn what_configuration_names_passes_and_what_it_sets_wins() {
        let mut facts = facts();
        facts.environment = [("LD_LIBRARY_PATH", "/opt/x"), ("TOKEN", "t"), ("LANG", "a")]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        let config = Config {
            pass: ["LD_LIBRARY_PATH", "MISSING"]
                .map(|name| Asked::new(name, "a test"))
                .to_vec(),
            set: [("LANG", "b"), ("EMPTY", "")]
                .map(|(name, value)| (name.into(), Asked::new(value, "a test")))
                .to_vec(),
            ..Config::default()
        };
        let all = environment(&config, &facts, &[]).unwrap();
        let value = |name: &str| {
            let mut values = all.iter().filter(|variable| variable.name == name);
            let value = values.next().map(|variable| variable.value.clone());
            assert!(values.next().is_none(), "{name} twice");
            value
        };
        assert_eq!(value("LD_LIBRARY_PATH"), Some("/opt/x".into()));
        assert_eq!(value("MISSING"), None);
        assert_eq!(value("TOKEN"), None);
        assert_eq!(value("LANG"), Some("b".into()));
        assert_eq!(value("EMPTY"), Some("".into()));
    }

    #[test]
    fn what_is_no_variable_or_the_sandboxes_own_is_refused() {
        for name in ["HOME", "STOCKADE", "STOCKADE_SESSION", "", "A=B", "A\0"] {
            let config = Config {
                set: vec![(name.into(), Asked::new("x", "a test"))],
                ..Config::default()
            };
            let result = environment(&config, &facts(), &[]);
            assert!(
                matches!(result, Err(Error::VariableRefused { .. })),
                "{name:?}"
            );
        }
    }
}
