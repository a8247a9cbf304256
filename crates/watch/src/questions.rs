//! The questions, as they stand above the list.
//!
//! The chosen one is told in full: its target and the rule that an answer would add are never cut,
//! because whoever chooses a name can make it long. If they do not fit, nothing can be allowed.

use crate::{
    session::{Question, Session},
    text::{cut, wrap},
    view::{ANSWERS, QuestionKey, View},
};

#[derive(Debug, Default)]
pub(crate) struct QuestionPanel {
    pub(crate) lines: Vec<(Kind, String)>,
    /// Everything that counts of the chosen question is in `lines`.
    pub(crate) is_complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Heading,
    Chosen,
    Other,
    Keys,
}

/// In so many columns and at most so many rows. Nothing if there is no question. `chosen` says which
/// one takes the answer, and whether it has just come.
pub(crate) fn panel(
    view: &View,
    chosen: Option<(&QuestionKey, bool)>,
    width: usize,
    height: usize,
) -> QuestionPanel {
    let mut all: Vec<_> = view.questions().collect();
    let pauses: Vec<_> = view.sessions.values().filter_map(pause).collect();
    let (chosen, is_unread) = chosen.unzip();
    let Some(at) = all.iter().position(|(key, _)| Some(key) == chosen) else {
        let lines = pauses.iter().map(|text| (Kind::Heading, cut(text, width)));
        return QuestionPanel {
            lines: lines.take(height).collect(),
            is_complete: true,
        };
    };
    let (_, (session, question)) = all.remove(at);
    let heading = match all.len() {
        0 => " QUESTION".to_owned(),
        others => format!(" {} QUESTIONS", others + 1),
    };
    let mut lines = vec![(Kind::Heading, heading)];
    let needed = needed(session, question, width);
    lines.extend(needed.into_iter().map(|line| (Kind::Chosen, line)));
    let is_complete = lines.len() < height;
    let keys = match is_complete {
        true if is_unread == Some(true) => " …".to_owned(),
        true => keys(width),
        false => cut(" d deny   (too small to allow: enlarge the window)", width),
    };
    let mut room = height.saturating_sub(lines.len() + 1);
    if let Some(process) = question.process.as_ref().filter(|_| room > 0) {
        let text = format!("   {}: {}", process.chain(), process.argv);
        lines.push((Kind::Chosen, cut(&text, width)));
        room -= 1;
    }
    let others = all.iter().map(|(_, (session, question))| {
        let left = format!("{} s", question.left);
        let room = width.saturating_sub(left.len() + 1);
        let text = cut(&format!(" {}", wants(session, question)), room);
        (Kind::Other, format!("{text:room$} {left}"))
    });
    lines.extend(others.take(room));
    // What does not fit is left out at the end, but never the keys.
    lines.truncate(height.saturating_sub(1));
    lines.push((Kind::Keys, keys));
    QuestionPanel { lines, is_complete }
}

/// What nobody may answer without having seen it.
fn needed(session: &Session, question: &Question, width: usize) -> Vec<String> {
    let left = format!("{} s left", question.left);
    let first = width.saturating_sub(left.len() + 2);
    let mut lines = wrap(&wants(session, question), first.saturating_sub(1));
    if let Some(line) = lines.first_mut() {
        *line = format!(">{line:first$} {left}");
    }
    for line in lines.iter_mut().skip(1) {
        line.insert_str(0, "   ");
    }
    let mut add = |text: &str, width: usize| {
        let wrapped = wrap(text, width.saturating_sub(4));
        lines.extend(wrapped.into_iter().map(|line| format!("   {line}")));
    };
    if !question.unicode.is_empty() {
        let shows = format!(
            "the name shows as {}, in letters of other scripts",
            question.unicode
        );
        // Such letters may take two columns each.
        add(&shows, width / 2);
    }
    add(&format!("allowing it opens: {}", question.rule), width);
    lines
}

/// `project: tcp://203.0.113.10:443 (api.example.com), wanted by curl`. The program comes last: it
/// can have any name.
fn wants(session: &Session, question: &Question) -> String {
    let program = question.process.as_ref();
    let program = program.map_or("a program", |process| process.name());
    let again = match question.held {
        0 | 1 => String::new(),
        held => format!(" {held} times"),
    };
    let (place, what) = (session.place(), &question.what);
    format!("{place}: {what}, wanted{again} by {program}")
}

fn pause(session: &Session) -> Option<String> {
    let seconds = session.paused?;
    let place = session.place();
    Some(format!(
        " {place}: denies without asking for {seconds} s, after many refusals"
    ))
}

fn keys(width: usize) -> String {
    let words = ANSWERS.map(|(key, _, words)| format!("{key} {words}"));
    let line = format!(" {}", words.join("   "));
    match line.chars().count() <= width {
        true => line,
        false => cut(" o once  s session  a always  d deny", width),
    }
}

/// All that is known of a question.
pub(crate) fn details(session: &Session, question: &Question) -> Vec<(&'static str, String)> {
    let mut details = vec![
        ("wanted", question.what.clone()),
        ("shows as", question.unicode.clone()),
        ("denied because", question.why.clone()),
        ("opens", question.rule.clone()),
        ("waiting", question.held.to_string()),
        ("denied in", format!("{} s", question.left)),
    ];
    details.extend(crate::rows::process_details(question.process.as_ref()));
    details.push(("session", session.id.clone()));
    details.push(("workspace", session.workspace.clone()));
    details.retain(|(_, text)| !text.is_empty());
    details
}
