use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::{config::PathRequest, facts::tests::facts, nofollow};

fn begin(config: &Config, facts: &Facts, keeping: Option<Keeping>) -> Watch {
    let plan = Plan::build(&Config::default(), facts).unwrap();
    Watch::begin(config, facts, &plan, keeping).unwrap()
}

struct Workspace {
    _directory: TempDir,
    state: TempDir,
    path: PathBuf,
}

impl Workspace {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(directory.path()).unwrap();
        let workspace = Self {
            _directory: directory,
            state: tempfile::tempdir().unwrap(),
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
        let keeping = Keeping {
            state: self.state.path().to_owned(),
            session: "1".to_owned(),
        };
        begin(&Config::default(), &facts, Some(keeping))
    }

    /// What is found after `change`, as text without the workspace's path.
    fn found(&self, change: impl FnOnce()) -> Vec<String> {
        let watch = self.watch();
        assert_eq!(watch.settle(&|| false), []);
        change();
        let prefix = format!("{}/", self.path.display());
        let findings = watch.end(None, &|| false).into_iter();
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
            "\".envrc\" is new: direnv runs it outside, when a shell enters the directory",
            "\".vscode\" has changed: VS Code runs its tasks outside, when it opens the directory",
            "\".husky\" is new: git's hooks run its commands outside, with commits",
        ]
    );
}

/// The link stays as it is, and what runs does not.
#[test]
fn what_a_link_to_a_file_that_runs_leads_to_is_told() {
    let workspace = Workspace::new();
    workspace.write("ai/rules.md", "mine");
    workspace.write("ai/commands/one.md", "mine");
    for (text, at) in [
        ("ai/rules.md", "CLAUDE.md"),
        ("../ai/commands", ".claude/commands"),
        ("/etc/hostname", "AGENTS.md"),
    ] {
        fs::create_dir_all(workspace.path.join(".claude")).unwrap();
        symlink(text, workspace.path.join(at)).unwrap();
    }
    let found = workspace.found(|| {
        workspace.write("ai/rules.md", "evil");
        workspace.write("ai/commands/one.md", "evil");
        workspace.write("ai/other", "fine");
    });
    let why = "Claude Code runs or obeys it outside, when it starts here";
    assert_eq!(
        found,
        ["ai/commands", "ai/rules.md"].map(|path| format!("{path:?} has changed: {why}"))
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
        ["undone: \".git/hooks/post-checkout\" is new: git runs them outside"]
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
            "undone: \".git/config\" has a new setting \"core.fsmonitor = ev\\nil\": makes git run a program"
        ]
    );
    fs::remove_dir_all(workspace.path.join(".git")).unwrap();
    let found = workspace.found(|| {
        workspace.write(".git/config", "[core]\n\thooksPath = x\n");
        workspace.write("x/pre-commit", "evil");
    });
    assert_eq!(
        found,
        [
            "undone: \".git/config\" has a new setting \"core.hookspath = x\": makes git run a program"
        ]
    );
    let left = fs::read_to_string(workspace.path.join(".git/config"));
    assert!(left.is_err(), "{left:?}");
}

#[test]
fn what_leads_git_past_what_is_looked_at_is_found() {
    const EVIL: &str = "[core]\n\tfsmonitor = evil\n";
    let workspace = Workspace::new();
    let common = ".git/commondir";
    let found = workspace.found(|| workspace.write(common, "../x\n"));
    let why = "git takes settings and hooks from where it leads";
    assert_eq!(found, [format!("undone: {common:?} is new: {why}")]);
    assert!(!workspace.path.join(common).exists());

    // A worktree that git made is nothing to tell of.
    let common = ".git/worktrees/t/commondir";
    let found = workspace.found(|| workspace.write(common, "../..\n"));
    assert_eq!(found, [""; 0]);
    let found = workspace.found(|| workspace.write(common, "../../../x\n"));
    assert_eq!(found, [format!("undone: {common:?} has changed: {why}")]);
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
    assert_eq!(found, [format!("undone: \".git\" is new: {why}")]);
    assert!(fs::symlink_metadata(&dot_git).is_err());
    fs::remove_file(workspace.path.join("config")).unwrap();
    let found = workspace.found(|| {
        workspace.write("HEAD", "ref: refs/heads/main\n");
        workspace.write("commondir", "moved\n");
    });
    assert_eq!(found, [format!("undone: \"commondir\" is new: {why}")]);
}

#[test]
fn files_that_settings_include_are_settings() {
    let workspace = Workspace::new();
    workspace.write(".git/config", "[include]\n\tpath = ../.gitconfig\n");
    workspace.write(".gitconfig", "");
    let found = workspace.found(|| workspace.write(".gitconfig", "[alias] x = !evil\n"));
    assert_eq!(
        found,
        ["undone: \".gitconfig\" has a new setting \"alias.x = !evil\": makes git run a program"]
    );
    let found = workspace.found(|| workspace.write(".git/config", "[core\n"));
    assert!(
        found[0].starts_with("undone: \".git/config\" cannot be read"),
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
    let watch = begin(&config, &facts, None);
    workspace.write(".env", "written in place");
    assert_eq!(watch.settle(&|| false), []);
    fs::rename(workspace.path.join("new"), &path).unwrap();
    let found = watch.settle(&|| false);
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

/// Who presses Ctrl-C at the end does not wait, is told so, and is safe at the top.
#[test]
fn links_among_gits_files_are_found_at_any_depth() {
    let workspace = Workspace::new();
    let links = [
        ".git/lfs/objects/aa/bb/object",
        ".git/logs/refs/heads/objects/ab/branch",
        ".git/objects/ab/cdef",
        ".git/objects/info/commit-graph",
        ".git/rr-cache/0123/thisimage",
    ];
    let mut found = workspace.found(|| {
        for link in links {
            let link = workspace.path.join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink("/etc/hostname", link).unwrap();
        }
    });
    let expected = links.map(|link| {
        format!("undone: \"{link}\" is new: git takes settings and hooks from where it leads")
    });
    found.sort();
    assert_eq!(found, expected);
}

/// Git writes its log through them, and what it writes is the session's to choose.
#[test]
fn no_link_among_gits_files_is_too_deep_or_among_too_many() {
    let workspace = Workspace::new();
    let path = |below: &str| workspace.path.join(below);
    let link = |below: &str| {
        fs::create_dir_all(path(below).parent().unwrap()).unwrap();
        symlink("/etc/hostname", path(below)).unwrap();
    };
    let is_there = |below: &str| fs::symlink_metadata(path(below)).is_ok();
    // By their number, and by the length of the path, which is longer for us than for git.
    for branch in [
        "a/".repeat(70) + "b",
        ("a".repeat(250) + "/").repeat(15) + "b",
    ] {
        let log = format!(".git/logs/refs/heads/{branch}");
        let length = path(&log).as_os_str().len();
        assert!(length < 4000, "{length}");
        let found = workspace.found(|| link(&log));
        assert!(!is_there(&log), "{found:?}");
    }
    // More than are listed, and as many as there is no time for.
    const MANY: usize = nofollow::MOST_ENTRIES + 1;
    for (below, links) in [
        (".git/logs", [".git/logs/HEAD", ".git/logs/refs/heads/main"]),
        (
            ".git/logs/refs/heads",
            [".git/logs/HEAD", ".git/logs/refs/heads/main"],
        ),
        (".git", [".git/logs/HEAD", ".git/rr-cache/0/thisimage"]),
    ] {
        let found = workspace.found(|| {
            links.iter().for_each(|it| link(it));
            for number in 0..MANY {
                File::create(path(&format!("{below}/{number}"))).unwrap();
            }
        });
        for link in links {
            assert!(!is_there(link), "{below} {link}: {found:?}");
        }
        fs::remove_dir_all(path(".git")).unwrap();
        workspace.write(".git/HEAD", "ref: refs/heads/main\n");
    }
}

#[test]
fn a_submodule_that_is_another_repository_is_put_back() {
    let workspace = Workspace::new();
    let other = tempfile::tempdir().unwrap();
    let found = workspace.found(|| {
        let git = |words: &str| {
            let mut git = std::process::Command::new("git");
            let git = git.args(words.split(' ')).current_dir(&workspace.path);
            assert!(git.status().unwrap().success());
        };
        git("init -q .");
        git("update-index --add --cacheinfo 160000,0123456789012345678901234567890123456789,sub");
        let text = format!("gitdir: {}\n", other.path().display());
        workspace.write("sub/.git", &text);
    });
    let is_of_sub = |line: &&String| line.starts_with("undone: \"sub/.git\" is new");
    assert_eq!(found.iter().filter(is_of_sub).count(), 1, "{found:?}");
    assert!(!workspace.path.join("sub/.git").exists());
}

/// All of them come at once, and each takes time to be put back.
#[test]
fn very_many_files_do_not_keep_the_settings_of_a_submodule_from_being_put_back() {
    const MANY: usize = nofollow::MOST_ENTRIES - 1000;
    let file = |path: PathBuf| drop(File::create(path).unwrap());
    let link = |path: PathBuf| symlink("/etc/hostname", path).unwrap();
    let kinds: [(&str, &dyn Fn(PathBuf)); 4] = [
        (".git/branches", &file),
        (".git/remotes", &file),
        ("a/.git/hooks", &file),
        (".git/logs", &link),
    ];
    for (below, make) in kinds {
        let workspace = Workspace::new();
        let git = |words: &str| {
            let mut git = std::process::Command::new("git");
            let git = git.args(words.split(' ')).current_dir(&workspace.path);
            assert!(git.status().unwrap().success());
        };
        git("init -q .");
        let decoys = workspace.path.join(".git/decoys");
        let found = workspace.found(|| {
            for name in ["a", "sub"] {
                let blob = "0123456789012345678901234567890123456789";
                git(&format!(
                    "update-index --add --cacheinfo 160000,{blob},{name}"
                ));
                workspace.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
                workspace.write(&format!("{name}/.git/config"), "");
            }
            workspace.write("sub/.git/config", "[core]\n\tfsmonitor = evil\n");
            workspace.write("sub/.git/hooks/post-index-change", "evil");
            fs::create_dir(&decoys).unwrap();
            (0..MANY).for_each(|number| make(decoys.join(number.to_string())));
            let below = workspace.path.join(below);
            fs::remove_dir_all(&below).ok();
            fs::rename(&decoys, below).unwrap();
        });
        let left = fs::read_to_string(workspace.path.join("sub/.git/config")).unwrap_or_default();
        assert!(!left.contains("evil"), "{below}: {found:?}");
        let hook = workspace.path.join("sub/.git/hooks/post-index-change");
        assert!(!hook.exists(), "{below}: {found:?}");
        assert!(
            !workspace.path.join(below).join("0").exists(),
            "{below}: {found:?}"
        );
    }
}

#[test]
fn what_there_was_no_time_for_at_the_start_is_not_called_new() {
    let workspace = Workspace::new();
    let mut watch = workspace.watch();
    let vscode = workspace.path.join(".vscode");
    assert!(watch.baseline.contents.remove(&vscode).is_some());
    let what = |watch: &Watch| {
        let findings = watch.settle(&|| false).into_iter();
        let about = findings.filter(|it| it.path == vscode);
        about.map(|it| it.what).collect::<Vec<_>>()
    };
    assert_eq!(what(&watch), [Change::Appeared]);
    watch.baseline.is_partial = true;
    assert_eq!(what(&watch), [Change::Unseen]);
}

#[test]
fn steps_of_a_rebase_that_waited_are_put_back_while_the_session_runs() {
    const OWN: &str = "pick 1 a\nexec make test\n";
    for (name, before) in [
        ("rebase-merge/git-rebase-todo", Some(OWN)),
        ("rebase-merge/git-rebase-todo", Some("")),
        ("worktrees/tree/rebase-merge/git-rebase-todo", Some(OWN)),
        ("rebase-merge/git-rebase-todo", None),
    ] {
        let workspace = Workspace::new();
        workspace.write(".git/worktrees/tree/HEAD", "ref: refs/heads/tree\n");
        workspace.write(".git/worktrees/tree/commondir", "../..\n");
        let name = format!(".git/{name}");
        if let Some(before) = before {
            workspace.write(&name, before);
        }
        let watch = workspace.watch();
        let planted = format!("{}  x touch ran\n", before.unwrap_or_default());
        workspace.write(&name, &planted);
        let bounds = Bounds::new(END, MOST_FILES, &|| false);
        let (found, places, _) = watch.settle_known(&bounds, false);
        let now = || fs::read_to_string(workspace.path.join(&name)).unwrap();
        // The session needs the steps of a rebase of its own until the end.
        assert_eq!(now(), before.unwrap_or(&planted), "{found:?}");
        assert_eq!(found.is_empty(), before.is_none(), "{found:?}");
        // The kernel tells of each change.
        let path = workspace.path.join(&name);
        assert!(places.are_told_of(&path));
        assert!(!places.are_told_of(&path.with_file_name("message")));
        let ended = watch.end(None, &|| false);
        assert_eq!(ended.is_empty(), before.is_some(), "{ended:?}");
        assert_eq!(now(), before.unwrap_or_default());
    }
}

/// One that leads where no session can write, and that git at the top does not come to.
#[test]
fn a_git_file_that_leads_away_is_put_back_if_it_is_new() {
    let workspace = Workspace::new();
    let other = tempfile::tempdir().unwrap();
    let text = format!("gitdir: {}\n", other.path().display());
    let mine = ["tree/.git", "deep/in/the/tree/.git"];
    for path in mine {
        workspace.write(path, &text);
    }
    let is_older = |path: &&str| {
        let metadata = fs::symlink_metadata(workspace.path.join(path)).unwrap();
        metadata.modified().unwrap() < a_moment_ago()
    };
    while !mine.iter().all(is_older) {
        std::thread::yield_now();
    }
    let new = "src/lib/x/.git";
    let link = || symlink(other.path(), workspace.path.join(new)).unwrap();
    for plant in [
        &(|| workspace.write(new, &text)) as &dyn Fn(),
        &link as &dyn Fn(),
    ] {
        let found = workspace.found(plant);
        let why = "git takes settings and hooks from where it leads";
        assert_eq!(found, [format!("undone: {new:?} is new: {why}")]);
        assert!(fs::symlink_metadata(workspace.path.join(new)).is_err());
    }
    assert!(mine.iter().all(|path| workspace.path.join(path).exists()));
}

/// Git pushes to all addresses of a remote, whichever file they are in.
#[test]
fn no_remote_gets_a_second_address_in_another_file() {
    let workspace = Workspace::new();
    let settings = "[extensions]\n\tworktreeConfig\n\
        [remote \"origin\"]\n\turl = https://example.com/a\n";
    workspace.write(".git/config", settings);
    let remote = |name| format!("[remote \"{name}\"]\n\turl = https://example.net/b\n");
    let other = ".git/config.worktree";
    let found = workspace.found(|| workspace.write(other, &remote("origin")));
    assert_eq!(
        found,
        [format!(
            "undone: {other:?} has a new setting \"remote.origin.url = https://example.net/b\": \
             makes git talk to another repository"
        )]
    );
    let found = workspace.found(|| workspace.write(other, &remote("fork")));
    assert_eq!(found, [""; 0]);
    fs::remove_file(workspace.path.join(other)).unwrap();
    // Nor one that is new in both: in the first file, it looks like a remote that was renamed.
    let renamed = settings.replace("origin", "fork");
    let found = workspace.found(|| {
        workspace.write(".git/config", &renamed);
        workspace.write(other, &remote("fork"));
    });
    let left = fs::read_to_string(workspace.path.join(".git/config")).unwrap();
    assert_eq!(left, settings, "{found:?}");
    assert!(!workspace.path.join(other).exists());
}

/// The settings of the repository that was there are not compared with those of another one.
#[test]
fn no_worktree_gets_another_repository() {
    const WHY: &str = "git takes settings and hooks from where it leads";
    let workspace = Workspace::new();
    let repository = |path: &str| {
        workspace.write(&format!("{path}/HEAD"), "ref: refs/heads/main\n");
        workspace.write(&format!("{path}/config"), "[core]\n\tbare = false\n");
        for name in ["objects/x", "refs/x"] {
            workspace.write(&format!("{path}/{name}"), "");
        }
    };
    repository("own/.git");
    repository(".git/modules/sub");
    workspace.write("sub/.git", "gitdir: ../.git/modules/sub\n");
    // Positive control: what a session makes itself may be anything.
    let found = workspace.found(|| {
        repository(".git/modules/new");
        workspace.write("new/.git", "gitdir: ../.git/modules/new\n");
    });
    assert_eq!(found, [""; 0]);

    let path = |name: &str| workspace.path.join(name);
    let found = workspace.found(|| {
        fs::rename(path("own/.git"), path("own/other")).unwrap();
        workspace.write("own/.git", "gitdir: other\n");
        repository(".git/modules/evil");
        workspace.write("sub/.git", "gitdir: ../.git/modules/evil\n");
    });
    assert_eq!(
        found,
        [
            format!("undone: \"own/.git\" is new: {WHY}"),
            format!("undone: \"sub/.git\" has changed: {WHY}")
        ]
    );
    assert!(!path("own/.git").exists());
    let is_back = || {
        let text = fs::read_to_string(path("sub/.git")).unwrap_or_default();
        assert_eq!(text, "gitdir: ../.git/modules/sub\n");
    };
    is_back();
    let found = workspace.found(|| {
        fs::remove_file(path("sub/.git")).unwrap();
        repository("sub/.git");
    });
    let begin = format!("undone: \"sub/.git\" has changed: {WHY}; what was there is in ");
    let is_told = |it: &String| it.starts_with(&begin) && it.ends_with(".stockade\"");
    assert!(found.len() == 1 && found.iter().all(is_told), "{found:?}");
    is_back();
}

#[test]
fn an_end_that_is_interrupted_says_so_and_has_looked_at_the_top() {
    let workspace = Workspace::new();
    let watch = workspace.watch();
    workspace.write(".git/config", "[core]\n\tfsmonitor = evil\n");
    workspace.write(".envrc", "evil");
    workspace.write("deep/er/.git/HEAD", "");
    workspace.write("deep/er/.git/config", "[core]\n\tfsmonitor = evil\n");
    let found = watch.end(None, &|| true);
    assert_eq!(found[0].what, Change::Unseen, "{found:?}");
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        text.iter().any(|line| line.contains("was interrupted")),
        "{text:?}"
    );
    let left = fs::read_to_string(workspace.path.join(".git/config")).unwrap();
    assert_eq!(
        left, "[core]\n",
        "what it took out and only described stays out"
    );
    let deep = || fs::read_to_string(workspace.path.join("deep/er/.git/config"));
    assert!(deep().unwrap().contains("evil"), "nobody looked there");
    // Positive control: with time, the rest is looked at, too.
    let found = watch.end(None, &|| false);
    assert!(
        found.iter().all(|finding| finding.what != Change::Unseen),
        "{found:?}"
    );
    assert!(!deep().unwrap_or_default().contains("evil"));
}

/// An older session's baseline counts as long as one of its sessions lives.
#[test]
fn a_baseline_is_shared_while_sessions_live_and_not_after() {
    let workspace = Workspace::new();
    let session = |number: &str| {
        let mut facts = facts();
        facts.workspace = workspace.path.clone();
        facts.git = Git::find(&workspace.path, &facts.home);
        let keeping = Keeping {
            state: workspace.state.path().to_owned(),
            session: number.to_owned(),
        };
        let config = Config {
            git: GitSettings::Tell,
            ..Config::default()
        };
        begin(&config, &facts, Some(keeping))
    };
    let first = session("1");
    workspace.write(".envrc", "evil");
    let second = session("2");
    assert_eq!(second.end(None, &|| false).len(), 1);
    drop(second);
    assert_eq!(first.end(None, &|| false).len(), 1);
    drop(first);
    let third = session("3");
    assert_eq!(third.end(None, &|| false), []);
    drop(third);
    // A launch that failed leaves nothing to tell.
    drop(session("f"));
    workspace.write(".vimrc", "mine");
    let after = session("a");
    assert_eq!(after.begun(), []);
    drop(after);
    // One that was killed never looked: the next one does.
    let killed = session("4");
    workspace.write(".exrc", "evil");
    let baselines = workspace.state.path().join("baselines");
    let mut directories = fs::read_dir(baselines).unwrap();
    let baseline = directories.next().unwrap().unwrap().path().join("baseline");
    let bytes = fs::read(&baseline).unwrap();
    drop(killed);
    fs::write(&baseline, bytes).unwrap();
    let next = session("5");
    assert_eq!(next.begun().len(), 1, "{:?}", next.begun());
    assert_eq!(next.end(None, &|| false), []);
}

/// Other programs may keep the processors busy.
#[test]
fn there_is_time_for_the_settings_of_repositories_that_were_there_however_busy_the_machine_is() {
    use crate::git::repositories::Repository;
    let workspace = Workspace::new();
    let watch = workspace.watch();
    let own = workspace.path.join(".git");
    let new = workspace.path.join("new/.git");
    for directory in ["objects", "refs"] {
        fs::create_dir_all(new.join(directory)).unwrap();
    }
    workspace.write("new/.git/HEAD", "ref: refs/heads/main\n");
    let before = fs::read_to_string(own.join("config")).unwrap();
    let planted = format!("{before}\tfsmonitor = evil\n");
    workspace.write("new/.git/config", &planted);
    let mut repositories = Repositories::default();
    for directory in [&own, &new] {
        let root = directory.parent().unwrap().to_owned();
        let repository = Repository {
            roots: [root].into(),
            is_reached: true,
        };
        repositories.found.insert(directory.clone(), repository);
    }
    for is_brief in [false, true] {
        workspace.write(".git/config", &planted);
        repositories.is_brief = is_brief;
        let settlement = Settlement::begin(&watch, &[], false);
        settlement.compare(&repositories, &Bounds::new(Duration::ZERO, 0, &|| false));
        let found = settlement.end();
        let is_back = |git: &Path| fs::read_to_string(git.join("config")).unwrap() == before;
        assert!(is_back(&own), "{found:?}");
        // Positive control: for others there is none. The brief look is at the own one alone.
        assert!(is_brief || !is_back(&new), "{found:?}");
    }
}

mod ways;
