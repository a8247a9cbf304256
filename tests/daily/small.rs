//! What is small, and stops a day's work all the same.

use std::fs;

use stockade_world::{Laptop, Output, Standard, test};

use super::{PROFILES, STATE, write};
use crate::{feature::daemon::Daemon, support::standard};

fn outside(laptop: &Laptop, script: &str) -> String {
    let bash = laptop.command("bash").args(["-euc", script]);
    bash.run().expect("its end").expect_success().stdout()
}

fn session(laptop: &Laptop, options: &[&str], script: &str) -> Output {
    let run = laptop.stockade(["run"]).args(options);
    run.args(["--", "bash", "-euc", script])
        .run()
        .expect("its end")
}

#[test]
fn the_package_database_can_be_read_and_not_written() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let list = "dpkg -l bash | grep ^ii; dpkg -S /bin/bash; dpkg-query -W | wc -l";
        let inside = session(laptop, &[], list).expect_success().stdout();
        assert_eq!(inside, outside(laptop, list));
        let write = "touch /var/lib/dpkg/x /var/lib/dpkg/info/x 2>/dev/null && echo wrote; true";
        assert_eq!(session(laptop, &[], write).stdout(), "");
    });
}

#[test]
fn ssh_without_known_hosts_is_told_how_to_get_them() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        outside(
            laptop,
            "dropbearkey -t ed25519 -f /tmp/host-key > /dev/null",
        );
        let key = outside(laptop, "dropbearkey -y -f /tmp/host-key | grep ^ssh");
        let known = laptop.home().join(".ssh/known_hosts");
        fs::write(known, format!("www.example.com {key}")).expect("a file");
        let arguments = [
            "-F",
            "-E",
            "-p",
            "22",
            "-r",
            "/tmp/host-key",
            "-P",
            "/tmp/pid",
        ];
        let _server = Daemon::start(world.host("web"), 22, "dropbear", &arguments);
        // Nobody is let in; whether the server is known shows before.
        let ssh = "ssh -4 -o BatchMode=yes -o GlobalKnownHostsFile=/dev/null www.example.com 2>&1 || true";
        let unknown = session(laptop, &[], ssh);
        assert!(
            unknown.stdout().contains("Host key verification failed"),
            "{unknown:?}"
        );
        let hint = "to give it yours: --read ~/.ssh/known_hosts\n";
        assert!(unknown.stderr().contains(hint), "{unknown:?}");
        let read = ["--read", "~/.ssh/known_hosts"];
        let known = session(laptop, &read, ssh);
        assert!(known.stdout().contains("Permission denied"), "{known:?}");
        assert!(!known.stderr().contains("to give it yours"), "{known:?}");
        // Who uses no ssh hears nothing of it.
        assert_eq!(session(laptop, &[], "true").stderr(), "");
    });
}

#[test]
fn git_has_the_users_aliases_and_settings_of_its_own() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let settings = "[user]\n\tname = Ada\n\temail = ada@example.org\n\
            [alias]\n\tlast = log -1 --format=%an\n\trun = !echo ran\n";
        fs::write(laptop.home().join(".gitconfig"), settings).expect("a file");
        let script = "git commit -q --allow-empty -m x; git last; git run 2>/dev/null || echo no run
            git config --global user.name Eve; git config --global alias.mine 'log -1 --format=%s'
            git config --global core.pager cat; git commit -q --allow-empty -m y; git last; git mine";
        let output = session(laptop, &[], script).expect_success();
        assert_eq!(output.stdout(), "Ada\nno run\nEve\ny\n");
        // It is gone at the end, here and there.
        let again = session(
            laptop,
            &[],
            "git config user.name; git config core.pager || echo none",
        );
        assert_eq!(again.expect_success().stdout(), "Ada\nnone\n");
        let file = fs::read_to_string(laptop.home().join(".gitconfig")).expect("a file");
        assert_eq!(file, settings);
    });
}

#[test]
fn a_submodule_is_added_without_a_warning() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let shelf = "git init -q --bare -b main /srv/git/lib.git; git clone -q /srv/git/lib.git /tmp/lib 2>&1
            cd /tmp/lib; echo lib > file; echo one > .envrc; git add .
            git -c user.name=x -c user.email=x commit -qm one; git push -q origin HEAD:main
            git checkout -qb two; echo two > .envrc; git -c user.name=x -c user.email=x commit -qam two
            git push -q origin two";
        outside(laptop, shelf);
        let options = [
            "daemon",
            "--base-path=/srv/git",
            "--export-all",
            "--reuseaddr",
        ];
        let _server = Daemon::start(world.host("web"), 9418, "git", &options);
        write(laptop.home(), STATE);
        for profile in PROFILES {
            let session = |script: &str| session(laptop, &["--profile", profile], script);
            let name = "git config user.name x; git config user.email x";
            let lib = format!("lib-{profile}");
            let add = format!(
                "{name}; git submodule --quiet add git://www.example.com/lib.git {lib}
                git commit -qm lib; cat {lib}/file; git submodule status {lib} | cut -c1"
            );
            let added = session(&add).expect_success();
            assert_eq!(added.stdout(), "lib\n \n");
            assert_eq!(added.stderr(), "");
            // It is there outside, and the next session works in it.
            let there = format!("cat {lib}/file; git -C {lib} status --short");
            assert_eq!(outside(laptop, &there), "lib\n");
            let update = format!(
                "git -C {lib} fetch -q origin two; git -C {lib} checkout -q FETCH_HEAD; cat {lib}/.envrc
                git add {lib}; git commit -qm two; git submodule update -q
                git clone -q --recurse-submodules . copy
                git -C copy log -2 --format=%s; rm -rf copy"
            );
            let updated = session(&update);
            assert_eq!(updated.stdout(), "two\ntwo\nlib\n", "{updated:?}");
            assert_eq!(updated.stderr(), "");
        }
    });
}

#[test]
fn the_log_is_that_of_this_workspace() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let other = laptop.home().join("other");
        fs::create_dir_all(&other).expect("a directory");
        session(laptop, &["--quiet"], "echo of this one");
        let elsewhere = laptop.stockade(["run", "--quiet", "--", "echo", "of the other"]);
        let elsewhere = elsewhere.directory(&other);
        elsewhere.run().expect("its end").expect_success();
        let log = |directory: &std::path::Path| {
            let log = laptop.stockade(["log"]).directory(directory);
            log.run().expect("its end").expect_success().stdout()
        };
        assert!(log(&laptop.workspace()).contains("of this one"));
        assert!(log(&other).contains("of the other"));
        // Where there was none, the latest of all.
        assert!(log(laptop.home()).contains("of the other"));
    });
}

#[test]
fn a_path_that_does_not_exist_is_told_with_who_names_it() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let file = laptop.home().join(".config/stockade/config.toml");
        fs::write(file, "[files]\nread = [\"~/gone\"]\n").expect("a file");
        let refused = session(laptop, &["--write", "nowhere"], "true").expect_code(125);
        let told = refused.stderr();
        assert!(
            told.contains("\"/home/dev/gone\" (/home/dev/.config/stockade/config.toml:2)"),
            "{told}"
        );
        assert!(
            told.contains("\"/home/dev/project/nowhere\" (--write)"),
            "{told}"
        );
    });
}

#[test]
fn a_rule_for_everything_is_warned_of() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        for rule in ["0.0.0.0/0", "::/0", "tcp://0.0.0.0/1:443"] {
            let told = session(laptop, &["--allow", rule], "true")
                .expect_success()
                .stderr();
            assert!(
                told.contains(&format!("WARNING: rule `{rule}` (--allow) opens the LAN")),
                "{told}"
            );
        }
        let told = session(laptop, &["--allow", "10.0.0.0/8"], "true").expect_success();
        assert_eq!(told.stderr(), "");
        // It does open it.
        let _net = Standard::serve(world).expect("servers");
        let curl = "curl -sS --max-time 20 http://192.168.10.21/";
        let reached = session(laptop, &["--allow", "0.0.0.0/0"], curl).expect_success();
        assert_eq!(reached.stdout(), "hello from device\n");
    });
}

#[test]
fn stockade_inside_says_that_it_is_inside() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let program = outside(laptop, "readlink -f $(command -v stockade)");
        let program = program.trim_end();
        let script = format!("{program} run -- echo ran || echo $?");
        let nested = session(laptop, &["--read", program], &script);
        assert_eq!(nested.stdout(), "125\n", "{nested:?}");
        let told = nested.stderr();
        assert!(told.contains("this is inside a session already"), "{told}");
        assert!(told.contains("leave `stockade` out"), "{told}");
        assert!(!session(laptop, &[], "true").stderr().contains("inside"));
    });
}

#[test]
fn prompts_can_show_the_session() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let name = session(laptop, &[], "echo $STOCKADE_SESSION")
            .expect_success()
            .stdout();
        let sessions = laptop
            .stockade(["log", "--list", "--json"])
            .run()
            .expect("its end");
        assert!(sessions.stdout().contains(name.trim()), "{name}");
        // The lines that the documentation has.
        let page = include_str!("../../docs/configuration.md");
        let line = |shell: &str| {
            let start = format!("| {shell} | `");
            let line = page.lines().find_map(|line| line.strip_prefix(&start));
            line.expect(shell)
                .trim_end_matches("` |")
                .replace("\\|", "|")
        };
        let shells = [
            (
                "bash",
                format!("PS1='$ '; {}; echo \"${{PS1@P}}\"", line("bash")),
            ),
            (
                "zsh",
                format!(
                    "PROMPT='$ '; {}; print -r -- \"${{(e)PROMPT}}\"",
                    line("zsh")
                ),
            ),
            (
                "fish",
                format!(
                    "function fish_prompt; echo '$ '; end; {}; fish_prompt",
                    line("fish")
                ),
            ),
        ];
        for (shell, script) in shells {
            let inside = laptop.stockade(["run", "--", shell, "-c", &script]);
            let inside = inside.run().expect("its end").expect_success().stdout();
            assert_eq!(inside.trim_end(), "[stockade] $", "{shell}");
            let outside = laptop.command(shell).args(["-c", &script]);
            let outside = outside.run().expect("its end").expect_success().stdout();
            assert_eq!(outside.trim_end(), "$", "{shell}");
        }
    });
}

#[test]
fn uv_copies_from_its_cache_without_a_warning() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let mode = "echo $UV_LINK_MODE";
        assert_eq!(session(laptop, &[], mode).stdout(), "copy\n");
        // Who has decided otherwise is heard.
        let own = laptop.stockade(["run", "--", "bash", "-c", mode]);
        let own = own.env("UV_LINK_MODE", "symlink").run().expect("its end");
        assert_eq!(own.stdout(), "symlink\n");
    });
}

/// The tool itself, if whoever runs the tests has it.
#[test]
fn uv_installs_a_package_without_a_warning() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|directory| directory.join("uv"));
    let world = match all.find(|file| file.is_file()) {
        Some(uv) => standard().program("uv", uv),
        None if stockade_world::is_inside() => standard(),
        None => {
            eprintln!("NOT TESTED: there is no uv here");
            return;
        }
    };
    test(&world, |world| {
        let laptop = world.laptop();
        outside(laptop, "mkdir ~/tools; cp $(command -v uv) ~/tools/uv");
        // A package that needs no network, and goes through the cache.
        let wheel = "python3 -c 'import zipfile
with zipfile.ZipFile(\"x-1-py3-none-any.whl\", \"w\") as z:
    z.writestr(\"x.py\", \"\"); z.writestr(\"x-1.dist-info/METADATA\", \"Metadata-Version: 2.1\\nName: x\\nVersion: 1\\n\")
    z.writestr(\"x-1.dist-info/WHEEL\", \"Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n\")
    z.writestr(\"x-1.dist-info/RECORD\", \"x.py,,\\nx-1.dist-info/METADATA,,\\nx-1.dist-info/WHEEL,,\\nx-1.dist-info/RECORD,,\\n\")'
            ~/tools/uv venv -q --python /usr/bin/python3 v
            ~/tools/uv pip install --offline --no-index --python v/bin/python ./x-1-py3-none-any.whl 2>&1
            v/bin/python -c 'import x'; rm -rf v";
        let installed = session(laptop, &["--read", "~/tools"], wheel);
        let said = installed.expect_success().stdout();
        assert!(
            said.contains("Installed 1 package") && !said.contains("warning"),
            "{said}"
        );
        // The control: without being told, it warns.
        let untold = session(
            laptop,
            &["--read", "~/tools"],
            &format!("unset UV_LINK_MODE; {wheel}"),
        );
        assert!(untold.stdout().contains("Failed to hardlink"), "{untold:?}");
    });
}
