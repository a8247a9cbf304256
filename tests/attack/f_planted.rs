//! What a session planted for the next one, where the user's own links, variables and search
//! path lead to it (F3, F5, F11).

use std::collections::BTreeSet;

use stockade_world::{Laptop, Login, Output, test};

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
            // In another workspace nothing tells whose the link is that leads there.
            let output = elsewhere(laptop, &words, variables);
            assert_eq!(secrets(&output.stdout()), BTreeSet::new(), "{options:?}");
            assert!(!planted.exists(), "{options:?}");
            // The detector works.
            let outside = said(laptop, Place::Outside, look);
            assert!(!secrets(&outside).is_empty() && planted.exists());
            let after = format!("rm -rf data {link} ~/.ssh/planted");
            said(laptop, Place::Outside, &after);
        }
    });
}

/// The same in a session of another workspace, where the link lies in no place of its own.
#[test]
fn f05_a_link_of_another_workspace_gives_no_credentials_to_what_the_user_names() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let before = "mkdir data; echo mine > data/x; ln -s project/data ~/led; ln -s .ssh ~/.real
            mkdir -p ~/.config/gh; cp ~/.ssh/id_ed25519 ~/.config/gh/hosts.yml
            mkdir -p ~/dotfiles/gnupg; cp ~/.ssh/id_ed25519 ~/dotfiles/gnupg/key
            rm -rf ~/.gnupg; ln -s dotfiles/gnupg ~/.gnupg";
        said(laptop, Place::Outside, before);
        let look = "find ~/led/ -type f | xargs cat; echo planted > ~/led/planted";
        let words = |option, path| [option, path, "--", "bash", "-c", look];
        // Where a session was, and in a directory of which nobody knows who wrote it.
        for (place, reason) in [
            ("project", "by a link that a session could have made"),
            ("unknown", "by a link to "),
        ] {
            let prepare = format!(
                "mkdir -p ~/{place}/data; echo mine > ~/{place}/data/x; ln -sfn {place}/data ~/led"
            );
            said(laptop, Place::Outside, &prepare);
            for option in ["--read", "--write"] {
                let output = elsewhere(laptop, &words(option, "~/led"), &[]);
                // Positive control: a link of another workspace is followed.
                assert!(output.stdout().contains("mine"), "{option}: {output:?}");
                for (target, secret) in [
                    ("../.ssh", "~/.ssh"),
                    ("../.config", "~/.config/"),
                    ("../.config/gh", "~/.config/gh"),
                    // The place is a link itself.
                    ("../.gnupg", "~/.gnupg"),
                    ("../dotfiles/gnupg", "~/.gnupg"),
                    ("../.real", "~/.ssh"),
                    ("/run/user", "/run/user"),
                ] {
                    let plant = format!("cd ~/{place}; rm -rf data; ln -s {target} data");
                    let is_known = place == "project";
                    said(
                        laptop,
                        if is_known { INSIDE } else { Place::Outside },
                        &plant,
                    );
                    let output = elsewhere(laptop, &words(option, "~/led"), &[]);
                    assert_eq!(output.code(), 125, "{option} {target}: {output:?}");
                    assert_eq!(secrets(&output.stdout()), BTreeSet::new());
                    let said = output.stderr();
                    // What holds Stockade's own is refused before.
                    if (option, target) != ("--write", "../.config") {
                        assert!(said.contains(reason), "{target}: {said}");
                        let (place, fix) = match is_known {
                            true => ("", "name that"),
                            false => (secret, "give its own path"),
                        };
                        assert!(
                            said.contains(&format!("{reason}{place}")),
                            "{target}: {said}"
                        );
                        assert!(said.contains(fix), "{said}");
                    }
                }
                let after = format!("cd ~/{place}; rm data; mkdir data; echo mine > data/x");
                said(laptop, Place::Outside, &after);
            }
        }
        // To what is no secret either, and what a session made there itself it may lead to.
        said(
            laptop,
            Place::Outside,
            "mkdir -p ~/.local/bin; ln -sfn project/data ~/led",
        );
        for (target, is_given) in [("../.local/bin", false), ("real", true)] {
            said(
                laptop,
                INSIDE,
                &format!("mkdir -p real; rm -rf data; ln -s {target} data"),
            );
            let touch = ["--write", "~/led", "--", "touch", "/home/dev/led/planted"];
            let output = elsewhere(laptop, &touch, &[]);
            assert_eq!(output.code() == 0, is_given, "{target}: {output:?}");
            assert_eq!(laptop.workspace().join("data/planted").exists(), is_given);
        }
        // Who names the place itself has it.
        let named = ["--read", "~/.ssh", "--", "bash", "-c", "cat ~/.ssh/*"];
        let output = elsewhere(laptop, &named, &[]);
        assert!(!secrets(&output.stdout()).is_empty(), "{output:?}");
    });
}

/// A session of this command in another workspace than the usual one.
fn elsewhere(laptop: &Laptop, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let script = "mkdir -p ../second; cd ../second; exec \"$@\"";
    let start = ["-c", script, "sh", "stockade", "run", "--quiet"];
    let mut command = laptop.command("sh").args(start).args(words);
    for (name, value) in variables {
        command = command.env(name, value);
    }
    command.run().expect("an end")
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

/// A session with another profile made the link.
#[test]
fn f05_a_link_in_the_state_of_any_agent_opens_nothing() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let prepare = "cd; mkdir -p Documents .claude/real .codex; echo TOP > Documents/plan
            cp Documents/plan .claude/real; ln -s ~/Documents ~/.claude/led; ln -s ~/Documents ~/.codex/led
            ln -s ~/.claude/led ~/far; ln -s ~/Documents ~/mine";
        said(laptop, Place::Outside, prepare);
        for (path, is_given) in [
            ("mine", true),
            (".claude/real", true),
            (".claude/led", false),
            (".codex/led", false),
            ("far", false),
        ] {
            let script = format!("cat ~/{path}/plan");
            let path = format!("~/{path}");
            let output = session(laptop, &["--read", &path, "--", "sh", "-c", &script], &[]);
            let expected = if is_given { "TOP\n" } else { "" };
            assert_eq!(output.stdout(), expected, "{path}: {output:?}");
        }
    });
}

/// Where a workspace, a part of it or what is mounted in it has another path, too, the session could
/// have written there. Only root can mount in this world.
#[test]
fn f05_what_a_session_can_write_is_known_by_every_path_that_leads_there() {
    // Each directory by the path of it that the session has, and the other one.
    const MOUNT: &str = "mkdir -p /mnt/{other,part,data} ~/{Documents,tools} part data /srv/data
        echo TOP > ~/Documents/plan
        mount --bind ~/project /mnt/other && mount --bind ~/project/part /mnt/part
        mount --bind /srv/data ~/project/data; mount --bind ~/tools /mnt/data";
    // What is there, and what makes use of it.
    let uses = [
        (
            "ln -s ~/Documents $D/led",
            "stockade run -q --read $D/led -- cat $D/led/plan",
        ),
        (
            "ln -s ~/Documents $D/led",
            "stockade run -q --write $D/led -- cat $D/led/plan",
        ),
        (
            "cp $(command -v stockade) $D",
            "$D/stockade run -q -- echo TOP",
        ),
        (
            "mkdir -p $D/stockade; printf '[files]\\nread = [\"~/Documents\"]\\n' > $D/stockade/config.toml",
            "XDG_CONFIG_HOME=$D stockade run -q -- cat ~/Documents/plan",
        ),
        (
            "cp $(command -v stockade) /tmp/s; ln -s /tmp/s $D/s",
            "$D/s run -q -- echo TOP",
        ),
    ];
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        for (prepare, use_of) in uses {
            let run = |place: &str| {
                let script = format!(
                    "rm -rf ~/project/[dp]a* ~/project/[ls]* ~/tools /srv/data /tmp/s
                    {MOUNT}; D={place}; {prepare}; {use_of}"
                );
                let shell = laptop
                    .command("unshare")
                    .args(["-m", "bash", "-c", &script]);
                shell.run().expect("the shell ends")
            };
            // Positive control: a directory that is mounted twice and is not the session's.
            let control = run("/mnt/data");
            assert_eq!(control.stdout(), "TOP\n", "{use_of}: {control:?}");
            for place in ["~/project", "/mnt/other", "/mnt/part", "/srv/data"] {
                let output = run(place);
                assert_eq!(output.stdout(), "", "{place}: {use_of}");
                assert_eq!(output.code(), 125, "{place}: {use_of}: {output:?}");
            }
        }
    });
}

/// Agents have their shells read files among their settings before each command. One that runs
/// outside at the same time does not read what a session wrote, and a session does not read what
/// stands there of the user's environment.
#[test]
fn f03_what_an_agents_shells_read_outside_is_not_the_sessions_to_write() {
    let scripts = [
        ("claude", "shell-snapshots"),
        ("claude", "session-env"),
        ("codex", "shell_snapshots"),
        ("codex", "tmp"),
        ("codex", "app-server-control"),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (agent, scripts) in scripts {
            let attack = format!(
                "cd ~/.{agent}; echo kept > settings; cat {scripts}/*
                echo evil > {scripts}/1.sh; cat {scripts}/*; mv {scripts} old
                cd ~/dotfiles/state && echo evil > {scripts}/more; true"
            );
            for place in [
                format!("mkdir ~/.{agent}"),
                format!("mkdir -p ~/dotfiles/state; ln -s dotfiles/state ~/.{agent}"),
            ] {
                let prepare =
                    format!("mkdir ~/.{agent}/{scripts}; echo alias > ~/.{agent}/{scripts}/1.sh");
                said(laptop, Place::Outside, &format!("{place}; {prepare}"));
                let words = ["--profile", agent, "--", "sh", "-c", &attack];
                let output = session(laptop, &words, &[]).expect_success();
                // It has a directory of its own to write to.
                assert_eq!(output.stdout(), "evil\n", "{place}");
                let left = format!("cd ~/.{agent}; cat settings; ls {scripts}; cat {scripts}/*");
                let left = said(laptop, Place::Outside, &left);
                assert_eq!(left, "kept\n1.sh\nalias\n", "{place}");
                let remove = format!("rm -rf ~/.{agent} ~/dotfiles");
                said(laptop, Place::Outside, &remove);
            }
        }
    });
}

/// The same where the directory was not there at the start, or its state is a part of the workspace.
#[test]
fn f03_what_an_agents_shells_will_read_outside_is_not_the_sessions_to_make() {
    const STATE: &str = "mkdir ~/.claude";
    const DOTFILES: &str = "mkdir -p ~/dotfiles/claude; ln -s dotfiles/claude ~/.claude";
    const MAKE: &str = "mkdir -p ~/.claude/shell-snapshots ~/.claude/session-env
        echo evil > ~/.claude/shell-snapshots/evil; ln -s . ~/.claude/session-env/evil
        echo made > ~/.claude/made; true";
    const REPLACE: &str =
        "mkdir -p new/shell-snapshots; echo evil > new/shell-snapshots/evil; touch new/made
        mv claude/session-env x; mv claude old; rm -rf claude; cp -r new claude; cp -r new/* claude; true";
    let left = "cd ~/.claude; ls . | grep made; ls */evil";
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (prepare, workspace, profile, attack) in [
            (STATE, "project", "claude", MAKE),
            (DOTFILES, "project", "claude", MAKE),
            (DOTFILES, "dotfiles", "claude", MAKE),
            (DOTFILES, "dotfiles", "claude", REPLACE),
            (DOTFILES, "dotfiles", "generic", REPLACE),
        ] {
            let case = format!("{prepare}, {workspace}, {profile}: {attack}");
            let reset = format!("cd; rm -rf .claude dotfiles; {prepare}");
            said(laptop, Place::Outside, &reset);
            said(
                laptop,
                Place::Outside,
                &format!("cd ~/{workspace}; {attack}"),
            );
            let control = said(laptop, Place::Outside, left);
            assert!(
                control.contains("shell-snapshots/evil"),
                "positive control: {control}"
            );
            said(laptop, Place::Outside, &reset);
            let workspace = laptop.home().join(workspace);
            let output = laptop
                .stockade([
                    "run",
                    "--quiet",
                    "--profile",
                    profile,
                    "--",
                    "sh",
                    "-c",
                    attack,
                ])
                .directory(&workspace)
                .run()
                .expect("an end");
            assert_eq!(output.code(), 0, "{case}: {output:?}");
            assert_eq!(said(laptop, Place::Outside, left), "made\n", "{case}");
        }
    });
}

/// A link in its place, of a session with an older Stockade, leads a later session to it.
#[test]
fn f03_a_link_instead_of_what_agents_shells_read_refuses_the_session() {
    let ways = [
        ("ln -s ~/project/snap ~/.claude/shell-snapshots", "generic"),
        (
            "mkdir ~/project/snap; ln -s ~/project/snap ~/.claude/shell-snapshots",
            "generic",
        ),
        ("mkdir ~/snap; ln -s ~/snap ~/.claude/session-env", "claude"),
        ("touch ~/.claude/session-env", "claude"),
        (
            "mkdir ~/.codex; ln -s ~/project/snap ~/.codex/shell_snapshots",
            "codex",
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (plant, profile) in ways {
            let reset = "cd; rm -rf .claude .codex project/snap snap; mkdir .claude";
            said(laptop, Place::Outside, reset);
            let words = ["--profile", profile, "--", "echo", "ran"];
            let output = session(laptop, &words, &[]);
            assert_eq!(output.stdout(), "ran\n", "positive control: {output:?}");
            said(laptop, Place::Outside, &format!("{reset}; {plant}"));
            let output = session(laptop, &words, &[]);
            assert_eq!(output.stdout(), "", "{plant}");
            assert!(
                output.stderr().contains("look at it, then remove it"),
                "{output:?}"
            );
        }
        // What leads elsewhere is of no concern to a session that cannot write there.
        let other = "cd; rm -rf .claude .codex snap; mkdir .claude snap; ln -s ~/snap .claude/shell-snapshots";
        said(laptop, Place::Outside, other);
        let output = session(laptop, &["--", "echo", "ran"], &[]);
        assert_eq!(output.stdout(), "ran\n", "{output:?}");
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

/// What an environment, a variable or a search path leads to, by another workspace's files.
#[test]
fn f11_a_session_does_not_choose_what_sessions_of_other_workspaces_see() {
    const BEFORE: &str = "mkdir -p ~/private/bin ~/private/lib/python3 .venv/bin bin jdk/17 ~/npm
        cp ~/.ssh/id_ed25519 ~/private/key; echo mine > jdk/17/release; ln -s jdk/17 java
        printf '#!/bin/sh\\ncat ~/private/key\\n' > ~/private/bin/tool
        printf '#!/usr/bin/env deno\\n' > ~/npm/tool; chmod +x ~/npm/tool ~/private/bin/tool
        cp ~/private/bin/tool ~/private/bin/deno; touch ~/private/pyvenv.cfg";
    const CLEAN: &str = "rm -rf bin led .venv; mkdir -p bin .venv/bin; touch .venv/pyvenv.cfg; ";
    let look: &[&str] = &[
        "--",
        "sh",
        "-c",
        "cat ~/private/key ~/project/*/key ~/project/.venv/key",
    ];
    let tool: &[&str] = &["--", "/home/dev/npm/tool"];
    let environment = ("VIRTUAL_ENV", "/home/dev/project/.venv");
    let path = "/home/dev/project/bin:/usr/bin:/bin:/run/world/bin";
    let led = "/home/dev/project/led";
    let ways = [
        (
            "echo home = ~/private/bin > .venv/pyvenv.cfg",
            environment,
            look,
        ),
        (
            "ln -s ~/private/bin/tool .venv/bin/python",
            environment,
            look,
        ),
        ("rm -r .venv; ln -s ~/private .venv", environment, look),
        ("ln -s ~/private led", ("JAVA_HOME", led), look),
        ("ln -s ~/private led", ("CCACHE_DIR", led), look),
        ("ln -s ~/private/bin/tool bin/deno", ("PATH", path), tool),
        ("rm -r bin; ln -s ~/private/bin bin", ("PATH", path), tool),
        (
            "echo '#!/home/dev/private/bin/tool' > bin/deno; chmod +x bin/deno",
            ("PATH", path),
            tool,
        ),
    ];
    test(&standard(), |world| {
        let laptop = world.laptop();
        said(laptop, Place::Outside, BEFORE);
        // Positive control: where no session was, the user made the links.
        for (plant, variable, words) in ways {
            said(laptop, Place::Outside, &format!("{CLEAN}{plant}"));
            let output = elsewhere(laptop, words, &[variable]);
            assert_eq!(secrets(&output.stdout()).len(), 1, "{plant}: {output:?}");
        }
        for (plant, variable, words) in ways {
            said(laptop, INSIDE, &format!("{CLEAN}{plant}"));
            let output = elsewhere(laptop, words, &[variable]);
            assert_eq!(secrets(&output.stdout()), BTreeSet::new(), "{plant}");
        }
        // A link that leads out of no such place is followed.
        let words = ["--", "sh", "-c", "cat $JAVA_HOME/release"];
        let output = elsewhere(laptop, &words, &[("JAVA_HOME", "/home/dev/project/java")]);
        assert_eq!(output.stdout(), "mine\n", "{output:?}");
    });
}
