//! Lines in bytes that arrive bit by bit.

use super::Broken;

/// Looks at each byte once, however often it is asked about a line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// There is no end of a line before this.
    seen: usize,
}

impl Lines {
    /// The line that begins at `start`, without its end, and where the next one
    /// begins. Nothing while the line is not complete.
    ///
    /// A line ends with CR LF; neither stands elsewhere. Servers differ in what
    /// they make of other endings.
    pub(super) fn line<'a>(
        &mut self,
        held: &'a [u8],
        start: usize,
    ) -> Result<Option<(&'a [u8], usize)>, Broken> {
        let from = self.seen.max(start);
        let fresh = held.get(from..).unwrap_or_default();
        let Some(offset) = fresh.iter().position(|byte| b"\r\n\0".contains(byte)) else {
            self.seen = held.len();
            return Ok(None);
        };
        let at = from.saturating_add(offset);
        self.seen = at;
        match fresh.get(offset..).unwrap_or_default() {
            [b'\r', b'\n', ..] => {
                let line = held.get(start..at).unwrap_or_default();
                Ok(Some((line, at.saturating_add(2))))
            }
            [b'\r'] => Ok(None),
            [b'\r', ..] => Err(Broken::BareCr),
            [b'\n', ..] => Err(Broken::BareLf),
            _ => Err(Broken::Nul),
        }
    }
}

/// RFC 9110 §5.6.2: what methods and names of fields are made of.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
