//! What a proxy refuses fails inside with the error that it means, and is in the log; and what
//! hostile proxies do ends.

use std::{
    io::{Read as _, Write as _},
    thread,
    time::{Duration, Instant},
};

use stockade_world::{Standard, World, test};

use super::network::{LOGIN, PROXY, company, inside, inside_by, settle};

/// Tries to connect, and prints the name of the error.
const TRY: &str = "python3 -c '
import errno, socket
try:
    socket.create_connection((\"www.example.com\", 443), 100)
    print(\"open\")
except OSError as error:
    print(errno.errorcode.get(error.errno, error))
'";

/// A proxy that says this, whatever it is asked.
fn says(world: &World, port: u16, answer: &'static [u8]) -> stockade_world::TcpServer {
    let serve = move |stream: &mut stockade_world::Stream| {
        let mut request = [0; 1024];
        let _ = stream.read(&mut request)?;
        stream.write_all(answer)
    };
    world.host("proxy").tcp(port, serve).expect("a server")
}

#[test]
fn what_a_proxy_refuses_is_the_error_that_it_means() {
    test(&company(), |world| {
        settle(world);
        let laptop = world.laptop();
        let cases: [(&[u8], &str, &str); 9] = [
            (b"HTTP/1.1 200 OK\r\n\r\n", "open", ""),
            (
                b"HTTP/1.1 407 x\r\n\r\n",
                "EHOSTUNREACH",
                "it does not accept the login; correct USER:PASSWORD in the file that `proxy_login`",
            ),
            (
                b"HTTP/1.1 403 x\r\n\r\n",
                "EHOSTUNREACH",
                "its rules forbid it (403)",
            ),
            (
                b"HTTP/1.1 502 x\r\n\r\n",
                "EHOSTUNREACH",
                "it cannot reach the destination (502)",
            ),
            (
                b"HTTP/1.1 503 x\r\nX-Squid-Error: ERR_CONNECT_FAIL 111\r\n\r\n",
                "ECONNREFUSED",
                "the destination refused the connection (503)",
            ),
            (
                b"HTTP/1.1 504 x\r\n\r\n",
                "EHOSTUNREACH",
                "the destination did not answer it in time (504)",
            ),
            (
                b"",
                "ENETUNREACH",
                "it closed the connection without an answer",
            ),
            (
                b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n\r\n",
                "EHOSTUNREACH",
                "no answer of a proxy",
            ),
            (
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\x00\x00",
                "EHOSTUNREACH",
                "no answer of a proxy",
            ),
        ];
        for (port, (answer, errno, told)) in (4000..).zip(cases) {
            let _server = says(world, port, answer);
            let proxy = format!("http://proxy.corp.example:{port}");
            let output = inside_by(laptop, &proxy, &[], TRY).run().expect("its end");
            assert_eq!(output.stdout().trim(), errno, "{told}: {output:?}");
            assert!(output.stderr().contains(told), "{output:?}");
            if !told.is_empty() {
                let name = "makes no connection to www.example.com:443";
                assert!(output.stderr().contains(name), "{output:?}");
                let log = laptop.stockade(["log", "--denied"]).run().expect("the log");
                assert!(log.stdout().contains(told), "{log:?}");
            }
        }
        // Nobody is there.
        let output = inside(laptop, &[], TRY).run().expect("its end");
        assert_eq!(output.stdout().trim(), "ENETUNREACH", "{output:?}");
        let told = "the proxy http://proxy.corp.example:3128 cannot be reached: Connection refused";
        assert!(output.stderr().contains(told), "{output:?}");
    });
}

#[test]
fn a_proxy_that_wants_another_login_is_told_of_with_where_the_login_is_from() {
    test(&company(), |world| {
        settle(world);
        let _server = says(world, 4000, b"HTTP/1.1 407 x\r\n\r\n");
        let at = "proxy.corp.example:4000";
        for (proxy, variable, told) in [
            (
                "environment".to_owned(),
                format!("http://ada:wrong@{at}"),
                "it does not accept the login; correct the login in the variable https_proxy\n",
            ),
            (
                format!("http://{at}"),
                format!("http://ada:wrong@{at}"),
                "it does not accept the login; correct the login in the variable https_proxy\n",
            ),
            (
                "environment".to_owned(),
                format!("http://{at}"),
                "it wants a login (407); write USER:PASSWORD to a file that only you can read, and \
                 name it by `proxy_login`\n",
            ),
        ] {
            let run = world.laptop().stockade(["run", "--proxy", &proxy]);
            let run = run.args(["--", "bash", "-c", TRY]);
            let output = run.env("https_proxy", &variable).run().expect("its end");
            assert_eq!(output.stdout().trim(), "EHOSTUNREACH", "{output:?}");
            assert!(output.stderr().contains(told), "{output:?}");
        }
    });
}

#[test]
fn a_hostile_proxy_is_left_in_time_and_costs_little() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let laptop = world.laptop();
        // A head that never ends.
        let endless = |stream: &mut stockade_world::Stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            loop {
                stream.write_all(&[b'x'; 4096])?;
            }
        };
        let server = world.host("proxy").tcp(3129, endless).expect("a server");
        let proxy = "http://proxy.corp.example:3129";
        let output = inside_by(laptop, proxy, &[], TRY).run().expect("its end");
        assert_eq!(output.stdout().trim(), "EHOSTUNREACH", "{output:?}");
        assert_eq!(server.connections().count(), 1);
        // One that says nothing: others inside are not held up by it.
        let silent = |_: &mut stockade_world::Stream| {
            thread::sleep(Duration::from_secs(200));
            Ok(())
        };
        let _server = world.host("proxy").tcp(3128, silent).expect("a server");
        let script = format!(
            "(for i in $(seq 200); do timeout 20 bash -c '</dev/tcp/www.example.com/443' & done; wait) 2>/dev/null & \
             sleep 2; curl -sS --max-time 10 http://192.168.10.21/; kill %1; {TRY}"
        );
        let start = Instant::now();
        let options = ["--allow", "192.168.10.21"];
        let limit = Duration::from_secs(150);
        let output = inside(laptop, &options, &script).limit(limit).run();
        let output = output.expect("its end");
        assert_eq!(
            output.stdout(),
            "hello from device\nENETUNREACH\n",
            "{output:?}"
        );
        assert!(
            output.stderr().contains("does not make a tunnel"),
            "{output:?}"
        );
        assert!(start.elapsed() < Duration::from_secs(120));
    });
}

#[test]
fn udp_and_ping_to_the_internet_are_refused_with_the_reason() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        settle(world);
        let laptop = world.laptop();
        let _proxy = super::network::TinyProxy::start(world);
        // They would work by a default route: the control is below.
        laptop.ip("route add default via 192.168.10.1").expect("ip");
        let script = "python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((\"93.184.216.34\", 7))
try:
    s.send(b\"x\"); print(s.recv(9))
except OSError as error:
    print(error)
'; ping -c1 -W20 93.184.216.34 >/dev/null && echo pong";
        let control = laptop.stockade(["run", "--", "bash", "-c", script]).run();
        assert_eq!(control.expect("its end").stdout(), "b'x'\npong\n");
        let output = inside(laptop, &[], script).run().expect("its end");
        assert_eq!(
            output.stdout(),
            "[Errno 113] No route to host\n",
            "{output:?}"
        );
        let told = "the internet is reached through a proxy, which carries TCP alone";
        assert_eq!(output.stderr().matches(told).count(), 2, "{output:?}");
        let login = super::network::login_file(laptop);
        let explain = |target: &str| {
            let line = ["explain", "--proxy", PROXY, "--proxy-login", &login, target];
            laptop.stockade(line).run().expect("explain")
        };
        let udp = explain("udp://93.184.216.34:53");
        assert_eq!(udp.code(), 1);
        assert!(udp.stdout().contains(told), "{udp:?}");
        let tcp = explain("tcp://93.184.216.34:443");
        assert_eq!(tcp.code(), 0);
        assert!(tcp.stdout().contains("through its proxy"), "{tcp:?}");
        assert!(!format!("{tcp:?}").contains(LOGIN));
    });
}
