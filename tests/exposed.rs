//! Everything that a command can get at, listed: docs/exposed.md.
//!
//! An audit (`scripts/audit.py`) runs as the command and lists every file, socket, variable
//! and process that it can get at. Its findings are folded into rows, by the steps of
//! `stockade plan`, which bring the reasons along. Each shape of the laptop has its
//! section in the document, between markers; the tests fail if a section is not, line for
//! line, what the audit finds. `cargo xtask exposed --write` writes them anew.
//!
//! Outside, the same audit finds all that the laptop's user has to lose.

mod audit;
mod home;
mod kernel;
mod page;
mod plan;
mod rows;

use stockade_world::{Shape, SocketName, World, test};

use audit::Audit;
use plan::Plan;

use crate::support::{Document, standard};

const SCRIPT: &str = include_str!("../scripts/audit.py");
const DOCUMENT: Document = Document {
    text: include_str!("../docs/exposed.md"),
    task: "exposed",
    print: "STOCKADE_PRINT_EXPOSED",
};

/// One column of the tables: how the audit is started, and which plan says why.
struct Column {
    name: &'static str,
    run: &'static [&'static str],
    plan: &'static [&'static str],
}

const COLUMNS: [Column; 2] = [
    Column {
        name: "any command",
        run: &["run", "--", "python3", "-I", "-c", SCRIPT],
        plan: &["plan", "--json", "--", "python3"],
    },
    Column {
        name: "claude",
        run: &["claude"],
        plan: &["plan", "--json", "--profile", "claude", "--", "claude"],
    },
];

#[test]
fn on_a_desktop_nothing_is_exposed_but_what_is_listed() {
    test(&standard().shape(Shape::Desktop), |world| {
        compare(world, "desktop");
    });
}

#[test]
fn in_a_container_nothing_is_exposed_but_what_is_listed() {
    test(&standard().shape(Shape::Container), |world| {
        compare(world, "container");
    });
}

fn compare(world: &World, shape: &str) {
    home::furnish(world.laptop());
    let columns = COLUMNS.map(|column| {
        let plan = Plan::of(world.laptop(), column.plan);
        let audit = Audit::run(world.laptop().stockade(column.run), &guesses(world));
        (column.name, rows::fold(&audit, &plan))
    });
    let section = page::section(&columns);
    if DOCUMENT.is_to_be_printed() {
        return DOCUMENT.print(shape, &section);
    }
    let listed = DOCUMENT.section(shape).unwrap_or_default();
    if let Err(differences) = page::agrees(listed, &section) {
        panic!(
            "docs/exposed.md is not what is exposed on a {shape} \
             (if that is meant: cargo xtask exposed --write)\n{differences}"
        );
    }
}

/// The names of all sockets of the laptop: an attacker may know them without being told.
fn guesses(world: &World) -> Vec<String> {
    let sockets = world.laptop().sockets().iter();
    sockets
        .map(|socket| match &socket.name {
            SocketName::Path(path) => path.display().to_string(),
            SocketName::Abstract(name) => format!("@{name}"),
        })
        .collect()
}

/// The detector inside: whatever is exposed besides is a difference.
#[test]
fn what_is_exposed_besides_is_found() {
    test(&standard(), |world| {
        home::furnish(world.laptop());
        let column = &COLUMNS[0];
        let plan = Plan::of(world.laptop(), column.plan);
        let laptop = world.laptop();
        let besides = [
            "--read=~/.ssh",
            "--read=/run/docker.sock",
            "--pass-env=NPM_TOKEN",
        ];
        let command = laptop.stockade(column.run.iter().take(1).chain(&besides));
        let command = command.args(column.run.iter().skip(1));
        let exposed = rows::fold(&Audit::run(command, &guesses(world)), &plan);
        let section = page::section(&[(column.name, exposed)]);
        let listed = DOCUMENT.section("desktop").expect("a section");
        let differences = page::agrees(listed, &section).expect_err("differences");
        for wanted in [".ssh/id_ed25519", "/run/docker.sock", "NPM_TOKEN"] {
            // Not listed: with one column, every line differs.
            assert!(!listed.contains(wanted), "{wanted}");
            let is_found = |line: &str| line.starts_with('+') && line.contains(wanted);
            assert!(differences.lines().any(is_found), "{wanted}: {differences}");
        }
    });
}

#[test]
fn outside_the_audit_finds_all_there_is_to_lose() {
    test(&standard(), |world| {
        home::furnish(world.laptop());
        let laptop = world.laptop();
        let places = ["/etc", "/home", "/mnt", "/run", "/srv", "/tmp"];
        let arguments: Vec<String> = places.map(|place| format!("--below={place}")).to_vec();
        let command = laptop.command("python3").args(["-I", "-c", SCRIPT]);
        let audit = Audit::run(command, &arguments);

        for decoy in laptop.decoys() {
            assert!(audit.reads(&decoy.path), "{}", decoy.path.display());
        }
        for path in [
            "project/README.md",
            ".local/bin/mine",
            ".config/nvim/init.lua",
        ] {
            assert!(audit.writes(&laptop.home().join(path)), "{path}");
        }
        assert_eq!(audit.sockets, sorted(guesses(world)));
        for decoy in laptop.decoy_variables() {
            assert!(audit.variables.contains_key(decoy.name), "{}", decoy.name);
        }
        let others = audit.processes.iter().filter(|it| it.place != "itself");
        assert!(others.count() > 1, "{:?}", audit.processes);
    });
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
