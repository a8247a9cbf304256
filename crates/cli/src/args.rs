//! What can be typed.

mod misuse;

use std::{ffi::OsString, path::PathBuf};

use clap::{Arg, Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::settings::Settings;
pub(crate) use misuse::{agent, parse};

/// Runs a coding agent, or any command, behind a wall and in a jail.
///
/// Inside, the command sees the system's programs, the current directory and, but for known
/// places of secrets, ~/.cache and ~/.local/share; `stockade plan` lists all that it is given
/// of your files and environment. It reaches the internet and the addresses you allow, and no
/// other host: not the LAN, not this machine, not the cloud's metadata service.
#[derive(Debug, Parser)]
#[command(name = "stockade", version, max_term_width = 96, after_help = AGENTS)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AGENTS: &str = "\
Agents:
  stockade claude|codex|gemini|aider [ARGUMENTS]
          Run the agent with its own profile: with its settings and login. All that follows
          the name goes to the agent, flags too. Flags of Stockade's own come before it:
          stockade run --allow 192.168.10.21 -- claude [ARGUMENTS]

Exit code: 125 if Stockade itself failed or was asked for what there is not; otherwise as each
command says in its own help.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<Run>),
    Completions(Completions),
    #[command(subcommand)]
    Config(Config),
    Doctor(Doctor),
    Explain(Box<Explain>),
    Init(Init),
    Log(Log),
    Man(Man),
    Plan(Box<Plan>),
    Ps(Ps),
    Reload(Reload),
    Trust(Trust),
    Accept(Accept),
    Verify(Box<Verify>),
    /// The command of the sessions that `verify` looks at
    #[command(name = "verify-probe", hide = true)]
    VerifyProbe,
    /// An agent by its profile's name: `stockade claude …` is
    /// `stockade run --profile claude -- claude …`
    #[command(external_subcommand)]
    Agent(Vec<OsString>),
}

/// Print a script with which a shell completes what is typed.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  stockade completions bash > ~/.local/share/bash-completion/completions/stockade
  stockade completions zsh > ~/.zfunc/_stockade
  stockade completions fish > ~/.config/fish/completions/stockade.fish";

/// Print a page of the manual, in the language of man(7).
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct Man {
    /// The command whose page it is, as `run` or `config-show`; without it, the program's
    pub(crate) command: Option<String>,

    /// Write all pages to this directory instead
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "command")]
    pub(crate) directory: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  stockade man run | man -l -
  stockade man --directory ~/.local/share/man/man1";

/// Say what this machine lacks, what that costs, and the smallest fix.
///
/// A session is started to see whether that works; its command does nothing, and nothing is
/// sent anywhere.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if sessions can be started, 1 if not.")]
pub(crate) struct Doctor {
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,

    /// Give this program the profile that it needs where AppArmor restricts user namespaces
    ///
    /// Writes /etc/apparmor.d/stockade, for the path of this program, and loads it. Needs
    /// root.
    #[arg(long, conflicts_with = "json")]
    pub(crate) write_apparmor: bool,
}

/// Show what happened in a session: connections, names, denials, with their programs.
#[derive(Debug, Args)]
#[command(after_help = LOG_EXAMPLES)]
pub(crate) struct Log {
    /// The session, or the beginning of its name; without it, the latest of all projects
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,

    /// Only what was denied
    #[arg(long)]
    pub(crate) denied: bool,

    /// Go on until the session ends
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// List the sessions that have a log, instead
    #[arg(long, short, conflicts_with_all = ["session", "denied", "follow"])]
    pub(crate) list: bool,

    /// The lines as they are, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

const LOG_EXAMPLES: &str = "\
Examples:
  stockade log --denied
  stockade log --follow
  stockade log --list

Exit code: 0, or 125 if there is no such session or several begin like that.";

/// List your sessions that run.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0, also if none runs.")]
pub(crate) struct Ps {
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Start a session and check, from inside and outside, that it is what it promises to be.
///
/// The session is one of this configuration; its command is a part of Stockade that looks
/// around and tries what a hostile program would. Nothing is sent beyond this machine. Every
/// setting of `stockade run` can be given, too.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES, mut_args = without_settings)]
pub(crate) struct Verify {
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,

    /// With this profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    #[command(flatten)]
    pub(crate) settings: Settings,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  stockade verify
  stockade verify --profile claude --json
  stockade verify --hardening strict

Each property is PASS, FAIL, or INCONCLUSIVE if something is missing that would have shown it.
Exit code: 0 if nothing failed, 1 if something did, 125 if no session could be started.";

/// Show everything that a session would be given, with the reasons, and run nothing.
///
/// Files, environment, network, limits: each line says where it comes from. Every setting of
/// `stockade run` can be given, too, as it would be for that command; `stockade run --help`
/// lists them.
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES, mut_args = without_settings)]
pub(crate) struct Plan {
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,

    /// Apply this profile of the configuration, not the one of the command's name
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    #[command(flatten)]
    pub(crate) settings: Settings,

    /// The command of the session
    #[arg(trailing_var_arg = true, value_name = "COMMAND", default_value = "sh")]
    pub(crate) command: Vec<OsString>,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  stockade plan
  stockade plan -- claude
  stockade plan --read ~/data --internet=false -- npm test

Exit code: 0, or that of `run` if such a session would be refused (125, or 127 for an agent that
is not there).";

/// Say whether the command could reach something, by which rule, and what would change it.
///
/// Nothing is sent to the target. A name that may be asked for is resolved, as any program
/// here would. Every setting of `stockade run` can be given, too.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES, mut_args = with_reach_only)]
pub(crate) struct Explain {
    /// An address, a name or a URL, with or without a protocol and a port
    pub(crate) target: String,

    /// For programs
    #[arg(long)]
    pub(crate) json: bool,

    /// With this profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    #[command(flatten)]
    pub(crate) settings: Settings,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  stockade explain udp://172.23.1.3:5064
  stockade explain api.example.com
  stockade explain https://example.org/path --internet=false
  stockade explain localhost:5432

Exit code: 0 if it can be reached, 1 if not, 2 if that depends on what was left open, 125 if
the target or the configuration makes no sense.";

/// Have running sessions take up the configuration as it is now.
///
/// New connections are judged by it, and those that it no longer allows are cut. What cannot
/// change in a running session (files, environment, ports of loopback) stays as it is.
#[derive(Debug, Args)]
#[command(after_help = RELOAD_CODES)]
pub(crate) struct Reload {
    /// The session, or the beginning of its name; without it, all of yours
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

const RELOAD_CODES: &str = "\
Exit code: 0, also if no session runs; 1 if one was not reloaded; 125 if there is no such
session or several begin like that.";

/// Run a command in the sandbox, in the current directory.
///
/// The current directory is the workspace: the one place outside that the command can
/// write to, besides an agent's own settings and what --write names. It must not be your home
/// directory or one above it.
///
/// Each setting can stand in a file, too: see `stockade init` and `stockade config`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Apply this profile of the configuration, not the one of the command's name
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Say nothing of what is given or made at the start, and of what was denied or found at the end
    ///
    /// The log has the latter all the same: see `stockade log`.
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) settings: Settings,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Let this project's own .stockade.toml count.
///
/// The file comes with the project, and the command inside can write it. So it counts only
/// after you have seen what it changes, and as long as it does not change.
#[derive(Debug, Args)]
#[command(after_help = TRUST_CODES)]
pub(crate) struct Trust {
    /// Only show what it would change
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    pub(crate) show: bool,

    /// No longer trust it
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,

    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const TRUST_CODES: &str = "\
Exit code: 0 if it is trusted, or was revoked; 1 if it is not, after --show or the answer no;
125 if there is no such file, or no terminal to ask at.";

/// Apply the git settings and hooks that Stockade undid in a session.
///
/// Stockade undoes new git settings and hooks that could run programs, as soon as they appear and
/// at the end of the session. It keeps them beside the log. This command shows what was kept,
/// asks, and applies it.
#[derive(Debug, Args)]
#[command(after_help = ACCEPT_CODES)]
pub(crate) struct Accept {
    /// The session: its name as in `stockade log --list`, or the beginning of it [default: the latest
    /// one that left something]
    pub(crate) session: Option<String>,

    /// Only show what it would apply
    #[arg(long, conflicts_with = "yes")]
    pub(crate) show: bool,

    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const ACCEPT_CODES: &str = "\
Exit code: 0 if everything was applied, or no session left anything; 1 after --show, after the \
answer no, or if a file has changed since; 125 if the named session left nothing to apply, or there \
is no terminal to ask at.";

/// Write a commented configuration for this project, to start from.
///
/// It goes to ~/.config/stockade/projects, where only you write, and its path is printed.
/// A file that is there is never overwritten.
#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0, or 125 if there is such a file already.")]
pub(crate) struct Init {
    /// Write .stockade.toml in the project instead, for all who work on it
    #[arg(long)]
    pub(crate) workspace_file: bool,
}

/// Show, check and describe the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show what is in force in this directory, and where each value comes from
    #[command(after_help = "Exit code: 0, or 125 if the configuration cannot be used.")]
    Show {
        /// For programs
        #[arg(long)]
        json: bool,

        /// With this profile
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// Check this file, or all that count in this directory
    ///
    /// A file is checked wherever it is, as what it is by its place, or else by what it says.
    #[command(after_help = "Exit code: 0, or 1 if one is wrong.")]
    Check {
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print a JSON schema of the files, for editors
    Schema,
}

const EXAMPLES: &str = "\
Examples:
  stockade run -- bash
  stockade run -- npm test
  stockade run --allow 192.168.10.21 --allow tcp://10.20.0.0/16:443 -- python3 scan.py
  stockade run --internet=false --allow api.example.com --allow '*.example.org:443' -- bash
  stockade run --host-port 5432 --publish 3000 -- npm run dev

Exit code: the command's own; 125 if Stockade failed (then the command was not run, or was
ended), 126 if the command cannot be executed, 127 if it was not found, 128+n if signal n
ended it.";

/// Takes the settings of `run` out of a command's help, where they would bury its own options.
/// They are understood all the same.
fn without_settings(argument: Arg) -> Arg {
    let is_setting = argument.get_help_heading().is_some();
    argument.hide(is_setting)
}

/// The same, but for those that decide what can be reached.
fn with_reach_only(argument: Arg) -> Arg {
    const REACH: [&str; 4] = ["allow", "internet", "mode", "host_port"];
    if REACH.contains(&argument.get_id().as_str()) {
        argument
    } else {
        without_settings(argument)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use stockade_config::agents;

    use super::*;

    #[test]
    fn the_help_lists_every_agent() {
        for agent in agents() {
            assert!(AGENTS.contains(agent), "{agent}");
        }
    }

    #[test]
    fn only_runs_help_has_all_settings() {
        let mut program = Arguments::command();
        program.build();
        let mut shown = |command: &str, flag: &str| {
            let command = program.find_subcommand_mut(command).expect("a command");
            let help = command.render_long_help().to_string();
            help.contains(&format!("--{flag}"))
        };
        assert!(shown("run", "allow") && shown("run", "hardening") && shown("run", "quiet"));
        assert!(shown("explain", "allow") && !shown("explain", "hardening"));
        assert!(shown("plan", "profile") && !shown("plan", "hardening"));
        assert!(shown("verify", "json") && !shown("verify", "allow"));
    }
}
