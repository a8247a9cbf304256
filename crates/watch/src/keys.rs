//! Keys, from the bytes that a terminal sends.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Letter(char),
    Enter,
    Escape,
    Backspace,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C, and Ctrl-D.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Redraw,
}

/// The keys in what was read at once. A sequence that is unknown is no key, and neither is what is
/// not text. A terminal sends a sequence in one piece, so an escape that nothing follows is the key.
pub(crate) fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut keys = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (key, length) = match first {
            '\u{1b}' => sequence(rest),
            c => (control(c), c.len_utf8()),
        };
        keys.extend(key);
        rest = rest.get(length..).unwrap_or_default();
    }
    keys
}

fn control(c: char) -> Option<Key> {
    Some(match c {
        '\r' | '\n' => Key::Enter,
        '\t' => Key::Tab,
        '\u{7f}' | '\u{8}' => Key::Backspace,
        '\u{3}' | '\u{4}' => Key::Interrupt,
        '\u{1a}' => Key::Suspend,
        '\u{c}' => Key::Redraw,
        c if c.is_control() => return None,
        c => Key::Letter(c),
    })
}

/// A key by its sequence, and the sequence's length.
fn sequence(text: &str) -> (Option<Key>, usize) {
    let mut bytes = text.bytes().enumerate().skip(1);
    let end = match bytes.next() {
        None => return (Some(Key::Escape), 1),
        Some((_, b'O')) => bytes.next(),
        Some((_, b'[')) => bytes.find(|(_, byte)| matches!(byte, b'@'..=b'~')),
        // Alt and a key, or an escape and a key. Neither is one of ours.
        Some((at, _)) => {
            let length = text.get(at..).and_then(|rest| rest.chars().next());
            return (None, at + length.map_or(1, char::len_utf8));
        }
    };
    let length = end.map_or(text.len(), |(at, _)| at + 1);
    let key = match text.get(1..length).unwrap_or_default() {
        "[A" | "OA" => Key::Up,
        "[B" | "OB" => Key::Down,
        "[C" | "OC" => Key::Right,
        "[D" | "OD" => Key::Left,
        "[H" | "OH" | "[1~" | "[7~" => Key::Home,
        "[F" | "OF" | "[4~" | "[8~" => Key::End,
        "[5~" => Key::PageUp,
        "[6~" => Key::PageDown,
        "[Z" => Key::BackTab,
        _ => return (None, length),
    };
    (Some(key), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_and_what_is_none_is_passed_over() {
        use Key::{BackTab, Down, End, Enter, Escape, Interrupt, Letter, PageUp, Up};
        for (bytes, wanted) in [
            (&b"aZ"[..], &[Letter('a'), Letter('Z')][..]),
            ("é".as_bytes(), &[Letter('é')]),
            (b"\x1b", &[Escape]),
            (b"\x1b[A\x1bOBx", &[Up, Down, Letter('x')]),
            (b"\x1b[5~\x1b[F\x1b[Z", &[PageUp, End, BackTab]),
            (b"\r\x03", &[Enter, Interrupt]),
            // With modifiers; a report of the cursor; Alt; a mouse; a paste; half a sequence.
            (b"\x1b[1;5A\x1b[12;40R\x1ba", &[]),
            (b"\x1b[<0;1;1M\x1b[200~", &[]),
            (b"\x1b[1;", &[]),
            (b"\x1bO", &[]),
            (b"\xff\x00\x9b", &[Letter('\u{fffd}'), Letter('\u{fffd}')]),
        ] {
            assert_eq!(keys(bytes), wanted, "{bytes:?}");
        }
    }
}
