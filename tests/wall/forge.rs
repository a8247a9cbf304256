//! Logins of forges: given when they are on, and not a trace of them when they are off.

use std::fs;

use super::{Caller, run, test};

/// Stands for `gh` and `glab`: answers git with what its store holds.
const HELPER: &str = "#!/bin/sh
[ \"$1 $2 $3\" = 'auth git-credential get' ] || exit 1
token=$(cat ~/.config/STORE) || exit 1
printf 'username=x\\npassword=%s\\n' \"$token\"
";

/// Asks git for the password of a host, as a push by https would.
fn password(host: &str) -> String {
    format!(
        "printf 'protocol=https\\nhost={host}\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill \
         2>/dev/null | sed -n 's/^password=//p'"
    )
}

/// Both programs with their logins. Returns the directory of the programs.
fn forges(caller: &Caller<'_>) -> String {
    let bin = caller.home().join("bin");
    for (name, store) in [("gh", "gh/hosts.yml"), ("glab", "glab-cli/config.yml")] {
        caller.program(bin.join(name), &HELPER.replace("STORE", store));
        let token = format!("token-of-{name}");
        caller.write(caller.home().join(".config").join(store), &token);
    }
    bin.display().to_string()
}

fn ask(caller: &Caller<'_>, bin: &str, options: &[&str], script: &str) -> String {
    let options = [&["--read", bin], options].concat();
    let command = caller
        .with(&options, script)
        .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"));
    run(command).1
}

#[test]
fn each_forge_that_is_on_answers_for_its_hosts_and_no_other() {
    test(|caller| {
        let bin = forges(caller);
        let all = [
            "github.com",
            "gitlab.com",
            "git.example.org",
            "evil.example",
        ]
        .map(|host| password(host) + "; echo ,")
        .join(";");
        let answers = |options: &[&str]| ask(caller, &bin, options, &all).replace('\n', "");
        assert_eq!(answers(&[]), ",,,,");
        assert_eq!(answers(&["--github"]), "token-of-gh,,,,");
        assert_eq!(answers(&["--gitlab"]), ",token-of-glab,,,");
        let more = ["--gitlab", "--forge-host", "git.example.org"];
        assert_eq!(answers(&more), ",token-of-glab,token-of-glab,,");
        assert_eq!(answers(&["--forge-host", "git.example.org"]), ",,,,");
    });
}

#[test]
fn without_a_forge_there_is_no_store_and_no_helper() {
    test(|caller| {
        let bin = forges(caller);
        caller.write(
            caller.home().join(".gitconfig"),
            "[credential]\n\thelper = store\n[user]\n\tname = Ada\n",
        );
        caller.write(
            caller.home().join(".git-credentials"),
            "https://x:decoy@github.com\n",
        );
        let script = "ls -A ~/.config 2>/dev/null; git config --list --show-origin; env";
        let seen = ask(caller, &bin, &[], script);
        assert!(seen.contains("user.name=Ada"), "{seen}");
        for trace in ["helper", "hosts.yml", "glab", "decoy", "/etc/gitconfig"] {
            assert!(!seen.contains(trace), "{trace}: {seen}");
        }
    });
}

#[test]
fn what_is_written_to_a_store_stays_inside() {
    test(|caller| {
        let bin = forges(caller);
        let config = caller.home().join(".config/gh/config.yml");
        caller.write(&config, "editor: vi\n");
        let script = "echo 'editor: evil' > ~/.config/gh/config.yml && cat ~/.config/gh/config.yml; \
                  ls -A ~/.config; echo x > ~/.config/gh/hosts.yml";
        let seen = ask(caller, &bin, &["--github"], script);
        assert_eq!(seen, "editor: evil\ngh\n");
        assert_eq!(fs::read_to_string(&config).unwrap(), "editor: vi\n");
    });
}

#[test]
fn remotes_by_ssh_go_by_https() {
    test(|caller| {
        let bin = forges(caller);
        let script = "git init -q .; git remote add o git@github.com:a/b.git; git remote get-url o";
        let seen = ask(caller, &bin, &["--github"], script);
        assert_eq!(seen, "https://github.com/a/b.git\n");
    });
}

#[test]
fn a_host_that_is_none_is_refused() {
    test(|caller| {
        let _ = forges(caller);
        for host in ["a\"]\n[core]\n\tsshCommand=evil", "https://x", "a b"] {
            let options = ["--github", "--forge-host", host];
            let (code, stdout, messages) = run(caller.with(&options, "echo ran"));
            assert_eq!((code, stdout.as_str()), (125, ""), "{messages}");
        }
    });
}
