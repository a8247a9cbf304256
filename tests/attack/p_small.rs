//! Ways by which a setting of the user's is lost, or a variable gives something away (P15).

use std::fs;
use std::os::unix::fs::symlink;

use stockade_world::{Laptop, Output, test};

use super::f_files::said;
use super::probe::{INSIDE, Place};
use crate::support::standard;

fn session(laptop: &Laptop, line: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = laptop.stockade(["run", "--", "bash", "-c", line]);
    for (name, value) in variables {
        command = command.env(name, value);
    }
    command.run().expect("the end").expect_success()
}

#[test]
fn p15_a_certificate_variable_shows_no_key() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let home = laptop.home();
        fs::create_dir_all(home.join("certificates")).expect("a directory");
        fs::write(
            home.join("certificates/ca.pem"),
            "-----BEGIN CERTIFICATE-----\n",
        )
        .expect("write");
        let key = "-----BEGIN RSA PRIVATE KEY-----\n";
        fs::write(home.join("certificates/key.pem"), key).expect("write");
        symlink(home.join(".ssh/id_ed25519"), home.join("led")).expect("a link");
        let named = |name: &str, path: &str| {
            let path = home.join(path).display().to_string();
            session(
                laptop,
                &format!("cat ${name} 2>/dev/null; true"),
                &[(name, &path)],
            )
        };
        for name in [
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "GIT_SSL_CAINFO",
        ] {
            let secrets = [
                ".ssh/id_ed25519",
                ".netrc",
                "led",
                "certificates/key.pem",
                ".config/stockade/config.toml",
            ];
            for secret in secrets {
                let output = named(name, secret);
                assert_eq!(output.stdout(), "", "{name} {secret}");
                assert!(
                    output.stderr().contains("is not shown"),
                    "{secret}: {output:?}"
                );
            }
            // The control: certificates are shown.
            let output = named(name, "certificates/ca.pem");
            assert!(output.stdout().contains("BEGIN CERTIFICATE"), "{output:?}");
            assert_eq!(output.stderr(), "", "{name}");
        }
        // Outside, all of them can be read.
        let outside = said(
            laptop,
            Place::Outside,
            "cat ~/.ssh/id_ed25519 ~/led ~/.netrc",
        );
        assert_ne!(outside, "");
    });
}

#[test]
fn p15_proxy_variables_pass_without_their_passwords() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let proxies = [
            ("http_proxy", "http://ada:DECOY-pw@proxy.example:3128"),
            ("HTTPS_PROXY", "ada:DECOY-pw@proxy.example:3128"),
            ("all_proxy", "socks5://ada:DECOY@pw@proxy.example:1080"),
            ("no_proxy", "localhost,.example.org"),
        ];
        let line = "env | grep -i proxy | sort";
        let output = session(laptop, line, &proxies);
        assert_eq!(
            output.stdout(),
            "HTTPS_PROXY=proxy.example:3128\nall_proxy=socks5://proxy.example:1080\n\
             http_proxy=http://proxy.example:3128\nno_proxy=localhost,.example.org\n"
        );
        assert_eq!(
            output.stderr().matches("removed user and password").count(),
            1
        );
        assert!(
            !session(
                laptop,
                "cat /proc/1/environ /proc/*/environ 2>/dev/null; true",
                &proxies
            )
            .stdout()
            .contains("DECOY-pw")
        );
        // Without a password there is nothing to be told of; and who asks for it whole gets it.
        let plain = session(laptop, line, &[("http_proxy", "http://proxy.example:3128")]);
        assert_eq!(plain.stdout(), "http_proxy=http://proxy.example:3128\n");
        assert_eq!(plain.stderr(), "");
        let asked = laptop.stockade([
            "run",
            "--pass-env",
            "http_proxy",
            "--",
            "printenv",
            "http_proxy",
        ]);
        let asked = asked
            .env(proxies[0].0, proxies[0].1)
            .run()
            .expect("the end");
        assert_eq!(asked.stdout().trim(), proxies[0].1, "{asked:?}");
    });
}

#[test]
fn p15_a_trusted_project_that_is_moved_and_linked_back_stays_narrow() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // Without the name of the session, which is another one each time.
        let run = "stockade run -- bash -c 'echo ran; dig +short +time=1 +tries=1 www.example.com' \
            > said 2>&1; code=$?; sed 's/`stockade log .*//' said; (exit $code)";
        let make = "mkdir inner && cd inner && printf '[network]\\ninternet = false\\n' > .stockade.toml && stockade trust --yes >/dev/null";
        said(laptop, Place::Outside, make);
        let narrow = said(laptop, Place::Outside, &format!("cd inner; {run}"));
        assert!(
            narrow.contains("ran") && narrow.contains("the internet is closed"),
            "{narrow}"
        );
        // A session of the directory above can do this.
        let moved = said(
            laptop,
            INSIDE,
            "mv inner .hidden && ln -s .hidden inner && echo moved",
        );
        assert_eq!(moved, "moved\n");
        let refused = said(laptop, Place::Outside, &format!("cd inner; {run}; echo $?"));
        assert!(!refused.contains("ran\n"), "{refused}");
        assert!(refused.contains("was moved away from"), "{refused}");
        assert!(refused.ends_with("125\n"), "{refused}");
        // The ways out: put it back, or agree to where it is now.
        let back = "rm inner; mv .hidden inner; cd inner";
        assert_eq!(
            said(laptop, Place::Outside, &format!("{back}; {run}")),
            narrow
        );
        said(laptop, INSIDE, "mv inner .hidden && ln -s .hidden inner");
        let agree = format!("cd inner; stockade trust --yes >/dev/null; {run}");
        assert_eq!(said(laptop, Place::Outside, &agree), narrow);
    });
}

/// Where a session runs that starts like this, whether it has the internet, and how it ends.
const LOOK: &str = "stockade run --quiet -- bash -c \
    'pwd; getent hosts www.example.com >/dev/null && echo open || echo closed' 2>&1; echo $?";
/// Two ways of the user's to close the internet for ~/project/inner.
const NARROW: [&str; 2] = [
    "mkdir -p ~/.config/stockade/projects; printf 'workspace = \"~/project/inner\"\\n[network]\\nmode = \"none\"\\n' \
        > ~/.config/stockade/projects/inner.toml; chmod -R go-w ~/.config/stockade",
    "printf '[network]\\nmode = \"none\"\\n' > inner/.stockade.toml; (cd inner; stockade trust --yes >/dev/null)",
];

#[test]
fn p15_a_project_that_is_moved_from_under_a_shell_stays_narrow() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for narrow in NARROW {
            // The same shell, before and after a session of the directory above.
            let line = format!(
                "mkdir inner; {narrow}; cd inner; {LOOK}; echo then
                 (cd ..; stockade run --quiet -- mv inner elsewhere); {LOOK}"
            );
            let told = said(laptop, Place::Outside, &line);
            let (before, after) = told.split_once("then\n").expect("two looks");
            assert_eq!(before, "/home/dev/project/inner\nclosed\n0\n");
            assert!(!after.contains("open\n"), "{after}");
            assert!(
                after.contains("for /home/dev/project/inner would be lost"),
                "{after}"
            );
            assert!(after.ends_with("125\n"), "{after}");
            // The ways out: go to where it is, or put it back.
            let there = said(laptop, Place::Outside, &format!("cd elsewhere; {LOOK}"));
            assert!(
                there.ends_with("/home/dev/project/elsewhere\nopen\n0\n"),
                "{there}"
            );
            let line = format!("mv elsewhere inner; cd inner; {LOOK}");
            assert_eq!(said(laptop, Place::Outside, &line), before);
            let clean = "rm -r inner; rm ~/.config/stockade/projects/*; cd /; true";
            said(laptop, Place::Outside, clean);
        }
    });
}

#[test]
fn p15_a_repository_in_a_project_takes_no_settings_from_it() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let prepare = "mkdir -p ~/.config/stockade; echo 'workspace = \"repository\"' > ~/.config/stockade/config.toml
            mkdir -p inner/sub plain/sub; git init -q inner; git init -q plain; echo SECRET > inner/sub/.env";
        said(laptop, Place::Outside, prepare);
        let in_sub = |top: &str| said(laptop, Place::Outside, &format!("cd {top}/sub; {LOOK}"));
        let plant = |top: &str, plant: &str| {
            let line =
                format!("cd {top}; stockade run --quiet -- bash -c '{plant}' && echo planted");
            assert_eq!(said(laptop, Place::Outside, &line), "planted\n", "{plant}");
        };
        for narrow in NARROW {
            said(laptop, Place::Outside, narrow);
            for way in [
                "true",
                "mkdir sub/.git",
                "rm -rf sub/.git; git init -q sub",
                "rm -rf sub/.git; echo > sub/.git",
            ] {
                plant("inner", way);
                assert_eq!(
                    in_sub("inner"),
                    "/home/dev/project/inner/sub\nclosed\n0\n",
                    "{way}"
                );
            }
            said(
                laptop,
                Place::Outside,
                "rm -r ~/.config/stockade/projects inner/sub/.git",
            );
        }
        // Where nothing is configured, the innermost repository is the workspace.
        let outer = "cd plain/sub; stockade run --quiet -- bash -c 'touch ../seen'; ls ..";
        assert_eq!(said(laptop, Place::Outside, outer), "seen\nsub\n");
        plant("plain", "rm seen; git init -q sub");
        assert_eq!(said(laptop, Place::Outside, outer), "sub\n");
    });
}

/// A session left a link in the place of a directory to which the user then changes.
#[test]
fn p15_no_link_of_a_session_chooses_the_workspace_of_a_later_one() {
    const RUN: &str = "run --quiet -- bash -c 'pwd; touch planted'";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |line: &str| said(laptop, Place::Outside, line);
        outside(
            "mkdir -p sub/deep ~/.local/bin/deep; ln -s ~/project ~/mine; ln -s ~/.local/bin ~/led",
        );
        let ways = [
            ("cd sub; stockade", "project/sub", "bin"),
            ("cd sub/deep; stockade", "project/sub/deep", "bin/deep"),
            ("cd ~/mine/sub; stockade", "project/sub", "bin"),
            ("stockade -C sub", "project/sub", "bin"),
            ("cd /; stockade -C ~/project/sub", "project/sub", "bin"),
            ("cd sub; stockade -C deep", "project/sub/deep", "bin/deep"),
            ("cd ~/.claude/sub; stockade", "project/sub", "bin"),
        ];
        outside("mkdir -p ~/.claude; ln -s ~/project/sub ~/.claude/sub");
        for (way, place, _) in ways {
            let ran = outside(&format!("{way} {RUN}; rm ~/{place}/planted"));
            let ran = ran.lines().next();
            assert!(
                ran.is_some_and(|it| it.ends_with("/sub") || it.ends_with("/deep")),
                "{way}: {ran:?}"
            );
        }
        let plant =
            "stockade run --quiet -- bash -c 'mv sub old; ln -s ~/.local/bin sub' && readlink sub";
        assert_eq!(outside(plant), "/home/dev/.local/bin\n");
        for (way, _, target) in ways {
            let told = outside(&format!("{way} {RUN} 2>&1; echo $?"));
            assert!(told.ends_with("\n125\n"), "{way}: {told}");
            let by =
                format!("leads to /home/dev/.local/{target} by the link /home/dev/project/sub");
            assert!(told.contains(&by), "{way}: {told}");
        }
        // Who names the place itself, or by a link of one's own, means it.
        for way in [
            "cd ~/.local/bin; stockade",
            "cd ~/led; stockade",
            "stockade -C ~/led",
        ] {
            let ran = outside(&format!("{way} {RUN}; rm ~/.local/bin/planted"));
            assert_eq!(ran.lines().next(), Some("/home/dev/.local/bin"), "{way}");
        }
        // A link that stays in the workspace leads nowhere else.
        let stays = "rm sub; ln -s old sub; cd sub";
        let ran = outside(&format!("{stays}; stockade {RUN}; rm planted"));
        assert_eq!(ran, "/home/dev/project/old\n");
    });
}

/// With `workspace = "repository"`, the repository around that of a session was never one's workspace.
#[test]
fn p15_a_repository_that_a_session_removes_does_not_widen_the_next_one() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |line: &str| said(laptop, Place::Outside, line);
        outside(
            "mkdir -p ~/.config/stockade; echo 'workspace = \"repository\"' > ~/.config/stockade/config.toml
             mkdir -p outer/inner/sub outer/plain; git init -q outer; git init -q --template= outer/inner",
        );
        let wide = |at: &str, options: &str| {
            outside(&format!(
                "cd outer/{at}; stockade {options} run --quiet -- touch ~/project/outer/seen 2>&1; echo $?
                 rm ~/project/outer/seen && echo wide"
            ))
        };
        assert!(!wide("inner/sub", "").contains("wide"));
        let removed = "cd outer/inner; stockade run --quiet -- rm -rf .git; ls -A";
        assert_eq!(outside(removed), "sub\n");
        let told = wide("inner/sub", "");
        assert!(
            told.ends_with("\n125\n") && !told.contains("wide"),
            "{told}"
        );
        assert!(
            told.contains("-C /home/dev/project/outer/inner, or once -C /home/dev/project/outer"),
            "{told}"
        );
        assert!(!wide("inner/sub", "-C ~/project/outer/inner").contains("wide"));
        // Who has it for a workspace, or says so, has it.
        assert!(wide("inner/sub", "-C ~/project/outer").contains("wide"));
        for at in ["inner/sub", "plain", "."] {
            assert!(wide(at, "").contains("wide"), "{at}");
        }
    });
}

/// A session that runs exchanges a directory for a link and back, while another one starts there.
#[test]
fn p15_a_link_that_comes_and_goes_does_not_choose_the_workspace() {
    const FLIP: &str = "import ctypes, time
while True:
    ctypes.CDLL(None).renameat2(-100, b'sub', -100, b'x', 2)
    time.sleep(0.0007)
";
    const TRIES: &str =
        "cd ~/project/sub; (cd ..; stockade run --quiet -- python3 flip.py) & sleep 2
        for i in {1..15}; do
            stockade run --quiet -- pwd; (cd ~/project; stockade -C sub run --quiet -- pwd)
        done; kill $!; wait";
    test(&standard(), |world| {
        let laptop = world.laptop();
        let outside = |line: &str| said(laptop, Place::Outside, line);
        fs::write(laptop.workspace().join("flip.py"), FLIP).expect("a program");
        outside("mkdir -p sub ~/target; ln -s ~/target x");
        let tried = outside(TRIES);
        assert!(!tried.contains("target"), "{tried}");
        // Those that did start were in the directory itself, by either name.
        let before = outside("rm -rf sub x; mkdir sub; cd sub; stockade run --quiet -- pwd");
        assert_eq!(before, "/home/dev/project/sub\n");
    });
}
