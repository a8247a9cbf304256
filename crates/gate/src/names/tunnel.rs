//! A bound on what can be said in the names themselves.
//!
//! A rule for `*.example.org` lets a program ask for any name below it, and the name reaches
//! whoever answers for that domain: a way out for data, of some hundred bytes at a time. Real
//! names are short, not too many, and come again. So a name that was not asked for lately is
//! paid for, from two budgets that refill slowly: one for its being a new name, one for what
//! it is longer than most.

use std::{
    cell::RefCell,
    collections::HashSet,
    time::{Duration, Instant},
};

use stockade_wire::dns::{Below, Name, Type};

/// New names at once, and how long each takes to come back.
const NAMES: Limit = Limit {
    most: 1200,
    refill: Duration::from_secs(1),
};
/// Bytes of long names at once.
const BYTES: Limit = Limit {
    most: 2048,
    refill: Duration::from_millis(100),
};
/// So long a name costs no bytes.
const SHORT: usize = 24;
/// How many names are known not to cost again.
const REMEMBERED: usize = 1024;

struct Limit {
    most: usize,
    refill: Duration,
}

/// What is left of a limit.
#[derive(Debug)]
struct Bucket {
    left: usize,
    since: Instant,
}

impl Bucket {
    fn full(limit: &Limit) -> Self {
        Self {
            left: limit.most,
            since: Instant::now(),
        }
    }

    fn refill(&mut self, limit: &Limit, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let refilled = passed.as_millis() / limit.refill.as_millis();
        if refilled > 0 {
            let refilled = usize::try_from(refilled).unwrap_or(usize::MAX);
            self.left = self.left.saturating_add(refilled).min(limit.most);
            self.since = now;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Budget(RefCell<Left>);

#[derive(Debug)]
struct Left {
    names: Bucket,
    bytes: Bucket,
    /// A name may be asked for again, but another type of record says something again.
    paid: HashSet<(Name, Type)>,
}

impl Default for Budget {
    fn default() -> Self {
        Self(RefCell::new(Left {
            names: Bucket::full(&NAMES),
            bytes: Bucket::full(&BYTES),
            paid: HashSet::new(),
        }))
    }
}

impl Budget {
    /// Whether a name may be asked for that says so much below the one that a rule has.
    pub(crate) fn spend(&self, asked: (&Name, Type), below: Below, now: Instant) -> bool {
        let mut left = self.0.borrow_mut();
        let Left { names, bytes, paid } = &mut *left;
        // Every client asks for these at once.
        let kind = match asked.1 {
            Type::AAAA | Type::HTTPS => Type::A,
            other => other,
        };
        let asked = (asked.0.clone(), kind);
        if paid.contains(&asked) {
            return true;
        }
        names.refill(&NAMES, now);
        bytes.refill(&BYTES, now);
        let cost = below.length.saturating_sub(SHORT);
        if names.left == 0 || bytes.left < cost {
            return false;
        }
        names.left -= 1;
        bytes.left -= cost;
        if paid.len() >= REMEMBERED {
            paid.clear();
        }
        paid.insert(asked);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(budget: &Budget, label: &str, now: Instant) -> bool {
        let name = Name::from_text(&format!("{label}.example.org")).expect("a name");
        let suffix = Name::from_text("example.org").expect("a name");
        let below = name.below(&suffix).expect("below");
        budget.spend((&name, Type::A), below, now)
    }

    #[test]
    fn many_names_run_out_and_long_ones_sooner() {
        let now = Instant::now();
        for (width, most) in [(5, NAMES.most), (24, NAMES.most), (60, BYTES.most / 36)] {
            let budget = Budget::default();
            let label = |number: usize| format!("{number:0width$}");
            let passed = (0..2000).filter(|&n| ask(&budget, &label(n), now)).count();
            assert_eq!(passed, most);
            // What was asked for just before may be asked for again.
            assert!(ask(&budget, &label(most - 1), now));
            // Later there is some more.
            assert!(!ask(&budget, &label(1999), now));
            assert!(ask(&budget, &label(1999), now + NAMES.refill * 4));
        }
    }

    #[test]
    fn another_type_of_record_costs_again() {
        let (budget, now) = (Budget::default(), Instant::now());
        let name = Name::from_text(&format!("{}.example.org", "x".repeat(60))).expect("a name");
        let suffix = Name::from_text("example.org").expect("a name");
        let below = name.below(&suffix).expect("below");
        let spend = |kind| budget.spend((&name, Type(kind)), below, now);
        assert_eq!(
            (1000..2000).filter(|&kind| spend(kind)).count(),
            BYTES.most / 36
        );
        assert!(!spend(Type::A.0));
        let budget = Budget::default();
        let spend = |kind| budget.spend((&name, kind), below, now);
        assert!([Type::A, Type::AAAA, Type::HTTPS].into_iter().all(spend));
    }

    #[test]
    fn short_names_are_there_when_long_ones_have_run_out() {
        let (budget, now) = (Budget::default(), Instant::now());
        let spent = (0..100).all(|n| ask(&budget, &format!("{n:060}"), now));
        assert!(!spent);
        assert!((0..1000).all(|n| ask(&budget, &format!("host-{n}"), now)));
    }
}
