//! What can be typed to set things up around sessions: logins, shims, guards, and the configuration of
//! other sandboxes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use stockade_config::ForgeKind;

/// Store logins for GitHub and GitLab that only sandboxed sessions use.
///
/// A token of its own, for one repository and a few days, limits what a session can do at the forge.
/// Sessions get it with --github or --gitlab, instead of your own login. The token comes from a
/// hidden prompt or from standard input, never from an argument.
#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Store a token of GitHub, and say what it can do
    ///
    /// Stockade reads the token from a prompt that does not show it, or from standard input.
    /// Stockade asks GitHub, with curl, what the token can do. If GitHub refuses it, it is not stored.
    #[command(after_help = AUTH_CODES)]
    Github(AtGithub),
    /// Store a token of GitLab, and say what it can do
    ///
    /// Stockade reads the token from a prompt that does not show it, or from standard input.
    /// Stockade asks GitLab, with curl, what the token can do. If GitLab refuses it, it is not stored.
    #[command(after_help = AUTH_CODES)]
    Gitlab(AtGitlab),
    /// Ask the forges what the stored tokens can do
    #[command(after_help = "Exit code: 0, or 1 if a forge refuses a token or a file is damaged.")]
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a stored token from this machine
    ///
    /// The token stays valid at the forge until you revoke it there.
    #[command(after_help = "Exit code: 0, or 125 if there is none.")]
    Remove {
        forge: ForgeName,

        #[command(flatten)]
        at: AtHost,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AtGithub {
    /// GitHub Enterprise host [default: github.com]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AtGitlab {
    /// Host of your own GitLab [default: gitlab.com]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AtHost {
    /// The host, if it is not github.com or gitlab.com
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ForgeName {
    Github,
    Gitlab,
}

impl From<ForgeName> for ForgeKind {
    fn from(name: ForgeName) -> Self {
        match name {
            ForgeName::Github => Self::Github,
            ForgeName::Gitlab => Self::Gitlab,
        }
    }
}

const AUTH_CODES: &str = "\
Examples:
  stockade auth github
  stockade auth github --host git.example.org
  stockade auth gitlab < token.txt

Exit code: 0, also if the forge could not be asked; 125 if nothing was stored.";

/// Make an agent's own name, such as `claude`, run it in the sandbox.
///
/// A shim is a link of that name to Stockade, in ~/.local/share/stockade/shims. Where that directory
/// comes first in PATH, `claude` is `stockade claude`, with all its arguments.
#[derive(Debug, Subcommand)]
#[command(after_help = SHIM_EXAMPLES)]
pub(crate) enum ShimCommand {
    /// Make shims, and say how to put them first in PATH
    ///
    /// A name is that of an agent (claude, codex, gemini, aider), or of a profile in your
    /// configuration. Editors that start an agent by its path need a setting, which is printed.
    #[command(after_help = SHIM_ADD_EXAMPLES)]
    Add {
        /// Make them in /usr/local/bin, for all users. Needs root
        #[arg(long, conflicts_with = "write_shell")]
        system: bool,

        /// Add a line to the files that your shells read at their start
        ///
        /// That is to ~/.bashrc and ~/.profile (or ~/.bash_profile), ~/.zshrc and ~/.zprofile, and
        /// fish's conf.d, for shells that are installed. The line goes to the end, where it is moved
        /// if it is there already. `shim remove` takes it out again.
        #[arg(long)]
        write_shell: bool,

        /// The agents
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// List the shims, what each runs, and whether it is in force in this shell
    #[command(after_help = "Exit code: 0, even if there is none.")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove shims; with the last one, also what --write-shell wrote
    #[command(after_help = "Exit code: 0, or 125 if there is no such shim.")]
    Remove {
        /// Remove those in /usr/local/bin. Needs root
        #[arg(long)]
        system: bool,

        /// Remove all of them
        #[arg(long, conflicts_with = "names")]
        all: bool,

        /// The agents
        #[arg(required_unless_present = "all", value_name = "NAME")]
        names: Vec<String>,
    },
}

const SHIM_EXAMPLES: &str = "\
Examples:
  stockade shim add --write-shell claude
  stockade shim list
  stockade shim remove --all";

const SHIM_ADD_EXAMPLES: &str = "\
Examples:
  stockade shim add claude codex
  stockade shim add --write-shell claude
  sudo stockade shim add --system claude

Exit code: 0, or 125 if a name has no profile, or something else has its place.";
#[derive(Debug, Args)]
#[command(
    override_usage = "stockade import [OPTIONS] <FILE>...\n       stockade import --find [--json]",
    after_help = IMPORT_EXAMPLES
)]
pub(crate) struct Import {
    /// Files of other sandboxes
    ///
    /// Their lists add up. If they contradict each other, the narrower one counts.
    #[arg(value_name = "FILE", required_unless_present = "find")]
    pub(crate) files: Vec<PathBuf>,

    /// List the files of other sandboxes in their usual places
    #[arg(long, conflicts_with_all = ["files", "write"])]
    pub(crate) find: bool,

    /// Write the result to ~/.config/stockade/projects, as `stockade init` would
    ///
    /// An existing file is never overwritten, and a result that would be wider than the files is not
    /// written. Neither are paths, variables and network rules out of a file that a session may have
    /// written, unless you add --yes.
    #[arg(long)]
    pub(crate) write: bool,

    /// Also write paths, variables and network rules out of files that a session may have written
    ///
    /// Such a file is in the workspace, or among an agent's own settings (~/.claude, ~/.codex). Read the
    /// output without --write first.
    #[arg(long, requires = "write")]
    pub(crate) yes: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  stockade import --find
  stockade import /etc/claude-sandbox.conf
  stockade import ~/.claude/settings.json .claude/settings.json
  stockade import ~/.codex/config.toml --write

Exit code: 0; 1 if Stockade cannot be as narrow as the files, which it then lists, or if --write \
needs --yes; 125 if a file is \
invalid, in an unknown format, or cannot be read, or if there is a file for this project already.";

/// Have an agent refuse to work outside of the sandbox.
///
/// A guard is a pair of hooks in the agent's own settings. They ask `stockade inside` before a prompt
/// goes to the model and before a tool runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Guard {
    /// Add a guard to the settings of claude or gemini, or with --system of codex
    ///
    /// Everything else in the file stays as it is. An agent that runs already may need a restart.
    #[command(after_help = GUARD_CODES)]
    Add {
        /// In the settings of all users, which no project can turn off; needs root
        #[arg(long)]
        system: bool,

        /// The agents
        #[arg(required = true, value_name = "NAME")]
        agents: Vec<String>,
    },
    /// List the guards that are there, and whether they are in force
    #[command(after_help = "Exit code: 0, or 1 if a guard is there but not in force.")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a guard again
    #[command(after_help = GUARD_CODES)]
    Remove {
        /// From the settings of all users; needs root
        #[arg(long)]
        system: bool,

        /// The agents
        #[arg(required = true, value_name = "NAME")]
        agents: Vec<String>,
    },
}

const GUARD_CODES: &str = "\
Examples:
  stockade guard add claude
  sudo stockade guard add --system claude gemini
  stockade guard remove claude

Exit code: 0, or 125 if the agent cannot be guarded or its settings cannot be read. Nothing is changed \
then.";
