//! Names in other scripts, as they are shown: `xn--bcher-kva` is `bücher` (RFC 3492).
//!
//! For people only. No decision rests on it.

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const FIRST_BIAS: u32 = 72;
const FIRST: u32 = 0x80;
const PREFIX: &str = "xn--";

/// Nothing if the label is in ASCII, or is not the encoding of anything.
pub(super) fn label(text: &str) -> Option<String> {
    let encoded = text.strip_prefix(PREFIX)?;
    let (basic, rest) = encoded.rsplit_once('-').unwrap_or(("", encoded));
    let mut decoded: Vec<char> = basic.chars().collect();
    let (mut code, mut at, mut bias) = (FIRST, 0_u32, FIRST_BIAS);
    let mut digits = rest.chars().peekable();
    while digits.peek().is_some() {
        let before = at;
        let (mut weight, mut k) = (1_u32, BASE);
        loop {
            let digit = value(digits.next()?)?;
            at = at.checked_add(digit.checked_mul(weight)?)?;
            let threshold = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(BASE.checked_sub(threshold)?)?;
            k = k.checked_add(BASE)?;
        }
        let length = u32::try_from(decoded.len()).ok()?.checked_add(1)?;
        bias = adapted(at.checked_sub(before)?, length, before == 0)?;
        code = code.checked_add(at.checked_div(length)?)?;
        at = at.checked_rem(length)?;
        let place = usize::try_from(at).ok()?;
        decoded.insert(place, char::from_u32(code)?);
        at = at.checked_add(1)?;
    }
    Some(decoded.into_iter().collect())
}

fn value(digit: char) -> Option<u32> {
    digit.to_digit(36).and_then(|it| match it {
        // Letters come first here.
        10.. => it.checked_sub(10),
        _ => it.checked_add(26),
    })
}

fn adapted(delta: u32, length: u32, is_first: bool) -> Option<u32> {
    let mut delta = delta.checked_div(if is_first { DAMP } else { 2 })?;
    delta = delta.checked_add(delta.checked_div(length)?)?;
    let range = BASE.checked_sub(T_MIN)?;
    let mut k = 0_u32;
    while delta > range.checked_mul(T_MAX)?.checked_div(2)? {
        delta = delta.checked_div(range)?;
        k = k.checked_add(BASE)?;
    }
    let more = range.checked_add(1)?.checked_mul(delta)?;
    k.checked_add(more.checked_div(delta.checked_add(SKEW)?)?)
}

#[cfg(test)]
mod tests {
    use super::label;

    /// Those of RFC 3492, and some that are known from registries.
    #[test]
    fn labels_are_decoded_as_the_standard_has_them() {
        for (encoded, shown) in [
            ("xn--bcher-kva", "bücher"),
            ("xn--80ak6aa92e", "аррӏе"),
            ("xn--fiqs8s", "中国"),
            ("xn--ihqwcrb4cv8a8dqg056pqjye", "他们为什么不说中文"),
            ("xn--mgberp4a5d4ar", "السعودية"),
            (
                "xn--b1abfaaepdrnnbgefbadotcwatmq2g4l",
                "почемужеонинеговорятпорусски",
            ),
        ] {
            assert_eq!(label(encoded).as_deref(), Some(shown), "{encoded}");
        }
    }

    #[test]
    fn what_is_no_encoding_is_not_decoded() {
        for text in [
            "bücher",
            "example",
            "xn--a_",
            "xn--99999999",
            "xn--bcher-kv",
            "XN--BCHER-KVA",
        ] {
            assert_eq!(label(text), None, "{text}");
        }
    }

    #[test]
    fn no_label_that_can_be_in_a_name_makes_it_overflow() {
        for first in ["xn--", "xn--a-", "xn--zzzz-"] {
            for filler in ["9", "z", "a", "0a", "z9"] {
                let text: String = first
                    .chars()
                    .chain(filler.chars().cycle())
                    .take(63)
                    .collect();
                let _ = label(&text);
            }
        }
    }
}
