//! What was typed, as it was meant: agents in place of commands, and mistakes that the parser
//! would take for something else, or that we can answer better.

use std::ffi::OsString;

use clap::{
    CommandFactory as _, Parser as _,
    error::{ContextKind, ContextValue, ErrorKind},
};
use stockade_config::{Key, Kind, agents, meant, shown};

use super::{Arguments, Command, Run};
use crate::settings::Settings;

/// Parses the command line. Refuses `--internet false`, too: such an option takes its value after
/// an equals sign only, and the word would be taken for the command.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let detached = detached_value(&words);
    let typed = words.len();
    let is_auth = is_auth(&words);
    let parsed = Arguments::try_parse_from(words).map_err(suggest_our_name);
    let help = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_auth
        && let Err(message) = &parsed
        && message.use_stderr()
        && message.kind() != help
    {
        return Err(not_repeated());
    }
    let Some((at, flag, value)) = detached else {
        return parsed;
    };
    // After the command's name, it belongs to the command.
    let is_after = |command: &[OsString]| at > typed.saturating_sub(command.len());
    let is_own = match parsed.as_ref().map(|arguments| &arguments.command) {
        Ok(Command::Run(run)) => is_after(&run.command),
        Ok(Command::Plan(plan)) => is_after(&plan.command),
        Ok(Command::Agent(_)) => true,
        _ => false,
    };
    if is_own {
        return parsed;
    }
    let message =
        format!("`{flag} {value}` would run `{value}` as the command; write `{flag}={value}`");
    Err(Arguments::command().error(ErrorKind::NoEquals, message))
}

/// Whether the command is `auth`.
fn is_auth(words: &[OsString]) -> bool {
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "-C" || word == "--workspace" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return word == "auth";
        }
    }
    false
}

/// What is wrong with a line of `auth` may be a token, so nothing of it is said again.
fn not_repeated() -> clap::Error {
    let message = "`stockade auth` does not understand this line, and does not repeat it here\n\n\
                   A token is never an argument: it would stay in the shell's history, and others on \
                   this machine could see it. If you typed one, revoke it. Type the line without it: \
                   the token is asked for, or read from standard input.\n\n\
                   Usage:\n\
                   \x20 stockade auth github|gitlab [--host HOST]\n\
                   \x20 stockade auth status [--json]\n\
                   \x20 stockade auth remove github|gitlab [--host HOST]";
    Arguments::command().error(ErrorKind::UnknownArgument, message)
}

/// A boolean option and the word after it, which looks like its value, and where the option stands.
fn detached_value(words: &[OsString]) -> Option<(usize, String, String)> {
    let options = words.iter().take_while(|word| *word != "--");
    let options: Vec<_> = options.filter_map(|word| word.to_str()).collect();
    options.windows(2).enumerate().find_map(|(at, pair)| {
        let [flag, value] = pair else { return None };
        let is_detached = is_boolean(flag) && ["true", "false"].contains(value);
        is_detached.then(|| (at, (*flag).to_owned(), (*value).to_owned()))
    })
}

/// Options of other sandboxes, and ours for the same.
const OTHER_SANDBOXES: &[(&str, &str)] = &[
    ("--bind", "--write PATH"),
    ("--cpu", "--limit cpu_time=TIME"),
    ("--env", "--pass-env NAME"),
    ("--memory", "--limit memory=SIZE"),
    ("--net", "--mode MODE"),
    ("--network", "--mode MODE"),
    ("--port", "--publish PORT"),
    ("--readonly", "--read PATH"),
    ("--ro", "--read PATH"),
    ("--ro-bind", "--read PATH"),
    ("--rw", "--write PATH"),
    ("--volume", "--write PATH"),
];

fn suggest_our_name(mut message: clap::Error) -> clap::Error {
    let typed = match message.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(typed)) => typed.as_str(),
        _ => return message,
    };
    let typed = typed.split_once('=').map_or(typed, |(flag, _)| flag);
    if message.kind() == ErrorKind::UnknownArgument
        && let Some((_, ours)) = OTHER_SANDBOXES.iter().find(|(flag, _)| *flag == typed)
    {
        let instead = ContextValue::String((*ours).to_owned());
        message.insert(ContextKind::SuggestedArg, instead);
        message.remove(ContextKind::Suggested);
        // It would show the option with the most similar name.
        message.remove(ContextKind::Usage);
    }
    message
}

/// Whether the value of this option comes after `=`.
fn is_boolean(flag: &str) -> bool {
    let mut keys = Key::ALL.iter().map(|key| key.spec());
    keys.any(|spec| spec.flag == flag && spec.kind == Kind::Boolean)
}

/// The line `run` for an agent that was named in place of a command of ours.
///
/// # Errors
/// If no profile has that name.
pub(crate) fn agent(words: &[OsString]) -> Result<Run, clap::Error> {
    let word = words.first().and_then(|name| name.to_str());
    match word.filter(|word| agents().any(|agent| agent == *word)) {
        Some(name) => match words.iter().find_map(|word| meant_for_us(word)) {
            Some(flag) => Err(misplaced(flag, name)),
            None => Ok(Run {
                profile: Some(name.to_owned()),
                quiet: false,
                learn: false,
                settings: Settings::default(),
                command: words.to_vec(),
            }),
        },
        None => {
            let name = words.first().map(|name| name.display().to_string());
            Err(unknown(&name.unwrap_or_default()))
        }
    }
}

/// Options of ours that no agent has. Whoever types one after the agent's name would believe in a
/// sandbox that is not there.
const OURS: &[&str] = &[
    "--internet",
    "--no-internet",
    "--allow",
    "--near",
    "--device",
    "--discovery",
    "--host-port",
    "--publish",
    "--hide",
    "--hardening",
    "--limit",
    "--no-forge",
    "--workspace",
];

fn meant_for_us(word: &OsString) -> Option<&str> {
    let word = word.to_str()?;
    let flag = word.split_once('=').map_or(word, |(flag, _)| flag);
    OURS.contains(&flag).then_some(word)
}

fn misplaced(flag: &str, agent: &str) -> clap::Error {
    let flag = shown(flag);
    let message = format!(
        "`{flag}` comes after `{agent}`, so {agent} would get it, and the sandbox would not change\n\n\
         For the sandbox:  stockade run {flag} … -- {agent} …\n\
         For {agent}:  stockade run -- {agent} {flag} …"
    );
    Arguments::command().error(ErrorKind::UnknownArgument, message)
}

/// A word that is neither a command nor an agent.
fn unknown(word: &str) -> clap::Error {
    let mut program = Arguments::command();
    let commands = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| command.get_name().to_owned());
    let others = ["help"].into_iter().chain(agents()).map(str::to_owned);
    let names: Vec<String> = commands.chain(others).collect();
    let near = match meant(word, names.iter().map(String::as_str)) {
        Some(near) => format!(": did you mean `{near}`?"),
        None => String::new(),
    };
    let agents: Vec<_> = agents().collect();
    let word = shown(word);
    let message = format!(
        "unknown command or agent `{word}`{near}\n\n\
         Agents: {}\n\
         To run a program of this name in the sandbox: stockade run -- {word}",
        agents.join(", ")
    );
    program.error(ErrorKind::InvalidSubcommand, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_for_the_sandbox_is_not_given_to_the_agent() {
        let agent = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            agent(&words).map_err(|error| error.to_string())
        };
        for line in ["claude --internet=false", "codex exec --allow 10.0.0.1 x"] {
            let refused = agent(line).expect_err(line);
            assert!(
                refused.contains("For the sandbox:  stockade run --"),
                "{refused}"
            );
        }
        // An agent's own.
        for line in [
            "claude --allowed-tools Bash",
            "aider --read x",
            "codex --profile x",
        ] {
            assert!(agent(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn flags_of_other_sandboxes_are_answered_with_ours() {
        let said = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            parse(words).expect_err(line).to_string()
        };
        assert!(said("stockade run --ro /x -- true").contains("'--read PATH'"));
        assert!(said("stockade run --memory=1G true").contains("'--limit memory=SIZE'"));
        assert!(said("stockade run --network none true").contains("'--mode MODE'"));
        for (flag, here) in OTHER_SANDBOXES {
            let ours = here.split(' ').next().unwrap_or_default();
            let line = format!("stockade run {ours}");
            assert!(!said(&line).contains("unexpected argument"), "{flag}");
        }
    }

    #[test]
    fn a_flag_with_its_value_behind_a_blank_is_refused_and_the_commands_own_are_not() {
        let is_refused = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            parse(words).is_err_and(|error| error.to_string().contains("write `--internet="))
        };
        for line in [
            "stockade run --internet false curl x",
            "stockade run --internet false -- curl x",
            "stockade plan --internet true sh",
            "stockade explain --internet false x",
        ] {
            assert!(is_refused(line), "{line}");
        }
        for line in [
            "stockade run echo --internet false",
            "stockade run -- echo --internet false",
            "stockade claude --internet false",
            "stockade run --internet=false true",
            "stockade run --internet -- true",
        ] {
            assert!(!is_refused(line), "{line}");
        }
    }
}
