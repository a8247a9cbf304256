//! A second reader of HTTP connections: all at once, believing what it reads, with
//! the parsers of `httparse` for all of it.

use httparse::{EMPTY_HEADER, Request, Status, parse_chunk_size, parse_headers};

/// Where a request starts, and the value of its Host field.
pub type Found = (usize, Option<String>);

/// The requests of a connection, as far as they are understood.
pub fn requests(sent: &[u8]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((host, end)) = request(&sent[at..]) {
        found.push((at, host));
        match end {
            Some(length) => at += length,
            None => break,
        }
    }
    found
}

/// The Host of a request, and where it ends, if that is known.
fn request(sent: &[u8]) -> Option<(Option<String>, Option<usize>)> {
    let mut fields = [EMPTY_HEADER; 256];
    let mut request = Request::new(&mut fields);
    let Ok(Status::Complete(head)) = request.parse(sent) else {
        return None;
    };
    let field = |name: &str| {
        let mut fields = request.headers.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name));
        field.map(|field| String::from_utf8_lossy(field.value).to_ascii_lowercase())
    };
    let body = &sent[head..];
    let end = if request.method == Some("CONNECT") {
        None
    } else if field("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        chunked(body)
    } else {
        let length = field("content-length").map_or(Some(0), |length| length.parse().ok());
        length.filter(|length| *length <= body.len())
    };
    Some((field("host"), end.map(|length| head + length)))
}

/// How long a chunked body is.
fn chunked(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let Ok(Status::Complete((line, size))) = parse_chunk_size(&body[at..]) else {
            return None;
        };
        at += line;
        if size == 0 {
            let mut trailers = [EMPTY_HEADER; 256];
            let Ok(Status::Complete((length, _))) = parse_headers(&body[at..], &mut trailers)
            else {
                return None;
            };
            return Some(at + length);
        }
        at = at
            .checked_add(usize::try_from(size).ok()?)?
            .checked_add(2)?;
        body.get(..at)?;
    }
}

/// Whether the first line is a request line to this reader.
pub fn starts_a_request(sent: &[u8]) -> bool {
    let mut fields = [EMPTY_HEADER; 256];
    let mut request = Request::new(&mut fields);
    let _ = request.parse(sent);
    request.version.is_some()
}
