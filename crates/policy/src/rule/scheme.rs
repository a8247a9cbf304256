//! What the schemes of URLs mean in terms of protocols and ports.

use std::num::NonZeroU16;

use crate::flow::Protocol;

/// The protocol of rules, in the one way to write it.
pub(crate) fn protocol(name: &str) -> Option<Protocol> {
    match name {
        "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        "icmp" => Some(Protocol::Icmp),
        _ => None,
    }
}

/// The protocol that a word is a slip or another name for.
pub(crate) fn meant_protocol(word: &str) -> Option<Protocol> {
    let sorted = |word: &str| {
        let mut bytes = word.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    match word {
        "icmp6" | "icmpv6" | "icmp4" | "icmpv4" | "ping" => Some(Protocol::Icmp),
        "tcp4" | "tcp6" => Some(Protocol::Tcp),
        "udp4" | "udp6" => Some(Protocol::Udp),
        _ => ["tcp", "udp", "icmp"]
            .into_iter()
            .find(|name| sorted(name) == sorted(word))
            .and_then(protocol),
    }
}

/// The TCP port of a scheme, in lower case.
pub(crate) fn tcp_port(scheme: &str) -> Option<NonZeroU16> {
    let port = match scheme {
        "ftp" => 21,
        "ssh" | "sftp" | "git+ssh" => 22,
        "smtp" => 25,
        "http" | "ws" | "git+http" => 80,
        "ldap" => 389,
        "https" | "wss" | "git+https" => 443,
        "smtps" => 465,
        "ldaps" => 636,
        "imaps" => 993,
        "mysql" => 3306,
        "postgres" | "postgresql" => 5432,
        "amqp" => 5672,
        "redis" => 6379,
        "git" => 9418,
        "mongodb" => 27017,
        _ => return None,
    };
    NonZeroU16::new(port)
}
