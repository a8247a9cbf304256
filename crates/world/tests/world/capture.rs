//! Counting packets where they arrive.

use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use stockade_world::{Builder, Packet, Protocol, Standard, test};

#[test]
fn packets_are_counted_by_protocol_address_and_port() {
    test(&Builder::standard(), |world| {
        let _servers = Standard::serve(world).unwrap();
        let web = world.host("web");
        let capture = web.capture().unwrap();
        assert_eq!(capture.to(web.v4()), 0);

        let laptop = world.laptop();
        let address = (web.v4(), 80).into();
        laptop
            .enter(|| TcpStream::connect_timeout(&address, Duration::from_secs(5)))
            .unwrap();
        let socket = laptop.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        for _ in 0..3 {
            socket.send_to(b"x", (web.v4(), 9999)).unwrap();
        }
        let ping = laptop.command("ping");
        let ping = ping.args(["-c2", "-i0.2", &web.v6().to_string()]);
        ping.run().unwrap().expect_success();

        assert_eq!(capture.count(Packet::is_syn), 1);
        capture
            .wait_for(3, |packet| packet.destination_port == Some(9999))
            .unwrap();
        assert_eq!(capture.to_port(Protocol::Udp, web.v4(), 9999), 3);
        assert_eq!(capture.to_port(Protocol::Udp, web.v4(), 53), 0);
        let pings = capture.count(|p| p.destination == web.v6() && p.icmp() == Some((128, 0)));
        assert_eq!(pings, 2);
        // The closed port was answered: port unreachable, once for each.
        assert_eq!(capture.count(|packet| packet.icmp() == Some((3, 3))), 3);

        capture.clear();
        assert_eq!(capture.to(web.v4()), 0);
    });
}

#[test]
fn dns_shows_at_the_resolver_and_nowhere_else() {
    test(&Builder::standard(), |world| {
        let resolver = world.host("dns");
        let at_resolver = resolver.capture().unwrap();
        let at_web = world.host("web").capture().unwrap();
        let getent = world.laptop().command("getent");
        let output = getent.args(["ahostsv4", "www.example.com"]).run().unwrap();
        output.expect_success();
        assert!(at_resolver.to_port(Protocol::Udp, resolver.v4(), 53) >= 1);
        // Neighbours talk to each other by ICMPv6 at any time.
        assert_eq!(at_web.count(|packet| packet.protocol != Protocol::Icmp), 0);
    });
}
