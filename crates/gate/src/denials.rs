//! What was denied in a session, folded by destination.

use std::{cmp::Reverse, collections::HashMap};

use stockade_policy::{Flow, Verdict};

/// A flow that was denied, and how often.
#[derive(Debug, Clone)]
pub struct Denial {
    pub flow: Flow,
    pub verdict: Verdict,
    pub count: u64,
}

/// All denials of a session. A program inside can make any number of them, so only so
/// many flows are remembered; the rest are counted.
#[derive(Debug, Default)]
pub struct Denials {
    known: HashMap<Flow, (Verdict, u64)>,
    others: u64,
}

impl Denials {
    const REMEMBERED: usize = 256;

    pub(crate) fn record(&mut self, flow: Flow, verdict: Verdict) {
        if let Some((_, count)) = self.known.get_mut(&flow) {
            *count += 1;
        } else if self.known.len() < Self::REMEMBERED {
            self.known.insert(flow, (verdict, 1));
        } else {
            self.others += 1;
        }
    }

    /// The most frequent first.
    #[must_use]
    pub fn by_count(&self) -> Vec<Denial> {
        let mut all: Vec<_> = self
            .known
            .iter()
            .map(|(&flow, (verdict, count))| Denial {
                flow,
                verdict: verdict.clone(),
                count: *count,
            })
            .collect();
        all.sort_by_key(|denial| (Reverse(denial.count), denial.flow.to_string()));
        all
    }

    /// Denied attempts of flows beyond those remembered.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }
}
