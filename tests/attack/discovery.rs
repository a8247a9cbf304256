//! Searches for devices that go too far (N5), are too many (N16), or are answered by others.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stockade_world::{
    Builder, Capture, Command, Datagram, Host, HostSpec, PATIENCE, Protocol, Standard, World,
    eventually, test,
};

use super::probe::{Place, Watch, only_outside};
use crate::support::standard;

/// Where searches go: to everybody, to the laptop's subnet, and to groups.
const TO_MANY: [&str; 4] = [
    "255.255.255.255",
    "192.168.10.255",
    "224.0.0.128",
    "ff02::42:1",
];
const DEVICE: &str = "192.168.10.31";
const DEVICE_V6: &str = "fd00:10::31";
const NEIGHBOUR: &str = "192.168.10.32";
const PMAC: &str = "192.168.10.40";

fn laboratory() -> Builder {
    standard()
        .host(HostSpec::new("ioc").at(DEVICE).at(DEVICE_V6).on_lan())
        .host(HostSpec::new("neighbour").at(NEIGHBOUR).on_lan())
        .host(HostSpec::new("pmac").at(PMAC).on_lan())
}

/// From one port: sends `size` bytes to each address and port `count` times, says so, hears for
/// `seconds` what comes, and prints from where.
const SEARCH: &str = "
import socket, sys, time
port, size, count, seconds = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
sockets = {}
for family in socket.AF_INET, socket.AF_INET6:
    s = sockets[family] = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(('', port))
    s.settimeout(0.05)
for _ in range(count):
    for target in sys.argv[5:]:
        address, _, to = target.rpartition(':')
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        sockets[family].sendto(b'x' * size, (address.split('%')[0], int(to)))
print('sent', flush=True)
end, heard = time.monotonic() + seconds, set()
while time.monotonic() < end:
    for s in sockets.values():
        try:
            text, sender = s.recvfrom(1 << 16)
            heard.add(f'{sender[0]} {sender[1]}')
        except OSError:
            pass
print('heard', *sorted(heard), sep='\\n')
";

/// `arguments`: port, size, count, seconds, and where to.
fn search(world: &World, options: &str, arguments: &[&str]) -> Command {
    let run = world.laptop().stockade(["run"]);
    let run = run.args(options.split_whitespace());
    run.args(["--", "python3", "-IS", "-c", SEARCH])
        .args(arguments)
}

fn targets(port: u16) -> Vec<String> {
    TO_MANY
        .iter()
        .map(|many| format!("{many}:{port}"))
        .collect()
}

fn run(world: &World, options: &str, arguments: &[&str]) -> String {
    let output = search(world, options, arguments).run().expect("its end");
    output.expect_success().stdout()
}

fn heard_at(capture: &Capture, port: u16) -> usize {
    capture.count(|packet| packet.destination_port == Some(port))
}

#[test]
fn n05_a_search_is_heard_by_the_listed_device_alone() {
    test(&laboratory(), |world| {
        let watch = Watch::on(&["neighbour", "pmac", "device"].map(|name| world.host(name)));
        let ioc = world.host("ioc").capture().expect("capture");
        let options = format!("--discovery epics --allow {DEVICE} --allow {DEVICE_V6}");
        let targets = targets(5064);
        let arguments: Vec<&str> = ["41000", "10", "1", "0.5"]
            .into_iter()
            .chain(targets.iter().map(String::as_str))
            .collect();
        run(world, &options, &arguments);
        watch.expect_nothing();
        let at = |address: &str| {
            let address: IpAddr = address.parse().expect("an address");
            ioc.to_port(Protocol::Udp, address, 5064)
        };
        // Three of IPv4, and one of IPv6.
        assert_eq!((at(DEVICE), at(DEVICE_V6)), (3, 1));
        assert_eq!(heard_at(&ioc, 5064), 4);
        // From the laptop itself they are heard by all.
        let outside = world
            .laptop()
            .command("python3")
            .args(["-IS", "-c", SEARCH]);
        let outside = outside.args(&arguments[..6]).run().expect("its end");
        outside.expect_success();
        watch.expect_something();
    });
}

#[test]
fn n05_the_answer_of_somebody_who_is_not_listed_does_not_come_in() {
    test(&laboratory(), |world| {
        let laptop = world.laptop().v4();
        let end = Arc::new(AtomicBool::new(false));
        // It cannot hear the search, so it answers everybody all the time, from its own addresses.
        let forge = |host: &Host, from: &str| {
            let socket = host.enter(|| UdpSocket::bind(from).expect("a free port"));
            let end = Arc::clone(&end);
            thread::spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    let _ = socket.send_to(b"take me", (laptop, 41000));
                    thread::sleep(Duration::from_millis(2));
                }
            })
        };
        let forgers = [
            forge(world.host("neighbour"), "192.168.10.32:5064"),
            forge(world.host("web"), "93.184.216.34:5064"),
        ];
        let arguments = ["41000", "10", "1", "2", "255.255.255.255:5064"];
        // With the internet open, too: that only the program inside can begin there is the point.
        for internet in ["", "--no-internet"] {
            let options = format!("--discovery epics --allow {DEVICE} {internet}");
            assert_eq!(run(world, &options, &arguments), "sent\nheard\n");
        }
        // The forger is heard by who allows it.
        let options = format!("--discovery epics --allow {DEVICE} --allow udp://{NEIGHBOUR}:5064");
        let told = run(world, &options, &arguments);
        assert_eq!(told, format!("sent\nheard\n{NEIGHBOUR} 5064\n"));
        // At its other ports it is not: the rule is about one.
        let options = format!("--discovery epics --allow {DEVICE} --allow udp://{NEIGHBOUR}:5076");
        assert_eq!(run(world, &options, &arguments), "sent\nheard\n");
        end.store(true, Ordering::Relaxed);
        for forger in forgers {
            forger.join().expect("its end");
        }
    });
}

#[test]
fn n05_a_search_at_a_port_that_is_not_listed_stays_inside() {
    test(&laboratory(), |world| {
        let capture = world.laptop().capture().expect("capture");
        let outward = |port: u16| heard_at(&capture, port);
        let options = format!("--discovery epics --allow {DEVICE} --allow {DEVICE_V6}");
        for port in [7, 1900, 3702, 5353, 5063, 5066, 5075, 5077] {
            let targets = targets(port);
            let mut arguments = vec!["41000", "10", "1", "0.1"];
            arguments.extend(targets.iter().map(String::as_str));
            run(world, &options, &arguments);
            assert_eq!(outward(port), 0, "{port}");
        }
        // Without a rule that covers the port, a listed one does, too.
        let narrow =
            format!("--discovery epics --allow udp://{DEVICE}:5064 --allow tcp://{DEVICE}");
        let arguments = ["41000", "10", "1", "0.1", "255.255.255.255:5076"];
        run(world, &narrow, &arguments);
        assert_eq!(outward(5076), 0);
        run(world, &options, &arguments);
        assert_eq!(outward(5076), 1);
    });
}

#[test]
fn n05_a_rule_for_a_network_or_a_broadcast_address_is_no_way_to_reach_many() {
    test(&laboratory(), |world| {
        let capture = world.laptop().capture().expect("capture");
        let watch = Watch::on(&["ioc", "neighbour"].map(|name| world.host(name)));
        let options = "--discovery epics --allow 192.168.10.0/24 --allow 172.16.0.0/12 \
                       --allow 192.168.10.255 --allow 192.168.10.30/31 --allow fd00::/8";
        let targets = targets(5064);
        let mut arguments = vec!["41000", "10", "1", "0.2"];
        arguments.extend(targets.iter().map(String::as_str));
        run(world, options, &arguments);
        watch.expect_nothing();
        assert_eq!(heard_at(&capture, 5064), 0);
        run(world, &format!("{options} --allow {DEVICE}"), &arguments);
        assert_eq!(heard_at(&capture, 5064), 3);
    });
}

#[test]
fn n05_a_device_with_a_default_password_stays_out_of_reach() {
    test(&laboratory(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let pmac = world.host("pmac");
        for port in [23, 1025, 5064, 5076] {
            pmac.tcp_echo(port).expect("listen");
            pmac.udp_echo(port).expect("listen");
        }
        let ioc = world.host("ioc").udp_echo(5064).expect("listen");
        let reach = [23, 1025, 5064, 5076]
            .iter()
            .flat_map(|port| ["tcp", "udp"].map(|protocol| format!("{protocol}://{PMAC}:{port}")))
            .chain([format!("icmp://{PMAC}")])
            .collect::<Vec<_>>();
        let rules = [DEVICE, "udp://192.168.10.32:5064"];
        only_outside(world, &[pmac], Place::Inside(&rules), &reach);
        let watch = Watch::on(&[pmac]);
        let options = format!("--discovery epics --discovery udp://1025 --allow {DEVICE}");
        let arguments = [
            "41000",
            "10",
            "3",
            "1",
            "255.255.255.255:5064",
            "192.168.10.255:5064",
            "255.255.255.255:1025",
            "224.0.0.128:5076",
        ];
        let told = run(world, &options, &arguments);
        assert_eq!(told, format!("sent\nheard\n{DEVICE} 5064\n"));
        assert!(ioc.datagrams().count() > 0);
        watch.expect_nothing();
    });
}

#[test]
fn n05_a_device_that_answers_to_everybody_starts_no_loop() {
    test(&laboratory(), |world| {
        let laptop = world.laptop().v4();
        let device = world.host("ioc");
        let socket = device.enter(|| UdpSocket::bind("0.0.0.0:5064").expect("a free port"));
        socket.set_broadcast(true).expect("a broadcast");
        let count = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&count);
        thread::spawn(move || {
            let mut buffer = [0; 100];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                // Its own broadcasts come back to it.
                if from.ip() != laptop {
                    continue;
                }
                seen.lock().expect("a list").push(from);
                let answer = &buffer[..length];
                for to in ["192.168.10.255:5064", "192.168.10.255:41000"] {
                    let to: SocketAddr = to.parse().expect("an address");
                    let _ = socket.send_to(answer, to);
                }
                let _ = socket.send_to(answer, from);
            }
        });
        let options = format!("--discovery epics --allow {DEVICE}");
        let arguments = ["41000", "10", "1", "2", "255.255.255.255:5064"];
        let told = run(world, &options, &arguments);
        assert_eq!(told, format!("sent\nheard\n{DEVICE} 5064\n"));
        assert_eq!(count.lock().expect("a list").len(), 1);
    });
}

#[test]
fn n16_a_flood_of_searches_is_cut() {
    test(&laboratory(), |world| {
        let capture = world.laptop().capture().expect("capture");
        let options =
            format!("--discovery epics --allow {DEVICE} --allow {NEIGHBOUR} --allow 192.168.10.21");
        let start = Instant::now();
        let arguments = [
            "41000",
            "900",
            "5000",
            "1",
            "255.255.255.255:5064",
            "192.168.10.255:5064",
        ];
        run(world, &options, &arguments);
        let passed = heard_at(&capture, 5064);
        // A thousand at once, and as many in each second.
        let most = 1000 * (2 + usize::try_from(start.elapsed().as_secs()).expect("few"));
        assert!(
            (300..=most).contains(&passed),
            "{passed} of 30000, at most {most}"
        );
        // The gate serves as before.
        let again = ["41001", "10", "1", "0.2", "255.255.255.255:5064"];
        capture.clear();
        run(world, &options, &again);
        assert_eq!(heard_at(&capture, 5064), 3);
    });
}

const DEVICE_NAME: &str = "ioc1.lab.example";
const BY_NAME: &str = "--discovery epics --device ioc=ioc1.lab.example";

#[test]
fn n05_a_host_by_a_near_name_that_is_no_device_hears_no_search() {
    test(&laboratory(), |world| {
        let dns = world.dns();
        dns.record(DEVICE_NAME, world.host("ioc").v4());
        dns.record("other.lab.example", world.host("neighbour").v4());
        let [ioc, neighbour] =
            ["ioc", "neighbour"].map(|name| world.host(name).udp_sink(5064).expect("listen"));
        // The program asks for the name first, and may send to it alone.
        let arguments = [
            "41000",
            "10",
            "1",
            "0.5",
            "other.lab.example:5064",
            "255.255.255.255:5064",
            "192.168.10.255:5064",
        ];
        for near in ["*.lab.example", "other.lab.example"] {
            ioc.datagrams().clear();
            neighbour.datagrams().clear();
            run(world, &format!("{BY_NAME} --near {near}"), &arguments);
            assert_eq!(neighbour.datagrams().count(), 1, "{near}");
            assert_eq!(ioc.datagrams().count(), 2, "{near}");
        }
    });
}

/// Searches until it is told to end, then sends to each address itself.
const FOREVER: &str = "
import select, socket, sys
sockets = {}
for family in socket.AF_INET, socket.AF_INET6:
    s = sockets[family] = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
while not select.select([sys.stdin], [], [], 0.2)[0]:
    sockets[socket.AF_INET].sendto(b'who', ('255.255.255.255', 5064))
    sockets[socket.AF_INET6].sendto(b'who', ('ff02::42:1', 5064))
for address in sys.argv[1:]:
    sockets[socket.AF_INET6 if ':' in address else socket.AF_INET].sendto(b'x', (address, 5064))
";

#[test]
fn n13_a_devices_host_name_that_flips_inward_sends_no_search_there() {
    test(&laboratory(), |world| {
        let (laptop, dns, device) = (world.laptop(), world.dns(), world.host("ioc"));
        let own = laptop.udp_sink(5064).expect("listen");
        let metadata = Watch::on(&[world.host("metadata"), world.host("neighbour")]);
        let ioc = device.udp_sink(5064).expect("listen");
        let others = [
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "fd00:ec2::254",
            "169.254.7.7",
            "fe80::7",
            "192.168.10.255",
            "255.255.255.255",
            "224.0.0.1",
            "ff02::1",
        ];
        let others = others.map(|text| text.parse::<IpAddr>().expect("an address"));
        let inward: Vec<IpAddr> = (laptop.addresses().iter().copied()).chain(others).collect();
        let good = device.addresses();
        dns.rotate(DEVICE_NAME, &[good, &inward]);
        let session = laptop.stockade(["run"]).args(BY_NAME.split_whitespace());
        let session = session.args(["--", "python3", "-IS", "-c", FOREVER]);
        let mut session = session.spawn().expect("a session");
        // Of each family: to the device, inward, and to the device again.
        let seen = |count: usize| {
            eventually("answers", PATIENCE, || {
                dns.queries_for(DEVICE_NAME) >= count
            })
            .expect("questions");
        };
        seen(4);
        ioc.datagrams().clear();
        seen(6);
        ioc.datagrams()
            .wait_until(PATIENCE, |seen| {
                let is_v4 = |it: &Datagram| it.peer.is_ipv4();
                seen.iter().any(is_v4) && !seen.iter().all(is_v4)
            })
            .expect("searches of both families");
        session.write("\n").expect("its end");
        session.close_stdin();
        let said = session.wait().expect("its end").stderr();
        assert!(said.contains("denied udp://127.0.0.1:5064"), "{said}");
        metadata.expect_nothing();
        assert_eq!(own.datagrams().count(), 0);
        // From the laptop itself all of it is reached.
        let outside = laptop.command("python3").args(["-IS", "-c", FOREVER]);
        let reached = ["127.0.0.1", "169.254.169.254", "192.168.10.255"];
        let outside = outside.args(reached).input("\n").run().expect("its end");
        outside.expect_success();
        own.datagrams()
            .wait_until(PATIENCE, |seen| !seen.is_empty())
            .expect("it listens");
        metadata.expect_something();
    });
}

#[test]
fn n16_a_flood_of_searches_is_no_flood_of_questions() {
    test(&laboratory(), |world| {
        let dns = world.dns();
        dns.record(DEVICE_NAME, world.host("ioc").v4());
        let capture = world.host("ioc").capture().expect("capture");
        let start = Instant::now();
        let flood = ["41000", "900", "5000", "1", "255.255.255.255:5064"];
        run(world, BY_NAME, &flood);
        let passed = heard_at(&capture, 5064);
        assert!(passed >= 100, "{passed}");
        // Nor if the name is gone.
        dns.forget(DEVICE_NAME);
        run(world, BY_NAME, &flood);
        // One in five seconds, in each session.
        let most = 3 + usize::try_from(start.elapsed().as_secs()).expect("few") / 5;
        let asked = dns.queries_for(DEVICE_NAME);
        assert!((2..=most).contains(&asked), "{asked}, at most {most}");
    });
}

#[test]
fn n17_searches_of_any_size_arrive_as_they_are_or_not_at_all() {
    test(&laboratory(), |world| {
        let ioc = world.host("ioc").udp_sink(5064).expect("listen");
        let options = format!("--discovery epics --allow {DEVICE} --allow {DEVICE_V6}");
        for size in [0, 1, 1472, 9000, 65_507] {
            let size = size.to_string();
            let arguments = [
                "41000",
                &size,
                "1",
                "0.2",
                "255.255.255.255:5064",
                "ff02::1:1:5064",
            ];
            run(world, &options, &arguments);
        }
        let is_v4 = |peer: &SocketAddr| peer.is_ipv4();
        let datagrams = ioc.datagrams().all();
        let (v4, v6): (Vec<_>, Vec<_>) = datagrams.iter().partition(|it| is_v4(&it.peer));
        let sizes = |all: &[&Datagram]| all.iter().map(|it| it.payload.len()).collect::<Vec<_>>();
        assert_eq!(sizes(&v4), [0, 1, 1472, 9000, 65_507]);
        assert!(sizes(&v6).starts_with(&[0, 1, 1472]), "{:?}", sizes(&v6));
    });
}

#[test]
fn n16_answers_of_others_fill_neither_the_log_nor_the_receipt() {
    test(&laboratory(), |world| {
        let (laptop, neighbour) = (world.laptop(), world.host("neighbour"));
        let sockets: Vec<_> = neighbour.enter(|| {
            let any = |_| UdpSocket::bind((NEIGHBOUR, 0)).expect("a free port");
            (0..500).map(any).collect()
        });
        let (end, at) = (Arc::new(AtomicBool::new(false)), laptop.v4());
        let forger = thread::spawn({
            let end = Arc::clone(&end);
            move || {
                while !end.load(Ordering::Relaxed) {
                    for socket in &sockets {
                        let _ = socket.send_to(b"take me", (at, 41000));
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            }
        });
        let denied = format!("{PMAC}:5064");
        let arguments = ["41000", "10", "1", "3", "255.255.255.255:5064", &denied];
        let options = format!("--discovery epics --allow {DEVICE}");
        let session = search(world, &options, &arguments).run().expect("its end");
        end.store(true, Ordering::Relaxed);
        forger.join().expect("its end");
        // What the program tried is told before what others sent, however often they did.
        let said = session.expect_success().stderr();
        let first = said.lines().find(|line| line.contains(": denied "));
        assert!(
            first.is_some_and(|line| line.contains(&format!("denied udp://{denied} "))),
            "{said}"
        );
        let log = laptop.stockade(["log", "--json"]).run().expect("its end");
        let log = log.expect_success().stdout();
        let sources: HashSet<_> = log
            .lines()
            .filter(|line| line.contains("\"other-answer\""))
            .filter_map(|line| line.split_once("\"what\":\"")?.1.split('"').next())
            .collect();
        assert!((1..=16).contains(&sources.len()), "{sources:?}");
        assert!(log.contains("\"lost\""), "{log}");
    });
}

/// Searches in the name of another host, then in its own.
const FORGED: &str = "
import socket, time
IPV6_FREEBIND = 78
for source in 'fd00:10::32', '::':
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    s.bind((source, 41000))
    s.sendto(source.encode(), ('ff02::42:1', 5064))
    s.close()
time.sleep(0.5)
";

#[test]
fn n17_a_search_with_a_forged_source_reaches_nobody() {
    test(&laboratory(), |world| {
        let ioc = world.host("ioc").udp_sink(5064).expect("listen");
        let run = world.laptop().stockade(["run", "--discovery", "epics"]);
        let run = run.args(["--allow", DEVICE_V6, "--", "python3", "-IS", "-c", FORGED]);
        run.run().expect("its end").expect_success();
        let heard = ioc.datagrams().all();
        let heard: Vec<_> = heard.iter().map(|it| it.payload.as_slice()).collect();
        assert_eq!(heard, [b"::"]);
    });
}

#[test]
fn n05_what_a_device_sends_to_many_does_not_come_in() {
    test(&laboratory(), |world| {
        let (laptop, device) = (world.laptop().v4(), world.host("ioc"));
        let sockets = device.enter(|| {
            [4001, 4002, 4003, 4004]
                .map(|port| UdpSocket::bind((DEVICE, port)).expect("a free port"))
        });
        let to = [
            laptop.to_string().as_str(),
            "192.168.10.255",
            "255.255.255.255",
            "224.0.0.1",
        ]
        .map(|to| SocketAddr::new(to.parse().expect("an address"), 41000));
        let end = Arc::new(AtomicBool::new(false));
        let sender = thread::spawn({
            let end = Arc::clone(&end);
            move || {
                for socket in &sockets {
                    socket.set_broadcast(true).expect("a broadcast");
                }
                while !end.load(Ordering::Relaxed) {
                    for (socket, to) in sockets.iter().zip(to) {
                        socket.send_to(b"beacon", to).expect("sent");
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let arguments = ["41000", "10", "1", "2", "255.255.255.255:5064"];
        let options = format!("--discovery epics --allow {DEVICE}");
        let inside = run(world, &options, &arguments);
        let outside = world.laptop().command("python3");
        let outside = outside.args(["-IS", "-c", SEARCH]).args(arguments);
        let outside = outside.run().expect("its end").expect_success().stdout();
        end.store(true, Ordering::Relaxed);
        sender.join().expect("its end");
        assert_eq!(inside, format!("sent\nheard\n{DEVICE} 4001\n"));
        assert_eq!(outside.lines().count(), 6, "{outside}");
    });
}

/// Searches, and for each number of a port that it is told, says whether something came from there.
const ASKED: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.bind(('', 41000))
s.settimeout(1)
s.sendto(b'who', ('255.255.255.255', 5064))
print('sent', flush=True)
for line in sys.stdin:
    try:
        while s.recvfrom(100)[1][1] != int(line): pass
        print('heard')
    except TimeoutError:
        print('nothing')
    print('done', flush=True)
";

#[test]
fn n05_after_a_reload_without_discovery_answers_from_elsewhere_stay_out() {
    test(&laboratory(), |world| {
        let laptop = world.laptop();
        let file = laptop.home().join(".config/stockade/config.toml");
        let rules = format!("[network]\nallow = [\"{DEVICE}\"]\n");
        fs::write(&file, format!("{rules}discovery = [\"epics\"]\n")).expect("write");
        let asked = world.host("ioc").udp_sink(5064).expect("listen");
        let session = laptop.stockade(["run", "--", "python3", "-IS", "-c", ASKED]);
        let mut session = session.spawn().expect("a session");
        session.expect("sent\n").expect("a search");
        asked
            .datagrams()
            .wait_until(Duration::from_secs(10), |seen| !seen.is_empty())
            .expect("the search arrives");
        let mut hears = |port: u16| {
            let device = world.host("ioc");
            let socket = device.enter(|| UdpSocket::bind((DEVICE, port)).expect("a free port"));
            socket.send_to(b"here", (laptop.v4(), 41000)).expect("sent");
            session.write(format!("{port}\n")).expect("a question");
            let told = session.expect("done\n").expect("a word");
            told.contains("heard")
        };
        assert!(hears(4001));
        fs::write(&file, rules).expect("write");
        let reload = laptop.stockade(["reload"]).run().expect("its end");
        reload.expect_success();
        assert!(!hears(4002));
        // The flow that the first answer opened is one of the rule, which is still there.
        assert!(hears(4001));
    });
}

/// Connects to a server again and again, first by itself, then while it searches from a new port each
/// time. Prints how many milliseconds half of the connections take at most, without searches and with them.
const FROM_MANY_PORTS: &str = "
import socket, sys, threading, time
def search():
    for port in range(20000, 60000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.bind(('', port))
            s.sendto(b'x', (sys.argv[1], 5064))
        time.sleep(0.004)
def connect(count=100):
    spent = []
    for _ in range(count):
        time.sleep(0.02)
        start = time.monotonic()
        socket.create_connection(('93.184.216.34', 80), 10).close()
        spent.append(time.monotonic() - start)
    return int(sorted(spent)[count // 2] * 1000)
alone = connect()
threading.Thread(target=search, daemon=True).start()
print(alone, connect())
";

#[test]
fn n16_searches_from_many_ports_keep_nobody_out() {
    test(&laboratory(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let rules = (1..=64).flat_map(|number| ["--allow".to_owned(), format!("10.9.0.{number}")]);
        let rules: Vec<_> = rules.collect();
        let capture = world.laptop().capture().expect("capture");
        for to in ["192.168.10.255", "255.255.255.255"] {
            capture.clear();
            let run = world.laptop().stockade(["run", "--discovery", "epics"]);
            let run = run.args(&rules).args(["--", "python3", "-IS", "-c"]);
            let run = run.args([FROM_MANY_PORTS, to]).run();
            let told = run.expect("its end").expect_success().stdout();
            let (alone, searching) = told.trim().split_once(' ').expect("two numbers");
            let millis = |text: &str| text.parse::<u32>().expect("a number");
            // A machine that is busy with other things makes both slow.
            let most = 100 + 10 * millis(alone);
            assert!(millis(searching) < most, "{to}: {told}");
            assert!(heard_at(&capture, 5064) >= 1000, "{to}");
        }
    });
}
