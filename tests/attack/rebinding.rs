//! Names that point inward: the address that is dialled is judged, whatever it was called
//! (N13).

use std::net::IpAddr;

use stockade_world::{Builder, HostSpec, World, test};

use super::probe::{INSIDE, INTERNET, Place, Watch, dig};
use crate::support::standard;

/// Names of a hostile zone, and where they point to.
const INWARD: [(&str, &str, u16); 6] = [
    ("ten.evil.example", "10.20.0.5", 80),
    ("metadata.evil.example", "169.254.169.254", 80),
    ("loopback.evil.example", "127.0.0.1", 5432),
    ("lan.evil.example", "192.168.10.5", 5432),
    ("six.evil.example", "fd00:20::5", 80),
    ("nat64.evil.example", "64:ff9b::10.20.0.5", 80),
];

/// With the internet closed but for all these names.
const ALLOWED: Place<'_> = Place::Closed(&["*.evil.example", "flip.example", "www.example.com"]);

fn hostile_zone() -> Builder {
    standard().host(HostSpec::new("nat64").at("64:ff9b::10.20.0.5"))
}

/// The servers that the zone points to: those of others, and those of the laptop itself.
fn serve_inward(world: &World) {
    for name in ["intranet", "metadata", "nat64"] {
        world.host(name).tcp_echo(80).expect("listen");
    }
    world.host("web").tcp_echo(7).expect("listen");
    world.host("web").tcp_echo(80).expect("listen");
    world.host("web").udp_echo(7).expect("listen");
}

#[test]
fn n13_a_name_that_points_inward_opens_nothing() {
    test(&hostile_zone(), |world| {
        serve_inward(world);
        let own = world.laptop().tcp_echo(5432).expect("listen");
        for (name, address, _) in INWARD {
            let address: IpAddr = address.parse().expect("address");
            world.dns().record(name, address);
        }
        let targets = INWARD.map(|(name, _, port)| format!("tcp://{name}:{port}"));
        let watch = Watch::on(&["intranet", "metadata", "nat64"].map(|name| world.host(name)));
        for place in [INSIDE, ALLOWED] {
            place.probe(world.laptop(), &targets).expect_none();
            // The names were resolved: it is the address that was refused.
            for (name, address, _) in INWARD {
                let kind = if address.contains(':') { "AAAA" } else { "A" };
                let told = dig(world, place, &[name, kind]).stdout();
                assert_eq!(told.trim().parse(), address.parse::<IpAddr>(), "{name}");
            }
        }
        watch.expect_nothing();
        assert_eq!(own.connections().count(), 0);
        INSIDE.probe(world.laptop(), &INTERNET).expect_answers();
        let by_name = ["tcp", "udp"].map(|kind| format!("{kind}://www.example.com:7"));
        ALLOWED.probe(world.laptop(), &by_name).expect_answers();

        Place::Outside
            .probe(world.laptop(), &targets)
            .expect_answers();
        watch.expect_something();
        assert_eq!(own.connections().count(), 2);
    });
}

/// Where a name may flip to, each with a server.
const FLIPS: [&str; 8] = [
    "10.20.0.5",
    "127.0.0.1",
    "169.254.169.254",
    "192.168.10.5",
    "fd00:20::5",
    "fd00:ec2::254",
    "::1",
    "64:ff9b::10.20.0.5",
];

#[test]
fn n13_a_name_that_flips_between_two_look_ups_opens_nothing() {
    test(&hostile_zone(), |world| {
        serve_inward(world);
        let own = world.laptop().tcp_echo(80).expect("listen");
        let hosts = ["intranet", "metadata", "nat64"].map(|name| world.host(name));
        let watch = Watch::on(&hosts);
        let targets = ["tcp://flip.example:80"];
        for inward in FLIPS.map(|inward| inward.parse::<IpAddr>().expect("address")) {
            let web = world.host("web");
            let web = if inward.is_ipv4() { web.v4() } else { web.v6() };
            // Of one family at a time: the other one has nothing to fall back on.
            let flip = || world.dns().rotate("flip.example", &[&[web][..], &[inward]]);
            for place in [INSIDE, ALLOWED] {
                flip();
                let session = &mut place.prober(world.laptop());
                session.ask(&targets).expect_answers();
                session.ask(&targets).expect_none();
                session.ask(&targets).expect_answers();
            }
            watch.expect_nothing();
            assert_eq!(own.connections().count(), 0, "{inward}");
        }
        for inward in FLIPS.map(|inward| inward.parse::<IpAddr>().expect("address")) {
            world.dns().rotate("flip.example", &[&[inward]]);
            Place::Outside
                .probe(world.laptop(), &targets)
                .expect_answers();
        }
        watch.expect_something();
        assert_eq!(own.connections().count(), 3);
    });
}

/// Both at once: the internet's address of the answer is open, the inner one is not.
#[test]
fn n13_an_answer_with_an_inner_address_among_others_opens_the_others() {
    test(&hostile_zone(), |world| {
        serve_inward(world);
        let name = "mixed.evil.example";
        for address in ["10.20.0.5", "93.184.216.34", "127.0.0.1"] {
            let address: IpAddr = address.parse().expect("address");
            world.dns().record(name, address);
        }
        let targets = [
            "tcp://mixed.evil.example:80",
            "tcp://10.20.0.5:80",
            "tcp://93.184.216.34:80",
        ];
        let watch = Watch::on(&[world.host("intranet")]);
        let session = &mut ALLOWED.prober(world.laptop());
        session.ask(&targets[..1]);
        session.ask(&targets[1..2]).expect_denials();
        session.ask(&targets[2..]).expect_answers();
        watch.expect_nothing();
    });
}

/// A web server inside that serves whatever name it is asked for, and one that speaks first.
const SERVERS: &str = r#"
import http.server, socket, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"from inside\n")
    def log_message(self, *words):
        pass
web = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler)
threading.Thread(target=web.serve_forever, daemon=True).start()
greeter = socket.create_server(("127.0.0.1", 8001))
def greet():
    while True:
        peer, _ = greeter.accept()
        peer.sendall(b"hello ")
        peer.sendall(peer.recv(64))
        peer.close()
threading.Thread(target=greet, daemon=True).start()
print("listening", flush=True)
input()
"#;

#[test]
fn n13_a_web_page_that_calls_a_published_port_by_a_name_of_its_own_is_refused() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let hosts = "127.0.0.1 localhost\n127.0.1.1 app.test\n10.20.0.5 intranet.test\n";
        laptop.write_etc("hosts", hosts).expect("write");
        let options = ["run", "--publish", "3000:8000", "--publish", "3001:8001"];
        let session = laptop
            .stockade(options)
            .args(["--", "python3", "-c", SERVERS]);
        let mut session = session.spawn().expect("a session");
        session.expect("listening").expect("servers inside");
        let curl = |arguments: &[&str]| {
            let curl = laptop.command("curl").args(["-sS", "--max-time", "5"]);
            curl.args(arguments).run().expect("curl ends").stdout()
        };
        let many: Vec<String> = (0..200).map(|n| format!("-HX-{n}: y")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for name in [
            "evil.example",
            "intranet.test",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
        ] {
            let there = format!("{name}:3000:127.0.0.1");
            let page = format!("http://{name}:3000/");
            let asked = ["--resolve", &there, &page];
            for asked in [&asked[..], &[&asked[..], &many].concat()] {
                let answer = curl(asked);
                assert!(answer.starts_with("Stockade: denied: "), "{name}: {answer}");
            }
        }
        let machine = laptop
            .command("uname")
            .arg("-n")
            .run()
            .expect("uname")
            .stdout();
        for host in [
            "localhost",
            "LOCALHOST:3000",
            "app.localhost:3000",
            "127.0.0.1:3000",
            "[::1]:3000",
            "app.test:3000",
            machine.trim(),
        ] {
            let field = format!("Host: {host}");
            let answer = curl(&["-H", &field, "http://127.0.0.1:3000/"]);
            assert_eq!(answer, "from inside\n", "{host}");
        }
        assert_eq!(curl(&["http://[::1]:3000/"]), "from inside\n");
        // What is no request passes, also where the server speaks first.
        let talk = "import socket
peer = socket.create_connection(('127.0.0.1', 3001))
got = peer.recv(64)
peer.sendall(b'GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')
print(got + peer.recv(64)[:3])";
        let talked = laptop
            .command("python3")
            .args(["-c", talk])
            .run()
            .expect("run");
        assert_eq!(talked.expect_success().stdout(), "b'hello GET'\n");
        session.write("\n").expect("end");
        let receipt = session.wait().expect("an end").expect_success().stderr();
        assert!(
            receipt.contains("evil.example:3000 at tcp://127.0.0.1:8000"),
            "{receipt}"
        );
    });
}
