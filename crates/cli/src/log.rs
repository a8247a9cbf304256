//! `stockade log`: what happened in a session. `stockade ps`: which sessions run.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, IsTerminal as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::{args, here, journal::Directory, session};

const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn log(arguments: &args::Log) -> Result<ExitCode> {
    let directory = Directory::of(&here::loader_here()?.places.home);
    let sessions = directory.sessions();
    let id = match &arguments.session {
        Some(id) if sessions.contains(id) => id.clone(),
        Some(id) => bail!(
            "there is no log of a session {}; `ls {}` shows all",
            id.escape_debug(),
            directory.path().display()
        ),
        None => match sessions.last() {
            Some(id) => id.clone(),
            None => bail!("no session was logged yet: see `stockade run`"),
        },
    };
    let path = directory.file(&id);
    let shower = Shower {
        denied: arguments.denied,
        json: arguments.json,
        colours: io::stdout().is_terminal(),
    };
    match shower.show(&path, arguments.follow) {
        // `stockade log | head` is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        shown => shown.with_context(|| format!("cannot read {}", path.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

struct Shower {
    denied: bool,
    json: bool,
    colours: bool,
}

impl Shower {
    /// Shows the log, and what comes until the session has ended if it is followed.
    fn show(&self, path: &Path, follow: bool) -> io::Result<()> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut line = String::new();
        loop {
            if reader.read_line(&mut line)? > 0 {
                // A line that is being written, or that the end of the warden cut off.
                if !line.ends_with('\n') {
                    if !follow {
                        return Ok(());
                    }
                    continue;
                }
                let ended = self.line(&line)?;
                line.clear();
                if ended {
                    return Ok(());
                }
                continue;
            }
            if !follow {
                return Ok(());
            }
            thread::sleep(LOOK);
            // A log that grew too long goes on in a new file.
            let now = File::open(path)?;
            if now.metadata()?.ino() != reader.get_ref().metadata()?.ino() {
                reader = BufReader::new(now);
            }
        }
    }

    /// Whether it is the last one.
    fn line(&self, text: &str) -> io::Result<bool> {
        let Ok(line) = serde_json::from_str::<Value>(text) else {
            return Ok(false);
        };
        let event = line["event"].as_str().unwrap_or_default();
        if !self.denied || event == "deny" {
            let mut out = io::stdout().lock();
            if self.json {
                out.write_all(text.as_bytes())?;
            } else {
                writeln!(out, "{}", self.text(event, &line))?;
            }
            out.flush()?;
        }
        Ok(event == "end")
    }

    fn text(&self, event: &str, line: &Value) -> String {
        let (red, dim, plain) = if self.colours {
            ("\x1b[31m", "\x1b[2m", "\x1b[0m")
        } else {
            ("", "", "")
        };
        let time = said(&line["time"]);
        let time = time.get(11..23).unwrap_or(&time);
        let colour = if event == "deny" { red } else { "" };
        let what = match event {
            "start" => format!("{} in {}", said(&line["command"]), said(&line["workspace"])),
            "open" => format!("#{} {}{}", line["flow"], said(&line["to"]), named(line)),
            "close" => format!(
                "#{} after {} s, {} bytes out, {} in",
                line["flow"],
                said(&line["seconds"]),
                line["sent"],
                line["received"]
            ),
            "deny" => format!(
                "{}{}: {}",
                said(&line["what"]),
                times(line),
                said(&line["text"])
            ),
            "name" => format!(
                "{} {}: {}",
                said(&line["name"]),
                said(&line["type"]),
                said(&line["addresses"])
            ),
            "reload" => format!("internet {}, {} rules", line["internet"], line["rules"]),
            "lost" => format!("{} events were too many to be written", line["count"]),
            "end" => format!("exit code {}, {} denials", line["code"], line["denied"]),
            _ => String::new(),
        };
        let mut text = format!("{dim}{time}{plain}  {colour}{event:<6}{plain}  {what}");
        if let Some(by) = line["by"].as_str() {
            let at = line["at"]
                .as_str()
                .map(|at| format!(" ({})", at.escape_debug()));
            text.push_str(&format!(
                "  {dim}by {}{}{plain}",
                by.escape_debug(),
                at.unwrap_or_default()
            ));
        }
        if let Some(command) = line["process"]["command"].as_str() {
            let command: String = command.chars().take(100).collect();
            text.push_str(&format!("  {dim}[{}]{plain}", command.escape_debug()));
        }
        if let Some(fix) = line["fix"].as_str().or_else(|| line["setting"].as_str()) {
            text.push_str(&format!("\n{:16}to allow it: {}", "", fix.escape_debug()));
        }
        text
    }
}

fn named(line: &Value) -> String {
    match &line["names"] {
        Value::Null => String::new(),
        names => format!(" ({})", said(names)),
    }
}

fn times(line: &Value) -> String {
    match line["count"].as_u64() {
        Some(count) if count > 1 => format!(" ({count} times)"),
        _ => String::new(),
    }
}

/// A value for a terminal. What a program inside made up may hold anything.
fn said(value: &Value) -> String {
    match value {
        Value::Null => "?".to_owned(),
        Value::String(text) => text.escape_debug().to_string(),
        Value::Array(all) => all.iter().map(said).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

pub(crate) fn ps(arguments: &args::Ps) -> Result<ExitCode> {
    let directory = Directory::of(&here::loader_here()?.places.home);
    let mut running = Vec::new();
    for id in session::all().context("cannot look for sessions")? {
        if session::connect(&id)?.is_some() {
            let start = first_line(&directory.file(&id)).unwrap_or_else(|| json!({}));
            running.push((id, start));
        }
    }
    if arguments.json {
        let all: Vec<_> = running
            .iter()
            .map(|(id, start)| json!({ "session": id, "start": start }))
            .collect();
        println!("{:#}", json!(all));
        return Ok(ExitCode::SUCCESS);
    }
    if running.is_empty() {
        println!("no session is running");
    } else {
        println!(
            "{:<20}  {:<20}  {:<30}  COMMAND",
            "SESSION", "SINCE", "WORKSPACE"
        );
    }
    for (id, start) in running {
        let since = said(&start["time"]);
        let since = since.get(..19).unwrap_or(&since).to_owned();
        let (workspace, command) = (said(&start["workspace"]), said(&start["command"]));
        println!("{id:<20}  {since:<20}  {workspace:<30}  {command}");
    }
    Ok(ExitCode::SUCCESS)
}

fn first_line(path: &Path) -> Option<Value> {
    let mut line = String::new();
    BufReader::new(File::open(path).ok()?)
        .read_line(&mut line)
        .ok()?;
    serde_json::from_str(&line).ok()
}
