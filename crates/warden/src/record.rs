//! What makes a session known to others: its log, its control socket, and the look at what it
//! leaves behind. The session runs without any of them, and says so.

use std::{cell::Cell, io, sync::Arc};

use stockade_config::{Effective, GitSettings};
use stockade_gate::{EventReceiver, Policies};
use stockade_sys::signals::{Signal, SignalReader};
use stockade_wall::{CommandLine, Finding, Live, Running, Watch};

use crate::{
    attribution::SharedSearch,
    control,
    journal::{
        InForce, Journal, JournalEnd, JournalSource, LogDirectory, PendingJournal, SessionEnd,
        SessionStart,
    },
    plan::{Listing, Notice},
    reload::Reloader,
    sessions,
};

/// Records a session that is about to start.
#[derive(Debug)]
pub(crate) struct Recorder {
    listing: Listing,
    journal: io::Result<PendingJournal>,
    /// Without it, denials are logged without the program.
    pub(crate) search: Option<SharedSearch>,
}

impl Recorder {
    /// Starts the thread that will write the log. It exists before the command does, which could
    /// take the last process that the user may have.
    pub(crate) fn start(listing: Listing) -> Self {
        let directory = LogDirectory::of(&listing.loader.places.home);
        Self {
            journal: PendingJournal::start(directory, &listing.id),
            search: None,
            listing,
        }
    }

    /// Has the session reload when another command of the user asks for it, or a SIGHUP.
    pub(crate) fn offer_reload(
        &self,
        running: &mut Running,
        policies: Policies,
        launched: &Effective,
        in_force: &InForce,
    ) {
        let notify = self.listing.notify;
        let reloader = Reloader {
            loader: self.listing.loader.clone(),
            launched: launched.clone(),
            in_force: Arc::clone(in_force),
            policies,
        };
        let by_signal = reloader.clone();
        running.on_reload(move || {
            if let Err(why) = by_signal.reload() {
                notify(Notice::ReloadRefused(why));
            }
        });
        let offered = sessions::listen(&self.listing.id)
            .and_then(|listener| control::serve(listener, move || reloader.reload()));
        if let Err(error) = offered {
            notify(Notice::NotReloadable(error));
        }
    }

    /// Writes the first line of the log, and begins to look at what the session changes.
    pub(crate) fn begin(
        self,
        command: &CommandLine,
        running: &Running,
        received: EventReceiver,
        in_force: &InForce,
        launched: &Effective,
    ) -> Recorded {
        let Listing {
            id,
            loader,
            workspace,
            watch,
            notify,
        } = self.listing;
        let start = SessionStart {
            id: &id,
            workspace: &workspace,
            command,
            effective: launched,
            layers: running.layers(),
            bubblewrap: running.bubblewrap(),
        };
        let source = JournalSource {
            events: received,
            search: self.search,
            in_force: Arc::clone(in_force),
        };
        let journal = self
            .journal
            .and_then(|journal| journal.begin(&start, source))
            .map_err(|error| {
                let directory = LogDirectory::of(&loader.places.home).path().to_owned();
                notify(Notice::NotLogged { directory, error });
            });
        let watch = Arc::new(watch);
        let live = match launched.git.settings.value {
            GitSettings::Tell => None,
            GitSettings::Defuse => Live::begin(Arc::clone(&watch))
                .map_err(|error| notify(Notice::WatchedAtEndOnly(error)))
                .ok(),
        };
        Recorded {
            journal: journal.ok(),
            watch,
            live,
        }
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
    /// Looks for what the session left behind, and writes the last line.
    pub(crate) fn end(self, code: u8) -> (Vec<Finding>, JournalEnd) {
        let findings = left_behind(&self.watch, self.live);
        let end = SessionEnd {
            code,
            findings: findings.clone(),
        };
        let journal = self.journal.map(|journal| journal.finish(end));
        (findings, journal.unwrap_or_default())
    }
}

/// What the session leaves behind. A signal that comes now ends the search for it.
fn left_behind(watch: &Watch, live: Option<Live>) -> Vec<Finding> {
    let signals = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
    let reader = SignalReader::new(signals.into_iter().collect()).ok();
    let came = || {
        reader
            .as_ref()
            .is_some_and(|reader| matches!(reader.read(), Ok(Some(_))))
    };
    // Those that were meant for the command have done their work.
    while came() {}
    let is_interrupted = Cell::new(false);
    watch.end(live, &|| {
        is_interrupted.set(is_interrupted.get() || came());
        is_interrupted.get()
    })
}
