//! What the fuzz targets share: how an input is cut, and second opinions on what
//! the crates under test make of it.
//!
//! Nothing here is careful. A panic, be it an index out of bounds in a second
//! opinion, is a finding.

pub mod dns;
pub mod http;
pub mod ip;
pub mod tls;

/// Cuts an input into two. Its first two bytes say how long the first part is;
/// if they promise too much, that is everything.
pub fn two_parts(input: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = input.split_first_chunk::<2>() else {
        return (input, &[]);
    };
    let length = usize::from(u16::from_be_bytes(*length));
    rest.split_at(length.min(rest.len()))
}
