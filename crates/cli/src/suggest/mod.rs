//! `stockade suggest`: the logs of sessions → the smallest `[network]` that would have admitted
//! them, with its proof.
//!
//! ```text
//! observe      logs               → flows, names and ports, each with its evidence
//! policy       flows and names    → rules (`stockade_policy::suggest`)
//! proof        all of it again    → through `decide` by the text that would be written
//! report       what to print, to compare and to write
//! ```

mod observe;
mod report;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    path::Path,
    process::ExitCode,
};

use anyhow::Result;
use stockade_config::{
    Choice, Effective, LayerKind, NetworkEdit, NewPort, NewRule, Places, Source, merge, parse,
    shown,
};
use stockade_policy::{
    Policy, Replayed, Rule, SeenFlow, closed_policy, replay, replay_name, rules_used,
    suggest as rules_for,
};
use stockade_warden::LogDirectory;

use crate::{allow, args, context, exit::refused, init, log, verify};
use observe::{Evidence, Observed};

/// Rules that a person reviews.
const MOST_RULES: usize = 256;

/// The result, which holds.
struct Suggestion {
    observed: Observed,
    rules: Vec<(Rule, Seen)>,
    /// What the rules do not admit.
    denied: Vec<String>,
    /// What programs will do without.
    quic: BTreeSet<String>,
}

/// Why there is a rule.
#[derive(Debug, Clone, Default)]
struct Seen {
    connections: Evidence,
    questions: Evidence,
}

pub(crate) fn suggest(arguments: &args::Suggest) -> Result<ExitCode> {
    let mut loader = context::loader_here()?;
    let directory = LogDirectory::of(&loader.places.home);
    let sessions = chosen(arguments, &directory, &loader.places.workspace)?;
    if arguments.write {
        init::check_workspace(&loader.places)?;
        check_workspaces(&directory, &sessions, &loader.places.workspace)?;
    }
    loader.choice = choice(&directory, &sessions);
    let observed = Observed::read(&directory, &sessions)?;
    if !observed.suspicious.is_empty() && !arguments.even_so {
        return Err(refused(
            format!(
                "suspicious sessions are not learned from: {}",
                observed.suspicious.join(". ")
            ),
            "look at them with `stockade log SESSION`; name other sessions, or add --even-so",
        ));
    }
    if observed.is_empty() {
        return Err(refused(
            "these sessions connected to nothing, so there is nothing to learn from them",
            "run `stockade run --learn -- COMMAND` with what the command needs; or take more sessions: --last 5, --project",
        ));
    }
    let suggestion = Suggestion::of(observed, &loader.places)?;
    report::warn(&suggestion);
    if !suggestion.denied.is_empty() {
        report::unproven(&suggestion, arguments.json)?;
        return Ok(ExitCode::FAILURE);
    }
    if arguments.diff {
        let effective = context::load(&loader)?.effective;
        return report::diff(&suggestion, &effective, arguments.json);
    }
    let written = match arguments.write {
        true => {
            let written = loader.edit_project_file(&suggestion.edit())?;
            for id in &sessions {
                directory.release(id);
            }
            Some(written)
        }
        false => None,
    };
    let path = written.as_ref().map(|(path, _)| path.as_path());
    report::print(&suggestion, path, arguments.json)?;
    match written {
        Some(_) => {
            report::still_open(&context::load(&loader)?.effective);
            allow::reload_sessions_of(&loader.places.home, &loader.places.workspace)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Which sessions are meant, the oldest first.
fn chosen(
    arguments: &args::Suggest,
    directory: &LogDirectory,
    workspace: &Path,
) -> Result<Vec<String>> {
    if !arguments.sessions.is_empty() {
        let wanted = arguments.sessions.iter();
        let found: Result<Vec<_>> = wanted
            .map(|wanted| log::choose(directory, Some(wanted), None))
            .collect();
        let mut found = found?;
        stockade_warden::sort(&mut found);
        found.dedup();
        return Ok(found);
    }
    let is_here = |id: &String| {
        let first = log::first_line(directory, id);
        first.is_some_and(|line| {
            line["workspace"].as_str().map(Path::new) == Some(workspace)
                && !verify::is_session(&line["command"])
        })
    };
    let mut here = directory.sessions();
    here.retain(is_here);
    if let Some(last) = arguments.last {
        let first = here.len().saturating_sub(last.into());
        here.drain(..first);
    } else if !arguments.project {
        let kept = directory.kept();
        match here.iter().any(|id| kept.contains(id)) {
            true => here.retain(|id| kept.contains(id)),
            false => drop(here.drain(..here.len().saturating_sub(1))),
        }
    }
    if here.is_empty() {
        let workspace = stockade_config::shown_path(workspace);
        return Err(refused(
            format!("no session of {workspace} has a log"),
            "run something first: stockade run --learn -- COMMAND",
        ));
    }
    Ok(here)
}

/// What was learned elsewhere is not written here.
fn check_workspaces(directory: &LogDirectory, sessions: &[String], here: &Path) -> Result<()> {
    let is_elsewhere = |id: &&String| log::workspace(directory, id).as_deref() != Some(here);
    match sessions.iter().find(is_elsewhere) {
        None => Ok(()),
        Some(id) => Err(refused(
            format!("session {} was in another workspace", shown(id)),
            "change to its directory, or name it with --workspace",
        )),
    }
}

/// The profile of the latest session's command.
fn choice(directory: &LogDirectory, sessions: &[String]) -> Choice {
    let first = sessions
        .last()
        .and_then(|id| log::first_line(directory, id));
    let command = first.as_ref().and_then(|line| line["command"][0].as_str());
    context::choice(None, command.map(OsStr::new))
}

impl Suggestion {
    /// Makes rules, and replays everything that was seen by what would be written.
    fn of(observed: Observed, places: &Places) -> Result<Self> {
        let flows: BTreeMap<_, _> = observed.flows.iter().map(|it| (key(it.0), it)).collect();
        let rules = rules_for(flows.values().map(|(seen, _)| *seen), observed.names.keys());
        if rules.len() > MOST_RULES {
            return Err(refused(
                format!(
                    "this takes {} rules, and nobody reviews so many",
                    rules.len()
                ),
                "name fewer sessions, or keep the internet open",
            ));
        }
        let policy = written_policy(&rules, places)?;
        let mut suggestion = Self {
            rules: rules.into_iter().map(|it| (it, Seen::default())).collect(),
            denied: observed.unsayable.iter().cloned().collect(),
            quic: BTreeSet::new(),
            observed: Observed::default(),
        };
        for (seen, evidence) in flows.values() {
            suggestion.prove(&policy, seen, evidence);
        }
        for (name, evidence) in &observed.names {
            match replay_name(&policy, name) {
                Some(index) => suggestion.seen(index).questions.add(evidence),
                None => suggestion.denied.push(format!("the name {name}")),
            }
        }
        suggestion.credit(&observed.flows);
        suggestion.observed = observed;
        Ok(suggestion)
    }

    /// Finds the evidence of rules that decide nothing: an address that a program also used without a
    /// name has a rule of its own, and that comes first.
    fn credit(&mut self, flows: &HashMap<SeenFlow, Evidence>) {
        let idle = |it: &&mut (Rule, Seen)| it.1.connections.count == 0;
        for (rule, seen) in self.rules.iter_mut().filter(idle) {
            let alone = closed_policy([rule.clone()]);
            let used = |(flow, _): &(&SeenFlow, &Evidence)| !rules_used(&alone, flow).is_empty();
            for (_, evidence) in flows.iter().filter(used) {
                seen.connections.add(evidence);
            }
        }
    }

    fn prove(&mut self, policy: &Policy, seen: &SeenFlow, evidence: &Evidence) {
        let by = match replay(policy, seen) {
            Replayed::Admitted(by) => by,
            Replayed::FallsBack(by) => {
                self.quic
                    .extend(seen.names.first().map(ToString::to_string));
                by
            }
            Replayed::Denied(verdict) => {
                self.denied.push(format!("{}: {verdict}", seen.flow));
                return;
            }
        };
        for index in by {
            self.seen(index).connections.add(evidence);
        }
    }

    fn seen(&mut self, index: usize) -> &mut Seen {
        // A number that a replay gave is that of a rule.
        &mut self.rules[index].1
    }

    fn edit(&self) -> NetworkEdit {
        let rule = |(rule, seen): &(Rule, Seen)| NewRule {
            rule: rule.clone(),
            comment: Some(seen.said()),
        };
        let port = |(port, evidence): (&u16, &Evidence)| NewPort {
            port: *port,
            comment: Some(evidence.said("connection")),
        };
        NetworkEdit {
            rules: self.rules.iter().map(rule).collect(),
            host_ports: self.observed.host_ports.iter().map(port).collect(),
            internet: Some(false),
        }
    }
}

impl Seen {
    fn said(&self) -> String {
        if self.connections.count > 0 {
            return self.connections.said("connection");
        }
        let said = self.questions.said("question");
        format!("{said}; only asked for: ping is the least that lets it resolve")
    }
}

/// Flows in an order that is the same each time.
fn key(seen: &SeenFlow) -> (String, Vec<String>, bool) {
    let names = seen.names.iter().map(ToString::to_string).collect();
    (seen.flow.to_string(), names, seen.by_address)
}

/// The policy of the text that would be written, and of nothing else.
fn written_policy(rules: &[Rule], places: &Places) -> Result<Policy> {
    let edit = NetworkEdit {
        rules: rules.iter().cloned().map(NewRule::from).collect(),
        internet: Some(false),
        ..NetworkEdit::default()
    };
    let source = Source::file("the suggestion", edit.to_toml());
    let layer = parse(LayerKind::User, &source, &places.roots())?;
    let policy = merge(&[layer], &Choice::None)?.policy();
    anyhow::ensure!(
        policy == closed_policy(rules.iter().cloned()),
        "the suggestion does not say what it should"
    );
    Ok(policy)
}

/// The rules in force that nothing used of what was seen, by their numbers.
fn unused(observed: &Observed, effective: &Effective) -> Vec<usize> {
    let policy = Policy {
        internet: false,
        ..effective.policy()
    };
    let mut used = BTreeSet::new();
    for seen in observed.flows.keys() {
        used.extend(rules_used(&policy, seen));
    }
    used.extend(
        observed
            .names
            .keys()
            .filter_map(|it| replay_name(&policy, it)),
    );
    let all = 0..policy.rules.len();
    all.filter(|index| !used.contains(index)).collect()
}
