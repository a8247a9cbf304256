//! The system programs that a world is built with.
//!
//! They are looked up in the system's directories only, never in `PATH`: the
//! world must not depend on what a developer's shell happens to put first.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Doing, Error, Result};

const DIRECTORIES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

pub(crate) fn find(program: &'static str) -> Result<PathBuf> {
    DIRECTORIES
        .iter()
        .map(|directory| PathBuf::from(directory).join(program))
        .find(|path| path.is_file())
        .ok_or(Error::ProgramMissing {
            program,
            directories: DIRECTORIES.to_vec(),
        })
}

/// Feeds `input` to a program and expects it to succeed.
pub(crate) fn feed(mut command: Command, input: &str) -> Result<()> {
    let name = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .doing(format_args!("start {name}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that fails early stops reading; its own message says more
        // than our broken pipe.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .doing(format_args!("wait for {name}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Program {
        command: name,
        status: output.status.to_string(),
        stderr: format!(
            "{}\ninput was:\n{input}",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    })
}
