//! The four lists: their columns, rows and details.

use std::{cmp::Ordering, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::{
    session::{Connection, Denial, Name, Process, Session, Standing},
    text::{age, bytes, counted},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum List {
    #[default]
    Connections,
    Denials,
    Names,
    Sessions,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) width: Width,
    /// The width of the screen from which on it is shown.
    pub(crate) from: u16,
    /// Host names, whose end counts.
    pub(crate) is_name: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    /// So many cells, for numbers and short words.
    Cells(u16),
    /// So many parts of what is left.
    Parts(u16),
}

const fn cells(title: &'static str, width: u16, from: u16) -> Column {
    Column {
        title,
        width: Width::Cells(width),
        from,
        is_name: false,
    }
}

const fn parts(title: &'static str, parts: u16, from: u16) -> Column {
    Column {
        title,
        width: Width::Parts(parts),
        from,
        is_name: false,
    }
}

const fn named(column: Column) -> Column {
    Column {
        is_name: true,
        ..column
    }
}

/// Each list begins with this one. It is left out if there is one session only.
const SESSION: Column = cells("SESSION", 10, 70);

const CONNECTIONS: &[Column] = &[
    SESSION,
    named(parts("NAME", 3, 0)),
    parts("TO", 3, 70),
    cells("PROGRAM", 10, 0),
    cells("OUT", 5, 50),
    cells("IN", 5, 50),
    cells("AGE", 5, 0),
];
const DENIALS: &[Column] = &[
    SESSION,
    named(parts("WHAT", 1, 0)),
    parts("WHY", 1, 60),
    cells("PROGRAM", 10, 0),
    cells("COUNT", 5, 40),
    cells("AGE", 5, 0),
];
const NAMES: &[Column] = &[
    SESSION,
    named(parts("NAME", 2, 0)),
    cells("TYPE", 5, 50),
    parts("ADDRESSES", 2, 0),
    cells("COUNT", 5, 60),
    cells("AGE", 5, 0),
];
const SESSIONS: &[Column] = &[
    SESSION,
    cells("OPEN", 5, 0),
    cells("DENIED", 6, 0),
    cells("ASKS", 5, 0),
    parts("COMMAND", 2, 0),
    parts("STATE", 1, 60),
    cells("AGE", 5, 0),
];

impl List {
    pub(crate) const ALL: [Self; 4] = [
        Self::Connections,
        Self::Denials,
        Self::Names,
        Self::Sessions,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Denials => "denials",
            Self::Names => "names",
            Self::Sessions => "sessions",
        }
    }

    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Self::Connections => CONNECTIONS,
            Self::Denials => DENIALS,
            Self::Names => NAMES,
            Self::Sessions => SESSIONS,
        }
    }

    /// The rows about one session.
    pub(crate) fn rows(self, session: &Session, now: Timestamp) -> Vec<Row> {
        let since = |time: Option<Timestamp>| {
            // A clock that was set back makes no age.
            let passed = time.map(|time| now.duration_since(time).max(SignedDuration::ZERO));
            passed.map_or_else(Cell::default, |passed| Cell::age(passed.unsigned_abs()))
        };
        match self {
            Self::Connections => {
                let all = session.connections.iter();
                all.map(|it| connection(session, it)).collect()
            }
            Self::Denials => {
                let all = session.denials.values();
                all.map(|it| denial(session, it, since(it.last))).collect()
            }
            Self::Names => {
                let all = session.names.values();
                all.map(|it| name(session, it, since(it.last))).collect()
            }
            Self::Sessions => vec![about(session, since(session.started))],
        }
    }
}

/// A row, with a cell for each column of its list.
#[derive(Debug)]
pub(crate) struct Row {
    /// By which it is known again when the list has changed.
    pub(crate) key: String,
    pub(crate) session: String,
    pub(crate) cells: Vec<Cell>,
    /// All that is known, a line each: what it is, and what it says.
    pub(crate) details: Vec<(&'static str, String)>,
}

impl Row {
    pub(crate) fn contains(&self, wanted: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(wanted);
        self.cells.iter().any(|cell| has(&cell.text))
            || self.details.iter().any(|(_, text)| has(text))
    }

    pub(crate) fn compare(&self, other: &Self, column: usize) -> Ordering {
        let order = |row: &Self| {
            row.cells
                .get(column)
                .map(|cell| (cell.number, cell.text.to_lowercase()))
        };
        order(self)
            .cmp(&order(other))
            .then_with(|| self.key.cmp(&other.key))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// What it is sorted by, if it is a number.
    number: Option<u64>,
}

impl Cell {
    fn number(number: u64) -> Self {
        let text = number.to_string();
        Self {
            text,
            number: Some(number),
        }
    }

    fn bytes(number: u64) -> Self {
        let text = bytes(number);
        Self {
            text,
            number: Some(number),
        }
    }

    fn age(passed: Duration) -> Self {
        let number = u64::try_from(passed.as_millis()).ok();
        Self {
            text: age(passed),
            number,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        let text = text.to_owned();
        Self { text, number: None }
    }
}

fn connection(session: &Session, it: &Connection) -> Row {
    let name = it.names.split(' ').next().filter(|name| !name.is_empty());
    let since = Cell::age(it.age);
    let mut details = vec![
        ("to", it.to.clone()),
        ("names", it.names.clone()),
        ("allowed by", rule(&it.by, &it.at)),
        ("sent", counted(it.sent, "byte")),
        ("received", counted(it.received, "byte")),
        ("open for", since.text.clone()),
        ("in the log", format!("#{}", it.flow)),
    ];
    details.extend(process_details(it.process.as_ref()));
    Row {
        key: format!("{} {}", session.id, it.flow),
        cells: vec![
            session.place().into(),
            name.unwrap_or_else(|| address(&it.to)).into(),
            it.to.as_str().into(),
            program(it.process.as_ref()),
            Cell::bytes(it.sent),
            Cell::bytes(it.received),
            since,
        ],
        ..row(session, details)
    }
}

/// `192.0.2.7` of `tcp://192.0.2.7:443`.
fn address(to: &str) -> &str {
    let rest = to.split_once("://").map_or(to, |(_, rest)| rest);
    match rest.rsplit_once(':') {
        Some((address, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => address,
        _ => rest,
    }
}

fn denial(session: &Session, it: &Denial, since: Cell) -> Row {
    let fix = match (it.fix.as_str(), it.setting.as_str()) {
        ("", setting) => setting.to_owned(),
        (rule, _) => format!("--allow {rule}, or in [network]: allow = [\"{rule}\"]"),
    };
    let mut details = vec![
        ("denied", it.what.clone()),
        ("because", it.text.clone()),
        ("denied by", rule(&it.by, &it.at)),
        ("to allow it", fix),
        ("WARNING", it.danger.clone()),
        ("count", it.count.to_string()),
        ("last seen", format!("{} ago", since.text)),
    ];
    details.extend(process_details(it.process.as_ref()));
    Row {
        key: format!("{} {} {}", session.id, it.what, it.text),
        cells: vec![
            session.place().into(),
            it.what.as_str().into(),
            it.text.as_str().into(),
            program(it.process.as_ref()),
            Cell::number(it.count),
            since,
        ],
        ..row(session, details)
    }
}

fn name(session: &Session, it: &Name, since: Cell) -> Row {
    let details = vec![
        ("name", it.name.clone()),
        ("type", it.kind.clone()),
        ("addresses", it.addresses.clone()),
        ("count", it.count.to_string()),
        ("last asked", format!("{} ago", since.text)),
    ];
    Row {
        key: format!("{} {} {}", session.id, it.name, it.kind),
        cells: vec![
            session.place().into(),
            it.name.as_str().into(),
            it.kind.as_str().into(),
            it.addresses.as_str().into(),
            Cell::number(it.count),
            since,
        ],
        ..row(session, details)
    }
}

fn about(session: &Session, since: Cell) -> Row {
    let state = match &session.standing {
        Standing::Unknown => "running",
        Standing::Live => "live",
        Standing::LogOnly(_) => "log only",
        Standing::Ended(_) => "ended",
    };
    let why = match &session.standing {
        Standing::LogOnly(why) => format!("; it takes no answers: {why}"),
        Standing::Ended(how) => format!(", {how}"),
        _ => String::new(),
    };
    let details = vec![("state", format!("{state}{why}"))];
    let count = |number: usize| Cell::number(number as u64);
    Row {
        key: session.id.clone(),
        cells: vec![
            session.place().into(),
            count(session.open()),
            Cell::number(session.denied),
            count(session.questions.len()),
            session.command.as_str().into(),
            state.into(),
            since,
        ],
        ..row(session, details)
    }
}

fn row(session: &Session, mut details: Vec<(&'static str, String)>) -> Row {
    details.push(("session", session.id.clone()));
    details.push(("workspace", session.workspace.clone()));
    details.push(("command", session.command.clone()));
    details.retain(|(_, text)| !text.is_empty());
    Row {
        key: String::new(),
        session: session.id.clone(),
        cells: Vec::new(),
        details,
    }
}

fn rule(by: &str, at: &str) -> String {
    match at {
        "" => by.to_owned(),
        at => format!("{by} ({at})"),
    }
}

fn program(process: Option<&Process>) -> Cell {
    process.map_or_else(Cell::default, |process| process.name().into())
}

pub(crate) fn process_details(process: Option<&Process>) -> Vec<(&'static str, String)> {
    let Some(process) = process else {
        return Vec::new();
    };
    vec![
        ("program", format!("{} [{}]", process.exe, process.pid)),
        ("started by", process.chain()),
        ("arguments", process.argv.clone()),
    ]
}
