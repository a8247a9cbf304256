//! The lines of a chunked body (RFC 9112 §7.1).

use super::head::is_framing;
use super::lines::is_token;
use super::{Broken, MAX_FIELDS, MAX_HEAD};

/// The longest line in front of a chunk. Extensions are known in theory.
pub(super) const MAX_LINE: usize = 4096;

pub(super) fn size(line: &[u8]) -> Result<u64, Broken> {
    let end = line.iter().position(|byte| *byte == b';');
    let (digits, extension) = line.split_at(end.unwrap_or(line.len()));
    let plain = |byte: &u8| matches!(byte, b'\t' | b' '..=0x7e);
    // Fifteen digits stay below what any reader overflows at.
    if !(1..=15).contains(&digits.len())
        || !digits.iter().all(u8::is_ascii_hexdigit)
        || !extension.iter().all(plain)
    {
        return Err(Broken::Chunk);
    }
    let digits = str::from_utf8(digits).map_err(|_| Broken::Chunk)?;
    u64::from_str_radix(digits, 16).map_err(|_| Broken::Chunk)
}

/// What there was of trailers so far.
#[derive(Debug, Default)]
pub(super) struct Trailers {
    bytes: usize,
    fields: usize,
}

impl Trailers {
    /// How long the next line may be.
    pub(super) fn room(&self) -> usize {
        MAX_HEAD.saturating_sub(self.bytes)
    }

    /// Adds a line that has so many bytes with its end.
    pub(super) fn add(&mut self, line: &[u8], bytes: usize) -> Result<(), Broken> {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.ok_or(Broken::Trailer)?);
        let plain = |byte: &u8| matches!(byte, b'\t' | b' '..=0x7e | 0x80..);
        self.bytes = self.bytes.saturating_add(bytes);
        self.fields = self.fields.saturating_add(1);
        if name.is_empty()
            || !name.iter().all(|byte| is_token(*byte))
            || !value.iter().all(plain)
            // A server that merges trailers into the head would take this for it.
            || is_framing(name)
            || self.fields > MAX_FIELDS
        {
            return Err(Broken::Trailer);
        }
        Ok(())
    }
}
