//! Odd ways to write addresses, as rules and as targets (N9).

use stockade_world::{Site, Standard, test};

use super::probe::{INSIDE, Place};
use crate::support::standard;

/// Each means something else to some program, or hides something from the reader.
const ODD_RULES: &[&str] = &[
    "0x7f.1",
    "0x0a140005",
    "2130706433",
    "0177.0.0.1",
    "012.20.0.5",
    "127.1",
    "10.20.5",
    "10.20.0.5.",
    "10.20.0.05",
    "10.20.0.256",
    "10.20.0.5%eth0",
    "10.20.0.5%00",
    "fe80::1%eth0",
    "[fe80::1%25eth0]:80",
    "10.20.0.5\n",
    "10.20.0.5\r\n10.20.0.6",
    " 10.20.0.5",
    "10.20.0.5\t",
    "１０.20.0.5",
    "10。20。0。5",
    "10.20.0.5\u{200b}",
    "[10.20.0.5]",
    "[fd00:20::5",
    "fd00:20::5]:80",
    "fd00:20::5:::80",
    "::ffff:10.20.0.5",
    "[::ffff:10.20.0.5]:80",
    "10.20.0.5/8",
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/-1",
    "10.0.0.0/255.0.0.0",
    "10.20.0.5:0",
    "10.20.0.5:65536",
    "10.20.0.5:80-70",
    "10.20.0.5:+80",
    "10.20.0.5:",
    "10.20.0.5:http",
    "icmp://10.20.0.5:80",
    "TCP://10.20.0.5",
    "http://10.20.0.5/",
    "sctp://10.20.0.5",
    "//10.20.0.5",
    "user@10.20.0.5",
    "10.20.0.5,10.20.0.6",
    "10.20.0.5 10.20.0.6",
    "10.20.0.1-10.20.0.9",
    "!10.20.0.5",
    "127.0.0.1",
    "127.0.0.0/8",
    "::1",
    "0.0.0.0",
    "224.0.0.251",
    "255.255.255.255",
    "ff02::fb",
    "fe80::/10",
];

#[test]
fn n09_odd_rules_are_refused_and_nothing_is_run() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let marker = laptop.workspace().join("ran");
        for rule in ODD_RULES {
            // A good rule beside it does not save the launch.
            let rules = ["run", "--allow", "10.20.0.5", "--allow", rule];
            let touch = laptop.stockade(rules).args(["--", "touch", "ran"]);
            let refused = touch.run().expect("run");
            assert_eq!(refused.code(), 125, "{rule:?}: {refused:?}");
            assert!(
                refused.stderr().contains("--allow"),
                "{rule:?}: {refused:?}"
            );
            assert!(!marker.exists(), "{rule:?}");
            // Nothing that the rule smuggles reaches the terminal raw.
            let raw = |c: char| c.is_control() && c != '\n';
            assert!(!refused.stderr().contains(raw), "{refused:?}");
        }
        // The same address, written as it should be.
        let plain = ["run", "--allow", "10.20.0.5", "--allow", "[fd00:20::5]:80"];
        let touch = laptop.stockade(plain).args(["--", "touch", "ran"]);
        touch.run().expect("run").expect_success();
        assert!(marker.exists());
    });
}

/// What `curl` and the C library take for 127.0.0.1.
const LOOPBACK: [&str; 14] = [
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F.0x0.0X0.0x1",
    "2130706433",
    "017700000001",
    "0177.0.0.01",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "LOCALHOST",
];

/// And for 10.20.0.5.
const INTRANET: [&str; 6] = [
    "10.1310725",
    "0x0a.0x14.0.5",
    "0xa140005",
    "169082885",
    "012.024.0.5",
    "[::ffff:a14:5]",
];

#[test]
fn n09_odd_targets_lead_neither_to_the_host_nor_to_the_intranet() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let own = laptop.http(80, Site::text("the host\n")).expect("listen");
        // One process for all: `curl` goes on after a failure, and says what came of each.
        let fetch = |place: Place<'_>, targets: &[&str]| {
            let told = "%{url} %{exitcode} %{remote_ip}\n";
            let curl = place.command(laptop, "curl");
            let curl = curl.args(["-s", "--max-time", "20", "--noproxy", "*", "-w", told]);
            let urls = targets.iter().flat_map(|target| {
                [
                    "-o".to_owned(),
                    "/dev/null".to_owned(),
                    format!("http://{target}/"),
                ]
            });
            curl.args(urls).run().expect("curl").stdout()
        };
        let failed = |told: &str| told.lines().filter(|line| line.contains("/ 7 ")).count();
        let came = |told: &str| told.lines().filter(|line| line.contains("/ 0 ")).count();

        let loopback = fetch(INSIDE, &LOOPBACK);
        assert_eq!(failed(&loopback), LOOPBACK.len(), "{loopback}");
        assert_eq!(own.requests().count(), 0);
        let intranet = fetch(INSIDE, &INTRANET);
        assert_eq!(failed(&intranet), INTRANET.len(), "{intranet}");
        assert_eq!(net.intranet.tcp().connections().count(), 0);
        let web = fetch(INSIDE, &["0x5d.0xb8.0xd822", "93.184.216.34"]);
        assert_eq!(came(&web), 2, "{web}");

        let loopback = fetch(Place::Outside, &LOOPBACK);
        assert_eq!(own.requests().count(), LOOPBACK.len(), "{loopback}");
        let intranet = fetch(Place::Outside, &INTRANET);
        assert_eq!(came(&intranet), INTRANET.len(), "{intranet}");
    });
}
