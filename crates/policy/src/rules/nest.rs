//! Areas that lie apart or within each other, over any ordered keys.
//!
//! The bounds of all areas cut the line of keys into stretches; within one, the
//! smallest area around a key is the same everywhere. So the bounds are sorted
//! once, with what begins there, and a look-up is one binary search: no deeper for
//! areas that are nested than for those that lie side by side.

use std::borrow::Borrow;
use std::cmp::Ordering;

/// The keys that one rule is about.
pub(super) struct Area<K> {
    pub(super) start: K,
    /// The first key beyond; none if there is none.
    pub(super) end: Option<K>,
    pub(super) rule: usize,
}

impl<K: Ord> Area<K> {
    /// Outer areas come before those within them, equal ones in the order of rules.
    fn order(&self, other: &Self) -> Ordering {
        let ends = match (&self.end, &other.end) {
            (Some(end), Some(other)) => other.cmp(end),
            (end, other) => end.is_some().cmp(&other.is_some()),
        };
        let starts = self.start.cmp(&other.start);
        starts.then(ends).then(self.rule.cmp(&other.rule))
    }

    fn is_same(&self, other: &Self) -> bool {
        self.start == other.start && self.end == other.end
    }
}

#[derive(Debug, Clone)]
pub(super) struct Nest<K> {
    /// In ascending order, without repetition.
    bounds: Vec<K>,
    /// For each bound, the table of the smallest area from there to the next.
    tables: Vec<Option<usize>>,
}

impl<K> Default for Nest<K> {
    fn default() -> Self {
        Self {
            bounds: Vec::new(),
            tables: Vec::new(),
        }
    }
}

impl<K: Ord + Clone> Nest<K> {
    /// `add` makes a table of the rules of one area, given the table of the
    /// smallest area around it.
    pub(super) fn new(
        mut areas: Vec<Area<K>>,
        mut add: impl FnMut(Option<usize>, &[usize]) -> usize,
    ) -> Self {
        areas.sort_unstable_by(Area::order);
        let mut nest = Self::default();
        let mut open: Vec<(Option<K>, usize)> = Vec::new();
        for same in areas.chunk_by(Area::is_same) {
            let Some(area) = same.first() else { continue };
            nest.close(&mut open, |end| *end <= area.start);
            let rules: Vec<usize> = same.iter().map(|area| area.rule).collect();
            let around = open.last().map(|(_, table)| *table);
            let table = add(around, &rules);
            nest.mark(area.start.clone(), Some(table));
            open.push((area.end.clone(), table));
        }
        nest.close(&mut open, |_| true);
        nest
    }

    /// The table of the smallest area around the key.
    pub(super) fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        let beyond = self.bounds.partition_point(|bound| bound.borrow() <= key);
        *self.tables.get(beyond.checked_sub(1)?)?
    }

    /// Ends the areas that end where `is_over` says, the inner ones first.
    fn close(&mut self, open: &mut Vec<(Option<K>, usize)>, is_over: impl Fn(&K) -> bool) {
        while let Some((Some(end), _)) = open.last()
            && is_over(end)
        {
            let end = end.clone();
            open.pop();
            self.mark(end, open.last().map(|(_, table)| *table));
        }
    }

    fn mark(&mut self, bound: K, table: Option<usize>) {
        if self.bounds.last() == Some(&bound) {
            self.tables.pop();
        } else {
            self.bounds.push(bound);
        }
        self.tables.push(table);
    }
}
