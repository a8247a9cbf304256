//! A command that waits, runs and ends.

use std::sync::PoisonError;

use stockade_gate::{Denials, EventReceiver, EventSender, Gate};
use stockade_jail::Jail;
use stockade_wall::{
    Discarded, Error, FAILED, Finding, Layer, LeftModes, Outcome, Running, Supervised,
};

use crate::{
    error::SessionError,
    journal::JournalEnd,
    launch::SessionInfo,
    record::{Recorded, Recorder},
};

/// All of it is built, and the warden has given up its capabilities. The command waits. Dropped, it
/// never runs.
#[derive(Debug)]
pub struct SandboxReady {
    pub(crate) running: Running,
    pub(crate) network: Network,
    pub(crate) received: EventReceiver,
    pub(crate) session: SessionInfo,
}

/// What the command has of a network.
#[derive(Debug)]
pub(crate) enum Network {
    Jail {
        jail: Jail,
        gate: Gate,
    },
    /// No event comes, but the log waits for the end of them.
    WithoutJail(EventSender),
}

/// What became of a session.
#[derive(Debug)]
pub struct Ended {
    /// What became of the command. An error if the sandbox or the gate was lost.
    pub outcome: Result<Outcome, SessionError>,
    /// What the command wrote and did not reach its file or its reader.
    pub unwritten: Vec<Error>,
    /// The exit code: the command's, unless something was lost that Stockade should have kept.
    pub code: u8,
    /// What was denied, unless the configuration keeps quiet about that.
    pub denials: Denials,
    /// What it left behind that runs outside, or would have.
    pub findings: Vec<Finding>,
    /// What it wrote to its private home, and is gone.
    pub discarded: Discarded,
    pub journal: JournalEnd,
    /// To be put back when all is said.
    pub modes: LeftModes,
}

impl SandboxReady {
    /// Which protections this machine and the configuration gave.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        self.running.layers()
    }

    /// What was found in the workspace before the session.
    #[must_use]
    pub fn begun(&self) -> &[Finding] {
        let recorder = self.session.recorder.as_ref();
        recorder.map(Recorder::begun).unwrap_or_default()
    }

    /// Starts the command, and waits for its end.
    #[must_use]
    pub fn run(self) -> Ended {
        let Self {
            mut running,
            network,
            received,
            session,
        } = self;
        let SessionInfo {
            command,
            effective,
            in_force,
            recorder,
        } = session;
        // Before the command runs, which could take the last descriptor that the user may have.
        let mut recorded = recorder.map(|mut recorder| {
            if let Network::Jail { gate, .. } = &network {
                let gate = gate.handle();
                recorder.offer_control(&mut running, &command, gate, &effective, &in_force);
            }
            recorder.begin(&command, &mut running, received, &in_force, &effective)
        });

        let home = running.take_home();
        let _housekeeping = running.tidy_caches();
        // All of it is built and recorded: the command starts.
        let Supervised {
            outcome,
            unwritten,
            modes,
        } = running.supervise();

        let mut look = || recorded.as_mut().map(Recorded::left_behind);
        let (denials, findings, _jail) = match network {
            Network::Jail { jail, gate } => {
                // Its thread ends meanwhile. It is waited for last, when `_jail` is dropped.
                jail.end();
                let (denials, findings) = gate.finish(look);
                (denials, findings, Some(jail))
            }
            Network::WithoutJail(events) => {
                // So that the log does not wait for more.
                drop(events);
                (Ok(Denials::default()), look(), None)
            }
        };
        let findings = findings.unwrap_or_default();
        // A program inside can make the sandbox fail, which must not hide what it tried.
        let outcome = outcome.map_err(Into::into);
        let (outcome, denials) = match denials {
            Ok(denials) => (outcome, denials),
            Err(error) => (outcome.and_then(|_| Err(error.into())), Denials::default()),
        };
        // A reader that takes nothing is no failure of the command's, nor of ours.
        let is_incomplete = unwritten
            .iter()
            .any(|error| matches!(error, Error::Unwritten { .. }));
        let code = match &outcome {
            Ok(outcome) if !is_incomplete => outcome.exit_code(),
            _ => FAILED,
        };
        let journal = recorded.map(|recorded| recorded.end(code, findings.clone()));
        let discarded = home.map(|home| home.discarded()).unwrap_or_default();
        let in_force = in_force.lock().unwrap_or_else(PoisonError::into_inner);
        Ended {
            outcome,
            unwritten,
            code,
            denials: match in_force.network.log_denials.value {
                true => denials,
                false => Denials::default(),
            },
            findings,
            discarded,
            journal: journal.unwrap_or_default(),
            modes,
        }
    }
}
