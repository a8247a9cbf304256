//! Toolchains of the home are there in every profile, in the caller's order.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use stockade_world::{Laptop, test};

use super::{PROFILES, inside, packages::of_npm, said, with_rust, write};
use crate::support::standard;

/// A crate without dependencies.
const CRATE: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ),
    ("src/main.rs", "fn main() { println!(\"built\"); }\n"),
];

#[test]
fn cargo_of_rustup_builds_in_every_profile() {
    let (builder, path) = with_rust();
    test(&builder, |world| {
        let laptop = world.laptop();
        write(&laptop.workspace(), CRATE);
        for profile in PROFILES {
            let script = "type -p cargo; rm -rf target; cargo run --quiet --offline";
            let said = said(inside(laptop, profile, path, script));
            assert_eq!(said, format!("{path}/cargo\nbuilt\n"), "{profile}");
        }
    });
}

/// A program that says its own path.
pub(super) fn program(laptop: &Laptop, path: &str) {
    let path = laptop.home().join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(&path, "#!/bin/sh\necho $0\n").expect("a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
}

#[test]
fn a_managers_program_comes_before_the_systems_in_every_profile() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let places = [
            ".nvm/versions/node/v99.0.0/bin",
            ".volta/bin",
            ".asdf/shims",
            ".pyenv/shims",
            ".rbenv/shims",
            ".sdkman/candidates/java/current/bin",
            ".deno/bin",
            ".bun/bin",
            ".ghcup/bin",
            ".juliaup/bin",
            ".pixi/bin",
            "miniconda3/bin",
            "go/bin",
            ".local/share/mise/shims",
            ".local/share/uv/python/cpython-3.99/bin",
        ];
        for place in places {
            program(laptop, &format!("{place}/node"));
        }
        for profile in PROFILES {
            let path = places.map(|place| format!("/home/dev/{place}")).join(":");
            let all = said(inside(laptop, profile, &path, "type -ap node | head -15"));
            let expected: Vec<_> = places
                .map(|place| format!("/home/dev/{place}/node"))
                .to_vec();
            assert_eq!(all.lines().collect::<Vec<_>>(), expected, "{profile}");
            let first = said(inside(laptop, profile, &path, "node; echo $PATH"));
            assert_eq!(
                first,
                format!(
                    "{}\n{path}:{}:/home/dev/.local/bin\n",
                    expected[0],
                    super::SYSTEM
                )
            );
        }
    });
}

/// Its shims ask it for the version, which it finds in the user's settings.
#[test]
fn mise_finds_its_versions_in_every_profile() {
    of_npm("mise", "@jdxcode/mise", |world| {
        let laptop = world.laptop();
        for tool in ["node/99.0.0", "deno/98.0.0"] {
            let name = tool.split('/').next().expect("a name");
            program(
                laptop,
                &format!(".local/share/mise/installs/{tool}/bin/{name}"),
            );
        }
        let settings = "[env]\nTOKEN = \"SECRET\"\n[tools]\nnode = \"99.0.0\"\n";
        write(
            laptop.home(),
            &[
                (".config/mise/config.toml", settings),
                (".tool-versions", "deno 98.0.0\n"),
            ],
        );
        let path = "/home/dev/.local/share/mise/shims:/home/dev/.npm-global/bin";
        let reshim = laptop.command("/home/dev/.npm-global/bin/mise");
        said(reshim.arg("reshim").env("MISE_OFFLINE", "1"));
        for profile in PROFILES {
            let script = "node; deno; mise env | grep -c SECRET ||:";
            let places = said(inside(laptop, profile, path, script));
            let installs = "/home/dev/.local/share/mise/installs";
            let expected =
                format!("{installs}/node/99.0.0/bin/node\n{installs}/deno/98.0.0/bin/deno\n0\n");
            assert_eq!(places, expected, "{profile}");
        }
    });
}

#[test]
fn tools_that_uv_has_installed_are_there_and_others_of_local_bin_are_not() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        program(laptop, ".local/share/uv/tools/ruff/bin/ruff");
        program(laptop, ".local/bin/mine");
        program(laptop, ".local/bin/mise");
        for (target, name) in [
            (".local/share/uv/tools/ruff/bin/ruff", "ruff"),
            (".ssh/id_ed25519", "key"),
            (".local/share/../../.ssh/id_ed25519", "around"),
        ] {
            let at = laptop.home().join(".local/bin").join(name);
            symlink(laptop.home().join(target), at).expect("a link");
        }
        let script = "ruff; mise; ls ~/.local/bin";
        let said = said(inside(laptop, "generic", "/home/dev/.local/bin", script));
        assert_eq!(
            said,
            "/home/dev/.local/bin/ruff\n/home/dev/.local/bin/mise\nmise\nruff\n"
        );
    });
}

#[test]
fn a_toolchain_is_found_where_its_variable_says() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        program(laptop, "tools/node/bin/node");
        program(laptop, "tools/cargo/bin/cargo-x");
        write(
            &laptop.home().join("tools/cargo"),
            &[("credentials.toml", "secret")],
        );
        let script = "node; cargo-x; echo $NVM_DIR $CARGO_HOME; cat ~/tools/cargo/credentials.toml \
            2>/dev/null || echo none";
        let path = "/home/dev/tools/node/bin:/home/dev/tools/cargo/bin";
        let run = inside(laptop, "generic", path, script);
        let run = run.env("NVM_DIR", "/home/dev/tools/node");
        let run = run.env("CARGO_HOME", "/home/dev/tools/cargo");
        assert_eq!(
            said(run),
            "/home/dev/tools/node/bin/node\n/home/dev/tools/cargo/bin/cargo-x\n\
             /home/dev/tools/node /home/dev/tools/cargo\nnone\n"
        );
    });
}
