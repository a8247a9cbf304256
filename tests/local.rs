//! The two loopbacks: ports of the host inside, and ports of the sandbox outside.

use stockade_world::{Running, Site, World, test};

use crate::support::standard;

const CURL: [&str; 4] = ["curl", "-sS", "--max-time", "20"];

/// What curl says inside a session with these options.
fn inside(world: &World, options: &[&str], url: &str) -> (i32, String) {
    let mut line = vec!["run", "--quiet"];
    line.extend(options);
    line.push("--");
    line.extend(CURL);
    line.push(url);
    let output = world.laptop().stockade(line).run().expect("run");
    (output.code(), output.stdout())
}

fn outside(world: &World, url: &str) -> (i32, String) {
    let curl = world.laptop().command(CURL[0]).args(&CURL[1..]).arg(url);
    let output = curl.run().expect("run");
    (output.code(), output.stdout())
}

/// A web server in a session with these options, when it listens.
fn serving(world: &World, options: &[&str], address: &str, port: &str) -> Running {
    const SERVER: &str = "
import http.server, socket, sys
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'from inside\\n')
server = Server((sys.argv[1], int(sys.argv[2])), Handler)
print('listening', flush=True)
server.serve_forever()
";
    let mut line = vec!["run", "--quiet"];
    line.extend(options);
    line.extend(["--", "python3", "-c", SERVER, address, port]);
    let session = world.laptop().stockade(line).spawn().expect("spawn");
    session.expect("listening").expect("a server inside");
    session
}

#[test]
fn a_port_of_the_host_appears_inside_and_no_other_does() {
    test(&standard(), |world| {
        let laptop = world.laptop();
        let database = laptop
            .http("127.0.0.1:5432", Site::text("database\n"))
            .expect("listen");
        let secret = laptop
            .http("127.0.0.1:5433", Site::text("secret\n"))
            .expect("listen");
        let found = (0, "database\n".to_owned());

        assert_eq!(
            inside(world, &["--host-port", "5432"], "http://127.0.0.1:5432/"),
            found
        );
        assert_eq!(
            inside(world, &["--host-port", "5432"], "http://localhost:5432/"),
            found
        );
        assert_eq!(database.requests().count(), 2);

        // Without the option, and beside it, nothing.
        assert_eq!(inside(world, &[], "http://127.0.0.1:5432/").0, 7);
        for address in ["127.0.0.1", "127.0.0.2", "192.0.2.1", "[::1]"] {
            let url = format!("http://{address}:5433/");
            assert_eq!(inside(world, &["--host-port", "5432"], &url).0, 7, "{url}");
        }
        // Another address of the host with the same port.
        let url = format!("http://{}:5432/", laptop.v4());
        assert_eq!(inside(world, &["--host-port", "5432"], &url).0, 7);
        assert_eq!(database.requests().count(), 2);
        assert_eq!(secret.requests().count(), 0);
        assert_eq!(outside(world, "http://127.0.0.1:5433/").1, "secret\n");
    });
}

/// Otherwise a server inside would wait for clients who are with the host.
#[test]
fn a_port_of_the_host_is_taken_inside() {
    test(&standard(), |world| {
        let listen = "
import socket
for port in [5432, 5433]:
    try: print(socket.create_server(('0.0.0.0', port)).getsockname())
    except OSError as error: print(error.errno)
";
        let line = ["run", "--host-port", "5432", "--", "python3", "-c", listen];
        let output = world.laptop().stockade(line).run().expect("run");
        let said = output.expect_success().stdout();
        assert_eq!(
            said, "98\n('0.0.0.0', 5433)\n",
            "EADDRINUSE, and a free port"
        );
    });
}

#[test]
fn a_port_of_the_host_that_nobody_listens_at_is_refused() {
    test(&standard(), |world| {
        let asked = inside(world, &["--host-port", "5432"], "http://127.0.0.1:5432/");
        assert_eq!(asked.0, 7);
        let probe = "import socket; print(socket.socket().connect_ex(('127.0.0.1', 5432)))";
        let line = ["run", "--host-port", "5432", "--", "python3", "-c", probe];
        let output = world
            .laptop()
            .stockade(line)
            .run()
            .expect("run")
            .expect_success();
        assert_eq!(output.stdout(), "111\n", "ECONNREFUSED, as outside");
    });
}

#[test]
fn a_published_port_appears_on_the_hosts_loopback_only() {
    test(&standard(), |world| {
        let found = (0, "from inside\n".to_owned());
        let session = serving(world, &["--publish", "3000:8000"], "127.0.0.1", "8000");
        assert_eq!(outside(world, "http://127.0.0.1:3000/"), found);
        assert_eq!(outside(world, "http://[::1]:3000/"), found);
        let address = world.laptop().v4();
        assert_eq!(outside(world, &format!("http://{address}:3000/")).0, 7);
        let neighbour = world.host("device").enter(move || {
            let target = std::net::SocketAddr::new(address, 3000);
            std::net::TcpStream::connect_timeout(&target, std::time::Duration::from_secs(2)).is_ok()
        });
        assert!(!neighbour, "the LAN can reach the published port");
        drop(session);

        // What is not published is not there; what listens on IPv6 only is found, too.
        let session = serving(world, &[], "127.0.0.1", "8000");
        assert_eq!(outside(world, "http://127.0.0.1:8000/").0, 7);
        drop(session);
        let session = serving(world, &["--publish", "8000"], "::1", "8000");
        assert_eq!(outside(world, "http://127.0.0.1:8000/"), found);
        drop(session);
    });
}

#[test]
fn a_published_port_that_is_taken_refuses_the_launch() {
    test(&standard(), |world| {
        let _other = world
            .laptop()
            .http("127.0.0.1:3000", Site::empty())
            .expect("listen");
        let line = ["run", "--publish", "3000", "--", "touch", "ran"];
        let output = world
            .laptop()
            .stockade(line)
            .run()
            .expect("run")
            .expect_code(125);
        assert!(output.stderr().contains("port 3000"), "{}", output.stderr());
        assert!(!world.laptop().workspace().join("ran").exists());
        let line = ["run", "--publish", "3001", "--", "touch", "ran"];
        world
            .laptop()
            .stockade(line)
            .run()
            .expect("run")
            .expect_success();
        assert!(world.laptop().workspace().join("ran").exists());
    });
}

#[test]
fn a_port_that_cannot_be_published_is_refused_with_one_that_can() {
    test(&standard(), |world| {
        let _taken = world
            .laptop()
            .http("127.0.0.1:3000", Site::empty())
            .expect("listen");
        for (port, parts) in [
            (
                "80:3000",
                ["ports below 1024 are for root", "as in --publish 8080:3000"],
            ),
            (
                "80",
                ["nobody can listen at port 80", "as in --publish 8080"],
            ),
            (
                "8000:80",
                ["nobody can listen at port 80", "as in --publish 8000:8080"],
            ),
            (
                "3000",
                ["another program listens there", "as in --publish 3001:3000"],
            ),
        ] {
            let line = ["run", "--publish", port, "--", "echo", "ran"];
            let output = world.laptop().stockade(line).run().expect("run");
            let output = output.expect_code(125);
            assert_eq!(output.stdout(), "");
            for part in parts {
                assert!(output.stderr().contains(part), "{part}: {output:?}");
            }
        }
    });
}
