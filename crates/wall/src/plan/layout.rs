//! Putting places over one another.
//!
//! A step covers what earlier steps have put at the same path. So what a new place means
//! depends on what encloses it: in a directory that shows the host's own, a path is there
//! already; in one that the command can write to, only the executor can protect it, by
//! descriptor (see `staging`), since whoever can write can plant a link in the way.

use std::path::{Path, PathBuf};

use super::{Guard, Operation, Reason, Step};

/// The steps so far.
#[derive(Debug, Default)]
pub(super) struct Layout {
    steps: Vec<Step>,
}

impl Layout {
    /// Adds a step as it is.
    pub(super) fn add(&mut self, operation: Operation, reason: impl Into<Reason>) {
        let reason = reason.into();
        self.steps.push(Step { operation, reason });
    }

    /// Adds a place, as far as it is not there already and nothing hides it.
    pub(super) fn place(&mut self, operation: Operation, reason: impl Into<Reason>) {
        let mut around = self.index_enclosing(operation.at());
        if operation.shows() && self.uncover(around, operation.at()) {
            around = self.index_enclosing(operation.at());
        }
        let around = around.and_then(|index| self.steps.get(index));
        let operation = match around.map(|step| &step.operation) {
            Some(hidden) if hidden.hides() => None,
            Some(Operation::Writable { source, at }) => in_writable(operation, source, at),
            Some(Operation::ReadOnly { source, at }) => {
                let shows = is_same(&operation, source, at);
                let is_there = shows && matches!(operation, Operation::ReadOnly { .. });
                // A link of the host's is in view, too.
                let is_link = matches!(operation, Operation::Link { .. });
                (!is_there && !is_link).then_some(operation)
            }
            Some(Operation::Scratch { .. }) if matches!(operation, Operation::Link { .. }) => None,
            // What is not shown need not be hidden.
            Some(Operation::Empty { .. }) | None if operation.hides() => None,
            _ => Some(operation),
        };
        if let Some(operation) = operation {
            self.add(operation, reason);
        }
    }

    /// The step that decides what is seen at a path.
    pub(super) fn enclosing(&self, path: &Path) -> Option<&Operation> {
        let index = self.index_enclosing(path)?;
        self.steps.get(index).map(|step| &step.operation)
    }

    fn index_enclosing(&self, path: &Path) -> Option<usize> {
        let depth = |step: &Step| step.operation.at().components().count();
        let deciding = self.steps.iter().enumerate().filter(|(_, step)| {
            let operation = &step.operation;
            let decides = !matches!(operation, Operation::Freeze { .. } | Operation::Link { .. });
            decides && path.starts_with(operation.at())
        });
        // The last one of the deepest.
        let deepest = deciding.max_by_key(|(_, step)| depth(step));
        deepest.map(|(index, _)| index)
    }

    /// What is known to hold secrets is shown to who asks for just that place. Who asks for
    /// something in it gets that, and nothing beside it. Says whether that changes anything.
    fn uncover(&mut self, enclosing: Option<usize>, path: &Path) -> bool {
        let Some((index, step)) = enclosing.and_then(|index| {
            let step = self.steps.get_mut(index)?;
            step.operation.hides().then_some((index, step))
        }) else {
            return false;
        };
        if step.operation.at() == path {
            self.steps.remove(index);
        } else if let Operation::HiddenDirectory { at } = &step.operation {
            let at = at.clone();
            step.operation = Operation::Empty { at, mode: 0o700 };
        } else {
            return false;
        }
        true
    }

    /// Whether the directory of this path shows that of the host, links and all.
    pub(super) fn shows_host_around(&self, path: &Path) -> bool {
        let around = path.parent().and_then(|parent| self.enclosing(parent));
        around.is_some_and(|operation| match operation {
            Operation::ReadOnly { source, at }
            | Operation::Writable { source, at }
            | Operation::Scratch { source, at } => source == at,
            _ => false,
        })
    }

    pub(super) fn finish(self) -> Vec<Step> {
        self.steps
    }
}

/// A place in a directory that can be written to.
fn in_writable(operation: Operation, source: &Path, at: &Path) -> Option<Operation> {
    let is_same = is_same(&operation, source, at);
    let guard = match operation {
        Operation::ReadOnly { at, .. } if is_same => (at, Guard::ReadOnly),
        Operation::HiddenFile { at } | Operation::HiddenDirectory { at } => (at, Guard::Hidden),
        Operation::Guard { at, guard } => (at, guard),
        // Whoever made all of it writable meant this, too.
        _ => return None,
    };
    let (at, guard) = guard;
    Some(Operation::Guard { at, guard })
}

/// Whether an operation shows what a place that encloses it shows there anyway.
fn is_same(operation: &Operation, source: &Path, at: &Path) -> bool {
    let there = |path: &Path| path.strip_prefix(at).map(|below| join(source, below)).ok();
    operation.source() == there(operation.at()).as_deref()
}

fn join(path: &Path, below: &Path) -> PathBuf {
    // Without the slash that `join` adds for an empty path.
    if below.as_os_str().is_empty() {
        path.to_owned()
    } else {
        path.join(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_only(path: &str) -> Operation {
        Operation::ReadOnly {
            source: path.into(),
            at: path.into(),
        }
    }

    fn writable(path: &str) -> Operation {
        Operation::Writable {
            source: path.into(),
            at: path.into(),
        }
    }

    fn hidden(path: &str) -> Operation {
        Operation::HiddenDirectory { at: path.into() }
    }

    fn guard(path: &str, guard: Guard) -> Operation {
        let at = path.into();
        Operation::Guard { at, guard }
    }

    fn placed(operations: impl IntoIterator<Item = Operation>) -> Vec<Operation> {
        let mut layout = Layout::default();
        for operation in operations {
            layout.place(operation, "a test");
        }
        let steps = layout.finish().into_iter();
        steps.map(|step| step.operation).collect()
    }

    #[test]
    fn what_is_there_already_is_not_put_there_again() {
        assert_eq!(
            placed([read_only("/usr"), read_only("/usr/share/x")]),
            [read_only("/usr")]
        );
        assert_eq!(
            placed([writable("/data"), writable("/data/x")]),
            [writable("/data")]
        );
        let both = [read_only("/data"), writable("/data/x")];
        assert_eq!(placed(both.clone()), both);
    }

    #[test]
    fn in_a_writable_place_only_guards_protect() {
        assert_eq!(
            placed([writable("/data"), read_only("/data/x"), hidden("/data/y")]),
            [
                writable("/data"),
                guard("/data/x", Guard::ReadOnly),
                guard("/data/y", Guard::Hidden)
            ]
        );
    }

    #[test]
    fn what_is_hidden_is_shown_as_far_as_it_is_asked_for() {
        let around = || [read_only("/data"), hidden("/data/x")];
        let with = |operation: Operation| placed(around().into_iter().chain([operation]));
        assert_eq!(
            with(writable("/data/x")),
            [read_only("/data"), writable("/data/x")]
        );
        // It is there already, and nothing hides it any more.
        assert_eq!(with(read_only("/data/x")), [read_only("/data")]);
        let (at, mode) = ("/data/x".into(), 0o700);
        let empty = Operation::Empty { at, mode };
        let below = read_only("/data/x/y");
        assert_eq!(with(below.clone()), [read_only("/data"), empty, below]);
        // A guard asks for nothing, and what is hidden is so however often.
        assert_eq!(with(guard("/data/x/y", Guard::ReadOnly)), around());
        assert_eq!(with(hidden("/data/x/y")), around());
        assert_eq!(placed([hidden("/not/shown")]), []);
    }

    #[test]
    fn hiding_wins_over_what_came_before() {
        let all = [read_only("/data"), writable("/data/x"), hidden("/data/x")];
        let hidden = guard("/data/x", Guard::Hidden);
        assert_eq!(placed(all.clone())[..2], all[..2]);
        assert_eq!(placed(all)[2..], [hidden]);
    }
}
