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
            format!("{} {}: {addresses}", field("name"), field("type"))
        }
        "reload" => format!(
            "internet {}, {}",
            open(line),
            counted(line, "rules", "rule")
        ),
        "ask" => format!("{}: {}", field("what"), field("text")),
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
    let exe = said(&process["exe"]);
    let words = cut(&said(&process["argv"]), LONGEST);
    format!("{exe} [{}]{chain}: {words}", said(&process["pid"]))
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
    let names = line["names"].as_array().map(|_| said(&line["names"]));
    match [device, names].into_iter().flatten().collect::<Vec<_>>() {
        names if names.is_empty() => String::new(),
        names => format!(" ({})", names.join("; ")),
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
