//! The company.

use std::fs;

use stockade_world::{Builder, Command, DnsServer, HostSpec, Laptop, World};

use crate::{feature::daemon::Daemon, support::standard};

pub(super) const PROXY: &str = "http://proxy.corp.example:3128";
/// The login at the proxy, and a part of it that is found nowhere.
pub(super) const LOGIN: &str = "ada:s3cret-DECOY";
pub(super) const PASSWORD: &str = "s3cret-DECOY";

/// The standard world, with a company's resolver and proxy in it.
pub(super) fn company() -> Builder {
    standard()
        .host(HostSpec::new("proxy").at("10.20.0.9"))
        .host(HostSpec::new("resolver").at("10.20.0.53"))
}

/// Makes the laptop one of the company: it has no default route, and a resolver that knows the
/// company's names and no others.
pub(super) fn settle(world: &World) -> DnsServer {
    let laptop = world.laptop();
    for line in [
        "route add 10.0.0.0/8 via 192.168.10.1",
        "route del default",
        "route del ::/0",
    ] {
        laptop.ip(line).expect("ip");
    }
    let resolver = world.host("resolver").dns(53).expect("a resolver");
    for (name, host) in [
        ("proxy.corp.example", "proxy"),
        ("intranet.corp.example", "intranet"),
    ] {
        resolver.record(name, world.host(host).v4());
    }
    let text = "nameserver 10.20.0.53\nsearch corp.example\n";
    laptop.write_etc("resolv.conf", text).expect("resolv.conf");
    resolver
}

/// tinyproxy of the distribution, which wants a login. Its own resolver knows all names.
pub(super) struct TinyProxy(#[expect(dead_code, reason = "lives")] Daemon);

const CONFIGURATION: &str = "Port 3128\nTimeout 60\nMaxClients 200\nLogLevel Connect\n\
    LogFile \"/tmp/tinyproxy-requests.log\"\n";

impl TinyProxy {
    pub(super) fn start(world: &World) -> Self {
        Self::with(world, "BasicAuth ada s3cret-DECOY\n")
    }

    pub(super) fn with(world: &World, more: &str) -> Self {
        let text = format!("{CONFIGURATION}{more}");
        fs::write("/tmp/tinyproxy.conf", text).expect("a file");
        Self(on_proxy(world, 3128, "tinyproxy -d -c /tmp/tinyproxy.conf"))
    }

    /// What it was asked for, each once, in order of names.
    pub(super) fn requests() -> Vec<String> {
        let log = fs::read_to_string("/tmp/tinyproxy-requests.log").unwrap_or_default();
        let mut asked: Vec<_> = log
            .lines()
            .filter(|line| line.contains("Request (file descriptor"))
            .filter_map(|line| line.split("): ").nth(1))
            .filter_map(|request| request.strip_suffix(" HTTP/1.1"))
            .map(str::to_owned)
            .collect();
        asked.sort();
        asked.dedup();
        asked
    }
}

/// A server on the proxy's host, whose resolver is the internet's.
pub(super) fn on_proxy(world: &World, port: u16, line: &str) -> Daemon {
    fs::write("/tmp/proxy.resolv", "nameserver 8.8.8.8\n").expect("a file");
    let line = format!("mount --bind /tmp/proxy.resolv /etc/resolv.conf && exec {line}");
    let arguments = ["-rm", "sh", "-c", &line];
    Daemon::start(world.host("proxy"), port, "unshare", &arguments)
}

/// The file with the login, as a user makes it.
pub(super) fn login_file(laptop: &Laptop) -> String {
    let path = laptop.home().join("proxy-login");
    let line = format!("umask 077; printf '%s\\n' '{LOGIN}' > {}", path.display());
    laptop.shell(&line).run().expect("a file").expect_success();
    path.display().to_string()
}

/// `stockade run --proxy PROXY … -- bash -c LINE`.
pub(super) fn inside(laptop: &Laptop, options: &[&str], line: &str) -> Command {
    inside_by(laptop, PROXY, options, line)
}

/// The same with another proxy.
pub(super) fn inside_by(laptop: &Laptop, proxy: &str, options: &[&str], line: &str) -> Command {
    let login = login_file(laptop);
    laptop
        .stockade(["run", "--proxy", proxy, "--proxy-login", &login])
        .args(options)
        .args(["--", "bash", "-c", line])
}
