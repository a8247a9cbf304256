//! `stockade run`: one session, from the configuration to the exit code.

use std::{
    collections::HashMap,
    ffi::OsString,
    io,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use anyhow::{Context as _, Result, anyhow};
use rustix::thread::CapabilitySet;
use stockade_config::{Effective, Loader, Mode, Network, Origin, Published, Slip, Sourced, shown};
use stockade_gate::{Denials, Events, Gate, Happenings, Local, Publish, Subject};
use stockade_jail::{Error as JailError, Owner, Settings};
use stockade_policy::Rule;
use stockade_wall::{
    Bubblewrap, Cancel, CommandLine, Config, Facts, Launch, Outcome, Plan, Running, Signals, Watch,
};

use crate::{
    args,
    control::{self, Request},
    exit::Refused,
    here, hooks,
    journal::{Directory, End, InForce, Journal, Lost, Process, Start, Witness},
    receipt,
    reload::Reload,
    session, walling,
};

type Programs = HashMap<Subject, Process>;

/// The order is load-bearing: what can refuse comes first, the jail is closed before the
/// gate serves it, and the command starts last. Any error on the way ends the process, and
/// with it all that was built.
pub(crate) fn run(arguments: &args::Run) -> Result<ExitCode> {
    let command = command_line(&arguments.command)?;
    let loader = loader(arguments, &command)?;
    let effective = effective(&loader, arguments.quiet)?;

    // Before there are threads: each inherits what is blocked.
    let signals = Signals::block()?;
    // Asks bubblewrap for its version; the answer is collected when it is needed.
    let bubblewrap = Bubblewrap::find()?;
    let config = walling::config(&effective, &loader.places, &command.program);
    let (facts, plan) = planned(&config, arguments.quiet)?;
    let watch = Watch::begin(&config, &facts);
    let plan = hooks::plan(plan);
    for given in plan.given.iter().filter(|_| !arguments.quiet) {
        eprintln!("stockade: WARNING: {given}");
    }
    for note in plan.notes.iter().filter(|_| !arguments.quiet) {
        eprintln!("stockade: {note}");
    }
    let launch = plan.prepare(command, bubblewrap, signals)?;

    let id = session::identifier();
    let start = Start {
        id: &id,
        workspace: &facts.workspace,
        command: &arguments.command,
        effective: &effective,
        layers: &[],
        bubblewrap: None,
    };
    let (outcome, denials, programs) = match effective.network.mode.value {
        Mode::Jail => in_jail(launch, loader.clone(), &start)?,
        // Without a network, or with the host's: the wall sees to either.
        Mode::None | Mode::Host => without_jail(launch, &loader, &start)?,
    };
    if let Some(complaint) = outcome.complaint() {
        eprintln!("stockade: {complaint}");
    }
    if !arguments.quiet {
        receipt::tell_limit(outcome.exit_code(), &effective.limits);
        receipt::tell_denials(&denials, &programs, &loader);
        receipt::tell_findings(&watch.findings());
    }
    Ok(outcome.exit_code().into())
}

/// The plan, and the facts behind it. If there can be one, an agent that is run for the first
/// time gets places for its settings and login, which would be gone at the end otherwise.
fn planned(config: &Config, quiet: bool) -> Result<(Facts, Plan)> {
    let facts = Facts::gather(config, None)?;
    let plan = Plan::build(config, &facts)?;
    let attempts = config.agent.create_missing_state(&facts);
    if attempts.is_empty() {
        return Ok((facts, plan));
    }
    let mut made = Vec::new();
    for (path, result) in attempts {
        let path = shown(&path.to_string_lossy());
        match result {
            Ok(()) => made.push(path),
            Err(error) => eprintln!("stockade: {path} cannot be made: {error}"),
        }
    }
    if !made.is_empty() && !quiet {
        let made = made.join(" and ");
        eprintln!("stockade: made {made}, where the agent keeps its settings and login");
    }
    // What is missing still stays so.
    let mut config = config.clone();
    config.agent.keeps_state = false;
    let facts = Facts::gather(&config, None)?;
    let plan = Plan::build(&config, &facts)?;
    Ok((facts, plan))
}

/// A session without a log is better than none; that it has none is said.
fn journal(
    loader: &Loader,
    start: &Start<'_>,
    running: &Running,
    happenings: Happenings,
    witness: Option<Witness>,
    in_force: InForce,
) -> Option<Journal> {
    let directory = Directory::of(&loader.places.home);
    let start = &Start {
        layers: running.layers(),
        bubblewrap: Some(running.bubblewrap()),
        ..*start
    };
    directory
        .create(start.id)
        .and_then(|log| Journal::start(log, start, happenings, witness, in_force))
        .inspect_err(|error| {
            let path = directory.path().display();
            eprintln!("stockade: this session is not logged: {path}: {error}");
        })
        .ok()
}

/// Without a network, or with the host's: the wall sees to either. To lay out what is shown
/// it needs authority over mounts, and a thread whose mounts are nobody else's.
fn without_jail(
    launch: Launch,
    loader: &Loader,
    start: &Start<'_>,
) -> Result<(Outcome, Denials, Programs)> {
    let (nothing, happenings) = Events::new();
    let in_force = Arc::new(Mutex::new(start.effective.clone()));
    let _owner = Owner::enter().map_err(|error| refused(&error))?;
    let spawned = thread::spawn(move || launch.spawn()).join();
    let running = spawned.map_err(|_| anyhow!("the thread that builds the sandbox died"))??;
    stockade_sys::confine::keep_capabilities(CapabilitySet::empty())?;
    let journal = journal(loader, start, &running, happenings, None, in_force);
    let outcome = running.supervise()?;
    // So that the log does not wait for more.
    drop(nothing);
    let programs = end_log(journal, &outcome);
    Ok((outcome, Denials::default(), programs))
}

/// Which program was denied something, as far as the log knows.
fn end_log(journal: Option<Journal>, outcome: &Outcome) -> Programs {
    let code = outcome.exit_code();
    let ended = journal.map(|journal| journal.finish(End { code }));
    let ended = ended.unwrap_or_default();
    if let Some(Lost { count, why, .. }) = ended.lost {
        let events = if count == 1 { "event" } else { "events" };
        eprintln!(
            "stockade: {count} {events} of this session could not be logged: {why}; \
             `stockade log` has the others"
        );
    }
    if ended.unfinished {
        eprintln!("stockade: the end of the log is not written: the disk does not answer");
    }
    ended.programs
}

fn in_jail(
    launch: Launch,
    loader: Loader,
    start: &Start<'_>,
) -> Result<(Outcome, Denials, Programs)> {
    let effective = start.effective;
    let policy = effective.policy();
    let settings = Settings {
        ipv6: stockade_gate::host_has_ipv6() || policy.rules.iter().any(names_ipv6),
        host_ports: effective.host_ports(),
    };
    let local = local(effective)?;
    // While there is one thread: a process enters a user namespace as a whole.
    let owner = Owner::enter().map_err(|error| refused(&error))?;
    // The sandbox is built while its network and the gate are. The command waits in it.
    let (building, build) = Building::of(launch)?;
    let plumbed = owner.build(settings, hooks::in_jail(build));
    let (jail, sockets) = plumbed.map_err(|error| refused(&error))?;
    let (events, happenings) = Events::new();
    let gate = Gate::start(hooks::policy(policy), local, sockets, events)?;
    let mut running = building.wait()?;
    // Without it denials are logged without the program.
    let witness = Witness::new(&jail).ok();
    // Nothing is built any more: what only building needed is given up.
    jail.confine().map_err(|error| refused(&error))?;
    stockade_sys::confine::keep_capabilities(CapabilitySet::empty())?;
    // After the command has its own limits: the gate needs two descriptors for each flow.
    stockade_gate::claim_descriptors();
    let in_force = Arc::new(Mutex::new(effective.clone()));
    let known = Arc::clone(&in_force);
    let journal = journal(&loader, start, &running, happenings, witness, known);
    let reload = Reload {
        loader,
        launched: effective.clone(),
        in_force: Arc::clone(&in_force),
        policies: gate.policies(),
    };
    offer_control(start.id, reload.clone());
    running.on_reload(move || {
        if let Err(why) = reload.reload() {
            eprintln!("stockade: the configuration was not reloaded: {why}");
        }
    });
    let outcome = running.supervise()?;
    drop(jail);
    let denials = gate.finish()?;
    let programs = end_log(journal, &outcome);
    let in_force = in_force.lock().unwrap_or_else(PoisonError::into_inner);
    let told = in_force.network.log_denials.value;
    let denials = if told { denials } else { Denials::default() };
    Ok((outcome, denials, programs))
}

/// A sandbox that is being built. Dropped before it stands, it is taken down again: what fails
/// at the same time may be part of the reason, and leave processes behind that nobody ends.
struct Building {
    built: mpsc::Receiver<Result<Running, stockade_wall::Error>>,
    /// Until it stands.
    cancel: Option<Cancel>,
}

impl Building {
    /// What starts to build it on a thread of its own, to be called in the jail.
    fn of(launch: Launch) -> Result<(Self, impl FnOnce() + Send + 'static)> {
        let (done, built) = mpsc::channel();
        let cancel = Some(launch.cancel()?);
        let build = move || {
            thread::spawn(move || {
                // The receiver waits for it.
                let _ = done.send(launch.spawn());
            });
        };
        Ok((Self { built, cancel }, build))
    }

    fn wait(mut self) -> Result<Running> {
        let built = self.built.recv();
        self.cancel = None;
        Ok(built.map_err(|_| anyhow!("the thread that builds the sandbox died"))??)
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
            drop(self.built.recv());
        }
    }
}

fn loader(arguments: &args::Run, command: &CommandLine) -> Result<Loader> {
    let mut loader = here::loader_here()?;
    loader.flags = arguments.settings.flags();
    loader.choice = here::choice(arguments.profile.as_deref(), Some(&command.program));
    Ok(loader)
}

/// Lets other commands of the user find the session. It runs without, too: then it cannot be
/// asked to reload.
fn offer_control(id: &str, reload: Reload) {
    let offered = session::listen(id).and_then(|listener| {
        control::serve(listener, move |request| match request {
            Request::Reload => reload.reload(),
        })
    });
    if let Err(error) = offered {
        eprintln!("stockade: this session cannot be reloaded: {error}");
    }
}

/// What is in force for this command, and what the user has to know about that.
fn effective(loader: &Loader, quiet: bool) -> Result<Effective> {
    let loaded = loader.load()?;
    if let Some(notice) = loaded.workspace_file.notice() {
        eprintln!("stockade: {notice}");
    }
    for idle in here::idle_rules(&loaded.effective) {
        eprintln!("stockade: {idle}");
    }
    let of_agent = |slip: &&Slip| loaded.effective.profile.as_deref() == Some(slip.agent);
    for slip in loaded.slips.iter().filter(of_agent) {
        eprintln!("stockade: {slip}");
    }
    let Network {
        mode,
        allow,
        host_ports,
        publish,
        ..
    } = &loaded.effective.network;
    let allow = allow.iter().map(|rule| &rule.origin);
    let ports = host_ports.iter().map(|port| &port.origin);
    let publish = publish.iter().map(|port| &port.origin);
    // Files may have them for other launches; who types one wants it now.
    let mut typed = allow.chain(ports).chain(publish);
    if mode.value != Mode::Jail
        && !quiet
        && let Some(idle) = typed.find(|origin| origin.file_line().is_none())
    {
        eprintln!(
            "stockade: {idle} counts for nothing in mode \"{}\" ({})",
            mode.value, mode.origin
        );
    }
    if mode.value == Mode::Host {
        eprintln!(
            "stockade: WARNING: NO JAIL: by {}, the command has the network of this machine, \
             with all that is reachable from here",
            mode.origin
        );
    }
    Ok(loaded.effective)
}

fn local(effective: &Effective) -> Result<Local> {
    let mut publish: Vec<(Published, Publish)> = Vec::new();
    for Sourced { value, origin } in &effective.network.publish {
        if publish.iter().all(|(known, _)| known != value) {
            can_listen(*value, origin)?;
            let bound = Publish::bind(value.outside.get(), value.inside.get())
                .map_err(|error| not_published(*value, origin, &error))?;
            publish.push((*value, bound));
        }
    }
    Ok(Local {
        host_ports: effective.host_ports(),
        publish: publish.into_iter().map(|(_, bound)| bound).collect(),
    })
}

/// Inside, no program has the capability that the kernel wants for the low ports, not even root.
fn can_listen(ports: Published, origin: &Origin) -> Result<()> {
    const FIRST_FOR_ALL: u16 = 1024;
    let Published { outside, inside } = ports;
    if inside.get() >= FIRST_FOR_ALL {
        return Ok(());
    }
    let inside_other = inside.get().saturating_add(8000);
    let outside = if outside == inside {
        inside_other
    } else {
        outside.get()
    };
    Err(Refused {
        what: format!(
            "{origin}: nobody can listen at port {inside} inside: it is below {FIRST_FOR_ALL}"
        ),
        fix: format!(
            "have the command listen at another one, as in {}",
            publishing(outside, inside_other, origin)
        ),
    }
    .into())
}

/// Why a port cannot be had here, with one that may be.
fn not_published(ports: Published, origin: &Origin, error: &io::Error) -> anyhow::Error {
    let Published { outside, inside } = ports;
    let (why, other) = match error.kind() {
        io::ErrorKind::PermissionDenied => (
            "ports below 1024 are for root".to_owned(),
            outside.get().saturating_add(8000),
        ),
        io::ErrorKind::AddrInUse => (
            "another program listens there".to_owned(),
            outside.get().checked_add(1).unwrap_or(8000),
        ),
        _ => (error.to_string(), outside.get()),
    };
    let fix = publishing(other, inside.get(), origin);
    Refused {
        what: format!("{origin}: port {outside} of this machine cannot be taken: {why}"),
        fix: format!("another port outside, as in {fix}"),
    }
    .into()
}

fn publishing(outside: u16, inside: u16, origin: &Origin) -> String {
    let ports = if outside == inside {
        inside.to_string()
    } else {
        format!("{outside}:{inside}")
    };
    match origin.file_line() {
        Some(_) => format!("publish = [\"{ports}\"]"),
        None => format!("--publish {ports}"),
    }
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

fn refused(error: &JailError) -> anyhow::Error {
    Refused {
        what: error.to_string(),
        fix: error.fix(),
    }
    .into()
}
