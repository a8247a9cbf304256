//! Hosts, wires, routes.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use stockade_world::{BLACK_HOLE, Builder, Host, HostSpec, Site, Standard, UNREACHABLE, test};

fn connect(from: &Host, to: &str) -> Result<TcpStream, ErrorKind> {
    let address: SocketAddr = to.parse().expect("address");
    from.enter(|| TcpStream::connect_timeout(&address, Duration::from_millis(500)))
        .map_err(|error| error.kind())
}

#[test]
fn the_laptop_reaches_public_and_private_hosts() {
    test(&Builder::standard(), |world| {
        let _servers = Standard::serve(world).unwrap();
        for (url, body) in [
            ("http://93.184.216.34/", "hello from web\n"),
            ("http://[2606:2800:220:1::34]/", "hello from web\n"),
            ("http://192.168.10.21/", "hello from device\n"),
            ("http://10.20.0.5/", "hello from intranet\n"),
            ("http://[fd00:20::5]/", "hello from intranet\n"),
            ("http://www.example.com/", "hello from web\n"),
        ] {
            let output = world.laptop().command("curl").args(["-sS", url]).run();
            assert_eq!(output.unwrap().expect_success().stdout(), body, "{url}");
        }
        let keys = "http://169.254.169.254/latest/meta-data/iam/security-credentials/role";
        let output = world.laptop().command("curl").args(["-sS", keys]).run();
        assert!(output.unwrap().stdout().contains("DECOY-SECRET"));
    });
}

#[test]
fn a_host_may_have_all_addresses_of_a_network() {
    let cloud = HostSpec::new("cloud").at("45.60.0.1");
    let cloud = cloud.at_all_of("45.60.0.0/16").at_all_of("2a02:6ea0::/64");
    test(&Builder::new().host(cloud), |world| {
        let echo = world.host("cloud").tcp_echo(7).unwrap();
        for address in ["45.60.0.2:7", "45.60.255.255:7", "[2a02:6ea0::9]:7"] {
            let connected = connect(world.laptop(), address);
            assert!(connected.is_ok(), "{address}: {connected:?}");
        }
        echo.connections().wait_for(3).unwrap();
        assert!(connect(world.laptop(), "45.61.0.1:7").is_err());
    });
}

#[test]
fn hosts_reach_each_other_and_the_laptop() {
    test(&Builder::standard(), |world| {
        let _servers = Standard::serve(world).unwrap();
        let _laptop = world.laptop().tcp_echo(7).unwrap();
        for (from, to) in [
            ("web", "10.20.0.5:7"),
            ("device", "93.184.216.34:7"),
            ("device", "192.168.10.5:7"),
            ("intranet", "192.168.10.5:7"),
            ("mirror", "[2a0a:5c40:10::5]:7"),
        ] {
            connect(world.host(from), to).unwrap_or_else(|kind| panic!("{from} to {to}: {kind}"));
        }
    });
}

#[test]
fn a_host_may_carry_any_addresses() {
    let odd = [
        "100.64.7.7",
        "198.18.0.1",
        "172.16.0.9",
        "203.0.113.7",
        "168.63.129.16",
        "64:ff9b::1",
        "fec0::7",
    ];
    let spec = odd.iter().fold(HostSpec::new("odd"), |spec, a| spec.at(a));
    test(&Builder::new().host(spec), |world| {
        let host = world.host("odd");
        let _web = host.http(80, Site::text("odd\n")).unwrap();
        let udp = host.udp_echo(7).unwrap();
        for address in host.addresses() {
            connect(world.laptop(), &SocketAddr::new(*address, 80).to_string()).unwrap();
            // The answer comes from the address that was asked.
            let peer = SocketAddr::new(*address, udp.address().port());
            world.laptop().enter(|| {
                let any = if peer.is_ipv4() {
                    "0.0.0.0:0"
                } else {
                    "[::]:0"
                };
                let socket = std::net::UdpSocket::bind(any).unwrap();
                socket
                    .set_read_timeout(Some(Duration::from_secs(2)))
                    .unwrap();
                socket.connect(peer).unwrap();
                socket.send(b"hello").unwrap();
                assert_eq!(socket.recv(&mut [0; 16]).unwrap(), 5, "{peer}");
            });
        }
    });
}

#[test]
fn closed_ports_dead_ends_and_nowhere_fail_each_in_its_way() {
    test(&Builder::standard(), |world| {
        let laptop = world.laptop();
        let fails = |to: &str| connect(laptop, to).unwrap_err();
        assert_eq!(fails("93.184.216.34:81"), ErrorKind::ConnectionRefused);
        assert_eq!(
            fails("[2606:2800:220:1::34]:81"),
            ErrorKind::ConnectionRefused
        );
        assert_eq!(
            fails(&format!("{UNREACHABLE}:80")),
            ErrorKind::HostUnreachable
        );
        assert_eq!(fails("45.45.45.45:80"), ErrorKind::NetworkUnreachable);
        let started = Instant::now();
        assert_eq!(fails(&format!("{BLACK_HOLE}:80")), ErrorKind::TimedOut);
        assert!(started.elapsed() >= Duration::from_millis(500));
    });
}

#[test]
fn the_router_answers_every_unreachable_packet() {
    test(&Builder::standard(), |world| {
        // The kernel's default would answer once in a second.
        for _ in 0..5 {
            let kind = connect(world.laptop(), &format!("{UNREACHABLE}:80")).unwrap_err();
            assert_eq!(kind, ErrorKind::HostUnreachable);
        }
    });
}

#[test]
fn ping_works_for_the_laptops_user() {
    test(&Builder::standard(), |world| {
        for address in ["93.184.216.34", "2606:2800:220:1::34"] {
            let ping = world.laptop().command("ping");
            ping.args(["-c1", "-W2", address])
                .run()
                .unwrap()
                .expect_success();
        }
    });
}

#[test]
fn without_ipv6_there_is_no_ipv6_route() {
    test(&Builder::standard().without_ipv6(), |world| {
        let _servers = Standard::serve(world).unwrap();
        let kind = connect(world.laptop(), "[2606:2800:220:1::34]:80").unwrap_err();
        assert_eq!(kind, ErrorKind::NetworkUnreachable);
        connect(world.laptop(), "93.184.216.34:80").unwrap();
    });
}

#[test]
fn a_vpn_comes_up_while_the_world_runs() {
    test(&Builder::new(), |world| {
        let host = HostSpec::new("office").at("10.99.1.1").at("fd99::1");
        let office = world.add_host(host).unwrap();
        let echo = office.tcp_echo(7).unwrap();
        let routes = ["10.99.0.0/16"];
        world
            .add_interface("tun0", "10.8.0.2", 24, &routes)
            .unwrap();
        connect(world.laptop(), "10.99.1.1:7").unwrap();
        let peer = echo.connections().wait_for(1).unwrap()[0].peer;
        assert_eq!(peer.ip().to_string(), "10.8.0.2", "not through the VPN");

        world.laptop().ip("link del tun0").unwrap();
        connect(world.laptop(), "10.99.1.1:7").unwrap();
        let peer = echo.connections().wait_for(2).unwrap()[1].peer;
        assert_eq!(peer.ip().to_string(), "192.168.10.5");
    });
}

/// As slow as in real life, where ARP asks three times in three seconds.
#[test]
fn an_absent_device_on_the_lan_is_unreachable() {
    test(&Builder::new(), |world| {
        let started = Instant::now();
        let absent: SocketAddr = "192.168.10.99:80".parse().unwrap();
        let error = world
            .laptop()
            .enter(|| TcpStream::connect(absent))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
        assert!(started.elapsed() >= Duration::from_secs(2));
    });
}

#[test]
fn a_bridge_has_to_exist() {
    test(&Builder::new(), |world| {
        let spec = HostSpec::new("db").at("172.17.0.2").on_bridge("docker0");
        let error = world.add_host(spec).unwrap_err();
        assert!(error.to_string().contains("add_bridge"), "{error}");
    });
}

#[test]
fn a_container_sits_on_the_laptops_own_bridge() {
    test(&Builder::new(), |world| {
        world.add_bridge("docker0", "172.17.0.1", 16).unwrap();
        let spec = HostSpec::new("db").at("172.17.0.2").on_bridge("docker0");
        let db = world.add_host(spec).unwrap();
        let echo = db.tcp_echo(5432).unwrap();
        connect(world.laptop(), "172.17.0.2:5432").unwrap();
        let peer = echo.connections().wait_for(1).unwrap()[0].peer;
        assert_eq!(peer.ip().to_string(), "172.17.0.1");
    });
}
