//! What is known of a session while it runs. The thread that writes the log keeps it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Instant, SystemTime},
};

use stockade_gate::{Ruling, Subject};
use stockade_policy::{Flow, Hostname, Rule};

use super::{HeldQuestion, LiveCounts, LiveFlow, MOST_FLOWS, QuestionKind};
use crate::{
    attribution::Process,
    journal::{Opened, let_pass_by},
};

/// Flows whose beginning is remembered. The ends of some may be lost.
const MOST_OPEN: usize = 1 << 16;

/// Names of a flow that are shown: whoever owns a domain can give one address very many.
const MOST_NAMES: usize = 8;

/// Shared with those who show it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedLive(Arc<Mutex<LiveState>>);

#[derive(Debug, Default)]
pub(crate) struct LiveState {
    flows: BTreeMap<u64, OpenFlow>,
    /// The program of the last flow: mostly that of the next one, too.
    last: Option<Arc<Process>>,
    pub(crate) opened: u64,
    pub(crate) denied: u64,
    pub(crate) questions: BTreeMap<u64, OpenQuestion>,
    /// Nothing is asked until then.
    pub(crate) paused: Option<SystemTime>,
}

#[derive(Debug)]
pub(crate) struct OpenFlow {
    pub(crate) opened: Opened,
    process: Option<Arc<Process>>,
}

/// Something that waits for an answer.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) subject: Subject,
    pub(crate) ruling: Ruling,
    pub(crate) rule: Rule,
    pub(crate) names: Vec<Hostname>,
    pub(crate) process: Option<Process>,
    pub(crate) held: usize,
    pub(crate) since: Instant,
    pub(crate) until: SystemTime,
}

impl SharedLive {
    pub(crate) fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveState {
    pub(crate) fn open(&mut self, opened: Opened, process: Option<Process>) {
        self.opened += 1;
        if self.flows.len() >= MOST_OPEN {
            return;
        }
        let process = process.map(|process| match &self.last {
            Some(last) if **last == process => Arc::clone(last),
            _ => Arc::clone(self.last.insert(Arc::new(process))),
        });
        self.flows.insert(opened.id, OpenFlow { opened, process });
    }

    pub(crate) fn close(&mut self, id: u64) -> Option<Opened> {
        self.flows.remove(&id).map(|flow| flow.opened)
    }

    pub(crate) fn counts(&self) -> LiveCounts {
        LiveCounts {
            open: self.flows.len(),
            opened: self.opened,
            denied: self.denied,
        }
    }

    /// The newest first, without what they have moved.
    pub(crate) fn flows(&self) -> Vec<LiveFlow> {
        let newest = self.flows.values().rev().take(MOST_FLOWS);
        newest.map(OpenFlow::live).collect()
    }

    /// The oldest first.
    pub(crate) fn questions(&self) -> Vec<HeldQuestion> {
        let questions = self.questions.iter();
        questions.map(|(id, it)| it.live(*id)).collect()
    }
}

/// The numbers of flows.
pub(crate) fn numbers(flows: &[LiveFlow]) -> HashSet<u64> {
    flows.iter().map(|flow| flow.id).collect()
}

impl OpenFlow {
    fn live(&self) -> LiveFlow {
        let Opened {
            when,
            id,
            flow,
            names,
            grounds,
            at,
        } = &self.opened;
        let device = grounds.device();
        let others = names.iter().filter(|name| Some(*name) != device);
        LiveFlow {
            id: *id,
            to: flow.to_string(),
            protocol: flow.protocol().to_string(),
            names: device
                .into_iter()
                .chain(others)
                .take(MOST_NAMES)
                .map(Hostname::to_string)
                .collect(),
            rule: let_pass_by(grounds),
            at: at.clone(),
            sent: 0,
            received: 0,
            age: when.elapsed().unwrap_or_default().as_secs_f64(),
            process: self.process.as_deref().cloned(),
        }
    }
}

impl OpenQuestion {
    pub(crate) fn live(&self, id: u64) -> HeldQuestion {
        let flow = match &self.subject {
            Subject::Flow(flow) => Some(flow),
            _ => None,
        };
        let left = self.until.duration_since(SystemTime::now());
        HeldQuestion {
            id,
            kind: match flow {
                Some(_) => QuestionKind::Flow,
                None => QuestionKind::Name,
            },
            target: match &self.subject {
                Subject::Name(name) => name.clone(),
                subject => subject.to_string(),
            },
            protocol: flow.map(|flow| flow.protocol().to_string()),
            port: flow.and_then(Flow::port).map(Into::into),
            address: flow.map(Flow::destination),
            names: self.names.iter().map(Hostname::to_string).collect(),
            unicode: self.names.iter().filter_map(Hostname::unicode).collect(),
            process: self.process.clone(),
            rule: self.rule.to_string(),
            why: self.ruling.to_string(),
            held: self.held,
            waiting: self.since.elapsed().as_secs(),
            left: left.unwrap_or_default().as_secs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use stockade_gate::Grounds;
    use stockade_policy::{Evidence, Flow, Policy, Route, Rule, decide};

    use super::*;

    #[test]
    fn the_name_of_a_device_comes_before_its_others() {
        let [device, other] = ["pmac", "stage.lab.example"].map(|it| it.parse().expect("a name"));
        let rule = Rule::parse_device(&device, "tcp://172.23.1.7:1025").expect("a rule");
        let policy = Policy {
            rules: [rule].into_iter().collect(),
            ..Policy::default()
        };
        let flow = Flow::tcp("172.23.1.7:1025".parse().expect("an address")).expect("a flow");
        let evidence = Evidence {
            route: Route::Default,
            own: false,
            names: &[],
        };
        let verdict = decide(&policy, &flow, &evidence);
        assert!(verdict.is_allowed(), "{verdict}");
        let opened = Opened {
            when: SystemTime::now(),
            id: 1,
            flow,
            names: vec![other, device],
            grounds: Grounds::Policy(Box::new(verdict)),
            at: None,
        };
        let open = OpenFlow {
            opened,
            process: None,
        };
        assert_eq!(open.live().names, ["pmac", "stage.lab.example"]);
        let mut many = open;
        let name = |number: u32| format!("n{number}.example").parse().expect("a name");
        many.opened.names.extend((0..32).map(name));
        assert_eq!(many.live().names.len(), MOST_NAMES);
    }
}
