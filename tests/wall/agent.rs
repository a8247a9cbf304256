//! The agent: its program wherever it is installed, and its state (F3, F11).

use std::{fs, os::unix::fs::symlink};

use super::{Caller, run, test};

/// Runs a command as the agent of a profile, found in `path`.
fn agent(caller: &Caller<'_>, path: &str, profile: &str, command: &str) -> (i32, String, String) {
    let session = caller.run().args(["--profile", profile, "--", command]);
    run(session.env("PATH", format!("{path}:/usr/bin:/bin")))
}

#[test]
fn a_native_installation_runs_and_cannot_be_changed() {
    test(|caller| {
        let file = caller.home().join(".local/share/claude/versions/2.0.1");
        let text = "#!/bin/sh\nreadlink ~/.local/bin/claude; ls ~/.local/share/claude/versions
        echo evil >> $0; echo evil > ~/.local/share/claude/versions/2.0.1
        rm -f ~/.local/share/claude/versions/2.0.1; true\n";
        caller.program(&file, text);
        caller.program(caller.home().join(".local/share/claude/versions/1.0.0"), "");
        fs::create_dir_all(caller.home().join(".local/bin")).unwrap();
        symlink(&file, caller.home().join(".local/bin/claude")).unwrap();
        let bin = caller.home().join(".local/bin");
        let (code, seen, messages) = agent(caller, bin.to_str().unwrap(), "claude", "claude");
        assert_eq!(code, 0, "{messages}");
        assert_eq!(seen, format!("{}\n2.0.1\n", file.display()));
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    });
}

#[test]
fn an_installation_by_npm_runs_with_the_node_that_it_was_installed_with() {
    test(|caller| {
        let prefix = caller.home().join(".nvm/versions/node/v22");
        caller.program(
            prefix.join("bin/node"),
            "#!/bin/sh\necho own node runs $1\n",
        );
        let package = prefix.join("lib/node_modules/@openai/codex/bin/codex.js");
        caller.program(&package, "#!/usr/bin/env node\n");
        symlink(
            "../lib/node_modules/@openai/codex/bin/codex.js",
            prefix.join("bin/codex"),
        )
        .unwrap();
        caller.write(caller.home().join("secret"), "decoy");
        let bin = prefix.join("bin");
        let (code, seen, messages) = agent(caller, bin.to_str().unwrap(), "codex", "codex");
        assert_eq!(code, 0, "{messages}");
        assert_eq!(
            seen,
            format!("own node runs {}\n", bin.join("codex").display())
        );
        let probe = format!("touch {}/x; cat ~/secret", prefix.display());
        caller.program(bin.join("probe"), &format!("#!/bin/sh\n{probe}\n"));
        let (_, seen, _) = agent(caller, bin.to_str().unwrap(), "codex", "probe");
        assert_eq!(seen, "");
        assert!(!prefix.join("x").exists());
    });
}

#[test]
fn the_state_is_kept_and_nothing_beside_it() {
    test(|caller| {
        let home = caller.home();
        caller.write(home.join(".claude/memory"), "old");
        caller.write(home.join(".claude.json"), "{}");
        caller.write(home.join(".claude.json.backup"), "decoy");
        let file = home.join(".claude.json");
        let script = "cat ~/.claude/memory; echo new > ~/.claude/memory; echo '{1}' > ~/.claude.json; \
                  ls -A ~; echo '{}' > ~/.claude/settings.json";
        let (_, seen, messages) =
            run(caller.with(&["--profile", "claude", "--caches", "empty"], script));
        assert_eq!(seen, "old.claude\n.claude.json\n");
        assert_eq!(
            fs::read_to_string(home.join(".claude/memory")).unwrap(),
            "new\n"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "{1}\n");
        assert!(
            messages.contains("settings.json\" is new: Claude Code runs"),
            "{messages}"
        );
        fs::remove_file(&file).unwrap();
        let (_, _, messages) = run(caller.with(&["--profile", "claude"], "true"));
        assert!(
            messages.contains(".claude.json\" does not exist"),
            "{messages}"
        );
    });
}

#[test]
fn an_agent_that_was_planted_in_the_workspace_is_not_run() {
    test(|caller| {
        for place in ["bin", ".venv/bin", "node_modules/.bin"] {
            caller.program(
                caller.project().join(place).join("claude"),
                "#!/bin/sh\necho planted\n",
            );
        }
        let path = ["bin", ".venv/bin", "node_modules/.bin"]
            .map(|place| caller.project().join(place).display().to_string())
            .join(":");
        let (code, seen, messages) = agent(caller, &path, "claude", "claude");
        assert_eq!((code, seen.as_str()), (127, ""));
        assert!(messages.contains("outside of the workspace"), "{messages}");

        let real = caller.home().join("tools/claude");
        caller.program(&real, "#!/bin/sh\necho real\n");
        let path = format!("{path}:{}", real.parent().unwrap().display());
        assert_eq!(agent(caller, &path, "claude", "claude").1, "real\n");
        // Who names it by its path means it.
        assert_eq!(
            agent(caller, &path, "claude", "./bin/claude").1,
            "planted\n"
        );
    });
}
