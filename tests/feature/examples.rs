//! The worked examples of the documentation, as sessions.

use std::fs;

use stockade_world::{Builder, Command, HostSpec, Output, Standard, World, test};

use crate::attack::probe::{PROBE, Prober};
use crate::support::standard;

/// Starts a session with the example as the user's configuration.
fn session(world: &World, example: &str, command: &[&str]) -> Command {
    let laptop = world.laptop();
    let file = laptop.home().join(".config/stockade/config.toml");
    fs::write(file, example).expect("write");
    laptop.stockade(["run", "--"]).args(command)
}

/// Tries all of them in such a session: the first are to answer, the others to be denied.
#[track_caller]
fn expect(world: &World, example: &str, yes: &[&str], no: &[&str]) {
    let probe = ["/usr/bin/python3", "-IS", "-c", PROBE];
    let mut prober = Prober::start(session(world, example, &probe));
    prober.ask(yes).expect_answers();
    prober.ask(no).expect("a denial", |outcome| {
        ["EHOSTUNREACH", "EACCES"].contains(&outcome) || outcome.starts_with("no address")
    });
    prober.end();
}

/// Runs a line of the shell in it.
fn run(world: &World, example: &str, line: &str) -> Output {
    let shell = session(world, example, &["bash", "-c", line]);
    shell.run().expect("the session ends").expect_success()
}

fn laboratory() -> Builder {
    standard()
        .host(HostSpec::new("ioc").at("172.23.1.3").at("172.23.1.4"))
        .host(HostSpec::new("camera").at("192.168.10.30").on_lan())
}

#[test]
fn the_laboratory_reaches_its_devices_and_the_internet() {
    test(&laboratory(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for port in [5064, 5065, 5066] {
            world.host("ioc").udp_echo(port).expect("listen");
            world.host("ioc").tcp_echo(port).expect("listen");
        }
        for (host, ports) in [("device", &[1025, 1026][..]), ("camera", &[80, 54321])] {
            for port in ports {
                world.host(host).tcp_echo(*port).expect("listen");
                world.host(host).udp_echo(*port).expect("listen");
            }
        }
        let yes = [
            "udp://172.23.1.3:5064",
            "udp://172.23.1.3:5065",
            "tcp://172.23.1.3:5064",
            "tcp://192.168.10.21:1025",
            "tcp://192.168.10.30:54321",
            "udp://192.168.10.30:80",
            "tcp://www.example.com:7",
        ];
        let no = [
            "tcp://172.23.1.3:5065",
            "udp://172.23.1.3:5066",
            "udp://172.23.1.4:5064",
            "tcp://192.168.10.21:1026",
            "udp://192.168.10.21:1025",
            "tcp://10.20.0.5:7",
        ];
        let example = include_str!("../../docs/examples/lateral-jail.toml");
        expect(world, example, &yes, &no);
        let line =
            "echo $EPICS_CA_ADDR_LIST $EPICS_CA_AUTO_ADDR_LIST; echo x > /dev/udp/172.23.1.4/5064";
        let output = run(world, example, line);
        assert_eq!(output.stdout(), "172.23.1.3 NO\n");
        let fix = "to allow it: --allow 172.23.1.4:5064";
        assert!(output.stderr().contains(fix), "{output:?}");
    });
}

#[test]
fn the_list_of_hosts_reaches_those_and_tells_of_the_rest() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let [web, mirror, intranet] = ["web", "mirror", "intranet"].map(|name| world.host(name));
        for (name, host) in [
            ("api.anthropic.com", web),
            ("github.com", mirror),
            ("*.packages.example", web),
            ("packages.example", web),
            ("files.corp.example", intranet),
            ("corp.example", web),
            ("example.net", web),
        ] {
            world.dns().record(name, host.v4());
        }
        for port in [22, 8080] {
            mirror.tcp_echo(port).expect("listen");
            web.tcp_echo(port).expect("listen");
        }
        let yes = [
            "tcp://api.anthropic.com:443",
            "tcp://github.com:22",
            "tcp://github.com:443",
            "tcp://x.y.packages.example:443",
            "tcp://packages.example:443",
            "tcp://files.corp.example:7",
            "tcp://10.20.0.5:7",
            "udp://10.20.0.5:7",
        ];
        let no = [
            "tcp://api.anthropic.com:22",
            "tcp://api.anthropic.com:80",
            "tcp://github.com:8080",
            "tcp://corp.example:443",
            "tcp://example.net:443",
            "tcp://x.packages.example:22",
            "udp://github.com:443",
            "tcp://192.168.10.21:7",
            "tcp://[fd00:20::5]:7",
            "tcp://151.101.1.69:80",
        ];
        let example = include_str!("../../docs/examples/host-allowlist.toml");
        expect(world, example, &yes, &no);
        let fetch = "curl -ks -o /dev/null -w '%{http_code} ' --max-time 20";
        let line =
            format!("{fetch} https://api.anthropic.com/; {fetch} https://corp.example/; true");
        let output = run(world, example, &line);
        assert_eq!(output.stdout(), "200 000 ");
        let said = output.stderr();
        assert!(said.contains("denied the name corp.example"), "{said}");
        assert_eq!(world.dns().queries_for("corp.example"), 0);
    });
}
