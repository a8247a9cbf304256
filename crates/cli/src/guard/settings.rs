//! An agent's settings with and without its guard.

use std::path::Path;

use serde_json::Value;
use stockade_sys::mark::is_stockade;

use super::{
    agents::{Guarded, program},
    json::{Kind, Malformed, Node, cut, insert, parse},
};

/// Why settings cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotEditable {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("{0} is not what this agent's settings have there")]
    Shape(String),
}

/// What a file says about the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// All hooks are there as they should be, and ask this program.
    Whole {
        program: String,
    },
    /// There is a part of it, but it does not keep the agent from working.
    Damaged {
        why: String,
    },
}

/// What a file that is made for the guard alone is without it. Nobody writes that.
const NEW: &str = "{ \n}\n";

/// The text of a file that did not exist.
pub(super) fn new(agent: &Guarded, program: &str) -> Result<String, NotEditable> {
    add(NEW, agent, program)
}

/// Whether nothing but the guard was ever in the file.
pub(super) fn is_new(text: &str) -> bool {
    text == NEW
}

/// The same settings with a guard that asks this program.
pub(super) fn add(text: &str, agent: &Guarded, program: &str) -> Result<String, NotEditable> {
    let mut text = text.to_owned();
    for (event, matcher) in agent.events {
        let hook = compact(&agent.hook(*matcher, program));
        let root = settings(&text, agent)?;
        text = match (
            root.member("hooks"),
            root.member("hooks").and_then(|it| it.member(event)),
        ) {
            (_, Some(hooks)) => insert(&text, hooks, &hook),
            (Some(events), None) => insert(&text, events, &format!("\"{event}\": [{hook}]")),
            (None, None) => insert(
                &text,
                &root,
                &format!("\"hooks\": {{\"{event}\": [{hook}]}}"),
            ),
        };
    }
    // What came of it is read as a reader does.
    match find(&text, agent)? {
        Found::Whole { .. } => Ok(text),
        Found::Damaged { why } => Err(NotEditable::Shape(why)),
        Found::Nothing => Err(NotEditable::Shape("`hooks`".to_owned())),
    }
}

/// With a space after each colon and comma, as in files that people write.
fn compact(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), compact(value))
            };
            let mut members: Vec<String> = members.iter().map(member).collect();
            // The matcher first, as is the custom.
            members.sort_by_key(|member| {
                !member.starts_with("\"matcher") && !member.starts_with("\"type")
            });
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(compact).collect();
            format!("[{}]", elements.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// The same settings without any guard. If nothing else was changed since one was added, they are
/// what they were before, byte for byte.
pub(super) fn remove(text: &str, agent: &Guarded) -> Result<String, NotEditable> {
    let mut text = text.to_owned();
    let root = settings(&text, agent)?;
    let all = root.member("hooks").map(Node::members).unwrap_or_default();
    let others = all.iter().map(|member| member.name.as_str());
    let others = others.filter(|name| agent.events.iter().all(|(event, _)| event != name));
    // In the reverse order: each step is the inverse of one of `add`. A session may have put others elsewhere.
    let events = agent.events.iter().rev().map(|(event, _)| *event);
    for event in events.chain(others) {
        loop {
            let root = settings(&text, agent)?;
            match without_first(&text, &root, event) {
                Some(less) => text = less,
                None => break,
            }
        }
    }
    settings(&text, agent)?;
    Ok(text)
}

/// Takes out the first hook of a guard's, with the brackets that have nothing else in them.
fn without_first(text: &str, root: &Node, event: &str) -> Option<String> {
    let position = |node: &Node, name: &str| {
        let mut members = node.members().iter();
        members.position(|member| member.name == name)
    };
    let hooks = root.member("hooks")?;
    let groups = hooks.member(event)?;
    let is_of_guard = |group: &&Node| group.member("hooks").is_some_and(has_guard);
    let index = groups.elements().iter().position(|it| is_of_guard(&it))?;
    let group = groups.elements().get(index)?;
    let commands = group.member("hooks")?;
    let ours = commands
        .elements()
        .iter()
        .position(|it| guard_of(it).is_some())?;
    let in_group = match commands.elements().len() {
        1 => None,
        // Somebody put others beside it.
        _ => cut(text, commands, ours),
    };
    in_group
        .or_else(|| cut(text, groups, index))
        .or_else(|| cut(text, hooks, position(hooks, event)?))
        .or_else(|| cut(text, root, position(root, "hooks")?))
        // All that there is.
        .or_else(|| {
            let span = root.members().first()?.span.clone();
            Some(format!(
                "{}{}",
                text.get(..span.start)?,
                text.get(span.end..)?
            ))
        })
}

fn has_guard(hooks: &Node) -> bool {
    hooks.elements().iter().any(|it| guard_of(it).is_some())
}

/// The program that a hook asks, if it is a guard's.
fn guard_of(hook: &Node) -> Option<String> {
    match &hook.member("command")?.kind {
        Kind::Scalar(Value::String(command)) => program(command),
        _ => None,
    }
}

/// The programs that hooks of a guard's ask, however much of it is left.
pub(super) fn programs(text: &str, agent: &Guarded) -> Vec<String> {
    let Ok(root) = settings(text, agent) else {
        return Vec::new();
    };
    let events = root.member("hooks").map(Node::members).unwrap_or_default();
    let groups = events.iter().flat_map(|event| event.value.elements());
    let hooks = groups.flat_map(|group| {
        group
            .member("hooks")
            .map(Node::elements)
            .unwrap_or_default()
    });
    hooks.filter_map(guard_of).collect()
}

/// Looks for the guard. A part that is missing or different is as bad as all of it.
pub(super) fn find(text: &str, agent: &Guarded) -> Result<Found, NotEditable> {
    let root = settings(text, agent)?;
    let mut programs = Vec::new();
    let mut faults = Vec::new();
    for (event, matcher) in agent.events {
        let hooks = root.member("hooks").and_then(|it| it.member(event));
        let groups = hooks.map(Node::elements).unwrap_or_default();
        let ours = groups.iter().find_map(|group| {
            let hooks = group.member("hooks")?.elements().iter();
            hooks
                .filter_map(guard_of)
                .next()
                .map(|program| (group, program))
        });
        match ours {
            None => faults.push(format!("the hook {event} is missing")),
            Some((group, program)) => {
                if group.value() != agent.hook(*matcher, &program) {
                    faults.push(format!("the hook {event} was changed"));
                }
                programs.push(program);
            }
        }
    }
    let Some(program) = programs.first() else {
        return Ok(Found::Nothing);
    };
    if agent.turns_off(&root.value()) {
        faults.push(format!(
            "`{}` turns all hooks off",
            agent.switch.0.join(".")
        ));
    }
    if programs.iter().any(|other| other != program) {
        faults.push("its hooks ask different programs".to_owned());
    }
    Ok(match faults.is_empty() {
        true => Found::Whole {
            program: program.clone(),
        },
        false => Found::Damaged {
            why: faults.join(", "),
        },
    })
}

/// The settings, if they have the form that a guard needs.
fn settings(text: &str, agent: &Guarded) -> Result<Node, NotEditable> {
    let root = parse(text, agent.comments)?;
    let is_object = |node: &Node| matches!(node.kind, Kind::Object(_));
    let shape = |what: &str| Err(NotEditable::Shape(format!("`{what}`")));
    if !is_object(&root) {
        return Err(NotEditable::Shape("the whole text".to_owned()));
    }
    if let Some(hooks) = root.member("hooks") {
        if !is_object(hooks) {
            return shape("hooks");
        }
        for (event, _) in agent.events {
            if let Some(Node { kind, .. }) = hooks.member(event)
                && !matches!(kind, Kind::Array(_))
            {
                return shape(&format!("hooks.{event}"));
            }
        }
    }
    Ok(root)
}

/// Whether a program that a guard asks can be asked.
pub(super) fn is_there(program: &str) -> bool {
    let program = Path::new(program);
    rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
        && program.is_file()
        && is_stockade(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/usr/bin/stockade";

    fn agents() -> impl Iterator<Item = &'static Guarded> {
        super::super::agents::GUARDED.iter()
    }

    fn claude() -> &'static Guarded {
        Guarded::find("claude").expect("an agent")
    }

    #[test]
    fn what_a_guard_adds_is_removed_again_byte_by_byte() {
        for agent in agents() {
            let (first, last) = (agent.events[0].0, agent.events[1].0);
            let other = r#"{"hooks": [{"type": "command", "command": "x"}]}"#;
            for text in [
                "{}".to_owned(),
                "{ }\n".to_owned(),
                "{\n}\n".to_owned(),
                "\u{feff}{\"a\":[]}".to_owned(),
                "{\n  \"model\": \"x\",\n  \"env\": {\"A\": \"1\"}\n}\n".to_owned(),
                "{\"model\":\"x\"}".to_owned(),
                "{\"hooks\":{}}".to_owned(),
                "{\"hooks\": {\n  }\n}".to_owned(),
                format!("{{\"hooks\":{{\"{first}\":[]}}}}"),
                format!("{{\"hooks\":{{\"{last}\":[ ],\"{first}\":[]}}}}"),
                format!("{{\n\t\"hooks\": {{\n\t\t\"{last}\": [\n\t\t\t{other}\n\t\t]\n\t}}\n}}"),
                format!("{{\"hooks\": {{\"Stop\": [{other}], \"{first}\": [{other},{other}]}}}}"),
            ] {
                let guarded = add(&text, agent, PROGRAM).expect("a guard");
                let program = PROGRAM.to_owned();
                assert_eq!(
                    find(&guarded, agent),
                    Ok(Found::Whole { program }),
                    "{guarded}"
                );
                assert_eq!(
                    remove(&guarded, agent).as_deref(),
                    Ok(text.as_str()),
                    "{guarded}"
                );
                // Everything else is as it was, by the word of another parser.
                let read = |text: &str| -> Value {
                    serde_json::from_str(text.trim_start_matches('\u{feff}')).expect("JSON")
                };
                let [mut before, mut after] = [read(&text), read(&guarded)];
                for value in [&mut before, &mut after] {
                    value.as_object_mut().expect("an object").remove("hooks");
                }
                assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn a_guard_is_removed_from_settings_that_were_written_anew() {
        for text in ["{}", "{\"model\": \"x\"}"] {
            let guarded = add(text, claude(), PROGRAM).expect("a guard");
            let value: Value = serde_json::from_str(&guarded).expect("JSON");
            let pretty = serde_json::to_string_pretty(&value).expect("JSON");
            let program = PROGRAM.to_owned();
            assert_eq!(find(&pretty, claude()), Ok(Found::Whole { program }));
            let less = remove(&pretty, claude()).expect("settings");
            let less: Value = serde_json::from_str(&less).expect("JSON");
            assert_eq!(less, serde_json::from_str::<Value>(text).expect("JSON"));
        }
        // Wherever in the settings one is.
        for event in ["Stop", "SessionStart"] {
            let text = new(claude(), PROGRAM).expect("a guard");
            let text = text.replace("PreToolUse", event);
            assert_eq!(programs(&text, claude()).len(), 2);
            let less = remove(&text, claude()).expect("settings");
            assert!(programs(&less, claude()).is_empty(), "{less}");
        }
        // Others beside it stay.
        let hook = claude().hook(None, PROGRAM)["hooks"][0].clone();
        let text = format!(
            r#"{{"hooks":{{"UserPromptSubmit":[{{"hooks":[{hook},{{"type":"command","command":"x"}}]}}]}}}}"#
        );
        let less = remove(&text, claude()).expect("settings");
        assert_eq!(
            serde_json::from_str::<Value>(&less).expect("JSON"),
            serde_json::json!({"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"x"}]}]}})
        );
    }

    #[test]
    fn a_guard_that_lacks_something_is_damaged() {
        let guarded = new(claude(), PROGRAM).expect("a guard");
        for (from, to) in [
            ("PreToolUse", "PostToolUse"),
            ("UserPromptSubmit", "Stop"),
            ("\"matcher\": \"*\"", "\"matcher\": \"Bash\""),
            ("exit 2", "exit 0"),
            ("\"type\"", "\"async\": true, \"type\""),
            ("/usr/bin/stockade", "/bin/true"),
            ("{ ", "{\"disableAllHooks\": true, "),
        ] {
            let damaged = guarded.replacen(from, to, 1);
            assert_ne!(damaged, guarded);
            let found = find(&damaged, claude());
            assert!(
                matches!(found, Ok(Found::Damaged { .. })),
                "{to}: {found:?}"
            );
        }
        assert_eq!(find("{}", claude()), Ok(Found::Nothing));
    }

    #[test]
    fn what_is_no_settings_is_refused() {
        for text in [
            "",
            "[]",
            "{\"hooks\": []}",
            "{\"hooks\": {\"PreToolUse\": {}}}",
            "// x\n{}",
            "{,}",
        ] {
            assert!(add(text, claude(), PROGRAM).is_err(), "{text}");
            assert!(remove(text, claude()).is_err(), "{text}");
        }
        let gemini = Guarded::find("gemini").expect("an agent");
        let comments = "// x\n{ /* y */ }";
        let guarded = add(comments, gemini, PROGRAM).expect("a guard");
        assert_eq!(remove(&guarded, gemini).as_deref(), Ok(comments));
    }
}
