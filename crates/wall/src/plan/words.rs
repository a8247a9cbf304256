//! Paths in command lines that messages propose. A session may have chosen their names.

use std::path::Path;

/// A path as one word of a shell; none if it has characters that do not show as they are.
pub(super) fn word_of_shell(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    // In quotes, but not controls, nor what turns the direction of text around.
    let is_shown = |c: char| is_plain(c) || c == ' ' || c.is_ascii_punctuation();
    if text.is_empty() || text.starts_with('-') || !text.chars().all(is_shown) {
        return None;
    }
    Some(match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_more_than_a_word() {
        let word = |path: &str| word_of_shell(Path::new(path));
        for plain in [".vscode/tasks.json", "/a/b-c+d@e", "ä"] {
            assert_eq!(word(plain).as_deref(), Some(plain));
        }
        for (path, quoted) in [
            ("$(sh x)", "'$(sh x)'"),
            ("a;b `c` !d", "'a;b `c` !d'"),
            ("it's", "'it'\\''s'"),
        ] {
            assert_eq!(word(path).as_deref(), Some(quoted));
        }
        for none in ["", "-x", "a\nb", "a\x1b[0m", "a\u{202e}b", "a\u{200b}b"] {
            assert_eq!(word(none), None, "{none:?}");
        }
    }
}
