//! Files of `/etc` that have to match the network inside.
//!
//! Outside, services may resolve names over sockets (nscd, systemd-resolved, avahi). Inside, none of
//! them can be reached. In the jail one server answers for every name, so `nsswitch.conf` must name
//! it and nothing before it.

use std::net::IpAddr;

use super::{Operation, layout::Layout};
use crate::{
    config::{Config, Network, Root},
    error::Error,
    facts::{EtcFile, Facts},
};

pub(super) fn files(config: &Config, facts: &Facts, layout: &mut Layout) -> Result<(), Error> {
    let mut put = |target: &EtcFile, text: String, reason: &'static str| {
        layout.add(&target.real, Operation::Text(text), reason);
    };
    let sources = match &config.network {
        Network::Host => return Ok(()),
        Network::Jail { resolv_conf } => {
            let target = &facts.resolv_conf;
            if !has_room(target, config, facts) {
                return Err(Error::NoResolvConf(target.real.clone()));
            }
            put(target, resolv_conf.clone(), "the jail's own name server");
            "files dns"
        }
        Network::None => {
            if facts.resolv_conf.exists {
                let text = "# There is no network.\n".to_owned();
                put(&facts.resolv_conf, text, "there is no network");
            }
            "files"
        }
    };
    if facts.nsswitch.exists {
        let text = with_hosts_from(&facts.nsswitch.text, sources);
        put(&facts.nsswitch, text, "names are looked up nowhere else");
    }
    // Where names are rules, each has to be asked for at the server.
    if facts.hosts.exists && config.network != Network::None {
        let text = loopback_only(&facts.hosts.text);
        let reason = "the jail's name server knows the others";
        put(&facts.hosts, text, reason);
    }
    Ok(())
}

/// Read-only places have room for a file only where there is one already.
fn has_room(target: &EtcFile, config: &Config, facts: &Facts) -> bool {
    let in_system = facts
        .system
        .iter()
        .any(|place| target.real.starts_with(&place.path));
    target.exists || !(in_system || config.root == Root::All)
}

/// An `nsswitch.conf` in which hosts are looked up in these sources.
fn with_hosts_from(text: &str, sources: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let database = line.trim_start().split(':').next().unwrap_or_default();
        if database.trim_end() != "hosts" {
            lines.push(line.to_owned());
        }
    }
    lines.push(format!("hosts: {sources}\n"));
    lines.join("\n")
}

/// The lines of an `/etc/hosts` that are about the loopback.
fn loopback_only(text: &str) -> String {
    let is_loopback = |line: &&str| {
        let address = line.split_whitespace().next().unwrap_or_default();
        address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
    };
    let lines: Vec<_> = text.lines().filter(is_loopback).collect();
    if lines.is_empty() {
        return "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_for_in_the_jail_only() {
        let text = "passwd: files systemd\n\
            hosts: files mdns4_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] dns\n\
            services: db files\n";
        let expected = "passwd: files systemd\nservices: db files\nhosts: files dns\n";
        assert_eq!(with_hosts_from(text, "files dns"), expected);
        assert_eq!(with_hosts_from(" hosts : x", "files"), "hosts: files\n");
    }

    #[test]
    fn names_that_are_rules_are_not_in_hosts() {
        let text = "# c\n127.0.0.1\tlocalhost\n127.0.1.1 laptop\n::1 localhost\n\
            192.168.10.21 device # lab\n";
        let expected = "127.0.0.1\tlocalhost\n127.0.1.1 laptop\n::1 localhost\n";
        assert_eq!(loopback_only(text), expected);
        assert!(loopback_only("").contains("localhost"));
    }
}
