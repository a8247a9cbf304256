use super::*;

fn wire(bytes: &[u8]) -> Option<String> {
    Hostname::from_wire(bytes).map(|name| name.to_string())
}

/// N9 of the list of attacks: what other programs read as another name, or as an
/// address.
const ODD: [&[u8]; 32] = [
    b"",
    b".",
    b"..",
    b"example.org..",
    b".example.org",
    b"a..example.org",
    b"example.org\0",
    b"example.org\0.evil.example",
    b"example.org%00.evil.example",
    b"example.org\r\n",
    b"example.org\nevil.example",
    b"example.org ",
    b" example.org",
    b"example.org:443",
    b"user@example.org",
    b"example.org/path",
    b"*.example.org",
    b"[example.org]",
    b"[::1]",
    b"::1",
    b"fe80::1%eth0",
    b"127.0.0.1",
    b"127.1",
    b"0x7f.1",
    b"0X7F000001",
    b"0177.0.0.01",
    b"2130706433",
    b"example.0x7f",
    b"-a.example.org",
    b"a-.example.org",
    "b\u{fc}cher.example".as_bytes(),
    b"b\xfccher.example",
];

#[test]
fn names_of_the_wire_have_one_form() {
    for (bytes, name) in [
        (&b"example.org"[..], "example.org"),
        (b"example.org.", "example.org"),
        (b"eXaMpLe.ORG", "example.org"),
        (b"_dmarc.example.org", "_dmarc.example.org"),
        (b"xn--bcher-kva.example", "xn--bcher-kva.example"),
        (b"1.0.0.127.in-addr.arpa", "1.0.0.127.in-addr.arpa"),
        (b"printer", "printer"),
        (b"0x7f.example", "0x7f.example"),
    ] {
        assert_eq!(wire(bytes).as_deref(), Some(name));
    }
}

#[test]
fn what_is_odd_is_no_name_from_either_side() {
    for bytes in ODD {
        assert_eq!(wire(bytes), None, "{}", bytes.escape_ascii());
        if let Ok(text) = std::str::from_utf8(bytes) {
            assert!(text.parse::<Hostname>().is_err(), "{text:?}");
        }
    }
}

#[test]
fn names_are_as_long_as_dns_has_them() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(longest.len(), 253);
    assert_eq!(wire(longest.as_bytes()), Some(longest.clone()));
    assert_eq!(
        wire(format!("{longest}.").as_bytes()),
        Some(longest.clone())
    );
    assert_eq!(wire(format!("{longest}b").as_bytes()), None);
    assert_eq!(wire(format!("{label}a.example").as_bytes()), None);
}

#[test]
fn labels_are_joined_but_never_cut() {
    let join = |labels: &[&str]| {
        Hostname::from_labels(labels.iter().map(|label| label.as_bytes()))
            .map(|name| name.to_string())
    };
    assert_eq!(
        join(&["WWW", "example", "org"]).as_deref(),
        Some("www.example.org")
    );
    for odd in [
        &[][..],
        &[""],
        &["", "org"],
        &["example", ""],
        &["www.example", "org"],
        &["example.", "org"],
        &["example", "org."],
        &["example\0", "org"],
        &["127", "0", "0", "1"],
    ] {
        assert_eq!(join(odd), None, "{odd:?}");
    }
    let many = vec!["a"; 128];
    assert_eq!(join(&many), None);
}

#[test]
fn a_mistake_in_a_name_has_its_correction() {
    for (text, message) in [
        ("", "there is no address and no name"),
        (
            "example.org.",
            "a dot at the end is left out: every host name is a full one; write `example.org`",
        ),
        (
            "0x7f.1",
            "`0x7f.1` is an address or meant as one: no host name ends in a number",
        ),
        (
            "example.org\n",
            "the character \\n (U+000A) cannot be in a rule; write `example.org`",
        ),
        (
            "ｅxample.org",
            "the character ｅ (U+FF45) cannot be in a rule; write `example.org`",
        ),
    ] {
        assert_eq!(text.parse::<Hostname>().unwrap_err().to_string(), message);
    }
}

#[test]
fn below_means_by_whole_labels() {
    let name = |text: &str| text.parse::<Hostname>().unwrap();
    let domain = name("example.org");
    assert!(name("www.example.org").is_below(&domain));
    assert!(name("a.b.example.org").is_below(&domain));
    assert!(!domain.is_below(&domain));
    assert!(!name("badexample.org").is_below(&domain));
    assert!(!name("example.org.evil.example").is_below(&domain));
}
