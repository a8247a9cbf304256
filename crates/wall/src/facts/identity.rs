//! The user's name, mail address and aliases, from the user's own git settings.
//!
//! git itself is not asked: it would run in the workspace, whose settings may be hostile, and a
//! process takes time.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

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

/// How deep files may include one another.
const DEEPEST: usize = 5;

/// Name and value of each setting that is taken over, such as `user.name`.
pub(super) fn settings(home: &Path, workspace: &Path) -> Vec<(String, String)> {
    let mut reader = Reader {
        home,
        repository: workspace.join(".git"),
        all: Vec::new(),
    };
    // The latter wins.
    for file in [".config/git/config", ".gitconfig"] {
        reader.read(&home.join(file), 0);
    }
    let taken = TAKEN.iter().filter_map(|(section, name)| {
        let setting = reader
            .all
            .iter()
            .rfind(|setting| setting.is(section, name))?;
        Some((setting.key().into_owned(), setting.value().into_owned()))
    });
    taken.chain(aliases(&reader.all)).collect()
}

/// The aliases that are commands of git's. Those that start a program would find another one, or
/// none, inside; and an address may have a password in it.
fn aliases(all: &[Setting]) -> BTreeMap<String, String> {
    const MOST: usize = 500;
    let own = all
        .iter()
        .filter(|it| it.section() == b"alias" && it.subsection().is_none());
    let own = own.map(|it| (it.key().into_owned(), it.value().into_owned()));
    // The last of a name counts.
    let mut own: BTreeMap<String, String> = own.collect();
    own.retain(|_, value| !value.trim_start().starts_with('!') && !value.contains("://"));
    own.into_iter().take(MOST).collect()
}

struct Reader<'a> {
    home: &'a Path,
    repository: PathBuf,
    all: Vec<Setting>,
}

impl Reader<'_> {
    /// The files are the user's own, so links are followed; but they may name one that the
    /// command can write.
    fn read(&mut self, file: &Path, depth: usize) {
        let Ok(contents) = nofollow::read_through_links(file) else {
            return;
        };
        for setting in settings::parse(&contents).unwrap_or_default() {
            let is_include = match setting.subsection() {
                None => setting.section() == b"include",
                Some(condition) => {
                    setting.section() == b"includeif"
                        && str::from_utf8(condition).is_ok_and(|condition| self.holds(condition))
                }
            };
            if is_include && setting.name() == b"path" && depth < DEEPEST {
                let path = self.expand(&setting.value());
                let directory = file.parent().unwrap_or(self.home);
                self.read(&directory.join(path), depth + 1);
            } else {
                self.all.push(setting);
            }
        }
    }

    fn expand(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => path.into(),
        }
    }

    /// Whether the condition of an `includeIf` holds. Of its kinds only `gitdir:` is known,
    /// and of that only directories, without wildcards: that is what people use to have
    /// another address at work.
    fn holds(&self, condition: &str) -> bool {
        let Some(pattern) = condition.strip_prefix("gitdir:") else {
            return false;
        };
        let directory = self.expand(pattern);
        pattern.ends_with('/') && self.repository.starts_with(directory)
    }
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
