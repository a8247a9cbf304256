//! Hellos in the middle of something else.

use super::*;

/// What is found in bytes that come in pieces of this size, and after how many bytes.
fn found(sent: &[u8], size: usize) -> Vec<Late> {
    let mut search = Search::default();
    let mut spare = SPARE_WORK;
    let mut all = Vec::new();
    for piece in sent.chunks(size) {
        let passed = search.pass(piece, &mut spare, |late| {
            all.push(late);
            Ok::<_, ()>(())
        });
        assert_eq!(passed, Ok(()));
    }
    all
}

fn names(sent: &[u8], size: usize) -> Vec<Option<String>> {
    let name = |late| match late {
        Late::Hello(hello) => hello.server_name,
        Late::Broken(why) => panic!("{why}"),
    };
    found(sent, size).into_iter().map(name).collect()
}

const SIZES: [usize; 6] = [1, 2, 7, 61, 1000, usize::MAX];

#[test]
fn a_hello_is_found_wherever_it_stands_and_however_it_comes() {
    let ciphertext: Vec<u8> = (0..5000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 11).to_le_bytes()[0])
        .collect();
    for before in [
        &b""[..],
        b"EHLO x\r\nSTARTTLS\r\n",
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"\x16",
        b"\x16\x03",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03",
        b"\x16\x03\x01\x00\x01\x01",
        &ciphertext,
    ] {
        for hello in [OPENSSL, OPENSSL_12, CURL, PYTHON, NODE] {
            let Inspection::Hello(expected) = inspect(hello) else {
                panic!("a hello");
            };
            let sent = [before, hello, &ciphertext].concat();
            for size in SIZES {
                assert_eq!(
                    names(&sent, size),
                    std::slice::from_ref(&expected.server_name),
                    "{before:?} {size}"
                );
            }
        }
    }
    assert_eq!(names(OPENSSL_NO_NAME, 1), [None]);
}

#[test]
fn a_hello_in_small_records_is_found() {
    let message = Draft::named(b"a.example").message();
    for size in [1, 2, 3, 40] {
        let records: Vec<u8> = message.chunks(size).flat_map(record).collect();
        for pieces in SIZES {
            assert_eq!(names(&records, pieces), [Some("a.example".to_owned())]);
        }
    }
}

/// A hello that is accepted at the start of a connection is accepted later, too.
#[test]
fn the_longest_hello_is_found_and_a_longer_one_is_not() {
    let short = Draft::named(b"a.example").with(21, &[]).message().len() - 4;
    for (length, is_hello) in [(MAX_HELLO, true), (MAX_HELLO + 1, false)] {
        let padding = vec![0; length - short];
        let message = Draft::named(b"a.example").with(21, &padding).message();
        let sent = split(&message, 16_384);
        let is_first = matches!(inspect(&sent), Inspection::Hello(_));
        let is_late = matches!(found(&sent, 1000)[..], [Late::Hello(_)]);
        assert_eq!((is_first, is_late), (is_hello, is_hello), "{length}");
    }
}

/// Uploads to hosts that are allowed by name are not cut by chance.
#[test]
fn nothing_is_found_in_noise_and_little_of_it_is_kept() {
    let mut state = 1_u64;
    let mut search = Search::default();
    let mut most = 0;
    for _ in 0..256 {
        let noise: Vec<u8> = (0..16_384)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        assert_eq!(search.pass(&noise, &mut 0, Err), Ok::<(), Late>(()));
        most = most.max(search.kept());
    }
    assert!(most < 1 << 19, "{most}");
}

/// Who reads strictly refuses; who does not must find no way past.
#[test]
fn what_only_a_lax_server_reads_is_broken() {
    let hello = Draft::named(b"a.example").bytes();
    let message = Draft::named(b"a.example").message();
    let version = |major, minor| {
        let mut bytes = hello.clone();
        (bytes[1], bytes[2]) = (major, minor);
        bytes
    };
    let (first, second) = message.split_at(20);
    let interrupted = [
        record(first),
        b"\x15\x03\x01\0\x02\x01\0".to_vec(),
        record(second),
    ]
    .concat();
    let empty = [record(first), b"\x16\x03\x01\0\0".to_vec(), record(second)].concat();
    let trailing = record(&[&message[..], &[0; 9]].concat());
    let twice = Draft::named(b"a.example")
        .with(0, &name_list(&[(0, b"b.example")]))
        .bytes();
    let two_names = Draft::new()
        .with(0, &name_list(&[(0, b"a.example"), (0, b"b.example")]))
        .bytes();
    let mut long = message.clone();
    long[1] = 1;
    // OpenSSL looks at no version of a hello that names others, Java at none of a record, and GnuTLS
    // takes parts of a hello in records of SSL 2.
    let mut odd = hello.clone();
    odd[9] = 0x10;
    let ssl2 = |data: &[u8]| [&[0x80, u8::try_from(data.len()).unwrap()], data].concat();
    let (middle, last) = second.split_at(10);
    for sent in [
        odd,
        version(0x7f, 1),
        [record(first), ssl2(middle), record(last)].concat(),
        [ssl2(&message[..1]), record(&message[1..])].concat(),
        version(3, 9),
        version(0, 0),
        version(15, 255),
        interrupted,
        empty,
        trailing,
        twice,
        two_names,
        record(&long),
    ] {
        let sent = [b"STARTTLS\r\n", &sent[..]].concat();
        for size in SIZES {
            let found = found(&sent, size);
            assert!(
                matches!(found[..], [Late::Broken(_)]),
                "{found:?}: {sent:?}"
            );
        }
    }
}

#[test]
fn a_hello_inside_another_is_found_before_that_one_ends() {
    let inner = Draft::named(b"inner.example").bytes();
    let outer = Draft::named(b"outer.example")
        .with(21, &[b"\r\nSTARTTLS\r\n", &inner[..], &[0; 4000]].concat())
        .bytes();
    let position = outer
        .windows(inner.len())
        .position(|place| place == inner)
        .unwrap();
    for size in SIZES {
        let mut all = names(&outer, size);
        all.sort();
        assert_eq!(
            all,
            ["inner.example", "outer.example"].map(|name| Some(name.to_owned()))
        );
        let part = &outer[..position + inner.len()];
        assert_eq!(names(part, size), [Some("inner.example".to_owned())]);
        assert_eq!(names(&part[..part.len() - 1], size), []);
    }
}

#[test]
fn too_many_hellos_inside_each_other_are_refused_and_little_is_kept() {
    let start = &Draft::named(b"a.example").with(21, &[0; 8000]).bytes()[..60];
    let sent = start.repeat(60);
    for size in SIZES {
        let broken = found(&sent, size);
        assert!(broken.contains(&Late::Broken(Broken::Nested)));
    }
    let mut search = Search::default();
    for byte in [0x16, 3, 1, 0x40, 0, 7].repeat(20_000) {
        search.pass(&[byte], &mut 0, Err).unwrap();
        assert!(search.kept() < 64);
    }
}
