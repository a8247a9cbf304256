//! What can be typed.

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

/// Runs a coding agent, or any command, behind a wall and in a jail.
///
/// Inside, the command sees the system's programs and the current directory, and nothing
/// else of your files, environment and processes. It reaches the internet and the
/// addresses you allow, and no other host: not the LAN, not this machine, not the cloud's
/// metadata service.
#[derive(Debug, Parser)]
#[command(name = "stockade", version, max_term_width = 96)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
}

/// Run a command in the sandbox, in the current directory.
///
/// The current directory is the workspace: the one place outside that the command can
/// write to. It must not be your home directory or one above it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Let the command reach this address: [PROTO://]ADDRESS[/PREFIX][:PORTS]
    ///
    /// PROTO is tcp, udp or icmp; without it, all of them. PORTS are ports and ranges, separated by commas. IPv6 with ports: [fd00::5]:80.
    /// May be given several times.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// Let the command reach this port of this machine's loopback
    ///
    /// It appears inside at the same port of 127.0.0.1 and ::1. TCP only. May be given
    /// several times.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) host_port: Vec<u16>,

    /// Show a port of the command's on this machine's loopback: PORT or OUTSIDE:INSIDE
    ///
    /// What listens inside at INSIDE is reached at 127.0.0.1:OUTSIDE and [::1]:OUTSIDE.
    /// TCP only. May be given several times.
    #[arg(long, value_name = "PORT", value_parser = published)]
    pub(crate) publish: Vec<Published>,

    /// Say nothing at the end about what was denied
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A port of the sandbox, and where it is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) outside: u16,
    pub(crate) inside: u16,
}

fn published(text: &str) -> Result<Published, String> {
    let port = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is no port from 1 to 65535")),
        Ok(port) => Ok(port),
    };
    let (outside, inside) = text.split_once(':').unwrap_or((text, text));
    Ok(Published {
        outside: port(outside)?,
        inside: port(inside)?,
    })
}

const EXAMPLES: &str = "\
Examples:
  stockade run -- bash
  stockade run -- npm test
  stockade run --allow 192.168.10.21 --allow tcp://10.20.0.0/16:443 -- python3 scan.py
  stockade run --host-port 5432 --publish 3000 -- npm run dev

Exit code: the command's own; 125 if Stockade failed (then the command was not run, or was
ended), 126 if the command cannot be executed, 127 if it was not found, 128+n if signal n
ended it.";
