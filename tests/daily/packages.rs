//! Package managers get a new dependency inside, and have it in the next session, with the registry
//! away. The registries are web servers of the world.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
};

use stockade_world::{Builder, HttpServer, Page, Site, World, is_inside, test};

use super::{PROFILES, inside, said, with_rust, write};
use crate::{feature::agents, support::standard};

/// What all of them serve, and projects that need it.
const REGISTRY: &str = include_str!("registry.py");

pub(crate) fn serve(world: &World) -> HttpServer {
    let laptop = world.laptop();
    let site = laptop.home().join("site");
    let arguments = [site.as_path(), &laptop.workspace()];
    let make = laptop.command("/usr/bin/python3").args(["-c", REGISTRY]);
    said(make.args(arguments));
    serve_files(world, &site)
}

/// Has the web server of the world give out what is in a directory.
pub(crate) fn serve_files(world: &World, site: &Path) -> HttpServer {
    let mut pages = Site::empty();
    for path in files(site) {
        let name = path.strip_prefix(site).expect("a part").to_str();
        let name = format!("/{}", name.expect("a name"));
        let page = Page::new(200, fs::read(&path).expect("a file"));
        let (name, page) = match name.strip_suffix("index.html") {
            Some(directory) => (
                directory.to_owned(),
                page.header("Content-Type", "text/html"),
            ),
            // So that pip keeps it: for as long as nobody runs this test.
            None => {
                let page = page.header("Date", "Thu, 01 Jan 2026 00:00:00 GMT");
                (name, page.header("Cache-Control", "max-age=3153600000"))
            }
        };
        pages = pages.page(&name, page);
    }
    world.host("web").http(80, pages).expect("a server")
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let each = entries.map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    each.flatten().collect()
}

/// With the registry, then in a new session of every profile without it.
fn twice(world: &World, path: &str, first: &str, again: &str, says: &str) {
    let server = serve(world);
    let laptop = world.laptop();
    assert_eq!(said(inside(laptop, "generic", path, first)), says);
    assert!(
        !server.requests().all().is_empty(),
        "it came from elsewhere"
    );
    server.stop();
    for profile in PROFILES {
        let again = said(inside(laptop, profile, path, again));
        assert_eq!(again, says, "{profile}");
    }
}

#[test]
fn cargo_builds_with_a_new_dependency_and_again_offline() {
    let (builder, path) = with_rust();
    test(&builder, |world| {
        let home = world.laptop().home();
        // Of somebody who has used cargo before, and whose own settings name the registry.
        let index = "sparse+http://www.example.com/index/";
        let settings = format!("[registries.local]\nindex = \"{index}\"\ntoken = \"SECRET\"\n");
        write(
            home,
            &[
                (".cargo/registry/CACHEDIR.TAG", ""),
                (".cargo/config.toml", &settings),
            ],
        );
        let first = "cd rust; cargo run --quiet";
        let again = "cd rust; rm -r target; cargo run --quiet --offline";
        twice(world, path, first, again, "small\n");
    });
}

#[test]
fn npm_installs_and_the_second_time_needs_no_registry() {
    test(&standard(), |world| {
        let first = "cd node; npm ci >&2; node -p 'require(\"small\")'";
        let again = "cd node; rm -r node_modules; npm ci >&2; node -p 'require(\"small\")'";
        twice(world, "/usr/sbin", first, again, "small\n");
    });
}

#[test]
fn pnpm_installs_and_again_offline() {
    let first = "pnpm install >&2; ls -A ~/project | grep store ||:";
    offline("pnpm", "pnpm@10", first, "pnpm install --offline >&2");
}

#[test]
fn yarn_installs_and_again_offline() {
    offline("yarn", "yarn@1", "yarn >&2", "yarn --offline >&2");
}

/// It has no word for being offline: with the registry away it takes what it has.
#[test]
fn bun_installs_and_again_offline() {
    offline("bun", "bun@1", "bun install >&2", "bun install >&2");
}

fn offline(tool: &str, package: &str, first: &str, again: &str) {
    of_npm(tool, package, |world| {
        let use_it = "node -p 'require(\"small\")'";
        let first = format!("cd {tool}; {first}; {use_it}");
        let again = format!("cd {tool}; rm -r node_modules; {again}; {use_it}");
        twice(
            world,
            "/home/dev/.npm-global/bin",
            &first,
            &again,
            "small\n",
        );
    });
}

/// A laptop with a tool that is a package of npm's registry.
pub(super) fn of_npm(tool: &str, package: &str, body: impl FnOnce(&World)) {
    let prefix = tools().join(tool);
    if !is_inside() && agents::install(package, &prefix).is_err() {
        return skipped(tool);
    }
    let world = standard().directory("/home/dev/.npm-global", prefix);
    test(&world, |world| body(world));
}

#[test]
fn pip_installs_and_the_second_time_uses_its_cache() {
    test(&standard(), |world| {
        let _server = serve(world);
        let laptop = world.laptop();
        let script = "rm -rf lib; /usr/bin/python3 -m pip install --target lib --index-url http://www.example.com/simple/ \
            --trusted-host www.example.com --disable-pip-version-check small | grep -o 'Using cached' ||:; \
            PYTHONPATH=lib python3 -c 'import small; print(small.WORD)'";
        assert_eq!(
            said(inside(laptop, "generic", "/usr/sbin", script)),
            "small\n"
        );
        for profile in PROFILES {
            let again = said(inside(laptop, profile, "/usr/sbin", script));
            assert_eq!(again, "Using cached\nsmall\n", "{profile}");
        }
    });
}

#[test]
fn uv_installs_and_again_offline() {
    let prefix = tools().join("uv");
    if !is_inside() && install_uv(&prefix).is_err() {
        return skipped("uv");
    }
    test(&with_tool(&prefix), |world| {
        let index = "[[index]]\nurl = \"http://www.example.com/simple/\"\ndefault = true\n";
        write(world.laptop().home(), &[(".config/uv/uv.toml", index)]);
        let first = "uv pip install --quiet --target lib small; \
            PYTHONPATH=lib python3 -c 'import small; print(small.WORD)'";
        let again = format!(
            "rm -r lib; {}",
            first.replace("--quiet", "--quiet --offline")
        );
        twice(world, "/home/dev/.pixi/bin", first, &again, "small\n");
    });
}

#[test]
fn go_builds_with_a_new_module_and_again_offline() {
    test(&standard(), |world| {
        let run = "cd go; export GOFLAGS=-mod=mod GOSUMDB=off GONOSUMDB=*; go run . 2>&1 | grep -v downloading";
        let first = format!("export GOPROXY=http://www.example.com/go; {run}");
        let again = format!("export GOPROXY=off; {run}");
        twice(world, "/usr/sbin", &first, &again, "small\n");
    });
}

#[test]
fn maven_gets_a_parent_and_has_it_offline() {
    test(&standard(), |world| {
        let first = "cd maven; mvn -B -q -s settings.xml validate >&2; ls ~/.m2/repository/example/parent/1/*.pom";
        let again = first.replace("mvn", "mvn -o");
        let says = "/home/dev/.m2/repository/example/parent/1/parent-1.pom\n";
        twice(world, "/usr/sbin", first, &again, says);
    });
}

/// Where tools are installed that are no packages of the distribution.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools")
}

/// A laptop with this tool among those of pixi.
fn with_tool(prefix: &Path) -> Builder {
    standard().directory("/home/dev/.pixi", prefix)
}

fn install_uv(prefix: &Path) -> Result<(), ()> {
    if prefix.join("bin/uv").exists() {
        return Ok(());
    }
    let pip = process::Command::new("/usr/bin/python3")
        .args(["-m", "pip", "install", "--quiet", "--retries=1", "--target"])
        .arg(prefix)
        .arg("uv")
        .output()
        .expect("pip starts (test.sh installs it)");
    let complaint = String::from_utf8_lossy(&pip.stderr);
    let is_unreachable = complaint.contains("onnection") || complaint.contains("No matching");
    assert!(pip.status.success() || is_unreachable, "{complaint}");
    if pip.status.success() {
        Ok(())
    } else {
        Err(())
    }
}

fn skipped(tool: &str) {
    // Past libtest, which would keep it to itself.
    let _ = writeln!(
        io::stderr(),
        "skipped: the registry of {tool} is out of reach"
    );
}
