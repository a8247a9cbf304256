//! `stockade completions`: what can be typed, for shells, from the definitions that parse it.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate};
use stockade_config::agents;

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
    script
}

/// The program as it should be completed: with the agents, which are no commands of their own,
/// and without hidden commands, which not every shell's script would leave out.
fn program() -> Command {
    let full = Arguments::command();
    let shown = full
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let agents =
        agents().map(|name| Command::new(name).about(format!("Run {name} in the sandbox")));
    Command::new("stockade")
        .version(env!("CARGO_PKG_VERSION"))
        .args(full.get_arguments())
        .subcommands(shown.cloned())
        .subcommands(agents)
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
            for (_, command) in &hidden {
                assert!(!script.contains(command), "{shell}: {command}");
            }
            assert!(
                script.contains("claude") && script.contains("host-port"),
                "{shell}"
            );
        }
    }
}
