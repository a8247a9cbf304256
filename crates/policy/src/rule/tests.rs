use super::*;
use crate::rules::RuleSet;
use crate::syntax::Problem;

fn rule(text: &str) -> Rule {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> RuleError {
    match text.parse::<Rule>() {
        Ok(rule) => panic!("{text} was read as {rule}"),
        Err(error) => error,
    }
}

#[test]
fn rules_have_one_canonical_form() {
    for (written, canonical) in [
        ("192.168.10.21", "192.168.10.21"),
        ("192.168.10.21/32", "192.168.10.21"),
        ("tcp://10.20.0.0/16:443", "tcp://10.20.0.0/16:443"),
        ("udp://172.23.1.3:5064-5065", "udp://172.23.1.3:5064-5065"),
        ("icmp://10.0.0.1", "icmp://10.0.0.1"),
        ("10.0.0.1:443,80,81-90,85", "10.0.0.1:80-90,443"),
        ("10.0.0.1:1-65535", "10.0.0.1:1-65535"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("FD00:0:0::5", "fd00::5"),
        ("[fd00::5]", "fd00::5"),
        ("[fd00::5]:80", "[fd00::5]:80"),
        ("tcp://[fd00::/64]:80", "tcp://[fd00::/64]:80"),
        ("fd00::/64", "fd00::/64"),
        ("fd00::5:80", "fd00::5:80"),
        ("64:ff9b::/96", "64:ff9b::/96"),
        ("64:ff9b::10.0.0.1", "64:ff9b::a00:1"),
        ("169.254.169.254", "169.254.169.254"),
        ("api.example.org", "api.example.org"),
        ("API.Example.ORG:443", "api.example.org:443"),
        ("tcp://*.example.org:443,80", "tcp://*.example.org:80,443"),
        ("udp://example.org:443-444", "udp://example.org:443-444"),
        ("icmp://example.org", "icmp://example.org"),
        ("_service._tcp.example.org", "_service._tcp.example.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("1.2.3.4.example.org", "1.2.3.4.example.org"),
        ("redis:6379", "redis:6379"),
        ("fd00", "fd00"),
    ] {
        assert_eq!(rule(written).to_string(), canonical);
        assert_eq!(rule(canonical), rule(written));
    }
}

/// Each line: the rule, the bytes under the caret, the whole message.
#[test]
fn mistakes_are_named_with_their_correction() {
    for (text, caret, message) in [
        ("", "", "the rule is empty"),
        ("tcp://", "", "there is no address and no name"),
        (":80", "", "there is no address and no name"),
        ("/8", "", "there is no address and no name"),
        (
            "sctp://10.0.0.1",
            "sctp",
            "`sctp` is no protocol: there are tcp, udp and icmp",
        ),
        (
            "TCP://10.0.0.1",
            "TCP",
            "`TCP` is no protocol: there are tcp, udp and icmp; write `tcp://10.0.0.1`",
        ),
        (
            "https://10.0.0.1/",
            "https",
            "`https` is no protocol: there are tcp, udp and icmp; write `tcp://10.0.0.1:443`",
        ),
        (
            "tpc://10.0.0.1",
            "tpc",
            "`tpc` is no protocol: there are tcp, udp and icmp; write `tcp://10.0.0.1`",
        ),
        (
            "https://api.example.org/v1/messages",
            "https",
            "`https` is no protocol: there are tcp, udp and icmp; \
             write `tcp://api.example.org:443`",
        ),
        (
            "udp:10.0.0.1",
            "udp",
            "`udp` is a protocol: `://` comes between it and the target; write `udp://10.0.0.1`",
        ),
        (
            "tcp:/example.org",
            "tcp",
            "`tcp` is a protocol: `://` comes between it and the target; write `tcp://example.org`",
        ),
        (
            "TCP/[fd00::5]:80",
            "TCP",
            "`tcp` is a protocol: `://` comes between it and the target; \
             write `tcp://[fd00::5]:80`",
        ),
        (
            "tcp:80",
            "tcp",
            "`tcp` is a protocol: `://` comes between it and the target",
        ),
        (
            "10.0.0.1?",
            "?",
            "`?` cannot be in an address or a host name",
        ),
        (
            "git@forge.example",
            "git@",
            "a user name says nothing about where a connection goes; write `forge.example`",
        ),
        (
            "10.20.*",
            "10.20.*",
            "a network is written with the length of its prefix, not with `*`; \
             write `10.20.0.0/16`",
        ),
        (
            "10.0.0.1:443/tcp",
            "443/tcp",
            "invalid port `443/tcp`: ports are 1 to 65535; write `10.0.0.1:443`",
        ),
        (
            "example.org:80:90",
            "80:90",
            "invalid port `80:90`: ports are 1 to 65535",
        ),
        (
            "10.1.2.3/8",
            "10.1.2.3/8",
            "the address has bits set beyond its /8 prefix; write `10.0.0.0/8`",
        ),
        (
            "tcp://[fd00::1/64]:80",
            "fd00::1/64",
            "the address has bits set beyond its /64 prefix; write `tcp://[fd00::/64]:80`",
        ),
        (
            "10.0.0.0/33",
            "33",
            "invalid prefix length `33`: expected 0 to 32",
        ),
        (
            "10.0.0.0/",
            "",
            "invalid prefix length ``: expected 0 to 32",
        ),
        (
            "fd00::/129",
            "129",
            "invalid prefix length `129`: expected 0 to 128",
        ),
        (
            "10.0.0.0/08",
            "08",
            "invalid prefix length `08`: expected 0 to 32; write `10.0.0.0/8`",
        ),
        (
            "10.0.0.0/255.0.0.0",
            "255.0.0.0",
            "invalid prefix length `255.0.0.0`: expected 0 to 32; write `10.0.0.0/8`",
        ),
        (
            "10.0.0.1:",
            "",
            "invalid port ``: ports are 1 to 65535; write `10.0.0.1`",
        ),
        (
            "10.0.0.1:*",
            "*",
            "invalid port `*`: ports are 1 to 65535; write `10.0.0.1`",
        ),
        (
            "10.0.0.1:80-",
            "80-",
            "`80-` lacks an end: a range of ports has two, as in 5064-5065, up to 65535",
        ),
        (
            "10.0.0.1:-80",
            "-80",
            "`-80` lacks an end: a range of ports has two, as in 5064-5065, up to 65535",
        ),
        ("10.0.0.1:0", "0", "invalid port `0`: ports are 1 to 65535"),
        (
            "10.0.0.1:65536",
            "65536",
            "invalid port `65536`: ports are 1 to 65535",
        ),
        (
            "10.0.0.1:+80",
            "+80",
            "invalid port `+80`: ports are 1 to 65535",
        ),
        (
            "10.0.0.1:http",
            "http",
            "invalid port `http`: ports are 1 to 65535",
        ),
        (
            "10.0.0.1:80,,81",
            "",
            "invalid port ``: ports are 1 to 65535",
        ),
        (
            "10.0.0.1:080",
            "080",
            "invalid port `080`: ports are 1 to 65535; write `10.0.0.1:80`",
        ),
        (
            "10.0.0.1:90-80",
            "90-80",
            "the port range runs backwards; write `10.0.0.1:80-90`",
        ),
        (
            "icmp://10.0.0.1:80",
            "80",
            "icmp has no ports; write `icmp://10.0.0.1`",
        ),
    ] {
        let error = refused(text);
        assert_eq!(
            (&text[error.span()], error.to_string().as_str()),
            (caret, message)
        );
    }
}

#[test]
fn addresses_in_other_notations_are_refused() {
    for (text, problem, suggestion) in [
        (
            "010.0.0.1",
            Problem::LeadingZero("010".into()),
            Some("10.0.0.1"),
        ),
        (
            "192.168.001.005",
            Problem::LeadingZero("001".into()),
            Some("192.168.1.5"),
        ),
        (
            "0x0a.0.0.1",
            Problem::Hexadecimal("0x0a".into()),
            Some("10.0.0.1"),
        ),
        (
            "0xa000001",
            Problem::Hexadecimal("0xa000001".into()),
            Some("10.0.0.1"),
        ),
        ("0x7f.1", Problem::Hexadecimal("0x7f".into()), None),
        ("167772161", Problem::Ipv4, Some("10.0.0.1")),
        ("10.1", Problem::Ipv4, Some("10.0.0.1")),
        ("tcp://10.1:80", Problem::Ipv4, Some("tcp://10.0.0.1:80")),
        ("192.168.10", Problem::Ipv4, Some("192.168.10.0/24")),
        ("192.168.10/24", Problem::Ipv4, Some("192.168.10.0/24")),
        (
            "tcp://10.20/16:443",
            Problem::Ipv4,
            Some("tcp://10.20.0.0/16:443"),
        ),
        ("10/8", Problem::Ipv4, Some("10.0.0.0/8")),
        ("10.0.0.20-30", Problem::AddressRange, None),
        ("10.0.0.20-23", Problem::AddressRange, Some("10.0.0.20/30")),
        (
            "tcp://172.16.0.0-172.31.255.255:80",
            Problem::AddressRange,
            Some("tcp://172.16.0.0/12:80"),
        ),
        ("10.0.0.30-20", Problem::AddressRange, None),
        ("10.0.0.1.", Problem::Ipv4, Some("10.0.0.1")),
        ("10.0.0.256", Problem::Ipv4, None),
        ("1.2.3.4.5", Problem::Ipv4, None),
        ("2130706433", Problem::Ipv4, None),
        ("4294967296", Problem::Ipv4, None),
        ("fd00::1%eth0", Problem::Zone, Some("fd00::1")),
        ("[fd00::1%25eth0]:80", Problem::Zone, Some("[fd00::1]:80")),
        ("fe80::1%eth0", Problem::Zone, None),
        ("10.0.0.1%00", Problem::Percent, None),
        ("::ffff:10.0.0.1", Problem::Mapped, Some("10.0.0.1")),
        ("[::ffff:10.0.0.1]:80", Problem::Mapped, Some("10.0.0.1:80")),
        ("::ffff:10.0.0.0/104", Problem::Mapped, Some("10.0.0.0/8")),
        ("::ffff:0:0/96", Problem::Mapped, Some("0.0.0.0/0")),
        (
            "[10.0.0.1]:80",
            Problem::NeedlessBrackets,
            Some("10.0.0.1:80"),
        ),
        ("[fd00::]/64:80", Problem::Brackets, Some("[fd00::/64]:80")),
        (
            "fd00::1/64:80",
            Problem::MissingBrackets,
            Some("[fd00::/64]:80"),
        ),
        (
            "fd00::/64:80",
            Problem::MissingBrackets,
            Some("[fd00::/64]:80"),
        ),
        (
            "1:2:3:4:5:6:7:8:80",
            Problem::MissingBrackets,
            Some("[1:2:3:4:5:6:7:8]:80"),
        ),
        ("[fd00::1", Problem::Brackets, None),
        ("fd00::1]", Problem::Brackets, None),
        ("[]:80", Problem::NoTarget, None),
        ("[fd00::1]80", Problem::Brackets, None),
        ("fd00:::1", Problem::Ipv6("fd00:::1".into()), None),
        ("fd00::12345", Problem::Ipv6("fd00::12345".into()), None),
    ] {
        let error = refused(text);
        assert_eq!(error.problem(), &problem, "{text}");
        assert_eq!(error.suggestion(), suggestion, "{text}");
    }
}

#[test]
fn characters_that_deceive_are_refused() {
    for (text, odd, suggestion) in [
        (" 10.0.0.1", ' ', Some("10.0.0.1")),
        ("10.0.0.1\n", '\n', Some("10.0.0.1")),
        ("10.0.0.1\r\n10.0.0.2", '\r', None),
        ("10.0.0.1 0", ' ', None),
        ("10.0.0.1\0.example.org", '\0', None),
        ("10.0.0.1\u{7f}", '\u{7f}', Some("10.0.0.1")),
        ("10.0.0.\u{200b}1", '\u{200b}', None),
        ("１０.0.0.1", '１', Some("10.0.0.1")),
        ("１０．０．０．１", '１', Some("10.0.0.1")),
        ("10.0.0.\u{661}", '\u{661}', Some("10.0.0.1")),
        (" ０10.0.0.1", ' ', Some("10.0.0.1")),
        ("10\u{3002}0.0.1", '\u{3002}', None),
    ] {
        let error = refused(text);
        assert_eq!(error.problem(), &Problem::Character(odd), "{text}");
        assert_eq!(error.suggestion(), suggestion, "{text}");
        assert_eq!(&text[error.span()], odd.to_string());
        assert!(error.to_string().chars().all(|c| !c.is_control()));
    }
}

#[test]
fn what_no_jail_can_reach_is_no_rule() {
    for text in [
        "127.0.0.1",
        "127.0.0.0/8",
        "127.128.0.0/9",
        "0.0.0.0",
        "0.0.0.0/8",
        "224.0.0.251",
        "239.0.0.0/8",
        "255.255.255.255",
        "::1",
        "::",
        "ff02::fb",
        "ff00::/8",
        "fe80::1",
        "fe80::/10",
        "64:ff9b::127.0.0.1",
        "::127.0.0.1",
        "2002:7f00:1::1",
    ] {
        let error = refused(text);
        assert!(
            matches!(error.problem(), Problem::NeverReachable { .. }),
            "{text}: {error}"
        );
        assert_eq!(error.suggestion(), None);
    }
    assert_eq!(
        refused("tcp://127.0.0.1:5432").to_string(),
        "no rule can allow this: 127.0.0.1 is in 127.0.0.0/8 (loopback, RFC 1122), \
         which nothing inside can reach; `host_ports` opens single ports of the host's loopback"
    );
}

/// Each line: the rule, the bytes under the caret, the whole message.
#[test]
fn mistakes_in_names_are_named_with_their_correction() {
    let long_label = format!("{}.example", "a".repeat(64));
    let long_name = format!("{}example", "a.".repeat(124));
    for (text, caret, message) in [
        (
            "example.org.",
            ".",
            "a dot at the end is left out: every host name is a full one; write `example.org`",
        ),
        (
            "tcp://*.Example.org.:443",
            ".",
            "a dot at the end is left out: every host name is a full one; \
             write `tcp://*.Example.org:443`",
        ),
        (
            "a..example.org",
            "",
            "a host name has no empty parts between its dots; write `a.example.org`",
        ),
        (
            ".example.org",
            "",
            "a host name has no empty parts between its dots; write `*.example.org`",
        ),
        (
            "example.org/24",
            "/24",
            "a host name has neither a prefix length nor a path; write `example.org`",
        ),
        (
            "[example.org]:443",
            "[example.org]",
            "brackets are for IPv6 addresses; write `example.org:443`",
        ),
        (
            "exa%00mple.org",
            "%",
            "percent escapes are not decoded in rules",
        ),
        (
            "exa$mple.org",
            "$",
            "`$` cannot be in an address or a host name",
        ),
        (
            "-a.example.org",
            "-a",
            "`-a` begins or ends with a hyphen, which no part of a host name does",
        ),
        (
            "bücher.example",
            "ü",
            "ü (U+00FC) is not ASCII: write the name in its ASCII form, with `xn--`",
        ),
        (
            &long_label,
            &long_label[..64],
            "a part of a host name has at most 63 characters, this one has 64",
        ),
        (
            &long_name,
            &long_name,
            "a host name has at most 253 characters, this one has 255",
        ),
        (
            "*",
            "*",
            "`*` alone is every name: that is what `internet = true` is for",
        ),
        (
            "*x.com",
            "*x.com",
            "`*` stands for all subdomains, at the start and before a dot, as in `*.example.org`; \
             write `*.x.com`",
        ),
        (
            "a.*.example.com:443",
            "a.*.example.com",
            "`*` stands for all subdomains, at the start and before a dot, as in `*.example.org`; \
             write `*.example.com:443`",
        ),
        (
            "a.*.com",
            "a.*.com",
            "`*` stands for all subdomains, at the start and before a dot, as in `*.example.org`",
        ),
        (
            "*.*.example.com",
            "*.*.example.com",
            "`*` stands for all subdomains, at the start and before a dot, as in `*.example.org`; \
             write `*.example.com`",
        ),
        (
            "*.co.uk",
            "*.co.uk",
            "`*.co.uk` is too wide: anybody can have a name below `co.uk`, which is a public \
             suffix; name whose, as in `*.example.co.uk`",
        ),
        (
            "localhost:5432",
            "localhost",
            "`localhost` is the jail's own loopback; a port of the host's loopback is opened \
             by `host_ports`",
        ),
        (
            "udp://example.org:443",
            "udp://example.org:443",
            "UDP port 443 is QUIC, which hides the name it is for: a rule for a name cannot open \
             it, and programs fall back to TCP; write `tcp://example.org:443`",
        ),
    ] {
        let error = refused(text);
        assert_eq!(
            (&text[error.span()], error.to_string().as_str()),
            (caret, message)
        );
    }
}

#[test]
fn wildcards_over_public_suffixes_are_refused_and_others_are_not() {
    for text in [
        "*.com",
        "*.uk",
        "*.co.uk",
        "*.GitHub.io",
        "tcp://*.github.io:443",
        "*.ck",
        "*.anything.ck",
        "*.xn--p1ai",
    ] {
        let error = refused(text);
        assert!(
            matches!(error.problem(), Problem::PublicSuffix(_)),
            "{text}: {error}"
        );
    }
    for text in [
        "*.lan",
        "*.corp",
        "*.internal",
        "*.example.com",
        "*.example.co.uk",
        "*.user.github.io",
        "com",
        "github.io",
    ] {
        assert_eq!(rule(text).to_string(), text);
    }
}

#[test]
fn a_rule_covers_what_it_says_and_no_more() {
    let tcp = |text: &str| Flow::tcp(text.parse().unwrap()).unwrap();
    let udp = |text: &str| Flow::udp(text.parse().unwrap()).unwrap();
    let echo = |text: &str| Flow::echo(text.parse().unwrap());

    /// Whether the rule alone covers a flow.
    struct Alone(RuleSet);
    impl Alone {
        fn covers(&self, flow: &Flow) -> bool {
            self.0.for_address(flow).is_some()
        }
    }
    let rule = |text: &str| Alone([rule(text)].into_iter().collect());

    let all = rule("10.0.0.0/8");
    assert!(all.covers(&tcp("10.1.2.3:1")));
    assert!(all.covers(&udp("10.1.2.3:65535")));
    assert!(all.covers(&echo("10.1.2.3")));
    assert!(!all.covers(&tcp("11.0.0.0:1")));
    assert!(!all.covers(&tcp("[64:ff9b::10.0.0.1]:1")));

    let ports = rule("10.0.0.1:80,90-91");
    assert!(ports.covers(&tcp("10.0.0.1:80")));
    assert!(ports.covers(&udp("10.0.0.1:91")));
    assert!(!ports.covers(&tcp("10.0.0.1:89")));
    assert!(!ports.covers(&tcp("10.0.0.2:80")));
    assert!(!ports.covers(&echo("10.0.0.1")));

    assert!(!rule("udp://10.0.0.1").covers(&tcp("10.0.0.1:80")));
    assert!(rule("icmp://10.0.0.1").covers(&echo("10.0.0.1")));
    assert!(!rule("icmp://10.0.0.1").covers(&udp("10.0.0.1:80")));
    assert!(!rule("::/0").covers(&tcp("10.0.0.1:80")));
    assert!(!rule("::/0").covers(&tcp("[::ffff:10.0.0.1]:80")));
    assert!(rule("10.0.0.1").covers(&tcp("[::ffff:10.0.0.1]:80")));
}
