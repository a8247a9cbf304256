//! `stockade log`: what happened in a session. `stockade ps`: which sessions run.
//!
//! A log is read line by line and shown as it is, or for people ([`text`]). A
//! line that is none (the machine lost its power, the disk was full) is said to be there, and
//! the rest is shown.

mod list;
mod text;

use std::{
    cell::Cell,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use stockade_config::shown;
use stockade_warden::{LOG_VERSION, LogDirectory, LogItem as Item, LogReader as Reader};

use crate::{args, context, exit::refused, session_id, terminal, verify};
pub(crate) use list::ps;

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn log(arguments: &args::Log) -> Result<ExitCode> {
    let directory = LogDirectory::of(&context::home()?);
    if arguments.list {
        return list::list(&directory, arguments.json);
    }
    let here = context::loader_here().ok();
    let here = here.map(|loader| loader.places.workspace);
    let id = choose(&directory, arguments.session.as_deref(), here.as_deref())?;
    let shower = Shower {
        denied: arguments.denied,
        json: arguments.json,
        colours: terminal::colours(),
        shown: Cell::new(0),
    };
    match shower.show(&directory, &id, arguments.follow) {
        // `stockade log | head` is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        shown => shown.with_context(|| format!("cannot show the log of session {id}"))?,
    }
    if arguments.denied && !arguments.json && shower.shown.get() == 0 {
        tell!("stockade: session {id} has no denials");
    }
    Ok(ExitCode::SUCCESS)
}

/// The session that is meant: by its name or the beginning of it, or the latest of this workspace,
/// or of all.
pub(crate) fn choose(
    directory: &LogDirectory,
    wanted: Option<&str>,
    workspace: Option<&Path>,
) -> Result<String> {
    let sessions = directory.sessions();
    let Some(wanted) = wanted else {
        // The sessions of `stockade verify` are not what anybody asks about, unless there
        // are no others.
        let mut latest = None;
        let is_here = |id: &&String| {
            let first = first_line(directory, id);
            let is_meant = first
                .as_ref()
                .is_none_or(|line| !verify::is_session(&line["command"]));
            if is_meant && latest.is_none() {
                latest = Some((*id).clone());
            }
            let at = first.as_ref().and_then(|line| line["workspace"].as_str());
            is_meant && at.is_some() && at.map(Path::new) == workspace
        };
        let here = sessions.iter().rev().find(is_here).cloned();
        let meant = here.or(latest).or_else(|| sessions.last().cloned());
        return meant.ok_or_else(|| {
            let what = format!("there are no logs in {}", directory.path().display());
            refused(what, "run something: stockade run -- COMMAND")
        });
    };
    let fix = "`stockade log --list` shows all; without a session, the latest is shown";
    session_id::meant(&sessions, wanted, fix)?.ok_or_else(|| {
        refused(
            format!("there is no log of a session {}", shown(wanted)),
            fix,
        )
    })
}

pub(crate) fn first_line(directory: &LogDirectory, id: &str) -> Option<Value> {
    let first = Reader::open(directory.clone(), id).and_then(|mut reader| reader.read());
    match first {
        Ok(Some(Item::Line(line, _))) => Some(line),
        _ => None,
    }
}

/// The workspace of a session, as its log says.
pub(crate) fn workspace(directory: &LogDirectory, id: &str) -> Option<PathBuf> {
    let first = first_line(directory, id)?;
    first["workspace"].as_str().map(PathBuf::from)
}

struct Shower {
    denied: bool,
    json: bool,
    colours: bool,
    /// How many lines of the log.
    shown: Cell<u64>,
}

impl Shower {
    /// Shows the log, and what comes until the session has ended if it is followed.
    fn show(&self, directory: &LogDirectory, id: &str, follow: bool) -> io::Result<()> {
        let mut reader = Reader::open(directory.clone(), id)?;
        loop {
            // First: what a session wrote before it ended is there after it has ended.
            let running = directory.is_running(id);
            while let Some(item) = reader.read()? {
                if self.item(&item)? {
                    return Ok(());
                }
            }
            if !running {
                if let Some(item) = reader.rest() {
                    self.item(&item)?;
                }
                return self
                    .remark("the session ended abnormally: it was killed, or its disk was full");
            }
            if !follow {
                return self.remark("the session is running; --follow shows what comes");
            }
            thread::sleep(LOOK);
        }
    }

    /// Whether it is the last one.
    fn item(&self, item: &Item) -> io::Result<bool> {
        let mut out = io::stdout().lock();
        match item {
            Item::Line(line, raw) => {
                let event = line["event"].as_str().unwrap_or_default();
                // Denials may be among what was lost; programs get what they asked for.
                let wanted = !self.denied || event == "deny";
                self.shown.update(|shown| shown + u64::from(wanted));
                if wanted && self.json {
                    out.write_all(raw)?;
                } else if wanted || (event == "lost" && !self.json) {
                    writeln!(out, "{}", text::line(event, line, self.colours))?;
                }
                out.flush()?;
                Ok(event == "end")
            }
            Item::Unreadable(bytes) => {
                let line = json!({ "v": LOG_VERSION, "event": "unreadable", "bytes": bytes });
                if self.json {
                    writeln!(out, "{line}")?;
                } else {
                    writeln!(out, "{}", text::line("unreadable", &line, self.colours))?;
                }
                out.flush()?;
                Ok(false)
            }
        }
    }

    /// For people, who do not see that a line is missing.
    fn remark(&self, remark: &str) -> io::Result<()> {
        if self.json || self.denied {
            return Ok(());
        }
        let line = Value::Null;
        let text = text::line(remark, &line, self.colours);
        writeln!(io::stdout(), "{text}")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::exit::Refused;

    #[test]
    fn a_session_is_known_by_the_beginning_of_its_name_if_no_other_has_it() {
        let path = tempfile::tempdir().expect("a directory");
        let directory = LogDirectory::at(path.path());
        let none = choose(&directory, None, None).expect_err("nothing");
        let fix = &none.downcast_ref::<Refused>().expect("a fix").fix;
        assert!(fix.contains("stockade run"));
        for id in ["100-7", "100-77", "200-1"] {
            fs::write(directory.file(id, 1), "").expect("a log");
        }
        let chosen = |wanted| choose(&directory, wanted, None).map_err(|error| error.to_string());
        assert_eq!(chosen(None), Ok("200-1".to_owned()));
        assert_eq!(chosen(Some("2")), Ok("200-1".to_owned()));
        assert_eq!(chosen(Some("100-7")), Ok("100-7".to_owned()));
        let both = "2 sessions begin with 100: 100-77, 100-7";
        assert_eq!(chosen(Some("100")), Err(both.to_owned()));
        let unknown = chosen(Some("\u{1b}[2J")).expect_err("nothing");
        assert_eq!(unknown, "there is no log of a session \\u{1b}[2J");
    }
}
