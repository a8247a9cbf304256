//! Files that run by themselves outside, or that agents obey (P7): those that exist cannot be changed
//! or are told, those that appear are told.

use stockade_world::{Laptop, Output, test};

use super::f_files::said;
use super::p_git::ran;
use super::probe::Place;
use crate::support::standard;

fn session(laptop: &Laptop, options: &[&str], script: &str) -> Output {
    let words = [&["run"], options, &["--", "bash", "-c", script]].concat();
    laptop.stockade(words).run().expect("an end")
}

/// Read-only where they exist.
const GUARDED: [&str; 14] = [
    ".envrc",
    ".Rprofile",
    ".dir-locals-2.el",
    ".hg/hgrc",
    ".jj/repo/config.toml",
    ".pdbrc",
    "mise.local.toml",
    ".config/mise.toml",
    ".irbrc",
    ".ghci",
    ".iex.exs",
    ".helix/languages.toml",
    ".autoenv.zsh",
    ".vscode/tasks.json",
];

/// Part of the work, but told.
const TOLD: [&str; 14] = [
    "lefthook.yml",
    ".lefthook-local.yml",
    ".cargo/config.toml",
    ".pre-commit-config.yaml",
    ".npmrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".claude/settings.local.json",
    ".claude/skills/a/b/c/d/e/f/SKILL.md",
    ".mcp.json",
    ".codex/config.toml",
    ".gemini/commands/x.toml",
    ".cursor/hooks.json",
    "AGENTS.md",
];

#[test]
fn p07_files_that_run_by_themselves_are_read_only_or_told() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let all: Vec<&str> = GUARDED.iter().chain(&TOLD).copied().collect();
        let write = |text: &str| -> String {
            let one = |name: &&str| {
                format!("mkdir -p $(dirname {name}); echo {text} >> {name} && echo {name}; ")
            };
            all.iter().map(one).collect()
        };
        // New ones can be made, and each is told.
        let output = session(laptop, &[], &write("new"));
        assert_eq!(output.stdout().lines().count(), all.len(), "{output:?}");
        let log = laptop.stockade(["log"]).run().expect("a log").stdout();
        for name in &all {
            // A directory of the table stands for what is in it.
            let told = log.lines().any(|line| {
                let found = line.split('"').nth(1).unwrap_or_default();
                let below = found.strip_prefix("/home/dev/project/").unwrap_or("-");
                line.contains("is new") && name.starts_with(below)
            });
            assert!(told, "{name}: {log}");
        }
        // Existing ones are read-only, or told.
        let output = session(laptop, &[], &write("changed"));
        for name in GUARDED {
            let wrote = output.stdout().lines().any(|line| line == name);
            assert!(!wrote, "{name}: {output:?}");
        }
        let log = laptop.stockade(["log"]).run().expect("a log").stdout();
        assert_eq!(log.matches("has changed").count(), TOLD.len(), "{log}");
        // Nothing is told of a session that touches none of them.
        let output = session(laptop, &[], "echo x > README.md");
        assert_eq!(output.stderr(), "", "{output:?}");
    });
}

#[test]
fn p07_dotfiles_that_lead_into_the_workspace_are_told() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let links = "echo : > rc; mkdir -p conf/nvim ~/.config; rm -f ~/.bashrc
            ln -s project/rc ~/.bashrc; ln -s ../project/conf/nvim ~/.config/nvim
            echo > ssh; ln -sf ../project/ssh ~/.ssh/config
            echo > tool; mkdir -p ~/.local/bin; ln -s ../../project/tool ~/.local/bin/tool
            echo > a.fish; mkdir -p ~/.config/fish/conf.d; ln -s ~/project/a.fish ~/.config/fish/conf.d/a.fish
            mkdir zsh; echo > zsh/.zshrc";
        said(laptop, Place::Outside, links);
        let script = "echo 'touch ~/ran' >> rc; echo x > conf/nvim/init.lua; echo x > other
            for name in ssh tool a.fish zsh/.zshrc; do echo x >> $name; done";
        let output = laptop
            .stockade(["run", "--", "bash", "-c", script])
            .env("ZDOTDIR", "/home/dev/project/zsh")
            .run()
            .expect("an end");
        let stderr = output.expect_success().stderr();
        for name in [
            "project/rc\"",
            "project/conf/nvim\"",
            "project/ssh\"",
            "project/tool\"",
            "project/a.fish\"",
            "project/zsh/.zshrc\"",
        ] {
            assert!(stderr.contains(name), "{stderr}");
        }
        assert!(!stderr.contains("other"), "{stderr}");
        // It does run.
        said(laptop, Place::Outside, "bash -ic true");
        assert!(ran(laptop), "positive control");
    });
}

/// In a linked worktree, they lie among the files of a repository elsewhere.
#[test]
fn p07_files_that_run_in_the_repository_of_a_linked_worktree_are_read_only_or_told() {
    const HOME: &str = "cd; git init -q -b main main; cd main; echo mine > .git/lazygit.yml
        git -c user.name=a -c user.email=a commit -q --allow-empty -m one; git worktree add -q ../tree";
    const WRITE: &str = "cd ~/main/.git; echo x > lazygit.yml || echo kept
        mkdir glab-cli; echo x > glab-cli/config.yml";
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, HOME);
        let session = laptop.stockade(["run", "--", "bash", "-c", WRITE]);
        let output = session.directory("/home/dev/tree").run().expect("an end");
        let output = output.expect_success();
        assert_eq!(output.stdout(), "kept\n", "{output:?}");
        assert!(
            output.stderr().contains("glab-cli/config.yml\" is new"),
            "{output:?}"
        );
        let file = said(laptop, Place::Outside, "cat ~/main/.git/lazygit.yml");
        assert_eq!(file, "mine\n");
        said(laptop, Place::Outside, WRITE);
        let file = said(laptop, Place::Outside, "cat ~/main/.git/lazygit.yml");
        assert_eq!(file, "x\n", "positive control");
    });
}

#[test]
fn p07_what_agents_execute_or_obey_in_their_state_is_told_at_any_depth() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let setup = "mkdir -p ~/.claude ~/.codex ~/.gemini ~/.aider; echo '{\"numStartups\": 1}' > ~/.claude.json";
        said(laptop, Place::Outside, setup);
        let plants = [
            (
                "claude",
                "mkdir -p ~/.claude/skills/a/b/c/d/e/f; echo x > ~/.claude/skills/a/b/c/d/e/f/s",
            ),
            (
                "claude",
                "mkdir -p ~/.claude/plugins/m/p; echo x > ~/.claude/plugins/m/p/hook",
            ),
            (
                "claude",
                "echo '{\"numStartups\": 2, \"projects\": {\"/x\": {\"mcp\\u0053ervers\": {\"a\": {\"command\": \"evil\"}}}}}' > ~/.claude.json",
            ),
            ("codex", "echo x > ~/.codex/hooks.json"),
            (
                "codex",
                "mkdir -p ~/.codex/prompts/a/b; echo x > ~/.codex/prompts/a/b/c",
            ),
            (
                "gemini",
                "mkdir -p ~/.gemini/extensions/a; echo x > ~/.gemini/extensions/a/b",
            ),
            (
                "claude",
                "mkdir ~/.claude/workflows; echo x > ~/.claude/workflows/a.js",
            ),
            ("claude", "echo {} > ~/.claude/remote-settings.json"),
            (
                "claude",
                "echo '{\"env\": {\"BASH_ENV\": \"/x\"}}' > ~/.claude.json",
            ),
            (
                "claude",
                "echo '{\"env\": {}, \"primaryApiKey\": \"x\"}' > ~/.claude.json",
            ),
            (
                "claude",
                "echo '{\"mcpServers\": {\"a\": {}}}' > ~/.claude/.config.json",
            ),
            (
                "gemini",
                "mkdir -p ~/.gemini/tmp/bin; echo x > ~/.gemini/tmp/bin/rg",
            ),
            (
                "codex",
                "mkdir -p ~/.codex/automations/a; echo x > ~/.codex/automations/a/automation.toml",
            ),
            (
                "codex",
                "mkdir ~/.codex/agents; echo x > ~/.codex/agents/a.toml",
            ),
            (
                "codex",
                "mkdir -p ~/.codex/plugins/a; echo x > ~/.codex/plugins/a/hooks.json",
            ),
            (
                "aider",
                "mkdir -p ~/.aider; echo AIDER_TEST_CMD=x > ~/.aider/oauth-keys.env",
            ),
        ];
        for (profile, plant) in plants {
            let output = session(laptop, &["--profile", profile], plant);
            let stderr = output.stderr();
            assert!(stderr.contains("in any project"), "{plant}: {stderr}");
        }
        // What is given is told like an agent's own.
        let other = "echo 'notify = [\"x\"]' > ~/.codex/config.toml";
        for options in [
            &["--write", "~/.codex"][..],
            &["--profile", "claude", "--write", "~/.codex"],
        ] {
            said(laptop, Place::Outside, "rm -f ~/.codex/config.toml");
            let output = session(laptop, options, other);
            let stderr = output.stderr();
            assert!(stderr.contains("Codex runs or obeys it"), "{stderr}");
        }
        let inside = laptop.stockade(["run", "--", "sh", "-c", "mkdir hooks; echo x > hooks/x"]);
        let inside = inside.directory(laptop.home().join(".claude"));
        let stderr = inside.run().expect("an end").expect_success().stderr();
        assert!(stderr.contains("Claude Code runs or obeys it"), "{stderr}");
        // What changes all the time is nothing to tell.
        let daily = "sed -i 's/2/3/' ~/.claude.json; mkdir -p ~/.claude/projects; echo x > ~/.claude/projects/x";
        let output = session(laptop, &["--profile", "claude"], daily);
        assert!(!output.stderr().contains("in any project"), "{output:?}");
    });
}

/// In a directory in which git tracks some files, the others keep their protection, whatever is done
/// to the directory.
#[test]
fn p07_untracked_files_beside_tracked_ones_cannot_be_changed() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let setup = "mkdir -p .vscode/own; echo '{}' > .vscode/tasks.json; git add .vscode
            echo own > .vscode/launch.json; echo own > .vscode/own/x";
        let look = "cat .vscode/launch.json .vscode/own/x";
        let attack = "exec 2>/dev/null
            change() { for f in .vscode/launch.json .vscode/own/x .vscode/own .vscode; do
                echo evil > $f; rm -rf $f; mv $f aside; ln -sfn /tmp $f; mv -T /tmp/new $f; done
                mkdir -p .vscode/own; echo evil > .vscode/launch.json; echo evil > .vscode/own/x
                touch .vscode/own/new; }
            git stash -qu; git clean -qfdx .vscode; git checkout -qf -B x; change; export -f change
            unshare --user --map-root-user --mount bash -c 'umount -l .vscode/launch.json .vscode/own
                umount -l .vscode; mount -o remount,bind,rw .vscode; change'; true";
        said(laptop, Place::Outside, setup);
        for options in [&[][..], &["--nested"], &["--hardening", "strict"]] {
            session(laptop, options, attack);
            assert_eq!(
                said(laptop, Place::Outside, look),
                "own\nown\n",
                "{options:?}"
            );
            said(
                laptop,
                Place::Outside,
                "ls .vscode/own/new 2>/dev/null && exit 1; true",
            );
        }
        // Outside, the same changes them.
        said(laptop, Place::Outside, attack);
        let after = laptop.shell(look).run().expect("its end").stdout();
        assert!(!after.contains("own"), "{after}");
    });
}
