//! What a session planted for the next one, where the user's own links, variables and search
//! path lead to it (F3, F5, F11).

use std::collections::BTreeSet;

use stockade_world::{Laptop, Output, test};

use super::f_files::{said, secrets};
use super::probe::{INSIDE, Place};
use crate::support::standard;

/// A session of this command, with these variables.
fn session(laptop: &Laptop, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = laptop.stockade(["run", "--quiet"]).args(words);
    for (name, value) in variables {
        command = command.env(name, value);
    }
    command.run().expect("an end")
}

/// A link of the user's leads into the workspace, where a session put another one.
#[test]
fn f05_what_the_users_own_links_lead_to_is_not_for_the_command_to_choose() {
    // The link, what it leads to, and what makes use of it.
    let certificate: &[(&str, &str)] = &[("SSL_CERT_FILE", "/home/dev/led")];
    type Way<'a> = (&'a str, &'a str, &'a [&'a str], &'a [(&'a str, &'a str)]);
    let ways: [Way<'_>; 5] = [
        ("~/led", "data", &["--read", "~/led"], &[]),
        ("~/led", "data", &["--write", "~/led"], &[]),
        ("~/.claude", "data", &["--profile", "claude"], &[]),
        ("~/.terminfo", "data", &[], &[]),
        ("~/led", "data/x", &[], certificate),
    ];
    let look = "cat ~/led ~/led/* ~/.claude/* ~/.terminfo/* ~/.ssh/*
        for d in ~/led ~/.claude ~/.terminfo ~/.ssh; do echo planted > $d/planted; done";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let planted = laptop.home().join(".ssh/planted");
        said(laptop, Place::Outside, "cp ~/.ssh/id_ed25519 ~/.ssh/x");
        for (link, text, options, variables) in ways {
            let before = format!(
                "mkdir data; echo mine -----BEGIN CERTIFICATE----- > data/x; ln -s project/{text} {link}"
            );
            said(laptop, Place::Outside, &before);
            let words = [options, &["--", "bash", "-c", look]].concat();
            // Positive control: the link itself is the user's, and followed.
            let output = session(laptop, &words, variables);
            assert!(output.stdout().contains("mine"), "{options:?}: {output:?}");
            // Of a session that shows nothing of this.
            said(laptop, INSIDE, "rm -r data; ln -s ../.ssh data");
            let output = session(laptop, &words, variables);
            assert_eq!(secrets(&output.stdout()), BTreeSet::new(), "{options:?}");
            assert!(!planted.exists(), "{options:?}");
            // In another workspace nothing tells whose the link is that leads there. What the
            // user names is shown then, with a warning.
            if !options.contains(&"~/led") {
                let elsewhere = "mkdir -p ../second; cd ../second; exec \"$@\"";
                let start = ["-c", elsewhere, "sh", "stockade", "run", "--quiet"];
                let mut command = laptop.command("sh").args(start).args(&words);
                for (name, value) in variables {
                    command = command.env(name, value);
                }
                let output = command.run().expect("an end");
                assert_eq!(secrets(&output.stdout()), BTreeSet::new(), "{options:?}");
                assert!(!planted.exists(), "{options:?}");
            }
            // The detector works.
            let outside = said(laptop, Place::Outside, look);
            assert!(!secrets(&outside).is_empty() && planted.exists());
            let after = format!("rm -rf data {link} ~/.ssh/planted");
            said(laptop, Place::Outside, &after);
        }
    });
}

/// Programs that are found where the command can write decide nothing about the rest.
#[test]
fn f11_a_planted_program_brings_nothing_of_the_users_into_view() {
    const TOOLS: &str = "mkdir -p ~/tools/bin ~/tools/lib .venv/bin ~/.claude ~/.local/bin ~/npm
        cp ~/.ssh/id_ed25519 ~/tools/key
        printf '#!/bin/sh\\ncat ~/tools/key\\n' > ~/tools/bin/tool; chmod +x ~/tools/bin/tool
        ln -s ~/.claude/local/claude ~/.local/bin/claude
        printf '#!/usr/bin/env node\\n' > ~/npm/codex; chmod +x ~/npm/codex";
    const PLANT: &str = "mkdir -p ~/.claude/local
        for name in pytest node claude; do ln -sf ~/tools/bin/tool .venv/bin/$name; done";
    let links = "ln -s ~/tools/bin/tool ~/.claude/local/claude";
    let script = "echo '#!/home/dev/tools/bin/tool' > ~/.claude/local/claude
        chmod +x ~/.claude/local/claude";
    let by_name = "printf '#!/usr/bin/env tool\\n' > ~/.claude/local/claude
        chmod +x ~/.claude/local/claude";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, TOOLS);
        let path = "/home/dev/project/.venv/bin:/home/dev/.local/bin:/home/dev/npm:/usr/bin:/bin:\
            /home/dev/tools/bin";
        let variables = [("PATH", path)];
        // Positive control: a program that the user runs is shown with what it needs.
        let tool = session(laptop, &["--", "tool"], &variables);
        assert_eq!(secrets(&tool.stdout()).len(), 1, "{tool:?}");
        for plant in [links, script, by_name] {
            said(laptop, Place::Outside, "rm -rf ~/.claude/local");
            let plant = format!("{PLANT}; {plant}");
            let planted = ["--profile", "claude", "--", "bash", "-c", &plant];
            session(laptop, &planted, &[]).expect_success();
            for command in ["pytest", "claude", "codex", ".venv/bin/pytest"] {
                let output = session(laptop, &["--", command], &variables);
                assert_eq!(secrets(&output.stdout()), BTreeSet::new(), "{command}");
                let plan = laptop.stockade(["plan", "--", command]);
                let plan = plan.env("PATH", path).run().expect("a plan").stdout();
                let shown = |line: &&str| line.contains("read-only") && line.contains("/tools");
                assert_eq!(plan.lines().find(shown), None, "{command}");
            }
        }
    });
}

/// Some agents install themselves in the directory of their settings, which they can write.
#[test]
fn f03_an_agent_that_lives_among_its_settings_cannot_change_itself() {
    const INSTALL: &str = "mkdir -p ~/.claude/local/node_modules/c ~/.local/bin
        printf '#!/bin/sh\\nexec sh ~/.claude/local/node_modules/c/cli \"$@\"\\n' \\
            > ~/.claude/local/claude
        echo 'eval \"$1\"' > ~/.claude/local/node_modules/c/cli; chmod +x ~/.claude/local/claude
        ln -sf ~/.claude/local/claude ~/.local/bin/claude";
    const ATTACK: &str = "cd ~/.claude; echo kept > settings; echo evil > local/claude
        echo evil > local/node_modules/c/cli; mv local/node_modules local/n; touch local/new
        mv local old; cd ~/dotfiles/claude && echo evil > local/node_modules/c/cli; true";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let path = [("PATH", "/home/dev/.local/bin:/usr/bin:/bin")];
        let installed = "cd ~/.claude/local; find . -type f | sort; cat claude node_modules/c/cli";
        for place in [
            "mkdir ~/.claude",
            "mkdir -p ~/dotfiles/claude; ln -s dotfiles/claude ~/.claude",
        ] {
            said(laptop, Place::Outside, &format!("{place}; {INSTALL}"));
            let before = said(laptop, Place::Outside, installed);
            // By itself, and by a shell with its profile.
            for words in [
                &["--", "claude", ATTACK][..],
                &["--profile", "claude", "--", "sh", "-c", ATTACK],
            ] {
                let output = session(laptop, words, &path);
                output.expect_success();
                let after = said(laptop, Place::Outside, installed);
                assert_eq!(after, before, "{place}: {words:?}");
                // It ran, and the rest of the directory is its own.
                let kept = said(
                    laptop,
                    Place::Outside,
                    "cat ~/.claude/settings; rm ~/.claude/settings",
                );
                assert_eq!(kept, "kept\n", "{place}: {words:?}");
            }
            said(laptop, Place::Outside, ATTACK);
            let changed = said(laptop, Place::Outside, installed);
            assert_ne!(changed, before, "the detector works");
            said(laptop, Place::Outside, "rm -rf ~/.claude ~/dotfiles");
        }
    });
}

/// Claude Code has its shells read a file among its settings before each command. One that runs
/// outside at the same time does not read what a session wrote.
#[test]
fn f03_what_an_agents_shells_read_outside_is_not_the_sessions_to_write() {
    const ATTACK: &str = "cd ~/.claude; echo kept > settings; cat shell-snapshots/*
        echo evil > shell-snapshots/snapshot-bash-1.sh; cat shell-snapshots/*
        mv shell-snapshots old; cd ~/dotfiles/claude && echo evil > shell-snapshots/more; true";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for place in [
            "mkdir ~/.claude",
            "mkdir -p ~/dotfiles/claude; ln -s dotfiles/claude ~/.claude",
        ] {
            let prepare = "mkdir ~/.claude/shell-snapshots
                echo alias > ~/.claude/shell-snapshots/snapshot-bash-1.sh";
            said(laptop, Place::Outside, &format!("{place}; {prepare}"));
            let words = ["--profile", "claude", "--", "sh", "-c", ATTACK];
            let output = session(laptop, &words, &[]).expect_success();
            // It has a directory of its own to write to.
            assert_eq!(output.stdout(), "evil\n", "{place}");
            let left = "cd ~/.claude; cat settings; ls shell-snapshots; cat shell-snapshots/*";
            let left = said(laptop, Place::Outside, left);
            assert_eq!(left, "kept\nsnapshot-bash-1.sh\nalias\n", "{place}");
            said(laptop, Place::Outside, "rm -rf ~/.claude ~/dotfiles");
        }
    });
}

/// Whatever makes git run a program of the session's outside is told of, in whatever way git is
/// led to it.
#[test]
fn f05_what_leads_git_to_other_settings_is_told_at_the_end() {
    const REPOSITORY: &str = "rm -rf .git * ../tree; git init -q; rm -rf .git/hooks
        git -c user.name=a -c user.email=a commit -q --allow-empty -m one
        git worktree add -q ../tree";
    const EVIL: &str = "printf '#!/bin/sh\\ntouch ~/ran\\n' > evil; chmod +x evil
        mkdir x; cp -r .git/HEAD .git/refs .git/objects .git/worktrees x
        printf '[core]\\n\\tfsmonitor = /home/dev/project/evil\\n' > x/config";
    let plants = [
        "true",
        "git config core.fsmonitor $PWD/evil",
        "echo ../x > .git/commondir",
        "echo ../../../x > .git/worktrees/tree/commondir",
        "cp x/config .git/worktrees/tree/config.worktree
            git config extensions.worktreeConfig true",
        "ln -sf ../x/config .git/config",
        "head -c 1100000 /dev/zero | tr '\\0' '\\n' >> .git/config; cat x/config >> .git/config",
        "mv .git y; ln -s y .git; cp x/config y",
        "mv .git y; cp x/config y; printf 'gitdir: y\\n\\n' > .git",
        "mv .git/HEAD .git/head; cp -r x/* .; printf '\\tsshCommand = /home/dev/project/evil\\n' >> config",
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (number, plant) in plants.into_iter().enumerate() {
            said(laptop, Place::Outside, REPOSITORY);
            let plant = match number {
                0 => plant.to_owned(),
                _ => format!("{EVIL}; {plant}"),
            };
            let words = ["run", "--", "bash", "-c", &plant];
            let output = laptop.stockade(words).run().expect("an end");
            assert_eq!(
                output.stderr().is_empty(),
                number == 0,
                "{plant}: {output:?}"
            );
            // It does not work any more; `p_git` has the positive controls.
            let status = "git status; git fetch ssh://a/b; cd ../tree; git status";
            said(laptop, Place::Outside, status);
            let ran = said(laptop, Place::Outside, "ls ~/ran && rm ~/ran");
            assert_eq!(ran, "", "{plant}");
        }
    });
}

#[test]
fn f05_dependencies_that_other_projects_share_change_inside_only() {
    // As uv, pnpm and bun install: all projects have the files of one store.
    const INSTALL: &str = "mkdir -p ~/store; echo module.exports=1 > ~/store/index.js
        for at in ~/project/node_modules/a ~/project/web/.venv/lib/a ~/other/node_modules/a; do
            mkdir -p $at; ln -f ~/store/index.js $at
        done";
    const CHANGE: &str = "cd ~/project
        for at in node_modules/a web/.venv/lib/a; do
            echo evil > $at/index.js && mkdir $at/new && mv $at $at.moved && cat $at.moved/index.js
        done
        mv web web.moved; echo evil > web.moved/.venv/lib/a.moved/index.js
        mv node_modules elsewhere; rm -r node_modules; echo evil > src.js";
    const LOOK: &str = "cat ~/store/* ~/other/node_modules/a/* ~/project/src.js
        cd ~/project; find . -name index.js | sort; find . -name new";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for nested in ["--nested=false", "--nested"] {
            said(laptop, Place::Outside, INSTALL);
            let words = ["run", nested, "--", "bash", "-c", CHANGE];
            let output = laptop.stockade(words).run().expect("an end");
            // Positive control: it was changed, as seen from inside, and so was the workspace.
            assert_eq!(output.stdout(), "evil\nevil\n", "{output:?}");
            let stderr = output.stderr();
            assert!(
                stderr.contains("by hard links, so changes to it are discarded"),
                "{stderr}"
            );
            assert!(stderr.contains("node_modules were discarded"), "{stderr}");
            let outside = said(laptop, Place::Outside, LOOK);
            assert_eq!(
                outside,
                "module.exports=1\nmodule.exports=1\nevil\n\
                 ./node_modules/a/index.js\n./web.moved/.venv/lib/a/index.js\n",
                "{nested}"
            );
            said(laptop, Place::Outside, "cd ~/project; rm -r web.moved");
        }
        // Positive control: the links are what an attack needs, where the user gives them.
        said(laptop, Place::Outside, INSTALL);
        let change = "echo evil > node_modules/a/index.js";
        let words = ["run", "--write", "node_modules", "--", "bash", "-c", change];
        laptop
            .stockade(words)
            .run()
            .expect("an end")
            .expect_success();
        assert_eq!(
            said(laptop, Place::Outside, "cat ~/other/node_modules/a/*"),
            "evil\n"
        );
    });
}

/// A session fills a directory, the user installs there, and the next session looks for the links.
#[test]
fn f05_what_a_session_puts_beside_dependencies_hides_no_link() {
    const FILL: &str =
        "cd ~/project; mkdir -p .venv/lib/a; for d in .venv .venv/lib .venv/lib/a; do
            for n in 1 2 3 4 5 6 7 8; do mkdir -p $d/$n; (cd $d/$n; touch $(seq 300)); done
        done; cd .venv; find . -type f | wc -l";
    const INSTALL: &str = "mkdir -p ~/.cache/uv ~/other; echo good > ~/.cache/uv/a.py
        ln -f ~/.cache/uv/a.py ~/project/.venv/lib/a/a.py; ln -f ~/.cache/uv/a.py ~/other/a.py";
    const CHANGE: &str = "cd ~/project; echo evil > .venv/lib/a/a.py; cat .venv/lib/a/a.py";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let run = |change| {
            let words = ["run", "--", "bash", "-c", change];
            laptop.stockade(words).run().expect("an end").stdout()
        };
        assert_eq!(run(FILL), "7200\n");
        // Positive control: what is filled and has no link is the workspace's own.
        assert_eq!(
            said(laptop, Place::Outside, "ls ~/project/.venv/8 | wc -l"),
            "300\n"
        );
        said(laptop, Place::Outside, INSTALL);
        assert_eq!(run(CHANGE), "evil\n");
        assert_eq!(said(laptop, Place::Outside, "cat ~/other/a.py"), "good\n");
        // Positive control: with the links, it would be changed everywhere.
        said(laptop, Place::Outside, CHANGE);
        assert_eq!(said(laptop, Place::Outside, "cat ~/other/a.py"), "evil\n");
    });
}

/// A session makes a link, the user installs through it, and the next session writes where it leads.
#[test]
fn f05_links_to_elsewhere_in_the_workspace_hide_no_dependencies() {
    const INSTALL: &str = "mkdir -p ~/.cache/uv ~/other; echo good > ~/.cache/uv/a.py
        ln -f ~/.cache/uv/a.py ~/project/.venv/lib/a.py; ln -f ~/.cache/uv/a.py ~/other/a.py";
    const CHANGE: &str = "cd ~/project; echo evil > .venv/lib/a.py; cat .venv/lib/a.py
        echo evil > .v/lib/a.py; mv .v .w; echo evil > .w/lib/a.py; echo kept > src.py";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |script: &str| said(laptop, Place::Outside, script);
        let run = |script| {
            let words = ["run", "--", "bash", "-c", script];
            laptop.stockade(words).run().expect("an end")
        };
        for link in [
            "mkdir -p .v/lib; ln -s .v .venv",
            "mkdir -p .venv .v/lib; ln -s ../.v/lib .venv/lib",
            "mkdir -p .venv/x .v/lib; ln -s ../.v .venv/y; ln -s x/../y/lib .venv/lib",
            "mkdir -p .v/.git/lib; ln -s .git/lib .v/lib; ln -s .v .venv",
        ] {
            outside("cd ~; rm -rf project/.v* project/.w ~/.cache/uv ~/other");
            run(link).expect_success();
            outside(INSTALL);
            let output = run(CHANGE);
            // Positive control: it was changed, as seen from inside.
            assert!(output.stdout().contains("evil"), "{link}: {output:?}");
            let stderr = output.stderr();
            assert!(
                stderr.contains("by hard links, so changes"),
                "{link}: {stderr}"
            );
            assert_eq!(
                outside("cat ~/other/a.py ~/.cache/uv/a.py"),
                "good\ngood\n",
                "{link}"
            );
            assert_eq!(outside("cat ~/project/src.py"), "kept\n", "{link}");
            // Positive control: with the links, it would be changed everywhere.
            outside("cd ~/project; mv .w .v");
            outside(CHANGE);
            assert_eq!(outside("cat ~/other/a.py"), "evil\n", "{link}");
        }
    });
}
