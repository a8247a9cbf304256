//! Forges that mean harm, or do not work.

use stockade_world::test;

use super::{FINE, auth, log_in, requests, run, serve, store, world};

/// What a terminal would act on.
fn is_acted_on(c: char) -> bool {
    c != '\n' && (c.is_control() || "\u{202e}\u{2066}\u{200b}".contains(c))
}

#[test]
fn a_redirect_to_another_host_gets_no_token() {
    test(&world(), |world| {
        let _forge = serve(world);
        let output = log_in(world, &["github"], "ghp_decoyredirect").expect_code(125);
        let said = output.stderr();
        assert!(said.contains("it redirects with HTTP 302"), "{said}");
        assert!(!store(world).exists());
        assert_eq!(requests(), ["api.github.com /user token"]);
        // The control: the other host is there, and a client that follows gets there.
        let follow = "curl -sL -H 'Authorization: Bearer ghp_decoyredirect' --location-trusted \
                      https://api.github.com/user";
        world.laptop().shell(follow).run().expect("curl ends");
        assert_eq!(
            requests().last().map(String::as_str),
            Some("evil.example.org /user token")
        );
    });
}

#[test]
fn answers_that_are_huge_slow_malformed_or_errors_are_no_answers() {
    test(&world(), |world| {
        let _forge = serve(world);
        for (token, why) in [
            ("ghp_decoyhuge000", "too long"),
            ("ghp_decoyslow000", "curl: (28)"),
            ("ghp_decoyerror00", "answers HTTP 503"),
            ("ghp_decoynothttp", "curl: (1)"),
        ] {
            let output = log_in(world, &["github"], token).expect_success();
            let said = output.stdout() + &output.stderr();
            assert!(
                said.contains("could not ask") && said.contains(why),
                "{token}: {said}"
            );
            assert!(!said.contains(is_acted_on), "{said:?}");
            assert!(!said.contains(token), "{said}");
        }
        let words = ["remove", "github"];
        run(auth(world, &words)).expect_success();
        // What is not JSON is no forge's, nor is a page of another server's.
        let other = ["github", "--host", "evil.example.org"];
        for (words, token) in [
            (&["github"][..], "ghp_decoymalform"),
            (&["github"], "ghp_decoyempty00"),
            (&other, FINE),
        ] {
            let said = log_in(world, words, token).expect_code(125).stderr();
            assert!(
                said.contains("does not answer like GitHub") && said.contains("nothing was stored"),
                "{token}: {said}"
            );
            assert!(!said.contains(token), "{said}");
            assert!(!store(world).exists());
        }
        // The control: the same forge answers for another.
        let said = log_in(world, &["github"], FINE).expect_success().stdout();
        assert!(!said.contains("could not ask"), "{said}");
    });
}

#[test]
fn control_characters_of_a_forge_do_not_reach_the_terminal_nor_the_store() {
    test(&world(), |world| {
        let _forge = serve(world);
        for token in ["ghp_decoycontrol", FINE] {
            let stored = log_in(world, &["github"], token).expect_success().stdout();
            let status = run(auth(world, &["status"])).expect_success().stdout();
            let json = run(auth(world, &["status", "--json"]))
                .expect_success()
                .stdout();
            for said in [stored, status, json] {
                assert!(!said.contains(is_acted_on), "{said:?}");
                assert!(said.contains("evil") || said.contains("red"), "{said}");
            }
        }
        let file = store(world).join("github/github.com/login.json");
        let text = std::fs::read_to_string(file).expect("a login");
        assert!(
            !text.contains(is_acted_on) && !text.contains("\\u"),
            "{text:?}"
        );
    });
}

#[test]
fn a_forge_that_repeats_the_token_does_not_have_it_printed() {
    test(&world(), |world| {
        let _forge = serve(world);
        let token = "ghp_decoyecho000";
        let output = log_in(world, &["github"], token).expect_success();
        let said = output.stdout() + &output.stderr();
        assert!(said.contains("scopes: repo, (hidden), (hidden)"), "{said}");
        assert!(!said.contains(token), "{said}");
        let status = run(auth(world, &["status", "--json"])).expect_success();
        assert!(!status.stdout().contains(token), "{status:?}");
    });
}

#[test]
fn a_forge_with_a_certificate_of_another_gets_no_token() {
    test(&world(), |world| {
        let _forge = serve(world);
        // The same machine, by a name that its certificate does not have.
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        let hosts = format!("{hosts}140.82.121.4 ghe2.example.org\n");
        world.laptop().write_etc("hosts", &hosts).expect("write");
        let words = ["github", "--host", "ghe2.example.org"];
        let output = log_in(world, &words, "ghp_decoyenterprise").expect_success();
        assert!(output.stdout().contains("could not ask"), "{output:?}");
        assert!(output.stdout().contains("curl: (60)"), "{output:?}");
        assert_eq!(requests(), [""; 0]);
    });
}
