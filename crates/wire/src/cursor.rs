//! The one way to read bytes: forward, by amounts that are checked.

/// The input ended before the value did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Short;

/// A position in a message. Copying it gives a second reader of the same bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    whole: &'a [u8],
    /// Never past the end of `whole`.
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(whole: &'a [u8]) -> Self {
        Self { whole, at: 0 }
    }

    /// The same message, read from `offset` on.
    pub(crate) fn jump(self, offset: usize) -> Result<Self, Short> {
        if offset > self.whole.len() {
            return Err(Short);
        }
        Ok(Self { at: offset, ..self })
    }

    /// Bytes read so far, counted from the start of the message.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// What was read since `earlier`, a position this cursor had before.
    pub(crate) fn since(&self, earlier: usize) -> &'a [u8] {
        self.whole.get(earlier..self.at).unwrap_or_default()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.whole.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Short> {
        let taken = self.rest().get(..count).ok_or(Short)?;
        self.at = self.at.checked_add(count).ok_or(Short)?;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        self.take(N)?.first_chunk().copied().ok_or(Short)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Short> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_fails_and_moves_nothing() {
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(cursor.u16(), Ok(0x0102));
        assert_eq!(cursor.u16(), Err(Short));
        assert_eq!(cursor.take(usize::MAX), Err(Short));
        assert_eq!(cursor.u8(), Ok(3));
        assert!(cursor.is_at_end());
        assert_eq!(cursor.since(1), [2, 3]);
    }

    #[test]
    fn a_jump_lands_inside_the_message_or_at_its_end() {
        let cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(cursor.jump(2).unwrap().rest(), [3]);
        assert!(cursor.jump(3).unwrap().is_at_end());
        assert!(cursor.jump(4).is_err());
    }
}
