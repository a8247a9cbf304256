//! Networks in which one resolver does not know all names: search domains, links with resolvers of
//! their own, and VPNs that come and go.

use std::fs;
use std::net::IpAddr;

use stockade_world::{
    Builder, DnsServer, HostSpec, Resolver, Running, Site, Standard, World, test,
};

use super::daemon::Daemon;
use crate::support::standard;

const NEAR: [&str; 3] = ["run", "--near", "*.lab.example"];
const CURL: &str = "curl -sS --max-time 15";

/// A company behind a VPN: its web server, and its resolver, which alone knows its names.
fn company() -> Builder {
    standard()
        .host(HostSpec::new("wiki").at("10.99.0.7"))
        .host(HostSpec::new("names").at("10.99.0.53"))
}

fn serve(world: &World) -> DnsServer {
    let wiki = world.host("wiki");
    wiki.http(80, Site::text("hello from wiki\n"))
        .expect("listen");
    let names = world.host("names").dns(53).expect("a resolver");
    names.record("wiki.lab.example", wiki.v4());
    names.record("secret.corp.example", wiki.v4());
    names
}

/// A stub as that of systemd-resolved, which knows whom to ask for which domain.
fn stub(world: &World, domains: &[&str]) -> Daemon {
    let servers = domains
        .iter()
        .map(|domain| format!("--server=/{domain}/10.99.0.53"));
    let servers: Vec<String> = servers.collect();
    let mut arguments = vec![
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        "--user=root",
        "--pid-file=",
        "--cache-size=0",
        "--bind-interfaces",
        "--listen-address=127.0.0.53,127.0.0.1",
        "--server=8.8.8.8",
    ];
    arguments.extend(servers.iter().map(String::as_str));
    Daemon::start(world.laptop(), 53, "dnsmasq", &arguments)
}

fn tell_of_stub(search: &str) {
    fs::create_dir_all("/run/systemd/resolve").expect("a directory");
    let text = format!("nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch {search}\n");
    fs::write("/run/systemd/resolve/stub-resolv.conf", text).expect("write");
}

#[test]
fn near_names_are_asked_of_the_stub_that_knows_each_link() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let names = serve(world);
        let laptop = world.laptop();
        let fetch = |name: &str| {
            let line = format!("{CURL} http://{name}/");
            let run = laptop.stockade(NEAR).args(["--", "bash", "-c", &line]);
            let output = run.run().expect("an end");
            (output.code(), output.stdout())
        };
        let page = (0, "hello from wiki\n".to_owned());
        // `/etc/resolv.conf` has the resolver of the internet alone.
        assert_eq!(fetch("wiki.lab.example").0, 6);
        let _stub = stub(world, &["lab.example", "corp.example"]);
        assert_eq!(fetch("wiki.lab.example").0, 6, "nobody told of the stub");
        tell_of_stub("lab.example");
        assert_eq!(fetch("wiki.lab.example"), page);
        // The link's search domain makes a whole name of a short one, and the server is shown that.
        assert_eq!(fetch("wiki"), page);
        assert_eq!(fetch("www.example.com").1, "hello from web\n");
        // A name that is not near is none of the link's business.
        assert_eq!(fetch("secret.corp.example").0, 6);
        assert_eq!(names.queries_for("secret.corp.example"), 0);
        // Nor is the link anybody's who names nothing near.
        for (options, is_told) in [(&[][..], false), (&NEAR[1..], true)] {
            let run = laptop.stockade(["run"]).args(options);
            let inside = run.args(["--", "cat", "/etc/resolv.conf"]).run();
            let inside = inside.expect("an end").stdout();
            assert!(inside.contains("nameserver"), "{inside}");
            assert_eq!(inside.contains("lab.example"), is_told, "{inside}");
        }
        // What the link knows is asked of nobody else, who could add an address.
        let others = world.dns();
        others.record("wiki.lab.example", world.host("intranet").v6());
        let asked = others.queries_for("wiki.lab.example");
        let run = laptop.stockade(NEAR).args(["--", "dig", "+short"]);
        let dig = run.args(["wiki.lab.example", "A", "wiki.lab.example", "AAAA"]);
        assert_eq!(dig.run().expect("an end").stdout(), "10.99.0.7\n");
        assert_eq!(others.queries_for("wiki.lab.example"), asked);
    });
}

#[test]
fn a_short_name_is_allowed_where_its_whole_name_is() {
    test(&standard().resolver(Resolver::SearchDomain), |world| {
        let _net = Standard::serve(world).expect("servers");
        let authority = world.authority();
        let intranet = world.host("intranet");
        let site = Site::text("encrypted\n");
        let names = ["intranet", "intranet.corp.example"];
        intranet
            .https(443, authority, &names, site)
            .expect("listen");
        for internet in ["--internet=true", "--internet=false"] {
            let fetch = |options: &[&str], url: &str| {
                let line = format!("{CURL} {url}");
                let run = world.laptop().stockade(["run", internet]).args(options);
                run.args(["--", "bash", "-c", &line]).run().expect("an end")
            };
            let near = ["--near", "intranet.corp.example"];
            for host in names {
                let page = fetch(&near, &format!("http://{host}/"));
                assert_eq!(page.stdout(), "hello from intranet\n", "{page:?}");
                let page = fetch(&near, &format!("https://{host}/"));
                assert_eq!(page.stdout(), "encrypted\n", "{page:?}");
            }
            // Another short name at the same address is another name.
            let other = "-H 'Host: admin' http://intranet/";
            let refused = fetch(&near, other);
            assert!(
                refused.stdout().starts_with("Stockade: denied"),
                "{refused:?}"
            );
        }
    });
}

/// Runs the lines that it is given, and says when each is done.
const SHELL: &str = "while read -r line; do eval \"$line\" 2>&1; echo done; done";

fn said(session: &mut Running, line: &str) -> String {
    session.write(format!("{line}\n")).expect("ask");
    session.expect("done\n").expect("an answer")
}

#[test]
fn a_vpn_that_comes_up_and_goes_down_needs_no_restart() {
    test(&company(), |world| {
        let _net = Standard::serve(world).expect("servers");
        let _names = serve(world);
        let away = "route add unreachable 10.99.0.0/16 metric 4000";
        world.laptop().ip(away).expect("no way there");
        tell_of_stub("home.example");
        let mut resolved = Some(stub(world, &[]));
        let line = [&NEAR[..], &["--", "bash", "-c", SHELL]].concat();
        let mut session = world.laptop().stockade(line).spawn().expect("a session");
        let fetch = format!("{CURL} http://wiki.lab.example/");
        let web = format!("{CURL} http://www.example.com/");
        let address: IpAddr = "10.99.0.7".parse().expect("an address");
        for round in 0..2 {
            let told = said(&mut session, &fetch);
            assert!(told.contains("Could not resolve"), "{round}: {told}");
            assert_eq!(said(&mut session, &web), "hello from web\n");
            // Up: an interface, a route, and a domain of the stub's.
            world
                .add_interface("tun0", "10.8.0.2", 24, &["10.99.0.0/16"])
                .expect("a tunnel");
            drop(resolved.take());
            resolved = Some(stub(world, &["lab.example"]));
            assert_eq!(said(&mut session, &fetch), "hello from wiki\n", "{round}");
            assert_eq!(said(&mut session, &web), "hello from web\n");
            // Down.
            world.laptop().ip("link del tun0").expect("delete");
            drop(resolved.take());
            resolved = Some(stub(world, &[]));
        }
        // One that rewrites `/etc/resolv.conf` instead.
        world
            .add_interface("tun0", "10.8.0.2", 24, &["10.99.0.0/16"])
            .expect("a tunnel");
        let before = fs::read_to_string("/etc/resolv.conf").expect("a file");
        let laptop = world.laptop();
        let of_vpn = "nameserver 10.99.0.53\nnameserver 8.8.8.8\n";
        laptop.write_etc("resolv.conf", of_vpn).expect("write");
        assert_eq!(said(&mut session, &fetch), "hello from wiki\n");
        laptop.ip("link del tun0").expect("delete");
        laptop.write_etc("resolv.conf", &before).expect("write");
        let told = said(&mut session, &fetch);
        assert!(told.contains("Could not resolve"), "{told}");
        // Without the tunnel the address is no more than any other private one.
        let told = said(&mut session, &format!("{CURL} http://{address}/"));
        assert!(told.contains("curl: (7)"), "{told}");
        session.write("exit\n").expect("end");
        session.wait().expect("an end");
    });
}
