//! Where people keep what only they should have, and what it is. A workspace is never there;
//! a path that is asked for may be, since the user decides, but not without a word.

use std::path::Path;

use crate::{
    beneath,
    config::{Config, PathRequest},
    facts::{Facts, Found, Kind, Place},
    home,
    plan::OWN_DIRECTORIES,
};

/// Places in a home directory.
pub(crate) const IN_HOME: &[(&str, &str)] = &[
    (".ssh", "keys of SSH"),
    (".gnupg", "keys of GnuPG"),
    (".aws", "the login of AWS"),
    (".azure", "the login of Azure"),
    (".docker", "logins of container registries"),
    (".kube", "logins of Kubernetes clusters"),
    (".password-store", "passwords"),
    (".pki", "certificates and their keys"),
    (".mozilla", "logins and cookies of Firefox"),
    (".thunderbird", "mail and its logins"),
    (".config/gcloud", "the login of Google Cloud"),
    (".config/gh", "the login of GitHub"),
    (".config/glab-cli", "the login of GitLab"),
    (".config/google-chrome", "logins and cookies of Chrome"),
    (".config/chromium", "logins and cookies of Chromium"),
    (".config/stockade", "Stockade's own configuration"),
    (".local/share/keyrings", "passwords"),
    (".netrc", "logins by host"),
    (".git-credentials", "logins of git"),
    (".npmrc", "the login of npm"),
    (".pypirc", "the login of a Python index"),
    (".cargo/credentials.toml", "the login of a Rust registry"),
    (".pgpass", "passwords of databases"),
    (".my.cnf", "passwords of databases"),
    (".bash_history", "what was typed"),
    (".zsh_history", "what was typed"),
];

/// Sockets and directories of sockets: who can connect can do what the service does.
const SOCKETS: &[(&str, &str)] = &[
    ("/run/docker.sock", "Docker, which is as good as root"),
    ("/run/podman", "Podman, which is as good as root"),
    ("/run/containerd", "containerd, which is as good as root"),
    ("/run/dbus", "the services of this machine"),
    ("/run/user", "the services and agents of users"),
    ("/tmp/.X11-unix", "the screen and the keyboard"),
];

/// The place of credentials that a path leads into although it does not name it.
pub(crate) fn behind(path: &Path, found: &Found, home: &Path) -> Option<&'static str> {
    let is_behind = |place: &Path| found.real.starts_with(place) && !path.starts_with(place);
    let known = IN_HOME.iter().map(|(place, _)| *place);
    let mut places = known.chain(home::SECRETS.iter().copied());
    places.find(|place| is_behind(&home.join(place)))
}

/// Why a file that a variable names as certificates is none to be shown: nobody asked for it by a
/// path, and whoever set the variable may not have been the user.
pub(crate) fn no_certificates(found: &Found, home: &Path) -> Option<&'static str> {
    let is_at = |place: &Path| found.real.starts_with(place) || found.at.starts_with(place);
    let own = OWN_DIRECTORIES.iter().any(|place| is_at(&home.join(place)));
    let secret = (IN_HOME.iter().map(|(place, _)| *place))
        .chain(home::SECRETS.iter().copied())
        .any(|place| is_at(&home.join(place)));
    if found.kind != Kind::File {
        Some("no file")
    } else if own {
        Some("Stockade's own")
    } else if secret || SOCKETS.iter().any(|(place, _)| is_at(Path::new(place))) {
        Some("where credentials are kept")
    } else if is_at(Path::new("/dev")) || is_at(Path::new("/proc")) {
        Some("no ordinary file")
    } else if holds_private_key(&found.real) {
        Some("a private key")
    } else {
        None
    }
}

/// Whether a file says that it holds a private key, as far as one look tells.
fn holds_private_key(path: &Path) -> bool {
    beneath::read_beginning(path).is_ok_and(|text| {
        const MARK: &[u8] = b"PRIVATE KEY-----";
        text.windows(MARK.len()).any(|part| part == MARK)
    })
}

/// A sentence for each path that the user gives with something in it that only the user
/// should have.
pub(crate) fn given(config: &Config, facts: &Facts) -> Vec<String> {
    let reads = config.read.iter().map(|request| (request, "read"));
    let writes = config
        .write
        .iter()
        .map(|request| (request, "read and write"));
    let mut given = Vec::new();
    for (request, verb) in reads.chain(writes) {
        let Some(what) = of(request, facts) else {
            continue;
        };
        let PathRequest { path, by, .. } = request;
        let sentence = format!("{path:?} is given ({by}): the command can {verb} {what}");
        if !given.contains(&sentence) {
            given.push(sentence);
        }
    }
    given
}

/// What is at a path that the user asks for, as far as it is a credential.
fn of(request: &PathRequest, facts: &Facts) -> Option<String> {
    let found = facts
        .found
        .get(&request.path)
        .filter(|_| request.required)?;
    let mut all: Vec<&str> = Vec::new();
    let mut add = |what: &'static str| {
        if !all.contains(&what) {
            all.push(what);
        }
    };
    let meets = |place: &Path| place.starts_with(&found.real) || found.real.starts_with(place);
    for (place, what) in SOCKETS {
        if meets(Path::new(place)) {
            add(what);
        }
    }
    let Place { real: home, .. } = &facts.home;
    for (place, what) in IN_HOME {
        if meets(&home.join(place)) {
            add(what);
        }
    }
    // Those below a directory that is given are masked.
    if home::SECRETS
        .iter()
        .any(|place| found.real.starts_with(home.join(place)))
    {
        add("what is known to hold secrets");
    }
    match all.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        [some @ .., last] if some.len() < 3 => Some(format!("{} and {last}", some.join(", "))),
        [first, second, rest @ ..] => Some(format!(
            "{first}, {second} and {} more of that kind",
            rest.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::{facts, with};

    fn told(path: &str, by_user: bool) -> Vec<String> {
        let facts = with(facts(), &[(path, Kind::Directory)]);
        let request = if by_user {
            PathRequest::by_user(path)
        } else {
            PathRequest::by_profile(path)
        };
        let config = Config {
            read: vec![request.clone(), request],
            ..Config::default()
        };
        given(&config, &facts)
    }

    #[test]
    fn a_link_that_leads_to_secrets_is_known_by_where_it_leads() {
        let home = Path::new("/home/u");
        let found = |real: &str| Found {
            at: "/home/u/.claude".into(),
            real: real.into(),
            kind: Kind::Directory,
        };
        let behind = |path: &str, real: &str| behind(Path::new(path), &found(real), home);
        let mkcert = "/home/u/.local/share/mkcert";
        assert_eq!(
            behind("/home/u/.claude", mkcert),
            Some(".local/share/mkcert")
        );
        assert_eq!(behind("/home/u/.claude", "/home/u/.ssh/x"), Some(".ssh"));
        assert_eq!(behind("/home/u/.claude", "/home/u/dotfiles"), None);
        assert_eq!(behind(mkcert, mkcert), None);
    }

    #[test]
    fn what_is_given_of_credentials_is_said_once() {
        assert_eq!(
            told("/home/ada/.ssh", true),
            ["\"/home/ada/.ssh\" is given (the user): the command can read keys of SSH"]
        );
        for (path, what) in [
            ("/home/ada/.ssh/id_ed25519", "keys of SSH"),
            ("/home/ada/.config", "the login of Google Cloud, "),
            ("/run/docker.sock", "Docker"),
            ("/home/ada/.local/share/atuin", "known to hold secrets"),
        ] {
            let told = told(path, true);
            assert!(
                told.len() == 1 && told[0].contains(what),
                "{path}: {told:?}"
            );
        }
    }

    #[test]
    fn other_paths_and_what_profiles_ask_for_need_no_word() {
        assert_eq!(told("/home/ada/data", true), [""; 0]);
        assert_eq!(told("/home/ada/.sshd", true), [""; 0]);
        assert_eq!(told("/home/ada/.ssh", false), [""; 0]);
    }
}
