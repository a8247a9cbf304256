//! ClientHellos made by hand: well formed ones that a server answers, and odd ones.

/// An extension: its type and data.
pub(crate) type Extension = (u16, Vec<u8>);

const SERVER_NAME: u16 = 0;
const KEY_SHARE: u16 = 51;
const PADDING: u16 = 21;
const X25519: u16 = 0x001d;
const X25519_MLKEM768: u16 = 0x11ec;

/// A hello for this name, as a client sends it.
pub(crate) fn hello(name: &[u8]) -> Vec<u8> {
    record(&message(&[server_name(&[name])]))
}

/// The message of a hello with what every server needs, and these extensions.
pub(crate) fn message(extensions: &[Extension]) -> Vec<u8> {
    let usual: [Extension; 4] = [
        (43, b"\x04\x03\x04\x03\x03".to_vec()),
        (13, vector(b"\x04\x03\x08\x04\x04\x01\x08\x07")),
        (10, vector(b"\x00\x1d\x00\x17")),
        (KEY_SHARE, vector(&share(X25519, &[9; 32]))),
    ];
    // One that is given replaces the usual one.
    let given = |kind: u16| extensions.iter().any(|(other, _)| *other == kind);
    let usual = usual.iter().filter(|(kind, _)| !given(*kind));
    let extensions: Vec<u8> = extensions
        .iter()
        .chain(usual)
        .flat_map(|(kind, data)| [kind.to_be_bytes().to_vec(), vector(data)].concat())
        .collect();
    let body = [
        b"\x03\x03",
        &[0x5a; 32][..],
        b"\x00",
        b"\x00\x08\x13\x01\x13\x02\xc0\x2b\xc0\x2f",
        b"\x01\x00",
        &vector(&extensions),
    ]
    .concat();
    let length = u32::try_from(body.len()).expect("a short hello");
    [&[1], &length.to_be_bytes()[1..], &body].concat()
}

/// The extension with these names, of which there should be one.
pub(crate) fn server_name(names: &[&[u8]]) -> Extension {
    let entry = |name: &&[u8]| [&[0][..], &vector(name)].concat();
    let list: Vec<u8> = names.iter().flat_map(entry).collect();
    (SERVER_NAME, vector(&list))
}

/// Shares of a key as long as those of clients that fear quantum computers.
pub(crate) fn post_quantum() -> Extension {
    let shares = [share(X25519_MLKEM768, &[7; 1216]), share(X25519, &[9; 32])];
    (KEY_SHARE, vector(&shares.concat()))
}

pub(crate) fn padding(length: usize) -> Extension {
    (PADDING, vec![0; length])
}

/// A message in one record.
pub(crate) fn record(message: &[u8]) -> Vec<u8> {
    records(message, 1 << 14)
}

/// A message in records of at most so many bytes.
pub(crate) fn records(message: &[u8], length: usize) -> Vec<u8> {
    let record = |part: &[u8]| [b"\x16\x03\x01", &vector(part)[..]].concat();
    message.chunks(length).flat_map(record).collect()
}

/// Bytes behind their length.
fn vector(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short vector");
    [&length.to_be_bytes(), bytes].concat()
}

fn share(group: u16, key: &[u8]) -> Vec<u8> {
    [&group.to_be_bytes()[..], &vector(key)].concat()
}
