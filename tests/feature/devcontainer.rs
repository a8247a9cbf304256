//! The devcontainer feature: its options, and what its script makes of them. Here it runs in a world, whose root
//! it is; `scripts/try-devcontainer.sh` tries it in containers of Podman.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde_json::Value;
use stockade_world::{Laptop, Login, Output, Page, Site, is_inside, test};

use crate::support::standard;

const METADATA: &str = include_str!("../../devcontainer/stockade/devcontainer-feature.json");
const SCRIPT: &str = include_str!("../../devcontainer/stockade/install.sh");
const RECIPE: &str = include_str!("../../devcontainer/Containerfile");
const FILTER: &str = include_str!("../../devcontainer/seccomp.json");

const CONFIG: &str = "/etc/stockade/config.toml";
const SHIMS: &str = "/usr/local/share/stockade/shims";

/// The options and their defaults, as the metadata has them.
fn options() -> BTreeMap<String, String> {
    let metadata: Value = serde_json::from_str(METADATA).expect("JSON");
    let options = metadata["options"].as_object().expect("options");
    let default = |option: &Value| match &option["default"] {
        Value::String(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        other => panic!("no default of an option: {other}"),
    };
    let all = options.iter();
    all.map(|(name, option)| {
        let kind = option["type"].as_str().expect("a type");
        let is_boolean = option["default"].is_boolean();
        assert_eq!(
            kind,
            if is_boolean { "boolean" } else { "string" },
            "{name}"
        );
        assert!(option["description"].is_string(), "{name}");
        (name.clone(), default(option))
    })
    .collect()
}

#[test]
fn the_features_metadata_its_script_and_the_recipe_agree() {
    let metadata: Value = serde_json::from_str(METADATA).expect("JSON");
    // The specification wants the name of the directory.
    assert_eq!(metadata["id"], "stockade");
    assert_eq!(metadata["version"], env!("CARGO_PKG_VERSION"));
    assert!(metadata["name"].is_string());
    // Nothing that the container would have to be given.
    for asked in [
        "privileged",
        "capAdd",
        "securityOpt",
        "mounts",
        "entrypoint",
    ] {
        assert!(metadata.get(asked).is_none(), "{asked}");
    }
    assert_eq!(
        metadata["containerEnv"]["PATH"],
        format!("{SHIMS}:${{PATH}}")
    );
    assert!(RECIPE.contains(&format!("ENV PATH={SHIMS}:${{PATH}}\n")));
    let post_create = metadata["postCreateCommand"].as_str().expect("a command");
    assert!(RECIPE.contains(&format!("RUN {post_create}\n")));

    // "name=${NAME-default}"
    let read = SCRIPT.lines().filter_map(|line| {
        let (name, rest) = line.split_once("=${")?;
        let (variable, default) = rest.strip_suffix('}')?.split_once('-')?;
        (variable == name.to_uppercase()).then(|| (name.to_owned(), default.to_owned()))
    });
    assert_eq!(read.collect::<BTreeMap<_, _>>(), options());
    let arguments = RECIPE.lines().filter_map(|line| {
        let (name, default) = line.strip_prefix("ARG ")?.split_once('=')?;
        let is_recipes_own = ["BASE", "ACCOUNT"].contains(&name);
        (!is_recipes_own).then(|| (name.to_lowercase(), default.to_owned()))
    });
    assert_eq!(arguments.collect::<BTreeMap<_, _>>(), options());
}

/// `scripts/try-devcontainer.sh` shows that a session needs each of them.
#[test]
fn the_filter_for_docker_adds_to_dockers_own_only_what_a_session_needs() {
    let filter: Value = serde_json::from_str(FILTER).expect("JSON");
    assert_eq!(filter["defaultAction"], "SCMP_ACT_ERRNO");
    let rules = filter["syscalls"].as_array().expect("rules");
    let is_ours = |rule: &&Value| {
        rule["comment"]
            .as_str()
            .is_some_and(|it| it.contains("Stockade"))
    };
    let [ours] = rules.iter().filter(is_ours).collect::<Vec<_>>()[..] else {
        panic!("not one rule of Stockade's");
    };
    let calls = [
        "clone",
        "fsconfig",
        "fsmount",
        "fsopen",
        "mount",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "pivot_root",
        "setns",
        "umount2",
        "unshare",
    ];
    assert_eq!(ours["names"], Value::from(calls.to_vec()));
    // What Docker keeps from containers stays so.
    let is_for_all = |call: &str| {
        rules.iter().any(|rule| {
            let mut names = rule["names"].as_array().expect("names").iter();
            let allows = rule["action"] == "SCMP_ACT_ALLOW" && !rule["includes"]["caps"].is_array();
            allows && names.any(|name| name == call)
        })
    };
    assert!(is_for_all("read") && is_for_all("unshare"), "the control");
    for call in [
        "bpf",
        "init_module",
        "kexec_load",
        "reboot",
        "swapon",
        "perf_event_open",
    ] {
        assert!(!is_for_all(call), "{call}");
    }
}

/// An image: directories that the script may write, with the program and an agent of npm's.
fn image(laptop: &Laptop) -> PathBuf {
    let feature = laptop.home().join("feature");
    fs::create_dir(&feature).expect("a directory");
    fs::write(feature.join("install.sh"), SCRIPT).expect("a script");
    let prepare = "set -e; cp -r /etc /tmp/etc 2>/dev/null || :; mount -t tmpfs -o mode=755 none /etc; cp -r /tmp/etc/. /etc; \
        rm -rf /etc/stockade /etc/claude-code; mkdir -p /etc/profile.d; mount -t tmpfs -o mode=755 none /usr/local; \
        mkdir /usr/local/bin; cp /run/world/bin/stockade /usr/local/bin; \
        printf '#!/bin/sh\\nstockade inside >/dev/null && echo inside $* || echo outside $*\\n' > /usr/local/bin/claude; \
        chmod 755 /usr/local/bin/claude";
    laptop
        .shell(prepare)
        .run()
        .expect("its end")
        .expect_success();
    feature
}

fn install(laptop: &Laptop, feature: &Path, given: &[(&str, &str)]) -> Output {
    let mut command = laptop.command("/bin/sh").arg(feature.join("install.sh"));
    // As the tools do: all options, those that are not given with their defaults.
    for (name, default) in options() {
        command = command.env(name.to_uppercase(), default);
    }
    // A guard needs a /usr of root's, which an ordinary user's world has not.
    command = command.env("GUARD", "false");
    for (name, value) in given {
        command = command.env(name, value);
    }
    command.run().expect("its end")
}

#[test]
fn an_option_that_cannot_be_meant_refuses_the_build_and_changes_nothing() {
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let feature = image(laptop);
        let digest = "a".repeat(64);
        let cases = [
            (
                "AGENTS",
                "claude;touch /usr/local/planted",
                "option agents has a character",
            ),
            ("AGENTS", "../bin/sh", "option agents has a character"),
            ("AGENTS", " , ", "option agents names none"),
            ("AGENTS", "nobody", "unknown profile `nobody`"),
            ("GUARD", "yes", "option guard is neither true nor false"),
            ("INTERNET", "", "option internet is neither true nor false"),
            (
                "ALLOW",
                "$(touch /usr/local/planted)",
                "option allow has a character",
            ),
            (
                "ALLOW",
                "`touch /usr/local/planted`",
                "option allow has a character",
            ),
            (
                "ALLOW",
                "10.0.0.1\"]\nmode = \"host",
                "option allow has a character",
            ),
            ("ALLOW", "10.0.0.1\\", "option allow has a character"),
            ("ALLOW", "10.0.0.0/33", "invalid prefix length `33`"),
            ("ALLOW", "tcp://10.0.0.1:80,443", "443"),
            ("ALLOW", "-n", "-n"),
            (
                "LOCK",
                "network.mod",
                "unknown key or section `network.mod`",
            ),
            ("LOCK", "NETWORK", "option lock has a character"),
            (
                "SOURCE",
                "http://www.example.com/stockade.deb",
                "option source is none of",
            ),
            (
                "SOURCE",
                "https://www.example.com/stockade.deb",
                "sha256 is not given",
            ),
            ("SOURCE", "beside", "beside install.sh"),
            ("SHA256", &digest[1..], "option sha256 has 63 digits"),
            ("SHA256", "$(id)", "option sha256 has a character"),
            ("VERSION", "9.9.9", "not 9.9.9"),
        ];
        for (name, value, why) in cases {
            let output = install(laptop, &feature, &[(name, value)]).expect_code(1);
            let said = output.stderr();
            assert!(said.contains(why), "{name}={value}: {said}");
            assert!(said.contains("stockade feature: fix: "), "{said}");
            for path in [CONFIG, "/usr/local/planted", "/etc/claude-code"] {
                assert!(!Path::new(path).exists(), "{name}={value} left {path}");
            }
        }
        // The control: the same without what was wrong.
        install(laptop, &feature, &[]).expect_success();
        assert!(Path::new(CONFIG).exists());
    });
}

#[test]
fn the_feature_installs_what_its_options_say_and_again_the_same() {
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let feature = image(laptop);
        let given = [
            ("AGENTS", "claude,codex"),
            (
                "ALLOW",
                "192.168.10.21, tcp://[fd00::1]:443 udp://10.20.0.5:5064-5065",
            ),
            ("INTERNET", "false"),
            ("LOCK", "network"),
        ];
        let files = || {
            let line = "find /etc /usr/local -newer /tmp/etc ! -type d | sort | xargs ls -l --time-style=+; cat /etc/stockade/config.toml";
            laptop
                .shell(line)
                .run()
                .expect("its end")
                .expect_success()
                .stdout()
        };
        install(laptop, &feature, &given).expect_success();
        let first = files();
        install(laptop, &feature, &given).expect_success();
        assert_eq!(files(), first);

        let text = fs::read_to_string(CONFIG).expect("a configuration");
        let (_, text) = text.split_once('\n').expect("a mark");
        assert_eq!(
            text,
            "lock = [\"network\"]\n\n[network]\ninternet = false\n\
             allow = [\"192.168.10.21\", \"tcp://[fd00::1]:443\", \"udp://10.20.0.5:5064-5065\"]\n"
        );
        let bash = |arguments: &[&str]| {
            let command = laptop.command("/usr/bin/bash").args(arguments);
            command
                .env("PATH", format!("{SHIMS}:/usr/local/bin:/usr/bin:/bin"))
                .run()
                .expect("its end")
        };
        // By the variable of the image, and where a login shell set PATH anew.
        for flag in ["-c", "-lc"] {
            let said = bash(&[flag, "command -v claude codex; claude a b"])
                .expect_success()
                .stdout();
            assert_eq!(
                said,
                format!("{SHIMS}/claude\n{SHIMS}/codex\ninside a b\n"),
                "{flag}"
            );
        }
        assert_eq!(
            bash(&["-c", "/usr/local/bin/claude c"]).stdout(),
            "outside c\n",
            "the control"
        );
        let listed = bash(&["-c", "stockade shim list"])
            .expect_success()
            .stdout();
        assert!(
            listed.contains(&format!("{SHIMS}/claude")) && listed.contains("in force"),
            "{listed}"
        );
        // The rules and the lock hold for whoever uses the image.
        let explain = |target: &str| bash(&["-c", "stockade explain \"$0\"", target]).code();
        assert_eq!(
            [
                explain("tcp://192.168.10.21:80"),
                explain("tcp://192.168.10.22:80")
            ],
            [0, 1]
        );
        let output = bash(&["-c", "stockade run --allow 192.168.10.22 -- true"]).expect_code(125);
        assert!(output.stderr().contains(CONFIG), "{output:?}");

        // Other options leave nothing of the first ones behind.
        let other = [("AGENTS", "claude"), ("LOCK", "")];
        install(laptop, &feature, &other).expect_success();
        assert!(!Path::new(CONFIG).exists());
        assert!(!Path::new(SHIMS).join("codex").exists());
    });
}

#[test]
fn an_images_own_configuration_is_kept_or_refused_and_never_replaced() {
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let feature = image(laptop);
        let own = "[network]\ninternet = false\n";
        laptop
            .shell("mkdir /etc/stockade")
            .run()
            .expect("its end")
            .expect_success();
        fs::write(CONFIG, own).expect("a file");
        let output = install(laptop, &feature, &[]).expect_code(1);
        assert!(output.stderr().contains("of its own"), "{output:?}");
        install(laptop, &feature, &[("LOCK", "")]).expect_success();
        assert_eq!(fs::read_to_string(CONFIG).expect("a file"), own);
    });
}

#[test]
fn an_image_that_lacks_something_is_refused() {
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let feature = image(laptop);
        // A package that is not what it says.
        let package = format!("stockade-9.9.9-{}-linux.tar.gz", std::env::consts::ARCH);
        fs::write(feature.join(&package), "no archive").expect("a file");
        let output = install(laptop, &feature, &[("SHA256", &"a".repeat(64))]).expect_code(1);
        assert!(
            output.stderr().contains("does not have the checksum"),
            "{output:?}"
        );
        let output = install(laptop, &feature, &[]).expect_code(1);
        assert!(output.stderr().contains("cannot be unpacked"), "{output:?}");
        fs::remove_file(feature.join(&package)).expect("a file");
        install(laptop, &feature, &[]).expect_success();

        laptop
            .shell("mv /usr/local/bin/stockade /usr/local/bin/other")
            .run()
            .expect("its end")
            .expect_success();
        let output = install(laptop, &feature, &[]).expect_code(1);
        assert!(
            output.stderr().contains("there is no Stockade"),
            "{output:?}"
        );

        let old = "#!/bin/sh\necho bubblewrap 0.6.1\n";
        laptop
            .replace_program("/usr/bin/bwrap", old)
            .expect("an old one");
        let output = install(laptop, &feature, &[]).expect_code(1);
        assert!(
            output.stderr().contains("bubblewrap 0.6.1 is too old"),
            "{output:?}"
        );
        laptop.remove_program("/usr/bin/bwrap").expect("none");
        for program in ["apt-get", "dnf", "microdnf", "apk"] {
            let path = Path::new("/usr/bin").join(program);
            if path.exists() {
                laptop.remove_program(path).expect("none");
            }
        }
        let output = install(laptop, &feature, &[]).expect_code(1);
        assert!(output.stderr().contains("no package manager"), "{output:?}");
    });
}

#[test]
fn a_package_from_an_address_is_installed_only_with_its_checksum() {
    const NAME: &str = "www.example.com";
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let feature = image(laptop);
        let pack = "set -e; cd /tmp; mkdir -p tree/bin; mv /usr/local/bin/stockade tree/bin; tar -c tree | gzip -1 > package; \
            sha256sum package | cut -c1-64";
        let checksum = laptop
            .shell(pack)
            .run()
            .expect("its end")
            .expect_success()
            .stdout();
        let page = Page::new(200, fs::read("/tmp/package").expect("a package"));
        let site = Site::empty().page("/stockade.tar.gz", page);
        let web = world.host("web");
        let _server = web
            .https(8443, world.authority(), &[NAME], site)
            .expect("a server");
        let address = format!("https://{NAME}:8443/stockade.tar.gz");
        let from = |checksum: &str| {
            let given = [("SOURCE", address.as_str()), ("SHA256", checksum)];
            install(laptop, &feature, &given)
        };
        let output = from(&"a".repeat(64)).expect_code(1);
        assert!(
            output.stderr().contains("does not have the checksum"),
            "{output:?}"
        );
        assert!(!Path::new("/usr/local/bin/stockade").exists());
        from(checksum.trim()).expect_success();
        assert!(Path::new("/usr/local/bin/stockade").exists());
    });
}

#[test]
fn agents_that_have_hooks_are_guarded_and_the_others_are_named() {
    // A guard for all users needs a program whose directories are all root's, and an ordinary user's world has no such /usr.
    if !is_inside() && !rustix::process::geteuid().is_root() {
        // Past libtest, which would keep it to itself.
        let _ = writeln!(io::stderr(), "NOT TESTED: the guard of an image needs root");
        return;
    }
    test(&standard().login(Login::Root), |world| {
        let laptop = world.laptop();
        let feature = image(laptop);
        let given = [("AGENTS", "claude,aider"), ("GUARD", "true")];
        let output = install(laptop, &feature, &given).expect_success();
        assert!(
            output.stdout().contains("aider cannot be guarded"),
            "{output:?}"
        );
        let list = laptop
            .command("/usr/local/bin/stockade")
            .args(["guard", "list"]);
        let listed = list.run().expect("its end").expect_success().stdout();
        assert!(
            listed.contains("/etc/claude-code/") && listed.contains("in force"),
            "{listed}"
        );
    });
}
