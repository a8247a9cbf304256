//! Devices with names: they resolve inside, are open by their rules, and are called by their names.

use std::fs;

use stockade_world::{Laptop, Output, Standard, World, test};

use super::ssh;
use crate::support::standard;

const DEVICES: &str = "
[devices]
pmac = \"tcp://192.168.10.21:80\"
ioc = [\"10.20.0.5\", \"fd00:20::5\"]
cam = \"tcp://cam1.lab.example:80\"
";
/// In which a search domain would complete every short name, to a host of the internet.
const SEARCH: &str = "nameserver 8.8.8.8\nsearch corp.example\n";

fn configure(laptop: &Laptop, text: &str) {
    let directory = laptop.home().join(".config/stockade");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("config.toml"), text).expect("a configuration");
}

fn with_decoys(world: &World) -> Standard {
    let net = Standard::serve(world).expect("servers");
    let web = world.host("web").v4();
    for name in ["pmac", "ioc", "cam"] {
        world.dns().record(&format!("{name}.corp.example"), web);
    }
    world
        .dns()
        .record("cam1.lab.example", world.host("intranet").v4());
    net
}

fn bash(world: &World, options: &[&str], line: &str) -> Output {
    let run = world.laptop().stockade(["run"]).args(options);
    run.args(["--", "bash", "-c", line]).run().expect("an end")
}

#[test]
fn a_device_is_used_by_its_name_with_every_tool() {
    test(&standard(), |world| {
        let _net = with_decoys(world);
        let laptop = world.laptop();
        configure(laptop, DEVICES);
        let clients = [
            ("curl -sS --max-time 20 http://pmac/", "hello from device\n"),
            (
                "curl -sS --max-time 20 http://ioc/",
                "hello from intranet\n",
            ),
            (
                "curl -6 -sS --max-time 20 http://ioc/",
                "hello from intranet\n",
            ),
            (
                "curl -sS --max-time 20 http://cam/",
                "hello from intranet\n",
            ),
            ("dig +short pmac A", "192.168.10.21\n"),
            ("dig +short pmac AAAA", ""),
            ("dig +short ioc AAAA", "fd00:20::5\n"),
            ("dig +short cam A", "10.20.0.5\n"),
            ("dig +short -x 192.168.10.21", "pmac.\n"),
            ("dig +short -x fd00:20::5", "ioc.\n"),
            ("getent ahostsv4 pmac | grep -c 192.168.10.21", "3\n"),
            (
                "getent hosts 192.168.10.21 | tr -s ' '",
                "192.168.10.21 pmac\n",
            ),
            ("ping -c 1 -W 20 ioc | grep -c '1 received'", "1\n"),
            (
                "python3 -Ic 'import socket; print(socket.gethostbyname(\"pmac\"))'",
                "192.168.10.21\n",
            ),
        ];
        for resolv_conf in [
            None,
            Some(SEARCH),
            Some("nameserver 8.8.8.8\nsearch corp.example\noptions ndots:3\n"),
        ] {
            if let Some(text) = resolv_conf {
                laptop.write_etc("resolv.conf", text).expect("write");
            }
            let lines: Vec<_> = clients.iter().map(|(line, _)| *line).collect();
            let line = lines.join("; echo --; ");
            for options in [&["--no-internet"][..], &[]] {
                let output = bash(world, options, &line);
                let stdout = output.stdout();
                let told: Vec<_> = stdout.split("--\n").collect();
                assert_eq!(told.len(), clients.len(), "{output:?}");
                for ((line, expected), told) in clients.iter().zip(told) {
                    assert_eq!(told, *expected, "{line} {options:?} {resolv_conf:?}");
                }
            }
        }
        // What is written in full means the same, and what is below a name does not.
        let full = "curl -sS --max-time 20 http://cam.corp.example/; dig +short x.cam A";
        let output = bash(world, &[], full);
        assert_eq!(output.stdout(), "hello from intranet\n", "{output:?}");
        assert_eq!(world.dns().queries_for("pmac"), 0);
        assert_eq!(world.dns().queries_for("pmac.corp.example"), 0);
        assert!(world.dns().queries_for("cam1.lab.example") > 0);
    });
}

/// Its server speaks first, and the connection shows no name.
#[test]
fn ssh_to_a_device_and_to_a_near_name_works() {
    test(&standard(), |world| {
        let _server = ssh::serve_on(world, "device");
        for (option, host) in [
            (["--near", "tcp://device.lan:2222"], "device.lan"),
            (["--device", "pmac=tcp://192.168.10.21:2222"], "pmac"),
            (["--device", "cam=tcp://device.lan:2222"], "cam"),
        ] {
            for internet in ["--internet=true", "--internet=false"] {
                let line = format!("{} dev@{host} 'tr a-z A-Z'", ssh::SSH);
                let run = world.laptop().stockade(["run", internet]).args(option);
                let run = run.args(["--", "bash", "-c", &line]).input("hello\n");
                let output = run.run().expect("ssh ends").expect_success();
                assert_eq!(output.stdout(), "HELLO\n", "{option:?}");
            }
        }
    });
}

#[test]
fn a_device_is_open_for_what_its_rules_say_and_called_by_its_name() {
    test(&standard(), |world| {
        let _net = with_decoys(world);
        let laptop = world.laptop();
        configure(laptop, DEVICES);
        let line = "ping -c 1 -W 5 pmac; curl -sS --max-time 5 http://pmac:7/; \
            curl -sS http://192.168.10.21/; curl -sS http://192.168.10.1/; true";
        let output = bash(world, &[], line).expect_success();
        assert_eq!(
            output.stdout().lines().last(),
            Some("hello from device"),
            "{output:?}"
        );
        let receipt = output.stderr();
        let denied: Vec<_> = receipt
            .lines()
            .filter(|line| line.contains("(device pmac)"))
            .collect();
        assert_eq!(denied.len(), 1, "{receipt}");
        let fix = "to allow it: --allow tcp://192.168.10.21:7 --allow icmp://192.168.10.21\n";
        assert!(receipt.contains(fix), "{receipt}");
        let log = laptop.stockade(["log"]).run().expect("a log").stdout();
        assert!(log.contains("tcp://192.168.10.21:80 (device pmac"), "{log}");
        assert!(log.contains("of device pmac"), "{log}");
        let log = laptop
            .stockade(["log", "--json"])
            .run()
            .expect("a log")
            .stdout();
        let lines = log
            .lines()
            .filter(|line| line.contains("\"device\":\"pmac\""));
        // Both ways of opening, their ends, and what was denied.
        assert!(lines.count() >= 4, "{log}");
        let explain = |target: &str| {
            let explained = laptop.stockade(["explain", target]).run().expect("an end");
            (explained.code(), explained.stdout())
        };
        let (code, text) = explain("tcp://pmac:80");
        assert!(
            code == 0 && text.contains("of device pmac") && text.contains("config.toml:3"),
            "{text}"
        );
        let (code, text) = explain("tcp://192.168.10.21:22");
        assert!(
            code == 1 && text.contains("192.168.10.21 (device pmac)"),
            "{text}"
        );
        assert_eq!(explain("tcp://cam:80").0, 0);
        let plan = laptop
            .stockade(["plan", "--", "true"])
            .run()
            .expect("a plan");
        let device = "device      pmac: tcp://192.168.10.21:80";
        assert!(plan.stdout().contains(device), "{plan:?}");
    });
}

#[test]
fn what_is_denied_of_one_private_host_is_allowed_by_one_rule() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let search = "echo x > /dev/udp/192.168.10.21/7; sleep 0.1; ";
        let output = bash(world, &[], search);
        let fix = "to allow it: --allow 192.168.10.21:7 (TCP and UDP)\n";
        assert!(output.stderr().contains(fix), "{output:?}");
        let both =
            format!("{search} curl -s http://192.168.10.21/; curl -s http://10.20.0.5/; true");
        let output = bash(world, &[], &both);
        let receipt = output.stderr();
        let fix = "to allow it: --allow 192.168.10.21:7,80 (TCP and UDP)\n";
        assert!(receipt.contains(fix), "{receipt}");
        let lines = receipt
            .lines()
            .filter(|line| line.contains("192.168.10.21 is in"));
        assert_eq!(lines.count(), 1, "{receipt}");
        // Another host is another matter.
        assert!(
            receipt.contains("to allow it: --allow tcp://10.20.0.5:80\n"),
            "{receipt}"
        );
        let options = ["--allow", "192.168.10.21:7,80"];
        let fetch = "curl -s http://192.168.10.21/";
        assert_eq!(bash(world, &options, fetch).stdout(), "hello from device\n");
    });
}

#[test]
fn a_reload_gives_the_name_of_a_device_to_another() {
    test(&standard(), |world| {
        let _net = with_decoys(world);
        let laptop = world.laptop();
        let of = |rule: &str| format!("[devices]\nx = \"{rule}\"\n");
        configure(laptop, &of("tcp://192.168.10.21:80"));
        let fetch = "curl -s --max-time 5 http://x/; \
            curl -s --max-time 5 http://192.168.10.21/ || echo denied; echo next; read";
        let line = [fetch, fetch, fetch, fetch].join("; ");
        let session = laptop.stockade(["run", "--", "bash", "-c", &line]);
        let mut session = session.spawn().expect("a session");
        let told = session.expect("next").expect("pages");
        assert_eq!(told, "hello from device\nhello from device\n");
        let reload = || {
            laptop
                .stockade(["reload"])
                .run()
                .expect("a reload")
                .expect_success();
        };
        for (rule, expected) in [
            ("10.20.0.5", "hello from intranet\ndenied\n"),
            ("tcp://cam1.lab.example:80", "hello from intranet\ndenied\n"),
            ("192.168.10.21", "hello from device\nhello from device\n"),
        ] {
            configure(laptop, &of(rule));
            reload();
            session.write("\n").expect("go on");
            let told = session.expect("next").expect("pages");
            assert_eq!(told.trim_start(), expected, "{rule}");
        }
        session.write("\n").expect("end");
        session.wait().expect("an end");
    });
}
