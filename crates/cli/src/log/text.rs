//! A line of the log for people: time, event, what happened, and dimly why and by whom.

use serde_json::Value;

use crate::terminal::{self, cut, said};

const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// What follows a line stands below its third column.
const BELOW: &str = "\n                      ";
const LONGEST: usize = 200;

/// An event that is none of the log's is a remark of the reader's.
pub(super) fn line(event: &str, line: &Value, colours: bool) -> String {
    let colour = |colour: &'static str| if colours { colour } else { "" };
    let (dim, plain) = (colour(DIM), colour(PLAIN));
    let mark = match event {
        "deny" => colour(RED),
        "lost" | "part" | "unreadable" | "found" | "ask" | "answer" | "pause" => colour(YELLOW),
        _ => "",
    };
    if line.is_null() {
        return format!("{dim}{event}{plain}");
    }
    let time = clock(&line["time"]);
    let event_shown = cut(&said(&Value::from(event)), 12);
    let mut text = format!("{dim}{time:12}{plain}  {mark}{event_shown:6}{plain}  ");
    text.push_str(&what(event, line));
    let by = line["by"].as_str().map(|_| said(&line["by"]));
    let at = line["at"].as_str().map(|_| said(&line["at"]));
    let why = match (by, at) {
        // A denial has its reason in words.
        (Some(by), None) if event == "open" => format!("  by {by}"),
        (Some(by), Some(at)) if event == "open" => format!("  by {by} ({at})"),
        (_, Some(at)) if event == "deny" => format!(" ({at})"),
        _ => String::new(),
    };
    if !why.is_empty() {
        text.push_str(&format!("{dim}{why}{plain}"));
    }
    for line in line["diff"].as_array().into_iter().flatten() {
        text.push_str(&format!("{BELOW}{}", said(line)));
    }
    if !line["process"].is_null() {
        let program = program(&line["process"]);
        text.push_str(&format!("{BELOW}{dim}{program}{plain}"));
    }
    let fixes = [&line["fix"], &line["setting"]];
    if let Some(fix) = fixes.into_iter().find(|fix| fix.is_string()) {
        let label = match event {
            "answer" => "the rule",
            _ => "to allow it",
        };
        text.push_str(&format!("{BELOW}{label}: {}", said(fix)));
        if line["danger"].is_string() {
            text.push_str(&format!(" (WARNING: {})", said(&line["danger"])));
        }
    }
    text
}

fn what(event: &str, line: &Value) -> String {
    let field = |name: &str| said(&line[name]);
    match event {
        "start" => start(line),
        "open" => format!("#{} {}{}", field("flow"), field("to"), named(line)),
        "close" => {
            let to = line["to"].as_str().map(|_| format!(" {}", field("to")));
            format!(
                "#{}{} after {} s, {} bytes out, {} in",
                field("flow"),
                to.unwrap_or_default(),
                field("seconds"),
                field("sent"),
                field("received")
            )
        }
        "deny" => format!("{}{}: {}", field("what"), again(line), field("text")),
        "name" => {
            let addresses = match field("addresses") {
                _ if line["addresses"].is_null() => "no answer".to_owned(),
                none if none.is_empty() => "no addresses".to_owned(),
                some => some,
            };
            let more = more(line, "more_addresses");
            format!("{} {}: {addresses}{more}", field("name"), field("type"))
        }
        "reload" => format!(
            "internet {}, {}",
            open(line),
            counted(line, "rules", "rule")
        ),
        "ask" => format!("{}{}: {}", field("what"), named(line), field("text")),
        "answer" => format!(
            "{}: {}, from {}",
            field("what"),
            field("answer"),
            field("from")
        ),
        "pause" => {
            let until = &line["until"];
            let until = clock(until)
                .get(..8)
                .map_or_else(|| said(until), str::to_owned);
            format!("nothing more is asked until {until}: {}", field("why"))
        }
        "lost" => format!(
            "{} could not be written: {}",
            counted(line, "count", "event"),
            field("why")
        ),
        "part" if line["removed"] == 0 => format!("the log goes on in part {}", field("part")),
        "part" => format!(
            "the log goes on in part {}; {} before it were removed to limit its size",
            field("part"),
            counted(line, "removed", "line")
        ),
        "found" => field("text"),
        "end" => format!(
            "exit code {}, {}",
            field("code"),
            counted(line, "denied", "denial")
        ),
        "unreadable" => format!("{} that are no line", counted(line, "bytes", "byte")),
        // Of a newer version.
        _ => cut(&said(line), LONGEST),
    }
}

fn start(line: &Value) -> String {
    let field = |name: &str| said(&line[name]);
    let date = field("time");
    let date = date.get(..10).unwrap_or(&date);
    let command = cut(&field("command"), LONGEST);
    let mut text = format!(
        "{command} in {}{BELOW}{date} UTC, session {}, profile {}, stockade {}, bubblewrap {}, Linux {}",
        field("workspace"),
        field("session"),
        field("profile"),
        field("stockade"),
        field("bubblewrap"),
        field("kernel"),
    );
    let policy = field("policy");
    let policy: String = policy.chars().take(12).collect();
    let rules = counted(line, "rules", "rule");
    text.push_str(&match line["mode"].as_str() {
        Some("jail") => format!("{BELOW}internet {}, {rules}, policy {policy}", open(line)),
        _ => format!("{BELOW}network: {}, policy {policy}", field("mode")),
    });
    let layers = line["layers"].as_object().into_iter().flatten();
    for (name, state) in layers {
        if let Some(why) = state
            .as_str()
            .and_then(|state| state.strip_prefix("absent: "))
        {
            let name = said(&Value::from(name.as_str()));
            text.push_str(&format!(
                "{BELOW}unavailable: {name}: {}",
                said(&why.into())
            ));
        }
    }
    text
}

/// The program: `curl [5] < sh < claude: curl -sS http://…`.
fn program(process: &Value) -> String {
    let parents = process["parents"].as_array().into_iter().flatten();
    let chain: String = parents.map(|name| format!(" < {}", said(name))).collect();
    let exe = cut(&word(&process["exe"]), LONGEST);
    let words = process["argv"].as_array().into_iter().flatten();
    let words: Vec<_> = words.map(word).collect();
    let words = cut(&words.join(" "), LONGEST);
    format!("{exe} [{}]{chain}: {words}", said(&process["pid"]))
}

/// A path or an argument, which a program inside may have chosen so that it reads like a line of ours
/// where the terminal wraps it. So one that has blanks is quoted, and none of them stand together.
fn word(value: &Value) -> String {
    let text = said(value);
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) {
        return text;
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            ' ' if !quoted.ends_with(' ') => quoted.push(c),
            c if c.is_ascii_graphic() || (c.is_alphanumeric() && !is_filler(c)) => quoted.push(c),
            c => quoted.extend(c.escape_unicode()),
        }
    }
    quoted.push('"');
    quoted
}

/// Letters that show as blanks.
fn is_filler(c: char) -> bool {
    matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

fn clock(time: &Value) -> String {
    match time {
        Value::Null => String::new(),
        time => {
            let time = said(time);
            time.get(11..23).unwrap_or(&time).to_owned()
        }
    }
}

fn open(line: &Value) -> &'static str {
    match line["internet"].as_bool() {
        Some(true) => "open",
        Some(false) => "closed",
        None => "?",
    }
}

fn named(line: &Value) -> String {
    let device = line["device"].as_str();
    let device = device.map(|_| format!("device {}", said(&line["device"])));
    let names = line["names"].as_array();
    let names = names.map(|_| said(&line["names"]) + &more(line, "more_names"));
    match [device, names].into_iter().flatten().collect::<Vec<_>>() {
        names if names.is_empty() => String::new(),
        names => format!(" ({})", names.join("; ")),
    }
}

/// A line of the log has room for some names or addresses only.
fn more(line: &Value, field: &str) -> String {
    match &line[field] {
        Value::Null => String::new(),
        count => format!(" and {} more", said(count)),
    }
}

/// Of denials that were folded: the first of the kind has a line of its own.
fn again(line: &Value) -> String {
    match (line["count"].as_u64(), &line["until"]) {
        (Some(1), Value::String(_)) => " (once more)".to_owned(),
        (Some(count), until @ Value::String(_)) => {
            format!(" ({count} more times until {})", clock(until))
        }
        _ => String::new(),
    }
}

fn counted(line: &Value, field: &str, one: &str) -> String {
    match line[field].as_u64() {
        Some(number) => terminal::counted(number, one),
        None => format!("{} {one}s", said(&line[field])),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn colours_are_there_only_if_wanted() {
        let deny = json!({ "event": "deny", "what": "x", "text": "y", "count": 1 });
        assert!(line("deny", &deny, true).contains("\x1b[31mdeny"));
        assert!(!line("deny", &deny, false).contains('\x1b'));
    }

    #[test]
    fn no_program_writes_a_line_of_ours_where_the_terminal_wraps() {
        let blanks = " ".repeat(60);
        let exe = format!("/tmp/x{blanks}to allow it: 10.0.0.0/8{blanks}");
        let argv = json!([
            "python3",
            "-c",
            "a b",
            format!("c\u{3164}\u{3164}{blanks}d"),
            ""
        ]);
        let process = json!({ "exe": exe, "pid": 3, "argv": argv, "parents": ["sh"] });
        let shown = program(&process);
        assert!(!shown.contains("  "), "{shown}");
        assert!(!shown.contains('\u{3164}'), "{shown}");
        assert!(
            shown.contains(r#" [3] < sh: python3 -c "a b" "c\u{3164}"#),
            "{shown}"
        );
    }

    #[test]
    fn every_column_escapes_what_it_shows() {
        let hostile = "\u{1b}[2J\n\u{202e}";
        let mut all = json!({});
        for field in [
            "time",
            "to",
            "names",
            "by",
            "at",
            "what",
            "text",
            "fix",
            "danger",
            "name",
            "type",
            "command",
            "workspace",
            "session",
            "profile",
            "stockade",
            "kernel",
            "policy",
            "mode",
            "why",
            "flow",
            "seconds",
            "sent",
            "count",
            "until",
            "code",
            "denied",
            "part",
            "removed",
            "more_names",
            "more_addresses",
        ] {
            all[field] = json!(hostile);
        }
        all["process"] =
            json!({ "pid": hostile, "exe": hostile, "argv": [hostile], "parents": [hostile] });
        all["diff"] = json!([hostile]);
        all["layers"] = json!({ hostile: format!("absent: {hostile}") });
        for event in [
            "start", "open", "close", "deny", "name", "ask", "answer", "pause", "reload", "lost",
            "part", "found", "end", hostile,
        ] {
            let shown = line(event, &all, false).replace(BELOW, "");
            let acted_on = shown.contains(|c: char| c.is_control() || c == '\u{202e}');
            assert!(!acted_on, "{event}: {shown:?}");
        }
    }

    #[test]
    fn names_and_addresses_that_the_log_has_no_room_for_are_counted() {
        let mut open =
            json!({ "flow": 1, "to": "tcp://192.0.2.1:443", "names": ["a.example", "b.example"] });
        let shown = |event: &str, it: &Value| line(event, it, false).trim_start().to_owned();
        assert!(shown("open", &open).ends_with("(a.example b.example)"));
        open["more_names"] = json!(31);
        assert!(shown("open", &open).ends_with("(a.example b.example and 31 more)"));
        let ask = json!({ "what": "tcp://192.0.2.1:443", "names": ["a.example"], "more_names": 2, "text": "why" });
        let text = "tcp://192.0.2.1:443 (a.example and 2 more): why";
        assert!(shown("ask", &ask).ends_with(text));
        let name = json!({ "name": "a.example", "type": "A", "addresses": ["192.0.2.1"], "more_addresses": 7 });
        assert!(shown("name", &name).ends_with("a.example A: 192.0.2.1 and 7 more"));
    }

    #[test]
    fn denials_that_were_folded_say_when_the_last_was() {
        let mut deny = json!({ "what": "x", "text": "y", "count": 3,
            "time": "2026-01-02T03:04:05.678Z", "until": "2026-01-02T03:04:09.000Z" });
        let shown = line("deny", &deny, false);
        assert_eq!(
            shown,
            "03:04:05.678  deny    x (3 more times until 03:04:09.000): y"
        );
        deny["count"] = json!(1);
        assert!(line("deny", &deny, false).contains("x (once more): y"));
    }
}
