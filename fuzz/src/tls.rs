//! The server side of `rustls` as the second opinion on hellos, and pieces to make
//! hellos of.

use rustls::server::Acceptor;

/// The name that the server finds, if it accepts the hello.
pub fn accepted_name(mut sent: &[u8]) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    while !sent.is_empty() {
        acceptor.read_tls(&mut sent).ok()?;
        if let Some(accepted) = acceptor.accept().ok()? {
            let hello = accepted.client_hello();
            return Some(hello.server_name().map(str::to_ascii_lowercase));
        }
    }
    None
}

/// A handshake message in records of at most so many bytes.
pub fn records(message: &[u8], size: usize) -> Vec<u8> {
    let record = |data: &[u8]| {
        let length = u16::try_from(data.len()).unwrap().to_be_bytes();
        [&[22, 3, 1], &length[..], data].concat()
    };
    message.chunks(size).flat_map(record).collect()
}

/// What records carry.
pub fn message(mut records: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = records {
        let (data, more) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        message.extend(data);
        records = more;
    }
    message
}

/// A ClientHello with these extensions that is right otherwise, and that a server
/// accepts if they are.
pub fn hello(extensions: &[u8]) -> Vec<u8> {
    // Signature schemes and groups: no server goes on without.
    let needed = b"\0\x0d\0\x04\0\x02\x04\x03\0\x0a\0\x04\0\x02\0\x1d";
    let extensions = [&needed[..], extensions].concat();
    let extensions = &extensions[..extensions.len().min(0xffff)];
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend(b"\0\0\x02\xc0\x2f\x01\0");
    body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend(extensions);
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1], &length[1..], &body].concat()
}

/// How many entries all server name extensions of a hello have, together.
pub fn count_names(message: &[u8]) -> usize {
    let word = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(message[at]);
    at += 2 + word(at);
    at += 1 + usize::from(message[at]);
    let mut count = 0;
    at += 2;
    while at < message.len() {
        let (kind, end) = (word(at), at + 4 + word(at + 2));
        at += 6;
        while kind == 0 && at < end {
            count += 1;
            at += 3 + word(at + 1);
        }
        at = end;
    }
    count
}
