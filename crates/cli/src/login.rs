//! Logins of agents that a browser calls back.

use std::{ffi::OsStr, path::Path};

use stockade_config::{Effective, LOGIN, Loader, Mode, Port};
use stockade_wall::CommandLine;

/// The port of the loopback at which Codex waits for the browser.
const CODEX: Option<Port> = Port::new(1455);

/// Options of Codex that have a value in the next word.
const WITH_VALUE: &[&str] = &["-c", "--config", "--enable", "--disable", "-p", "--profile"];

/// What `codex login` does without a browser's call.
const WITHOUT_CALL: &[&str] = &[
    "status",
    "help",
    "-h",
    "--help",
    "--api-key",
    "--with-api-key",
    "--with-access-token",
    "--device-auth",
];

/// The port that the browser calls, if the command is such a login.
pub(crate) fn port(command: &CommandLine) -> Option<Port> {
    if Path::new(&command.program).file_name() != Some(OsStr::new("codex")) {
        return None;
    }
    let mut words = command.arguments.iter().map(|word| word.to_string_lossy());
    let subcommand = loop {
        let word = words.next()?;
        if WITH_VALUE.contains(&&*word) {
            words.next()?;
        } else if !word.starts_with('-') {
            break word;
        }
    };
    let calls = !words.any(|word| WITHOUT_CALL.contains(&&*word));
    CODEX.filter(|_| subcommand == "login" && calls)
}

/// What the user has to know of it.
pub(crate) fn notice(loader: &Loader, effective: &Effective) -> Option<String> {
    let port = loader.login?;
    let network = &effective.network;
    if network.mode.value != Mode::Jail {
        return None;
    }
    let published = network.publish.iter().find(|it| it.value.outside == port);
    match published {
        Some(it) if it.origin.to_string() == LOGIN => Some(format!(
            "publishing 127.0.0.1:{port} for this login: the browser calls `{LOGIN}` back there"
        )),
        Some(_) => None,
        None => Some(format!(
            "the browser cannot call `{LOGIN}` back: port {port} is not published, because the \
             configuration says otherwise. Log in with `{LOGIN} --device-auth`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_login_that_a_browser_calls_back_has_a_port() {
        let port = |line: &str| {
            let mut words = line.split(' ').map(Into::into);
            port(&CommandLine {
                program: words.next().unwrap(),
                arguments: words.collect(),
            })
        };
        for line in [
            "codex login",
            "/opt/bin/codex login",
            "codex -c model=x login",
            "codex --profile work login -c a=b",
        ] {
            assert_eq!(port(line), CODEX, "{line}");
        }
        for line in [
            "codex",
            "codex exec login",
            "codex login status",
            "codex login --device-auth",
            "codex login --with-api-key",
            "codex -c login",
            "claude login",
            "npm login",
        ] {
            assert_eq!(port(line), None, "{line}");
        }
    }
}
