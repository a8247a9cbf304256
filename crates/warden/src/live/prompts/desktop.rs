//! Notifications of the desktop, with buttons.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::fd::AsFd,
    path::PathBuf,
    process::{Child, Stdio},
};

use stockade_gate::{Answer, AnsweredBy};

use super::{command, find, plain};
use crate::live::{HeldQuestion, Means};

/// What a notification needs to find the desktop.
const VARIABLES: [&str; 5] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "LANG",
];
/// Characters of a rule that can be allowed here. Desktops cut longer texts where they like, and of a
/// name, the end counts.
const RULE: usize = 80;
/// Characters of each other part of a question. More is cut.
const PART: usize = 120;
/// What `notify-send` prints of a button.
const LONGEST: usize = 64;

#[derive(Debug)]
pub(super) struct Desktop {
    program: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Desktop {
    /// None without a screen.
    pub(super) fn find(environment: &BTreeMap<OsString, OsString>) -> Option<Self> {
        let variable = |name: &'static str| {
            let value = environment.get(OsStr::new(name)).cloned();
            Some((name, value.filter(|value| !value.is_empty())?))
        };
        let variables: Vec<_> = VARIABLES.into_iter().filter_map(variable).collect();
        let has = |names: [&str; 2]| variables.iter().any(|(name, _)| names.contains(name));
        let is_there = has(["DISPLAY", "WAYLAND_DISPLAY"])
            && has(["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"]);
        let program = find("notify-send").filter(|_| is_there)?;
        Some(Self { program, variables })
    }

    fn command(&self) -> std::process::Command {
        let variables = self.variables.iter();
        command(
            &self.program,
            variables.map(|(name, value)| (*name, value.as_os_str())),
        )
    }

    pub(super) fn ask(&self, question: &HeldQuestion) -> io::Result<Notification> {
        let mut buttons = vec!["--action=deny=Deny"];
        if is_short(question) {
            let allowing = [
                "--action=once=Allow once",
                "--action=session=This session",
                "--action=always=Always",
            ];
            buttons.splice(..0, allowing);
        }
        let child = self
            .command()
            .args(["--app-name=stockade", "--urgency=critical", "--wait"])
            .args(buttons)
            .args(["--", "Stockade asks"])
            .arg(body(question))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        for stream in [
            child.stdout.as_ref().map(AsFd::as_fd),
            child.stderr.as_ref().map(AsFd::as_fd),
        ] {
            rustix::io::ioctl_fionbio(stream.ok_or(io::ErrorKind::NotFound)?, true)?;
        }
        Ok(Notification(child))
    }

    pub(super) fn tell(&self, text: &str) -> io::Result<Child> {
        self.command()
            .args(["--app-name=stockade", "--", "Stockade", text])
            .spawn()
    }
}

fn is_short(question: &HeldQuestion) -> bool {
    question.rule.chars().count() <= RULE
}

/// What is wanted, what an answer opens, and by whom: a program can be called anything, so it comes last,
/// without blanks at which the desktop would begin a line. Each part is cut by itself, so that none
/// pushes another out.
fn body(question: &HeldQuestion) -> String {
    let part = |text: &str| -> String {
        let plain = plain(text).replace(' ', "_");
        plain.chars().take(PART).collect()
    };
    let program = question.process.as_ref().map(|process| {
        let parents = process.parents.join(",");
        let exe = part(&process.exe);
        match parents.is_empty() {
            true => exe,
            false => format!("{exe} (started by {})", part(&parents)),
        }
    });
    let program = program.unwrap_or_else(|| "an unknown program".to_owned());
    let names = match question.names.as_slice() {
        [] => String::new(),
        [name] if *name == question.target => String::new(),
        [name] => format!(" ({})", end(name)),
        [name, others @ ..] => format!(" ({} and {} more)", end(name), others.len()),
    };
    let foreign = match question.unicode.is_empty() {
        true => "",
        false => "\nIts name has letters of other scripts.",
    };
    let opens = match is_short(question) {
        true => format!("Allowing it opens: {}", plain(&question.rule)),
        false => "Its name is too long to be allowed here: stockade watch shows it.".to_owned(),
    };
    let target = end(&question.target);
    format!("{target}{names}{foreign}\n{opens}\nWanted by {program}")
}

/// The end of a name says whose it is.
fn end(target: &str) -> String {
    let hidden = target.chars().count().saturating_sub(RULE);
    let end: String = target.chars().skip(hidden).collect();
    let dots = if hidden > 0 { "..." } else { "" };
    format!("{dots}{}", plain(&end))
}

/// A notification that waits for a button.
#[derive(Debug)]
pub(super) struct Notification(Child);

impl Notification {
    /// What was answered, once something was.
    pub(super) fn answer(&mut self) -> Option<(Answer, AnsweredBy)> {
        // There is no desktop, or it has no buttons, and nobody can press one.
        if said(self.0.stderr.as_mut()).is_some() {
            self.withdraw();
            return Some((Answer::Deny, AnsweredBy::Unattended));
        }
        self.0.try_wait().ok()??;
        let pressed = said(self.0.stdout.as_mut());
        let answer = match pressed.as_deref().map(str::trim) {
            Some("once") => Answer::Once,
            Some("session") => Answer::Session,
            Some("always") => Answer::Always,
            // Pressed, or it was closed.
            _ => Answer::Deny,
        };
        Some((answer, Means::Desktop.into()))
    }

    /// Nobody needs an answer any more.
    pub(super) fn withdraw(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a program has said so far, if anything.
fn said(stream: Option<&mut impl io::Read>) -> Option<String> {
    let mut buffer = [0; LONGEST];
    // Nothing, if nothing is there yet.
    let count = stream?.read(&mut buffer).ok().filter(|count| *count > 0)?;
    let said = String::from_utf8_lossy(buffer.get(..count)?);
    Some(said.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attribution::Process, live::QuestionKind};

    fn named(name: &str, exe: &str) -> HeldQuestion {
        HeldQuestion {
            id: 1,
            kind: QuestionKind::Name,
            target: name.to_owned(),
            protocol: None,
            port: None,
            address: None,
            names: vec![name.to_owned()],
            unicode: Vec::new(),
            process: Some(Process {
                pid: 7,
                exe: exe.to_owned(),
                argv: Vec::new(),
                parents: Vec::new(),
            }),
            rule: name.to_owned(),
            why: String::new(),
            held: 1,
            waiting: 1,
            left: 59,
        }
    }

    #[test]
    fn a_program_stands_behind_what_it_wants_and_a_long_name_cannot_be_allowed() {
        let spoof = "/tmp/git wants github.com.\nAllowing it opens: github.com";
        let question = named("evil.example", spoof);
        assert!(is_short(&question));
        let body = body(&question);
        let lines: Vec<_> = body.lines().collect();
        assert_eq!(
            lines[..2],
            ["evil.example", "Allowing it opens: evil.example"]
        );
        assert!(lines.len() == 3 && lines[2].starts_with("Wanted by /tmp/git_wants_github.com"));
        // Of a name beside an address, the end counts as well.
        let owned = format!(
            "printer.corp.example.{}evil.example",
            "a23456789.".repeat(20)
        );
        let question = HeldQuestion {
            target: "tcp://192.168.10.21:80".to_owned(),
            names: vec![owned.clone()],
            rule: "tcp://192.168.10.21:80".to_owned(),
            ..question
        };
        let body = super::body(&question);
        assert!(body.contains(".evil.example)\n") && !body.contains("printer"));
        let long = format!("github.com.{}evil.example", "a23456789.".repeat(22));
        let question = named(&long, "/x");
        assert!(!is_short(&question));
        let body = super::body(&question);
        assert!(!body.contains("github.com") && !body.contains("Allowing"));
        assert!(body.starts_with("...") && body.contains(".evil.example\n"));
    }
}
