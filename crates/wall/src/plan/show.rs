//! The plan as text, for people to audit.

use std::{fmt, path::Path};

use super::{Fallback, Guard, Isolation, Operation, Plan, Step};
use crate::{config::Asked, facts::Resource};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "files (later lines cover earlier ones)")?;
        for step in &self.files {
            line(f, &step.to_string(), &step.reason)?;
        }
        writeln!(f, "environment")?;
        for variable in &self.environment {
            let name = variable.name.display();
            let assignment = format!("{name}={}", variable.shown());
            line(f, &assignment, &variable.reason)?;
        }
        writeln!(f, "apart from the host")?;
        for (isolation, reason) in &self.isolation {
            line(f, isolation.name(), reason)?;
        }
        writeln!(f, "limits")?;
        for (limit, reason) in &self.limits {
            let name = match limit.resource {
                Resource::Core => "core dump",
                Resource::OpenFiles => "open files",
                Resource::Processes => "processes",
                Resource::Data => "bytes of memory",
                Resource::ProcessorTime => "seconds of processor time",
            };
            let value = limit
                .soft
                .map_or("unlimited".to_owned(), |value| value.to_string());
            line(f, &format!("{name}: {value}"), reason)?;
        }
        if let Some(Asked { value, by }) = &self.memory {
            let reason = format!("of all places in memory together: {by}");
            line(f, &format!("bytes of files in memory: {value}"), &reason)?;
        }
        writeln!(f, "layers")?;
        for layer in &self.layers {
            line(f, layer.protection.name(), &layer.state.to_string())?;
        }
        let start = format!("in {}", Shown(&self.working_directory));
        writeln!(f, "start")?;
        line(
            f,
            &start,
            "the current directory, if it is in the workspace",
        )?;
        if let Some(program) = &self.program {
            let reason = "not one of that name in the workspace";
            line(f, &format!("runs {}", Shown(program)), reason)?;
        }
        if !self.given.is_empty() || !self.notes.is_empty() {
            writeln!(f, "notes")?;
        }
        for note in self.given.iter().chain(&self.notes) {
            writeln!(f, "  {note}")?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, what: &str, reason: &str) -> fmt::Result {
    writeln!(f, "  {what:<56}  {reason}")
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, operation, .. } = self;
        let word = match operation {
            Operation::ReadOnly { .. } | Operation::Guard(Guard::ReadOnly) => "read-only",
            Operation::Writable { .. } => "writable",
            Operation::Kept(_)
            | Operation::Scratch {
                fallback: Fallback::Kept(_),
                ..
            } => "kept",
            Operation::Scratch { .. } => "scratch",
            Operation::Device { .. } => "device",
            Operation::Link { .. } => "link",
            Operation::Empty { .. } => "empty",
            Operation::Text(_) => "text",
            Operation::Socket => "socket",
            Operation::Login(_) => "login",
            Operation::Guard(Guard::Hidden)
            | Operation::HiddenFile
            | Operation::HiddenDirectory
            | Operation::Absent => "hidden",
            Operation::Devices => "devices",
            Operation::Processes => "processes",
            Operation::Freeze => "frozen",
        };
        write!(f, "{word:<12}{}", Shown(at))?;
        match operation {
            Operation::ReadOnly { source }
            | Operation::Writable { source }
            | Operation::Scratch { source, .. }
                if source != at =>
            {
                write!(f, " = {}", Shown(source))?;
            }
            Operation::Link { text } => write!(f, " -> {}", Shown(text))?,
            Operation::Empty { mode } => write!(f, " ({mode:04o})")?,
            Operation::Text(text) => write!(f, " {text:?}")?,
            _ => {}
        }
        match operation {
            Operation::Scratch { reserved, .. } if !reserved.is_empty() => {
                write!(f, " ({} places of secrets reserved)", reserved.len())
            }
            _ => Ok(()),
        }
    }
}

impl Isolation {
    fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Processes => "processes",
            Self::Ipc => "shared memory",
            Self::HostName => "host name",
            Self::Cgroups => "control groups",
            Self::Network => "network",
            Self::Capabilities => "capabilities",
        }
    }
}

/// A path without what could rewrite the reader's terminal, or deceive the reader: control
/// characters, and those that are invisible or turn the direction of writing.
struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.to_string_lossy();
        let is_harmless = |c: char| "'\"\\".contains(c) || c.escape_debug().eq([c]);
        if path.chars().all(is_harmless) {
            f.write_str(&path)
        } else {
            write!(f, "{path:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Plan, facts::tests::facts};

    #[test]
    fn every_line_carries_its_reason_and_no_control_character() {
        let mut facts = facts();
        facts.workspace = "/home/ada/pro\x1b[2Jject\u{202e}\u{200b}\n".into();
        let text = Plan::build(&Config::default(), &facts).unwrap().to_string();
        let harmful = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{200b}".contains(c));
        assert!(!text.contains(harmful), "{text:?}");
        assert!(text.contains("read-only   /usr"), "{text}");
        assert!(text.contains("the workspace"), "{text}");
        for line in text.lines().filter(|line| line.starts_with("  ")) {
            let columns = line.trim_start().split("  ").filter(|c| !c.is_empty());
            assert!(columns.count() >= 2, "no reason: {line:?}");
        }
    }
}
