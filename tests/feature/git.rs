//! git, over each of its transports: clone, commit, push.

use std::fs;

use stockade_world::{World, test};

use super::daemon::Daemon;
use super::place::Place;
use super::ssh;
use crate::support::standard;

/// Where the servers keep their repositories.
const SHELF: &str = "/srv/git";

/// A repository to clone, with one commit.
fn stock(world: &World) {
    let line = format!(
        "git init -q --bare -b main {SHELF}/project.git &&
        git clone -q {SHELF}/project.git /tmp/first && cd /tmp/first &&
        echo one > file && git add file && {COMMIT} -m first && git push -q origin HEAD:main"
    );
    let output = world.laptop().shell(&line).run().expect("git ends");
    output.expect_success();
}

const INSIDE: Place<'_> = Place::Inside(&[]);
const COMMIT: &str = "git -c user.name=Dev -c user.email=dev@example.com commit -q";

/// Clones inside, adds a commit and pushes it; then looks for it on the server's disk.
fn round_trip(world: &World, place: Place<'_>, url: &str, settings: &str) {
    let line = format!(
        "{settings} git clone -q {url} copy && cd copy && cat file &&
        echo two >> file && {COMMIT} -a -m second && {settings} git push -q origin HEAD"
    );
    let command = place.shell(world.laptop(), &line);
    let output = command.run().expect("git ends").expect_success();
    assert_eq!(output.stdout(), "one\n");
    let log = format!("git -C {SHELF}/project.git log --format=%s main");
    let output = world.laptop().shell(&log).run().expect("git ends");
    assert_eq!(output.expect_success().stdout(), "second\nfirst\n");
}

const HTTPS_URL: &str = "https://www.example.com:8443/project.git";

/// A server of the repository, with a certificate.
fn serve_https(world: &World) -> Daemon {
    let identity = world.authority().identity(&["www.example.com"]);
    let identity = identity.expect("a certificate");
    fs::write("/tmp/certificate.pem", identity.certificate).expect("write");
    fs::write("/tmp/key.pem", identity.key).expect("write");
    let script = include_str!("probes/git_server.py");
    let arguments = ["-I", "-c", script, "8443", SHELF];
    let arguments = [&arguments[..], &["/tmp/certificate.pem", "/tmp/key.pem"]].concat();
    Daemon::start(world.host("web"), 8443, "python3", &arguments)
}

#[test]
fn git_clones_and_pushes_by_its_own_protocol() {
    test(&standard(), |world| {
        stock(world);
        let base = format!("--base-path={SHELF}");
        let options = ["--export-all", "--enable=receive-pack", "--reuseaddr"];
        let arguments = [&["daemon", &base], &options[..]].concat();
        let _server = Daemon::start(world.host("web"), 9418, "git", &arguments);
        round_trip(world, INSIDE, "git://www.example.com/project.git", "");
    });
}

#[test]
fn git_clones_and_pushes_by_https() {
    test(&standard(), |world| {
        stock(world);
        let _server = serve_https(world);
        round_trip(world, INSIDE, HTTPS_URL, "");
    });
}

#[test]
fn git_clones_and_pushes_by_ssh() {
    test(&standard(), |world| {
        stock(world);
        let _server = ssh::serve(world);
        let key = world.laptop().workspace().join("deploy-key");
        let known = world.laptop().workspace().join("known-hosts");
        let ssh = ssh::SSH
            .replace("deploy-key", &key.to_string_lossy())
            .replace("known-hosts", &known.to_string_lossy());
        let url = format!("ssh://dev@www.example.com:2222{SHELF}/project.git");
        round_trip(world, INSIDE, &url, &format!("GIT_SSH_COMMAND='{ssh}'"));
    });
}

#[test]
fn git_works_by_https_with_the_one_host_that_is_allowed_and_tells_of_others() {
    test(&standard(), |world| {
        stock(world);
        let _server = serve_https(world);
        let refused = |place: Place<'_>, reason: &str| {
            let line = format!("git clone -q {HTTPS_URL} refused");
            let output = place.shell(world.laptop(), &line).run().expect("git ends");
            let stderr = output.expect_code(128).stderr();
            assert!(stderr.contains(reason), "{stderr}");
            assert!(stderr.contains("stockade: denied"), "{stderr}");
        };
        refused(
            Place::Closed(&[]),
            "Could not resolve host: www.example.com",
        );
        refused(Place::Closed(&["www.example.com:443"]), "connect to");
        let place = Place::Closed(&["tcp://www.example.com:8443"]);
        round_trip(world, place, HTTPS_URL, "");
    });
}
