//! Names as text, and what they say.

use super::*;

fn name(text: &str) -> Name {
    Name::from_text(text).unwrap()
}

/// The name that stands in the question of a message.
fn asked(labels: &[u8]) -> Name {
    let bytes = [&PLAIN[..12], labels, &PLAIN[25..]].concat();
    query(&bytes).name().clone()
}

#[test]
fn plain_names_have_a_text_and_others_have_none() {
    let text = |labels: &[u8]| asked(labels).text();
    assert_eq!(text(b"\x07ExAmple\x03org\0").unwrap(), "example.org");
    assert_eq!(text(b"\x05_a-1b\0").unwrap(), "_a-1b");
    for odd in [
        &b"\0"[..],
        b"\x01*\x03org\0",
        b"\x03a.b\0",
        b"\x02a\0\0",
        b"\x02a \0",
        b"\x02\xc3\xbc\0",
    ] {
        assert_eq!(text(odd), None, "{odd:?}");
    }
}

#[test]
fn text_becomes_a_name_if_it_is_plain() {
    assert_eq!(name("Example.ORG."), asked(b"\x07example\x03org\0"));
    let label = "a".repeat(63);
    let longest = [&*label, &label, &label, &label[..61]].join(".");
    assert_eq!(name(&longest).text().unwrap(), longest);
    for odd in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a..",
        "a b",
        "*.a",
        "b\u{fc}cher",
        &format!("{label}a"),
        &format!("{longest}a"),
    ] {
        assert_eq!(Name::from_text(odd), None, "{odd:?}");
    }
}

#[test]
fn what_a_name_says_below_another_is_measured() {
    let below = |text: &str| name(text).below(&name("example.org"));
    let measured = |labels, longest, length| {
        Some(Below {
            labels,
            longest,
            length,
        })
    };
    assert_eq!(below("example.org"), measured(0, 0, 0));
    assert_eq!(below("a.bcd.Example.org"), measured(2, 3, 4));
    assert_eq!(below("org"), None);
    assert_eq!(below("anexample.org"), None);
    assert_eq!(below("example.org.net"), None);
    // The end of a label that looks like the suffix does not count.
    let tricky = asked(b"\x0exx\x07example\x03org\0");
    assert_eq!(tricky.below(&name("example.org")), None);
}

#[test]
fn reverse_names_give_their_address() {
    let address = |text: &str| name(text).reversed_address().map(|ip| ip.to_string());
    assert_eq!(address("1.2.0.192.in-addr.arpa").unwrap(), "192.0.2.1");
    let zeros = "0.".repeat(23);
    let v6 = format!("1.{zeros}8.b.d.0.1.0.0.2.IP6.arpa");
    assert_eq!(address(&v6).unwrap(), "2001:db8::1");
    for other in [
        "2.0.192.in-addr.arpa",
        "01.2.0.192.in-addr.arpa",
        "256.2.0.192.in-addr.arpa",
        "x.1.2.0.192.in-addr.arpa",
        "in-addr.arpa",
        "1.ip6.arpa",
        &format!("0.{v6}"),
        &v6.replace('b', "g"),
        &v6.replace('b', "bb"),
        "1.2.0.192.example",
    ] {
        assert_eq!(address(other), None, "{other}");
    }
}

proptest! {
    #[test]
    fn text_and_name_are_the_same(text in "[a-z0-9_-]{1,63}(\\.[a-z0-9_-]{1,20}){0,5}") {
        prop_assert_eq!(name(&text).text().unwrap(), text);
    }
}
