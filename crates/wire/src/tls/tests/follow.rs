//! What follows the hello. The sessions are the client's side of `openssl s_client`
//! with `openssl s_server`.

use proptest::prelude::*;

use super::*;

const SESSION: &[u8] = include_bytes!("captured/session_13.bin");
const SESSION_RETRY: &[u8] = include_bytes!("captured/session_13_retry.bin");
const SESSION_12: &[u8] = include_bytes!("captured/session_12.bin");
const SESSION_12_RESUMED: &[u8] = include_bytes!("captured/session_12_resumed.bin");

/// Follows a connection, in which more bytes come as `sizes` say. Gives how many
/// were released before the end, and how it ended.
fn follow(sent: &[u8], sizes: impl IntoIterator<Item = usize>) -> (usize, Next) {
    let first = hello(sent);
    let mut handshake = Handshake::after(&first);
    let mut released = first.length;
    let mut arrived = first.length;
    let mut sizes = sizes.into_iter();
    loop {
        match handshake.next(&sent[released..arrived]) {
            Next::Release(count) => {
                assert!(count > 0);
                released += count;
            }
            Next::NeedMore if arrived < sent.len() => {
                arrived = sent.len().min(arrived + sizes.next().unwrap_or(1));
            }
            end => return (released, end),
        }
    }
}

fn whole(sent: &[u8]) -> (usize, Next) {
    follow(sent, [sent.len()])
}

/// A first hello, and what is sent after it.
fn after_hello(rest: &[Vec<u8>]) -> Vec<u8> {
    [&[Draft::named(b"a.example").bytes()], rest]
        .concat()
        .concat()
}

fn change() -> Vec<u8> {
    typed_record(20, &[1])
}

#[test]
fn real_sessions_are_followed_until_they_are_encrypted() {
    for (sent, length) in [
        (SESSION, 317 + 6),
        (SESSION_RETRY, 301 + 6 + 402),
        (SESSION_12, 208),
        (SESSION_12_RESUMED, 416 + 6),
    ] {
        assert_eq!(whole(sent), (length, Next::Opaque));
        assert_eq!(follow(sent, []), (length, Next::Opaque), "byte by byte");
    }
}

#[test]
fn a_second_hello_with_another_name_is_refused() {
    let other = Draft::named(b"b.example").message();
    let same = Draft::named(b"A.example").message();
    for between in [
        vec![],
        vec![change()],
        vec![typed_record(21, &[1, 90]), change()],
    ] {
        for size in [1, 31, 32, 100, 1000] {
            let second = |message: &[u8]| {
                after_hello(&[between.clone(), vec![split(message, size)]].concat())
            };
            let refused = Next::Broken(Broken::OtherName);
            assert_eq!(whole(&second(&other)).1, refused);
            assert_eq!(follow(&second(&other), []).1, refused);
            let sent = second(&same);
            assert_eq!(whole(&sent), (sent.len(), Next::NeedMore));
            let none = second(&Draft::new().message());
            assert_eq!(whole(&none).1, refused);
        }
    }
}

#[test]
fn a_second_hello_that_is_too_long_is_not_taken_for_encrypted() {
    let long = [&[1, 1, 0, 1, 3, 3][..], &[0; 100]].concat();
    let sent = after_hello(&[change(), record(&long)]);
    assert_eq!(whole(&sent).1, Next::Broken(Broken::TooLong));
}

/// GnuTLS keeps what follows the hello for the message after it.
#[test]
fn a_second_hello_with_more_in_its_record_is_not_taken_for_encrypted() {
    let message = [&Draft::named(b"b.example").message()[..], &[20, 0, 0, 32]].concat();
    let sent = after_hello(&[change(), record(&message)]);
    assert_eq!(whole(&sent).1, Next::Broken(Broken::Trailing));
}

/// Servers take a second hello of nearly any version.
#[test]
fn a_second_hello_of_an_odd_version_is_not_taken_for_encrypted() {
    let mut odd = Draft::named(b"b.example").message();
    odd[4] = 4;
    let sent = after_hello(&[change(), record(&odd)]);
    assert!(matches!(whole(&sent).1, Next::Broken(_)));
}

#[test]
fn early_data_does_not_hide_a_second_hello() {
    let first = Draft::named(b"a.example").with(42, b"").bytes();
    let data = typed_record(23, &[9; 500]);
    let other = Draft::named(b"b.example").bytes();
    let sent = [&first[..], &data, &data, &change(), &other].concat();
    assert_eq!(whole(&sent).1, Next::Broken(Broken::OtherName));

    let sent = [&first[..], &data, &change(), &first, &data].concat();
    assert_eq!(whole(&sent), (sent.len(), Next::NeedMore));
    // Without the announcement a server does not take it.
    let sent = after_hello(&[data, change(), other]);
    assert_eq!(whole(&sent).1, Next::Opaque);
}

#[test]
fn what_is_no_record_is_refused() {
    let after = |rest: &[u8]| whole(&after_hello(&[rest.to_vec()])).1;
    assert_eq!(after(b"GET /"), Next::Broken(Broken::Interrupted(b'G')));
    assert_eq!(
        after(b"\x15\x02\x01\0\x02"),
        Next::Broken(Broken::RecordVersion(0x0201))
    );
    assert_eq!(
        after(b"\x15\x03\x01\x50\x00"),
        Next::Broken(Broken::RecordLength(0x5000))
    );
    // What follows an empty record is not its content.
    let empty = [record(b""), record(b"\x10")].concat();
    assert_eq!(after(&empty), Next::Broken(Broken::EmptyRecord));
    assert_eq!(
        after(&record(b"\x14\0\0\0")),
        Next::Broken(Broken::NoHello(20))
    );
}

proptest! {
    #[test]
    fn how_the_bytes_arrive_changes_nothing(
        sizes in prop::collection::vec(1_usize..40, 0..200),
        tail in prop::collection::vec(any::<u8>(), 0..60),
        session in 0_usize..4,
    ) {
        let session = [SESSION, SESSION_RETRY, SESSION_12, SESSION_12_RESUMED][session];
        let first = hello(session).length;
        for sent in [session.to_vec(), [&session[..first], &tail].concat()] {
            let (released, end) = follow(&sent, sizes.clone());
            let (all, expected) = whole(&sent);
            prop_assert_eq!(end, expected);
            prop_assert_eq!(released, all);
        }
    }
}
