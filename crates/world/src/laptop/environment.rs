//! The environment of a desktop login, with the secrets people keep there.

use std::path::Path;

use super::DECOY;
use crate::entry::Login;
use crate::fs::BIN;

/// A variable that hands out a credential or the way to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecoyVariable {
    pub name: &'static str,
    pub value: String,
}

/// Variables that are secrets themselves, numbered above those of the files.
const SECRETS: [&str; 8] = [
    "ANTHROPIC_ADMIN_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "NPM_TOKEN",
    "PGPASSWORD",
    "VAULT_TOKEN",
];

/// Variables that lead to a socket or a file with secrets.
const POINTERS: [(&str, &str); 9] = [
    ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
    ("DISPLAY", ":0"),
    ("DOCKER_HOST", "unix:///run/docker.sock"),
    ("KUBECONFIG", "/home/dev/.kube/config"),
    ("SSH_AUTH_SOCK", "/tmp/ssh-decoy/agent.4242"),
    ("TMUX", "/tmp/tmux-1000/default,4242,0"),
    (
        "VSCODE_IPC_HOOK_CLI",
        "/run/user/1000/vscode-ipc-decoy.sock",
    ),
    ("WAYLAND_DISPLAY", "wayland-0"),
    ("XDG_RUNTIME_DIR", "/run/user/1000"),
];

pub(super) fn decoys(login: Login, home: &Path) -> Vec<DecoyVariable> {
    let uid = super::uid(login).to_string();
    let home = home.to_string_lossy();
    let secrets = SECRETS
        .iter()
        .zip(100..)
        .map(|(name, number)| DecoyVariable {
            name,
            value: format!("{DECOY}{number}"),
        });
    let pointers = POINTERS.iter().map(|(name, value)| DecoyVariable {
        name,
        value: value.replace("1000", &uid).replace("/home/dev", &home),
    });
    secrets.chain(pointers).collect()
}

pub(super) fn of_login(login: Login, home: &Path) -> Vec<(String, String)> {
    let user = match login {
        Login::Dev => "dev",
        Login::Root => "root",
    };
    let secrets = decoys(login, home);
    let home = home.display();
    let plain = [
        ("HOME", home.to_string()),
        ("LANG", "C.UTF-8".to_owned()),
        ("LOGNAME", user.to_owned()),
        (
            "PATH",
            format!("{BIN}:{home}/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
        ),
        ("SHELL", "/bin/bash".to_owned()),
        ("TERM", "xterm-256color".to_owned()),
        ("USER", user.to_owned()),
        ("XDG_SESSION_TYPE", "wayland".to_owned()),
    ];
    let mut environment: Vec<(String, String)> = plain
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    environment.extend(
        secrets
            .into_iter()
            .map(|decoy| (decoy.name.to_owned(), decoy.value)),
    );
    environment
}
