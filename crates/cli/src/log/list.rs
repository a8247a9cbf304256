//! Sessions, one line for each: `stockade log --list`, `stockade ps`.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;
use stockade_warden::{self as warden, LogDirectory};

use super::reader::{Item, Reader};
use crate::{
    args, context,
    terminal::{self, cut, said, table},
    verify,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SessionState {
    Running,
    Ended,
    /// The log has no last line.
    Lost,
}

/// What there is to say about a session in one line. What is not known is left out.
#[derive(Debug, Serialize)]
struct Summary {
    session: String,
    state: SessionState,
    /// When it began, and when it ended.
    #[serde(skip_serializing_if = "Value::is_null")]
    time: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    ended: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    code: Value,
    /// How many denials are known.
    denied: u64,
    #[serde(skip_serializing_if = "Value::is_null")]
    pid: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    workspace: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    command: Value,
}

impl Summary {
    fn of(directory: &LogDirectory, id: &str) -> Self {
        let running = directory.is_running(id);
        let mut summary = Self {
            session: id.to_owned(),
            state: if running {
                SessionState::Running
            } else {
                SessionState::Lost
            },
            time: Value::Null,
            ended: Value::Null,
            code: Value::Null,
            denied: 0,
            pid: Value::Null,
            workspace: Value::Null,
            command: Value::Null,
        };
        // One that cannot be read is listed all the same.
        let Ok(mut reader) = Reader::open(directory.clone(), id) else {
            return summary;
        };
        while let Ok(Some(item)) = reader.next() {
            if let Item::Line(line, _) = item {
                summary.take(line);
            }
        }
        summary
    }

    fn take(&mut self, mut line: Value) {
        match line["event"].as_str() {
            Some("start") => {
                self.time = line["time"].take();
                self.pid = line["pid"].take();
                self.workspace = line["workspace"].take();
                self.command = line["command"].take();
            }
            Some("deny") => self.denied += line["count"].as_u64().unwrap_or(0),
            Some("end") => {
                self.state = SessionState::Ended;
                self.ended = line["time"].take();
                self.code = line["code"].take();
                self.denied = line["denied"].as_u64().unwrap_or(self.denied);
            }
            _ => {}
        }
    }

    fn since(&self) -> String {
        let time = said(&self.time);
        let time = time.get(..19).unwrap_or(&time);
        time.replace('T', " ")
    }

    fn workspace(&self) -> String {
        cut(&said(&self.workspace), 40)
    }

    fn command(&self) -> String {
        if verify::is_session(&self.command) {
            return "(stockade verify)".to_owned();
        }
        cut(&said(&self.command), 80)
    }

    fn end(&self) -> String {
        match self.state {
            SessionState::Running => "running".to_owned(),
            SessionState::Ended => format!("exit code {}", said(&self.code)),
            SessionState::Lost => "no last line".to_owned(),
        }
    }
}

/// All sessions that have a log, the latest last.
pub(super) fn list(directory: &LogDirectory, json: bool) -> Result<ExitCode> {
    let sessions = directory.sessions();
    let all: Vec<_> = sessions
        .iter()
        .map(|id| Summary::of(directory, id))
        .collect();
    if json {
        return as_json(&all);
    }
    if all.is_empty() {
        let path = directory.path().display();
        terminal::print(format_args!("there are no logs in {path}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |one: &Summary| {
        [
            one.session.clone(),
            one.since(),
            one.end(),
            one.denied.to_string(),
            one.workspace(),
            one.command(),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let heading = [
        "SESSION",
        "SINCE (UTC)",
        "END",
        "DENIED",
        "WORKSPACE",
        "COMMAND",
    ];
    terminal::write(table(heading, &rows).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Those that run: by their logs, and by their sockets where they could not be logged.
pub(crate) fn ps(arguments: &args::Ps) -> Result<ExitCode> {
    let directory = LogDirectory::of(&context::home()?);
    let mut ids = directory.sessions();
    ids.retain(|id| directory.is_running(id));
    for id in warden::all().context("cannot look for sessions")? {
        if !ids.contains(&id) && warden::connect(&id)?.is_some() {
            ids.push(id);
        }
    }
    warden::sort(&mut ids);
    let summary = |id: &String| Summary {
        state: SessionState::Running,
        ..Summary::of(&directory, id)
    };
    let running: Vec<_> = ids.iter().map(summary).collect();
    if arguments.json {
        return as_json(&running);
    }
    if running.is_empty() {
        terminal::write(b"no session is running\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |one: &Summary| {
        [
            said(&one.session.as_str().into()),
            one.since(),
            said(&one.pid),
            one.denied.to_string(),
            one.workspace(),
            one.command(),
        ]
    };
    let rows: Vec<_> = running.iter().map(row).collect();
    let heading = [
        "SESSION",
        "SINCE (UTC)",
        "PID",
        "DENIED",
        "WORKSPACE",
        "COMMAND",
    ];
    terminal::write(table(heading, &rows).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(all: &[Summary]) -> Result<ExitCode> {
    terminal::print(format_args!("{}\n", serde_json::to_string_pretty(all)?))?;
    Ok(ExitCode::SUCCESS)
}
