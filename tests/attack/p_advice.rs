//! Whether what a program inside made up becomes a proposal to the user (P8).

use std::fs;
use std::os::unix::fs::symlink;

use stockade_world::{Standard, test};

use super::f_files::said;
use super::probe::Place;
use crate::support::standard;

/// By which more is given away.
const PROPOSALS: [&str; 6] = [
    "files.write",
    "files.read",
    "--write",
    "--read",
    "name the directory",
    "to allow",
];

#[track_caller]
fn expect_suspicion(message: &str) {
    assert!(message.contains("suspicious"), "{message}");
    for proposal in PROPOSALS {
        assert!(!message.contains(proposal), "{proposal}: {message}");
    }
}

#[test]
fn p08_a_planted_git_file_brings_no_proposal_of_what_it_names() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let make = "cd ~; git init -q other; cd other; git config user.name x; git config user.email x
            git commit -q --allow-empty -m s; git worktree add -q ~/tree 2>/dev/null; git worktree add -q ~/second 2>/dev/null; true";
        said(laptop, Place::Outside, make);
        let home = laptop.home();
        let workspace = laptop.workspace();
        let message = || {
            let output = laptop
                .stockade(["run", "--", "true"])
                .run()
                .expect("the end");
            output.expect_success().stderr()
        };
        for named in [
            ".ssh",
            ".config/gh",
            "other/.git",
            "other/.git/worktrees/tree",
            "",
        ] {
            let _ = fs::remove_dir_all(workspace.join(".git"));
            let text = format!("gitdir: {}\n", home.join(named).display());
            fs::write(workspace.join(".git"), text).expect("write");
            expect_suspicion(&message());
            fs::remove_file(workspace.join(".git")).expect("remove");
            symlink(home.join(named), workspace.join(".git")).expect("a link");
            expect_suspicion(&message());
            fs::remove_file(workspace.join(".git")).expect("remove");
        }
        // The control: a worktree of the user's own is nothing to be told of, and works.
        let line = "cd ~/tree && stockade run -- git log --format=%s 2>&1";
        assert_eq!(said(laptop, Place::Outside, line), "s\n");
    });
}

#[test]
fn p08_a_name_that_a_program_claims_brings_no_proposal_of_the_address() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let session = |line: &str| {
            let session =
                laptop.stockade(["run", "--internet=false", "--allow", "www.example.com"]);
            let output = session
                .args(["--", "bash", "-c", line])
                .run()
                .expect("the end");
            output.stderr()
        };
        let claims = [
            "curl -s -H 'Host: other.example.net' http://www.example.com/",
            "curl -sk --connect-to ::www.example.com: https://other.example.net/",
        ];
        for claim in claims {
            let receipt = session(&format!("{claim}; true"));
            let proposed: Vec<_> = receipt
                .lines()
                .filter(|line| line.contains("to allow it: "))
                .collect();
            assert!(!proposed.is_empty(), "{receipt}");
            for line in proposed {
                assert!(
                    line.contains("--allow tcp://other.example.net:"),
                    "{receipt}"
                );
                assert!(line.contains("suspicious"), "{receipt}");
            }
            // And nothing to be copied.
            assert!(!receipt.contains("stockade allow"), "{receipt}");
        }
        // The control: what was asked for by its own name is proposed as such.
        let receipt = session("curl -s http://mirror.example.org/; true");
        assert!(
            receipt.contains(": stockade allow mirror.example.org\n"),
            "{receipt}"
        );
        assert!(!receipt.contains("suspicious"), "{receipt}");
        let receipt = session("curl -s --max-time 5 http://www.example.com:81/; true");
        assert!(!receipt.contains("suspicious"), "{receipt}");
        // What has a name is not proposed by its number on another port either.
        let one = laptop.stockade([
            "run",
            "--internet=false",
            "--allow",
            "tcp://www.example.com:443",
        ]);
        let one = one.args([
            "--",
            "curl",
            "-s",
            "--max-time",
            "5",
            "http://www.example.com/",
        ]);
        let receipt = one.run().expect("the end").stderr();
        assert!(
            receipt.contains("--allow tcp://www.example.com:80\n"),
            "{receipt}"
        );
        let mut proposed = receipt.lines().filter(|line| line.contains("allow"));
        assert!(
            !proposed.any(|line| line.contains("allow it: --allow tcp://93.")),
            "{receipt}"
        );
    });
}

#[test]
fn p08_a_planted_link_to_a_program_brings_no_proposal_to_show_it() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let (home, workspace) = (laptop.home(), laptop.workspace());
        symlink(home.join(".ssh/id_ed25519"), workspace.join("build")).expect("a link");
        let output = laptop.stockade(["run", "--", "./build"]).run();
        expect_suspicion(&output.expect("the end").expect_code(127).stderr());
        // The control: a link to what is visible is a program as any other.
        symlink("/usr/bin/true", workspace.join("harmless")).expect("a link");
        let output = laptop.stockade(["run", "--", "./harmless"]).run();
        output.expect("the end").expect_success();
    });
}

/// The name of a file is a word of the command that is proposed, and nothing else.
#[test]
fn p08_no_name_of_a_file_becomes_a_command_of_a_proposal() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for (name, is_proposed) in [
            ("plain", true),
            ("$(touch ran)", true),
            ("`touch ran`", true),
            ("'; touch ran; '", true),
            ("a\ntouch ran", false),
        ] {
            let prepare =
                "cd ~/project; rm -rf .git .vscode ran ~/.local/state/stockade; git init -q";
            said(laptop, Place::Outside, prepare);
            let file = laptop.workspace().join(".vscode").join(name);
            fs::create_dir(file.parent().expect("a parent")).expect("a directory");
            fs::write(&file, "").expect("write");
            let session = |script: &str| {
                let words = ["run", "--", "bash", "-c", script];
                laptop.stockade(words).run().expect("an end").stderr()
            };
            session("true");
            session("git add -f .vscode");
            let stderr = session("true");
            let command = stderr
                .lines()
                .find_map(|line| line.split_once("stockade accept --file "));
            assert_eq!(command.is_some(), is_proposed, "{name}: {stderr}");
            let Some((_, word)) = command else { continue };
            // What a shell makes of it.
            let word = said(laptop, Place::Outside, &format!("printf %s {word}"));
            assert_eq!(word, format!(".vscode/{name}"), "{stderr}");
            assert!(!laptop.workspace().join("ran").exists(), "{name}");
        }
    });
}
