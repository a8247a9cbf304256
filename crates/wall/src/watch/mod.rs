//! What a session leaves behind that will run outside.
//!
//! What exists at the start and runs outside is read-only inside. The rest is looked at
//! before and after: files that programs outside execute unasked, hooks of git, settings by
//! which a repository makes git run programs. What has appeared is reported; nothing is
//! undone, since it may be what the user wanted.
//!
//! Looked at twice, too, is what is hidden: a program outside that replaces it by a rename takes
//! the cover off, and nobody inside or outside is asked.
//!
//! All of it may be hostile: nothing is executed, no link is followed, no more than a
//! bounded amount is read.

mod settings;
mod state;

use std::{
    collections::BTreeMap,
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use self::{settings::GitSettings, state::State};
use crate::{
    config::Config,
    facts::{Facts, Git, Place},
    protected::{HOOKS, HOST_EXECUTED, REDIRECTION, REPORTED, STATE_REPORTED},
};

/// What there was before a session.
#[derive(Debug)]
pub struct Watch {
    workspace: PathBuf,
    home: Place,
    files: Vec<(PathBuf, &'static str, State)>,
    hooks: BTreeMap<PathBuf, State>,
    redirections: BTreeMap<PathBuf, State>,
    hidden: Vec<(PathBuf, Option<Identity>)>,
    settings: GitSettings,
}

/// Which file it is, whatever is in it: its device and number.
type Identity = (u64, u64);

/// Something that will run outside and was not there before, or is not hidden any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub path: PathBuf,
    pub what: Change,
    /// Who runs it, or what it does.
    pub why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Appeared,
    Changed,
    /// A setting of git's, as `key = value`.
    Setting(String),
    /// Settings of git's that we cannot read: malformed, a link, or too long. Git may read them.
    Malformed,
    /// It was hidden, and is another file now.
    Replaced,
}

impl Watch {
    /// Looks before the session.
    #[must_use]
    pub fn begin(config: &Config, facts: &Facts) -> Self {
        let in_workspace = HOST_EXECUTED
            .iter()
            .chain(REPORTED)
            .map(|(name, why)| (facts.workspace.join(name), *why));
        let is_state = |path: &Path| {
            let states = config.agent.state.iter();
            states.clone().any(|state| path.starts_with(&state.path))
        };
        let in_home = STATE_REPORTED
            .iter()
            .map(|(name, why)| (facts.home.real.join(name), *why))
            .filter(|(path, _)| is_state(path));
        let files = in_workspace
            .chain(in_home)
            .map(|(path, why)| {
                let state = State::of(&path);
                (path, why, state)
            })
            .collect();
        let asked_for = config.hide.iter().map(|request| request.path.clone());
        let secrets = facts.secrets.iter().map(|secret| secret.path.clone());
        // Who cannot read them outside cannot inside.
        let secrets = secrets.filter(|_| facts.is_root);
        let hidden = asked_for.chain(secrets).map(|path| {
            let identity = identity(&path);
            (path, identity)
        });
        Self {
            files,
            hidden: hidden.collect(),
            hooks: hooks(&facts.git, &facts.workspace),
            redirections: redirections(&facts.git, &facts.workspace),
            settings: GitSettings::of(&facts.git, &facts.workspace),
            workspace: facts.workspace.clone(),
            home: facts.home.clone(),
        }
    }

    /// Looks again, after the session.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut compare = |path: &Path, why, before: &State, after: &State| {
            if let Some(what) = before.change_to(after) {
                let path = path.to_owned();
                findings.push(Finding { path, what, why });
            }
        };
        for (path, why, before) in &self.files {
            compare(path, *why, before, &State::of(path));
        }
        let git = Git::find(&self.workspace, &self.home);
        for (path, after) in &hooks(&git, &self.workspace) {
            let before = self.hooks.get(path).unwrap_or(&State::Absent);
            compare(path, HOOKS, before, after);
        }
        for (path, after) in &redirections(&git, &self.workspace) {
            let before = self.redirections.get(path).unwrap_or(&State::Absent);
            compare(path, REDIRECTION, before, after);
        }
        let after = GitSettings::of(&git, &self.workspace);
        findings.extend(self.settings.new_in(&after));
        for (path, before) in &self.hidden {
            let after = identity(path);
            if after.is_some() && after != *before {
                findings.push(Finding {
                    path: path.clone(),
                    what: Change::Replaced,
                    why: "what was hidden could be read from then on",
                });
            }
        }
        findings
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// What lies where git looks for hooks, but for the samples that it never runs.
fn hooks(git: &Git, workspace: &Path) -> BTreeMap<PathBuf, State> {
    let mut hooks = BTreeMap::new();
    for directory in git.hooks(workspace) {
        if let State::Directory(files) = State::of(&directory) {
            for (name, fingerprint) in files {
                if name.extension() != Some("sample".as_ref()) {
                    hooks.insert(directory.join(name), State::Special(fingerprint));
                }
            }
        }
    }
    hooks
}

/// What makes git take settings and hooks from another directory than those that were looked
/// at.
fn redirections(git: &Git, workspace: &Path) -> BTreeMap<PathBuf, State> {
    let mut found = BTreeMap::new();
    for directory in &git.directories {
        let path = directory.join("commondir");
        found.insert(path.clone(), State::of(&path));
    }
    for worktree in git.worktrees() {
        let path = worktree.join("commondir");
        let state = State::of(&path);
        // As git itself writes it.
        if state != State::File(b"../..\n".to_vec()) {
            found.insert(path, state);
        }
    }
    // Of what `.git` is if it is no such directory, nothing was looked at.
    if git.refused.is_some() {
        let path = workspace.join(".git");
        found.insert(path.clone(), State::of(&path));
    }
    found
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, what, why } = self;
        match what {
            Change::Appeared => write!(f, "{path:?} is new: {why}"),
            Change::Changed => write!(f, "{path:?} has changed: {why}"),
            Change::Setting(setting) => {
                const LONGEST: usize = 200;
                let shown: String = setting.chars().take(LONGEST).collect();
                write!(f, "{path:?} has a new setting {shown:?}: {why}")
            }
            Change::Malformed => write!(f, "{path:?} cannot be read: {why}"),
            Change::Replaced => write!(f, "{path:?} was replaced outside: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;
    use crate::{config::PathRequest, facts::tests::facts};

    struct Workspace {
        _directory: TempDir,
        path: PathBuf,
    }

    impl Workspace {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = fs::canonicalize(directory.path()).unwrap();
            let workspace = Self {
                _directory: directory,
                path,
            };
            workspace.write(".git/HEAD", "ref: refs/heads/main\n");
            workspace.write(".git/config", "[core]\n\tbare = false\n");
            workspace.write(".git/hooks/pre-commit.sample", "");
            workspace.write(".vscode/tasks.json", "{}");
            workspace
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.path.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn watch(&self) -> Watch {
            let mut facts = facts();
            facts.workspace = self.path.clone();
            facts.git = Git::find(&self.path, &facts.home);
            Watch::begin(&Config::default(), &facts)
        }

        /// What is found after `change`, as text without the workspace's path.
        fn found(&self, change: impl FnOnce()) -> Vec<String> {
            let watch = self.watch();
            assert_eq!(watch.findings(), []);
            change();
            let prefix = format!("{}/", self.path.display());
            let findings = watch.findings().into_iter();
            findings
                .map(|finding| finding.to_string().replace(&prefix, ""))
                .collect()
        }
    }

    #[test]
    fn new_and_changed_files_that_run_outside_are_found() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            workspace.write(".envrc", "evil");
            workspace.write(".vscode/tasks.json", "{ }");
            workspace.write(".husky/pre-commit", "evil");
            workspace.write("README.md", "fine");
        });
        assert_eq!(
            found,
            [
                "\".envrc\" is new: direnv runs it outside",
                "\".vscode\" has changed: VS Code runs its tasks outside",
                "\".husky\" is new: git runs its hooks",
            ]
        );
    }

    #[test]
    fn hooks_are_found_and_samples_are_not() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            workspace.write(".git/hooks/post-checkout", "evil");
            workspace.write(".git/hooks/update.sample", "");
        });
        assert_eq!(
            found,
            ["\".git/hooks/post-checkout\" is new: git runs them outside"]
        );
    }

    #[test]
    fn settings_that_run_programs_are_found_also_in_a_new_repository() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            workspace.write(
                ".git/config",
                "[core]\n\tbare = false\n\tfsmonitor = \"ev\\nil\"\n[user]\n\tname = x\n",
            );
        });
        assert_eq!(
            found,
            [
                "\".git/config\" has a new setting \"core.fsmonitor = ev\\nil\": makes git run a program"
            ]
        );
        fs::remove_dir_all(workspace.path.join(".git")).unwrap();
        let found = workspace.found(|| {
            workspace.write(".git/config", "[core]\n\thooksPath = x\n");
            workspace.write("x/pre-commit", "evil");
        });
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn what_leads_git_past_what_is_looked_at_is_found() {
        const EVIL: &str = "[core]\n\tfsmonitor = evil\n";
        let workspace = Workspace::new();
        let common = ".git/commondir";
        let found = workspace.found(|| workspace.write(common, "../x\n"));
        let why = "git takes settings and hooks from where it leads";
        assert_eq!(found, [format!("{common:?} is new: {why}")]);
        fs::remove_file(workspace.path.join(common)).unwrap();

        // A worktree that git made is nothing to tell of.
        let common = ".git/worktrees/t/commondir";
        let found = workspace.found(|| workspace.write(common, "../..\n"));
        assert_eq!(found, [""; 0]);
        let found = workspace.found(|| workspace.write(common, "../../../x\n"));
        assert_eq!(found, [format!("{common:?} is new: {why}")]);
        let found = workspace.found(|| workspace.write(".git/worktrees/t/config.worktree", EVIL));
        assert_eq!(found.len(), 1, "{found:?}");

        // Settings that git reads and we do not.
        let config = workspace.path.join(".git/config");
        for plant in [
            &(|| workspace.write(".git/config", &(" ".repeat(1 << 20) + EVIL))) as &dyn Fn(),
            &|| {
                workspace.write("config", EVIL);
                fs::remove_file(&config).unwrap();
                symlink("../config", &config).unwrap();
            },
        ] {
            fs::remove_file(&config).ok();
            workspace.write(".git/config", "");
            let found = workspace.found(plant);
            assert!(found[0].contains("config\" cannot be read"), "{found:?}");
        }

        // A repository in another form.
        let dot_git = workspace.path.join(".git");
        let found = workspace.found(|| {
            fs::rename(&dot_git, workspace.path.join("moved")).unwrap();
            symlink("moved", &dot_git).unwrap();
        });
        assert_eq!(found, [format!("\".git\" is new: {why}")]);
        fs::remove_file(workspace.path.join("config")).unwrap();
        let found = workspace.found(|| {
            workspace.write("HEAD", "ref: refs/heads/main\n");
            workspace.write("commondir", "moved\n");
        });
        assert_eq!(found, [format!("\"commondir\" is new: {why}")]);
    }

    #[test]
    fn files_that_settings_include_are_settings() {
        let workspace = Workspace::new();
        workspace.write(".git/config", "[include]\n\tpath = ../.gitconfig\n");
        workspace.write(".gitconfig", "");
        let found = workspace.found(|| workspace.write(".gitconfig", "[alias] x = !evil\n"));
        assert_eq!(
            found,
            ["\".gitconfig\" has a new setting \"alias.x = !evil\": makes git run a program"]
        );
        let found = workspace.found(|| workspace.write(".git/config", "[core\n"));
        assert!(
            found[0].starts_with("\".git/config\" cannot be read"),
            "{found:?}"
        );
    }

    #[test]
    fn what_was_hidden_and_is_another_file_now_is_told() {
        let workspace = Workspace::new();
        workspace.write(".env", "TOKEN=decoy");
        workspace.write("new", "TOKEN=other");
        let path = workspace.path.join(".env");
        let mut config = Config::default();
        config.hide.push(PathRequest {
            path: path.clone(),
            required: true,
            by: String::new(),
        });
        let mut facts = facts();
        facts.workspace = workspace.path.clone();
        let watch = Watch::begin(&config, &facts);
        workspace.write(".env", "written in place");
        assert_eq!(watch.findings(), []);
        fs::rename(workspace.path.join("new"), &path).unwrap();
        let found = watch.findings();
        let [Finding { what, .. }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(*what, Change::Replaced);
    }

    #[test]
    fn links_are_told_and_not_followed() {
        let workspace = Workspace::new();
        let found = workspace.found(|| {
            symlink("/dev/zero", workspace.path.join(".envrc")).unwrap();
            symlink("/", workspace.path.join(".idea")).unwrap();
        });
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
