//! The Internet checksum (RFC 1071): the ones' complement of the ones'
//! complement sum of all 16-bit words.

/// A sum under way. Feed it whole fields: every part but the last must have an
/// even length, because a part always starts a new word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(u64);

impl Sum {
    pub(super) fn add(self, part: &[u8]) -> Self {
        let (words, odd) = part.as_chunks::<2>();
        let whole: u64 = words
            .iter()
            .map(|word| u64::from(u16::from_be_bytes(*word)))
            .fold(0, u64::wrapping_add);
        let last = odd
            .first()
            .map_or(0, |byte| u64::from(u16::from_be_bytes([*byte, 0])));
        // 64 bits hold the sum of 2^48 words: no packet comes near.
        Self(self.0.wrapping_add(whole).wrapping_add(last))
    }

    /// The value for the checksum field, if that field was summed as zero.
    pub(super) fn finish(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff).wrapping_add(sum >> 16);
        }
        let folded = u16::try_from(sum).unwrap_or(u16::MAX);
        (!folded).to_be_bytes()
    }

    /// Whether the bytes summed, their checksum field included, are intact.
    pub(super) fn holds(self) -> bool {
        self.finish() == [0, 0]
    }
}

/// `message` with the checksum at `offset` that `sum` makes of it while that
/// field is zero.
pub(super) fn with_checksum(
    mut message: Vec<u8>,
    offset: usize,
    sum: impl Fn(&[u8]) -> Sum,
) -> Vec<u8> {
    write_at(&mut message, offset, [0, 0]);
    let value = sum(&message).finish();
    write_at(&mut message, offset, value);
    message
}

/// Writes a field of 16 bits, if `message` is long enough to have it.
pub(super) fn write_at(message: &mut [u8], offset: usize, value: [u8; 2]) {
    let field = message.get_mut(offset..).and_then(<[u8]>::first_chunk_mut);
    if let Some(field) = field {
        *field = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071 §3: the words add up to 2ddf0, folded ddf2.
    #[test]
    fn the_example_of_the_rfc_comes_out() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(
            Sum::default().add(&data).finish(),
            (!0xddf2_u16).to_be_bytes()
        );
    }

    #[test]
    fn an_odd_tail_counts_as_the_high_byte_of_a_word() {
        let odd = Sum::default().add(&[1, 2, 3]).finish();
        let padded = Sum::default().add(&[1, 2, 3, 0]).finish();
        assert_eq!(odd, padded);
    }

    #[test]
    fn data_with_its_own_checksum_holds() {
        let data = [0x45, 0x00, 0x12, 0x34];
        let sum = Sum::default().add(&data);
        assert!(sum.add(&sum.finish()).holds());
        assert!(!sum.holds());
    }
}
