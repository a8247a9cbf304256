//! What a user may ask for, and what not: bad rules, bad workspaces, bad command lines.

use std::os::unix::fs::symlink;

use stockade_world::{Output, World, test};

use crate::support::standard;

/// Runs stockade and fails unless it refuses, without having run the command.
#[track_caller]
fn refused(world: &World, arguments: &[&str], directory: &str, home: Option<&str>) -> Output {
    let mut command = world.laptop().stockade(arguments).directory(directory);
    command = match home {
        Some(home) => command.env("HOME", home),
        None => command.env_remove("HOME"),
    };
    let output = command.run().expect("stockade ends").expect_code(125);
    assert_eq!(output.stdout(), "", "the command ran: {output:?}");
    output
}

const ECHO: [&str; 3] = ["--", "echo", "ran"];
const HOME: &str = "/home/dev";
const PROJECT: &str = "/home/dev/project";

#[test]
fn a_bad_rule_is_shown_with_what_is_wrong_with_it_and_what_would_be_right() {
    test(&standard(), |world| {
        for (rule, message) in [
            (
                "tcp://10.0.0.1/8:443",
                "\
stockade: --allow: the address has bits set beyond its /8 prefix; write `tcp://10.0.0.0/8:443`
  tcp://10.0.0.1/8:443
        ^^^^^^^^^^
",
            ),
            (
                "sctp://10.0.0.1",
                "\
stockade: --allow: `sctp` is no protocol: there are tcp, udp and icmp
  sctp://10.0.0.1
  ^^^^
",
            ),
            (
                "10.0.0.1:99999",
                "\
stockade: --allow: invalid port `99999`: ports are 1 to 65535
  10.0.0.1:99999
           ^^^^^
",
            ),
            (
                "fd00::5:80x",
                "\
stockade: --allow: `fd00::5:80x` is no IPv6 address
  fd00::5:80x
  ^^^^^^^^^^^
",
            ),
            ("", "stockade: --allow: the rule is empty\n  \n  ^\n"),
        ] {
            let arguments = [&["run", "--allow", rule], &ECHO[..]].concat();
            let output = refused(world, &arguments, PROJECT, Some(HOME));
            assert_eq!(output.stderr(), message, "{rule}");
        }
    });
}

#[test]
fn a_workspace_that_would_show_too_much_is_refused() {
    test(&standard(), |world| {
        symlink(HOME, format!("{PROJECT}/link")).expect("a link");
        for (directory, reason) in [
            ("/", "is the whole disk"),
            ("/home", "holds your home directory"),
            (HOME, "is your home directory"),
            ("/home/dev/project/link", "is your home directory"),
            ("/home/dev/.ssh", "lies in your ~/.ssh"),
            ("/etc", "is where the system or other programs keep"),
            ("/tmp", "is where the system or other programs keep"),
            ("/usr/share", "lies in /usr"),
        ] {
            let arguments = [&["run"], &ECHO[..]].concat();
            let output = refused(world, &arguments, directory, Some(HOME));
            let stderr = output.stderr();
            assert!(stderr.contains(reason), "{directory}: {stderr}");
            let fix = "change to the directory of one project";
            assert!(stderr.contains(fix), "{directory}: {stderr}");
        }
    });
}

#[test]
fn without_a_home_nobody_knows_what_to_hide() {
    test(&standard(), |world| {
        for (home, reason) in [
            (None, "HOME is not set"),
            (Some(""), "HOME is not set"),
            (Some("dev"), "not an absolute path"),
            (Some("/nowhere"), "not a usable directory"),
        ] {
            let arguments = [&["run"], &ECHO[..]].concat();
            let output = refused(world, &arguments, PROJECT, home);
            assert!(output.stderr().contains(reason), "{output:?}");
        }
    });
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused() {
    test(&standard(), |world| {
        for arguments in [
            &[][..],
            &["run"],
            &["run", "--"],
            &["run", "--alow", "10.0.0.1", "--", "echo", "ran"],
            &["walk", "--", "echo", "ran"],
            &["run", "--internet", "false", "--", "echo", "ran"],
        ] {
            let output = refused(world, arguments, PROJECT, Some(HOME));
            assert!(output.stderr().contains("Usage: stockade"), "{output:?}");
        }
    });
}

#[test]
fn help_and_version_are_answers() {
    test(&standard(), |world| {
        for (arguments, part) in [
            (&["--help"][..], "Usage: stockade"),
            (&["run", "--help"], "--allow <RULE>"),
            (&["--version"], "stockade "),
        ] {
            let output = world.laptop().stockade(arguments).run();
            let output = output.expect("stockade ends").expect_success();
            assert!(output.stdout().contains(part), "{output:?}");
            assert_eq!(output.stderr(), "");
        }
    });
}

#[test]
fn a_command_may_have_options_of_its_own() {
    test(&standard(), |world| {
        for arguments in [
            &["run", "echo", "--allow", "-q"][..],
            &["run", "--", "echo", "--allow", "-q"],
        ] {
            let output = world.laptop().stockade(arguments).run();
            let output = output.expect("stockade ends").expect_success();
            assert_eq!(output.stdout(), "--allow -q\n");
        }
    });
}

#[test]
fn credentials_that_are_given_are_named_unless_nobody_wants_to_know() {
    test(&standard(), |world| {
        let run = |options: &[&str]| {
            let arguments = [&["run"], options, &["--", "ls", "/home/dev/.ssh"]].concat();
            let output = world.laptop().stockade(arguments).run();
            output.expect("stockade ends").expect_success()
        };
        for (flag, can) in [("--read", "read keys"), ("--write", "read and write keys")] {
            let said = run(&[flag, "/home/dev/.ssh"]).stderr();
            let line = format!(
                "stockade: WARNING: \"/home/dev/.ssh\" is given ({flag}): the command can {can} \
                 of SSH\n"
            );
            assert_eq!(said, line);
            assert_eq!(run(&["--quiet", flag, "/home/dev/.ssh"]).stderr(), "");
        }
    });
}

#[test]
fn a_line_in_one_word_is_not_found_and_told_how_to_be() {
    test(&standard(), |world| {
        let output = world.laptop().stockade(["run", "--", "ls -la"]).run();
        let output = output.expect("stockade ends").expect_code(127);
        assert!(output.stderr().contains("sh -c 'ls -la'"), "{output:?}");
    });
}
