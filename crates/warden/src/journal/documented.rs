//! Every line that can be written stands in `docs/log.md`, and nothing else does.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use stockade_config::Effective;
use stockade_gate::{Answer, AnsweredBy, Grounds, Ruling, Subject};
use stockade_policy::{Evidence, Flow, Hostname, Policy, Route, Rule, decide};
use stockade_wall::{Change, CommandLine, Finding, Version};

use super::{
    Line,
    lines::{self, Answered, Closed, Denied, Opened, SessionEnd, SessionStart},
};
use crate::{attribution::example, live::OpenQuestion};

type Fields = BTreeMap<String, BTreeSet<String>>;

/// The fields of each event, from the rows of the table.
fn described() -> Fields {
    const TEXT: &str = include_str!("../../../../docs/log.md");
    let quoted = |cell: &str| -> Vec<String> {
        let words = cell.split('`').skip(1).step_by(2);
        words.map(str::to_owned).collect()
    };
    let rows = TEXT.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let (mut of_all, mut fields) = (Vec::new(), Fields::new());
    for row in cells {
        let names = quoted(row[1]);
        if row[2] == "all" {
            of_all.extend(names.clone());
        }
        for event in quoted(row[2]) {
            fields.entry(event).or_default().extend(names.clone());
        }
    }
    for names in fields.values_mut() {
        names.extend(of_all.clone());
    }
    fields
}

/// Lines of each kind, with everything in them.
fn all() -> Vec<Line> {
    let when = SystemTime::now();
    let effective = Effective {
        profile: Some("claude".to_owned()),
        ..Effective::default()
    };
    let command = CommandLine {
        program: "true".into(),
        arguments: Vec::new(),
    };
    let name = "a.example".parse::<Hostname>().expect("a name");
    let address: SocketAddr = "10.0.0.1:80".parse().expect("an address");
    let flow = Flow::tcp(address).expect("a flow");
    let evidence = Evidence {
        route: Route::Default,
        own: false,
        names: &[],
    };
    // Of a device, for which only another port is open.
    let device = Hostname::parse_device("pmac").expect("a name");
    let rule = Rule::parse_device(&device, "tcp://10.0.0.1:1025").expect("a rule");
    let policy = Policy {
        rules: [rule].into_iter().collect(),
        ..effective.policy()
    };
    let verdict = Box::new(decide(&policy, &flow, &evidence));
    let opened = Opened {
        when,
        id: 1,
        flow,
        names: vec![name; 100],
        grounds: Grounds::Search(verdict.clone(), flow),
        at: Some("--allow".to_owned()),
    };
    let process = example();
    let rule: Rule = "10.0.0.1".parse().expect("a rule");
    let finding = Finding {
        path: "/w/.envrc".into(),
        what: Change::Appeared,
        why: "direnv runs it".to_owned(),
        diff: vec!["+x".to_owned()],
    };
    let end = SessionEnd {
        code: 0,
        findings: Vec::new(),
    };
    vec![
        lines::start(&SessionStart {
            id: "1-1",
            workspace: Path::new("/w"),
            command: &command,
            effective: &effective,
            layers: &[],
            bubblewrap: Version(0, 8, 0),
        }),
        lines::opened(&opened, Some(&process)),
        lines::closed(
            &Closed {
                when,
                id: 1,
                sent: 2,
                received: 3,
            },
            Some(&opened),
        ),
        lines::denied(&Denied {
            when,
            until: Some(when),
            count: 2,
            subject: &Subject::Flow(flow),
            ruling: &Ruling::Flow(verdict.clone()),
            at: Some("--internet"),
            process: Some(&process),
        }),
        lines::denied(&Denied {
            when,
            until: None,
            count: 1,
            subject: &Subject::HostPort(2375),
            ruling: &Ruling::HostPort(2375),
            at: None,
            process: None,
        }),
        lines::held(
            when,
            1,
            &OpenQuestion {
                subject: Subject::Flow(flow),
                ruling: Ruling::Flow(verdict.clone()),
                rule: rule.clone(),
                names: opened.names.clone(),
                process: Some(process.clone()),
                held: 1,
                since: Instant::now(),
                until: when,
            },
        ),
        lines::answered(&Answered {
            when,
            id: 1,
            subject: &Subject::Flow(flow),
            rule: &rule,
            answer: Answer::Once,
            by: AnsweredBy::Watch,
            count: 1,
            waited: Some(Duration::ZERO),
        }),
        lines::paused(when, when),
        lines::asked(when, "a.example", "A", Some(&[address.ip(); 100])),
        lines::reloaded(when, true, 1, "hash"),
        lines::lost(when, when, 1, "why"),
        lines::part(when, "1-1", 2, 3),
        lines::found(when, &finding, true),
        lines::end(when, &end, 0),
    ]
}

#[test]
fn the_fields_of_every_event_are_those_of_the_documentation() {
    let mut written = Fields::new();
    for line in all() {
        let event = line["event"].as_str().expect("an event").to_owned();
        let fields = line.keys().cloned();
        written.entry(event).or_default().extend(fields);
    }
    assert_eq!(written, described());
}
