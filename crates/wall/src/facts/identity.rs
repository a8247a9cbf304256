//! The user's name, mail address and aliases, from the user's own git settings.
//!
//! git itself is not asked: it would run in the workspace, whose settings may be hostile, and a
//! process takes time.

use std::{collections::BTreeMap, path::Path};

use crate::{
    git::settings::{self, Setting},
    nofollow,
};

/// Settings that are taken over. None of them can name a program or a file.
const TAKEN: &[(&str, &str)] = &[
    ("user", "name"),
    ("user", "email"),
    ("init", "defaultbranch"),
    ("core", "autocrlf"),
    ("core", "eol"),
    ("push", "default"),
    ("push", "autosetupremote"),
    ("pull", "rebase"),
    ("pull", "ff"),
    ("merge", "conflictstyle"),
    ("color", "ui"),
];

/// Name and value of each setting that is taken over, such as `user.name`.
pub(super) fn settings(home: &Path, workspace: &Path) -> Vec<(String, String)> {
    let repository = workspace.join(".git");
    // The files are the user's own, so links are followed; but they may name one that the
    // command can write.
    let read = |file: &Path| {
        let contents = nofollow::read_through_links(file).unwrap_or_default();
        let mut all = settings::parse(&contents).unwrap_or_default();
        all.retain(|it| it.section() != b"includeif" || holds(it, home, &repository));
        all
    };
    // The latter wins.
    let files = [".config/git/config", ".gitconfig"].map(|file| home.join(file));
    let all = files.map(|file| settings::with_included(&file, home, &read));
    let taken = TAKEN.iter().filter_map(|(section, name)| {
        let mut all = all.iter().flatten();
        let setting = all.rfind(|setting| setting.is(section, name))?;
        Some((setting.key().into_owned(), setting.value().into_owned()))
    });
    taken.chain(aliases(all.iter().flatten())).collect()
}

/// The aliases that are commands of git's. Those that start a program would find another one, or
/// none, inside; and an address may have a password in it.
fn aliases<'a>(all: impl Iterator<Item = &'a Setting>) -> BTreeMap<String, String> {
    const MOST: usize = 500;
    let own = all.filter(|it| it.section() == b"alias" && it.subsection().is_none());
    let own = own.map(|it| (it.key().into_owned(), it.value().into_owned()));
    // The last of a name counts.
    let mut own: BTreeMap<String, String> = own.collect();
    own.retain(|_, value| !value.trim_start().starts_with('!') && !value.contains("://"));
    own.into_iter().take(MOST).collect()
}

/// Whether the condition of an `includeIf` holds. Of its kinds only `gitdir:` is known, and of that
/// only directories, without wildcards: that is what people use to have another address at work.
fn holds(include: &Setting, home: &Path, repository: &Path) -> bool {
    let condition = include.subsection().map(str::from_utf8);
    let condition = condition.and_then(Result::ok);
    let Some(pattern) = condition.and_then(|it| it.strip_prefix("gitdir:")) else {
        return false;
    };
    let directory = match pattern.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => pattern.into(),
    };
    pattern.ends_with('/') && repository.starts_with(directory)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn name_and_mail_are_those_that_git_would_use() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path();
        fs::create_dir_all(home.join(".config/git")).unwrap();
        let write = |name: &str, text: &str| fs::write(home.join(name), text).unwrap();
        write(".config/git/config", "[user]\nname = Old\nemail = a@home\n");
        write(
            ".gitconfig",
            "[user]\nname = \"Ada \\\"L\\\"\"\n[core]\neditor = evil\n\
             [alias]\nst = status -sb\nx = !evil\nst2 = one\nst2 = !two\np = push https://a:b@c\n\
             [includeIf \"gitdir:~/work/\"]\npath = ~/.gitconfig-work\n",
        );
        write(".gitconfig-work", "[user]\nemail = a@work\n");
        let settings = |workspace: &str| settings(home, &home.join(workspace));
        let expected = |mail: &str| {
            [
                ("user.name", "Ada \"L\""),
                ("user.email", mail),
                ("alias.st", "status -sb"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        assert_eq!(settings("play/x"), expected("a@home"));
        assert_eq!(settings("work/x"), expected("a@work"));
    }
}
