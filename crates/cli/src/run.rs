//! `stockade run`: one session, from the configuration to the exit code.

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Context as _, Result};
use rustix::thread::CapabilitySet;
use stockade_config::{Effective, Loader, Mode, Published, Sourced};
use stockade_gate::{Denials, Gate, Local, Publish};
use stockade_jail::{NAME_SERVER, Owner, Settings};
use stockade_policy::Rule;
use stockade_wall::{Bubblewrap, CommandLine, Config, Facts, Plan, Signals};

use crate::{
    args,
    control::{self, Request},
    exit::Refused,
    here,
    reload::Reload,
    session, unenforced,
};

/// The order is load-bearing: what can refuse comes first, the jail is closed before the
/// gate serves it, and the command starts last. Any error on the way ends the process, and
/// with it all that was built.
pub(crate) fn run(arguments: &args::Run) -> Result<ExitCode> {
    let command = command_line(&arguments.command)?;
    let facts = Facts::gather(None)?;
    let loader = loader(arguments, &facts);
    let effective = effective(&loader)?;
    let policy = effective.policy();

    // Before there are threads: each inherits what is blocked.
    let signals = Signals::block()?;
    // Asks bubblewrap for its version; the answer is collected when it is needed.
    let bubblewrap = Bubblewrap::find()?;
    let config = Config {
        resolv_conf: Some(stockade_gate::resolv_conf(NAME_SERVER)),
    };
    let launch = Plan::build(&config, &facts)?.prepare(command, bubblewrap, signals)?;

    let settings = Settings {
        ipv6: stockade_gate::host_has_ipv6() || policy.rules.iter().any(names_ipv6),
        host_ports: effective.host_ports(),
    };
    let local = local(&effective)?;
    // While there is one thread: a process enters a user namespace as a whole.
    let owner = Owner::enter().map_err(|error| refused(&error))?;
    let (jail, sockets) = owner.build(settings).map_err(|error| refused(&error))?;
    let gate = Gate::start(policy, local, sockets)?;

    let mut running = jail
        .run(move || launch.spawn())
        .map_err(|error| refused(&error))??;
    // Nothing is built any more: what only building needed is given up.
    jail.confine().map_err(|error| refused(&error))?;
    stockade_sys::confine::keep_capabilities(CapabilitySet::empty())?;
    // After the command has its own limits: the gate needs two descriptors for each flow.
    stockade_gate::claim_descriptors();
    let reload = Reload {
        loader,
        launched: effective.clone(),
        policies: gate.policies(),
    };
    offer_control(reload.clone());
    running.on_reload(move || {
        if let Err(why) = reload.reload() {
            eprintln!("stockade: the configuration was not reloaded: {why}");
        }
    });
    let outcome = running.supervise()?;
    drop(jail);

    if let Some(complaint) = outcome.complaint() {
        eprintln!("stockade: {complaint}");
    }
    let denials = gate.finish()?;
    if !arguments.quiet && effective.network.log_denials.value {
        tell(&denials);
    }
    Ok(outcome.exit_code().into())
}

fn loader(arguments: &args::Run, facts: &Facts) -> Loader {
    let mut loader = here::loader(&facts.home.named, &facts.workspace);
    loader.flags = arguments.settings.flags();
    let command = arguments.command.first().map(OsString::as_os_str);
    loader.choice = here::choice(arguments.profile.as_deref(), command);
    loader
}

/// Lets other commands of the user find the session. It runs without, too: then it cannot be
/// asked to reload.
fn offer_control(reload: Reload) {
    let offered = session::listen(&session::identifier()).and_then(|listener| {
        control::serve(listener, move |request| match request {
            Request::Reload => reload.reload(),
        })
    });
    if let Err(error) = offered {
        eprintln!("stockade: this session cannot be reloaded: {error}");
    }
}

/// What is in force for this command, and what the user has to know about that.
fn effective(loader: &Loader) -> Result<Effective> {
    let loaded = loader.load()?;
    if let Some(notice) = loaded.workspace_file.notice() {
        eprintln!("stockade: {notice}");
    }
    let mode = &loaded.effective.network.mode;
    if mode.value == Mode::Host {
        eprintln!(
            "stockade: WARNING: NO JAIL: by {}, the command has the network of this machine, \
             with all that is reachable from here",
            mode.origin
        );
    }
    unenforced::refuse(&loaded.effective)?;
    Ok(loaded.effective)
}

fn local(effective: &Effective) -> Result<Local> {
    let mut publish: Vec<(Published, Publish)> = Vec::new();
    for Sourced { value, origin } in &effective.network.publish {
        if publish.iter().all(|(known, _)| known != value) {
            let bound = Publish::bind(value.outside.get(), value.inside.get())
                .with_context(|| format!("{origin}: cannot take port {} here", value.outside))?;
            publish.push((*value, bound));
        }
    }
    Ok(Local {
        host_ports: effective.host_ports(),
        publish: publish.into_iter().map(|(_, bound)| bound).collect(),
    })
}

fn names_ipv6(rule: &Rule) -> bool {
    rule.network()
        .is_some_and(|network| network.addr().is_ipv6())
}

fn command_line(words: &[OsString]) -> Result<CommandLine> {
    let (program, arguments) = words.split_first().context("no command was given")?;
    Ok(CommandLine {
        program: program.clone(),
        arguments: arguments.to_vec(),
    })
}

fn refused(error: &stockade_jail::Error) -> anyhow::Error {
    Refused {
        what: error.to_string(),
        fix: error.fix(),
    }
    .into()
}

/// At the end, not during the session: the terminal belongs to the command.
fn tell(denials: &Denials) {
    const LINES: usize = 8;
    let all = denials.by_count();
    for denial in all.iter().take(LINES) {
        let times = if denial.count > 1 {
            format!(" ({} times)", denial.count)
        } else {
            String::new()
        };
        eprintln!(
            "stockade: denied {}{times}: {}",
            denial.subject, denial.ruling
        );
        if let Some(fix) = denial.ruling.fix() {
            eprintln!("stockade:   to allow it: --allow {fix}");
        }
    }
    let more: u64 = all.iter().skip(LINES).map(|denial| denial.count).sum();
    if more + denials.others() > 0 {
        eprintln!(
            "stockade: denied {} more attempts to other destinations",
            more + denials.others()
        );
    }
}
