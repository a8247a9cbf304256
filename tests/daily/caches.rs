//! Package caches are writable, have what the host's have, and are kept for the workspace.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::mount::{MountFlags, mount};
use stockade_world::{Command, Laptop, test};

use super::{PROFILES, inside, said, toolchains::program, write};
use crate::support::standard;

/// A script inside, in the profile of any command.
fn script(laptop: &Laptop, script: &str) -> Command {
    inside(laptop, "generic", "/usr/sbin", script)
}

/// What is kept, which nobody but Stockade comes to by its path.
fn state(laptop: &Laptop) -> PathBuf {
    let closed = laptop.home().join(".local/state/stockade/caches");
    let mode = fs::metadata(&closed).expect("caches").mode();
    assert_eq!(mode & 0o777, 0);
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).expect("they are the user's");
    closed.join("all")
}

/// Every file below a directory, with its contents and when it was changed.
fn snapshot(directory: &Path) -> Vec<(PathBuf, i64, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        let changed = entry.metadata().expect("metadata").ctime_nsec();
        if path.is_dir() {
            all.extend(snapshot(&path));
            all.push((path, changed, Vec::new()));
        } else {
            let text = fs::read(&path).expect("a file");
            all.push((path, changed, text));
        }
    }
    all.sort();
    all
}

const HOST: &[(&str, &str)] = &[
    (".cache/pip/old", "host\n"),
    (".cargo/registry/cache/old", "host\n"),
    (".cargo/git/db/old", "host\n"),
    ("go/pkg/mod/old", "host\n"),
    (".npm/_cacache/old", "host\n"),
    (".m2/repository/old", "host\n"),
    (".gradle/caches/old", "host\n"),
    (".local/share/pnpm/store/old", "host\n"),
    (".yarn/berry/old", "host\n"),
];

#[test]
fn caches_are_kept_for_the_workspace_and_the_hosts_stay_as_they_are() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        write(laptop.home(), HOST);
        let places: Vec<&Path> = HOST
            .iter()
            .map(|(path, _)| Path::new(path).parent().expect("a directory"))
            .collect();
        let before: Vec<_> = places
            .iter()
            .map(|place| snapshot(&laptop.home().join(place)))
            .collect();
        let each = |what: &str| {
            let each = places.iter().map(|place| {
                let place = place.display();
                format!("cd ~/{place}; {what}")
            });
            each.collect::<Vec<_>>().join("; ")
        };
        let first = each("cat old; echo mine > new; echo mine > old; mkdir -p a/b; echo x > a/b/c");
        assert_eq!(said(script(laptop, &first)), "host\n".repeat(HOST.len()));
        // In the next session, whatever its profile, they are there; and what is removed stays so.
        let second = each("cat old new a/b/c; rm new");
        assert_eq!(
            said(script(laptop, &second)),
            "mine\nmine\nx\n".repeat(HOST.len())
        );
        for profile in PROFILES {
            let third = each("cat old; ls");
            let third = inside(laptop, profile, "/usr/sbin", &third);
            assert_eq!(
                said(third),
                "mine\na\nold\n".repeat(HOST.len()),
                "{profile}"
            );
        }
        let after: Vec<_> = places
            .iter()
            .map(|place| snapshot(&laptop.home().join(place)))
            .collect();
        assert_eq!(before, after);
        // Who says so has the host's, and nothing is kept; or neither.
        let run = |mode: &str, script: &str| {
            let arguments = ["run", "--caches", mode, "--", "bash", "-c", script];
            said(laptop.stockade(arguments))
        };
        let probe = "cat ~/.npm/_cacache/old; ls ~/.npm/_cacache; echo new > ~/.npm/x";
        for _ in 0..2 {
            assert_eq!(run("scratch", probe), "host\nold\n");
            let probe = "mkdir -p ~/.npm ~/.cache; ls -A ~/.npm ~/.cache; echo new > ~/.npm/x; \
                echo new > ~/.cache/x";
            assert_eq!(
                run("empty", probe),
                "/home/dev/.cache:\n\n/home/dev/.npm:\n"
            );
        }
        assert_eq!(said(script(laptop, "cat ~/.npm/_cacache/old")), "mine\n");
    });
}

#[test]
fn a_cache_that_the_host_does_not_have_is_kept_for_who_has_its_program() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        fs::remove_dir_all(laptop.home().join(".cache")).expect("no cache");
        let first = "echo npm > ~/.npm/new; echo any > ~/.cache/new; \
            ls -d ~/go 2>/dev/null || echo no go";
        let go = match Path::new("/usr/bin/go").exists() {
            true => "/home/dev/go\n",
            false => "no go\n",
        };
        assert_eq!(said(script(laptop, first)), go);
        let second = "cat ~/.npm/new ~/.cache/new";
        assert_eq!(said(script(laptop, second)), "npm\nany\n");
        assert!(!laptop.home().join(".npm").exists() && !laptop.home().join(".cache").exists());
    });
}

#[test]
fn a_cache_is_found_where_its_variable_says_in_the_home_or_elsewhere() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let elsewhere = Path::new("/srv/tools/cargo");
        write(
            elsewhere,
            &[
                ("registry/old", "host\n"),
                ("bin/cargo-x", "program\n"),
                ("credentials.toml", "secret\n"),
            ],
        );
        write(&laptop.home().join("npm"), &[("old", "host\n")]);
        let run = |text: &str| {
            let run = script(laptop, text);
            let run = run.env("CARGO_HOME", elsewhere);
            let run = run.env("GOMODCACHE", "/home/dev/modules");
            let run = run.env("TMPDIR", "/home/dev/tmp");
            said(run.env("npm_config_cache", "/home/dev/npm"))
        };
        let first = "cd $CARGO_HOME; cat registry/old bin/cargo-x; ls -A; \
            echo new > registry/new; echo new > git/new; echo x > .package-cache; \
            echo new > bin/x 2>/dev/null || echo read-only; \
            cat $npm_config_cache/old; echo new > $npm_config_cache/new; \
            echo new > $GOMODCACHE/new; echo $GOMODCACHE; touch $(mktemp); echo $TMPDIR";
        assert_eq!(
            run(first),
            "host\nprogram\nbin\ngit\nregistry\nread-only\nhost\n/home/dev/modules\n/tmp\n"
        );
        let second = "cat $CARGO_HOME/{registry,git}/new $npm_config_cache/new $GOMODCACHE/new";
        assert_eq!(run(second), "new\n".repeat(4));
        assert!(!elsewhere.join("registry/new").exists());
        assert!(!laptop.home().join("modules").exists());
    });
}

/// As images for containers have it, where `/usr` and `/opt` are shown to everybody.
#[test]
fn programs_beside_a_cache_in_a_directory_of_the_system_are_there() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let open = c"mode=0777";
        mount("opt", "/opt", "tmpfs", MountFlags::empty(), open).expect("a directory");
        for place in [
            "/opt/cargo/bin/tool",
            "/opt/pnpm/tool",
            "/home/dev/pnpm/tool",
        ] {
            program(laptop, place);
        }
        for profile in PROFILES {
            let script = "tool; echo x > $CARGO_HOME/registry/x; ls $CARGO_HOME";
            let run = inside(laptop, profile, "/opt/cargo/bin", script);
            let run = run.env("CARGO_HOME", "/opt/cargo");
            assert_eq!(
                said(run),
                "/opt/cargo/bin/tool\nbin\ngit\nregistry\n",
                "{profile}"
            );
        }
        // pnpm keeps its programs and its store together. Without a store, it gets one elsewhere.
        for place in ["/opt/pnpm", "/home/dev/pnpm"] {
            let run = |script: &str| {
                said(inside(laptop, "generic", place, script).env("PNPM_HOME", place))
            };
            let store = "echo kept > $npm_config_store_dir/x; echo $npm_config_store_dir";
            let usual = "/home/dev/.local/share/pnpm/store\n";
            assert_eq!(
                run(&format!("tool; {store}")),
                format!("{place}/tool\n{usual}")
            );
            assert_eq!(run("cat $npm_config_store_dir/x"), "kept\n");
            write(Path::new(place), &[("store/old", "host\n")]);
            let own = "tool; cat $PNPM_HOME/store/old; echo x > $PNPM_HOME/store/x; env | grep -c store_dir ||:";
            assert_eq!(run(own), format!("{place}/tool\nhost\n0\n"));
            assert!(!Path::new(place).join("store/x").exists());
        }
    });
}

#[test]
fn a_second_session_in_the_workspace_sees_what_the_first_has_and_says_that_it_keeps_nothing() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        write(
            laptop.home(),
            &[(".npm/old", "host\n"), (".cache/old", "host\n")],
        );
        let first = "echo first > ~/.npm/one; echo first > ~/.cache/old; echo ready; read; \
            cat ~/.npm/* ~/.cache/old";
        let mut first = script(laptop, first).spawn().expect("spawn");
        first.expect("ready").expect("the first session");
        let second = script(
            laptop,
            "cat ~/.npm/* ~/.cache/old; echo second > ~/.npm/two; echo second > ~/.cache/old; \
             cat ~/.npm/*",
        );
        let second = second.run().expect("its end").expect_success();
        assert_eq!(second.stdout(), "host\nfirst\nfirst\nhost\nfirst\nsecond\n");
        let told = second.stderr();
        assert!(
            told.contains("another session runs in this workspace"),
            "{told}"
        );
        // One that is used is not cleared.
        let clear = laptop
            .stockade(["caches", "--clear"])
            .run()
            .expect("its end");
        assert_eq!(clear.code(), 1, "{clear:?}");
        first.write("\n").expect("write");
        let first = first.wait().expect("its end").stdout();
        assert!(first.contains("host\nfirst\nfirst\n"), "{first}");
        assert_eq!(
            said(script(laptop, "cat ~/.npm/* ~/.cache/old")),
            "host\nfirst\nfirst\n"
        );
    });
}

/// The kernel copies what a session touches to the workspace's own layer, which is in front of the host's.
#[test]
fn p09_what_is_hidden_later_is_not_kept_from_an_earlier_session() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let secrets = [".cache/app/token", ".cache/whole/deep/token", ".npm/token"];
        write(laptop.home(), &secrets.map(|path| (path, "secret\n")));
        let read = "cat ~/.cache/app/token ~/.cache/whole/deep/token ~/.npm/token";
        let touch = "touch ~/.cache/app/token ~/.cache/whole/deep/token ~/.npm/token";
        let hidden = |script: &str| {
            let paths = [".cache/app/token", ".cache/whole", ".npm/token"];
            let paths = paths.map(|path| laptop.home().join(path).display().to_string());
            let mut line = vec!["run"];
            line.extend(paths.iter().flat_map(|path| ["--hide", path.as_str()]));
            line.extend(["--", "bash", "-c", script]);
            let output = laptop.stockade(line).run().expect("its end");
            assert!(output.stderr().contains("No such file"), "{output:?}");
            output.stdout()
        };
        // Beside the session that has them, and after it.
        let first = script(laptop, &format!("{touch}; {read}; echo ready; read"));
        let mut first = first.spawn().expect("spawn");
        first.expect("ready").expect("the first session");
        assert_eq!(hidden(read), "");
        first.write("\n").expect("write");
        let first = first.wait().expect("its end").stdout();
        assert_eq!(first.matches("secret").count(), 3, "{first}");
        assert_eq!(
            hidden(&format!("{read}; ls -d ~/.cache/app"))
                .lines()
                .count(),
            1
        );
        // The host's are there, and shown again to who does not hide them.
        assert_eq!(said(script(laptop, read)), "secret\n".repeat(3));
    });
}

#[test]
fn what_is_kept_in_the_way_of_a_path_that_is_given_is_told_with_the_fix() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let given = laptop.home().join(".cache/given");
        write(&given, &[("file", "host\n")]);
        let run = || {
            let run = laptop.stockade(["run", "--read"]).arg(&given);
            run.args(["--", "cat", "/home/dev/.cache/given/file"])
        };
        for way in ["ln -s /etc ~/.cache/given", "echo > ~/.cache/given"] {
            said(script(laptop, &format!("rm -r ~/.cache/given; {way}")));
            let refused = run().run().expect("its end").expect_code(125);
            let told = refused.stderr();
            assert!(told.contains("an earlier session"), "{way}: {told}");
            assert!(told.contains("`stockade caches --clear`"), "{way}: {told}");
            said(laptop.stockade(["caches", "--clear"]));
            assert_eq!(said(run()), "host\n", "{way}");
        }
    });
}

#[test]
fn caches_are_listed_and_cleared() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let other = laptop.home().join("second");
        fs::create_dir(&other).expect("a directory");
        let fill = "head -c 3M /dev/urandom > ~/.npm/large; chmod 0 ~/.npm/large; \
            mkdir -p ~/.npm/a/b; chmod 0555 ~/.npm/a";
        said(script(laptop, fill));
        said(script(laptop, "echo x > ~/.npm/x").directory(&other));
        let list = said(laptop.stockade(["caches"]));
        let lines: Vec<_> = list.lines().collect();
        assert!(lines[1].ends_with("/home/dev/second"), "{list}");
        assert!(lines[2].starts_with("3.0 MiB"), "{list}");
        assert!(lines[2].ends_with("/home/dev/project"), "{list}");
        let json = said(laptop.stockade(["caches", "--json"]));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json[1]["workspace"], "/home/dev/project");
        assert!(json[1]["bytes"].as_u64() > Some(3 << 20), "{json}");
        assert_eq!(json[1]["in_use"], false);

        said(laptop.stockade(["caches", "--clear"]));
        assert_eq!(said(script(laptop, "ls -A ~/.npm")), "");
        let kept = script(laptop, "cat ~/.npm/x").directory(&other);
        assert_eq!(said(kept), "x\n");
        said(laptop.stockade(["caches", "--clear", "--all"]));
        assert_eq!(said(laptop.stockade(["caches"])), "No caches are kept.\n");
        assert_eq!(fs::read_dir(state(laptop)).expect("caches").count(), 0);
        let none = laptop
            .stockade(["caches", "--clear"])
            .run()
            .expect("its end");
        assert_eq!(none.code(), 125, "{none:?}");
    });
}

#[test]
fn without_overlays_caches_start_empty_and_are_kept_all_the_same() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        write(laptop.home(), &[(".npm/old", "host\n")]);
        let run = |script: &str| {
            let strace = laptop
                .command("strace")
                .args(["-qq", "-f", "--seccomp-bpf", "-o", "/dev/null"])
                .args([
                    "-e",
                    "trace=fsopen",
                    "-e",
                    "inject=fsopen:error=ENODEV:when=3+",
                ])
                .args([
                    "/run/world/bin/stockade",
                    "run",
                    "--",
                    "bash",
                    "-euc",
                    script,
                ]);
            strace.run().expect("its end").expect_success()
        };
        let first = run("ls -A ~/.npm; echo new > ~/.npm/new");
        assert_eq!(first.stdout(), "");
        let told = "stockade: package caches: the kernel cannot overlay them here";
        assert!(first.stderr().contains(told), "{first:?}");
        assert_eq!(run("cat ~/.npm/*").stdout(), "new\n");
        assert_eq!(said(script(laptop, "cat ~/.npm/*")), "host\n");
    });
}
