//! The machine itself: its loopback by every alias (N1), and nothing of the inside on it (N2).

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use stockade_world::{Host, Standard, TcpServer, UdpServer, World, lan, test};

use super::probe::{INSIDE, INTERNET, Place, only_outside};
use crate::support::standard;

/// A public address that the laptop has besides its private one.
const PUBLIC: &str = "45.80.0.5";

const LISTEN: &str = include_str!("listen.py");

/// What the host serves on all its addresses, and on each of them alone.
struct Services {
    tcp: Vec<TcpServer>,
    udp: Vec<UdpServer>,
}

impl Services {
    fn start(world: &World) -> Self {
        let laptop = world.laptop();
        laptop
            .ip(&format!("address add {PUBLIC}/32 dev eth0"))
            .expect("a public address");
        world
            .dns()
            .record("localhost", std::net::Ipv4Addr::LOCALHOST);
        world.dns().record("host.example", lan::LAPTOP);
        let addresses = [
            "127.0.0.1:5433",
            "[::1]:5433",
            "192.168.10.5:5433",
            "45.80.0.5:5433",
        ];
        let mut tcp = vec![laptop.tcp_echo(5432).expect("listen")];
        let mut udp = vec![
            laptop.udp_echo(5432).expect("listen"),
            laptop.udp_echo("45.80.0.5:5432").expect("listen"),
        ];
        for address in addresses {
            tcp.push(laptop.tcp_echo(address).expect("listen"));
            udp.push(laptop.udp_echo(address).expect("listen"));
        }
        Self { tcp, udp }
    }

    fn visits(&self) -> usize {
        let connections = self.tcp.iter().map(|server| server.connections().count());
        let datagrams = self.udp.iter().map(|server| server.datagrams().count());
        connections.chain(datagrams).sum()
    }
}

/// Every way to write "this machine" that leads there from the machine itself.
fn aliases() -> Vec<String> {
    let wildcard = [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "[::]",
        "localhost",
        "localhost.",
        "host.example",
        "192.168.10.5",
        "[::ffff:192.168.10.5]",
        PUBLIC,
        "[2a0a:5c40:10::5]",
    ];
    let single = ["127.0.0.1", "[::1]", "192.168.10.5", PUBLIC];
    let mut targets = vec!["tcp://127.200.0.1:5432".to_owned()];
    for kind in ["tcp", "udp"] {
        targets.extend(wildcard.map(|address| format!("{kind}://{address}:5432")));
        targets.extend(single.map(|address| format!("{kind}://{address}:5433")));
    }
    targets
}

#[test]
fn n01_host_loopback_and_addresses_are_unreachable_by_every_alias() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let services = Services::start(world);
        let laptop = world.laptop();
        let aliases = aliases();
        // Not even rules that hold all addresses mean the host.
        for rules in [&[][..], &["0.0.0.0/0", "::/0"]] {
            let targets: Vec<&str> = aliases.iter().map(String::as_str).chain(INTERNET).collect();
            let (aliases, internet) = Place::Inside(rules)
                .probe(laptop, &targets)
                .without(&INTERNET);
            internet.expect_answers();
            aliases.expect_none();
            assert_eq!(services.visits(), 0);
        }
        Place::Outside.probe(laptop, &aliases).expect_answers();
        assert!(services.visits() >= aliases.len());
    });
}

#[test]
fn n01_a_rule_of_the_exact_address_is_the_only_way_to_the_host() {
    test(&standard(), |world| {
        let services = Services::start(world);
        let laptop = world.laptop();
        let target = "tcp://192.168.10.5:5432";
        Place::Inside(&[target])
            .probe(laptop, &[target])
            .expect_answers();
        assert_eq!(services.visits(), 1);
        // And it opens what it says, nothing beside it.
        let beside = [
            "udp://192.168.10.5:5432",
            "tcp://192.168.10.5:5433",
            "tcp://127.0.0.1:5432",
            "tcp://45.80.0.5:5432",
        ];
        Place::Inside(&[target])
            .probe(laptop, &beside)
            .expect_none();
        assert_eq!(services.visits(), 1);
    });
}

#[test]
fn n01_the_gateway_is_unreachable() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let gateway = [
            format!("icmp://{}", lan::ROUTER),
            format!("icmp://{}", lan::ROUTER_V6),
        ];
        only_outside(world, &[], INSIDE, &gateway);
    });
}

/// What a neighbour on the LAN gets from the laptop's port, by TCP and UDP.
fn neighbour_is_answered(neighbour: &Host, address: SocketAddr) -> (bool, bool) {
    const PATIENCE: Duration = Duration::from_secs(5);
    neighbour.enter(|| {
        let tcp = TcpStream::connect_timeout(&address, PATIENCE).is_ok();
        let udp = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.connect(address)?;
            socket.send(b"anybody there?")?;
            socket.recv(&mut [0; 64])
        });
        (tcp, udp.is_ok())
    })
}

#[test]
fn n02_a_listener_inside_does_not_appear_on_the_host_or_the_lan() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let neighbour = world.host("device");
        let at_lan = SocketAddr::from((lan::LAPTOP, 8000));
        let targets: Vec<String> = ["127.0.0.1", "[::1]", "192.168.10.5", "[2a0a:5c40:10::5]"]
            .iter()
            .flat_map(|address| ["tcp", "udp"].map(|kind| format!("{kind}://{address}:8000")))
            .collect();
        let listen = |place: Place<'_>| {
            let listener = place
                .python(laptop, LISTEN)
                .arg("8000")
                .spawn()
                .expect("start");
            // By then its own clients have been answered.
            listener.expect("ready").expect("ready");
            listener
        };

        let inside = listen(INSIDE);
        Place::Outside.probe(laptop, &targets).expect_none();
        assert_eq!(neighbour_is_answered(neighbour, at_lan), (false, false));
        inside.wait().expect("end").expect_success();

        let outside = listen(Place::Outside);
        Place::Outside.probe(laptop, &targets).expect_answers();
        assert_eq!(neighbour_is_answered(neighbour, at_lan), (true, true));
        outside.wait().expect("end").expect_success();
    });
}
