//! From a plan to a sandbox in which the command waits. Read it from top to bottom: it is the
//! order in which things happen, and each step has its reason.

use std::sync::{Arc, Mutex};

use rustix::thread::CapabilitySet;
use stockade_config::{Effective, Mode, Unknown};
use stockade_gate::{EventReceiver, EventSender, Gate, GateHandle, Local, Proxies};
use stockade_jail::{Jail, JailSettings, Owner, Sockets};
use stockade_policy::{Policy, Rule};
use stockade_sys::{confine::keep_capabilities, transparent::Family};
use stockade_wall::{CommandLine, Facts, Launch, Plan, Running};

use crate::{
    attribution::{self, ProgramSearch, SharedSearch},
    command::{Network, SandboxReady},
    error::SessionError,
    journal::InForce,
    plan::{Listing, Planned, SessionRequest},
    publish,
    questions::{self, SessionView},
    record::Recorder,
    sandbox::SandboxUnderway,
};

/// Starts the sandbox's processes, in the network of the thread that calls it.
pub type StartSandbox = Box<dyn FnOnce() + Send>;

impl Planned {
    /// Builds everything around the command, which waits.
    ///
    /// `in_jail` is given what starts the sandbox, and returns what the jail's thread calls.
    /// That is the same for everybody but tests that take this protection away.
    ///
    /// # Errors
    /// If anything that the protection needs is missing. Nothing is left then.
    pub fn launch<Start>(
        self,
        request: SessionRequest,
        in_jail: impl FnOnce(StartSandbox) -> Start,
    ) -> Result<SandboxReady, SessionError>
    where
        Start: FnOnce() + Send + 'static,
    {
        let (owner, jail) = self.prepare(request)?.enter()?;
        match jail {
            Some(plan) => owner.build_jail(plan, in_jail)?.serve()?.ready(),
            None => owner.ready_without_jail(),
        }
    }

    fn prepare(self, request: SessionRequest) -> Result<Prepared, SessionError> {
        let SessionRequest {
            command,
            effective,
            policy,
            proxies,
            listing,
        } = request;
        // Opens what the sandbox needs: the control socket, descriptors. Nothing is on disk.
        let launch = self
            .plan
            .prepare(command.clone(), self.bubblewrap, self.signals)?;
        // Ports of the host are taken with the caller's authority, which user namespace A takes away.
        let jail = match effective.network.mode.value {
            Mode::Jail => Some(JailPlan::of(&effective, policy, proxies)?),
            Mode::None | Mode::Host => None,
        };
        let Self { facts, plan, .. } = self;
        Ok(Prepared {
            launch,
            jail,
            command,
            effective,
            listing: listing.map(|listing| (listing, facts, plan)),
        })
    }
}

/// The network of a session that has one of its own.
#[derive(Debug)]
struct JailPlan {
    settings: JailSettings,
    policy: Policy,
    local: Local,
    proxies: Proxies,
}

impl JailPlan {
    fn of(effective: &Effective, policy: Policy, proxies: Proxies) -> Result<Self, SessionError> {
        Ok(Self {
            settings: JailSettings {
                ipv6: Family::V6.exists()
                    && (stockade_gate::host_has_ipv6() || policy.rules.iter().any(names_ipv6)),
                host_ports: effective.host_ports(),
            },
            local: publish::local(effective)?,
            policy,
            proxies,
        })
    }
}

fn names_ipv6(rule: &Rule) -> bool {
    rule.network()
        .is_some_and(|network| network.addr().is_ipv6())
}

/// Everything that can refuse has been asked. The process still has one thread.
struct Prepared {
    launch: Launch,
    /// None if the wall alone sees to the network: none, or the host's.
    jail: Option<JailPlan>,
    command: CommandLine,
    effective: Effective,
    listing: ToRecord,
}

/// What makes the session known, with what is looked at by.
type ToRecord = Option<(Listing, Facts, Plan)>;

impl Prepared {
    fn enter(self) -> Result<(OwnerOfA, Option<JailPlan>), SessionError> {
        // Before any thread: a process enters a user namespace as a whole. It brings authority over
        // the jail and over mounts, and none over the host. The process also becomes undumpable.
        let owner = Owner::enter()?;
        let owner = OwnerOfA {
            owner,
            launch: self.launch,
            command: self.command,
            effective: self.effective,
            listing: self.listing,
        };
        Ok((owner, self.jail))
    }
}

/// What a session is about, from then on.
#[derive(Debug)]
pub(crate) struct SessionInfo {
    pub(crate) command: CommandLine,
    pub(crate) effective: Effective,
    pub(crate) in_force: InForce,
    pub(crate) recorder: Option<Recorder>,
}

/// The process is in user namespace A. Threads may start.
struct OwnerOfA {
    owner: Owner,
    launch: Launch,
    command: CommandLine,
    effective: Effective,
    listing: ToRecord,
}

impl OwnerOfA {
    fn build_jail<Start>(
        self,
        plan: JailPlan,
        in_jail: impl FnOnce(StartSandbox) -> Start,
    ) -> Result<JailBuilt, SessionError>
    where
        Start: FnOnce() + Send + 'static,
    {
        // The sandbox is laid out at the same time as its network and the gate are built. Its first
        // process starts when the jail's thread calls `start`, in a network that leads nowhere.
        let (sandbox, start) = SandboxUnderway::of(self.launch)?;
        // Returns when every packet is refused, and the sockets for the gate exist.
        let (jail, sockets) = self.owner.build(plan.settings, in_jail(start))?;
        // Its socket, by which it asks about others, is made in the jail.
        let search = self
            .listing
            .as_ref()
            .and_then(|_| ProgramSearch::new(&jail).ok());
        // The network is built, and the last file of the jail's thread read: it keeps the one
        // capability that speaking for others needs.
        jail.confine()?;
        Ok(JailBuilt {
            jail,
            sockets,
            policy: plan.policy,
            local: plan.local,
            proxies: plan.proxies,
            sandbox,
            search: search.map(|search| Arc::new(Mutex::new(search))),
            command: self.command,
            effective: self.effective,
            listing: self.listing,
        })
    }

    /// With no network, or the host's. The sandbox is all there is to build.
    fn ready_without_jail(self) -> Result<SandboxReady, SessionError> {
        let record = |listing| Recorder::start(listing, None);
        let recorder = self.listing.map(record).transpose()?;
        // It needs authority over mounts to lay out what is shown.
        let mut running = self.launch.spawn()?;
        give_up_capabilities()?;
        let in_force = Arc::new(Mutex::new(self.effective.clone()));
        answer_questions(&mut running, recorder.as_ref(), &in_force, None)?;
        let (events, received) = EventSender::new();
        Ok(SandboxReady {
            running,
            network: Network::WithoutJail(events),
            received,
            session: SessionInfo {
                command: self.command,
                effective: self.effective,
                in_force,
                recorder,
            },
        })
    }
}

/// The jail refuses everything. The sandbox is being built in it.
struct JailBuilt {
    jail: Jail,
    sockets: Sockets,
    policy: Policy,
    local: Local,
    proxies: Proxies,
    sandbox: SandboxUnderway,
    search: Option<SharedSearch>,
    command: CommandLine,
    effective: Effective,
    listing: ToRecord,
}

impl JailBuilt {
    fn serve(self) -> Result<GateServing, SessionError> {
        let (events, received) = EventSender::new();
        // Its sockets are those of a jail that is closed, so nothing passes that it does not judge.
        let attribution = self.search.as_ref().map(attribution::attribution);
        let asks = self.effective.network.unknown.value == Unknown::Ask;
        let gate = Gate::start(
            (self.policy, asks),
            self.local,
            self.sockets,
            events,
            attribution,
            self.proxies,
        )?;
        Ok(GateServing {
            network: Network::Jail {
                jail: self.jail,
                gate,
            },
            received,
            sandbox: self.sandbox,
            search: self.search,
            command: self.command,
            effective: self.effective,
            listing: self.listing,
        })
    }
}

/// The gate judges what comes, but nothing is there yet to come.
struct GateServing {
    network: Network,
    received: EventReceiver,
    sandbox: SandboxUnderway,
    search: Option<SharedSearch>,
    command: CommandLine,
    effective: Effective,
    listing: ToRecord,
}

impl GateServing {
    fn ready(self) -> Result<SandboxReady, SessionError> {
        let mut running = self.sandbox.wait()?;
        // While bubblewrap works, this thread looks at the workspace: the command, which could change
        // it, waits.
        let recorder = self
            .listing
            .map(|listing| Recorder::start(listing, self.search))
            .transpose()?;
        give_up_capabilities()?;
        let in_force = Arc::new(Mutex::new(self.effective.clone()));
        let gate = match &self.network {
            Network::Jail { gate, .. } => Some(gate.handle()),
            Network::WithoutJail(_) => None,
        };
        answer_questions(&mut running, recorder.as_ref(), &in_force, gate)?;
        // After the command got the caller's limits: the gate needs two descriptors for each flow.
        stockade_gate::claim_descriptors();
        Ok(SandboxReady {
            running,
            network: self.network,
            received: self.received,
            session: SessionInfo {
                command: self.command,
                effective: self.effective,
                in_force,
                recorder,
            },
        })
    }
}

/// The thread that answers exists before the command does, and has no capability either. A session
/// that leaves no trace answers nothing.
fn answer_questions(
    running: &mut Running,
    recorder: Option<&Recorder>,
    in_force: &InForce,
    gate: Option<GateHandle>,
) -> Result<(), SessionError> {
    match (running.take_questions(), recorder) {
        (Some((listener, sandbox)), Some(recorder)) => {
            let id = recorder.session().to_owned();
            let view = SessionView::new(id, Arc::clone(in_force), gate, recorder.denials());
            questions::serve(listener, sandbox, view).map_err(SessionError::Questions)
        }
        _ => Ok(()),
    }
}

/// Nothing is left to build: the main thread only supervises from here on.
fn give_up_capabilities() -> Result<(), SessionError> {
    keep_capabilities(CapabilitySet::empty()).map_err(SessionError::Capabilities)
}
