//! Datagrams go and come inside as they do outside.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use stockade_world::{Host, HostSpec, PATIENCE, Standard, World, eventually, test};

use super::place::Place;
use crate::support::standard;

/// What a client prints that runs `script` with these arguments.
fn client<A: ToString>(world: &World, place: Place<'_>, script: &str, arguments: &[A]) -> String {
    place
        .python(world.laptop(), &format!("{PRELUDE}{script}"))
        .args(arguments.iter().map(ToString::to_string))
        .run()
        .expect("the client ends")
        .expect_success()
        .stdout()
}

/// For clients: sockets that do not wait for ever.
const PRELUDE: &str = "
import socket, sys
def datagrams(address):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    return s
";

fn both_families(host: &Host) -> [IpAddr; 2] {
    [host.v4(), host.v6()]
}

/// A socket of a host, for servers that do more than answer once.
fn socket(host: &Host, address: IpAddr, port: u16) -> UdpSocket {
    let socket = host
        .enter(|| UdpSocket::bind((address, port)))
        .expect("a free port");
    socket
        .set_read_timeout(Some(PATIENCE))
        .expect("a time limit");
    socket
}

#[test]
fn the_answer_comes_from_the_address_that_was_asked() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for address in both_families(world.host("web")) {
            let script = "
s = datagrams(sys.argv[1])
s.sendto(b'hello', (sys.argv[1], 7))
text, sender = s.recvfrom(100)
print(text, *sender[:2])
";
            let said = client(world, Place::Inside(&[]), script, &[address]);
            assert_eq!(said, format!("b'hello' {address} 7\n"));
        }
    });
}

#[test]
fn the_source_port_is_the_clients_own_at_a_near_destination() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        for address in both_families(world.host("intranet")) {
            let script = "
s = datagrams(sys.argv[1])
s.bind(('', 5064))
s.sendto(b'hello', (sys.argv[1], 7))
s.recvfrom(100)
";
            let rule = address.to_string();
            client(world, Place::Inside(&[&rule]), script, &[address]);
        }
        let ports: Vec<_> = net.intranet_udp_echo.datagrams().all();
        let ports: Vec<_> = ports.iter().map(|datagram| datagram.peer.port()).collect();
        assert_eq!(ports, [5064, 5064]);
    });
}

#[test]
fn a_source_port_that_a_program_of_the_host_has_is_left_to_it() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let device = world.host("device").v4();
        let hosts_own = socket(world.laptop(), IpAddr::from([0, 0, 0, 0]), 5064);
        let script = "
s = datagrams(sys.argv[1])
s.bind(('', 5064))
s.sendto(b'hello', (sys.argv[1], 7))
print(s.recvfrom(100)[0])
";
        let rule = device.to_string();
        let said = client(world, Place::Inside(&[&rule]), script, &[device]);
        assert_eq!(said, "b'hello'\n");
        let datagrams = net.device_udp_echo.datagrams().all();
        assert_ne!(datagrams[0].peer.port(), 5064);
        hosts_own.set_nonblocking(true).expect("do not wait");
        let stray = hosts_own.recv(&mut [0]).map_err(|error| error.kind());
        assert_eq!(stray, Err(ErrorKind::WouldBlock));
    });
}

#[test]
fn the_largest_datagram_passes_both_ways() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for address in both_families(world.host("web")) {
            let script = "
import os
s, text = datagrams(sys.argv[1]), os.urandom(65507)
s.sendto(text, (sys.argv[1], 7))
print(s.recv(1 << 16) == text)
";
            let said = client(world, Place::Inside(&[]), script, &[address]);
            assert_eq!(said, "True\n", "{address}");
        }
    });
}

/// Without a checksum, from several pieces, several at once, in fragments: on the first datagram of
/// a flow and on later ones.
#[test]
fn a_datagram_passes_however_it_was_made() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for address in both_families(world.host("web")) {
            let script = "
SO_NO_CHECK, UDP_SEGMENT, MSG_MORE = 11, 103, 0x8000
def plainly(s):
    s.send(b'plain')
def unchecked(s):
    s.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, int(s.family == socket.AF_INET))
    s.send(b'unchecked')
def in_pieces(s):
    s.send(b'a piece', MSG_MORE)
    s.send(b', another')
def in_a_run(s):
    s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
    s.send(b'a' * 100 + b'b' * 100 + b'c' * 7)
for send in [plainly, unchecked, in_pieces, in_a_run]:
    s = datagrams(sys.argv[1])
    s.connect((sys.argv[1], 7))
    for _ in range(2):
        send(s)
        count = 3 if send == in_a_run else 1
        print(*[s.recv(1000)[:20].decode() + ' ' for _ in range(count)], sep='')
";
            let said = client(world, Place::Inside(&[]), script, &[address]);
            let run = "aaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbb ccccccc ";
            let twice = |text: &str| format!("{text}\n{text}\n");
            let all = ["plain ", "unchecked ", "a piece, another ", run];
            assert_eq!(said, all.map(twice).concat(), "{address}");
        }
    });
}

#[test]
fn a_datagram_reaches_the_first_and_the_last_port() {
    test(&standard(), |world| {
        let web = world.host("web");
        for port in [1, 65_535] {
            let _echo = web.udp_echo(port).expect("a server");
            let script = "
s = datagrams(sys.argv[1])
s.sendto(b'hello', (sys.argv[1], int(sys.argv[2])))
print(s.recv(100))
";
            for address in both_families(web) {
                let arguments = [address.to_string(), port.to_string()];
                let said = client(world, Place::Inside(&[]), script, &arguments);
                assert_eq!(said, "b'hello'\n", "{address} {port}");
            }
        }
    });
}

#[test]
fn an_empty_datagram_passes_both_ways() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for address in both_families(world.host("web")) {
            let script = "
s = datagrams(sys.argv[1])
s.sendto(b'', (sys.argv[1], 7))
print(s.recv(100))
";
            let said = client(world, Place::Inside(&[]), script, &[address]);
            assert_eq!(said, "b''\n", "{address}");
        }
    });
}

#[test]
fn one_socket_talks_to_many_destinations() {
    let mut farm = HostSpec::new("farm");
    let addresses: Vec<String> = (1..=50).map(|n| format!("203.1.113.{n}")).collect();
    for address in &addresses {
        farm = farm.at(address);
    }
    test(&standard().host(farm), |world| {
        let echo = world.host("farm").udp_echo(7).expect("servers");
        let script = "
s = datagrams(sys.argv[1])
for address in sys.argv[1:]:
    s.sendto(address.encode(), (address, 7))
answers = [s.recvfrom(100) for _ in sys.argv[1:]]
print(all(text.decode() == sender[0] for text, sender in answers), len({*answers}))
";
        let said = client(world, Place::Inside(&[]), script, &addresses);
        assert_eq!(said, "True 50\n");
        // To all of them it was one client, as outside.
        let mut peers: Vec<_> = echo.datagrams().all();
        peers.dedup_by_key(|datagram| datagram.peer);
        assert_eq!(peers.len(), 1);
    });
}

#[test]
fn a_server_may_answer_often_and_late() {
    test(&standard(), |world| {
        let web = world.host("web");
        for (address, port) in both_families(web).into_iter().zip([9000, 9001]) {
            let server = socket(web, address, port);
            let serving = std::thread::spawn(move || {
                let (_, client) = server.recv_from(&mut [0; 100]).expect("a request");
                for number in 0..100 {
                    let text = format!("{number}");
                    server.send_to(text.as_bytes(), client).expect("an answer");
                }
            });
            let script = "
s = datagrams(sys.argv[1])
s.sendto(b'hello', (sys.argv[1], int(sys.argv[2])))
print([int(s.recv(100)) for _ in range(100)] == list(range(100)))
";
            let arguments = [address.to_string(), port.to_string()];
            let said = client(world, Place::Inside(&[]), script, &arguments);
            assert_eq!(said, "True\n");
            serving.join().expect("the server");
        }
    });
}

#[test]
fn a_server_learns_that_its_client_is_gone() {
    test(&standard(), |world| {
        let web = world.host("web");
        for address in both_families(web) {
            let server = socket(web, address, 9000);
            let script = "
s = datagrams(sys.argv[1])
s.sendto(b'hello', (sys.argv[1], 9000))
s.recv(100)
s.close()
print('gone', flush=True)
input()
";
            let place = Place::Inside(&[]);
            let client = place
                .python(world.laptop(), &format!("{PRELUDE}{script}"))
                .arg(address.to_string())
                .spawn()
                .expect("client");
            let (_, peer) = server.recv_from(&mut [0; 100]).expect("a request");
            server.connect(peer).expect("a peer");
            server.send(b"answer").expect("an answer");
            client.expect("gone").expect("the client closes its port");
            // The first that gets nowhere brings the news.
            eventually("the server is refused", PATIENCE, || {
                server
                    .send(b"more")
                    .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
            })
            .expect("a refusal");
        }
    });
}

#[test]
fn two_clients_of_one_server_get_their_own_answers() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        for address in both_families(world.host("web")) {
            let script = "
a, b = datagrams(sys.argv[1]), datagrams(sys.argv[1])
for client in a, b:
    client.sendto(b'first', (sys.argv[1], 7))
    client.recv(100)
for round in range(50):
    a.sendto(b'a%d' % round, (sys.argv[1], 7))
    b.sendto(b'b%d' % round, (sys.argv[1], 7))
# In whatever order: datagrams have none.
print({a.recv(100) for _ in range(50)} == {b'a%d' % round for round in range(50)},
      {b.recv(100) for _ in range(50)} == {b'b%d' % round for round in range(50)})
";
            let said = client(world, Place::Inside(&[]), script, &[address]);
            assert_eq!(said, "True True\n", "{address}");
        }
    });
}

#[test]
fn two_sandboxes_with_the_same_port_get_their_own_answers() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let server: SocketAddr = net.device_udp_echo.address();
        let rule = server.ip().to_string();
        let script = "
s = datagrams(sys.argv[1])
s.bind(('', 5064))
for line in sys.stdin:
    s.sendto(line.encode(), (sys.argv[1], 7))
    print('heard', s.recv(100).decode(), end='', flush=True)
";
        let start = || {
            Place::Inside(&[&rule])
                .python(world.laptop(), &format!("{PRELUDE}{script}"))
                .arg(&rule)
                .limit(Duration::from_secs(20))
                .spawn()
                .expect("client")
        };
        let (mut one, mut two) = (start(), start());
        for round in 0..3 {
            one.write(format!("one {round}\n")).expect("a question");
            two.write(format!("two {round}\n")).expect("a question");
            one.expect(&format!("heard one {round}\n"))
                .expect("its own");
            two.expect(&format!("heard two {round}\n"))
                .expect("its own");
        }
    });
}

#[test]
fn a_train_of_datagrams_sent_in_one_call_arrives_as_single_ones() {
    test(&standard(), |world| {
        let sink = world.host("web").udp_sink(9000).expect("server");
        for address in both_families(world.host("web")) {
            // UDP_SEGMENT, as QUIC libraries use it.
            let script = "
s = datagrams(sys.argv[1])
s.setsockopt(17, 103, 1200)
for _ in range(3):
    s.sendto(bytes(12000), (sys.argv[1], 9000))
";
            client(world, Place::Inside(&[]), script, &[address]);
            let arrived = sink.datagrams().wait_for(30).expect("all of them");
            assert!(
                arrived
                    .iter()
                    .all(|datagram| datagram.payload.len() == 1200)
            );
            sink.datagrams().clear();
        }
    });
}
