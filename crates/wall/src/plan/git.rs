//! git's configuration inside: the user's name and mail, and, for forges that are on, the
//! way to their logins.

use super::{Operation, layout::Layout, logins};
use crate::{
    config::{Config, Forge, GITHUB_HOST, GITLAB_HOST},
    error::Error,
    facts::Facts,
    git::settings::{Composer, is_host_name},
};

/// Where the generated file is.
pub(crate) const GIT_CONFIG: &str = "/run/stockade/gitconfig";

pub(super) fn file(config: &Config, facts: &Facts, layout: &mut Layout) -> Result<(), Error> {
    let mut composer = Composer::default();
    for (key, value) in &facts.git_settings {
        if let Some((section, name)) = key.split_once('.') {
            composer.section(section, None);
            composer.set(name, value);
        }
    }
    // Inside, files of other users look like nobody's, and git would refuse to work.
    composer.section("safe", None);
    composer.set("directory", &facts.workspace.to_string_lossy());
    forge(&config.forge, &mut composer)?;
    logins::for_git(&config.forge, layout);
    let text = Operation::Text(composer.finish());
    let reason = "who commits; the logins of forges that are on";
    layout.add(GIT_CONFIG, text, reason);
    Ok(())
}

fn forge(forge: &Forge, composer: &mut Composer) -> Result<(), Error> {
    let github = forge
        .github
        .then_some((GITHUB_HOST, "!gh auth git-credential"));
    let gitlab = forge
        .gitlab
        .then_some((GITLAB_HOST, "!glab auth git-credential"));
    let helpers: Vec<_> = [github, gitlab].into_iter().flatten().collect();
    for (own_host, helper) in &helpers {
        let stored = logins::helper(forge, own_host);
        host(own_host, &[stored.as_deref().unwrap_or(helper)], composer);
    }
    if helpers.is_empty() {
        return Ok(());
    }
    let all: Vec<_> = helpers.iter().map(|(_, helper)| *helper).collect();
    for name in &forge.hosts {
        if !is_host_name(name) {
            return Err(Error::ForgeHost(name.clone()));
        }
        match logins::helper(forge, name) {
            Some(stored) => host(name, &[&stored], composer),
            None => host(name, &all, composer),
        }
    }
    Ok(())
}

/// The helpers for one host. There is no key for ssh inside, so what is fetched by ssh
/// outside goes by https.
fn host(name: &str, helpers: &[&str], composer: &mut Composer) {
    let url = format!("https://{name}");
    composer.section("credential", Some(&url));
    // The empty one takes away those of other files.
    composer.set("helper", "");
    for helper in helpers {
        composer.set("helper", helper);
    }
    composer.section("url", Some(&format!("{url}/")));
    let bare = name.split(':').next().unwrap_or(name);
    composer.set("insteadOf", &format!("git@{bare}:"));
    composer.set("insteadOf", &format!("ssh://git@{bare}/"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::tests::facts,
        git::settings::{Setting, parse},
    };

    fn text_of(forge: Forge, settings: &[(&str, &str)]) -> Result<String, Error> {
        let mut facts = facts();
        facts.git_settings = settings
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        let config = Config {
            forge,
            ..Config::default()
        };
        let mut layout = Layout::default();
        file(&config, &facts, &mut layout)?;
        match layout.finish().pop().unwrap().operation {
            Operation::Text(text) => Ok(text),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_forge_there_is_no_helper() {
        let text = text_of(Forge::default(), &[("user.name", "Ada")]).unwrap();
        assert!(text.contains("Ada"));
        for word in ["credential", "helper", "https"] {
            assert!(!text.contains(word), "{text}");
        }
    }

    #[test]
    fn hosts_without_a_forge_that_is_on_get_nothing() {
        let forge = Forge {
            hosts: vec!["git.example.org".into()],
            ..Forge::default()
        };
        assert!(!text_of(forge, &[]).unwrap().contains("example"));
    }

    #[test]
    fn each_forge_has_its_own_helper_and_no_other() {
        let forge = Forge {
            github: true,
            gitlab: false,
            hosts: vec!["git.example.org:8443".into()],
            logins: Vec::new(),
        };
        let text = text_of(forge, &[]).unwrap();
        assert!(!text.contains("glab"), "{text}");
        let settings = parse(text.as_bytes()).unwrap();
        let helpers: Vec<_> = settings
            .iter()
            .filter(|setting| setting.name() == b"helper" && !setting.value().is_empty())
            .map(Setting::key)
            .collect();
        assert_eq!(
            helpers,
            [
                "credential.https://github.com.helper",
                "credential.https://git.example.org:8443.helper"
            ]
        );
    }

    #[test]
    fn no_value_becomes_another_setting() {
        let name = "Ada\"\n[core]\n\tsshCommand = evil\n\\";
        let text = text_of(Forge::default(), &[("user.name", name)]).unwrap();
        let settings = parse(text.as_bytes()).unwrap();
        assert!(
            settings
                .iter()
                .all(|setting| setting.key() != "core.sshcommand")
        );
        assert_eq!(settings[0].value(), name);
        let forge = |host: &str| Forge {
            github: true,
            gitlab: false,
            hosts: vec![host.to_owned()],
            logins: Vec::new(),
        };
        for host in ["a\"]\n[core]", "a/b", "", "a b"] {
            let result = text_of(forge(host), &[]);
            assert!(matches!(result, Err(Error::ForgeHost(_))), "{host:?}");
        }
    }
}
