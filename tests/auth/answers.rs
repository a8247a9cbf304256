//! What is said of a token, stored and removed.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;
use stockade_world::{Size, test};

use super::{CLASSIC, ENTERPRISE, FINE, PROJECT, auth, log_in, requests, run, serve, store, world};

#[test]
fn a_narrow_token_is_stored_and_described_without_a_warning() {
    test(&world(), |world| {
        let _forge = serve(world);
        let output = log_in(world, &["github"], FINE).expect_success();
        let said = output.stdout();
        for part in [
            "Stored the login for github.com",
            "fine-grained personal access token of ada",
            "in 20 days",
            "ada/project",
            "GitHub does not say those of a fine-grained token",
            "--github",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("warning"), "{said}");
        let asked = [
            "api.github.com /user token",
            "api.github.com /user/repos token",
        ];
        assert_eq!(requests(), asked);
        let mode = |path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o7777
        };
        let directory = store(world).join("github/github.com");
        assert_eq!(mode(directory.join("login.json")), 0o600);
        for directory in directory.ancestors().take(3) {
            assert_eq!(mode(directory.to_owned()), 0o700);
        }
    });
}

#[test]
fn wide_eternal_and_workflow_capable_tokens_are_told_of_with_a_smaller_one() {
    test(&world(), |world| {
        let _forge = serve(world);
        let said = log_in(world, &["github"], CLASSIC)
            .expect_success()
            .stdout();
        for part in [
            "classic personal access token of ada",
            "scopes: repo, workflow, admin:org, read:user",
            "expires: never",
            "warning: `repo` ",
            "warning: `workflow` ",
            "warning: `admin:org` ",
            "warning: it never expires",
            "https://github.com/settings/personal-access-tokens/new",
            "Contents: read and write",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("`read:user` "), "{said}");
        let said = log_in(world, &["gitlab"], "glpat-decoypersonal").expect_success();
        let said = said.stdout();
        for part in [
            "personal access token of ada",
            "warning: `api` ",
            "warning: a personal access token reaches every project",
            "warning: it never expires",
            "https://gitlab.com/GROUP/PROJECT/-/settings/access_tokens",
            "read_repository and write_repository",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    });
}

#[test]
fn each_forge_and_host_is_asked_in_its_own_way_and_again_by_status() {
    test(&world(), |world| {
        let _forge = serve(world);
        log_in(world, &["github"], FINE).expect_success();
        let host = ["github", "--host", "GHE.example.org"];
        let said = log_in(world, &host, ENTERPRISE).expect_success().stdout();
        assert!(
            said.contains("--github --forge-host ghe.example.org, or with `github = true` and `hosts = [\"ghe.example.org\"]` in [forge]"),
            "{said}"
        );
        let said = log_in(world, &["gitlab"], PROJECT)
            .expect_success()
            .stdout();
        for part in [
            "project access token of project_17_bot_4f5e",
            "team/project",
            "in 7 days",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("warning"), "{said}");
        let first = requests();
        for request in [
            "ghe.example.org /api/v3/user token",
            "gitlab.com /api/v4/personal_access_tokens/self token",
            "gitlab.com /api/v4/personal_access_tokens/self/associations token",
        ] {
            assert!(first.iter().any(|it| it == request), "{first:?}");
        }
        let status = run(auth(world, &["status", "--json"])).expect_success();
        let status: Value = serde_json::from_str(&status.stdout()).expect("JSON");
        let at = |pointer: &str| status.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(at("/0/host"), "ghe.example.org");
        assert_eq!(at("/0/token/scopes/0"), "repo");
        assert_eq!(at("/0/token/expires"), "never");
        assert_eq!(
            at("/0/token/warnings/0/fix").as_str().map(str::is_empty),
            Some(false)
        );
        assert_eq!(at("/1/host"), "github.com");
        assert_eq!(at("/1/state"), "valid");
        assert_eq!(at("/1/token/repositories/names/0"), "ada/project");
        assert_eq!(at("/1/token/days_left"), 20);
        assert_eq!(at("/2/forge"), "gitlab");
        assert_eq!(requests().len(), 2 * first.len());
        let text = run(auth(world, &["status"])).expect_success().stdout();
        assert!(
            text.contains("github.com (GitHub)\n  fine-grained"),
            "{text}"
        );
    });
}

#[test]
fn a_token_that_the_forge_refuses_is_not_stored_and_is_told_of_later() {
    test(&world(), |world| {
        let _forge = serve(world);
        let output = log_in(world, &["github"], "ghp_decoyrevoked").expect_code(125);
        assert!(
            output.stderr().contains("github.com refuses this token"),
            "{output:?}"
        );
        assert!(output.stderr().contains("Bad credentials"), "{output:?}");
        assert!(!store(world).exists());
        log_in(world, &["github"], FINE).expect_success();
        let file = store(world).join("github/github.com/login.json");
        let text = fs::read_to_string(&file).expect("a login");
        fs::write(&file, text.replace(FINE, "ghp_decoyrevoked")).expect("revoked since");
        let output = run(auth(world, &["status"])).expect_code(1);
        assert!(output.stdout().contains("refused: HTTP 401"), "{output:?}");
    });
}

#[test]
fn a_forge_that_cannot_be_asked_is_told_of_and_the_token_is_stored() {
    test(&world(), |world| {
        // Nobody serves.
        let output = log_in(world, &["github"], FINE).expect_success();
        let said = output.stdout();
        assert!(
            said.contains("could not ask api.github.com what this token can do (curl: ("),
            "{said}"
        );
        assert!(
            said.contains("The token is stored. Check it later with `stockade auth status`"),
            "{said}"
        );
        assert!(store(world).join("github/github.com/login.json").exists());
        world
            .laptop()
            .remove_program("/usr/bin/curl")
            .expect("no curl");
        let output = run(auth(world, &["status"])).expect_success();
        let said = output.stdout();
        assert!(
            said.contains("could not ask") && said.contains("curl is not installed"),
            "{said}"
        );
    });
}

#[test]
fn after_its_removal_nothing_is_left_and_the_user_knows_that_the_token_is_still_valid() {
    test(&world(), |world| {
        let _forge = serve(world);
        log_in(world, &["github"], FINE).expect_success();
        log_in(world, &["github", "--host", "ghe.example.org"], ENTERPRISE).expect_success();
        let output = run(auth(world, &["remove", "github"])).expect_success();
        let said = output.stdout();
        assert!(
            said.contains("revoke it: https://github.com/settings/personal-access-tokens\n"),
            "{said}"
        );
        let command = format!("grep -rs {FINE} ~ /tmp /run | grep -v '^/tmp/forge.log'");
        let found = world.laptop().shell(&command).run().expect("grep ends");
        assert_eq!(found.stdout(), "", "{found:?}");
        assert!(store(world).join("github/ghe.example.org").exists());
        run(auth(world, &["remove", "github"])).expect_code(125);
        let host = ["remove", "github", "--host", "ghe.example.org"];
        let said = run(auth(world, &host)).expect_success().stdout();
        assert!(
            said.contains("revoke it: https://ghe.example.org/settings/tokens\n"),
            "{said}"
        );
        assert!(!store(world).exists());
        let output = run(auth(world, &["status", "--json"])).expect_success();
        assert_eq!(output.stdout(), "[]\n");
    });
}

#[test]
fn a_prompt_shows_nothing_of_what_is_typed() {
    test(&world(), |world| {
        let _forge = serve(world);
        // The control: a terminal shows what is typed.
        let cat = world.laptop().command("cat").terminal(Size::default());
        let mut cat = cat.expect("a terminal");
        cat.write(format!("{FINE}\n")).expect("type");
        cat.expect(FINE).expect("an echo");
        let mut prompt = auth(world, &["github"])
            .terminal(Size::default())
            .expect("a terminal");
        prompt
            .expect("Token for github.com (it is not shown): ")
            .expect("a question");
        prompt.write(format!("{FINE}\n")).expect("type");
        prompt.expect("Stored the login").expect("an answer");
        let screen = prompt.screen();
        assert!(
            !screen.contains("github_pat_") && !screen.contains("decoy"),
            "{screen}"
        );
        assert!(prompt.wait().expect("an end").success());
    });
}

#[test]
fn the_terminal_shows_again_what_is_typed_after_ctrl_c_and_other_ends() {
    test(&world(), |world| {
        for (keys, code) in [("github_pat_\x03", "130"), ("\x1cx", "131")] {
            let line = "trap : INT QUIT; /run/world/bin/stockade auth github; \
                        echo \"code<$?>\"; stty -a; echo 'all 'said";
            let shell = world.laptop().command("bash").args(["-c", line]);
            let mut shell = shell.terminal(Size::default()).expect("a terminal");
            shell.expect("(it is not shown): ").expect("a question");
            shell.write(keys).expect("type");
            let screen = shell.expect("all said").expect("an end") + &shell.screen();
            assert!(screen.contains(&format!("code<{code}>")), "{screen}");
            assert!(
                screen.contains(" echo ") && !screen.contains("-echo "),
                "{screen}"
            );
            assert!(!screen.contains("github_pat_"), "{screen}");
        }
        assert!(!store(world).exists());
    });
}

#[test]
fn a_token_as_an_argument_is_refused_and_not_repeated() {
    test(&world(), |world| {
        let _forge = serve(world);
        let token = CLASSIC;
        let with_sign = format!("--token={token}");
        let as_host = format!("--host={token}");
        for words in [
            &["github", token][..],
            &[token],
            &["github", "--token", token],
            &["github", &with_sign],
            &["github", "--host", token],
            &["github", &as_host],
            &["remove", token],
            &["status", token],
            &["-C", ".", "github", token],
        ] {
            let output = log_in(world, words, FINE).expect_code(125);
            let said = output.stdout() + &output.stderr();
            assert!(!said.contains(token), "{words:?}: {said}");
            assert!(
                said.contains("token") || said.contains("--host"),
                "{words:?}: {said}"
            );
        }
        assert!(!store(world).exists() && requests().is_empty());
        let help = run(auth(world, &["github", "--help"])).expect_success();
        assert!(help.stdout().contains("--host"), "{help:?}");
    });
}

#[test]
fn what_cannot_be_a_token_of_that_forge_is_sent_nowhere() {
    test(&world(), |world| {
        let _forge = serve(world);
        for (words, token) in [
            (&["github"][..], ""),
            (&["github"], "two words-and-more"),
            (&["github"], "line-one\nline-two"),
            (&["github"], "quote\"and\\slash-here"),
            (&["github"], PROJECT),
            (&["gitlab"], FINE),
            (&["gitlab"], "gldt-decoydeploytoken"),
            (&["gitlab", "--host", "github.com"], PROJECT),
        ] {
            let output = log_in(world, words, token).expect_code(125);
            let said = output.stdout() + &output.stderr();
            assert!(token.is_empty() || !said.contains(token), "{said}");
            assert!(said.contains("fix: "), "{said}");
            if token.is_empty() {
                let page = "https://github.com/settings/personal-access-tokens/new";
                assert!(said.contains(page), "{said}");
            }
        }
        assert_eq!(requests(), [""; 0]);
        assert!(!store(world).exists());
    });
}
