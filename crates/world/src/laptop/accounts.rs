//! The laptop's user database and resolver configuration.

use super::nameserver;
use crate::builder::{Builder, Resolver, SEARCH_DOMAIN};
use crate::net::Host;

/// Files below `/etc` with their contents.
pub(super) fn files(builder: &Builder, host: &Host) -> Vec<(&'static str, String)> {
    let mut resolv_conf = format!("nameserver {}\n", nameserver(builder.resolver));
    match builder.resolver {
        Resolver::Routable => {}
        Resolver::LoopbackStub => resolv_conf.push_str("options edns0 trust-ad\n"),
        Resolver::SearchDomain => {
            resolv_conf = format!("search {SEARCH_DOMAIN}\n{resolv_conf}options ndots:1\n");
        }
    }
    vec![
        ("passwd", PASSWD.to_owned()),
        ("group", GROUP.to_owned()),
        ("shadow", SHADOW.to_owned()),
        ("hostname", format!("{}\n", host.name())),
        ("hosts", hosts(host)),
        ("nsswitch.conf", NSSWITCH.to_owned()),
        ("resolv.conf", resolv_conf),
    ]
}

fn hosts(host: &Host) -> String {
    format!(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 {}\n",
        host.name()
    )
}

const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
dev:x:1000:1000:Dev Eloper,,,:/home/dev:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";

const GROUP: &str = "\
root:x:0:
daemon:x:1:
tty:x:5:
dev:x:1000:
nogroup:x:65534:
";

const SHADOW: &str = "dev:$y$j9T$DECOY-SECRET-99:19000:0:99999:7:::\n";

/// Without the plugins that would ask systemd or the network instead of the
/// files above.
const NSSWITCH: &str = "\
passwd: files
group: files
shadow: files
hosts: files dns
networks: files
protocols: files
services: files
";
