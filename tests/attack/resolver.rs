//! What the address of the host's resolver is open for (N4).

use stockade_world::{Host, Resolver, Standard, World, test};

use super::probe::{INSIDE, Place, Watch, dig};
use crate::support::standard;

const NAME: &str = "www.example.com";
const WEB: &str = "93.184.216.34\n";
const CLOSED: Place<'_> = Place::Closed(&[NAME, "resolver.example"]);

/// Makes `host` the laptop's resolver, next to the other things that it serves.
fn resolve_at(world: &World, host: &Host) {
    world.dns().at(host, 53).expect("listen");
    let file = format!("nameserver {}\n", host.v4());
    world
        .laptop()
        .write_etc("resolv.conf", &file)
        .expect("resolv.conf");
}

/// The resolver answers inside, as itself and for every other server's address, and at no
/// other port or protocol.
fn is_open_for_names_only(world: &World, host: &Host) {
    resolve_at(world, host);
    host.tcp_echo(853).expect("listen");
    host.udp_echo(5353).expect("listen");
    let address = host.v4();
    let others = [
        format!("tcp://{address}:80"),
        format!("tcp://{address}:853"),
        format!("udp://{address}:5353"),
        format!("icmp://{address}"),
    ];
    let watch = Watch::on(&[host]);
    INSIDE.probe(world.laptop(), &others).expect_denials();
    CLOSED.probe(world.laptop(), &others).expect_denials();
    // A name of the resolver's own address opens nothing that is near.
    world.dns().record("resolver.example", address);
    let by_name = ["tcp://resolver.example:80", "udp://resolver.example:5353"];
    let asked = world.dns().queries().count();
    CLOSED.probe(world.laptop(), &by_name).expect_denials();
    assert!(world.dns().queries().count() > asked);
    world.dns().queries().clear();
    watch.expect_questions_alone();
    Place::Outside
        .probe(world.laptop(), &others)
        .expect_answers();

    let at = format!("@{address}");
    for place in [INSIDE, CLOSED] {
        for options in [&[NAME][..], &[&at, NAME], &["+tcp", &at, NAME]] {
            assert_eq!(dig(world, place, options).stdout(), WEB, "{options:?}");
        }
    }
    assert_eq!(world.dns().queries_for(NAME), 6);
    // For names that are allowed, where only some are.
    let told = dig(world, CLOSED, &["mirror.example.org"]).stdout();
    assert_eq!(told, "");
    assert_eq!(world.dns().queries_for("mirror.example.org"), 0);
}

#[test]
fn n04_a_private_resolver_is_open_for_names_only() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        is_open_for_names_only(world, world.host("intranet"));
    });
}

#[test]
fn n04_a_resolver_that_is_the_metadata_service_is_open_for_names_only() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        is_open_for_names_only(world, world.host("metadata"));
    });
}

#[test]
fn n04_a_stub_on_the_hosts_loopback_is_open_for_names_only() {
    test(&standard().resolver(Resolver::LoopbackStub), |world| {
        let laptop = world.laptop();
        let beside = laptop.tcp_echo("127.0.0.53:80").expect("listen");
        let targets = ["tcp://127.0.0.53:80"];
        for place in [INSIDE, CLOSED] {
            place.probe(laptop, &targets).expect_none();
            assert_eq!(dig(world, place, &[NAME]).stdout(), WEB);
        }
        assert_eq!(beside.connections().count(), 0);
        Place::Outside.probe(laptop, &targets).expect_answers();
    });
}

/// What a program may say at port 53 that is not DNS.
const NOT_DNS: &str = r#"
import socket, sys
for address in sys.argv[1:]:
    with socket.create_connection((address, 53), 5) as stream:
        stream.settimeout(0.5)
        stream.sendall(b"GET /latest/meta-data/ HTTP/1.0\r\n\r\n")
        try:
            print(address, stream.recv(512))
        except OSError as error:
            print(address, error)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"not DNS at all", (address, 53))
"#;

#[test]
fn n04_port_53_is_no_way_to_a_server_that_listens_there() {
    test(&standard(), |world| {
        let servers = ["intranet", "metadata", "mirror"].map(|name| world.host(name));
        let addresses = servers.map(|host| host.v4().to_string());
        let watch = Watch::on(&servers);
        for host in servers {
            host.tcp_echo(53).expect("listen");
            host.udp_sink(53).expect("listen");
        }
        let talk = |place: Place<'_>| {
            let python = place.python(world.laptop(), NOT_DNS).args(&addresses);
            python.run().expect("run").expect_success().stdout()
        };
        // The gate hangs up, or waits for the rest of a message; the server hears nothing.
        let inside = talk(INSIDE);
        assert_eq!(inside.matches("meta-data").count(), 0, "{inside}");
        watch.expect_nothing();
        assert_eq!(talk(Place::Outside).matches("meta-data").count(), 3);
        watch.expect_something();
    });
}
