//! The host's end of a UDP flow: it hears its destination, and nobody and nothing else (N2).

use std::net::UdpSocket;

use stockade_world::{Host, Running, Standard, World, lan, test};

use super::probe::{INSIDE, Place};
use crate::support::standard;

/// Where a flow has the port outside that its client has inside.
const NEAR: Place<'_> = Place::Inside(&["10.20.0.5"]);

/// Sends a datagram from the source port that is its first argument to the echo server that is
/// the second, says "open" when the echo is back, and then prints whatever else comes.
const OPEN_FLOW: &str = r#"
import socket, sys
flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flow.bind(("", int(sys.argv[1])))
flow.settimeout(10)
flow.sendto(b"mine", (sys.argv[2], 7))
assert flow.recv(512) == b"mine"
print("open", flush=True)
while line := sys.stdin.readline():
    flow.settimeout(0.3)
    try:
        print("heard", flow.recvfrom(512), flush=True)
    except TimeoutError:
        print("heard nothing", flush=True)
"#;

#[test]
fn n02_a_udp_flow_lets_nobody_in_but_its_own_destination() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let disturb = |from: &Host| {
            from.enter(|| {
                let socket = UdpSocket::bind("0.0.0.0:7777").expect("bind");
                socket
                    .send_to(b"intruder", (lan::LAPTOP, 45_000))
                    .expect("send");
            });
        };
        let heard = |place: Place<'_>| {
            let mut flow = place
                .python(laptop, OPEN_FLOW)
                .args(["45000", "10.20.0.5"])
                .spawn()
                .expect("start");
            flow.expect("open").expect("the echo");
            // A neighbour, another host of the internet, and another port of the peer.
            for host in ["device", "mirror", "intranet"] {
                disturb(world.host(host));
            }
            flow.write("listen\n").expect("ask");
            flow.expect("heard ").expect("an end");
            flow.wait().expect("end").expect_success().stdout()
        };
        assert_eq!(heard(NEAR), "open\nheard nothing\n");
        assert!(heard(Place::Outside).contains("intruder"));
    });
}

/// Sends from a port to each echo server, and prints what comes back.
const FROM_PORT: &str = r#"
import socket, sys
flow = socket.socket(socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET, socket.SOCK_DGRAM)
flow.bind(("", int(sys.argv[1])))
flow.settimeout(5)
for address in sys.argv[2:]:
    flow.sendto(b"hello", (address, 7))
    print(flow.recvfrom(512)[0], flush=True)
sys.stdin.readline()
"#;

#[test]
fn p11_a_flow_to_the_internet_takes_no_port_of_the_hosts_that_a_program_chose() {
    const VPN: u16 = 51_820;
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let device = world.host("device").v4().to_string();
        let rules = [&*device, "93.184.216.34"];
        let from = |place: Place<'_>, addresses: &[&str], port: u16| {
            let python = place.python(laptop, FROM_PORT).arg(port.to_string());
            let mut flow = python.args(addresses).spawn().expect("start");
            for _ in addresses {
                flow.expect("hello").expect("an answer");
            }
            // While the flow stands, a program of the host can have the port.
            let free = laptop.enter(|| UdpSocket::bind(("::", VPN)).is_ok());
            flow.write("end\n").expect("end");
            flow.wait().expect("end").expect_success();
            let seen = |server: &stockade_world::UdpServer| {
                let ports = server.datagrams().all();
                server.datagrams().clear();
                ports
                    .iter()
                    .map(|datagram| datagram.peer.port())
                    .collect::<Vec<_>>()
            };
            (seen(&net.web_udp_echo), seen(&net.device_udp_echo), free)
        };
        let [web, web6, mirror] = ["93.184.216.34", "2606:2800:220:1::34", "151.101.1.69"];
        let _mirror = world.host("mirror").udp_echo(7).expect("listen");
        // By the open internet, by a name, and by a rule for an address that is not near.
        for place in [INSIDE, Place::Inside(&rules), Place::Closed(&rules)] {
            let (ports, _, free) = from(place, &[web], VPN);
            assert!(
                ports != [VPN] && ports.len() == 1 && free,
                "{place:?}: {ports:?}"
            );
        }
        let (ports, _, free) = from(INSIDE, &[web6], VPN);
        assert!(ports != [VPN] && free, "{ports:?}");
        // Two servers see the same client, as outside, and a near one the port that it chose.
        let (ports, near, free) = from(Place::Inside(&rules), &[web, mirror, &device], VPN);
        assert!(
            ports != [VPN] && near == [VPN] && !free,
            "{ports:?} {near:?}"
        );
        // Outside the port is the one that the program chose.
        assert_eq!(from(Place::Outside, &[web], VPN).0, [VPN]);
    });
}

/// A program of the host that shares its port, as multicast and VPN programs do, and talks to
/// a server whenever it is told to.
const HOST_PROGRAM: &str = r#"
import socket, sys
program = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
program.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    program.bind(("", 45000))
except OSError:
    print("ready, but the port is taken", flush=True)
    sys.exit()
program.settimeout(2)
print("ready", flush=True)
while line := sys.stdin.readline():
    program.sendto(b"secret of the host", ("10.20.0.5", 7))
    print("got", program.recv(512), flush=True)
"#;

fn host_program(world: &World) -> Running {
    let python = Place::Outside.python(world.laptop(), HOST_PROGRAM);
    let program = python.spawn().expect("start");
    program.expect("ready").expect("ready");
    program
}

fn thief(world: &World) -> Running {
    let python = NEAR.python(world.laptop(), OPEN_FLOW);
    let thief = python.args(["45000", "10.20.0.5"]).spawn().expect("start");
    thief.expect("open").expect("the echo");
    thief
}

fn heard(mut thief: Running) -> String {
    thief.write("listen\n").expect("ask");
    thief.expect("heard ").expect("an end");
    thief.wait().expect("end").stdout()
}

#[test]
fn n02_a_flow_inside_does_not_hear_what_is_for_a_program_of_the_host() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let mut program = host_program(world);
        let thief = thief(world);
        program.write("send\n").expect("ask");
        let got = program.expect("secret");
        assert_eq!(heard(thief), "open\nheard nothing\n");
        got.expect("the host's program has its answer");
    });
}

#[test]
fn n02_a_flow_inside_does_not_hear_what_is_for_a_program_that_starts_later() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let thief = thief(world);
        let mut program = host_program(world);
        // Without the port it has nothing to lose, and has ended.
        if program.write("send\n").is_ok() && !program.stdout_so_far().contains("taken") {
            net.intranet_udp_echo
                .datagrams()
                .wait_for(2)
                .expect("it sent");
        }
        assert_eq!(heard(thief), "open\nheard nothing\n");
    });
}

/// The same of a port at which a program inside searched for devices, and which it shares among
/// several flows.
#[test]
fn n02_a_search_inside_does_not_hear_what_is_for_a_program_of_the_host() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let search = r#"
import socket, sys
flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flow.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
flow.bind(("", 45000))
flow.settimeout(10)
flow.sendto(b"mine", ("255.255.255.255", 7))
heard = {flow.recvfrom(512) for _ in range(2)}
assert {sender for _, sender in heard} == {("10.20.0.5", 7), ("192.168.10.21", 7)}, heard
print("open", flush=True)
while line := sys.stdin.readline():
    flow.settimeout(0.3)
    try:
        print("heard", flow.recvfrom(512), flush=True)
    except TimeoutError:
        print("heard nothing", flush=True)
"#;
        let run = world.laptop().stockade(["run", "--discovery", "udp://7"]);
        let run = run.args(["--allow", "10.20.0.5", "--allow", "192.168.10.21"]);
        let run = run.args(["--", "/usr/bin/python3", "-IS", "-c", search]);
        let thief = run.spawn().expect("start");
        thief.expect("open").expect("the answers");
        let mut program = host_program(world);
        // Without the port it has nothing to lose, and has ended.
        if program.write("send\n").is_ok() && !program.stdout_so_far().contains("taken") {
            let sent = net.intranet_udp_echo.datagrams();
            sent.wait_for(2).expect("it sent");
        }
        assert_eq!(heard(thief), "open\nheard nothing\n");
    });
}
