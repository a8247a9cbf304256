//! What can be typed.

mod around;
mod misuse;

use std::{ffi::OsString, path::PathBuf};

use clap::{Arg, Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::settings::Settings;
pub(crate) use around::{Auth, Guard, Import, ShimCommand};
pub(crate) use misuse::{agent, parse};

/// Run a coding agent, or any command, in a sandbox.
///
/// The command sees the system's programs, the current directory, and ~/.cache and ~/.local/share
/// without known secrets. `stockade plan` lists everything that it gets of your files and
/// environment. It reaches the internet and the addresses that you allow. It reaches no other
/// host: not the LAN, not this machine, not the cloud's metadata service.
#[derive(Debug, Parser)]
#[command(name = "stockade", version, max_term_width = 96, after_help = AGENTS)]
pub(crate) struct Arguments {
    /// The workspace [default: the current directory]
    ///
    /// The command starts in the current directory if that is in the workspace, otherwise at its
    /// top. With workspace = "repository" in ~/.config/stockade/config.toml, the default is the
    /// nearest directory around the current one that you configured, or else the repository.
    #[arg(
        long,
        short = 'C',
        value_name = "DIRECTORY",
        global = true,
        display_order = 900
    )]
    pub(crate) workspace: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const AGENTS: &str = "\
Agents:
  stockade claude|codex|gemini|aider [ARGUMENTS]
          Run the agent with its own profile, which gives it its settings and
          login. The agent gets all options after the name. Write options of
          Stockade before it:
          stockade run --allow 192.168.10.21 -- claude [ARGUMENTS]

Exit code: 125 if Stockade itself failed or something you named does not exist; otherwise see the \
help of each command.";

// Deferred: the options of the other commands are not made on the way to `run`.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Run a command in the sandbox, in the current directory.
    ///
    /// The current directory is the workspace, unless --workspace names another one. The command can
    /// write there, to the agent's own settings, and to --write paths. The workspace cannot be your
    /// home directory or a directory above it.
    ///
    /// Configuration files can have the same settings: see `stockade init` and `stockade config`.
    Run(Box<Run>),
    /// Allow something for this project from now on, in running sessions too.
    ///
    /// Adds rules to your file about this project in ~/.config/stockade/projects, or creates it, and
    /// reloads the sessions that run here. Comments and order of the file stay.
    Allow(Allow),
    #[command(subcommand)]
    Auth(Auth),
    /// List what sessions keep of package caches, or clear it.
    ///
    /// What a command downloads to a package cache is kept for its workspace, and your own caches
    /// never change. All of it together takes at most 20 GiB: caches that were not used for longest
    /// go first.
    Caches(Caches),
    /// Print a completion script for a shell.
    Completions(Completions),
    #[command(subcommand)]
    Config(Config),
    /// List what was denied in a session, and what would allow it.
    ///
    /// Inside a session this lists the session's own denials, with the command that the user would
    /// have to run. Outside, it is the same as `stockade log --denied`.
    Denials(Denials),
    /// Check whether sessions work on this machine, and say how to fix what is missing.
    ///
    /// This starts a session whose command does nothing. Nothing is sent anywhere.
    Doctor(Doctor),
    /// Say whether the command could reach a target, by which rule, and what would change that.
    ///
    /// Nothing is sent to the target. A host name is resolved if the rules allow it. All settings
    /// of `stockade run` are options here, too. Inside a session, the session's own policy answers,
    /// as it is in force now.
    Explain(Box<Explain>),
    #[command(subcommand)]
    Guard(Guard),
    /// Turn the configuration of another sandbox into one for this project.
    ///
    /// Reads the files of claude-sandbox, Claude Code, srt and Codex, and TOML with
    /// [sandbox.net_allow], and prints a configuration in which every line says where it comes from.
    /// The result never allows more than the files: what Stockade cannot say is left out and listed.
    Import(Import),
    /// Create a commented configuration file for this project.
    ///
    /// The file is in ~/.config/stockade/projects, and its path is printed. An existing file is
    /// never overwritten.
    Init(Init),
    /// Say whether this process runs inside a session.
    ///
    /// The kernel proves it: the session's socket is answered from outside of this process namespace.
    /// No environment variable and no file counts.
    Inside(Inside),
    /// Show what happened in a session: connections, names and denials, with their programs.
    Log(Log),
    /// Print a manual page.
    Man(Man),
    /// Show everything that a session would get, with the reasons, and run nothing.
    ///
    /// Each line on files, environment, network and limits says where it comes from. All settings
    /// of `stockade run` are options here, too; `stockade run --help` lists them.
    Plan(Box<Plan>),
    /// List your running sessions, with open connections, denials and questions that wait.
    Ps(Ps),
    /// Make running sessions use the current configuration.
    ///
    /// It applies to new connections, and connections that it no longer allows are cut. Files,
    /// environment and loopback ports of a running session stay as they are.
    Reload(Reload),
    #[command(subcommand)]
    Shim(ShimCommand),
    /// Propose the smallest network rules for what past sessions did.
    ///
    /// Reads logs, and prints rules with which the internet can be closed: names before addresses,
    /// with their ports, and the evidence above each. Every connection and name of the logs is then
    /// judged again by these rules, which proves that they are enough.
    Suggest(Suggest),
    /// Review and trust this project's own .stockade.toml.
    ///
    /// The file comes with the project, and the command can write it. It applies only after you
    /// have reviewed what it changes, and only until it changes.
    Trust(Trust),
    /// Apply the git settings and hooks that Stockade undid in a session.
    ///
    /// Stockade undoes new git settings and hooks that could run programs, as soon as they appear and
    /// at the end of the session. It keeps them beside the log. This command shows what was kept,
    /// asks, and applies it.
    Accept(Accept),
    /// Start a session and test its protections, from inside and outside.
    ///
    /// The session uses this configuration. Its command is a part of Stockade that tries what a
    /// hostile program would. Nothing is sent beyond this machine. All settings of `stockade run`
    /// are options here, too.
    Verify(Box<Verify>),
    /// What a popup of tmux runs to ask what a session wants to know
    #[command(hide = true)]
    Question(Question),
    /// Watch running sessions on a screen, and answer their questions.
    ///
    /// Shows connections, denials and names as they come. What a session asks is on top, and a key
    /// allows it once, for this session or always, or denies it. Without a session, all of them are
    /// shown, also those that start later.
    Watch(Watch),
    /// The command of the sessions that `verify` looks at
    #[command(name = "verify-probe", hide = true)]
    VerifyProbe,
    /// An agent by its profile's name: `stockade claude …` is
    /// `stockade run --profile claude -- claude …`
    #[command(external_subcommand)]
    Agent(Vec<OsString>),
}

#[derive(Debug, Args)]
pub(crate) struct Question {
    pub(crate) session: String,
}

#[derive(Debug, Args)]
#[command(after_help = ALLOW_EXAMPLES)]
pub(crate) struct Allow {
    /// What the command can reach: [PROTO://]TARGET[:PORTS], see `stockade run --help`
    #[arg(required = true, value_name = "RULE")]
    pub(crate) rules: Vec<String>,

    /// The rules are for host names that may lead to private addresses
    #[arg(long)]
    pub(crate) near: bool,
}

const ALLOW_EXAMPLES: &str = "\
Examples:
  stockade allow tcp://192.168.10.21:80
  stockade allow api.example.com '*.example.org:443'
  stockade allow --near wiki.corp.example:443

Exit code: 0, 1 if a running session was not reloaded, 125 if a rule or the configuration is invalid.";

#[derive(Debug, Args)]
#[command(after_help = DENIALS_CODES)]
pub(crate) struct Denials {
    /// The session, or the beginning of its name [default: the latest of this workspace, or of all]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const DENIALS_CODES: &str = "\
Exit code: 0, even if nothing was denied; 125 if no session matches, or more than one does.";

#[derive(Debug, Args)]
#[command(after_help = CACHES_EXAMPLES)]
pub(crate) struct Caches {
    /// Remove the caches of this workspace [default: the current directory]
    #[arg(long, value_name = "WORKSPACE", num_args = 0..=1, default_missing_value = ".")]
    pub(crate) clear: Option<PathBuf>,

    /// With --clear: remove the caches of all workspaces
    #[arg(long, requires = "clear")]
    pub(crate) all: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const CACHES_EXAMPLES: &str = "\
Examples:
  stockade caches
  stockade caches --clear
  stockade caches --clear ~/project
  stockade caches --clear --all

Exit code: 0, or 1 if a session uses what is to be cleared.";

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

#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct Man {
    /// The command, such as `run` or `config-show` [default: the program itself]
    pub(crate) command: Option<String>,

    /// Write all pages to this directory instead
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "command")]
    pub(crate) directory: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  stockade man run | man -l -
  stockade man --directory ~/.local/share/man/man1";

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if sessions can be started, 1 if not.")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Install the AppArmor profile that lets this program use user namespaces
    ///
    /// Writes a profile for the path of this program to /etc/apparmor.d, and loads it. Needs root.
    #[arg(long, conflicts_with = "json")]
    pub(crate) write_apparmor: bool,
}

#[derive(Debug, Args)]
#[command(after_help = INSIDE_EXAMPLES)]
pub(crate) struct Inside {
    /// Also run the checks of `stockade verify` that need nobody outside
    #[arg(long)]
    pub(crate) verify: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print nothing
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

const INSIDE_EXAMPLES: &str = "\
Examples:
  stockade inside
  stockade inside --verify
  stockade inside --quiet || echo \"not in the sandbox\"

Exit code: 0 only inside a session; 1 outside, or if a check failed.";

#[derive(Debug, Args)]
#[command(after_help = LOG_EXAMPLES)]
pub(crate) struct Log {
    /// The session, or the beginning of its name [default: the latest of this workspace, or of all]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,

    /// Show only denials
    #[arg(long)]
    pub(crate) denied: bool,

    /// Keep printing until the session ends
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// List the sessions that have a log
    #[arg(long, short, conflicts_with_all = ["session", "denied", "follow"])]
    pub(crate) list: bool,

    /// Print the lines of the log as they are, in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const LOG_EXAMPLES: &str = "\
Examples:
  stockade log --denied
  stockade log --follow
  stockade log --list

Exit code: 0, or 125 if no session matches, or more than one does.";

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0, even if none is running.")]
pub(crate) struct Ps {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub(crate) struct Watch {
    /// The session, or the beginning of its name [default: all]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

const WATCH_EXAMPLES: &str = "\
Examples:
  stockade watch
  stockade watch 1794720573

Keys: o allow once, s allow for this session, a always allow, d deny; ? lists the others.
Exit code: 0, or 125 if there is no terminal or no such session.";

#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES, mut_args = without_settings)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) about: About,
}

// Options of commands that look at a session. (As a doc comment this would be their help.)
#[derive(Debug, Args)]
pub(crate) struct About {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Use this profile
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

Each property is PASS, FAIL, or INCONCLUSIVE if this machine lacks something to test it with.
Exit code: 0 if nothing failed, 1 if something did, 125 if no session could be started.";

#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES, mut_args = without_settings)]
pub(crate) struct Plan {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Use this profile instead of the one named like the command
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
  stockade plan --read ~/data --no-internet -- npm test

Exit code: 0, or that of `run` if it would refuse the session (125, or 127 if the agent is \
missing).";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES, mut_args = with_reach_only)]
pub(crate) struct Explain {
    /// An address, a host name or a URL, with or without a protocol and a port
    pub(crate) target: String,

    #[command(flatten)]
    pub(crate) about: About,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  stockade explain udp://172.23.1.3:5064
  stockade explain api.example.com
  stockade explain https://example.org/path --no-internet
  stockade explain localhost:5432

Exit code: 0 if the command can reach it, 1 if not, 2 if that depends on a protocol or port that \
you did not give, or the name has no address, 125 if the target or the configuration is invalid.";

#[derive(Debug, Args)]
#[command(after_help = RELOAD_CODES)]
pub(crate) struct Reload {
    /// The session, or the beginning of its name [default: all of yours]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
}

const RELOAD_CODES: &str = "\
Exit code: 0, even if no session is running; 1 if one was not reloaded; 125 if no session matches, \
or more than one does.";

#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Use this profile instead of the one named like the command
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Keep the log of this session for `stockade suggest`
    ///
    /// It is kept until `stockade suggest --write` has used it, for 14 days at most. The rules are
    /// those of any session: leave the internet open to see what the command needs.
    #[arg(long)]
    pub(crate) learn: bool,

    /// Print no notices at the start, but for warnings, and no report at the end
    ///
    /// The log still has what was denied: see `stockade log`.
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) settings: Settings,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = SUGGEST_EXAMPLES)]
pub(crate) struct Suggest {
    /// Sessions, or the beginnings of their names [default: those of `run --learn` in this workspace,
    /// or its latest]
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,

    /// The last N sessions of this workspace
    #[arg(long, value_name = "N", conflicts_with = "sessions", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) last: Option<u16>,

    /// All sessions of this workspace that have a log
    #[arg(long, conflicts_with_all = ["sessions", "last"])]
    pub(crate) project: bool,

    /// Add the result to your file about this project, and close the internet there
    #[arg(long, conflicts_with = "diff")]
    pub(crate) write: bool,

    /// Compare the result with the rules in force, and list rules that nothing used
    #[arg(long)]
    pub(crate) diff: bool,

    /// Learn even from sessions that left findings or look like attacks
    #[arg(long)]
    pub(crate) even_so: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const SUGGEST_EXAMPLES: &str = "\
Examples:
  stockade run --learn -- npm ci
  stockade suggest
  stockade suggest --last 5 --diff
  stockade suggest --write

Exit code: 0; 1 if the rules would not admit everything that was seen, and with --diff if something \
differs; 125 if no session matches, or one should not be learned from.";

#[derive(Debug, Args)]
#[command(after_help = TRUST_CODES)]
pub(crate) struct Trust {
    /// Only show what it would change
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    pub(crate) show: bool,

    /// Stop trusting it
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,

    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const TRUST_CODES: &str = "\
Exit code: 0 if the file is trusted, or after --revoke; 1 if it is not trusted, after --show or the \
answer no; 125 if there is no such file, or no terminal to ask on.";

#[derive(Debug, Args)]
#[command(after_help = ACCEPT_CODES)]
pub(crate) struct Accept {
    /// The session: its name as in `stockade log --list`, or the beginning of it [default: the latest
    /// one that left something]
    pub(crate) session: Option<String>,

    /// Let sessions in this directory change a file that programs outside run, now that git tracks it
    ///
    /// Sessions may change such a file only if git tracked it before the first of them. One that a
    /// session may have added to git stays read-only until you accept it.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["session", "show", "yes"])]
    pub(crate) file: Option<PathBuf>,

    /// Only show what it would apply
    #[arg(long, conflicts_with = "yes")]
    pub(crate) show: bool,

    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const ACCEPT_CODES: &str = "\
Exit code: 0 if everything was applied, or no session left anything; 1 after --show, after the \
answer no, or if a file has changed since; 125 if the named session left nothing to apply, or there \
is no terminal to ask on.";

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0, or 125 if the file already exists.")]
pub(crate) struct Init {
    /// Create .stockade.toml in the project instead, for everyone who works on it
    #[arg(long)]
    pub(crate) workspace_file: bool,
}

/// Show, check and describe the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the settings for this directory, and where each value comes from
    #[command(after_help = "Exit code: 0, or 125 if the configuration is invalid.")]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,

        /// Use this profile
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// Check a file, or all files that apply to this directory
    ///
    /// The place of a file says whose it is; elsewhere, its contents do.
    #[command(after_help = "Exit code: 0, or 1 if a file is invalid.")]
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
  stockade run --no-internet --allow api.example.com --allow '*.example.org:443' -- bash
  stockade run --host-port 5432 --publish 3000 -- npm run dev

Exit code: the command's own; 125 if Stockade failed (the command did not run, or was ended), \
126 if the command cannot be executed, 127 if it was not found, 128+n if signal n ended it.";

/// Takes the settings of `run` out of a command's help, where they would bury its own options.
/// They are understood all the same.
fn without_settings(argument: Arg) -> Arg {
    let is_setting = argument.get_help_heading().is_some();
    argument.hide(is_setting)
}

/// The same, but for those that decide what can be reached.
fn with_reach_only(argument: Arg) -> Arg {
    const REACH: [&str; 5] = ["allow", "internet", "no-internet", "mode", "host-port"];
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
