//! A bound on what can be said in the names themselves.
//!
//! A rule for `*.example.org` lets a program ask for any name below it, and the name reaches
//! whoever answers for that domain: a way out for data, of some hundred bytes at a time. Real
//! names are short and come again. So what is long in a name that was not asked for lately is
//! taken from a budget that refills slowly.

use std::{
    cell::RefCell,
    collections::HashSet,
    time::{Duration, Instant},
};

use stockade_wire::dns::{Below, Name};

/// So much of a name is free.
const FREE: usize = 24;
/// Bytes at once, and how long each takes to come back.
const BUDGET: usize = 2048;
const REFILL: Duration = Duration::from_millis(100);
/// How many names are known not to cost again.
const REMEMBERED: usize = 1024;

#[derive(Debug)]
pub(crate) struct Budget(RefCell<State>);

#[derive(Debug)]
struct State {
    left: usize,
    since: Instant,
    paid: HashSet<Name>,
}

impl Default for Budget {
    fn default() -> Self {
        Self(RefCell::new(State {
            left: BUDGET,
            since: Instant::now(),
            paid: HashSet::new(),
        }))
    }
}

impl Budget {
    /// Whether a name may be asked for that says so much below the one that a rule has.
    pub(crate) fn spend(&self, name: &Name, below: Below, now: Instant) -> bool {
        let cost = below.length.saturating_sub(FREE);
        let mut state = self.0.borrow_mut();
        if cost == 0 || state.paid.contains(name) {
            return true;
        }
        let passed = now.saturating_duration_since(state.since);
        let refilled = passed.as_millis() / REFILL.as_millis();
        let refilled = usize::try_from(refilled).unwrap_or(usize::MAX);
        state.left = state.left.saturating_add(refilled).min(BUDGET);
        if refilled > 0 {
            state.since = now;
        }
        if state.left < cost {
            return false;
        }
        state.left -= cost;
        if state.paid.len() >= REMEMBERED {
            state.paid.clear();
        }
        state.paid.insert(name.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(budget: &Budget, label: &str, now: Instant) -> bool {
        let name = Name::from_text(&format!("{label}.example.org")).expect("a name");
        let suffix = Name::from_text("example.org").expect("a name");
        budget.spend(&name, name.below(&suffix).expect("below"), now)
    }

    #[test]
    fn short_names_are_free_and_long_ones_run_out() {
        let (budget, now) = (Budget::default(), Instant::now());
        let long = |number: usize| format!("{number:060}");
        let passed = (0..1000).filter(|&n| ask(&budget, &long(n), now)).count();
        assert_eq!(passed, BUDGET / (60 - FREE));
        // What was asked for before may be asked for again; what is short always.
        assert!(ask(&budget, &long(0), now));
        assert!((0..1000).all(|n| ask(&budget, &format!("host-{n}"), now)));
        // Later there is some more.
        assert!(!ask(&budget, &long(999), now));
        assert!(ask(&budget, &long(999), now + REFILL * 60));
    }
}
