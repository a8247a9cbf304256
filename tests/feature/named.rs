//! Clients with the internet closed but for some names: they work with those, and say why
//! they do not with others.

use std::time::{Duration, Instant};

use stockade_world::{Output, Standard, World, test};

use super::place::Place;
use super::ssh;
use super::web::modern_server;
use crate::support::standard;

const NAME: &str = "www.example.com";
const CLOSED: Place<'_> = Place::Closed(&[NAME]);
/// At the same address, but not allowed.
const OTHER: &str = "other.example.net";

fn curl(world: &World, arguments: &[&str]) -> Output {
    let command = CLOSED.command(world.laptop(), "curl");
    let command = command.args(["-sS", "--max-time", "20"]);
    command.args(arguments).run().expect("curl ends")
}

#[test]
fn curl_works_with_an_allowed_name_in_every_version_of_http() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let _server = modern_server(world);
        for (arguments, page) in [
            (&["http://www.example.com/"][..], "hello from web\n"),
            (&["-6", "http://www.example.com/"], "hello from web\n"),
            (
                &["--http1.0", "http://www.example.com/"],
                "hello from web\n",
            ),
            (&["https://www.example.com/"], "hello from web\n"),
            (&["-6", "https://www.example.com/"], "hello from web\n"),
            (
                &["--tlsv1.2", "--tls-max", "1.2", "https://www.example.com/"],
                "hello from web\n",
            ),
            (&["https://www.example.com:8443/"], "HTTP/2.0, 0 bytes\n"),
            (
                &["-d", "12345", "https://www.example.com:8443/"],
                "HTTP/2.0, 5 bytes\n",
            ),
            (
                &["--http1.1", "https://www.example.com:8443/"],
                "HTTP/1.1, 0 bytes\n",
            ),
        ] {
            let output = curl(world, arguments).expect_success();
            assert_eq!(output.stdout(), page, "{arguments:?}");
            assert_eq!(output.stderr(), "", "{arguments:?}");
        }
    });
}

#[test]
fn curl_tells_why_another_name_is_refused() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        // The same address by another name, which was not asked for.
        let direct = ["--resolve", "other.example.net:443:93.184.216.34"];
        let denied = curl(world, &["http://other.example.net/"]).expect_code(6);
        assert!(
            denied.stderr().contains("Could not resolve host"),
            "{denied:?}"
        );
        let advice = "stockade:   to allow it: --allow other.example.net\n";
        assert!(denied.stderr().contains(advice), "{denied:?}");

        let page = "https://www.example.com/";
        let front = curl(
            world,
            &[
                &direct[..],
                &["-o", "/dev/null", page, "https://other.example.net/"],
            ]
            .concat(),
        );
        let said = "alert access denied";
        assert!(front.stderr().contains(said), "{front:?}");
        assert!(
            front
                .stderr()
                .contains("denied other.example.net at tcp://"),
            "{front:?}"
        );

        let host = format!("Host: {OTHER}");
        let forbidden = curl(world, &["-H", &host, "http://www.example.com/"]).expect_success();
        let told = forbidden.stdout();
        assert!(
            told.starts_with("Stockade: denied: the program asks for other.example.net"),
            "{told}"
        );

        let address = curl(world, &["http://151.101.1.69/"]).expect_code(7);
        assert!(
            address
                .stderr()
                .contains("stockade: denied tcp://151.101.1.69:80"),
            "{address:?}"
        );
    });
}

#[test]
fn python_and_node_work_with_an_allowed_name_and_fail_with_another() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let python = "
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=10).read().decode(), end='')
    except OSError as error:
        print(error)
";
        let urls = ["https://www.example.com/", "https://mirror.example.org/"];
        let told = CLOSED.python(world.laptop(), python).args(urls).run();
        let told = told.expect("python ends").expect_success().stdout();
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines[0], "hello from web");
        assert!(lines[1].contains("Name or service not known"), "{told}");

        let node = "(async () => { for (const url of process.argv.slice(1)) try {
            console.log(await (await fetch(url)).text())
        } catch (error) { console.log(error.cause.code) } })()";
        let fetch = CLOSED.command(world.laptop(), "node");
        let fetch = fetch.env("NODE_EXTRA_CA_CERTS", "/etc/ssl/certs/ca-certificates.crt");
        let told = fetch.args(["-e", node]).args(urls).run();
        let told = told.expect("node ends").expect_success().stdout();
        assert_eq!(told, "hello from web\n\nENOTFOUND\n");
    });
}

#[test]
fn a_websocket_to_an_allowed_name_talks_both_ways() {
    test(&standard(), |world| {
        let _server = modern_server(world);
        let script = include_str!("probes/websocket_client.js");
        let client = CLOSED.command(world.laptop(), "node");
        let url = format!("http://{NAME}:8080/");
        let output = client
            .args(["-e", script, &url, "hello", "GET / HTTP/1.1", "bye"])
            .run();
        let output = output.expect("node ends").expect_success();
        assert_eq!(output.stdout(), "HELLO\nGET / HTTP/1.1\nBYE\n");
    });
}

#[test]
fn ssh_to_an_allowed_name_works() {
    test(&standard(), |world| {
        let _server = ssh::serve(world);
        let line = format!("{} dev@www.example.com 'tr a-z A-Z'", ssh::SSH);
        let command = Place::Closed(&["tcp://www.example.com:2222"]).shell(world.laptop(), &line);
        let output = command.input("hello\n").run().expect("ssh ends");
        assert_eq!(output.expect_success().stdout(), "HELLO\n");
    });
}

/// Connects, and does as the words say: `-` listens, others are said as they are.
const TALK: &str = r"
import socket, sys
host, port, *words = sys.argv[1:]
with socket.create_connection((host, int(port)), 10) as stream:
    stream.settimeout(10)
    for word in words:
        if word == '-':
            print(stream.recv(1000).decode(), end=' ', flush=True)
        else:
            stream.sendall(word.encode().decode('unicode_escape').encode())
";

#[test]
fn no_protocol_stalls_whoever_speaks_first_and_however_little_is_said() {
    test(&standard(), |world| {
        let web = world.host("web");
        web.tcp_banner(25, "220 mail\r\n").expect("listen");
        web.tcp_echo(7).expect("listen");
        for (port, words, heard) in [
            // The server first, then the client.
            (
                "25",
                &["-", "EHLO me\\r\\n", "-"][..],
                "220 mail\r\n EHLO me\r\n ",
            ),
            // The client first, with what could become a request, or a hello, or nothing.
            ("7", &["hello", "-", "again", "-"], "hello again "),
            ("7", &["get", "-", " key\\r\\n", "-"], "get  key\r\n "),
            ("7", &["G", "-", "E", "-", "\\r\\n", "-"], "G E \r\n "),
            ("7", &["\\x16", "-", "\\x00", "-"], "\u{16} \0 "),
            ("7", &["\\x00\\x00\\x00\\x08", "-"], "\0\0\0\u{8} "),
        ] {
            let start = Instant::now();
            let talk = CLOSED
                .python(world.laptop(), TALK)
                .args([NAME, port])
                .args(words);
            let output = talk.run().expect("python ends").expect_success();
            assert_eq!(output.stdout(), heard, "{words:?}");
            assert!(start.elapsed() < Duration::from_secs(9), "{words:?}");
        }
    });
}
