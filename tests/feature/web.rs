//! Web clients, against servers with certificates that the laptop trusts.

use std::fs;

use stockade_world::{Command, Output, Standard, World, test};

use super::daemon::Daemon;
use super::place::Place;
use crate::support::standard;

const INSIDE: Place<'_> = Place::Inside(&[]);
const NAME: &str = "www.example.com";

fn run(command: Command) -> Output {
    command.run().expect("the client ends").expect_success()
}

fn curl(world: &World, arguments: &[&str]) -> Output {
    let command = INSIDE.command(world.laptop(), "curl");
    run(command.args(["-sS", "--max-time", "20"]).args(arguments))
}

#[test]
fn curl_gets_pages_by_http_and_https_over_both_families() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        for scheme in ["http", "https"] {
            for family in ["-4", "-6"] {
                let url = format!("{scheme}://{NAME}/");
                let page = curl(world, &[family, &url]).stdout();
                assert_eq!(page, "hello from web\n", "{family} {url}");
            }
        }
        for server in [&net.web, &net.web_tls] {
            let requests = server.requests().all();
            let families: Vec<_> = requests.iter().map(|r| r.peer.is_ipv4()).collect();
            assert_eq!(families, [true, false]);
        }
    });
}

#[test]
fn one_connection_carries_many_requests() {
    test(&standard(), |world| {
        let net = Standard::serve(world).expect("servers");
        curl(world, &[&format!("http://{NAME}/[1-50]")]);
        assert_eq!(net.web.requests().count(), 50);
        assert_eq!(net.web.tcp().connections().count(), 1);
    });
}

/// A server with HTTP/2 on port 8443 and a WebSocket on port 8080.
pub(super) fn modern_server(world: &World) -> Daemon {
    let identity = world.authority().identity(&[NAME]).expect("a certificate");
    fs::write("/tmp/certificate.pem", identity.certificate).expect("write");
    fs::write("/tmp/key.pem", identity.key).expect("write");
    let script = include_str!("probes/web_server.js");
    let files = ["/tmp/certificate.pem", "/tmp/key.pem"];
    let arguments = [&["-e", script, "8443", "8080"], &files[..]].concat();
    Daemon::start(world.host("web"), 8080, "node", &arguments)
}

#[test]
fn curl_speaks_http_2_to_who_understands_it() {
    test(&standard(), |world| {
        let _server = modern_server(world);
        let url = format!("https://{NAME}:8443/");
        assert_eq!(curl(world, &[&url]).stdout(), "HTTP/2.0, 0 bytes\n");
        let body = world.laptop().workspace().join("body");
        fs::write(body, vec![b'x'; 3_000_000]).expect("write");
        let output = curl(world, &["--data-binary", "@body", &url]);
        assert_eq!(output.stdout(), "HTTP/2.0, 3000000 bytes\n");
        let output = curl(world, &["--http1.1", &url]);
        assert_eq!(output.stdout(), "HTTP/1.1, 0 bytes\n");
    });
}

#[test]
fn node_fetches_by_https() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let script = "fetch(process.argv[1]).then((r) => r.text()).then(console.log)";
        let fetch = INSIDE.command(world.laptop(), "node");
        // Node has a list of authorities of its own; this variable adds to it.
        let fetch = fetch.env("NODE_EXTRA_CA_CERTS", "/etc/ssl/certs/ca-certificates.crt");
        let output = run(fetch.args(["-e", script, "https://www.example.com/"]));
        assert_eq!(output.stdout(), "hello from web\n\n");
    });
}

#[test]
fn a_websocket_talks_both_ways() {
    test(&standard(), |world| {
        let _server = modern_server(world);
        let script = include_str!("probes/websocket_client.js");
        let client = INSIDE.command(world.laptop(), "node");
        let url = format!("http://{NAME}:8080/");
        let output = run(client.args(["-e", script, &url, "hello", "good bye"]));
        assert_eq!(output.stdout(), "HELLO\nGOOD BYE\n");
    });
}

#[test]
fn python_opens_a_url_by_https() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let script = "
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode(), end='')
";
        let client = INSIDE.python(world.laptop(), script);
        let output = run(client.arg("https://www.example.com/"));
        assert_eq!(output.stdout(), "hello from web\n");
    });
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    test(&standard(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let stranger = stockade_world::Authority::new("a stranger").expect("an authority");
        let site = stockade_world::Site::text("hello from a stranger\n");
        let web = world.host("web");
        web.https(8443, &stranger, &[NAME], site).expect("server");
        let command = INSIDE.command(world.laptop(), "curl");
        let url = format!("https://{NAME}:8443/");
        let output = command.args(["-sS", &url]).run().expect("curl ends");
        assert_eq!(output.code(), 60, "{output:?}");
    });
}
