//! The difference between two contents of a file, for people. Both may be hostile and long: the
//! result is short, and shows every character as what it is.

use super::content::Content;

/// How many lines there are at most, and how long each is.
const MOST_LINES: usize = 200;
const LONGEST: usize = 160;
/// Beyond so many pairs of lines, all old lines are shown as removed and all new ones as added.
const MOST_PAIRS: usize = 1 << 20;

/// Lines that begin with `-` or `+`, and `@` with the number of the new line before each group.
pub(super) fn lines(before: Option<&Content>, after: &Content) -> Vec<String> {
    let before = before.map(text).unwrap_or_default();
    let after = text(after);
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(&new).take_while(same).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev());
    let tail = tail.take_while(same).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);

    let mut lines = Vec::new();
    let mut group = None;
    let (mut at_old, mut at_new) = (0, 0);
    for (old_line, new_line) in common(old, new).into_iter().chain([(old.len(), new.len())]) {
        let removed = (at_old..old_line).map(|at| ('-', at_new, old[at]));
        let added = (at_new..new_line).map(|at| ('+', at, new[at]));
        for (sign, at, line) in removed.chain(added) {
            if group != Some(at_new) {
                group = Some(at_new);
                lines.push(format!("@ line {}", head + at + 1));
            }
            lines.push(format!("{sign}{}", shown(line)));
        }
        (at_old, at_new) = (old_line + 1, new_line + 1);
    }
    if lines.is_empty() && before != after {
        lines.push("@ only the end of the last line".to_owned());
    }
    if let Some(more) = lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        lines.truncate(MOST_LINES);
        lines.push(format!("@ {more} more lines"));
    }
    lines
}

fn text(content: &Content) -> String {
    match content {
        Content::File { bytes, .. } => String::from_utf8_lossy(bytes).into_owned(),
        Content::Link(to) => format!("a link to {}", to.display()),
        Content::Directory(_) => "a directory".to_owned(),
        Content::Other(_) => "a file that is too long to be shown, or none to be read".to_owned(),
    }
}

/// The pairs of equal lines of a longest common subsequence.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return Vec::new();
    }
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for (at, line) in old.iter().enumerate().rev() {
        for (other_at, other) in new.iter().enumerate().rev() {
            lengths[at * width + other_at] = if line == other {
                lengths[(at + 1) * width + other_at + 1] + 1
            } else {
                lengths[(at + 1) * width + other_at].max(lengths[at * width + other_at + 1])
            };
        }
    }
    let (mut pairs, mut at, mut other_at) = (Vec::new(), 0, 0);
    while at < old.len() && other_at < new.len() {
        if old[at] == new[other_at] {
            pairs.push((at, other_at));
            (at, other_at) = (at + 1, other_at + 1);
        } else if lengths[(at + 1) * width + other_at] >= lengths[at * width + other_at + 1] {
            at += 1;
        } else {
            other_at += 1;
        }
    }
    pairs
}

/// A line without what moves a terminal's cursor, is invisible, or turns the direction of writing.
fn shown(line: &str) -> String {
    let mut shown = String::new();
    for c in line.chars().take(LONGEST) {
        if "'\"\\".contains(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_debug());
        }
    }
    if line.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> Vec<String> {
        let file = |text: &str| Content::File {
            bytes: text.into(),
            mode: 0o644,
        };
        lines(Some(&file(before)), &file(after))
    }

    #[test]
    fn what_was_removed_and_added_is_shown_where_it_was() {
        let before = "one\ntwo\nthree\nfour\nfive\n";
        assert_eq!(diff(before, before), [""; 0]);
        let after = "one\n2\nthree\nfour\nfive\nsix\n";
        let expected = ["@ line 2", "-two", "+2", "@ line 6", "+six"];
        assert_eq!(diff(before, after), expected);
        assert_eq!(diff("a\nb\n", "b\n"), ["@ line 1", "-a"]);
        assert_eq!(diff("", "a\n"), ["@ line 1", "+a"]);
        assert_eq!(diff("a", "a\n"), ["@ only the end of the last line"]);
    }

    #[test]
    fn hostile_contents_are_short_and_escaped() {
        let lines = diff("", "x\u{1b}[2J\u{202e}\u{200b}\r\u{7f}\"y\"\n");
        let expected = r#"+x\u{1b}[2J\u{202e}\u{200b}\r\u{7f}"y""#;
        assert_eq!(lines, ["@ line 1", expected]);
        let long = "y\n".repeat(500_000);
        assert_eq!(diff("x\n", &long).len(), MOST_LINES + 1);
        let many = (0..5000)
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        let others = (0..5000)
            .map(|line| format!("x{line}\n"))
            .collect::<String>();
        assert_eq!(diff(&many, &others).len(), MOST_LINES + 1);
        let wide = diff("", &"z".repeat(100_000));
        assert!(wide[1].chars().count() <= LONGEST + 2, "{}", wide[1].len());
    }
}
