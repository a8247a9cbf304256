//! `stockade trust`: applies the workspace's own `.stockade.toml`, once a person has seen what it
//! changes. Everything it says is hostile until then, and is shown escaped.

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::Result;
use stockade_config::{Difference, Effect, Key, Proposal, Trust, literal, shown, shown_path};

use crate::{args, context, exit::refused, terminal};

pub(crate) fn trust(arguments: &args::Trust) -> Result<ExitCode> {
    let loader = context::loader_here()?;
    let trust = Trust::new(&loader.places);
    let path = shown_path(&loader.places.workspace_file());
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
        let fix = "create one with `stockade init --workspace-file`";
        return Err(refused(format!("there is no {path}"), fix));
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
    if !arguments.yes && !terminal::agreed("Trust it?", "stockade trust")? {
        terminal::write(b"Not trusted; nothing was changed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    trust.record(&proposal.record).map_err(problems)?;
    terminal::write(b"Trusted until it changes.\n")?;
    Ok(ExitCode::SUCCESS)
}

fn problems(problem: stockade_config::Diagnostic) -> anyhow::Error {
    stockade_config::Diagnostics::from(problem).into()
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
        counts => format!("In total, it changes {}.\n", counts.join(", ")),
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
        text.push_str(&format!("  no effect now: {idle}\n"));
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
