//! The host's end of a UDP flow: it hears its destination, and nobody and nothing else (N2).

use std::net::UdpSocket;

use stockade_world::{Host, Running, Standard, World, lan, test};

use super::probe::{INSIDE, Place};
use crate::support::standard;

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
                .args(["45000", "93.184.216.34"])
                .spawn()
                .expect("start");
            flow.expect("open").expect("the echo");
            // A neighbour, another host of the internet, and another port of the peer.
            for host in ["device", "mirror", "web"] {
                disturb(world.host(host));
            }
            flow.write("listen\n").expect("ask");
            flow.expect("heard ").expect("an end");
            flow.wait().expect("end").expect_success().stdout()
        };
        assert_eq!(heard(INSIDE), "open\nheard nothing\n");
        assert!(heard(Place::Outside).contains("intruder"));
    });
}

/// A program of the host that shares its port, as multicast and VPN programs do, and talks to
/// a server on the internet whenever it is told to.
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
    program.sendto(b"secret of the host", ("93.184.216.34", 7))
    print("got", program.recv(512), flush=True)
"#;

fn host_program(world: &World) -> Running {
    let python = Place::Outside.python(world.laptop(), HOST_PROGRAM);
    let program = python.spawn().expect("start");
    program.expect("ready").expect("ready");
    program
}

fn thief(world: &World) -> Running {
    let python = INSIDE.python(world.laptop(), OPEN_FLOW);
    let thief = python
        .args(["45000", "93.184.216.34"])
        .spawn()
        .expect("start");
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
            net.web_udp_echo.datagrams().wait_for(2).expect("it sent");
        }
        assert_eq!(heard(thief), "open\nheard nothing\n");
    });
}
