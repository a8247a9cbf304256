//! The environment of the command: nothing but an allowlist.
//!
//! What is not named here does not pass, so a token in a variable nobody thought of stays
//! outside, and so do the hooks of loaders and interpreters (`LD_PRELOAD`, `BASH_ENV`,
//! `NODE_OPTIONS`, `PYTHONPATH`, `GIT_*` …).

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use crate::facts::Facts;

/// A variable that the command gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: OsString,
    pub value: OsString,
    pub reason: &'static str,
}

/// Variables that pass as they are, and why.
const PASSED: &[(&[&str], &str)] = &[
    (&["USER", "LOGNAME", "SHELL"], "who the user is"),
    (&["LANG", "LANGUAGE", "TZ"], "language and time zone"),
    (
        &["TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR"],
        "what the terminal can do",
    ),
    (
        &[
            "http_proxy",
            "https_proxy",
            "ftp_proxy",
            "all_proxy",
            "no_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "FTP_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
        ],
        "how this network reaches the internet",
    ),
    (
        &[
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "GIT_SSL_CAINFO",
        ],
        "which certificates this network trusts",
    ),
];

/// Locale categories (`LC_ALL`, `LC_CTYPE` …) pass by their prefix.
const LOCALE_PREFIX: &[u8] = b"LC_";

/// The search path where the caller has none.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The command's environment, from the caller's.
pub(crate) fn environment(facts: &Facts) -> Vec<Variable> {
    let caller = |name: &str| {
        facts
            .environment
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_os_str())
    };
    let variable = |name: &OsStr, value: &OsStr, reason| Variable {
        name: name.to_owned(),
        value: value.to_owned(),
        reason,
    };

    let mut variables = vec![
        variable(
            "STOCKADE".as_ref(),
            "1".as_ref(),
            "so that programs can tell",
        ),
        variable("HOME".as_ref(), facts.home.named.as_os_str(), "private"),
        variable(
            "PATH".as_ref(),
            &search_path(caller("PATH"), &facts.home.named, &facts.home.real),
            "absolute directories only; ~/.local/bin last",
        ),
    ];
    for (names, reason) in PASSED {
        for name in *names {
            if let Some(value) = caller(name) {
                variables.push(variable(name.as_ref(), value, reason));
            }
        }
    }
    for (name, value) in &facts.environment {
        if name.as_bytes().starts_with(LOCALE_PREFIX) {
            variables.push(variable(name, value, "language"));
        }
    }
    variables
}

/// The caller's `PATH` without what would be looked up in the current directory, and
/// with `~/.local/bin` last: what is written there inside must not shadow the system's
/// programs.
fn search_path(caller: Option<&OsStr>, home: &Path, real_home: &Path) -> OsString {
    let local = |home: &Path| home.join(".local/bin");
    let last = local(home);
    let mut directories: Vec<PathBuf> =
        std::env::split_paths(caller.unwrap_or(USUAL_PATH.as_ref()))
            .filter(|directory| directory.is_absolute())
            .filter(|directory| *directory != last && *directory != local(real_home))
            .collect();
    // A directory whose name has a colon cannot be in a search path.
    if !last.as_os_str().as_bytes().contains(&b':') {
        directories.push(last);
    }
    let bytes = directories
        .iter()
        .map(|directory| directory.as_os_str().as_bytes())
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
        environment(&facts)
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
}
