//! The `ip` program, fed with batches: one process configures one namespace.

use std::process::Command;

use crate::error::Result;
use crate::tool;

/// Runs `ip` commands in the world's own namespace.
pub(crate) fn ip(lines: &[String]) -> Result<()> {
    run(None, lines)
}

/// Runs `ip` commands in the namespace of a host.
pub(crate) fn ip_in(host: &str, lines: &[String]) -> Result<()> {
    run(Some(host), lines)
}

fn run(netns: Option<&str>, lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut command = Command::new(tool::find("ip")?);
    if let Some(netns) = netns {
        command.args(["-netns", netns]);
    }
    command.args(["-batch", "-"]);
    tool::feed(command, &(lines.join("\n") + "\n"))
}
