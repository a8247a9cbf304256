//! Text for the terminal: what others wrote, made harmless; and words that were meant.

use std::path::Path;

/// A text in which nothing can confuse a terminal or its reader: control characters and
/// characters that are invisible or turn the direction of writing are escaped.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) {
            shown.extend(c.escape_unicode());
        } else if c.is_control() {
            shown.extend(c.escape_debug());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A path, as harmless as [`shown`].
pub fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// A text in quotes, as TOML has it, as harmless as [`shown`].
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || is_deceptive(c) => {
                let code = u32::from(c);
                if code <= 0xffff {
                    quoted.push_str(&format!("\\u{code:04X}"));
                } else {
                    quoted.push_str(&format!("\\U{code:08X}"));
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The same for a text whose byte offsets are still needed: each such character is
/// replaced by one of the same length.
pub(crate) fn masked(text: &str) -> String {
    let mask = |c: char| match c {
        '\n' | '\t' => c,
        _ if !c.is_control() && !is_deceptive(c) => c,
        _ => match c.len_utf8() {
            1 => '?',
            2 => '\u{bf}',
            3 => '\u{fffd}',
            _ => '\u{1f7e5}',
        },
    };
    // A line may end as on Windows.
    let lines = text
        .split_inclusive('\n')
        .flat_map(|line| match line.strip_suffix("\r\n") {
            Some(line) => [line, "\r\n"],
            None => [line, ""],
        });
    let mut masked = String::with_capacity(text.len());
    for part in lines {
        if part == "\r\n" {
            masked.push_str(part);
        } else {
            masked.extend(part.chars().map(mask));
        }
    }
    masked
}

/// Not control characters by Unicode's count, but not to be seen, or to be seen elsewhere
/// than they are.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Which of the words was probably meant, by how many letters differ or changed places.
pub fn meant<'w>(written: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let written = written.to_lowercase().replace('-', "_");
    let length = written.chars().count();
    if length > 64 {
        return None;
    }
    let near = |word: &'w str| {
        let distance = strsim::osa_distance(&written, word);
        let longer = length.max(word.chars().count());
        (distance <= longer.div_ceil(3).min(3)).then_some((distance, word))
    };
    let nearest = words.into_iter().filter_map(near).min();
    nearest.map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_confuse_a_terminal_is_escaped() {
        assert_eq!(shown("plain text, ä, 名前"), "plain text, ä, 名前");
        assert_eq!(shown("a\x1b[31mb\r\n\0"), "a\\u{1b}[31mb\\r\\n\\0");
        assert_eq!(
            shown("\u{9b}x\u{202e}y\u{200b}"),
            "\\u{9b}x\\u{202e}y\\u{200b}"
        );
    }

    #[test]
    fn masking_keeps_every_offset() {
        let text = "a\x1b\u{9b}\u{202e}\u{e0041}\r\nb\rc\td\n";
        let masked = masked(text);
        assert_eq!(masked.len(), text.len());
        assert_eq!(masked, "a?\u{bf}\u{fffd}\u{1f7e5}\r\nb?c\td\n");
    }

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let words = ["allow", "mode", "host_ports", "internet"];
        for (written, word) in [
            ("alow", Some("allow")),
            ("alolw", Some("allow")),
            ("host-ports", Some("host_ports")),
            ("Mode", Some("mode")),
            ("intrenet", Some("internet")),
            ("deny", None),
            ("", None),
        ] {
            assert_eq!(meant(written, words), word, "{written}");
        }
    }
}
