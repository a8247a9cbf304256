//! What a session gets of stored logins.

use std::fs;

use stockade_world::{World, test};

use super::{ENTERPRISE, FINE, PROJECT, SHELF, auth, has, log_in, run, serve, store, world};

/// The user's own login, which sessions must not get beside a stored one.
const OWN: &str = "gho_decoyofthe_user";

/// A user who has logged in with `gh` and `glab` as well.
fn logged_in(world: &World) {
    let config = world.laptop().home().join(".config");
    let own = [
        (
            "gh/hosts.yml",
            format!("github.com:\n    user: dev\n    oauth_token: {OWN}\n"),
        ),
        (
            "glab-cli/config.yml",
            format!("hosts:\n    gitlab.com:\n        token: {OWN}\n"),
        ),
    ];
    for (file, text) in own {
        fs::create_dir_all(config.join(file).parent().expect("a directory")).expect("make");
        fs::write(config.join(file), text).expect("write");
    }
    log_in(world, &["github"], FINE).expect_success();
    log_in(world, &["github", "--host", "ghe.example.org"], ENTERPRISE).expect_success();
    log_in(world, &["gitlab"], PROJECT).expect_success();
}

fn session(world: &World, options: &[&str], script: &str) -> String {
    let command = world.laptop().stockade(["run"]).args(options);
    let output = run(command.args(["--", "bash", "-c", script]));
    output.stdout() + &output.stderr()
}

/// Clones, commits and pushes to a remote by ssh, as people have it.
fn push(host: &str, options: &str) -> String {
    format!(
        "rm -rf copy && git clone -q https://{host}/project.git copy && cd copy &&
        echo {host} >> file &&
        git -c user.name=Dev -c user.email=dev@example.com commit -q -a -m more &&
        GIT_TERMINAL_PROMPT=0 git {options} push git@{host}:project.git HEAD:main && echo pushed"
    )
}

/// How many commits the forges have.
fn commits(world: &World) -> usize {
    let line = format!("git -C {SHELF}/project.git log --format=%s main");
    let output = world.laptop().shell(&line).run().expect("git ends");
    output.expect_success().stdout().lines().count()
}

#[test]
fn git_pushes_with_the_stored_login_to_each_host_that_is_on() {
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        let cases: [(&[&str], &str, bool); 6] = [
            (&["--github"], "github.com", true),
            (&["--gitlab"], "gitlab.com", true),
            (
                &["--github", "--forge-host", "ghe.example.org"],
                "ghe.example.org",
                true,
            ),
            (&["--github"], "gitlab.com", false),
            (&["--github"], "ghe.example.org", false),
            (&[], "github.com", false),
        ];
        let mut expected = commits(world);
        for (options, host, works) in cases {
            let said = session(world, options, &push(host, ""));
            assert_eq!(said.contains("pushed"), works, "{options:?} {host}: {said}");
            // Helpers are quiet, also when git offers them what it used.
            assert!(
                !works || !said.contains("fatal") && !said.contains("Read-only"),
                "{said}"
            );
            expected += usize::from(works);
            assert_eq!(commits(world), expected);
        }
    });
}

#[test]
fn gh_uses_the_stored_login() {
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        let options = ["--github", "--forge-host", "ghe.example.org"];
        let user = "gh api user --jq .login; gh api --hostname ghe.example.org user --jq .login";
        assert_eq!(session(world, &options, user), "ada\nada\n");
        let helper = "-c credential.https://github.com.helper= \
                      -c credential.https://github.com.helper='!gh auth git-credential'";
        let said = session(world, &options, &push("github.com", helper));
        assert!(said.contains("pushed"), "{said}");
        // The control: without a forge there is no login.
        let said = session(world, &[], user);
        assert!(!said.contains("ada"), "{said}");
    });
}

#[test]
fn glab_uses_the_stored_login() {
    if !has("glab") {
        return;
    }
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        let said = session(world, &["--gitlab"], "glab api user");
        assert!(said.contains("project_17_bot_4f5e"), "{said}");
        let helper = "-c credential.https://gitlab.com.helper= \
                      -c credential.https://gitlab.com.helper='!glab auth git-credential'";
        let said = session(world, &["--gitlab"], &push("gitlab.com", helper));
        assert!(said.contains("pushed"), "{said}");
        let said = session(world, &[], "glab api user");
        assert!(!said.contains("project_17_bot_4f5e"), "{said}");
    });
}

/// Where a text of tokens is to be found, by file.
const LOOK: &str = "for token in github_pat_decoyfine ghp_decoyenterprise glpat-decoyproject \
    gho_decoyofthe_user; do grep -rls $token ~ /run /tmp /etc /var 2>/dev/null | sort | \
    sed \"s/^/$token /\"; env | grep -c $token; done";

#[test]
fn a_session_sees_the_logins_of_its_hosts_and_nothing_else_of_the_store() {
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        assert_eq!(session(world, &[], LOOK), "0\n0\n0\n0\n");
        let home = world.laptop().home().display().to_string();
        let seen = session(world, &["--github"], LOOK);
        let expected = format!(
            "{FINE} {home}/.config/gh/hosts.yml\n{FINE} /run/stockade/logins/github.com\n0\n0\n0\n0\n"
        );
        assert_eq!(seen, expected);
        let further = ["--github", "--forge-host", "ghe.example.org"];
        let seen = session(world, &further, LOOK);
        for (token, is_seen) in [
            (FINE, true),
            (ENTERPRISE, true),
            (PROJECT, false),
            (OWN, false),
        ] {
            assert_eq!(seen.contains(token), is_seen, "{token}: {seen}");
        }
        // The control: outside they are all to be seen.
        let look = world
            .laptop()
            .shell(LOOK)
            .run()
            .expect("grep ends")
            .stdout();
        for token in [FINE, ENTERPRISE, PROJECT, OWN] {
            assert!(look.contains(token), "{token}: {look}");
        }
        // Who shows what is around the store does not show the store.
        let around = format!("{home}/.local/state");
        let seen = session(world, &["--read", &around], LOOK);
        assert_eq!(seen.lines().take(4).collect::<Vec<_>>(), ["0"; 4], "{seen}");
        let directory = store(world).display().to_string();
        for option in ["--read", "--write"] {
            let options = ["run", "--github", option, &directory, "--", "true"];
            run(world.laptop().stockade(options)).expect_code(125);
        }
    });
}

#[test]
fn the_files_of_a_login_cannot_be_changed_inside() {
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        let beside = world.laptop().home().join(".config/gh/own.yml");
        fs::write(beside, "of the user").expect("write");
        let script = "ls -A ~/.config/gh; for file in ~/.config/gh/hosts.yml /run/stockade/logins/github.com; do
            stat -c %a $file
            for act in 'echo x >' 'chmod 644' 'rm -f' 'mv -T /dev/null'; do
                eval \"$act $file\" 2>/dev/null && echo \"$act worked\"
            done; done; grep -c github_pat_ ~/.config/gh/hosts.yml
            echo x > ~/.config/gh/beside && echo beside";
        let said = session(world, &["--github"], script);
        assert_eq!(said, "config.yml\nhosts.yml\n600\n600\n2\nbeside\n");
        let kept = store(world).join("github/github.com/login.json");
        assert!(fs::read_to_string(kept).expect("a login").contains(FINE));
        let own = world.laptop().home().join(".config/gh");
        assert!(!own.join("beside").exists());
    });
}

#[test]
fn a_forge_without_a_stored_login_has_the_users_own_as_before() {
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        run(auth(world, &["remove", "github"])).expect_success();
        let seen = session(world, &["--github"], LOOK);
        assert!(
            seen.contains(&format!("{OWN} ")) && !seen.contains(FINE),
            "{seen}"
        );
        let note = "no login for sessions is stored for github.com, so the command gets your own";
        assert!(seen.contains(note), "{seen}");
        // The control: with a stored login, there is no such note.
        let seen = session(world, &["--gitlab"], "true");
        assert!(!seen.contains("gets your own"), "{seen}");
        // One that is stored for another host only is told of.
        let options = ["--github", "--forge-host", "ghe.example.org"];
        let plan = run(world.laptop().stockade(["plan"]).args(options)).expect_success();
        assert!(
            plan.stdout()
                .contains("stockade auth github --host github.com"),
            "{plan:?}"
        );
    });
}

#[test]
fn a_login_that_others_can_read_refuses_the_session() {
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        let file = store(world).join("github/github.com/login.json");
        let line = format!("chmod 644 {}", file.display());
        world
            .laptop()
            .shell(&line)
            .run()
            .expect("chmod ends")
            .expect_success();
        let command = || world.laptop().stockade(["run", "--github", "--", "true"]);
        let output = run(command()).expect_code(125);
        assert!(
            output.stderr().contains("others can read the token"),
            "{output:?}"
        );
        assert!(!output.stderr().contains(FINE), "{output:?}");
        // One that is not given need not be sound.
        run(world.laptop().stockade(["run", "--", "true"])).expect_success();
        log_in(world, &["github"], FINE).expect_success();
        run(command()).expect_success();
    });
}

#[test]
fn a_session_with_a_stored_login_verifies() {
    test(&world(), |world| {
        let _forge = serve(world);
        logged_in(world);
        let output = run(world.laptop().stockade(["verify", "--github"]));
        assert!(!output.stdout().contains("FAIL"), "{output:?}");
        assert!(!output.stdout().contains(FINE), "{output:?}");
        output.expect_success();
    });
}
