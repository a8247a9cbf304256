//! What is drawn, at several sizes, and what keys do.

use std::time::Duration;

use jiff::Timestamp;
use ratatui_core::{backend::TestBackend, layout::Size, terminal::Terminal};
use serde_json::json;
use stockade_warden::live::Answer;

use crate::{
    draw::draw,
    example,
    keys::Key,
    rows::List,
    view::{Action, Panel, UNREAD, View},
};

const ID: &str = "1794700000-77-ab12";
const SIZES: [(u16, u16); 3] = [(80, 24), (60, 15), (200, 50)];

fn date() -> Timestamp {
    "2026-11-17T12:05:00Z".parse().expect("a date")
}

fn view(width: u16, height: u16) -> View {
    let mut view = View::new(Size::new(width, height), true);
    let session = view.session(ID);
    session.show(&example::snapshot());
    for (name, addresses) in [
        ("api.example.com", json!(["203.0.113.10"])),
        ("nowhere.example", json!([])),
    ] {
        session.read(
            &json!({ "event": "name", "time": "2026-11-17T12:04:00Z", "name": name,
            "type": "A", "addresses": addresses }),
        );
    }
    session.read(&json!({ "event": "deny", "time": "2026-11-17T12:03:00Z", "kind": "flow",
        "what": "tcp://192.168.10.21:80", "reason": "near", "by": "the local network is closed",
        "text": "192.168.10.21 is in a private network", "fix": "tcp://192.168.10.21:80", "count": 1,
        "process": { "pid": 9, "exe": "/usr/bin/curl", "argv": ["curl", "-sS", "http://192.168.10.21/"],
            "parents": ["bash", "claude"] } }));
    view.update(Duration::ZERO);
    view
}

fn press(view: &mut View, keys: &str, now: Duration) -> Option<Action> {
    let mut action = None;
    for letter in keys.chars() {
        action = view.press(&[Key::Letter(letter)], now, date()).or(action);
    }
    action
}

fn screen(view: &View) -> Vec<String> {
    let Size { width, height } = view.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw(view, frame, Duration::from_secs(60), date()));
    let buffer = drawn.expect("a screen").buffer.clone();
    let cells = buffer.content.chunks(usize::from(width).max(1));
    cells
        .map(|line| {
            let line: String = line
                .iter()
                .map(ratatui_core::buffer::Cell::symbol)
                .collect();
            line.trim_end().to_owned()
        })
        .collect()
}

fn text(view: &View) -> String {
    screen(view).join("\n")
}

#[test]
fn every_size_shows_the_question_the_list_and_the_keys() {
    for (width, height) in SIZES {
        let view = view(width, height);
        let lines = screen(&view);
        let text = lines.join("\n");
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            lines[0],
            " stockade: 1 question, 1 session, 3 connections, 2 denials"
        );
        for words in [
            "(api.example.com), wanted by curl",
            "opens: tcp://api.example.com:443",
            "curl < bash < claude: curl -sS https://api.example.com/",
        ] {
            assert!(one_line.contains(words), "{words}: {text}");
        }
        for word in [
            "once",
            "session",
            "always",
            "deny",
            "52 s left",
            "api.anthropic.com",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(
            lines
                .last()
                .is_some_and(|line| line.contains("Enter details")),
            "{text}"
        );
    }
}

#[test]
fn the_usual_screen() {
    let text = text(&view(80, 24));
    assert!(
        text.starts_with(
            "\u{20}stockade: 1 question, 1 session, 3 connections, 2 denials
 QUESTION
>project: tcp://203.0.113.10:443 (api.example.com), wanted by curl     52 s left
   allowing it opens: tcp://api.example.com:443
   curl < bash < claude: curl -sS https://api.example.com/
 o allow once   s allow for this session   a always allow   d deny
 1 connections   2 denials   3 names   4 sessions
 NAME                   TO                     PROGRAM     OUT    IN     AGE^
 api.anthropic.com      tcp://203.0.113.1:443  curl        1.1K   332K   10 s
 github.com             tcp://203.0.113.2:443  curl        2.3K   664K   20 s
"
        ),
        "{text}"
    );
}

#[test]
fn each_list_shows_its_rows_and_their_details() {
    let mut view = view(80, 24);
    for (key, row, details) in [
        (
            '1',
            "api.anthropic.com",
            [
                "allowed by",
                "~/.config/stockade/config.toml:3",
                "curl < bash < claude",
            ],
        ),
        (
            '2',
            "tcp://192.168.10.21:80",
            [
                "to allow it",
                "--allow tcp://192.168.10.21:80",
                "/usr/bin/curl [9]",
            ],
        ),
        (
            '3',
            "nowhere.example",
            ["last asked", "no addresses", "/home/dev/project"],
        ),
        ('4', "live", ["state", "live", ID]),
    ] {
        press(&mut view, &key.to_string(), UNREAD);
        // Ages are the same for names, so the order is by name.
        if key == '3' {
            press(&mut view, "j", UNREAD);
        }
        let shown = text(&view);
        assert!(shown.contains(row), "{key}: {shown}");
        view.press(&[Key::Enter], UNREAD, date());
        let shown = text(&view);
        for detail in details {
            assert!(shown.contains(detail), "{key} {detail}: {shown}");
        }
        // The question is there all the time.
        assert!(shown.contains("52 s left"), "{shown}");
        view.press(&[Key::Escape], UNREAD, date());
        assert_eq!(view.panel, Panel::List);
    }
}

#[test]
fn keys_answer_the_chosen_question() {
    for (key, wanted) in [
        ('o', Answer::Once),
        ('s', Answer::Session),
        ('a', Answer::Always),
        ('d', Answer::Deny),
    ] {
        let mut view = view(80, 24);
        let action = press(&mut view, &key.to_string(), UNREAD);
        let answer = Action::Answer {
            session: ID.to_owned(),
            question: 7,
            answer: wanted,
        };
        assert_eq!(action, Some(answer));
        // It is not asked again while its answer is on the way, and is when that had no effect.
        assert_eq!(press(&mut view, "o", 9 * UNREAD), None);
        assert!(!text(&view).contains("QUESTION"));
        view.unanswered(ID, 7);
        view.update(9 * UNREAD);
        assert!(text(&view).contains("QUESTION"));
    }
}

#[test]
fn a_question_that_has_just_come_or_moved_up_takes_no_answer() {
    let mut view = view(80, 24);
    assert_eq!(press(&mut view, "o", UNREAD / 2), None);
    assert!(text(&view).contains("QUESTION"));
    let mut snapshot = example::snapshot();
    snapshot
        .questions
        .push(example::question(8, "evil.example"));
    view.session(ID).show(&snapshot);
    assert!(view.update(UNREAD), "a new question rings");
    assert!(!view.update(UNREAD), "once");
    // The first one goes away just before the key.
    snapshot.questions.remove(0);
    view.session(ID).show(&snapshot);
    view.update(4 * UNREAD);
    assert_eq!(press(&mut view, "o", 4 * UNREAD + UNREAD / 2), None);
    // Positive control: later it counts.
    assert!(press(&mut view, "o", 5 * UNREAD).is_some());
}

#[test]
fn what_is_pasted_or_typed_into_the_filter_answers_nothing() {
    let mut view = view(80, 24);
    let pasted: Vec<_> = "osad".chars().map(Key::Letter).collect();
    assert_eq!(view.press(&pasted, UNREAD, date()), None);
    assert!(text(&view).contains("QUESTION"));
    assert_eq!(press(&mut view, "/osad", UNREAD), None);
    assert_eq!(view.filter, "osad");
    assert!(text(&view).contains("filter: osad_"));
    view.press(&[Key::Escape], UNREAD, date());
    assert_eq!(view.filter, "");
    assert!(press(&mut view, "d", UNREAD).is_some(), "the control");
}

#[test]
fn tab_chooses_another_question_and_the_choice_stays_with_it() {
    let mut view = view(80, 24);
    let mut snapshot = example::snapshot();
    snapshot
        .questions
        .push(example::question(8, "second.example"));
    view.session(ID).show(&snapshot);
    view.update(UNREAD);
    view.press(&[Key::Tab], UNREAD, date());
    let shown = text(&view);
    assert!(shown.contains("2 QUESTIONS"), "{shown}");
    assert!(shown.contains("tcp://second.example:443"), "{shown}");
    assert_eq!(
        press(&mut view, "o", UNREAD + UNREAD / 2),
        None,
        "just chosen"
    );
    // One that comes before it does not change that.
    snapshot
        .questions
        .insert(0, example::question(6, "before.example"));
    view.session(ID).show(&snapshot);
    view.update(2 * UNREAD);
    let action = press(&mut view, "o", 2 * UNREAD);
    assert!(
        matches!(action, Some(Action::Answer { question: 8, .. })),
        "{action:?}"
    );
}

#[test]
fn a_name_is_never_cut_in_its_question_and_what_does_not_fit_cannot_be_allowed() {
    let long = format!("api.github.com.{}.evil.example", ["a"; 110].join("."));
    assert!(long.len() < 254);
    for ((width, height), fits) in [
        ((80, 24), true),
        ((200, 50), true),
        ((60, 15), false),
        ((20, 5), false),
    ] {
        let mut view = view(width, height);
        let mut snapshot = example::snapshot();
        snapshot.questions = vec![example::question(9, &long)];
        view.session(ID).show(&snapshot);
        view.update(Duration::ZERO);
        let lines = screen(&view);
        let all: String = lines
            .iter()
            .map(|line| line.replace(['>', ' '], "").replace("52sleft", ""))
            .collect();
        let is_whole =
            all.contains(&format!("({long})")) && all.contains(&format!("tcp://{long}:443"));
        assert_eq!(is_whole, fits, "{width}: {lines:#?}");
        let action = press(&mut view, "a", UNREAD);
        assert_eq!(action.is_some(), fits, "{width}");
        if !fits {
            assert!(
                press(&mut view, "d", UNREAD).is_some(),
                "denying is always possible"
            );
        }
    }
}

#[test]
fn a_name_in_another_script_is_shown_as_it_is_in_dns_and_as_it_looks() {
    let mut view = view(80, 24);
    let mut snapshot = example::snapshot();
    let mut question = example::question(9, "xn--80ak6aa92e.com");
    question.unicode = vec!["аррӏе.com".to_owned()];
    snapshot.questions = vec![question];
    view.session(ID).show(&snapshot);
    view.update(Duration::ZERO);
    let shown = text(&view);
    for part in [
        "(xn--80ak6aa92e.com), wanted by curl",
        "the name shows as аррӏе.com",
        "allowing it opens: tcp://xn--80ak6aa92e.com:443",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn nothing_that_programs_choose_moves_or_hides_on_the_screen() {
    let hostile = "x\u{1b}[2J\u{9b}\r\n\u{7}\u{202e}\u{200b}\u{3164}\u{301}\u{e0041}\u{fe0f}";
    for (width, height) in SIZES {
        let mut view = View::new(Size::new(width, height), true);
        let mut snapshot = example::snapshot();
        snapshot.workspace = format!("/home/{hostile}");
        snapshot.command = vec![hostile.to_owned()];
        let flow = &mut snapshot.flows[0];
        for field in [&mut flow.to, &mut flow.rule, &mut flow.protocol] {
            *field = hostile.to_owned();
        }
        flow.at = Some(hostile.to_owned());
        flow.names = vec![hostile.to_owned()];
        let question = &mut snapshot.questions[0];
        for field in [&mut question.target, &mut question.rule, &mut question.why] {
            *field = hostile.to_owned();
        }
        question.names = vec![hostile.to_owned()];
        question.unicode = vec![hostile.to_owned()];
        for process in [&mut flow.process, &mut question.process] {
            let mut evil = example::process(hostile);
            evil.argv = vec![hostile.to_owned()];
            evil.parents = vec![hostile.to_owned()];
            *process = Some(evil);
        }
        let session = view.session(hostile);
        session.show(&snapshot);
        let mut line = json!({ "process": { "pid": hostile, "exe": hostile, "argv": [hostile],
            "parents": [hostile] } });
        for field in [
            "what",
            "text",
            "by",
            "at",
            "fix",
            "setting",
            "reason",
            "name",
            "type",
            "addresses",
        ] {
            line[field] = json!(hostile);
        }
        for event in ["deny", "name"] {
            line["event"] = json!(event);
            session.read(&line);
        }
        view.update(Duration::ZERO);
        for key in ['1', '2', '3', '4', 'i', '?'] {
            press(&mut view, &key.to_string(), UNREAD);
            for panel in [view.panel, Panel::Details(0)] {
                view.panel = panel;
                let shown = text(&view).replace('\n', "");
                let odd = |c: char| !c.is_ascii() && !"…←→↑↓".contains(c) || c.is_control();
                assert_eq!(shown.chars().find(|c| odd(*c)), None, "{key}: {shown:?}");
            }
        }
        // The control: it was there to be shown.
        assert!(text(&view).contains("\\u{1b}[2J"));
    }
}

#[test]
fn what_a_program_calls_itself_makes_no_line_of_its_own() {
    const OPENS: &str = "allowing it opens: ";
    for (width, height) in SIZES {
        let mut view = View::new(Size::new(width, height), true);
        let mut snapshot = example::snapshot();
        let blanks = " ".repeat(150);
        let name = format!("/tmp/git{blanks}{OPENS}github.com{blanks}");
        snapshot.questions[0].process = Some(example::process(&name));
        view.session(ID).show(&snapshot);
        view.update(Duration::ZERO);
        let screen = screen(&view);
        let opens: Vec<_> = screen
            .iter()
            .filter_map(|line| line.trim().strip_prefix(OPENS))
            .collect();
        // The control: the one that is ours is there.
        assert_eq!(opens, ["tcp://api.example.com:443"], "{screen:#?}");
        assert!(view.question_panel(UNREAD).is_complete);
    }
}

#[test]
fn a_denial_that_is_dangerous_to_allow_says_so() {
    let shown = |danger: serde_json::Value| {
        let mut view = view(80, 24);
        view.session(ID)
            .read(&json!({ "event": "deny", "time": "2026-11-17T12:04:30Z",
            "what": "tcp://169.254.169.254:80", "reason": "metadata-service", "count": 1,
            "fix": "tcp://169.254.169.254:80", "danger": danger }));
        press(&mut view, "2", UNREAD);
        view.press(&[Key::Enter], UNREAD, date());
        text(&view)
    };
    let warned = shown(json!("it hands out this machine's login at its cloud"));
    assert!(
        warned.contains("--allow tcp://169.254.169.254:80"),
        "{warned}"
    );
    assert!(warned.contains("WARNING"), "{warned}");
    assert!(!shown(json!(null)).contains("WARNING"));
}

#[test]
fn colours_are_there_only_if_wanted() {
    for wanted in [true, false] {
        let mut view = view(80, 24);
        view.colours = wanted;
        press(&mut view, "2", UNREAD);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
        let drawn = terminal.draw(|frame| draw(&view, frame, UNREAD, date()));
        let buffer = drawn.expect("a screen").buffer.clone();
        let has_colour = buffer.content.iter().any(|cell| {
            cell.fg != ratatui_core::style::Color::Reset
                || cell.bg != ratatui_core::style::Color::Reset
        });
        assert_eq!(has_colour, wanted);
    }
}

#[test]
fn rows_are_filtered_and_sorted() {
    let mut view = view(80, 24);
    let names = |view: &View| {
        let rows = view.rows(date());
        rows.iter()
            .map(|row| row.cells[1].text.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&view),
        ["api.anthropic.com", "github.com", "registry.example.org"]
    );
    press(&mut view, "r", UNREAD);
    assert_eq!(names(&view)[0], "registry.example.org");
    // From the last column to the first, and on to the name.
    press(&mut view, "cc", UNREAD);
    assert_eq!(names(&view)[0], "registry.example.org");
    press(&mut view, "r", UNREAD);
    assert_eq!(names(&view)[0], "api.anthropic.com");
    // Numbers are sorted as numbers: 1200, 2400, 3600 bytes.
    press(&mut view, "cccr", UNREAD);
    assert_eq!(names(&view)[0], "registry.example.org");
    press(&mut view, "/GitHub", UNREAD);
    view.press(&[Key::Enter], UNREAD, date());
    assert_eq!(names(&view), ["github.com"]);
    assert!(text(&view).contains("filter: GitHub"));
    press(&mut view, "/ nothing", UNREAD);
    assert!(text(&view).contains("nothing here contains"));
}

#[test]
fn questions_of_all_sessions_are_on_top_and_lists_can_be_of_one() {
    let mut view = view(80, 24);
    let mut other = example::snapshot();
    other.session = "1794700001-78-cd34".to_owned();
    other.workspace = "/home/dev/lab".to_owned();
    other.questions = vec![example::question(1, "lab.example")];
    view.session("1794700001-78-cd34").show(&other);
    view.update(UNREAD);
    let shown = text(&view);
    assert!(shown.contains("2 sessions, 6 connections"), "{shown}");
    assert!(shown.contains("2 QUESTIONS"), "{shown}");
    assert!(
        shown.contains(" lab: tcp://203.0.113.10:443 (lab.example)"),
        "{shown}"
    );
    assert!(shown.contains("SESSION"), "{shown}");
    press(&mut view, "4 1", UNREAD);
    assert_eq!(view.list, List::Connections);
    let shown = text(&view);
    assert!(shown.contains("only "), "{shown}");
    assert!(!shown.contains("SESSION"), "{shown}");
    assert!(shown.contains("2 QUESTIONS"), "{shown}");
    view.press(&[Key::Escape], UNREAD, date());
    assert!(text(&view).contains("SESSION"));
}

#[test]
fn a_pause_is_told_and_so_is_a_session_that_cannot_be_asked() {
    let mut view = view(80, 24);
    let mut snapshot = example::snapshot();
    snapshot.questions.clear();
    snapshot.paused = Some(34);
    view.session(ID).show(&snapshot);
    view.update(UNREAD);
    let shown = text(&view);
    assert!(
        shown.contains("project: denies without asking for 34 s"),
        "{shown}"
    );
    view.session(ID)
        .unheard("the session is of another version");
    press(&mut view, "4", UNREAD);
    view.press(&[Key::Enter], UNREAD, date());
    let shown = text(&view);
    assert!(
        shown.contains("it takes no answers: the session is of another version"),
        "{shown}"
    );
}

#[test]
fn no_size_is_too_small_to_draw() {
    for width in [0, 1, 3, 10, 25] {
        for height in [0, 1, 2, 5, 9] {
            let mut view = view(width, height);
            for keys in ["1", "2", "3", "4", "i", "?"] {
                press(&mut view, keys, UNREAD);
                let _ = screen(&view);
                view.press(&[Key::Escape, Key::Enter, Key::PageDown], UNREAD, date());
                let _ = screen(&view);
            }
        }
    }
    let empty = View::new(Size::new(80, 24), true);
    assert!(text(&empty).contains("no session is running"));
}
