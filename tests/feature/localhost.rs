//! A service of the host's loopback that is looked for at the one inside.

use std::fs;

use serde_json::Value;
use stockade_world::{Laptop, Output, Site, World, test};

use crate::support::standard;

fn run(world: &World, options: &[&str], line: &str) -> Output {
    let command = world.laptop().stockade(["run"]).args(options);
    let output = command.args(["--", "sh", "-c", line]).run();
    output.expect("stockade ends")
}

/// Connects once to each, and tells how that ended.
fn connects(targets: &str) -> String {
    format!(
        "python3 -I -c '
import errno, socket
for address, port in {targets}:
    family = socket.AF_INET6 if \":\" in address else socket.AF_INET
    error = socket.socket(family).connect_ex((address, port))
    print(errno.errorcode.get(error, error))
'"
    )
}

fn denials(laptop: &Laptop) -> Vec<Value> {
    let output = laptop.stockade(["log", "--denied", "--json"]).run();
    let output = output.expect("stockade ends").expect_success();
    let line = |line: &str| serde_json::from_str(line).expect("a line of JSON");
    output.stdout().lines().map(line).collect()
}

const HINT: &str = "stockade: denied localhost:5432: nothing listens there inside \
                    the sandbox, which has a localhost of its own; a program of your machine does\n\
                    stockade:   to allow it: --host-port 5432\n";

#[test]
fn a_port_that_gives_the_machine_away_is_not_among_what_is_to_be_copied() {
    test(&standard(), |world| {
        let listen = |address| world.laptop().http(address, Site::text("x\n"));
        let _docker = listen("127.0.0.1:2375").expect("listen");
        let _database = listen("127.0.0.1:5432").expect("listen");
        let line = connects("[(\"127.0.0.1\", 2375), (\"127.0.0.1\", 5432)]");
        let told = run(world, &[], &line).stderr();
        let warning = "to allow it: --host-port 2375 (WARNING: whoever reaches Docker is root";
        assert!(told.contains(warning), "{told}");
        // Positive control: the other one is.
        assert!(told.contains("host_ports = [5432]\n"), "{told}");
    });
}

#[test]
fn a_database_of_the_host_that_is_looked_for_inside_is_told_of() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let database = laptop
            .http("127.0.0.1:5432", Site::text("database\n"))
            .expect("listen");
        let line = "curl -sS -f --max-time 20 http://127.0.0.1:5432/";
        let denied = run(world, &[], line).expect_code(7);
        assert!(denied.stderr().contains(HINT), "{denied:?}");
        assert!(
            denied.stderr().contains("  host_ports = [5432]\n"),
            "{denied:?}"
        );

        let [denial] = &denials(laptop)[..] else {
            panic!("{:?}", denials(laptop));
        };
        assert_eq!(denial["kind"], "host-port");
        assert_eq!(denial["what"], "localhost:5432");
        assert_eq!(denial["reason"], "loopback");
        assert_eq!(denial["setting"], "host_ports = [5432]");
        assert!(denial["fix"].is_null(), "{denial}");
        let shown = laptop.stockade(["log", "--denied"]).run().expect("run");
        let fix = "to allow it: host_ports = [5432]";
        assert!(shown.stdout().contains(fix), "{shown:?}");
        assert_eq!(database.requests().count(), 0);

        // What was suggested is all that it takes.
        let options: Vec<_> = "--host-port 5432".split(' ').collect();
        let allowed = run(world, &options, line).expect_success();
        assert_eq!(allowed.stdout(), "database\n");
        assert_eq!(allowed.stderr(), "");
        assert_eq!(database.requests().count(), 1);
    });
}

#[test]
fn whoever_listens_for_the_host_is_meant_and_nobody_else() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let own = laptop.v4();
        let servers = [
            "0.0.0.0:5001".to_owned(),
            "[::]:5002".to_owned(),
            "[::1]:5003".to_owned(),
            "127.0.0.1:5004".to_owned(),
            "127.0.0.2:5005".to_owned(),
            format!("{own}:5006"),
        ];
        let _servers = servers.map(|address| {
            laptop
                .http(address.as_str(), Site::empty())
                .expect("listen")
        });
        let line =
            connects("[(a, p) for p in range(5001, 5008) for a in (\"127.0.0.1\", \"::1\")]");
        let output = run(world, &[], &line).expect_success();
        assert_eq!(output.stdout(), "ECONNREFUSED\n".repeat(14));
        let mut told: Vec<_> = denials(laptop)
            .iter()
            .map(|denial| denial["what"].to_string())
            .collect();
        told.sort();
        told.dedup();
        let wanted = ["5001", "5002", "5003", "5004"];
        assert_eq!(told, wanted.map(|port| format!("\"localhost:{port}\"")));
        let receipt = output.stderr();
        for port in wanted {
            let fix = format!("to allow it: --host-port {port}\n");
            assert_eq!(receipt.matches(&fix).count(), 1, "{receipt}");
        }
    });
}

#[test]
fn where_the_host_does_not_listen_nothing_is_said() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        // Taken by the gate itself, for what is inside.
        let options = ["--publish", "3000:8000", "--host-port", "5432"];
        let line = connects(
            "[(a, p) for p in (3000, 5432, 5433, 8000) for a in (\"127.0.0.1\", \"::1\")]",
        );
        let output = run(world, &options, &line).expect_success();
        assert_eq!(output.stdout(), "ECONNREFUSED\n".repeat(8));
        assert_eq!(output.stderr(), "");
        assert!(denials(laptop).is_empty());
        // The same with somebody at one of them.
        let _server = laptop.http("[::]:5433", Site::empty()).expect("listen");
        let output = run(world, &options, &line).expect_success();
        assert!(
            output.stderr().contains("denied localhost:5433"),
            "{output:?}"
        );
    });
}

#[test]
fn what_a_command_serves_itself_is_its_own() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let _server = laptop
            .http("127.0.0.1:5432", Site::empty())
            .expect("listen");
        let line = "python3 -I -c '
import socket
server = socket.create_server((\"127.0.0.1\", 5432))
client = socket.create_connection((\"127.0.0.1\", 5432))
near, _ = server.accept()
near.send(b\"mine\")
print(client.recv(9).decode())
near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b\"\\x01\\0\\0\\0\\0\\0\\0\\0\")
near.close()
'";
        let output = run(world, &[], line).expect_success();
        assert_eq!(output.stdout(), "mine\n");
        assert_eq!(output.stderr(), "");
    });
}

#[test]
fn a_flood_of_refusals_is_refused_and_bounded() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let _server = laptop
            .http("127.0.0.1:5432", Site::empty())
            .expect("listen");
        let line = "python3 -I -c '
import socket
errors = set()
for _ in range(20000):
    s = socket.socket()
    errors.add(s.connect_ex((\"127.0.0.1\", 5432)))
    s.close()
print(errors)
'";
        let output = run(world, &[], line).expect_success();
        assert_eq!(output.stdout(), "{111}\n", "ECONNREFUSED, each time");
        let sessions = laptop.home().join(".local/state/stockade/sessions");
        let log = fs::read_dir(sessions).expect("logs").next().expect("a log");
        let lines = fs::read_to_string(log.expect("an entry").path()).expect("a log");
        assert!(lines.lines().count() < 10, "{lines}");
        let receipt = output.stderr();
        assert_eq!(
            receipt.matches("denied localhost:5432").count(),
            1,
            "{receipt}"
        );
        // As many as were looked at, which is told as if it were all: it is a hint.
        let counted: u64 = denials(laptop)
            .iter()
            .filter_map(|denial| denial["count"].as_u64())
            .sum();
        assert!((1..5000).contains(&counted), "{counted}");
    });
}
