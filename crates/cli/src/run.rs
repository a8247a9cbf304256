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
use stockade_config::{Effective, GitSettings, Loader, Mode, Network, Slip, shown};
use stockade_gate::{Denials, Events, Gate, Happenings, Subject};
use stockade_jail::{Error as JailError, Owner, Settings};
use stockade_policy::Rule;
use stockade_wall::{
    Bubblewrap, Cancel, CommandLine, Config, FAILED, Facts, Finding, Launch, Live, Outcome, Plan,
    Protection, Running, Signals, State, Watch,
};

use crate::{
    accept, args,
    control::{self, Request},
    exit::Refused,
    here, hooks,
    interruption::Interruption,
    journal::{Directory, End, InForce, Journal, Lost, Opening, Process, Start, Witness},
    publish, receipt,
    reload::Reload,
    screen, session, walling,
};

/// The order is load-bearing: what can refuse comes first, the jail is closed before the
/// gate serves it, and the command starts last. Any error on the way ends the process, and
/// with it all that was built.
pub(crate) fn run(arguments: &args::Run) -> Result<ExitCode> {
    let command = command_line(&arguments.command)?;
    let profile = arguments.profile.as_deref();
    let loader = here::loader_for(&arguments.settings, profile, Some(&command.program))?;
    let effective = effective(&loader, arguments.quiet)?;

    // Before there are threads: each inherits what is blocked.
    let signals = Signals::block()?;
    let bubblewrap = Bubblewrap::find()?;
    let config = walling::config(&effective, &loader.places, &command.program);
    // What is there can be hidden. If it cannot be made, that is said when the log begins.
    let _ = Directory::of(&loader.places.home).make();
    let (facts, plan) = planned(&config, arguments.quiet)?;
    let id = session::identifier();
    let keeping = accept::keeping(&loader.places, &id);
    let watch = Arc::new(Watch::begin(&config, &facts, &plan, Some(keeping))?);
    if !arguments.quiet {
        receipt::tell_findings(watch.begun(), &id);
    }
    let plan = hooks::plan(plan);
    for given in plan.given.iter().filter(|_| !arguments.quiet) {
        eprintln!("stockade: WARNING: {given}");
    }
    for note in plan.notes.iter().filter(|_| !arguments.quiet) {
        eprintln!("stockade: {note}");
    }
    let launch = plan.prepare(command, bubblewrap, signals)?;

    let session = Session {
        loader: &loader,
        start: Start {
            id: &id,
            workspace: &facts.workspace,
            command: &arguments.command,
            effective: &effective,
            layers: &[],
            bubblewrap: None,
        },
        watch: &watch,
        quiet: arguments.quiet,
    };
    let Told {
        outcome,
        denials,
        programs,
        findings,
    } = match effective.network.mode.value {
        Mode::Jail => session.in_jail(launch)?,
        Mode::None | Mode::Host => session.without_jail(launch)?,
    };
    if let Some(complaint) = outcome.complaint() {
        eprintln!("stockade: {complaint}");
    }
    if !arguments.quiet {
        receipt::tell_findings(&findings, &id);
        receipt::tell_limit(outcome.exit_code(), &effective.limits);
        receipt::tell_denials(&denials, &programs, &loader);
    }
    Ok(outcome.exit_code().into())
}

/// What a session is about.
struct Session<'a> {
    loader: &'a Loader,
    start: Start<'a>,
    watch: &'a Arc<Watch>,
    quiet: bool,
}

/// What there is to tell when it has ended.
struct Told {
    outcome: Outcome,
    denials: Denials,
    /// Which program was denied something, as far as the log knows.
    programs: HashMap<Subject, Process>,
    /// What it left behind.
    findings: Vec<Finding>,
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

impl Session<'_> {
    /// Without a network, or with the host's: the wall sees to either. To lay out what is shown
    /// it needs authority over mounts.
    fn without_jail(&self, launch: Launch) -> Result<Told> {
        let (nothing, happenings) = Events::new();
        let in_force = Arc::new(Mutex::new(self.start.effective.clone()));
        let _owner = Owner::enter().map_err(|error| refused(&error))?;
        let log = self.open_log();
        let mut running = launch.spawn()?;
        stockade_sys::confine::keep_capabilities(CapabilitySet::empty())?;
        self.tell_missing(&running);
        let journal = self.begin_log(log, &running, happenings, None, in_force);
        let live = self.begin_live(&mut running);
        let outcome = running.supervise();
        // So that the log does not wait for more.
        drop(nothing);
        match outcome {
            Ok(outcome) => Ok(self.ended(journal, live, outcome, Denials::default())),
            Err(error) => Err(self.failed(journal, live, error.into())),
        }
    }

    fn in_jail(&self, launch: Launch) -> Result<Told> {
        let effective = self.start.effective;
        let policy = effective.policy();
        let settings = Settings {
            ipv6: stockade_gate::host_has_ipv6() || policy.rules.iter().any(names_ipv6),
            host_ports: effective.host_ports(),
        };
        let local = publish::local(effective)?;
        // While there is one thread: a process enters a user namespace as a whole.
        let owner = Owner::enter().map_err(|error| refused(&error))?;
        // The sandbox is built while its network and the gate are. The command waits in it.
        let (building, build) = Building::of(launch)?;
        let log = self.open_log();
        let plumbed = owner.build(settings, hooks::in_jail(build));
        let (jail, sockets) = plumbed.map_err(|error| refused(&error))?;
        // Without it denials are logged without the program.
        let witness = Witness::new(&jail).ok();
        // The network is built: what only that needed is given up.
        jail.confine().map_err(|error| refused(&error))?;
        let (events, happenings) = Events::new();
        let gate = Gate::start(hooks::policy(policy), local, sockets, events)?;
        let mut running = building.wait()?;
        stockade_sys::confine::keep_capabilities(CapabilitySet::empty())?;
        // After the command has its own limits: the gate needs two descriptors for each flow.
        stockade_gate::claim_descriptors();
        self.tell_missing(&running);
        let in_force = Arc::new(Mutex::new(effective.clone()));
        let reload = Reload {
            loader: self.loader.clone(),
            launched: effective.clone(),
            in_force: Arc::clone(&in_force),
            policies: gate.policies(),
        };
        offer_control(self.start.id, reload.clone());
        running.on_reload(move || {
            if let Err(why) = reload.reload() {
                eprintln!("stockade: the configuration was not reloaded: {why}");
            }
        });
        let known = Arc::clone(&in_force);
        let journal = self.begin_log(log, &running, happenings, witness, known);
        let live = self.begin_live(&mut running);
        // All of it stands: the command starts.
        let outcome = running.supervise();
        jail.end();
        let denials = gate.finish();
        let (outcome, denials) = match (outcome, denials) {
            (Ok(outcome), Ok(denials)) => (outcome, denials),
            (Err(error), _) => return Err(self.failed(journal, live, error.into())),
            (_, Err(error)) => return Err(self.failed(journal, live, error.into())),
        };
        let in_force = in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let told = in_force.network.log_denials.value;
        let denials = if told { denials } else { Denials::default() };
        drop(in_force);
        Ok(self.ended(journal, live, outcome, denials))
    }

    /// Says what the configuration asks for and this machine does not have.
    fn tell_missing(&self, running: &Running) {
        let limits = &self.start.effective.limits;
        let hardening = &self.start.effective.agent.hardening;
        for layer in running.layers().iter().filter(|_| !self.quiet) {
            if layer.protection == Protection::Scratch && matches!(layer.state, State::Absent(_)) {
                eprintln!(
                    "stockade: ~/.cache and ~/.local/share are empty inside: the kernel cannot \
                     overlay them here (see `stockade doctor`)"
                );
            }
            let asked = match layer.protection {
                Protection::Memory => limits.memory.as_ref().map(|limit| &limit.origin),
                Protection::Files => Some(&hardening.origin),
                _ => None,
            };
            if let (State::Absent(why), Some(origin)) = (layer.state, asked) {
                let name = layer.protection.name();
                eprintln!("stockade: WARNING: not to be had here ({origin}): {name}: {why}");
            }
        }
    }

    fn open_log(&self) -> io::Result<Opening> {
        Opening::start(Directory::of(&self.loader.places.home), self.start.id)
    }

    /// A session without a log is better than none; that it has none is said.
    fn begin_log(
        &self,
        log: io::Result<Opening>,
        running: &Running,
        happenings: Happenings,
        witness: Option<Witness>,
        in_force: InForce,
    ) -> Option<Journal> {
        let start = &Start {
            layers: running.layers(),
            bubblewrap: Some(running.bubblewrap()),
            ..self.start
        };
        log.and_then(|log| log.begin(start, happenings, witness, in_force))
            .inspect_err(|error| {
                let directory = Directory::of(&self.loader.places.home);
                let path = directory.path().display();
                eprintln!("stockade: this session is not logged: {path}: {error}");
            })
            .ok()
    }

    /// Has the traces of the session looked at while it runs. Its end looks in any case.
    fn begin_live(&self, running: &mut Running) -> Option<Live> {
        if self.start.effective.git.settings.value == GitSettings::Tell {
            return None;
        }
        Live::begin(Arc::clone(self.watch))
            .inspect(|live| running.on_alarm(live.alarm()))
            .inspect_err(|error| {
                eprintln!(
                    "stockade: settings of git are looked at only when this session ends: {error}"
                );
            })
            .ok()
    }

    /// What the session leaves behind. A signal that comes now ends the search for it.
    fn left_behind(&self, live: Option<Live>) -> Vec<Finding> {
        let interruption = Interruption::begin();
        self.watch.end(live, &|| interruption.is_there())
    }

    /// The session was lost. What it left behind is told all the same.
    fn failed(
        &self,
        journal: Option<Journal>,
        live: Option<Live>,
        error: anyhow::Error,
    ) -> anyhow::Error {
        let findings = self.left_behind(live);
        if !self.quiet {
            receipt::tell_findings(&findings, self.start.id);
        }
        if let Some(journal) = journal {
            let code = FAILED;
            journal.finish(End { code, findings });
        }
        error
    }

    /// Ends the log, and gathers what there is to tell.
    fn ended(
        &self,
        journal: Option<Journal>,
        live: Option<Live>,
        outcome: Outcome,
        denials: Denials,
    ) -> Told {
        let findings = self.left_behind(live);
        let end = End {
            code: outcome.exit_code(),
            findings: findings.clone(),
        };
        let ended = journal.map(|journal| journal.finish(end));
        let ended = ended.unwrap_or_default();
        if let Some(Lost { count, why, .. }) = ended.lost {
            let events = screen::counted(count, "event");
            eprintln!(
                "stockade: {events} of this session could not be logged: {why}; \
                 `stockade log` has the others"
            );
        }
        if ended.missed > 0 && !self.quiet {
            let events = screen::counted(ended.missed, "event");
            eprintln!(
                "stockade: {events} of this session came too fast to be written down one by one"
            );
        }
        if ended.unfinished {
            eprintln!("stockade: the end of the log is not written: the disk does not answer");
        }
        Told {
            outcome,
            denials,
            programs: ended.programs,
            findings,
        }
    }
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
            let thread = thread::Builder::new().name("stage".to_owned());
            let thread = thread.spawn(move || {
                // The receiver waits for it.
                let _ = done.send(launch.spawn_here());
            });
            // Without a thread there is no sender either, and the receiver knows.
            drop(thread);
        };
        Ok((Self { built, cancel }, build))
    }

    fn wait(mut self) -> Result<Running> {
        let built = self.built.recv();
        self.cancel = None;
        Ok(built.map_err(|_| {
            anyhow!("the thread that builds the sandbox died or could not be started")
        })??)
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
    let loaded = here::load(loader)?;
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
