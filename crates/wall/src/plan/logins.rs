//! Logins for forges that only sandboxed sessions use: a file for git for each host, and one for
//! `gh` and one for `glab` that have all hosts of theirs which are on.

use std::path::Path;

use super::{Operation, Step, layout::Layout};
use crate::{
    config::{Forge, ForgeLogin, ForgeTool, GITHUB_HOST, GITLAB_HOST, Secret},
    facts::Facts,
    tables::home::{GITHUB, GITLAB},
};

/// The directory of the files for git.
const DIRECTORY: &str = "/run/stockade/logins";

const REASON: &str = "the login that `stockade auth` stored for sessions";

/// The files that git's helpers read, in git's own form.
pub(super) fn for_git(forge: &Forge, layout: &mut Layout) {
    for tool in [ForgeTool::Gh, ForgeTool::Glab] {
        for login in forge.logins_of(tool) {
            let (user, token) = (user(login), login.token.reveal());
            let text = format!("username={user}\npassword={token}\n");
            let login_file = Operation::Login(Secret::new(text));
            layout.add(format!("{DIRECTORY}/{}", login.host), login_file, REASON);
        }
    }
}

/// The helper of git's for a host, if there is a login for it. It needs neither `gh` nor `glab`.
pub(super) fn helper(forge: &Forge, host: &str) -> Option<String> {
    let host = &forge.login_for(host)?.host;
    Some(format!(
        "!f() {{ if [ \"$1\" = get ]; then cat {DIRECTORY}/{host}; fi; }}; f"
    ))
}

/// The settings of `gh` or `glab` in their usual directory, if there is a login for it. Nothing of
/// the user's own is beside them.
pub(super) fn for_tool(forge: &Forge, tool: ForgeTool, directory: &Path) -> Vec<Step> {
    let logins: Vec<_> = forge.logins_of(tool).collect();
    let Some(first) = logins.first() else {
        return Vec::new();
    };
    let empty = Operation::Empty { mode: 0o700 };
    let mut steps = vec![Step::new(directory, empty, REASON)];
    match tool {
        ForgeTool::Gh => {
            let hosts: String = logins.iter().map(|login| gh(login)).collect();
            let hosts = Operation::Login(Secret::new(hosts));
            steps.push(Step::new(directory.join("hosts.yml"), hosts, REASON));
            // Without a version, `gh` would bring the other file into a newer form, and cannot.
            let settings = Operation::Text("version: \"1\"\ngit_protocol: https\n".to_owned());
            let reason = "settings of `gh` for this login";
            steps.push(Step::new(directory.join("config.yml"), settings, reason));
        }
        ForgeTool::Glab => {
            let hosts: String = logins.iter().map(|login| glab(login)).collect();
            // It could not write down when it looked for updates last.
            let text = format!(
                "git_protocol: https\ncheck_update: false\nhost: \"{}\"\nhosts:\n{hosts}",
                first.host
            );
            let settings = Operation::Login(Secret::new(text));
            steps.push(Step::new(directory.join("config.yml"), settings, REASON));
        }
    }
    steps
}

/// A host in `hosts.yml`, as versions before and after 2.40 read it.
fn gh(login: &ForgeLogin) -> String {
    let (host, user, token) = (&login.host, user(login), login.token.reveal());
    format!(
        "\"{host}\":\n    users:\n        \"{user}\":\n            oauth_token: \"{token}\"\n    \
         oauth_token: \"{token}\"\n    user: \"{user}\"\n    git_protocol: https\n"
    )
}

/// A host in `config.yml`.
fn glab(login: &ForgeLogin) -> String {
    let (host, user, token) = (&login.host, user(login), login.token.reveal());
    format!(
        "    \"{host}\":\n        token: \"{token}\"\n        user: \"{user}\"\n        \
         api_host: \"{host}\"\n        api_protocol: https\n        git_protocol: https\n"
    )
}

/// Whose token it is. Forges take any name for one, as long as there is one.
fn user(login: &ForgeLogin) -> &str {
    let unknown = match login.tool {
        ForgeTool::Gh => "x-access-token",
        ForgeTool::Glab => "oauth2",
    };
    login.user.as_deref().unwrap_or(unknown)
}

/// Forges that have no stored login, and hosts that have none of a forge that has others.
pub(super) fn notes(forge: &Forge, facts: &Facts) -> Vec<String> {
    let forges = [
        (forge.github, ForgeTool::Gh, GITHUB_HOST, "github", GITHUB),
        (forge.gitlab, ForgeTool::Glab, GITLAB_HOST, "gitlab", GITLAB),
    ];
    let mut notes = Vec::new();
    for (_, tool, usual, word, own) in forges.into_iter().filter(|(is_on, ..)| *is_on) {
        if forge.logins_of(tool).next().is_none() {
            if facts.found.contains_key(&facts.home.real.join(own)) {
                notes.push(format!(
                    "no login for sessions is stored for {usual}, so the command gets your own, \
                     with all its rights. To give it one of its own: stockade auth {word}"
                ));
            }
            continue;
        }
        let further = forge.hosts.iter().map(String::as_str);
        for host in [usual].into_iter().chain(further) {
            if forge.login_for(host).is_none() {
                notes.push(format!(
                    "there is no login for {host}: other hosts have one of `stockade auth`, so \
                     your own of {word} is not given. To add one: stockade auth {word} --host {host}"
                ));
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Plan, facts::tests::facts};

    fn login(tool: ForgeTool, host: &str) -> ForgeLogin {
        ForgeLogin {
            tool,
            host: host.to_owned(),
            user: None,
            token: Secret::new(format!("decoy-of-{host}")),
        }
    }

    fn forge(github: bool, gitlab: bool, hosts: &[&str]) -> Forge {
        Forge {
            github,
            gitlab,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            logins: vec![
                login(ForgeTool::Gh, "github.com"),
                login(ForgeTool::Gh, "ghe.example.org"),
                login(ForgeTool::Glab, "gitlab.com"),
            ],
        }
    }

    fn plan(forge: Forge) -> Plan {
        let config = Config {
            forge,
            ..Config::default()
        };
        Plan::build(&config, &facts()).unwrap()
    }

    /// What the command gets of logins.
    fn given(plan: &Plan) -> String {
        let steps = plan.files.iter().filter_map(|step| match &step.operation {
            Operation::Login(text) => Some(text.reveal()),
            _ => None,
        });
        steps.collect()
    }

    #[test]
    fn a_session_gets_the_logins_of_its_forges_and_hosts_only() {
        for (forge, hosts) in [
            (forge(false, false, &[]), vec![]),
            (forge(true, false, &[]), vec!["github.com"]),
            (forge(false, true, &["ghe.example.org"]), vec!["gitlab.com"]),
            (
                forge(true, false, &["ghe.example.org"]),
                vec!["github.com", "ghe.example.org"],
            ),
        ] {
            let given = given(&plan(forge));
            for host in ["github.com", "ghe.example.org", "gitlab.com"] {
                let is_given = given.contains(&format!("decoy-of-{host}"));
                assert_eq!(is_given, hosts.contains(&host), "{host}: {given}");
            }
        }
    }

    #[test]
    fn no_plan_shows_a_login() {
        let plan = plan(forge(true, true, &["ghe.example.org"]));
        assert!(given(&plan).contains("decoy-of-ghe.example.org"));
        let text = plan.to_string();
        assert!(text.contains(".config/gh/hosts.yml"), "{text}");
        for shown in [text, format!("{plan:?}")] {
            assert!(!shown.contains("decoy-of-"), "{shown}");
        }
    }

    #[test]
    fn a_host_without_a_login_is_said() {
        assert_eq!(
            plan(forge(true, false, &["ghe.example.org"])).notes,
            [""; 0]
        );
        let notes = plan(forge(true, false, &["git.example.org"])).notes;
        assert!(
            notes
                .iter()
                .any(|note| note.contains("--host git.example.org")),
            "{notes:?}"
        );
    }
}
