//! Where the address of a repository leads, by its text alone.
//!
//! What git outside talks to, it talks to from the user's machine. A session that names this machine
//! or the network around it reaches what it is denied inside; so such an address does not pass. A
//! name that only resolves to one is not known by its text.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The address of a repository on a server: a URL, or `user@host:path`. No helper of git's
/// (`ext::command`), no path, and nothing near.
pub(super) fn is_on_a_server(text: &str) -> bool {
    const SCHEMES: &[&str] = &[
        "https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps",
    ];
    if text.chars().any(|c| c.is_control() || c == ' ') {
        return false;
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        if !is_plain_authority(scheme, rest) {
            return false;
        }
        return SCHEMES.contains(&scheme)
            && !rest.starts_with(['-', '/'])
            && !host.starts_with('-')
            && !rest.is_empty()
            && !is_near(text);
    }
    let Some((host, path)) = text.split_once(':') else {
        return false;
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '~');
    let name = host.rsplit_once('@').map_or(host, |(_, name)| name);
    !name.is_empty()
        && !name.starts_with('-')
        && !host.starts_with('-')
        && host.chars().all(fits)
        && !path.is_empty()
        && !path.starts_with([':', '-'])
        && !is_near(text)
}

/// Whether all readers find the same host in what follows the scheme. Git decodes `%2F` and `%40` before it
/// looks for the host, unless curl does that, and takes brackets off that have a user in them; ssh takes
/// everything up to the last `@` for the user.
fn is_plain_authority(scheme: &str, rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or(rest);
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_for_curl = matches!(scheme, "https" | "http" | "ftp" | "ftps");
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("]", |(_, port)| port),
        None => host,
    };
    !authority.contains(['?', '#', '\\'])
        && !user.contains(['[', ']'])
        && !port.contains(['[', ']'])
        && (is_for_curl || !authority.contains('%'))
}

/// The same by a name that anybody can look up, and not by a number.
pub(super) fn is_by_global_name(text: &str) -> bool {
    const LOCAL: &[&str] = &[
        "arpa",
        "corp",
        "home",
        "internal",
        "intranet",
        "lan",
        "local",
        "localdomain",
        "private",
    ];
    let host = host(text);
    let last = host.rsplit_once('.').map_or("", |(_, last)| last);
    let is_word = last.starts_with(|c: char| c.is_ascii_alphabetic());
    is_on_a_server(text) && is_word && !LOCAL.contains(&last)
}

/// The host of an address, in small letters.
fn host(text: &str) -> String {
    let authority = match text.split_once("://") {
        Some((_, rest)) => {
            let end = rest.find(['/', '?', '#']);
            rest.split_at(end.unwrap_or(rest.len())).0
        }
        None => text.split_once(':').map_or(text, |(host, _)| host),
    };
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// This machine, or an address that is not one of the internet's.
fn is_near(text: &str) -> bool {
    let host = host(text);
    let is_this = |name: &str| host == name || host.ends_with(&format!(".{name}"));
    if host.is_empty() || is_this("localhost") || is_this("localdomain") || is_this("ip6-loopback")
    {
        return true;
    }
    // Written in another way, or with an interface: nobody does that who has nothing to hide.
    if host.contains(['%', '\\']) || !host.is_ascii() || host == "ip6-localhost" {
        return true;
    }
    if host.contains(':') {
        return host.parse().map_or(true, |address| !is_global_v6(address));
    }
    match number(&host) {
        Some(address) => address.is_none_or(|address| !is_global_v4(address)),
        None => false,
    }
}

/// The address that resolvers take a text for, as in `127.1` and `0x7f000001`, if it ends in a
/// number; the inner nothing is that of no address.
#[expect(
    clippy::option_option,
    reason = "a number that is no address is another thing than a name"
)]
fn number(host: &str) -> Option<Option<Ipv4Addr>> {
    let parse = |part: &str| {
        let hex = part.strip_prefix("0x").map(|rest| (rest, 16));
        let octal = || part.strip_prefix('0').filter(|rest| !rest.is_empty());
        let (digits, radix) = hex.or_else(|| Some((octal()?, 8))).unwrap_or((part, 10));
        u32::from_str_radix(digits, radix).ok()
    };
    let last = host.rsplit('.').next()?;
    let is_number = parse(last).is_some() || last.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| {
        let parts: Option<Vec<u32>> = host.split('.').map(parse).collect();
        let parts = parts.filter(|parts| parts.len() <= 4)?;
        let (last, first) = parts.split_last()?;
        let mut address = 0_u32;
        for (part, place) in first.iter().zip([24, 16, 8]) {
            address |= u32::from(u8::try_from(*part).ok()?) << place;
        }
        let bits = 32 - 8 * u32::try_from(first.len()).ok()?;
        let fits = u64::from(*last) < 1_u64 << bits;
        fits.then(|| Ipv4Addr::from_bits(address | last))
    })
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_reserved = matches!(
        (a, b, c),
        (0, _, _) | (192, 0, 0) | (198, 18 | 19, _) | (240.., _, _)
    );
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || is_shared
        || is_reserved)
}

/// What has an IPv4 address in it counts as near: nobody writes it.
fn is_global_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_unicast = (0x2000..0x4000).contains(&a);
    is_unicast && a != 0x2002 && (a, b) != (0x2001, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_around_it_are_near_in_any_form() {
        for host in [
            "localhost",
            "LocalHost.",
            "a.localhost",
            "127.0.0.1",
            "127.1",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "0",
            "10.1.2.3",
            "192.168.1.5",
            "169.254.169.254",
            "100.64.0.1",
            "[::1]",
            "[fe80::1]",
            "[fd00::1]",
            "[::ffff:127.0.0.1]",
            "[2002:7f00:1::]",
            "[64:ff9b::7f00:1]",
            "%6cocalhost",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "\u{ff4c}ocalhost",
            "256.1.1.1.1",
            "99999999999",
            "user@localhost",
            "example.com@127.0.0.1",
            "localhost:8080",
            "127.0.0.1:80",
        ] {
            for scheme in ["http", "https", "ssh", "git"] {
                let text = format!("{scheme}://{host}/a@example.com/b");
                assert!(!is_on_a_server(&text), "{text}");
            }
        }
        for text in ["localhost:a", "git@127.0.0.1:a", "git@10.1.2.3:a/b"] {
            assert!(!is_on_a_server(text), "{text}");
        }
        // Git and ssh take these for another host than curl would.
        for text in [
            "ssh://[me@localhost]/a",
            "ssh://[me@localhost:22]/a",
            "ssh://me@[localhost/a",
            "ssh://git%40localhost%2Fa@example.com/b",
            "git://localhost%2Fa@example.com/b",
            "ssh://example.com?@localhost/a",
            "ssh://example.com#@localhost/a",
            "https://example.com\\@localhost/a",
        ] {
            assert!(!is_on_a_server(text), "{text}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_not() {
        for text in [
            "https://example.com/a",
            "https://user:word@example.com:8443/a?b=http://localhost/",
            "https://user:w%40rd@example.com/a",
            "ssh://git@[2606:2800:220:1::1]:22/a",
            "git@example.com:a/b.git",
            "ssh://git@example.com:22/a",
            "https://93.184.216.34/a",
            "https://[2606:2800:220:1::1]/a",
            "https://git/a",
            "https://1.example/a",
        ] {
            assert!(is_on_a_server(text), "{text}");
        }
    }

    #[test]
    fn global_names_are_told_from_numbers_and_local_ones() {
        for text in ["https://example.com/a", "git@git.example.org:a"] {
            assert!(is_by_global_name(text), "{text}");
        }
        for text in [
            "https://93.184.216.34/a",
            "https://[2606:2800:220:1::1]/a",
            "https://git/a",
            "git@git.local:a",
            "https://git.corp.internal/a",
            "http://localhost/a",
            "/usr",
            "ext::sh",
        ] {
            assert!(!is_by_global_name(text), "{text}");
        }
    }
}
