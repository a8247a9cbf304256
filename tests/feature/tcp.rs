//! Connections end, wait and carry inside as they do outside.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::mpsc;

use stockade_world::{Host, PATIENCE, Standard, World, eventually, test};

use super::place::Place;
use crate::support::standard;

/// What every client starts with: `s`, connected to the address and port of the arguments.
const CONNECT: &str = "
import errno, socket, struct, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
def rest():
    return b''.join(iter(lambda: s.recv(65536), b''))
";

/// What a client prints that does `script` with its connection.
fn client(world: &World, place: Place<'_>, server: SocketAddr, script: &str) -> String {
    place
        .python(world.laptop(), &format!("{CONNECT}{script}"))
        .args([server.ip().to_string(), server.port().to_string()])
        .run()
        .expect("the client ends")
        .expect_success()
        .stdout()
}

/// The same port of a host, once by each family.
fn both_families(host: &Host, port: u16) -> [SocketAddr; 2] {
    [host.v4(), host.v6()].map(|address: IpAddr| (address, port).into())
}

#[test]
fn a_server_answers_after_the_client_has_stopped_writing() {
    test(&standard(), |world| {
        let web = world.host("web");
        web.tcp(9000, |stream| {
            let count = io::copy(stream, &mut io::sink())?;
            write!(stream, "{count} bytes")
        })
        .expect("server");
        for server in both_families(web, 9000) {
            let script = "s.sendall(b'x' * 100000); s.shutdown(socket.SHUT_WR); print(rest())";
            let said = client(world, Place::Inside(&[]), server, script);
            assert_eq!(said, "b'100000 bytes'\n");
        }
    });
}

#[test]
fn a_client_goes_on_after_the_server_has_stopped_writing() {
    test(&standard(), |world| {
        let web = world.host("web");
        let (sender, heard) = mpsc::channel();
        web.tcp(9000, move |stream| {
            stream.write_all(b"that is all")?;
            stream.socket.shutdown(Shutdown::Write)?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            sender.send(text).map_err(io::Error::other)
        })
        .expect("server");
        for server in both_families(web, 9000) {
            let script = "print(rest()); s.sendall(b'but not for me')";
            let said = client(world, Place::Inside(&[]), server, script);
            assert_eq!(said, "b'that is all'\n");
            let heard = heard.recv_timeout(PATIENCE).expect("the rest arrives");
            assert_eq!(heard, "but not for me");
        }
    });
}

#[test]
fn a_reset_by_the_server_is_a_reset_inside() {
    test(&standard(), |world| {
        let web = world.host("web");
        // To close with something unread is to reset.
        web.tcp(9000, |stream| stream.socket.peek(&mut [0]).map(drop))
            .expect("server");
        let script = "
s.sendall(b'hello')
try:
    print(s.recv(10))
except OSError as error:
    print(errno.errorcode[error.errno])
";
        for server in both_families(web, 9000) {
            let outside = client(world, Place::Outside, server, script);
            let inside = client(world, Place::Inside(&[]), server, script);
            assert_eq!(
                (outside.as_str(), inside.as_str()),
                ("ECONNRESET\n", "ECONNRESET\n")
            );
        }
    });
}

#[test]
fn a_reset_by_the_client_is_a_reset_outside() {
    test(&standard(), |world| {
        let web = world.host("web");
        let (sender, ends) = mpsc::channel();
        web.tcp(9000, move |stream| {
            stream.write_all(b"ready")?;
            let end = io::copy(stream, &mut io::sink()).map_err(|error| error.kind());
            sender.send(end).map_err(io::Error::other)
        })
        .expect("server");
        let gently = "s.recv(5); s.sendall(b'bye')";
        let roughly = "
s.recv(5)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
";
        for server in both_families(web, 9000) {
            for (script, end) in [
                (gently, Ok(3)),
                (roughly, Err(io::ErrorKind::ConnectionReset)),
            ] {
                client(world, Place::Inside(&[]), server, script);
                assert_eq!(ends.recv_timeout(PATIENCE), Ok(end), "{script}");
            }
        }
    });
}

#[test]
fn a_server_that_speaks_first_is_heard_first() {
    test(&standard(), |world| {
        let web = world.host("web");
        web.tcp_banner(9000, "220 ready\r\n").expect("server");
        for server in both_families(web, 9000) {
            // The client does not say a word before it has heard the server.
            let script = "print(s.recv(100)); s.sendall(b'hello'); print(s.recv(100))";
            let said = client(world, Place::Inside(&[]), server, script);
            assert_eq!(said, "b'220 ready\\r\\n'\nb'hello'\n");
        }
    });
}

#[test]
fn urgent_data_does_no_harm() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let script = "
s.sendall(b'before ')
s.send(b'!', socket.MSG_OOB)
s.sendall(b'after')
s.shutdown(socket.SHUT_WR)
print(rest())
";
        for server in both_families(world.host("web"), 7) {
            let outside = client(world, Place::Outside, server, script);
            let inside = client(world, Place::Inside(&[]), server, script);
            // A server that does not ask for urgent bytes never sees them.
            assert_eq!(outside, "b'before after'\n");
            assert_eq!(inside, outside);
        }
    });
}

#[test]
fn a_connection_at_rest_outlives_an_attempt_that_times_out() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let script = "
with socket.socket() as other:
    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
    try:
        other.connect(('198.51.44.66', 80))
    except OSError as error:
        print(errno.errorcode[error.errno])
s.sendall(b'still here')
print(s.recv(100))
";
        let said = client(world, Place::Inside(&[]), net.web_echo.address(), script);
        assert_eq!(said, "ETIMEDOUT\nb'still here'\n");
        assert_eq!(net.web_echo.connections().count(), 1);
    });
}

#[test]
fn a_client_may_choose_its_port_and_send_with_the_first_packet() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        // TCP_FASTOPEN_CONNECT: what is sent first goes with the SYN where that is possible.
        let script = "
for port in (40001, 40002):
    with socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET) as t:
        t.settimeout(20)
        t.setsockopt(socket.IPPROTO_TCP, 30, 1)
        t.bind(('', port))
        t.connect((sys.argv[1], int(sys.argv[2])))
        t.sendall(b'hello')
        print(t.recv(100), t.getsockname()[1])
";
        for server in both_families(world.host("web"), 7) {
            let said = client(world, Place::Inside(&[]), server, script);
            assert_eq!(said, "b'hello' 40001\nb'hello' 40002\n");
        }
    });
}

#[test]
fn five_hundred_connections_are_open_at_a_time() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        let script = "
flows = [socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) for _ in range(500)]
for number, flow in enumerate(flows):
    flow.sendall(b'%d' % number)
print(all(flow.recv(100) == b'%d' % number for number, flow in enumerate(flows)))
";
        let said = client(world, Place::Inside(&[]), net.web_echo.address(), script);
        assert_eq!(said, "True\n");
    });
}

/// The routers on the way forget a connection on which nothing is seen for minutes.
#[test]
fn an_idle_connection_is_kept_alive_outside() {
    test(&standard(), |world| {
        let web = world.host("web");
        web.tcp_echo(9000).expect("server");
        let script = format!("{CONNECT}print('connected', flush=True); input()");
        let mut client = Place::Inside(&[])
            .python(world.laptop(), &script)
            .args([web.v4().to_string(), "9000".to_owned()])
            .spawn()
            .expect("a client");
        client.expect("connected").expect("a connection");
        // Not from the first moment: most connections are over before they need it.
        eventually("the connection has a keepalive timer", PATIENCE, || {
            let timers = world.laptop().shell("ss -Htno dport = :9000").run();
            let timers = timers.expect("ss").expect_success().stdout();
            timers.contains("timer:(keepalive,1min")
        })
        .expect("keepalive");
        client.write("\n").expect("let it end");
        client.wait().expect("the client ends").expect_success();
    });
}

/// The gate listens at the port of every destination; not where the agent does.
#[test]
fn a_server_inside_has_any_port_and_its_destinations_keep_theirs() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let script = "
import socket, sys
def says(address, text):
    with socket.create_connection(address, 10) as s:
        s.sendall(text)
        return s.recv(100)
server = (sys.argv[1], 7007)
print(says(server, b'one'))
own = socket.create_server(('0.0.0.0', 7007))
print(says(server, b'two'))
with socket.create_connection(('127.0.0.1', 7007), 10) as s:
    print(own.accept()[0].getsockname())
print(says(server, b'three'))
";
        let web = world.host("web");
        web.tcp_echo(7007).expect("server");
        let python = Place::Inside(&[]).python(world.laptop(), script);
        let output = python.arg(web.v4().to_string()).run().expect("it ends");
        let said = output.expect_success().stdout();
        let expected = "b'one'\nb'two'\n('127.0.0.1', 7007)\nb'three'\n";
        assert_eq!(said, expected);
    });
}

/// More ports than the gate keeps listeners for, from the first to the last and again.
#[test]
fn connections_to_very_many_ports_pass() {
    test(&standard(), |world| {
        let web = world.host("web");
        for port in 20_000..20_300 {
            web.tcp_echo(port).expect("server");
        }
        let script = "
import socket, sys
for port in [*range(20000, 20300), 20000, 20299]:
    with socket.create_connection((sys.argv[1], port), 10) as s:
        s.sendall(b'%d' % port)
        assert s.recv(100) == b'%d' % port
print('all')
";
        let python = Place::Inside(&[]).python(world.laptop(), script);
        let output = python.arg(web.v4().to_string()).run().expect("it ends");
        assert_eq!(output.expect_success().stdout(), "all\n");
    });
}
