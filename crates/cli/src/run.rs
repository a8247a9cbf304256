//! `stockade run`: what was typed → a session → what there is to say → the exit code. The session
//! itself is `crates/warden`.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use stockade_config::{Effective, Loader, Mode, Network, Unknown, shown};
use stockade_policy::MOST_DEVICES;
use stockade_wall::{CommandLine, Outcome, Plan};
use stockade_warden::{
    self as warden, Listing, LogDirectory, Planned, SessionError, SessionRequest,
};

use crate::{
    accept, args, context, doctor::Obstacles, exit::refused, hooks, inside, login, proxy, receipt,
    wall_config,
};

pub(crate) fn run(arguments: &args::Run) -> Result<ExitCode> {
    // What a variable says anybody can set.
    if !inside::proven() {
        return start(arguments);
    }
    if !arguments.quiet {
        tell!(
            "stockade: this is inside a session already, whose sandbox applies to what you start here"
        );
    }
    start(arguments).map_err(|error| {
        refused(
            format!("a sandbox in the sandbox cannot be started: {error:#}"),
            "leave `stockade` out, since the command is in the sandbox already; or start the outer \
             session with --nested",
        )
    })
}

fn start(arguments: &args::Run) -> Result<ExitCode> {
    let quiet = arguments.quiet;
    let command = command_line(&arguments.command)?;
    let profile = arguments.profile.as_deref();
    let mut loader = context::loader_for(&arguments.settings, profile, Some(&command.program))?;
    loader.login = login::port(&command);
    let effective = effective(&loader, quiet)?;
    if let Some(line) = login::notice(&loader, &effective)
        && !quiet
    {
        tell!("stockade: {line}");
    }
    if let Some(line) = context::ignored_sandbox(&loader, &effective)
        && !quiet
    {
        tell!("stockade: {line}");
    }
    let proxies = proxy::proxies(&loader, &effective)?;
    for warning in proxy::allowed_proxies(&effective, &proxies) {
        tell!("stockade: WARNING: {warning}");
    }
    let id = warden::identifier();
    let mut config = wall_config::config(&effective, &loader, &command.program)?;
    config.session = Some(id.clone());
    // What is there can be hidden. If it cannot be made, that is said when the log begins.
    let logs = LogDirectory::of(&loader.places.home);
    let _ = logs.make();
    if arguments.learn {
        learn(&effective, &logs, &id)?;
    }

    let mut planned = Planned::new(&config, Some(&loader.places.workspace))?;
    tell_created(&planned.created_state, quiet);
    planned.plan = hooks::plan(planned.plan);
    for given in planned.plan.given.iter().filter(|_| !quiet) {
        tell!("stockade: WARNING: {given}");
    }
    let notes = match quiet {
        true => &planned.plan.warnings,
        false => &planned.plan.notes,
    };
    for note in notes {
        tell!("stockade: {note}");
    }

    let request = SessionRequest {
        command,
        effective: effective.clone(),
        policy: hooks::policy(effective.policy()),
        proxies,
        listing: Some(Listing {
            id: id.clone(),
            loader: loader.clone(),
            config,
            keeping: accept::keeping(&loader.places, &id),
            notify: if quiet {
                receipt::tell_notice_quietly
            } else {
                receipt::tell_notice
            },
        }),
    };
    let shows_known_hosts = shows(&planned.plan, &loader.places.home.join(KNOWN_HOSTS));
    let obstacles = Obstacles::look();
    let ready = planned
        .launch(request, hooks::in_jail)
        .map_err(|error| with_advice(error, &obstacles))?;
    if !quiet {
        receipt::tell_findings(ready.begun(), &id);
        receipt::tell_missing(ready.layers(), &effective);
    }
    let ended = ready.run();
    for error in &ended.unwritten {
        tell!("stockade: {error}");
    }
    let outcome = ended.outcome;
    receipt::tell_journal(&ended.journal, quiet);
    if let Some(complaint) = outcome.as_ref().ok().and_then(Outcome::complaint) {
        tell!("stockade: {complaint}");
    }
    if !quiet {
        receipt::tell_findings(&ended.findings, &id);
        receipt::tell_discarded(&ended.discarded);
        if let Ok(outcome) = &outcome {
            receipt::tell_limit(outcome.exit_code(), &effective.limits);
        }
        receipt::tell_denials(&ended.denials, &ended.journal.programs, &loader, &id);
        if ended.journal.used_ssh && !shows_known_hosts {
            receipt::tell_known_hosts(&loader.places.home.join(KNOWN_HOSTS));
        }
    }
    outcome.map_err(|error| with_advice(error, &obstacles))?;
    ended.modes.put_back();
    Ok(ended.code.into())
}

/// Has the log of this session kept for `stockade suggest`.
fn learn(effective: &Effective, logs: &LogDirectory, id: &str) -> Result<()> {
    let Network { mode, internet, .. } = &effective.network;
    if mode.value != Mode::Jail {
        return Err(refused(
            format!(
                "nothing can be learned in mode \"{}\" ({})",
                mode.value, mode.origin
            ),
            "leave out --learn, or use --mode jail",
        ));
    }
    if !internet.value {
        tell!(
            "stockade: the internet is closed ({}), so this session shows only what the rules allow \
             already; add --internet to see what else the command needs",
            internet.origin
        );
    }
    logs.keep(id)
        .context("the log of this session cannot be kept")
}

/// The keys of ssh servers that the user knows.
const KNOWN_HOSTS: &str = ".ssh/known_hosts";

/// Whether the plan gives this file, or all of its directory.
fn shows(plan: &Plan, path: &Path) -> bool {
    let mut steps = plan.files.iter();
    steps.any(|step| {
        let source = step.operation.source();
        source.is_some_and(|source| source != Path::new("/") && path.starts_with(source))
    })
}

/// Says where an agent that is run for the first time keeps its settings and login.
fn tell_created(created: &[(PathBuf, io::Result<()>)], quiet: bool) {
    let mut made = Vec::new();
    for (path, result) in created {
        let path = shown(&path.to_string_lossy());
        match result {
            Ok(()) => made.push(path),
            Err(error) => tell!("stockade: {path} cannot be made: {error}"),
        }
    }
    if !made.is_empty() && !quiet {
        let made = made.join(" and ");
        tell!("stockade: made {made}, where the agent keeps its settings and login");
    }
}

/// What is in force for this command, and what the user has to know about that.
fn effective(loader: &Loader, quiet: bool) -> Result<Effective> {
    let loaded = context::load(loader)?;
    let idle = context::idle_rules(&loaded.effective);
    for idle in idle.iter().filter(|_| !quiet) {
        tell!("stockade: {idle}");
    }
    let unasked = loaded.effective.policy().unasked_devices();
    if unasked > 0 && !quiet {
        tell!(
            "stockade: searches for devices go to the first {MOST_DEVICES} that rules name; {unasked} \
             more are not asked"
        );
    }
    for wide in context::wide_rules(&loaded.effective) {
        tell!("stockade: WARNING: {wide}");
    }
    for (agent, warning) in &loaded.misspelled {
        if loaded.effective.profile.as_deref() == Some(*agent) {
            tell!("stockade: {warning}");
        }
    }
    let Network {
        mode,
        allow,
        discovery,
        host_ports,
        publish,
        unknown,
        ..
    } = &loaded.effective.network;
    let allow = allow.iter().map(|rule| &rule.origin);
    let ports = host_ports.iter().map(|port| &port.origin);
    let publish = publish.iter().map(|port| &port.origin);
    // Files may have them for other launches; who types one wants it now.
    let ask = (unknown.value == Unknown::Ask).then_some(&unknown.origin);
    let discovery = discovery.iter().map(|entry| &entry.origin);
    let typed = allow.chain(discovery).chain(ports).chain(publish);
    let mut typed = typed.chain(ask);
    if mode.value != Mode::Jail
        && !quiet
        && let Some(idle) = typed.find(|origin| origin.file_line().is_none())
    {
        tell!(
            "stockade: {idle} has no effect in mode \"{}\" ({})",
            mode.value,
            mode.origin
        );
    }
    if mode.value == Mode::Host {
        tell!(
            "stockade: WARNING: NO JAIL: by {}, the command uses this machine's network \
             and reaches everything that this machine can",
            mode.origin
        );
    }
    Ok(loaded.effective)
}

fn command_line(words: &[OsString]) -> Result<CommandLine> {
    let (program, arguments) = words.split_first().context("no command was given")?;
    Ok(CommandLine {
        program: program.clone(),
        arguments: arguments.to_vec(),
    })
}

/// The error as it is said, with what helps.
fn with_advice(error: SessionError, obstacles: &Obstacles) -> anyhow::Error {
    if let Some(refused) = obstacles.explain(&error) {
        return refused.into();
    }
    match (error.fix(), error) {
        (_, SessionError::Wall(error)) => error.into(),
        (Some(fix), error) => refused(error.to_string(), fix),
        (None, error) => error.into(),
    }
}
