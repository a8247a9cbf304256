//! Variables, git's settings, and sockets with and without a path.

use std::collections::BTreeSet;

use rustix::io::Errno;
use stockade_wall::Operation;

use super::{Case, shown};
use crate::verify::{
    GIT_CONFIG,
    messages::Tried,
    outside::SECRET_VARIABLE,
    report::{Check, Finding},
};

pub(super) fn findings(case: &Case<'_>) -> Vec<Finding> {
    vec![
        allowlist(case),
        leads(case),
        git(case),
        socket_files(case),
        abstract_socket(case),
    ]
}

fn allowlist(case: &Case<'_>) -> Finding {
    let check = Check::new("environment.allowlist", "variables pass by name only");
    let planned: BTreeSet<_> = case
        .plan
        .environment
        .iter()
        .map(|variable| variable.name.to_string_lossy().into_owned())
        .collect();
    let names = case.seen.environment.keys();
    let faults: Vec<String> = names
        .filter(|name| !planned.contains(*name))
        .map(|name| format!("{name} is there, and nothing passes it on"))
        .collect();
    if case.seen.environment.is_empty() {
        return check.inconclusive("there is no variable at all inside");
    }
    check.unless(
        &faults,
        format!("{SECRET_VARIABLE} was set outside, and is not there"),
    )
}

/// Variables that are credentials, or lead to a desktop, an agent or an engine.
const TELLTALE: [&str; 22] = [
    "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GPG_AGENT_INFO",
    "KUBECONFIG",
    "LD_PRELOAD",
    "NPM_TOKEN",
    "OPENAI_API_KEY",
    "SSH_AUTH_SOCK",
    "TMUX",
    "VSCODE_IPC_HOOK_CLI",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

fn leads(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "environment.secrets",
        "no token, display or agent's socket is in a variable",
    );
    let config = &case.effective.env;
    let is_given = |name: &str| {
        config.pass.iter().any(|it| it.value.as_str() == name)
            || config.set.keys().any(|it| it.as_str() == name)
    };
    let there = |name: &&&str| case.seen.environment.contains_key(**name);
    let (given, leaked): (Vec<&str>, Vec<&str>) = TELLTALE
        .iter()
        .filter(there)
        .partition(|name| is_given(name));
    let faults: Vec<String> = leaked
        .iter()
        .map(|name| format!("{name} is there"))
        .collect();
    let note = match given.as_slice() {
        [] => "none of those that are known".to_owned(),
        given => format!(
            "none but what the configuration gives: {}",
            given.join(", ")
        ),
    };
    check.unless(&faults, note)
}

fn git(case: &Case<'_>) -> Finding {
    let check = Check::new("files.git", "git's settings are the sandbox's own");
    let system = case.seen.environment.get("GIT_CONFIG_SYSTEM");
    if system.map(String::as_str) != Some(GIT_CONFIG) {
        return check.fail(format!("GIT_CONFIG_SYSTEM is not {GIT_CONFIG}"));
    }
    let path = std::path::Path::new(GIT_CONFIG);
    let planned = case
        .plan
        .files
        .iter()
        .find_map(|step| match &step.operation {
            Operation::Text(text) if step.at == *path => Some(text),
            _ => None,
        });
    if case.seen.texts.get(path) != planned {
        return check.fail(format!("{GIT_CONFIG} is not the file that was made for it"));
    }
    if case.seen.writes.get(path).is_some_and(Tried::worked) {
        return check.fail(format!("{GIT_CONFIG} can be written"));
    }
    let forge = &case.effective.forge;
    check.pass(match (forge.github.value, forge.gitlab.value) {
        (false, false) => "no credential helper is set",
        _ => "credential helpers of forges that are on, and no others",
    })
}

/// To connect takes no right to write, so the path itself must not be there.
fn socket_files(case: &Case<'_>) -> Finding {
    let check = Check::new("sockets.files", "no socket of the host's services is there");
    let absent = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS];
    let is_there = |tried: &Tried| !tried.is_refused_with(&absent);
    let (shown_by_plan, leaked): (Vec<_>, Vec<_>) = case
        .seen
        .sockets
        .iter()
        .filter(|(_, tried)| is_there(tried))
        .map(|(path, _)| path)
        .partition(|path| case.is_shown(path));
    let faults: Vec<String> = leaked
        .iter()
        .map(|path| format!("{} can be connected to", shown(path)))
        .collect();
    if case.outside.canaries.socket.is_none() && faults.is_empty() {
        return check.inconclusive("no socket could be made in /tmp to look for");
    }
    let note = match shown_by_plan.as_slice() {
        [] => "none of those that can be connected to outside".to_owned(),
        [first, ..] => format!("none but in what is shown anyway, as {}", shown(first)),
    };
    check.unless(&faults, note).but_for(&shown_by_plan)
}

fn abstract_socket(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "sockets.abstract",
        "no abstract socket of the host is there",
    );
    match &case.seen.abstract_socket {
        Some(Tried::Worked(_)) => check.fail("one that listens outside was connected to"),
        Some(tried) => check.pass(format!("one that listens outside: {tried}")),
        None => check.inconclusive("it was not tried"),
    }
}
