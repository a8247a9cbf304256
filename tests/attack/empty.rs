//! What is missing from the configuration opens nothing (N7).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use stockade_world::{Command, Laptop, Output, Standard, World, test};

use super::probe::{INTERNET, PROBE, Place, Prober, Watch};
use crate::support::standard;

/// What is near, in both families and all protocols.
const NEAR: [&str; 8] = [
    "tcp://10.20.0.5:80",
    "udp://10.20.0.5:7",
    "icmp://10.20.0.5",
    "tcp://[fd00:20::5]:80",
    "udp://[fd00:20::5]:7",
    "tcp://192.168.10.21:80",
    "udp://192.168.10.21:7",
    "tcp://169.254.169.254:80",
];
/// The internet by name, which needs more than the address.
const BY_NAME: &str = "tcp://www.example.com:7";

/// Writes the user's configuration, as a user would.
pub(super) fn configure(laptop: &Laptop, text: &str) {
    let file = laptop.home().join(".config/stockade/config.toml");
    fs::write(&file, text).expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions");
}

fn session(laptop: &Laptop, options: &[&str]) -> Command {
    let python = ["--", "/usr/bin/python3", "-IS", "-c", PROBE];
    laptop.stockade(["run"]).args(options).args(python)
}

/// Configurations that say nothing about what is allowed.
const SILENT: [&str; 8] = [
    "",
    "\n# nothing\n",
    "[network]\n",
    "[network]\nallow = []\n",
    "[network]\nallow = []\nhost_ports = []\npublish = []\n",
    "[files]\n[env]\n[forge]\n[agent]\n[limits]\n",
    "[profiles.other.network]\nallow = [\"10.0.0.0/8\", \"192.168.10.21\"]\n",
    "[profiles.python3]\n",
];

#[test]
fn n07_a_configuration_that_says_nothing_opens_nothing_near() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let near = ["intranet", "device", "metadata"].map(|name| world.host(name));
        let watch = Watch::on(&near);
        let all = [&NEAR[..], &INTERNET, &[BY_NAME]].concat();
        let open = [&INTERNET[..], &[BY_NAME]].concat();
        let expect_usual = |command: Command| {
            let (denied, internet) = asked(command, &all).without(&open);
            denied.expect_denials();
            internet.expect_answers();
        };
        for text in SILENT {
            configure(laptop, text);
            expect_usual(session(laptop, &[]));
        }
        // Nor does the lack of a file, or a variable with nothing in it.
        let nothing = session(laptop, &[]).env("CLAUDE_SANDBOX_ALLOW_IP", "");
        expect_usual(nothing.env("CLAUDE_SANDBOX_EGRESS_JAIL", ""));
        fs::remove_dir_all(laptop.home().join(".config/stockade")).expect("remove");
        expect_usual(session(laptop, &[]));
        watch.expect_nothing();
        Place::Outside.probe(laptop, &NEAR).expect_answers();
        watch.expect_something();
    });
}

#[track_caller]
fn asked(command: Command, targets: &[&str]) -> super::probe::Answers {
    let mut prober = Prober::start(command);
    let answers = prober.ask(targets);
    prober.end();
    answers
}

#[test]
fn n07_the_closed_internet_with_no_rule_is_closed() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let hosts = ["intranet", "device", "metadata", "web", "dns"];
        let watch = Watch::on(&hosts.map(|name| world.host(name)));
        let all = [&NEAR[..], &INTERNET].concat();
        let expect_nothing = |command: Command| asked(command, &all).expect_denials();
        for text in [
            "[network]\ninternet = false\n",
            "[network]\ninternet = false\nallow = []\n",
            "[network]\ninternet = false\n[profiles.python3]\n",
            "[network]\ninternet = false\n[profiles.python3.network]\nallow = []\n",
            "[profiles.python3.network]\ninternet = false\n",
        ] {
            configure(laptop, text);
            expect_nothing(session(laptop, &[]));
            let told = asked(session(laptop, &[]), &[BY_NAME]);
            told.expect("no address", |outcome| outcome.starts_with("no address"));
        }
        // Whichever layer says so; the other ones are silent.
        configure(laptop, "");
        expect_nothing(session(laptop, &["--internet=false"]));
        let closed = "[network]\ninternet = false\n";
        laptop
            .write_etc("stockade/config.toml", closed)
            .expect("write");
        expect_nothing(session(laptop, &[]));
        configure(laptop, "[network]\nallow = []\n");
        expect_nothing(session(laptop, &[]));
        watch.expect_nothing();
        // The control: the same session with one rule.
        configure(
            laptop,
            "[network]\nallow = [\"www.example.com\", \"10.20.0.5\"]\n",
        );
        let open = [BY_NAME, "tcp://10.20.0.5:80", "udp://10.20.0.5:7"];
        asked(session(laptop, &[]), &open).expect_answers();
    });
}

fn refused(world: &World) -> Output {
    let touch = world.laptop().stockade(["run", "--", "touch", "ran"]);
    touch.run().expect("run")
}

#[test]
fn n07_what_could_be_meant_as_nothing_is_an_error_and_not_everything() {
    test(&standard(), |world| {
        let marker = world.laptop().workspace().join("ran");
        for text in [
            "[network]\nallow = null\n",
            "[network]\nallow = \"\"\n",
            "[network]\nallow = [\"\"]\n",
            "[network]\nallow = [[]]\n",
            "[network]\nallow = [\"*\"]\n",
            "[network]\nallow = {}\n",
            "[network]\nallow =\n",
            "[network]\ninternet = \"false\"\n",
            "[network]\ninternet = 0\n",
            "[network]\ninternet = \"\"\n",
            "[network]\nmode = \"\"\n",
            "[network]\nallowed = [\"10.20.0.5\"]\n",
            "[net]\ninternet = false\n",
            "internet = false\n",
            "\0",
        ] {
            configure(world.laptop(), text);
            let output = refused(world).expect_code(125);
            assert!(output.stderr().contains("config.toml"), "{output:?}");
            assert!(!marker.exists(), "{text:?}");
        }
        configure(world.laptop(), "[network]\nallow = []\n");
        refused(world).expect_success();
        assert!(marker.exists());
    });
}
