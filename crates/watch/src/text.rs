//! Text for a cell of the screen.
//!
//! Programs inside choose names and arguments. Everything that comes from a log or a session goes
//! through [`clean`] before it is kept, so that nothing that is drawn can move the cursor, hide, or
//! change places with its neighbours.

use std::time::Duration;

use serde_json::Value;
use stockade_config::shown;

/// The longest text that is kept. What the log has is shorter.
const LONGEST: usize = 4096;

/// As harmless as in `stockade log`. Marks that are drawn over the character before them are
/// escaped, too: any number of them fits into one cell, and they would cover the lines around it.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::new();
    for c in shown(text).chars().take(LONGEST) {
        if c.is_ascii() || c.escape_debug().eq([c]) {
            clean.push(c);
        } else {
            clean.extend(c.escape_unicode());
        }
    }
    clean
}

/// A field of a line. What is absent is empty.
pub(crate) fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => clean(text),
        Value::Array(all) => all.iter().map(field).collect::<Vec<_>>().join(" "),
        other => clean(&other.to_string()),
    }
}

/// `1 denial`, `2 denials`.
pub(crate) fn counted(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    }
}

/// A number of bytes, in at most five characters.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];
    if number < 1024 {
        return number.to_string();
    }
    let mut tenths = u128::from(number) * 10 / 1024;
    let mut units = UNITS.into_iter();
    let mut unit = units.next();
    while tenths >= 10_240 {
        tenths /= 1024;
        unit = units.next();
    }
    let unit = unit.unwrap_or('E');
    match tenths {
        0..100 => format!("{}.{}{unit}", tenths / 10, tenths % 10),
        _ => format!("{}{unit}", tenths / 10),
    }
}

/// How long ago, in at most five characters.
pub(crate) fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// No more of it than fits.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// The same of a host name, whose end says whose it is.
pub(crate) fn cut_name(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let left_out = length - width.saturating_sub(1);
    let end: String = name.chars().skip(left_out).collect();
    format!("…{end}")
}

/// All of it, in lines of this width.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut room = width;
    for word in text.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if length.min(width) > room && room < width {
            lines.push(String::new());
            room = width;
        }
        for c in word.chars() {
            if room == 0 {
                // The blank between two words may stand at the end of a line.
                if c == ' ' {
                    continue;
                }
                lines.push(String::new());
                room = width;
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
            room -= 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_or_moves_others_is_escaped() {
        let hostile =
            "a\u{1b}[2J\r\n\u{9b}\u{202e}\u{200b}\u{3164}\u{fe0f}e\u{301}\u{301}\u{e0001}é日";
        let clean = clean(hostile);
        assert_eq!(
            clean,
            "a\\u{1b}[2J\\r\\n\\u{9b}\\u{202e}\\u{200b}\\u{3164}\\u{fe0f}e\\u{301}\\u{301}\\u{e0001}é日"
        );
        assert!(super::clean(&"x".repeat(10 * LONGEST)).len() <= LONGEST);
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (10_000, "9.7K"),
            (10_240, "10K"),
            (1 << 20, "1.0M"),
            (u64::MAX, "15E"),
        ] {
            assert_eq!(bytes(number), text);
        }
        for (seconds, text) in [
            (0, "0 s"),
            (119, "119 s"),
            (120, "2 m"),
            (7_200, "2 h"),
            (172_800, "2 d"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_name_is_cut_at_its_beginning() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut_name("github.com.evil.example", 13), "…evil.example");
        assert_eq!(cut_name("short", 13), "short");
    }

    #[test]
    fn wrapped_text_is_all_there() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(
            wrap("a verylongword b", 5),
            ["a ", "veryl", "ongwo", "rd b"]
        );
        let name = "n".repeat(253);
        assert_eq!(wrap(&name, 60).concat(), name);
    }
}
