//! HTTPS records: read, and stripped of what undermines the check of names.

use super::filter::{Draft, QUESTION, filtered};
use super::*;

/// The data of a record with these parameters, for the owner itself.
fn data(parameters: &[(u16, &[u8])]) -> Vec<u8> {
    let mut data = vec![0, 1, 0];
    for (key, value) in parameters {
        data.extend(key.to_be_bytes());
        data.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        data.extend(*value);
    }
    data
}

fn draft(data: &[u8]) -> Draft {
    Draft::new().answer(QUESTION, Type::HTTPS, data)
}

fn service(data: &[u8]) -> Result<Service, Malformed> {
    let asked = query(PLAIN);
    let accepted = draft(data).accepted(&asked);
    let answer = Answer::open(&asked, &accepted)?;
    match &answer.records()[0].data {
        Data::Service(service) => Ok(service.clone()),
        other => panic!("{other:?}"),
    }
}

const V4: &[u8] = &[192, 0, 2, 1, 10, 0, 0, 1];
const V6: &[u8] = &[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const FULL: &[(u16, &[u8])] = &[
    (0, &[0, 1, 0, 4, 0, 5]),
    (1, b"\x02h3\x02h2"),
    (3, &[0x20, 0xfb]),
    (4, V4),
    (5, b"a key"),
    (6, V6),
    (7, b"/dns-query{?dns}"),
];

fn port(service: &Service) -> Option<u16> {
    service.value(3).try_into().ok().map(u16::from_be_bytes)
}

#[test]
fn a_record_says_where_the_service_is() {
    let full = service(&data(FULL)).unwrap();
    assert_eq!((full.priority, port(&full)), (1, Some(8443)));
    assert_eq!(full.target_wire, [0]);
    assert_eq!(full.value(1), b"\x02h3\x02h2");
    let hints: Vec<String> = full.hints().map(|address| address.to_string()).collect();
    assert_eq!(hints, ["192.0.2.1", "10.0.0.1", "fd00::1"]);
    assert!(full.has_ech());

    let alias = service(b"\0\0\x03CDN\x03net\0").unwrap();
    assert_eq!((alias.priority, port(&alias)), (0, None));
    assert_eq!(alias.target_wire, b"\x03CDN\x03net\0");
    assert!(!alias.has_ech() && alias.hints().count() == 0);
}

/// The parameters that the client sees if it may see the hints in `keep`.
fn seen(parameters: &[(u16, &[u8])], keep: &[&str]) -> Vec<u8> {
    let keep: Vec<IpAddr> = keep.iter().map(|text| text.parse().unwrap()).collect();
    let bytes = filtered(&draft(&data(parameters)), PLAIN, |address| {
        keep.contains(&address)
    });
    bytes[PLAIN.len() + 12..].to_vec()
}

#[test]
fn keys_that_hide_names_and_hints_that_may_not_be_used_are_taken_out() {
    assert_eq!(
        seen(FULL, &["10.0.0.1"]),
        data(&[
            (0, &[0, 1, 0, 4]),
            (1, b"\x02h3\x02h2"),
            (3, &[0x20, 0xfb]),
            (4, &[10, 0, 0, 1]),
            (7, b"/dns-query{?dns}"),
        ])
    );
    assert_eq!(
        seen(FULL, &["fd00::1"]),
        data(&[
            (0, &[0, 1]),
            (1, b"\x02h3\x02h2"),
            (3, &[0x20, 0xfb]),
            (6, V6),
            (7, b"/dns-query{?dns}"),
        ])
    );
    // A list of what must be understood is not left empty.
    assert_eq!(seen(&[(0, &[0, 5]), (5, b"a key")], &[]), data(&[]));
    let harmless: &[(u16, &[u8])] = &[(0, &[0, 1]), (1, b"\x02h2"), (4, V4), (9, b"x")];
    assert_eq!(seen(harmless, &["192.0.2.1", "10.0.0.1"]), data(harmless));
}

#[test]
fn a_compressed_target_is_written_out() {
    let compressed = draft(b"\0\x01\x03www\xc0\x0c");
    let bytes = filtered(&compressed, PLAIN, |_| false);
    assert!(bytes.ends_with(b"\0\x01\x03www\x07ExAmple\x03org\0"));
}

#[test]
fn parameters_that_clients_would_refuse_are_refused() {
    let wrong = Err(Malformed::Data(Type::HTTPS));
    for parameters in [
        &[(1, &b"\x02h2"[..]), (1, b"\x02h2")][..],
        &[(4, V4), (3, &[1, 0])],
        &[(0, b"")],
        &[(0, &[0])],
        &[(0, &[0, 0])],
        &[(0, &[0, 4, 0, 1])],
        &[(0, &[0, 1, 0, 1])],
        &[(1, b"")],
        &[(1, b"\x03h2")],
        &[(1, b"\0\x02h2")],
        &[(3, &[1])],
        &[(4, b"")],
        &[(4, &[1, 2, 3])],
        &[(6, V4)],
    ] {
        assert_eq!(service(&data(parameters)), wrong, "{parameters:?}");
    }
    let full = data(FULL);
    for end in 0..full.len() {
        let whole = (0..=FULL.len()).any(|count| data(&FULL[..count]).len() == end);
        assert_eq!(service(&full[..end]).is_ok(), whole, "{end}");
    }
}
