//! `stockade question`, hidden: asks the user what a session wants to know, in a popup of tmux.
//!
//! The popup takes the keyboard from whatever the user was typing into, and a program inside, which the user
//! types to, can choose the moment. So a key counts only after a while without any other, and only with Enter
//! after it: the end of a sentence is no answer.

use std::{
    io::{self, IsTerminal as _, Write as _},
    os::fd::AsFd as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use stockade_warden::{
    live::{Answer, HeldQuestion, LiveConnection, Means, QuestionKind, escaped},
    program_name,
};
use stockade_watch::wrap;

use crate::args;

/// How long no key may be pressed before one counts.
const QUIET: Duration = Duration::from_millis(600);
/// How often the session is asked what there is to answer.
const INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// As wide as a terminal can be for a line to be read.
const WIDEST: usize = 100;
const ENTER: [u8; 2] = *b"\r\n";
const CONTROL_C: u8 = 3;
const ESCAPE: u8 = 27;

pub(crate) fn question(arguments: &args::Question) -> Result<ExitCode> {
    if !io::stdin().is_terminal() {
        bail!("this asks in a terminal: `stockade watch` is for you");
    }
    let stream = stockade_warden::connect(&arguments.session)?;
    let stream = stream.context("the session has ended")?;
    let mut live = LiveConnection::new(stream)?;
    let _raw = Raw::begin().context("cannot use the terminal")?;
    // The session's end is the end of its questions.
    while let Ok(snapshot) = live.snapshot(true) {
        let Some(first) = snapshot.questions.first() else {
            break;
        };
        ask(&mut live, first.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows one question until it is answered, here or elsewhere.
fn ask(live: &mut LiveConnection, id: u64) -> Result<()> {
    // The last key, or when the question appeared.
    let mut quiet = None::<Instant>;
    let is_quiet = |quiet: Option<Instant>| quiet.is_some_and(|since| since.elapsed() >= QUIET);
    let (mut chosen, mut on_screen, mut said) = (None, None, None::<String>);
    loop {
        let Ok(snapshot) = live.snapshot(true) else {
            return Ok(());
        };
        let mut questions = snapshot.questions.iter();
        let Some(question) = questions.find(|question| question.id == id) else {
            return Ok(());
        };
        let others = snapshot.questions.len() - 1;
        let hint = match &said {
            Some(why) => format!("not done: {}", escaped(why)),
            None if chosen.is_none() && !is_quiet(quiet) => {
                "keys do not count yet: you may be typing".to_owned()
            }
            None => "press a key, then Enter".to_owned(),
        };
        let shown = shown(question, others, size(), chosen, &hint);
        // The window may have become smaller.
        chosen = chosen.filter(|it| shown.is_complete || *it == Answer::Deny);
        show(&shown.lines)?;
        let since = *quiet.get_or_insert_with(Instant::now);
        // What was typed while the session was asked was meant for the screen before.
        let mut typed = keys(NOW)?;
        let may_choose = typed.is_empty();
        if may_choose {
            on_screen = chosen;
            typed = keys(INTERVAL)?;
        }
        if !typed.is_empty() {
            let may_choose = may_choose && is_quiet(Some(since));
            let confirmable = on_screen.filter(|_| on_screen == chosen);
            chosen = match press(&typed, confirmable, may_choose) {
                Pressed::Enter(answer) => match live.answer(id, answer, Means::Tmux) {
                    Ok(Ok(())) | Err(_) => return Ok(()),
                    Ok(Err(why)) => {
                        said = Some(why);
                        None
                    }
                },
                Pressed::Key(answer) => {
                    answer.filter(|it| shown.is_complete || *it == Answer::Deny)
                }
            };
            quiet = Some(Instant::now());
        }
        on_screen = on_screen.filter(|_| on_screen == chosen);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    /// What is chosen now.
    Key(Option<Answer>),
    /// Enter, for what was chosen before and is on the screen.
    Enter(Answer),
}

/// What keys do that came together. A key chooses only by itself, and only where it `may_choose`: it comes
/// after a moment without one. Whoever types more means something else, and whatever comes together
/// was pasted, or typed before the screen could follow.
fn press(typed: &[u8], on_screen: Option<Answer>, may_choose: bool) -> Pressed {
    match (typed, on_screen) {
        ([key], Some(answer)) if ENTER.contains(key) => Pressed::Enter(answer),
        ([key], _) if may_choose => Pressed::Key(match key {
            b'o' => Some(Answer::Once),
            b's' => Some(Answer::Session),
            b'a' => Some(Answer::Always),
            b'd' | &CONTROL_C | &ESCAPE => Some(Answer::Deny),
            _ => None,
        }),
        _ => Pressed::Key(None),
    }
}

/// What was typed, if something was in this time.
fn keys(time: Timespec) -> io::Result<Vec<u8>> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut fds, Some(&time)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
        outcome => outcome?,
    };
    let mut buffer = [0; 256];
    let count = rustix::io::read(stdin.as_fd(), &mut buffer)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(buffer.iter().take(count).copied().collect())
}

/// The columns and rows of the terminal.
fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout());
    let (width, height) = size.map_or((80, 24), |size| (size.ws_col, size.ws_row));
    (usize::from(width).clamp(20, WIDEST), usize::from(height))
}

fn show(lines: &[String]) -> io::Result<()> {
    // From the top, and nothing of before below. A line that the terminal finds wider than it is
    // here takes no second one, which would push the first ones out.
    let screen = format!("\x1b[?7l\x1b[H\x1b[J{}", lines.join("\r\n"));
    let mut stdout = io::stdout().lock();
    stdout.write_all(screen.as_bytes())?;
    stdout.flush()
}

/// What is shown, and whether all of the question is that nobody may allow without having seen it.
struct Shown {
    lines: Vec<String>,
    is_complete: bool,
}

/// All that a program inside chose is escaped. Target and rule come first and are never cut: of a
/// name, the end counts. What the program calls itself comes after them.
fn shown(
    question: &HeldQuestion,
    others: usize,
    (width, height): (usize, usize),
    chosen: Option<Answer>,
    hint: &str,
) -> Shown {
    let more = match others {
        0 => String::new(),
        others => format!(", {others} more after this"),
    };
    let heading = format!("Stockade asks ({} s left{more})", question.left);
    let mut lines = vec![heading];
    lines.extend(needed(question, width));
    let mut keys = vec![
        (Answer::Once, "o  allow once"),
        (Answer::Session, "s  allow for this session"),
        (
            Answer::Always,
            "a  always allow, in your file for this project",
        ),
        (Answer::Deny, "d  deny"),
    ];
    let is_complete = lines.len() + keys.len() < height;
    if !is_complete {
        keys.retain(|(answer, _)| *answer == Answer::Deny);
        lines.truncate(height.saturating_sub(keys.len() + 2));
        lines.push("too long for this window: `stockade watch` shows all of it".to_owned());
    }
    let mut room = height.saturating_sub(lines.len() + keys.len() + 1);
    let mut rest = about(question);
    rest.truncate(room);
    room -= rest.len();
    lines.extend(rest);
    lines.extend((room > 0).then(String::new));
    for (answer, text) in keys {
        let is_chosen = chosen == Some(answer);
        let mark = if is_chosen { '>' } else { ' ' };
        let enter = if is_chosen { "    Enter?" } else { "" };
        lines.push(format!("{mark} {text}{enter}"));
    }
    lines.push(hint.to_owned());
    for line in &mut lines {
        *line = line.chars().take(width - 1).collect();
    }
    lines.truncate(height);
    Shown { lines, is_complete }
}

/// The target, and what an answer opens.
fn needed(question: &HeldQuestion, width: usize) -> Vec<String> {
    let names = match (question.kind, question.names.join(", ")) {
        (QuestionKind::Flow, names) if !names.is_empty() => format!(" ({names})"),
        _ => String::new(),
    };
    let target = match question.kind {
        QuestionKind::Flow => &question.target,
        QuestionKind::Name => &format!("the name {}", question.target),
    };
    let mut lines = wrap(&escaped(&format!("{target}{names}")), width - 1);
    for name in &question.unicode {
        let shows = format!("shows as {}, in letters of other scripts", escaped(name));
        // Such letters may take two columns each.
        lines.extend(wrap(&shows, width / 2 - 1));
    }
    let opens = format!("allowing it opens: {}", escaped(&question.rule));
    lines.extend(wrap(&opens, width - 1));
    lines
}

/// Who wants it, and why it is not allowed.
fn about(question: &HeldQuestion) -> Vec<String> {
    let why = format!("  {}", escaped(&question.why));
    let Some(process) = &question.process else {
        return vec!["wanted by an unknown program".to_owned(), why];
    };
    let program = program_name(&process.exe);
    let parents = process.parents.iter();
    let parents: String = parents.map(|it| format!(" < {it}")).collect();
    let line = process.argv.join(" ");
    vec![
        format!("wanted by {}", escaped(&program)),
        format!("  {}{}", escaped(&line), escaped(&parents)),
        why,
    ]
}

/// The terminal gives single keys, and does not show them. It is as before when this is dropped.
struct Raw(Termios);

impl Raw {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // What was typed before was not meant for this.
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use stockade_warden::Process;

    use super::*;

    #[test]
    fn a_question_says_who_wants_what_and_what_an_answer_opens_and_nothing_moves_the_cursor() {
        let question = HeldQuestion {
            id: 1,
            kind: QuestionKind::Flow,
            target: "tcp://198.51.100.7:443".to_owned(),
            protocol: Some("tcp".to_owned()),
            port: Some(443),
            address: None,
            names: vec!["xn--80ak6aa92e.com".to_owned()],
            unicode: vec!["аррӏе.com".to_owned()],
            process: Some(Process {
                pid: 7,
                exe: "/usr/bin/cu\x1b[2Jrl".to_owned(),
                argv: vec!["curl".to_owned(), "\u{202e}evil\n".to_owned()],
                parents: vec!["bash".to_owned(), "claude\x07".to_owned()],
            }),
            rule: "tcp://xn--80ak6aa92e.com:443".to_owned(),
            why: "no rule covers it".to_owned(),
            held: 1,
            waiting: 1,
            left: 59,
        };
        let shown = shown(&question, 2, POPUP, Some(Answer::Once), "press a key");
        assert!(shown.is_complete);
        let text = shown.lines.join("\n");
        for part in [
            "59 s left, 2 more",
            "tcp://198.51.100.7:443 (xn--80ak6aa92e.com)",
            "shows as аррӏе.com",
            "allowing it opens: tcp://xn--80ak6aa92e.com:443",
            r#"wanted by "cu\u{1b}[2Jrl""#,
            r"curl \u{202e}evil\u{a} < bash < claude\u{7}",
            "> o  allow once    Enter?",
            "press a key",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let odd = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert_eq!(text.chars().find(|c| odd(*c)), None);
    }

    /// Inside of the borders of the popup that tmux opens.
    const POPUP: (usize, usize) = (76, 18);

    fn named(name: &str, program: &str) -> HeldQuestion {
        HeldQuestion {
            id: 1,
            kind: QuestionKind::Name,
            target: name.to_owned(),
            protocol: None,
            port: None,
            address: None,
            names: vec![name.to_owned()],
            unicode: Vec::new(),
            process: Some(Process {
                pid: 7,
                exe: format!("/tmp/{program}"),
                argv: vec![program.to_owned()],
                parents: Vec::new(),
            }),
            rule: name.to_owned(),
            why: "no rule covers it".to_owned(),
            held: 1,
            waiting: 1,
            left: 59,
        }
    }

    #[test]
    fn no_program_and_no_length_of_a_name_hides_what_an_answer_opens() {
        let longest = format!("github.com.{}evil.example", "a23456789.".repeat(22));
        let blanks = format!("git asks for the name github.com{}", " ".repeat(200));
        for program in ["x", &blanks, &"日".repeat(80), &"x".repeat(255)] {
            let question = named(&longest, program);
            let Shown { lines, is_complete } = shown(&question, 0, POPUP, None, "");
            assert!(is_complete && lines.len() <= POPUP.1, "{lines:#?}");
            // Twice: as the target, and as the rule.
            assert_eq!(lines.concat().matches(&longest).count(), 2, "{lines:#?}");
            let at = |text: &str| lines.iter().position(|line| line.contains(text));
            assert!(at("allowing it opens:") < at("wanted by"), "{lines:#?}");
        }
    }

    #[test]
    fn a_key_chooses_by_itself_after_a_moment_and_enter_confirms_what_is_on_the_screen() {
        use Answer::Session;
        assert_eq!(press(b"s", None, true), Pressed::Key(Some(Session)));
        assert_eq!(press(b"\r", Some(Session), false), Pressed::Enter(Session));
        for (typed, on_screen, may_choose) in [
            // Right after another key, as in a word.
            (&b"s"[..], None, false),
            (b"s", Some(Session), false),
            // Together, as what is pasted, and a key that the terminal sends in several bytes.
            (b"s\r", None, true),
            (b"ts", None, true),
            (b"\x1b[A", None, true),
            (b"\r\r", Some(Session), true),
            (b"\r", None, true),
            (b"x", Some(Session), true),
        ] {
            let pressed = press(typed, on_screen, may_choose);
            assert_eq!(pressed, Pressed::Key(None), "{typed:?}");
        }
    }

    #[test]
    fn what_does_not_fit_can_only_be_denied() {
        let longest = format!("github.com.{}evil.example", "a23456789.".repeat(22));
        for size in [(76, 8), (20, 14), (20, 1), (20, 0)] {
            let shown = shown(&named(&longest, "x"), 0, size, None, "");
            assert!(!shown.is_complete && shown.lines.len() <= size.1);
            let text = shown.lines.concat();
            assert!(!text.contains("allow once") && !text.contains("session"));
        }
        // Positive control.
        assert!(shown(&named("a.example", "x"), 0, (20, 14), None, "").is_complete);
    }
}
