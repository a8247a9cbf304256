//! What helps with typing: completions in a real shell, pages in a real formatter.

use std::{collections::BTreeSet, fs};

use stockade_world::{Laptop, test};

use crate::support::standard;

/// What a shell offers for the last of these words.
fn offered(laptop: &Laptop, words: &str) -> Vec<String> {
    let script = format!(
        "source <(stockade completions bash)
        function=$(complete -p stockade | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        $function stockade \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"
        printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = laptop.command("/bin/bash").args(["-c", &script]).run();
    let output = output.expect("bash").expect_success();
    assert_eq!(output.stderr(), "");
    // Readline shows each once, in order.
    let words: BTreeSet<String> = output.stdout().lines().map(str::to_owned).collect();
    words.into_iter().collect()
}

#[test]
fn bash_completes_commands_flags_and_agents() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        assert_eq!(offered(laptop, "stockade lo"), ["log"]);
        assert_eq!(offered(laptop, "stockade clau"), ["claude"]);
        assert_eq!(offered(laptop, "stockade run --host-p"), ["--host-port"]);
        assert_eq!(offered(laptop, "stockade completions z"), ["zsh"]);
        assert_eq!(offered(laptop, "stockade config sh"), ["show"]);
        assert_eq!(offered(laptop, "stockade shim add cod"), ["codex"]);
        assert!(offered(laptop, "stockade ''").len() > 10);
        assert_eq!(offered(laptop, "stockade verify-p"), [""], "what is hidden");
        // Values of options.
        assert_eq!(offered(laptop, "stockade run --mode ho"), ["host"]);
        assert_eq!(offered(laptop, "stockade run --hardening ''").len(), 2);
        assert_eq!(offered(laptop, "stockade run --limit mem"), ["memory="]);
        assert_eq!(offered(laptop, "stockade plan --profile cod"), ["codex"]);
        // The command, and what it takes.
        assert_eq!(offered(laptop, "stockade run -- dpkg-que"), ["dpkg-query"]);
        assert_eq!(
            offered(laptop, "stockade run --quiet -- cat /etc/host"),
            hosts()
        );
    });
}

/// The files of the machine whose paths begin so.
fn hosts() -> Vec<String> {
    let entries = fs::read_dir("/etc").expect("/etc").flatten();
    let paths = entries.map(|entry| entry.path().to_string_lossy().into_owned());
    let mut paths: Vec<String> = paths.filter(|path| path.starts_with("/etc/host")).collect();
    paths.sort();
    paths
}

#[test]
fn fish_completes_values_and_commands() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let offered = |line: &str| {
            let script = format!("stockade completions fish | source; complete -C '{line}'");
            let output = laptop.command("fish").args(["-c", &script]).run();
            let output = output.expect("fish").expect_success().stdout();
            let words = output.lines().map(|line| line.split('\t').next());
            words
                .map(|word| word.unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(offered("stockade run --mode ho"), ["host"]);
        assert_eq!(offered("stockade run --limit mem"), ["memory="]);
        assert_eq!(offered("stockade run --profile cod"), ["codex"]);
        assert_eq!(offered("stockade run -- dpkg-que"), ["dpkg-query"]);
        assert!(offered("stockade run -q -- git checkou").contains(&"checkout".to_owned()));
    });
}

#[test]
fn other_shells_take_their_scripts() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for shell in ["zsh", "fish"] {
            let line = format!("stockade completions {shell} > script && {shell} -n script");
            let output = laptop.shell(&line).run().expect("an end");
            assert_eq!(output.expect_success().stderr(), "");
            // The control: what is no script is not taken.
            let line = format!("echo 'if true' > script; {shell} -n script");
            let output = laptop.shell(&line).run().expect("an end");
            assert_ne!(output.code(), 0, "{output:?}");
        }
    });
}

#[test]
fn every_page_of_the_manual_is_formatted_without_a_warning() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let line = "stockade man --directory share/pages && cd share/pages
            for page in *; do groff -man -ww -Tascii \"$page\" > \"$page.txt\"; done";
        let output = laptop.shell(line).run().expect("groff").expect_success();
        assert_eq!(output.stderr(), "");
        let text = |name: &str| {
            let path = laptop.workspace().join(format!("share/pages/{name}.1.txt"));
            let text = fs::read_to_string(path).expect("a page");
            // Bold is a letter, a step back, and the letter again.
            let mut plain = String::new();
            for c in text.chars() {
                match c {
                    '\u{8}' => drop(plain.pop()),
                    c => plain.push(c),
                }
            }
            plain
        };
        let run = text("stockade-run");
        for part in [
            "SYNOPSIS",
            "--host-port",
            "EXAMPLES",
            "EXIT STATUS",
            "SEE ALSO",
        ] {
            assert!(run.contains(part), "{part}: {run}");
        }
        let version = env!("CARGO_PKG_VERSION");
        for (page, name) in [(&run, "stockade-run"), (&text("stockade"), "stockade")] {
            let mut lines = page.lines().filter(|line| !line.trim().is_empty());
            let words = |line: &str| -> Vec<String> {
                line.split("  ")
                    .map(|word| word.trim().to_owned())
                    .filter(|word| !word.is_empty())
                    .collect()
            };
            let title = format!("{name}(1)");
            let head = words(lines.next().expect("a head"));
            assert_eq!(head.join("|"), format!("{title}|Stockade Manual|{title}"));
            let foot = words(lines.next_back().expect("a foot"));
            assert_eq!(foot, [format!("Stockade {version}"), title]);
        }
    });
}
