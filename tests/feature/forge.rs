//! Pushing to a forge: with the login of `gh`, when the forge is on, and not at all when it
//! is off. The forge is a host of the world that is known by the name of the real one.

use std::fs;

use stockade_world::{Builder, Command, HostSpec, Output, World, test};

use super::daemon::Daemon;
use crate::support::standard;

const FORGE: &str = "github.com";
/// Where the forge keeps its repositories.
const SHELF: &str = "/srv/forge";
const TOKEN: &str = "gho_decoytoken";

fn world() -> Builder {
    let forge = HostSpec::new("forge").named(FORGE).at("140.82.121.4");
    standard().host(forge)
}

/// A repository on the forge, the server, and a user who has logged in with `gh`.
fn serve(world: &World) -> Daemon {
    let line = format!(
        "git init -q --bare -b main {SHELF}/project.git &&
        git clone -q {SHELF}/project.git /tmp/first && cd /tmp/first &&
        echo one > file && git add file &&
        git -c user.name=Dev -c user.email=dev@example.com commit -q -m first &&
        git push -q origin HEAD:main"
    );
    let output = world.laptop().shell(&line).run().expect("git ends");
    output.expect_success();
    let store = world.laptop().home().join(".config/gh/hosts.yml");
    let login =
        format!("{FORGE}:\n    user: dev\n    oauth_token: {TOKEN}\n    git_protocol: https\n");
    fs::write(store, login).expect("a login");

    let identity = world.authority().identity(&[FORGE]);
    let identity = identity.expect("a certificate");
    fs::write("/tmp/certificate.pem", identity.certificate).expect("write");
    fs::write("/tmp/key.pem", identity.key).expect("write");
    let script = include_str!("probes/git_server.py");
    let arguments = ["-I", "-c", script, "443", SHELF];
    let files = ["/tmp/certificate.pem", "/tmp/key.pem", TOKEN];
    let arguments = [&arguments[..], &files].concat();
    Daemon::start(world.host("forge"), 443, "python3", &arguments)
}

/// The user's configuration, with forges as this says.
fn configure(world: &World, forge: &str) {
    let file = world.laptop().home().join(".config/stockade/config.toml");
    fs::write(file, forge).expect("a configuration");
}

const ON: &str = "[forge]\ngithub = true\n";

/// Clones, commits and pushes, to the address that people have in their repositories.
const PUSH: &str = "
    rm -rf copy && git clone -q https://github.com/project.git copy && cd copy && echo cloned &&
    echo more >> file &&
    git -c user.name=Dev -c user.email=dev@example.com commit -q -a -m more &&
    GIT_TERMINAL_PROMPT=0 git push -q git@github.com:project.git HEAD:main && echo pushed";

fn push(world: &World, options: &[&str]) -> Command {
    let command = world.laptop().stockade(["run"]).args(options);
    command.args(["--", "sh", "-c", PUSH])
}

fn run(command: Command) -> Output {
    command.run().expect("stockade ends")
}

/// How many commits the forge has.
fn commits(world: &World) -> usize {
    let line = format!("git -C {SHELF}/project.git log --format=%s main");
    let output = world.laptop().shell(&line).run().expect("git ends");
    output.expect_success().stdout().lines().count()
}

#[test]
fn a_push_to_a_forge_that_is_on_works() {
    test(&world(), |world| {
        let _server = serve(world);
        configure(world, ON);
        let output = run(push(world, &[])).expect_success();
        assert_eq!(output.stdout(), "cloned\npushed\n");
        assert_eq!(commits(world), 2);
    });
}

#[test]
fn a_push_to_a_forge_that_is_off_fails() {
    test(&world(), |world| {
        let _server = serve(world);
        configure(world, "");
        let output = run(push(world, &[]));
        // By ssh, since without a forge nothing says otherwise, and there is no key for it.
        assert_eq!(output.stdout(), "cloned\n", "{output:?}");
        assert_ne!(output.code(), 0);
        let by_https = PUSH.replace("git@github.com:", "https://github.com/");
        let command = world
            .laptop()
            .stockade(["run", "--", "sh", "-c", &by_https]);
        let output = run(command);
        assert_eq!(output.stdout(), "cloned\n", "{output:?}");
        assert!(
            output.stderr().contains("could not read Username"),
            "{output:?}"
        );
        assert_eq!(commits(world), 1);
    });
}

/// What is left inside of a forge: the login, the helper, the way around ssh.
const TRACES: &str = "
    grep -rs gho_ ~ /run /tmp; ls -A ~/.config 2>/dev/null; env | grep -i gho_;
    git config --list | grep -E 'credential|insteadof'; echo looked";

#[test]
fn all_of_a_forge_is_taken_away_by_a_flag_or_a_variable() {
    test(&world(), |world| {
        let _server = serve(world);
        configure(world, ON);
        let traces = |options: &[&str], variable: &str| {
            let command = world.laptop().stockade(["run"]).args(options);
            let command = command.args(["--", "sh", "-c", TRACES]);
            let output = run(command.env("CLAUDE_SANDBOX_NO_FORGE", variable));
            output.expect_success().stdout()
        };
        let with = traces(&[], "");
        for trace in [
            TOKEN,
            "gh\n",
            "credential.https://github.com.helper",
            "insteadof",
        ] {
            assert!(with.contains(trace), "{trace}: {with}");
        }
        assert_eq!(traces(&["--no-forge"], ""), "looked\n");
        assert_eq!(traces(&[], "1"), "looked\n");

        let without = [
            push(world, &["--no-forge"]),
            push(world, &[]).env("CLAUDE_SANDBOX_NO_FORGE", "1"),
        ];
        for command in without {
            let output = run(command);
            assert_eq!(output.stdout(), "cloned\n", "{output:?}");
            assert_ne!(output.code(), 0);
        }
        assert_eq!(commits(world), 1);
        run(push(world, &[])).expect_success();
        assert_eq!(commits(world), 2);
    });
}
