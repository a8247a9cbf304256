//! The configurations that Stockade starts from, imported: `explain` judges as their authors say.

use std::{fs, os::unix::fs::symlink};

use stockade_world::{Output, Standard, World, test};

use crate::support::standard;

/// Imports an example for the project, and returns what was said.
fn import(world: &World, example: &str) -> Output {
    let laptop = world.laptop();
    let projects = laptop.home().join(".config/stockade/projects");
    let _ = fs::remove_dir_all(projects);
    let file = laptop.home().join("other-sandbox");
    fs::write(&file, example).expect("write");
    let import = laptop.stockade(["import", "--write"]).args([&file]);
    import.run().expect("its end").expect_success()
}

#[track_caller]
fn expect(world: &World, yes: &[&str], no: &[&str]) {
    for (targets, code) in [(yes, 0), (no, 1)] {
        for target in targets {
            let explain = world.laptop().stockade(["explain", target]);
            let output = explain.run().expect("its end");
            assert_eq!(output.code(), code, "{target}: {output:?}");
        }
    }
}

#[test]
fn explain_judges_imported_configurations_as_their_authors_say() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        world
            .dns()
            .record("api.anthropic.com", world.host("web").v4());
        world.dns().record("evil.example", world.host("web").v4());

        // The devices, and the internet; nothing else nearby.
        import(world, "allow-ip = 192.168.10.21\nallow-ip = 172.23.1.3\n");
        let yes = [
            "udp://192.168.10.21:5064",
            "tcp://172.23.1.3:80",
            "tcp://151.101.1.69:443",
            "tcp://evil.example:443",
        ];
        let no = [
            "tcp://10.20.0.5:80",
            "tcp://172.23.1.4:80",
            "tcp://192.168.10.5:80",
            "tcp://169.254.169.254:80",
            "tcp://[fd00:ec2::254]:80",
        ];
        expect(world, &yes, &no);

        // The named hosts and the company's network; no address that a program brings along.
        let hosts = "[sandbox]\nunshare_net = true\n[sandbox.net_allow]\n\
                     hosts = [\"api.anthropic.com\"]\ncidrs = [\"10.20.0.0/16\"]\n";
        import(world, hosts);
        let yes = ["tcp://api.anthropic.com:443", "tcp://10.20.0.5:443"];
        let no = [
            "tcp://151.101.1.69:443",
            "tcp://evil.example:443",
            "tcp://192.168.10.21:80",
        ];
        expect(world, &yes, &no);

        import(world, "[sandbox]\nunshare_net = true\n");
        expect(
            world,
            &[],
            &["tcp://api.anthropic.com:443", "tcp://151.101.1.69:443"],
        );

        let loud = import(world, "egress-jail = 0\n");
        assert!(loud.stderr().contains("WARNING"), "{loud:?}");
        expect(
            world,
            &["tcp://10.20.0.5:80", "tcp://169.254.169.254:80"],
            &[],
        );
    });
}

/// The file lies in a directory above, which was the workspace of an earlier session.
#[test]
fn what_an_earlier_session_wrote_elsewhere_is_imported_only_on_request() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let (home, top) = (laptop.home(), laptop.home().join("mono"));
        let (package, file) = (top.join("pkg"), top.join(".claude/settings.json"));
        for directory in [&package, &top.join(".claude")] {
            fs::create_dir_all(directory).expect("a directory");
        }
        let text = r#"{"sandbox": {"enabled": true, "filesystem": {"allowWrite": ["~/data"]}}}"#;
        fs::create_dir(home.join("data")).expect("a directory");
        fs::write(&file, text).expect("a file");
        symlink(&file, home.join(".srt-settings.json")).expect("a link");
        let run = |line: &[&str]| {
            let command = laptop.stockade(["import"]).args(line);
            command.directory(&package).run().expect("its end")
        };
        let write = |options: &[&str]| {
            let line = [&["../.claude/settings.json", "--write"], options].concat();
            run(&line)
        };
        let projects = home.join(".config/stockade/projects");
        // Where no session was, it is the user's own.
        write(&[]).expect_success();
        fs::remove_dir_all(&projects).expect("a file less");
        let found = run(&["--find"]).expect_success().stdout();
        assert!(found.contains(".srt-settings.json\n"), "{found}");
        let session = laptop.stockade(["run", "--quiet", "--", "touch", ".claude/settings.json"]);
        let session = session.directory(&top).run().expect("its end");
        session.expect_success();
        let said = write(&[]).expect_code(1).stderr();
        assert!(
            said.contains("a session may have asked for these"),
            "{said}"
        );
        assert!(said.contains("files.write"), "{said}");
        assert!(!projects.exists());
        let found = run(&["--find"]).expect_success().stdout();
        let why = ".srt-settings.json (review it first: an earlier session could have written it";
        assert!(found.contains(why), "{found}");
        write(&["--yes"]).expect_success();
        assert!(projects.exists());
    });
}
