//! What makes a session known to others: its log, its control socket, and the look at what it
//! leaves behind. The session runs without any of them, and says so.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use stockade_config::{Effective, Unknown};
use stockade_gate::{Attention, EventReceiver, GateHandle};
use stockade_wall::{CommandLine, Facts, Finding, Live, Plan, Running, Watch};

use crate::{
    attribution::SharedSearch,
    control,
    interruption::Interruption,
    journal::{
        InForce, Journal, JournalEnd, JournalSource, LogDirectory, PendingJournal, SessionEnd,
        SessionStart,
    },
    live::{LiveSession, Prompts, SharedLive},
    plan::{Listing, Notice},
    questions::SharedDenials,
    reload::Reloader,
    sessions,
};

/// Records a session that is about to start.
#[derive(Debug)]
pub(crate) struct Recorder {
    listing: Listing,
    workspace: PathBuf,
    /// Has looked at the workspace before the session.
    watch: Watch,
    journal: io::Result<PendingJournal>,
    /// Without it, denials are logged without the program.
    search: Option<SharedSearch>,
    /// What others see of it while it runs.
    live: SharedLive,
    prompts: Option<Prompts>,
    attention: Option<Arc<Attention>>,
    denials: SharedDenials,
}

impl Recorder {
    /// Starts the thread that will write the log. It exists before the command does, which could
    /// take the last process that the user may have. Then looks at the workspace.
    pub(crate) fn start(
        (listing, facts, plan): (Listing, Facts, Plan),
        search: Option<SharedSearch>,
    ) -> Result<Self, stockade_wall::Error> {
        let directory = LogDirectory::of(&listing.loader.places.home);
        let journal = PendingJournal::start(directory, &listing.id);
        let keeping = Some(listing.keeping.clone());
        Ok(Self {
            watch: Watch::begin(&listing.config, &facts, &plan, keeping)?,
            journal,
            search,
            live: SharedLive::default(),
            prompts: None,
            attention: None,
            denials: SharedDenials::default(),
            listing,
            workspace: facts.workspace,
        })
    }

    pub(crate) fn session(&self) -> &str {
        &self.listing.id
    }

    /// What is denied in the session, for programs inside.
    pub(crate) fn denials(&self) -> SharedDenials {
        self.denials.clone()
    }

    /// What was found before the session already.
    pub(crate) fn begun(&self) -> &[Finding] {
        self.watch.begun()
    }

    /// Has the session reload when another command of the user asks for it, or a SIGHUP; and has it
    /// show itself, and ask.
    pub(crate) fn offer_control(
        &mut self,
        running: &mut Running,
        command: &CommandLine,
        gate: GateHandle,
        launched: &Effective,
        in_force: &InForce,
    ) {
        let notify = self.listing.notify;
        let reloader = Reloader {
            loader: self.listing.loader.clone(),
            launched: launched.clone(),
            in_force: Arc::clone(in_force),
            gate,
            answered: Arc::default(),
            changing: Arc::default(),
        };
        let attention = Arc::clone(&reloader.gate.attention);
        self.attention = Some(Arc::clone(&attention));
        let by_signal = reloader.clone();
        running.on_reload(move || {
            if let Err(why) = by_signal.reload() {
                notify(Notice::ReloadRefused(why));
            }
        });
        let live = self.live.clone();
        let id = &self.listing.id;
        let session = LiveSession::new(id, &self.workspace, command, reloader, live);
        let session = Arc::new(session);
        let environment = &self.listing.loader.environment;
        // Without it, the user cannot be reached, and what would be asked is denied.
        self.prompts = Prompts::start(Arc::clone(&session), environment).ok();
        let offered = sessions::listen(id).and_then(|listener| control::serve(listener, session));
        if let Err(error) = offered {
            notify(Notice::NotReloadable(error));
        } else if launched.network.unknown.value == Unknown::Ask {
            wait_for_watchers(id, &attention);
        }
    }

    /// Writes the first line of the log, and begins to look at what the session changes.
    pub(crate) fn begin(
        self,
        command: &CommandLine,
        running: &mut Running,
        received: EventReceiver,
        in_force: &InForce,
        launched: &Effective,
    ) -> Recorded {
        let Listing {
            id, loader, notify, ..
        } = self.listing;
        let start = SessionStart {
            id: &id,
            workspace: &self.workspace,
            command,
            effective: launched,
            layers: running.layers(),
            bubblewrap: running.bubblewrap(),
        };
        let source = JournalSource {
            events: received,
            search: self.search,
            in_force: Arc::clone(in_force),
            live: self.live,
            prompts: self.prompts,
            denials: self.denials,
        };
        let directory = || LogDirectory::of(&loader.places.home).path().to_owned();
        let begun = self
            .journal
            .and_then(|journal| journal.begin(&start, source));
        if let Ok((_, false)) = begun {
            notify(Notice::NoRoom(directory()));
        }
        if let (Ok(_), Some(attention)) = (&begun, self.attention) {
            attention.is_recorded.store(true, Ordering::Relaxed);
        }
        let journal = begun.map(|(journal, _)| journal).map_err(|error| {
            let directory = directory();
            notify(Notice::NotLogged { directory, error });
        });
        let watch = Arc::new(self.watch);
        let found = journal.as_ref().ok().map(Journal::findings);
        let tell = move |finding| {
            if let Some(found) = &found {
                found(finding);
            }
        };
        let live = Live::begin(Arc::clone(&watch), tell)
            .inspect(|live| running.on_alarm(live.alarm()))
            .map_err(|error| notify(Notice::WatchedAtEndOnly(error)))
            .ok();
        // Nobody looks at them while the session is suspended.
        let suspended = Arc::clone(&watch);
        let session = id.clone();
        running.on_suspend(move |stop| {
            let tell = |findings: &[Finding]| {
                let (id, findings) = (session.clone(), findings.to_vec());
                notify(Notice::Suspended { id, findings });
            };
            suspended.pause(tell, stop);
        });
        Recorded {
            journal: journal.ok(),
            watch,
            live,
        }
    }
}

/// Somebody who watches is there before the command asks something, or is too slow.
fn wait_for_watchers(id: &str, attention: &Attention) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let end = Instant::now() + PATIENCE;
    let is_told = sessions::tell_watchers(id).unwrap_or_default();
    while is_told && attention.watchers.load(Ordering::Relaxed) == 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(2));
    }
}

/// A session that is being recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    journal: Option<Journal>,
    watch: Arc<Watch>,
    live: Option<Live>,
}

impl Recorded {
    /// What the session leaves behind. A signal that comes now ends the search for it.
    pub(crate) fn left_behind(&mut self) -> Vec<Finding> {
        let interruption = Interruption::begin();
        self.watch
            .end(self.live.take(), &|| interruption.is_there())
    }

    /// Writes the last line.
    pub(crate) fn end(self, code: u8, findings: Vec<Finding>) -> JournalEnd {
        let end = SessionEnd { code, findings };
        let journal = self.journal.map(|journal| journal.finish(end));
        journal.unwrap_or_default()
    }
}
