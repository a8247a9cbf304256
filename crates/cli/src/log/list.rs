//! Sessions, one line for each: `stockade log --list`, `stockade ps`.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use stockade_warden::{
    self as warden, LogDirectory, LogItem as Item, LogReader as Reader, live::LiveConnection,
};

use crate::{
    args, context,
    terminal::{self, cut, said, table},
    verify,
};

/// What there is to say about a session in one line, as fields of JSON. What is not known is left
/// out. `state` is `running`, `ended`, or `lost` if the log has no last line.
struct Summary(Value);

impl Summary {
    fn of(directory: &LogDirectory, id: &str) -> Self {
        let running = directory.is_running(id);
        let state = if running { "running" } else { "lost" };
        let mut summary = Self(json!({ "session": id, "state": state, "denied": 0 }));
        // One that cannot be read is listed all the same.
        let Ok(mut reader) = Reader::open(directory.clone(), id) else {
            return summary;
        };
        while let Ok(Some(item)) = reader.read() {
            if let Item::Line(line, _) = item {
                summary.take(line);
            }
        }
        summary
    }

    fn take(&mut self, mut line: Value) {
        let denied = self.0["denied"].as_u64().unwrap_or(0);
        match line["event"].as_str() {
            Some("start") => {
                for field in ["time", "pid", "workspace", "command"] {
                    self.set(field, line[field].take());
                }
            }
            Some("deny") => {
                let more = line["count"].as_u64().unwrap_or(0);
                self.set("denied", (denied + more).into());
            }
            Some("end") => {
                self.set("state", "ended".into());
                self.set("ended", line["time"].take());
                self.set("code", line["code"].take());
                let denied = line["denied"].as_u64().unwrap_or(denied);
                self.set("denied", denied.into());
            }
            _ => {}
        }
    }

    /// What it does now, if it says so.
    fn ask(&mut self, id: &str) {
        let stream = warden::connect(id).ok().flatten();
        let live = stream.and_then(|it| LiveConnection::with_patience(it, PATIENCE).ok());
        let Some(Ok(snapshot)) = live.map(|mut live| live.snapshot(false)) else {
            return;
        };
        self.set("open", snapshot.counts.open.into());
        self.set("denied", snapshot.counts.denied.into());
        self.set("questions", snapshot.questions.len().into());
    }

    fn set(&mut self, field: &str, value: Value) {
        if !value.is_null() {
            self.0[field] = value;
        }
    }

    fn since(&self) -> String {
        let time = said(&self.0["time"]);
        let time = time.get(..19).unwrap_or(&time);
        time.replace('T', " ")
    }

    fn command(&self) -> String {
        if verify::is_session(&self.0["command"]) {
            return "(stockade verify)".to_owned();
        }
        cut(&said(&self.0["command"]), 80)
    }

    fn end(&self) -> String {
        match self.0["state"].as_str() {
            Some("running") => "running".to_owned(),
            Some("ended") => format!("exit code {}", said(&self.0["code"])),
            _ => "ended abnormally".to_owned(),
        }
    }

    /// A line of the table of all sessions.
    fn row(&self) -> [String; 6] {
        [
            said(&self.0["session"]),
            self.since(),
            self.end(),
            said(&self.0["denied"]),
            cut(&said(&self.0["workspace"]), 40),
            self.command(),
        ]
    }

    /// A line of the table of those that run.
    fn live_row(&self) -> [String; 8] {
        let field = |name: &str| match &self.0[name] {
            Value::Null => "-".to_owned(),
            value => said(value),
        };
        let [session, since, _, denied, workspace, command] = self.row();
        [
            session,
            since,
            field("pid"),
            field("open"),
            denied,
            field("questions"),
            workspace,
            command,
        ]
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
    let heading = [
        "SESSION",
        "SINCE (UTC)",
        "END",
        "DENIED",
        "WORKSPACE",
        "COMMAND",
    ];
    let rows: Vec<_> = all.iter().map(Summary::row).collect();
    terminal::write(table(heading, &rows).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// How long a session may take to say what it does. One that is suspended says nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Those that run: by their logs, and by their sockets where they could not be logged.
pub(crate) fn ps(arguments: &args::Ps) -> Result<ExitCode> {
    let directory = LogDirectory::of(&context::home()?);
    let ids = warden::running(&directory).context("cannot look for sessions")?;
    let summary = |id: &String| {
        let mut summary = Summary::of(&directory, id);
        summary.set("state", "running".into());
        summary.ask(id);
        summary
    };
    let running: Vec<_> = ids.iter().map(summary).collect();
    if arguments.json {
        return as_json(&running);
    }
    if running.is_empty() {
        terminal::write(b"no session is running\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let heading = [
        "SESSION",
        "SINCE (UTC)",
        "PID",
        "OPEN",
        "DENIED",
        "ASKS",
        "WORKSPACE",
        "COMMAND",
    ];
    let rows: Vec<_> = running.iter().map(Summary::live_row).collect();
    terminal::write(table(heading, &rows).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(all: &[Summary]) -> Result<ExitCode> {
    let all: Value = all.iter().map(|one| one.0.clone()).collect();
    terminal::print(format_args!("{all:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}
