//! `run --learn`, `suggest --write`, and the same command with the internet closed.

use std::fs;

use serde_json::Value;
use stockade_world::{Laptop, Site, Standard, test};

use super::{project_file, session, stockade};
use crate::{daily::packages, support::standard};

/// The command works, is learned from, and works again with the internet closed. Something else
/// works only before.
fn learned(laptop: &Laptop, script: &str, says: &str, rules: &[&str]) {
    let other =
        "curl -sS --max-time 5 http://mirror.example.org > /dev/null 2>&1 && echo open; true";
    let control = session(laptop, &[], other);
    assert_eq!(control.stdout(), "open\n", "the control: {control:?}");
    let first = session(laptop, &["--learn"], script);
    assert_eq!(first.stdout(), says, "{first:?}");
    let written = stockade(laptop, &["suggest", "--write"]).expect_success();
    assert!(
        written
            .stderr()
            .contains("checked: these rules allow all of"),
        "{written:?}"
    );
    let text = project_file(laptop);
    assert!(text.contains("internet = false"), "{text}");
    let found: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('"'))
        .collect();
    let expected: Vec<_> = rules.iter().map(|rule| format!("\"{rule}\",")).collect();
    assert_eq!(found, expected, "{text}");
    let both = format!("{script}; {other}");
    let closed = session(laptop, &["--caches", "empty"], &both).expect_success();
    assert_eq!(closed.stdout(), says, "{closed:?}");
    assert!(
        closed
            .stderr()
            .contains("denied the name mirror.example.org"),
        "{closed:?}"
    );
}

#[test]
fn npm_ci_is_learned_and_works_with_the_internet_closed() {
    test(&standard(), |world| {
        let mirror = world
            .host("mirror")
            .http(80, Site::text("mirror\n"))
            .expect("a server");
        let _server = packages::serve(world);
        let script = "cd node; rm -rf node_modules; npm ci >&2; node -p 'require(\"small\")'";
        let rules = ["tcp://www.example.com:80"];
        learned(world.laptop(), script, "small\n", &rules);
        drop(mirror);
    });
}

#[test]
fn pip_install_is_learned_and_works_with_the_internet_closed() {
    test(&standard(), |world| {
        let mirror = world
            .host("mirror")
            .http(80, Site::text("mirror\n"))
            .expect("a server");
        let _server = packages::serve(world);
        let script = "rm -rf lib; /usr/bin/python3 -m pip install --quiet --target lib --index-url \
            http://www.example.com/simple/ --trusted-host www.example.com --no-cache-dir \
            --disable-pip-version-check small >&2; \
            PYTHONPATH=lib python3 -c 'import small; print(small.WORD)'";
        let rules = ["tcp://www.example.com:80"];
        learned(world.laptop(), script, "small\n", &rules);
        drop(mirror);
    });
}

/// A repository that a web server gives out as files.
#[test]
fn git_fetch_is_learned_and_works_with_the_internet_closed() {
    test(&standard(), |world| {
        let mirror = world
            .host("mirror")
            .http(80, Site::text("mirror\n"))
            .expect("a server");
        let laptop = world.laptop();
        let make = "git init -q --bare ~/site/repo.git; git init -q -b main ~/made; cd ~/made
            git config user.name Dev; git config user.email dev@example.com
            git commit -q --allow-empty -m one; git push -q ~/site/repo.git main
            git -C ~/site/repo.git symbolic-ref HEAD refs/heads/main
            git -C ~/site/repo.git update-server-info
            cd ~/project; git init -q -b main; git remote add origin http://www.example.com/repo.git";
        laptop.shell(make).run().expect("git").expect_success();
        let _server = packages::serve_files(world, &laptop.home().join("site"));
        let script = "git fetch -q origin >&2; git log --format=%s origin/main; \
            git update-ref -d refs/remotes/origin/main; git gc -q --prune=now";
        let rules = ["tcp://www.example.com:80"];
        learned(laptop, script, "one\n", &rules);
        drop(mirror);
    });
}

#[test]
fn a_suggestion_has_devices_names_ports_and_their_evidence() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let fetch = |target: &str| format!("curl -sS --max-time 5 -o /dev/null {target}");
        let script = [
            fetch("http://www.example.com"),
            fetch("-k https://www.example.com"),
            fetch("http://93.184.216.34:7 --http0.9 2>/dev/null"),
            fetch("http://151.101.1.69"),
            fetch("http://192.168.10.21"),
            "getent ahosts mirror.example.org > /dev/null".to_owned(),
            "getent ahosts nowhere.example.org > /dev/null".to_owned(),
            "python3 -c 'import socket
for n in \"abc\": socket.create_connection((n + \".pages.example.com\", 80)).close()'"
                .to_owned(),
            fetch("http://10.20.0.5 2>/dev/null"),
        ]
        .join("\n");
        session(
            laptop,
            &["--learn", "--allow", "192.168.10.0/24"],
            &format!("{script}\ntrue"),
        )
        .expect_success();
        let output = stockade(laptop, &["suggest"]).expect_success();
        let text = output.stdout();
        let rules: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('"'))
            .collect();
        assert_eq!(
            rules,
            [
                "\"icmp://mirror.example.org\",",
                "\"tcp://www.example.com:7,80,443\",",
                "\"tcp://*.pages.example.com:80\",",
                "\"tcp://151.101.1.69:80\",",
                "\"tcp://192.168.10.21:80\",",
            ],
            "{output:?}"
        );
        assert!(
            text.starts_with("[network]\ninternet = false\nallow = [\n"),
            "{text}"
        );
        assert!(text.contains("    # curl"), "{text}");
        assert!(text.contains("1 connection, last 20"), "{text}");
        assert!(text.contains("only asked for: ping is the least"), "{text}");
        let said = output.stderr();
        assert!(said.contains("nowhere.example.org"), "{said}");
        assert!(said.contains("1 attempt was denied"), "{said}");
        assert!(said.contains("checked: these rules allow all of"), "{said}");
        // Against what is in force: a rule that nothing used, one that something did.
        let config = laptop.home().join(".config/stockade/config.toml");
        fs::create_dir_all(config.parent().expect("a directory")).expect("a directory");
        let in_force = "[network]\nallow = [\n\"192.168.10.0/24\",\n\"10.1.1.1\",\n]\n";
        fs::write(&config, in_force).expect("a file");
        let diff = stockade(laptop, &["suggest", "--diff"])
            .expect_code(1)
            .stdout();
        for line in [
            "- internet = true",
            "+ internet = false",
            "  \"192.168.10.0/24\"  # ",
            "- \"10.1.1.1\"  # ",
            "nothing used it in 1 session",
            "+ \"tcp://192.168.10.21:80\"  # ",
        ] {
            assert!(diff.contains(line), "{line}: {diff}");
        }
        let json = stockade(laptop, &["suggest", "--json"])
            .expect_success()
            .stdout();
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["proven"], true);
        assert_eq!(json["allow"][1]["rule"], "tcp://www.example.com:7,80,443");
        assert_eq!(json["allow"][3]["connections"], 1);
    });
}

#[test]
fn a_session_to_learn_from_is_the_one_that_is_used_until_it_was() {
    test(&standard(), |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        session(laptop, &["--learn"], "curl -sS http://www.example.com").expect_success();
        session(laptop, &[], "curl -sS http://mirror.example.org").expect_success();
        let suggested = || stockade(laptop, &["suggest"]).expect_success().stdout();
        let text = suggested();
        assert!(
            text.contains("www.example.com") && !text.contains("mirror"),
            "{text}"
        );
        let both = stockade(laptop, &["suggest", "--last", "2"])
            .expect_success()
            .stdout();
        assert!(
            both.contains("www.example.com") && both.contains("mirror"),
            "{both}"
        );
        let all = stockade(laptop, &["suggest", "--project"])
            .expect_success()
            .stdout();
        assert_eq!(all, both);
        // By name, or by a beginning that no other has; each once, in whatever order.
        let list = stockade(laptop, &["log", "--list", "--json"]).stdout();
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let [first, second] = [0, 1].map(|index| list[index]["session"].as_str().expect("a name"));
        let named = |ids: &[&str]| {
            let words = [&["suggest"], ids].concat();
            stockade(laptop, &words).expect_success().stdout()
        };
        let of_second = named(&[second]);
        assert!(
            of_second.contains("mirror") && !of_second.contains("www.example.com"),
            "{of_second}"
        );
        assert_eq!(named(&[second, first, second]), both);
        let unknown = stockade(laptop, &["suggest", "1-2-3"]).expect_code(125);
        assert!(unknown.stderr().contains("1-2-3"), "{unknown:?}");
        stockade(laptop, &["suggest", "--write"]).expect_success();
        let text = suggested();
        assert!(
            text.contains("mirror") && !text.contains("www.example.com"),
            "{text}"
        );
        let marks = fs::read_dir(laptop.home().join(".local/state/stockade/sessions"));
        let is_mark = |it: &fs::DirEntry| it.path().extension().is_some_and(|it| it == "learn");
        assert!(!marks.expect("logs").flatten().any(|it| is_mark(&it)));
        let refused = session(laptop, &["--learn", "--mode", "none"], "true").expect_code(125);
        assert!(
            refused.stderr().contains("nothing can be learned"),
            "{refused:?}"
        );
        let closed = session(laptop, &["--learn"], "true").expect_success();
        assert!(closed.stderr().contains("add --internet"), "{closed:?}");
    });
}

#[test]
fn a_session_that_connected_to_nothing_teaches_nothing() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        session(laptop, &["--learn"], "true").expect_success();
        let refused = stockade(laptop, &["suggest", "--write"]).expect_code(125);
        assert!(
            refused.stderr().contains("nothing to learn from"),
            "{refused:?}"
        );
        assert!(!laptop.home().join(".config/stockade/projects").exists());
    });
}
