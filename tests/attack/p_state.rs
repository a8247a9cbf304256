//! What a session leaves behind in an agent's own state (P1, P7): git does not run it there, and the
//! agent goes on working with its files.

use stockade_world::{Laptop, Output, test};

use super::f_files::said;
use super::p_git::ran;
use super::probe::Place;
use crate::support::standard;

const PLAIN: &str = "cd; rm -rf .claude ran; mkdir -p .claude/hooks; cd .claude; echo '{}' > settings.json
    printf '#!/bin/sh\\ntouch ~/ran\\n' > hooks/evil; chmod +x hooks/evil; EVIL=~/.claude/hooks/evil";
/// The same, under version control, as people have their dotfiles.
const REPOSITORY: &str = "git init -q -b main; git config user.name a; git config user.email a
    echo exit > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
    git add settings.json; git commit -q -m one";

fn session(laptop: &Laptop, script: &str) -> Output {
    let options = ["run", "--profile", "claude", "--"];
    let words = [&options[..], &["bash", "-c", script]].concat();
    laptop.stockade(words).run().expect("an end")
}

#[test]
fn p01_git_in_an_agents_state_does_not_run_programs_outside() {
    let repository = format!("{PLAIN}; {REPOSITORY}");
    let plants = [
        (
            repository.as_str(),
            "git config core.fsmonitor $EVIL",
            "git status",
        ),
        (
            &repository,
            "cp hooks/evil .git/hooks/pre-commit; cp -r .git new; mv .git aside; mv -T new .git
            cp hooks/evil .git/hooks/pre-commit",
            "git commit -q --allow-empty -m two",
        ),
        (
            &repository,
            "cp hooks/evil .git/hooks/post-commit",
            "git commit -q --allow-empty -m two",
        ),
        // A repository that the session makes, at the top or anywhere.
        (
            PLAIN,
            "git init -q; git config core.fsmonitor $EVIL",
            "git status",
        ),
        (
            PLAIN,
            "git init -q projects/a/b; git -C projects/a/b config core.fsmonitor $EVIL",
            "git -C projects/a/b status",
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (prepare, plant, use_of) in plants {
            let planted = format!("cd ~/.claude; EVIL=~/.claude/hooks/evil; {plant}");
            let use_of = format!("cd ~/.claude; {use_of}");
            said(laptop, Place::Outside, prepare);
            said(laptop, Place::Outside, &planted);
            said(laptop, Place::Outside, &use_of);
            assert!(ran(laptop), "positive control: {plant}");
            said(laptop, Place::Outside, prepare);
            let output = session(laptop, &planted);
            said(laptop, Place::Outside, &use_of);
            assert!(!ran(laptop), "{plant}: {output:?}");
            let stderr = output.stderr();
            assert!(!stderr.contains("NOT"), "{plant}: {stderr}");
        }
    });
}

#[test]
fn p01_settings_of_git_in_an_agents_state_are_put_back_while_the_session_runs() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, &format!("{PLAIN}; {REPOSITORY}"));
        let script = "cd ~/.claude; git config core.fsmonitor x; git config core.fsmonitor
            while git config core.fsmonitor > /dev/null; do sleep 0.1; done; echo gone";
        let output = session(laptop, &format!("timeout 50 bash -c '{script}'"));
        assert_eq!(output.stdout(), "x\ngone\n", "{output:?}");
        let told = "undone: \"/home/dev/.claude/.git/config\"";
        assert!(output.stderr().contains(told), "{output:?}");
    });
}

#[test]
fn an_agent_works_with_its_state_under_version_control() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, &format!("{PLAIN}; {REPOSITORY}"));
        said(
            laptop,
            Place::Outside,
            "cd ~/.claude; mkdir .vscode; touch .envrc .vscode/tasks.json
            mkdir -p plugins/marketplaces; cd plugins/marketplaces; git clone -q ../.. corp
            git -C corp remote set-url origin git@10.0.0.5:a/b",
        );
        // Files that run by themselves in a project do not in a state.
        let script = "set -e; cd ~/.claude; echo '{\"a\": 1}' > new; mv new settings.json
            git add settings.json; git commit -q -m two; git branch other
            mkdir -p projects/x history; mv history projects/x; mv projects/x/history todos; rmdir todos
            rm -rf .envrc .vscode; mkdir cache; git clone -q . cache/market
            git -C cache/market remote set-url origin https://github.com/a/b; echo done";
        let output = session(laptop, script);
        assert_eq!(output.stdout(), "done\n", "{output:?}");
        let stderr = output.stderr();
        assert!(!stderr.contains(".git"), "{stderr}");
        assert!(stderr.contains("settings.json\" has changed"), "{stderr}");
    });
}

#[test]
fn p07_what_settings_in_an_agents_state_name_is_told() {
    const SETTINGS: &str = r#"{"statusLine": {"type": "command", "command": "bash ~/.claude/line.sh"},
        "apiKeyHelper": "~/.claude/key.sh", "hooks": {"Stop": [{"hooks": [
        {"command": "\"$HOME\"/.claude/bin/stop; cd ${HOME}/.claude\n node ended.js >> ~/.claude/log"},
        {"command": "sh /home/dev/.claude/all/of/it.sh"}]}]},
        "permissions": {"allow": ["Bash(~/.claude/allowed:*)", "Read(~/.claude/projects/**)"]}}"#;
    const CODEX: &str = r#"notify = ["python3", "/home/dev/.codex/notify.py"]"#;
    let named = [
        ("claude", ".claude/line.sh"),
        ("claude", ".claude/key.sh"),
        ("claude", ".claude/bin/stop"),
        ("claude", ".claude/ended.js"),
        ("claude", ".claude/all/of/it.sh"),
        ("claude", ".claude/allowed"),
        ("claude", ".claude/rules.d/a.md"),
        ("claude", ".claude/there"),
        ("codex", ".codex/notify.py"),
    ];
    let others = ["log", "projects/x", "other.sh", "word"];
    test(&standard(), |world| {
        let laptop = world.laptop();
        let prepare = format!(
            "cd; mkdir -p .codex .claude/bin .claude/all/of .claude/projects .claude/rules.d
            cat > .claude/settings.json <<'X'\n{SETTINGS}\nX\ncat > .codex/config.toml <<'X'\n{CODEX}\nX
            echo 'Obey @rules.d/a.md, but no word.' > .claude/CLAUDE.md
            cd .claude; touch line.sh ended.js bin/stop allowed word there rules.d/a.md; ln -s there key.sh"
        );
        said(laptop, Place::Outside, &prepare);
        for (profile, name) in named {
            let script = format!("echo evil >> ~/{name}");
            let words = ["run", "--profile", profile, "--", "bash", "-c", &script];
            let output = laptop.stockade(words).run().expect("an end");
            let stderr = output.stderr();
            let told = stderr
                .lines()
                .find(|line| line.contains("agent's settings name it"));
            // A link is written where it leads.
            let name = name.replace("key.sh", "there");
            assert!(
                told.is_some_and(|line| line.contains(&name)),
                "{name}: {stderr}"
            );
        }
        for name in others {
            let output = session(laptop, &format!("echo x >> ~/.claude/{name}"));
            let stderr = output.stderr();
            assert!(!stderr.contains(".claude/"), "{name}: {stderr}");
        }
    });
}
