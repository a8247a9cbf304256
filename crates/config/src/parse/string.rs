//! From a place in a string to the place in the file where it is written.
//!
//! A rule's error says which of its bytes are wrong. In the file, there are quotes around
//! it, and any of its characters may be written as an escape.

use std::ops::Range;

/// Where `part` of the string `value` is in the file, whose bytes `literal` are the
/// string as written. All of it, if the two cannot be brought together.
pub(super) fn locate(
    file: &str,
    literal: Range<usize>,
    value: &str,
    part: &Range<usize>,
) -> Range<usize> {
    find(file, &literal, value, part).unwrap_or(literal)
}

fn find(
    file: &str,
    literal: &Range<usize>,
    value: &str,
    part: &Range<usize>,
) -> Option<Range<usize>> {
    let written = file.get(literal.clone())?;
    let (body_start, body) = body(written)?;
    let escapes = written.starts_with('"');
    // For each character of the value, where it is written.
    let mut written_at = literal.start + body_start;
    let mut value_at = 0;
    let mut rest = body;
    let mut start = None;
    loop {
        if value_at == part.start {
            start = Some(written_at);
        }
        if value_at == part.end {
            return Some(start?..written_at);
        }
        let (written_length, value_length) = next(rest, escapes)?;
        // A character of the value must be where one was read: else the two differ.
        value.get(value_at..value_at + value_length)?;
        rest = rest.get(written_length..)?;
        written_at += written_length;
        value_at += value_length;
    }
}

/// What is between the quotes, and where that starts.
fn body(written: &str) -> Option<(usize, &str)> {
    for quotes in ["\"\"\"", "'''"] {
        if let Some(body) = written.strip_prefix(quotes) {
            let body = body.strip_suffix(quotes)?;
            // A newline straight after the quotes is not part of the string.
            for newline in ["\r\n", "\n"] {
                if let Some(body) = body.strip_prefix(newline) {
                    return Some((quotes.len() + newline.len(), body));
                }
            }
            return Some((quotes.len(), body));
        }
    }
    for quote in ['"', '\''] {
        if let Some(body) = written.strip_prefix(quote) {
            return Some((1, body.strip_suffix(quote)?));
        }
    }
    None
}

/// How many bytes the next character takes: written, and in the value.
fn next(rest: &str, escapes: bool) -> Option<(usize, usize)> {
    let mut characters = rest.chars();
    let first = characters.next()?;
    if first != '\\' || !escapes {
        return Some((first.len_utf8(), first.len_utf8()));
    }
    let digits = match characters.next()? {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        'b' | 't' | 'n' | 'f' | 'r' | 'e' | '"' | '\\' => return Some((2, 1)),
        // The end of a line and the blanks of the next one are nothing.
        c if c.is_whitespace() => {
            let blanks = rest.get(1..)?;
            return Some((1 + blanks.len() - blanks.trim_start().len(), 0));
        }
        _ => return None,
    };
    let code = u32::from_str_radix(rest.get(2..2 + digits)?, 16).ok()?;
    Some((2 + digits, char::from_u32(code)?.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is under the caret, for the `x` of a value.
    fn under(file: &str, value: &str) -> String {
        let start = file.find(['"', '\'']).unwrap();
        let literal = start..file.rfind(['"', '\'']).unwrap() + 1;
        let at = value.find('x').unwrap();
        let place = locate(file, literal, value, &(at..at + 1));
        file[place].to_owned()
    }

    #[test]
    fn the_caret_is_under_the_character_however_it_is_written() {
        for (file, value, expected) in [
            (r#"a = "10.x""#, "10.x", "x"),
            (r"a = '10.x'", "10.x", "x"),
            (r#"a = "1\u0030.x""#, "10.x", "x"),
            (r#"a = "10.\u0078""#, "10.x", r"\u0078"),
            (r#"a = "10.\x78""#, "10.x", r"\x78"),
            (r#"a = "\"\\\tx""#, "\"\\\tx", "x"),
            (r#"a = "ä\U000000e4x""#, "ääx", "x"),
            ("a = \"\"\"\n10.x\"\"\"", "10.x", "x"),
            ("a = \"\"\"\r\n10.\\\r\n   x\"\"\"", "10.x", "x"),
            ("a = '''1\\u0x'''", "1\\u0x", "x"),
        ] {
            assert_eq!(under(file, value), expected, "{file}");
        }
    }

    #[test]
    fn a_place_where_something_is_missing_is_an_empty_one() {
        assert_eq!(locate("a = \"x\"", 4..7, "x", &(1..1)), 6..6);
    }

    #[test]
    fn what_does_not_fit_is_the_whole_string() {
        assert_eq!(locate("a = \"x\"", 4..7, "x", &(5..9)), 4..7);
        assert_eq!(locate("a = \"x", 4..6, "x", &(0..1)), 4..6);
    }
}
