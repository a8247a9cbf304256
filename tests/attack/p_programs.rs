//! The agent's own program (P16): however it was installed, a session runs it and changes nothing
//! of it that runs outside.

use stockade_world::{Laptop, test};

use super::f_files::said;
use super::probe::Place;
use crate::support::standard;

const PROGRAMS: &str = include_str!("programs.py");

/// A way to install an agent.
struct Installation {
    agent: &'static str,
    /// Makes `$run`, a program that runs Python, the agent's.
    install: &'static str,
    /// What of it runs outside, below the home.
    files: &'static [&'static str],
}

const INSTALLATIONS: [Installation; 6] = [
    // By its own installer.
    Installation {
        agent: "claude",
        install: "mkdir -p ~/.local/share/claude/versions ~/.local/bin
            cp $run ~/.local/share/claude/versions/2.0.0
            ln -s ~/.local/share/claude/versions/2.0.0 ~/.local/bin/claude",
        files: &[".local/share/claude/versions/2.0.0", ".local/bin/claude"],
    },
    // By `claude migrate-installer`, which makes an alias of the shell.
    Installation {
        agent: "claude",
        install: "mkdir -p ~/.claude/local/node_modules/.bin ~/.claude/local/node_modules/c
            cp $run ~/.claude/local/node_modules/c/cli
            ln -s ../c/cli ~/.claude/local/node_modules/.bin/claude
            printf '#!/bin/sh\\nexec ~/.claude/local/node_modules/.bin/claude \"$@\"\\n' \\
                > ~/.claude/local/claude; chmod +x ~/.claude/local/claude",
        files: &[".claude/local/claude", ".claude/local/node_modules/c/cli"],
    },
    // The same, behind a script of the user's.
    Installation {
        agent: "claude",
        install: "mkdir -p ~/.claude/local ~/.local/bin; cp $run ~/.claude/local/claude
            printf '#!/bin/sh\\nexec ~/.claude/local/claude \"$@\"\\n' > ~/.local/bin/claude
            chmod +x ~/.local/bin/claude",
        files: &[".claude/local/claude", ".local/bin/claude"],
    },
    // By npm.
    Installation {
        agent: "claude",
        install: "mkdir -p ~/.npm-global/bin ~/.npm-global/lib/node_modules/c
            cp $run ~/.npm-global/lib/node_modules/c/cli
            ln -s ../lib/node_modules/c/cli ~/.npm-global/bin/claude",
        files: &[
            ".npm-global/lib/node_modules/c/cli",
            ".npm-global/bin/claude",
        ],
    },
    // By Codex's installer.
    Installation {
        agent: "codex",
        install: "cd; mkdir -p .codex/packages/standalone/releases/1/bin .local/bin
            cp $run .codex/packages/standalone/releases/1/bin/codex
            ln -s releases/1 .codex/packages/standalone/current
            ln -s ~/.codex/packages/standalone/current/bin/codex .local/bin/codex",
        files: &[
            ".codex/packages/standalone/releases/1/bin/codex",
            ".codex/packages/standalone/current",
            ".local/bin/codex",
        ],
    },
    // By npm, whose prefix is among the agent's settings.
    Installation {
        agent: "codex",
        install: "mkdir -p ~/.codex/npm/bin ~/.codex/npm/lib/node_modules/c
            cp $run ~/.codex/npm/lib/node_modules/c/cli
            ln -s ../lib/node_modules/c/cli ~/.codex/npm/bin/codex",
        files: &[".codex/npm/lib/node_modules/c/cli", ".codex/npm/bin/codex"],
    },
];

const PREPARE: &str = "cd; rm -rf .claude* .codex* .local* .npm-global* evil
    mkdir -p .claude .codex .local/bin .local/share; run=$(mktemp); chmod 755 $run
    printf '#!/bin/sh\\nexec /usr/bin/python3 -IS -c \"$@\"\\n' > $run";

/// What runs outside, by every name.
const STATE: &str =
    "cd; for place in .claude/local .local .npm-global .codex/packages .codex/npm; do
    find $place ! -path '*/state*' -printf '%p %y %m %l\\n' -type f -exec sha256sum {} + 2>/dev/null
    done | sort";

fn path(laptop: &Laptop) -> String {
    let home = laptop.home().display();
    format!("{home}/.local/bin:{home}/.npm-global/bin:{home}/.codex/npm/bin:/usr/bin:/bin")
}

#[test]
fn p16_the_agents_program_cannot_be_changed_however_it_is_installed() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for Installation {
            agent,
            install,
            files,
        } in INSTALLATIONS
        {
            said(laptop, Place::Outside, &format!("{PREPARE}; {install}"));
            let before = said(laptop, Place::Outside, STATE);
            let files = files.iter().map(|file| laptop.home().join(file));
            let files: Vec<_> = files.collect();
            // Also where sandboxes work inside the sandbox, and namespaces can be had.
            for (nested, place) in [
                ("--nested=false", "in_place"),
                ("--nested=false", "in_another_namespace"),
                ("--nested", "in_another_namespace"),
            ] {
                let session = laptop
                    .stockade(["run", "--quiet", nested, "--", agent, PROGRAMS, place])
                    .args(&files)
                    .env("PATH", path(laptop))
                    .run();
                let output = session.expect("the end");
                // It ran, as the agent.
                let tried = output.stdout();
                assert!(tried.contains(&format!("{place}\trename")), "{output:?}");
                let is_refused = tried.contains("\trefused\n");
                let is_closed = nested == "--nested=false" && place != "in_place";
                assert_eq!(is_refused, is_closed, "{nested}: {install}: {tried}");
                let after = said(laptop, Place::Outside, STATE);
                assert_eq!(after, before, "{nested}: {install}: {tried}");
            }
            // What it keeps among its settings is kept.
            let keep = "open(__import__('os').path.expanduser('~/.claude/kept'), 'w').write('k')";
            let keep = keep.replace(".claude", &format!(".{agent}"));
            let session = laptop.stockade(["run", "--quiet", "--", agent, &keep]);
            let session = session.env("PATH", path(laptop)).run();
            session.expect("the end").expect_success();
            assert!(laptop.home().join(format!(".{agent}/kept")).exists());
            // The detector works: outside it is changed.
            let attack = laptop.command("/usr/bin/python3");
            let attack = attack.args(["-IS", "-c", PROGRAMS, "in_place"]);
            let attack = attack.args(&files).run();
            attack.expect("the end").expect_success();
            assert_ne!(said(laptop, Place::Outside, STATE), before, "{install}");
        }
    });
}
