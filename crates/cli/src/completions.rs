//! `stockade completions`: what can be typed, for shells, from the definitions that parse it.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, Command, CommandFactory as _, ValueHint, builder::PossibleValuesParser};
use clap_complete::{Shell, generate};
use stockade_config::{BUILT_IN, Key, Kind, agents};

use crate::{
    args::{self, Arguments},
    terminal,
};

pub(crate) fn completions(arguments: &args::Completions) -> Result<ExitCode> {
    terminal::write(&script(arguments.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    generate(shell, &mut program(), "stockade", &mut script);
    script.extend_from_slice(match shell {
        Shell::Bash => AFTER_DASHES_IN_BASH.as_bytes(),
        Shell::Fish => AFTER_DASHES_IN_FISH.as_bytes(),
        _ => b"",
    });
    script
}

/// After `--`, the words are those of the command: its name, and whatever its own completion offers.
const AFTER_DASHES_IN_BASH: &str = r#"
_stockade_or_command() {
    local at
    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ ${COMP_WORDS[at]} == -- ]] || continue
        if declare -F _comp_command_offset > /dev/null; then
            _comp_command_offset $((at + 1))
        elif declare -F _command_offset > /dev/null; then
            _command_offset $((at + 1))
        elif ((COMP_CWORD == at + 1)); then
            COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
        else
            COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
        fi
        return
    done
    _stockade "$@"
}
complete -F _stockade_or_command -o bashdefault -o default stockade
"#;

const AFTER_DASHES_IN_FISH: &str = r#"
function __fish_stockade_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    and complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-2]) $words[-1])
end
complete -c stockade -n 'contains -- -- (commandline -opc)' -f -a '(__fish_stockade_command)'
"#;

/// The program as it should be completed: with the agents, which are no commands of their own,
/// and without hidden commands, which not every shell's script would leave out.
fn program() -> Command {
    let full = Arguments::command();
    let shown = full
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let agents =
        agents().map(|name| Command::new(name).about(format!("Run {name} in the sandbox")));
    let mut program = Command::new("stockade")
        .version(env!("CARGO_PKG_VERSION"))
        .args(full.get_arguments())
        .subcommands(shown.cloned())
        .subcommands(agents);
    // The options of commands are made only now.
    program.build();
    program.mut_subcommands(|command| {
        let command = command.mut_args(with_values);
        command.mut_subcommands(|below| below.mut_args(with_values))
    })
}

/// What can be typed as the value of an option. The parser has better messages for what cannot.
fn with_values(argument: Arg) -> Arg {
    let option = argument.get_id().as_str().to_owned();
    let of_key = Key::ALL.iter().map(|key| key.spec());
    let mut of_key = of_key
        .filter(|spec| spec.option == option)
        .map(|spec| spec.kind);
    // The parser keeps texts of the program only; this command ends soon.
    let limit = |key: Key| &*format!("{}=", key.name()).leak();
    let limits = || Key::in_section("limits").map(limit);
    match (option.as_str(), of_key.next()) {
        ("limit", _) => argument.value_parser(PossibleValuesParser::new(limits())),
        ("profile", _) => {
            let names = BUILT_IN.iter().map(|(name, _)| *name);
            argument.value_parser(PossibleValuesParser::new(names))
        }
        // Of shims.
        ("names", _) => argument.value_parser(PossibleValuesParser::new(agents())),
        ("workspace" | "directory", _) => argument.value_hint(ValueHint::DirPath),
        ("command", _) if argument.is_trailing_var_arg_set() => {
            argument.value_hint(ValueHint::CommandWithArguments)
        }
        (_, Some(Kind::Choice(words))) => {
            argument.value_parser(PossibleValuesParser::new(words.iter().copied()))
        }
        (_, Some(Kind::List(Kind::Path))) => argument.value_hint(ValueHint::AnyPath),
        _ => argument,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shells_script_has_every_command_and_agent_and_nothing_hidden() {
        let full = Arguments::command();
        let (hidden, shown): (Vec<_>, Vec<_>) = full
            .get_subcommands()
            .map(|command| (command.is_hide_set(), command.get_name()))
            .partition(|(hidden, _)| *hidden);
        assert!(shown.len() > 8 && !hidden.is_empty());
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).expect("text");
            for (_, command) in &shown {
                assert!(script.contains(command), "{shell}: {command}");
            }
            // As a word: help may speak of questions.
            let in_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
            let words: Vec<_> = script.split(|c| !in_word(c)).collect();
            for (_, command) in &hidden {
                assert!(!words.contains(command), "{shell}: {command}");
            }
            assert!(
                script.contains("claude") && script.contains("host-port"),
                "{shell}"
            );
        }
    }
}
