//! A machine whose kernel has no IPv6 (`ipv6.disable=1`).
//!
//! The kernel of the tests has IPv6, so a system call filter takes its sockets away. What else such a
//! kernel lacks is for `cargo xtask matrix` to show.

use serde_json::Value;
use stockade_world::{Output, Standard, World, test};

use crate::support::standard;

/// Starts its arguments below a filter that answers socket(AF_INET6, …) with EAFNOSUPPORT.
const FILTER: &str = r#"
import ctypes, os, socket, struct, sys
SOCKET = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7fff0000, 0x00050000 | 97
code = [(LOAD, 0, 0, 0), (EQUAL, 0, 3, SOCKET),
        (LOAD, 0, 0, 16), (EQUAL, 0, 1, socket.AF_INET6), (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW)]
code = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[1], sys.argv[1:])
"#;

fn without_ipv6(world: &World, command: &[&str]) -> Output {
    let python = world.laptop().command("python3").args(["-I", "-c", FILTER]);
    python.args(command).run().expect("it ends")
}

#[test]
fn a_kernel_without_ipv6_has_sessions_with_ipv4_and_says_so() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let line = "import socket; socket.socket(socket.AF_INET6)";
        let control = without_ipv6(world, &["python3", "-c", line]).expect_code(1);
        assert!(control.stderr().contains("Errno 97"), "{control:?}");

        let url = "http://www.example.com/";
        let curl = ["curl", "--silent", "--fail", url];
        let run = [
            "stockade",
            "run",
            "--allow",
            "fd00::5",
            "--publish",
            "3000",
            "--",
        ];
        let output = without_ipv6(world, &[&run[..], &curl].concat()).expect_code(0);
        assert!(!output.stdout().is_empty(), "{output:?}");
        let said = "rule `fd00::5` (--allow) has no effect: this machine's kernel has no IPv6";
        assert!(output.stderr().contains(said), "{output:?}");

        let doctor = without_ipv6(world, &["stockade", "doctor"]).expect_code(0);
        assert!(doctor.stdout().contains("IPv4 only"), "{doctor:?}");
    });
}

#[test]
fn verify_holds_on_a_kernel_without_ipv6_and_says_so() {
    test(&standard(), |world| {
        let output = without_ipv6(world, &["stockade", "verify", "--json"]).expect_code(0);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let checks = report["checks"].as_array().expect("checks");
        let named = |name: &str| {
            checks
                .iter()
                .find(|it| it["check"] == name)
                .expect("a check")
        };
        for name in ["network.ipv6", "network.lateral", "network.metadata"] {
            assert_eq!(named(name)["outcome"], "pass", "{report:#}");
        }
        let reason = named("network.ipv6")["reason"].as_str().expect("a reason");
        assert!(reason.contains("no IPv6"), "{reason}");
    });
}
