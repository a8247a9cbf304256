//! A search for devices goes to those that the rules name, and their answers come back.

use std::fs;
use std::net::{IpAddr, UdpSocket};

use stockade_world::{Builder, Host, HostSpec, Output, Packet, Protocol, World, test};

use crate::support::standard;

/// The broadcast address of the laptop's network.
const SUBNET: &str = "192.168.10.255";

/// Two devices on the laptop's network, and one behind the router.
fn laboratory() -> Builder {
    standard()
        .host(
            HostSpec::new("one")
                .at("192.168.10.31")
                .at("fd00:10::31")
                .on_lan(),
        )
        .host(HostSpec::new("two").at("192.168.10.32").on_lan())
        .host(HostSpec::new("far").at("172.23.1.3").at("fd00:23::3"))
}

/// Sends to an address and port, and prints who answers what, until as many have as are expected. Asks
/// again where a datagram or a look-up is lost, as clients of EPICS do.
const SEARCH: &str = "
import socket, sys
address, port, expected = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = socket.AF_INET6 if ':' in address else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
if family == socket.AF_INET:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.bind(('', int(sys.argv[4]) if len(sys.argv) > 4 else 0))
s.sendto(b'who is there', (address, port))
answers = set()
s.settimeout(4)
tries = 8
while len(answers) < expected:
    try:
        text, sender = s.recvfrom(100)
        answers.add((sender[0], sender[1], text.decode()))
    except TimeoutError:
        tries -= 1
        assert tries, answers
        s.sendto(b'who is there', (address, port))
s.settimeout(0.5)
try:
    while True:
        text, sender = s.recvfrom(100)
        answers.add((sender[0], sender[1], text.decode()))
except TimeoutError:
    pass
for answer in sorted(answers):
    print(*answer)
";

fn search(world: &World, options: &str, arguments: &[&str]) -> Output {
    let run = world.laptop().stockade(["run"]);
    let run = run.args(options.split_whitespace());
    let run = run.args(["--", "python3", "-c", SEARCH]).args(arguments);
    run.run().expect("stockade ends")
}

/// Every host answers with its name, at both ports of EPICS.
fn serve(world: &World) {
    for host in world.hosts() {
        for port in [3702, 5064, 5076] {
            let name = host.name().to_owned();
            let answer = move |_: &_| Some(name.clone().into_bytes());
            host.udp(port, answer).expect("listen");
        }
    }
}

#[test]
fn a_search_reaches_each_device_that_a_rule_names_and_their_answers_come_back() {
    test(&laboratory(), |world| {
        serve(world);
        let options = "--discovery epics --allow 192.168.10.31 --allow udp://172.23.1.3:5064,5076";
        for (address, port) in [
            ("255.255.255.255", "5064"),
            (SUBNET, "5064"),
            ("224.0.0.128", "5076"),
        ] {
            let output = search(world, options, &[address, port, "2"]).expect_success();
            let wanted = format!("172.23.1.3 {port} far\n192.168.10.31 {port} one\n");
            assert_eq!(output.stdout(), wanted, "{address}: {output:?}");
            assert_eq!(output.stderr(), "");
        }
        let options =
            "--discovery epics --allow fd00:23::3 --allow [fd00:10::31]:5076 --allow fd00:20::5";
        let output = search(world, options, &["ff02::42:1", "5076", "3"]).expect_success();
        assert_eq!(
            output.stdout(),
            "fd00:10::31 5076 one\nfd00:20::5 5076 intranet\nfd00:23::3 5076 far\n"
        );
    });
}

#[test]
fn a_port_alone_passes_searches_at_this_port_only() {
    test(&laboratory(), |world| {
        serve(world);
        let options = "--discovery udp://3702 --allow 192.168.10.31";
        let output = search(world, options, &["239.255.255.250", "3702", "1"]).expect_success();
        assert_eq!(output.stdout(), "192.168.10.31 3702 one\n");
        let output = search(world, options, &["255.255.255.255", "5064", "0"]).expect_success();
        assert_eq!(output.stdout(), "");
        let said = output.stderr();
        assert!(said.contains("to allow it: --discovery epics\n"), "{said}");
    });
}

#[test]
fn a_device_that_answers_from_elsewhere_needs_a_rule_for_that_address() {
    test(&laboratory(), |world| {
        let one = world.host("one");
        one.ip("address add 192.168.10.33/24 dev eth0").expect("ip");
        one.ip("address add 192.168.10.34/24 dev eth0").expect("ip");
        answer_from(
            one,
            &[
                "192.168.10.33:5064",
                "192.168.10.31:4000",
                "192.168.10.34:5064",
            ],
        );
        let options = "--discovery epics --allow udp://192.168.10.31:5064";
        let search = |options: &str, count: &str| {
            let output = search(world, options, &["255.255.255.255", "5064", count, "41000"]);
            output.expect_success()
        };
        let output = search(options, "0");
        assert_eq!(output.stdout(), "");
        let said = output.stderr();
        assert!(
            said.contains(
                "denied udp://192.168.10.33:5064: udp://192.168.10.33:5064 answered a search for \
                 devices, but no rule covers it"
            ),
            "{said}"
        );
        assert!(
            said.contains("to allow it: --allow udp://192.168.10.33:5064 (WARNING:"),
            "{said}"
        );
        let options = "--discovery epics --allow 192.168.10.31 --allow udp://192.168.10.33:5064";
        let output = search(options, "2");
        let wanted = "192.168.10.31 4000 2\n192.168.10.33 5064 1\n";
        assert_eq!(output.stdout(), wanted);
    });
}

/// The host `one` by its name, besides others that have names.
fn name_devices(world: &World) {
    let dns = world.dns();
    for address in ["192.168.10.31", "fd00:10::31"] {
        let address: IpAddr = address.parse().expect("an address");
        dns.record("ioc1.lab.example", address);
    }
    let two = world.host("two").v4();
    dns.record("other.lab.example", two);
}

#[test]
fn a_device_that_is_named_by_a_host_name_hears_a_search_and_its_answer_comes_back() {
    test(&laboratory(), |world| {
        serve(world);
        name_devices(world);
        for (device, internet) in [
            ("ioc1.lab.example", ""),
            ("udp://ioc1.lab.example:5064,5076", "--no-internet"),
        ] {
            // Other rules for names are no devices.
            let options = format!(
                "--discovery epics --device ioc={device} --near *.lab.example --allow 172.23.1.3 \
                 {internet}"
            );
            for (address, port) in [
                ("255.255.255.255", "5064"),
                (SUBNET, "5064"),
                ("224.0.0.128", "5076"),
            ] {
                let output = search(world, &options, &[address, port, "2"]).expect_success();
                let wanted = format!("172.23.1.3 {port} far\n192.168.10.31 {port} one\n");
                assert_eq!(output.stdout(), wanted, "{address}: {output:?}");
                assert_eq!(output.stderr(), "");
            }
            let output = search(world, &options, &["ff02::42:1", "5076", "1"]).expect_success();
            assert_eq!(output.stdout(), "fd00:10::31 5076 one\n", "{output:?}");
        }
        assert_eq!(world.dns().queries_for("other.lab.example"), 0);

        let laptop = world.laptop();
        let log = laptop.stockade(["log", "--json"]).run().expect("its end");
        let log = log.stdout();
        let opened = log.lines().find(|it| it.contains("\"open\"")).expect("one");
        for part in [
            "\"to\":\"udp://[fd00:10::31]:5076\"",
            "\"reason\":\"discovery\"",
            "\"device\":\"ioc\"",
        ] {
            assert!(opened.contains(part), "{opened}");
        }
        let asked = log.lines().filter(|it| it.contains("ioc1.lab.example"));
        assert!(asked.count() > 0, "{log}");
        let explain = ["explain", "--discovery", "epics", "--device"];
        let explain = laptop.stockade(explain);
        let explain = explain.args(["ioc=ioc1.lab.example", "udp://255.255.255.255:5064"]);
        let said = explain.run().expect("its end").expect_success().stdout();
        assert!(said.contains("to nobody else: device ioc\n"), "{said}");
    });
}

/// EPICS clients of pvAccess ask for many channels at once, in datagrams that look like QUIC.
#[test]
fn a_long_search_of_pvaccess_reaches_a_device_by_its_host_name() {
    const LONG: &str = "
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.settimeout(20)
s.sendto(struct.pack('<BBBBII', 0xca, 2, 0, 3, 1300, 7) + bytes(1296), ('255.255.255.255', 5076))
print(s.recvfrom(100)[0].decode())
";
    test(&laboratory(), |world| {
        serve(world);
        name_devices(world);
        let options = ["run", "--discovery", "epics", "--device"];
        let run = world
            .laptop()
            .stockade(options)
            .args(["ioc=ioc1.lab.example", "--"]);
        let output = run.args(["python3", "-c", LONG]).run().expect("its end");
        assert_eq!(output.expect_success().stdout(), "one\n");
    });
}

#[test]
fn a_device_by_its_host_name_may_answer_from_what_its_rules_cover() {
    test(&laboratory(), |world| {
        name_devices(world);
        answer_from(
            world.host("one"),
            &["192.168.10.31:4000", "192.168.10.31:4001"],
        );
        let search = |rule: &str, count: &str| {
            let options = format!("--discovery epics --device ioc={rule}");
            let search = ["255.255.255.255", "5064", count, "41000"];
            search_with(world, &options, &search)
        };
        let output = search("udp://ioc1.lab.example:4000,5064", "1");
        assert_eq!(output.stdout(), "192.168.10.31 4000 1\n");
        let told = "denied udp://192.168.10.31:4001: udp://192.168.10.31:4001 answered a search";
        assert!(output.stderr().contains(told), "{output:?}");
        let output = search("ioc1.lab.example", "2");
        let wanted = "192.168.10.31 4000 1\n192.168.10.31 4001 2\n";
        assert_eq!(output.stdout(), wanted);
    });
}

fn search_with(world: &World, options: &str, arguments: &[&str]) -> Output {
    search(world, options, arguments).expect_success()
}

/// Has a host answer each datagram to port 5064 of its first address once from each of these.
fn answer_from(host: &Host, sources: &[&str]) {
    let asked = host.v4();
    let (asked, sources) = host.enter(|| {
        let bind = |at: &&str| UdpSocket::bind(*at).expect("an address of the host");
        let sources: Vec<_> = sources.iter().map(bind).collect();
        (
            UdpSocket::bind((asked, 5064)).expect("a free port"),
            sources,
        )
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 100];
        while let Ok((_, client)) = asked.recv_from(&mut buffer) {
            for (number, source) in (1..).zip(&sources) {
                let _ = source.send_to(format!("{number}").as_bytes(), client);
            }
        }
    });
}

#[test]
fn a_search_without_discovery_or_without_a_device_says_what_is_missing() {
    test(&laboratory(), |world| {
        serve(world);
        for address in ["255.255.255.255", SUBNET, "224.0.0.128"] {
            let said = search(world, "", &[address, "5076", "0"]).stderr();
            let told = ": a search for devices goes to everybody on the network, and does not leave the \
                 jail; `discovery = [\"epics\"]` sends it to the devices that rules allow, and to \
                 nobody else\nstockade:   to allow it, with `--allow ADDRESS` for each device: \
                 --discovery epics\n";
            assert!(said.contains(told), "{said}");
            assert!(said.contains("  discovery = [\"epics\"]\n"), "{said}");
            let said = search(
                world,
                "--discovery epics --allow 192.168.10.0/24",
                &[address, "5076", "0"],
            );
            let said = said.stderr();
            let told = ": no rule names a device for searches at UDP port 5076; rule \
                        `192.168.10.0/24` is for a network, which is not searched: allow each \
                        device by its address, or name it in `[devices]`\n";
            assert!(said.contains(told), "{said}");
        }
        let explain = world
            .laptop()
            .stockade(["explain", "udp://255.255.255.255:5064"]);
        let said = explain.run().expect("its end").expect_code(1).stdout();
        assert!(said.contains("discovery = [\"epics\"]"), "{said}");
        let explain = world.laptop().stockade([
            "explain",
            "--discovery",
            "epics",
            "--allow",
            "192.168.10.31",
            "udp://255.255.255.255:5064",
        ]);
        let said = explain.run().expect("its end").expect_success().stdout();
        assert!(said.contains("to nobody else: 192.168.10.31\n"), "{said}");
    });
}

#[test]
fn a_search_is_logged_once_for_each_device_and_ends_with_a_reload() {
    test(&laboratory(), |world| {
        serve(world);
        let laptop = world.laptop();
        let file = laptop.home().join(".config/stockade/config.toml");
        let rules = "[network]\nallow = [\"192.168.10.31\", \"192.168.10.32\"]\n";
        fs::write(&file, format!("{rules}discovery = [\"epics\"]\n")).expect("write");
        let script = "
import sys
search = sys.argv[1]
for line in sys.stdin:
    sys.argv = ['', '255.255.255.255', '5064', line.strip(), '41000']
    exec(search)
    s.close()
    print('done', flush=True)
";
        let session = laptop.stockade(["run", "--", "python3", "-c", script, SEARCH]);
        let mut session = session.spawn().expect("a session");
        for _ in 0..2 {
            session.write("2\n").expect("a search");
            let told = session.expect("done\n").expect("answers");
            assert_eq!(told.matches("192.168.10.3").count(), 2, "{told}");
        }
        fs::write(&file, rules).expect("write");
        let reload = laptop.stockade(["reload"]).run().expect("its end");
        reload.expect_success();
        session.write("0\n").expect("a search");
        let told = session.expect("done\n").expect("no answer");
        assert!(!told.contains("192.168.10.3"), "{told}");
        session.close_stdin();
        let said = session.wait().expect("its end").stderr();
        assert!(said.contains("to allow it: --discovery epics\n"), "{said}");

        let log = laptop.stockade(["log", "--json"]).run().expect("its end");
        let log = log.stdout();
        let opened: Vec<_> = log.lines().filter(|it| it.contains("\"open\"")).collect();
        assert_eq!(opened.len(), 2, "{log}");
        for (line, device) in opened.iter().zip(["31", "32"]) {
            for part in [
                format!("\"to\":\"udp://192.168.10.{device}:5064\""),
                "\"reason\":\"discovery\"".to_owned(),
                "\"search\":\"udp://255.255.255.255:5064\"".to_owned(),
            ] {
                assert!(line.contains(&part), "{line}");
            }
        }
    });
}

#[test]
fn more_devices_than_a_search_goes_to_are_told() {
    test(&laboratory(), |world| {
        let rules = (1..=70).map(|number| format!("--allow 10.9.0.{number}"));
        let options = rules.collect::<Vec<_>>().join(" ");
        let capture = world.laptop().capture().expect("capture");
        let options = format!("--discovery epics {options}");
        let output = search(world, &options, &["255.255.255.255", "5064", "0"]);
        let told = "stockade: searches for devices go to the first 64 that rules name; 6 more are \
                    not asked\n";
        assert!(output.stderr().contains(told), "{output:?}");
        let asked = |packet: &Packet| {
            packet.protocol == Protocol::Udp && packet.destination_port == Some(5064)
        };
        assert_eq!(capture.count(asked), 64);
    });
}
