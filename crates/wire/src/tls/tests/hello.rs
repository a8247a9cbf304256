//! The first hello.

use std::sync::Arc;

use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;

const EXAMPLE: Option<&str> = Some("example.org");

#[test]
fn hellos_of_real_clients_say_their_name() {
    let cases = [
        (OPENSSL, EXAMPLE),
        (OPENSSL_12, EXAMPLE),
        (OPENSSL_NO_NAME, None),
        (CURL, Some("api.example.org")),
        (PYTHON, EXAMPLE),
        (NODE, EXAMPLE),
    ];
    for (sent, expected) in cases {
        let hello = hello(sent);
        assert_eq!(hello.server_name.as_deref(), expected);
        assert_eq!(hello.length, sent.len());
        assert!(!hello.ech && !hello.early_data);
        every_prefix(sent);
    }
}

#[test]
fn a_prefix_of_a_hello_is_never_enough_and_what_follows_changes_nothing() {
    for sent in [OPENSSL, CURL, NODE] {
        for end in 0..sent.len() {
            assert_eq!(inspect(&sent[..end]), Inspection::NeedMore, "{end}");
        }
        let more = [sent, &typed_record(23, b"early data")].concat();
        assert_eq!(inspect(&more), inspect(sent));
    }
}

#[test]
fn a_hello_may_be_split_over_records_at_any_byte() {
    let message = &CURL[5..];
    for size in 1..message.len() {
        let sent = split(message, size);
        assert_eq!(name(&sent).as_deref(), Some("api.example.org"), "{size}");
        assert_eq!(hello(&sent).length, sent.len());
    }
    every_prefix(&split(message, 1));
}

#[test]
fn post_quantum_hellos_pass_and_hellos_beyond_the_bound_do_not() {
    let sized = |size: usize| {
        Draft::named(b"example.org")
            .with(51, &vec![9; size])
            .message()
    };
    for size in [1216, 10_000, 60_000] {
        assert_eq!(name(&split(&sized(size), 16_384)).as_deref(), EXAMPLE);
    }
    // In records of one byte, as large as key shares are.
    assert_eq!(name(&split(&sized(1216), 1)).as_deref(), EXAMPLE);
    assert_eq!(refusal(&split(&sized(10_000), 1)), Broken::Records);

    let too_long = [&[1, 1, 0, 1][..], &[0; 100]].concat();
    assert_eq!(refusal(&record(&too_long)), Broken::TooLong);
    let at_once = record(&too_long);
    assert_eq!(refusal(&at_once[..9]), Broken::TooLong);
}

#[test]
fn what_is_not_tls_is_known_at_once() {
    for first in 0..=u8::MAX {
        let undecided = matches!(first, 20..=24 | 0x80..=0xbf);
        let expected = if undecided {
            Inspection::NeedMore
        } else {
            Inspection::NotTls
        };
        assert_eq!(inspect(&[first]), expected, "{first}");
    }
    assert_eq!(inspect(b""), Inspection::NeedMore);
    for other in [
        &b"\x16\x16\x16"[..], // BitTorrent and others may start with anything
        b"\x15\x10",          // no version that any server takes
        b"\x80\x20\x04",      // a record of SSL 2, but no hello
        b"\x80\x00\x01\x2c",  // a call of Sun's RPC
        b"\xff\xfd\x01",      // telnet
    ] {
        assert_eq!(every_prefix(other), Inspection::NotTls, "{other:?}");
    }
}

#[test]
fn a_hello_of_ssl_2_is_refused() {
    for version in [[0, 2], [3, 0], [3, 3]] {
        let sent = [&b"\x80\x2e\x01"[..], &version, &[0; 43]].concat();
        assert_eq!(every_prefix(&sent), Inspection::Broken(Broken::Ssl2));
    }
}

/// What a lax server skips must not hide the hello behind it.
#[test]
fn a_record_before_the_hello_is_refused() {
    let alert = [typed_record(21, &[1, 100]), OPENSSL.to_vec()].concat();
    assert_eq!(
        every_prefix(&alert),
        Inspection::Broken(Broken::NoHandshake(21))
    );
    for kind in [20, 23, 24] {
        let sent = [typed_record(kind, &[1]), OPENSSL.to_vec()].concat();
        assert_eq!(refusal(&sent), Broken::NoHandshake(kind));
    }
}

#[test]
fn records_that_nobody_sends_are_refused() {
    let changed = |at: usize, value: &[u8]| {
        let mut sent = OPENSSL.to_vec();
        sent[at..at + value.len()].copy_from_slice(value);
        refusal(&sent)
    };
    for minor in [1, 2, 3, 4] {
        let mut sent = OPENSSL.to_vec();
        sent[2] = minor;
        assert_eq!(name(&sent).as_deref(), EXAMPLE);
    }
    assert_eq!(changed(2, &[0]), Broken::RecordVersion(0x0300));
    assert_eq!(changed(2, &[5]), Broken::RecordVersion(0x0305));
    assert_eq!(changed(3, &[0, 0]), Broken::EmptyRecord);
    assert_eq!(changed(3, &[0x40, 1]), Broken::RecordLength(0x4001));
    assert_eq!(changed(5, &[2]), Broken::NoHello(2));

    let message = &OPENSSL[5..];
    let (first, second) = message.split_at(100);
    let interrupted = |between: Vec<u8>| [record(first), between, record(second)].concat();
    assert_eq!(name(&interrupted(Vec::new())).as_deref(), EXAMPLE);
    assert_eq!(refusal(&interrupted(record(b""))), Broken::EmptyRecord);
    let alert = typed_record(21, &[1, 0]);
    assert_eq!(refusal(&interrupted(alert)), Broken::Interrupted(21));
}

#[test]
fn a_second_message_in_the_record_of_the_hello_is_refused() {
    let message = &OPENSSL[5..];
    for more in [&b"\x01"[..], b"\0", message] {
        let sent = record(&[message, more].concat());
        assert_eq!(every_prefix(&sent), Inspection::Broken(Broken::Trailing));
    }
    let (first, second) = message.split_at(100);
    let sent = [record(first), record(&[second, b"\x01"].concat())].concat();
    assert_eq!(refusal(&sent), Broken::Trailing);
}

#[test]
fn lengths_inside_the_hello_must_fit() {
    let plain = Draft::named(b"example.org");
    assert_eq!(name(&plain.bytes()).as_deref(), EXAMPLE);
    let body = plain.message()[4..].to_vec();
    let changed = |at: usize, value: u8| {
        let mut body = body.clone();
        body[at] = value;
        refusal(&record(&message(1, &body)))
    };
    assert_eq!(changed(34, 33), Broken::Length, "session");
    assert_eq!(changed(36, 0), Broken::Length, "no cipher suites");
    assert_eq!(changed(36, 3), Broken::Length, "half a cipher suite");
    assert_eq!(changed(39, 0), Broken::Length, "no compression method");
    assert_eq!(changed(42, 1), Broken::Length, "extensions");
    assert_eq!(changed(0, 2), Broken::HelloVersion(0x0203));
    assert_eq!(changed(1, 0), Broken::HelloVersion(0x0300));
    for end in 0..body.len() {
        let cut = record(&message(1, &body[..end]));
        // Old clients have no extensions.
        if end == 41 {
            assert_eq!(name(&cut), None);
        } else {
            assert_eq!(refusal(&cut), Broken::Length, "{end}");
        }
    }
    let trailing = [&body[..], b"!"].concat();
    assert_eq!(refusal(&record(&message(1, &trailing))), Broken::Length);
}

#[test]
fn a_server_name_is_one_plain_host_name() {
    let listed = |names: &[(u8, &[u8])]| refusal(&Draft::new().with(0, &name_list(names)).bytes());
    assert_eq!(listed(&[]), Broken::Names);
    assert_eq!(listed(&[(0, b"a.org"), (0, b"b.org")]), Broken::Names);
    assert_eq!(listed(&[(0, b"a.org"), (1, b"b.org")]), Broken::Names);
    assert_eq!(listed(&[(1, b"a.org")]), Broken::NameType(1));

    let named = |name: &[u8]| refusal(&Draft::named(name).bytes());
    for odd in [
        &b""[..],
        b"example.org\0",
        b"a\0.example.org",
        b"exa mple.org",
        b"example.org\r\n",
        b"example.org/",
        b"user@example.org",
        b"*.example.org",
        b"[fd00::1]",
        b"b\xc3\xbccher.example",
        &[b'a'; 256],
    ] {
        assert_eq!(named(odd), Broken::Name, "{odd:?}");
    }
    for (plain, expected) in [
        (&b"EXAMPLE.Org"[..], "example.org"),
        (b"_dmarc.a-b.example.org.", "_dmarc.a-b.example.org."),
        (b"10.0.0.1", "10.0.0.1"),
    ] {
        assert_eq!(
            name(&Draft::named(plain).bytes()).as_deref(),
            Some(expected)
        );
    }
    assert!(name(&Draft::named(&[b'a'; 255]).bytes()).is_some());
}

#[test]
fn a_server_name_stands_once_and_exactly() {
    let one = name_list(&[(0, b"a.org")]);
    let twice = Draft::new().with(0, &one).with(13, b"x").with(0, &one);
    assert_eq!(refusal(&twice.bytes()), Broken::Twice(0));
    assert_eq!(refusal(&Draft::new().with(0, b"").bytes()), Broken::Length);
    let longer = [&one[..], b"!"].concat();
    assert_eq!(
        refusal(&Draft::new().with(0, &longer).bytes()),
        Broken::Length
    );
    let cut = &one[..one.len() - 1];
    assert_eq!(refusal(&Draft::new().with(0, cut).bytes()), Broken::Length);
}

#[test]
fn encrypted_hellos_and_early_data_are_reported() {
    let plain = Draft::named(b"public.example");
    let seen = |draft: Draft| {
        let hello = hello(&draft.bytes());
        assert_eq!(hello.server_name.as_deref(), Some("public.example"));
        (hello.ech, hello.early_data)
    };
    assert_eq!(seen(plain.clone()), (false, false));
    assert_eq!(
        seen(plain.clone().with(0xfe0d, b"\0whatever")),
        (true, false)
    );
    assert_eq!(seen(plain.clone().with(0xffce, b"")), (true, false));
    assert_eq!(seen(plain.with(42, b"")), (false, true));
}

/// What the client of rustls sends first.
fn rustls_hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut sent = Vec::new();
    client.write_tls(&mut sent).unwrap();
    sent
}

/// The name that the server of rustls finds, if it accepts the hello.
fn rustls_name(mut sent: &[u8]) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut sent).unwrap();
    let accepted = acceptor.accept().ok()??;
    Some(accepted.client_hello().server_name().map(str::to_owned))
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        every_prefix(&bytes);
        every_prefix(&[b"\x16\x03\x01", &bytes[..]].concat());
        every_prefix(&record(&message(1, &bytes)));
    }

    #[test]
    fn what_another_implementation_writes_is_read(
        wanted in "[a-z]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z]([a-z0-9-]{0,20}[a-z0-9])?){0,5}",
        size in 1_usize..300,
    ) {
        let sent = rustls_hello(&wanted);
        let expected = Some(wanted);
        prop_assert_eq!(name(&sent), expected.clone());
        prop_assert_eq!(rustls_name(&sent), Some(expected.clone()));
        prop_assert_eq!(name(&split(&sent[5..], size)), expected);
    }

    /// Whatever a server accepts is refused here, or says the same name.
    #[test]
    fn a_damaged_hello_has_the_name_that_a_server_finds(
        damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..3),
        named in any::<bool>(),
    ) {
        let mut sent = if named { CURL.to_vec() } else { OPENSSL_NO_NAME.to_vec() };
        for (at, value) in damage {
            let at = at.index(sent.len());
            sent[at] = value;
        }
        every_prefix(&sent);
        if let Some(theirs) = rustls_name(&sent) {
            match inspect(&sent) {
                Inspection::Hello(hello) => prop_assert_eq!(hello.server_name, theirs),
                Inspection::Broken(_) => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

/// Some servers take a first record of any version below 16.0, and skip an alert before it.
#[test]
fn a_first_record_of_an_odd_version_or_type_is_not_let_through_unread() {
    for odd in [
        &b"\x16\x02\x01"[..],
        b"\x16\x00\x00",
        b"\x16\x0f\xff",
        b"\x15\x03\x05\x00\x02\x01\x5a",
        b"\x15\x02\x01",
        b"\x17\x03\x03\xff\xff",
    ] {
        let seen = every_prefix(odd);
        assert!(matches!(seen, Inspection::Broken(_)), "{odd:?}: {seen:?}");
    }
}
