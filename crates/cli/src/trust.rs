//! `stockade trust`: lets the workspace's own `.stockade.toml` count, once a person has
//! seen what it changes. Everything it says is hostile until then, and is shown escaped.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use stockade_config::{Difference, Effect, Key, Proposal, Trust, literal, shown};

use crate::{args, context, exit::Refused, terminal};

pub(crate) fn trust(arguments: &args::Trust) -> Result<ExitCode> {
    let loader = context::loader_here()?;
    let trust = Trust::new(&loader.places);
    let path = shown(&loader.places.workspace_file().to_string_lossy());
    if arguments.revoke {
        let was = trust.revoke().map_err(problems)?;
        let now = if was {
            "is no longer trusted"
        } else {
            "was not trusted"
        };
        terminal::print(format_args!("{path} {now}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(proposal) = loader.proposal()? else {
        return Err(Refused {
            what: format!("there is no {path}"),
            fix: "`stockade init --workspace-file` makes one".to_owned(),
        }
        .into());
    };
    terminal::print(format_args!("{path}\n{}", describe(&proposal)))?;
    if proposal.trusted {
        terminal::write(b"It is trusted.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.show {
        terminal::write(b"It is not trusted.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    if !arguments.yes && !agreed()? {
        terminal::write(b"Not trusted; nothing was changed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    trust.record(&proposal.record).map_err(problems)?;
    terminal::write(b"Trusted, as long as it does not change.\n")?;
    Ok(ExitCode::SUCCESS)
}

fn problems(problem: stockade_config::Diagnostic) -> anyhow::Error {
    stockade_config::Diagnostics::from(problem).into()
}

fn agreed() -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Err(Refused {
            what: "nobody is there to ask: the input is no terminal".to_owned(),
            fix: "look at it with `stockade trust --show`, then add --yes".to_owned(),
        }
        .into());
    }
    eprint!("Trust it? [y/N] ");
    io::stderr().flush().context("cannot ask")?;
    let mut answer = String::new();
    if io::stdin().read_line(&mut answer).context("no answer")? == 0 {
        bail!("no answer");
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn describe(proposal: &Proposal) -> String {
    let mut text: String = proposal.effects.iter().map(of_effect).collect();
    // What scrolled away is counted at the end.
    let mut counts: BTreeMap<Key, usize> = BTreeMap::new();
    for difference in proposal
        .effects
        .iter()
        .flat_map(|effect| &effect.differences)
    {
        *counts.entry(difference.key).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(key, count)| format!("{key} ({count})"))
        .collect();
    text.push_str(&match counts.as_slice() {
        [] => "It changes nothing.\n".to_owned(),
        counts => format!("In all it changes {}.\n", counts.join(", ")),
    });
    text
}

fn of_effect(effect: &Effect) -> String {
    let whom = match &effect.profile {
        None => "for every command".to_owned(),
        Some(profile) => format!("for the command or profile `{}`", shown(profile)),
    };
    let mut text = format!("changes {whom}:\n");
    if effect.differences.is_empty() {
        text.push_str("  nothing\n");
    }
    text.extend(effect.differences.iter().map(line));
    for idle in &effect.idle {
        text.push_str(&format!("  without effect now: {idle}\n"));
    }
    text
}

fn line(difference: &Difference) -> String {
    let name = match &difference.name {
        Some(name) => format!("{}.{name}", difference.key),
        None => difference.key.to_string(),
    };
    let what = match (&difference.before, &difference.after) {
        (Some(before), Some(after)) => format!("{} -> {}", literal(before), literal(after)),
        (None, Some(after)) => format!("+ {}", literal(after)),
        (Some(before), None) => format!("- {}", literal(before)),
        (None, None) => String::new(),
    };
    format!("  {name:20} {what}\n")
}
