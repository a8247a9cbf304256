//! Places over one another.
//!
//! A step covers earlier steps at the same path. So what a new place means depends on what encloses
//! it. In a directory that shows the host's own, the path is there already. In a directory that the
//! command can write to, only the executor can protect it, by descriptor (see `staging`), because
//! whoever can write there can plant a link in the way.

use std::path::{Path, PathBuf};

use super::{Guard, Operation, Reason, Step, home::hidden};
use crate::facts::Found;

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
        let operation = match self.enclosing(operation.at()) {
            Some(hidden) if hidden.hides() => None,
            Some(Operation::Writable { source, at }) => in_writable(operation, source, at),
            Some(Operation::ReadOnly { source, at }) => {
                let shows = is_same(&operation, source, at);
                let is_there = shows && matches!(operation, Operation::ReadOnly { .. });
                // A link of the host's is in view, too.
                let is_link = matches!(operation, Operation::Link { .. });
                (!is_there && !is_link).then_some(operation)
            }
            Some(Operation::Scratch { .. } | Operation::Guard { .. })
                if matches!(operation, Operation::Link { .. }) =>
            {
                None
            }
            // A cover could be lifted by who has mounts of their own; a white-out cannot.
            Some(Operation::Scratch { .. }) if operation.hides() => Some(Operation::Absent {
                at: operation.at().to_owned(),
            }),
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
        let index = index_enclosing(&self.steps, path)?;
        self.steps.get(index).map(|step| &step.operation)
    }

    /// Hides something of the host wherever it is shown, and whatever is shown of it.
    pub(super) fn hide(&mut self, found: &Found, reason: &Reason) {
        let real = &found.real;
        let is_part = |step: &&Step| {
            let is_scratch = matches!(step.operation, Operation::Scratch { .. });
            let source = step.operation.source();
            source.is_some_and(|source| source.starts_with(real) && (source != real || is_scratch))
        };
        let parts = self.steps.iter().filter(is_part);
        let parts: Vec<_> = parts.map(|step| step.operation.at().to_owned()).collect();
        self.steps.retain(|step| {
            !parts
                .iter()
                .any(|part| step.operation.at().starts_with(part))
        });
        for view in self.views(real) {
            self.place(hidden(view, found.kind), reason.clone());
        }
    }

    /// Puts something in the place of a part of what is shown, wherever that is. Who asked for
    /// the part itself has it; who asked for something in it has that, and nothing beside it.
    pub(super) fn mask(
        &mut self,
        real: &Path,
        reason: &Reason,
        operation: impl Fn(PathBuf) -> Operation,
    ) {
        for view in self.views(real) {
            let within = |step: &Step| step.operation.at().starts_with(&view);
            let is_asked_for = |step: &Step| step.operation.at() == view;
            if self.steps.iter().any(is_asked_for) {
                continue;
            }
            let first = self.steps.iter().position(within);
            let enclosing = self.enclosing(&view);
            let is_writable = matches!(enclosing, Some(Operation::Writable { .. }));
            let is_scratch = matches!(enclosing, Some(Operation::Scratch { .. }));
            match first {
                Some(index) if !is_writable => {
                    let hides = operation(view.clone()).hides();
                    let (at, mode) = (view, 0o700);
                    let operation = match is_scratch && hides {
                        true => Operation::Absent { at },
                        false => Operation::Empty { at, mode },
                    };
                    let reason = reason.clone();
                    self.steps.insert(index, Step { operation, reason });
                }
                _ => {
                    self.steps.retain(|step| !within(step));
                    self.place(operation(view), reason.clone());
                }
            }
        }
    }

    /// The paths at which something of the host is seen.
    pub(super) fn views(&self, real: &Path) -> Vec<PathBuf> {
        let shown = self.steps.iter().enumerate().filter_map(|(index, step)| {
            let (source, at) = (step.operation.source()?, step.operation.at());
            let view = join(at, real.strip_prefix(source).ok()?);
            // Nothing else is put there.
            (index_enclosing(&self.steps, &view) == Some(index)).then_some(view)
        });
        shown.collect()
    }

    /// Whether the directory of this path shows that of the host, links and all.
    pub(super) fn shows_host_around(&self, path: &Path) -> bool {
        let around = path.parent().and_then(|parent| self.enclosing(parent));
        around.is_some_and(|operation| match operation {
            Operation::ReadOnly { source, at }
            | Operation::Writable { source, at }
            | Operation::Scratch { source, at, .. } => source == at,
            _ => false,
        })
    }

    pub(super) fn finish(self) -> Vec<Step> {
        self.steps
    }
}

/// The step that decides what is seen at a path.
pub(crate) fn index_enclosing(steps: &[Step], path: &Path) -> Option<usize> {
    let depth = |step: &Step| step.operation.at().components().count();
    let deciding = steps.iter().enumerate().filter(|(_, step)| {
        let operation = &step.operation;
        let decides = !matches!(operation, Operation::Freeze { .. } | Operation::Link { .. });
        decides && path.starts_with(operation.at())
    });
    // The last one of the deepest.
    let deepest = deciding.max_by_key(|(_, step)| depth(step));
    deepest.map(|(index, _)| index)
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
    use crate::{facts::Kind, plan::Fallback};

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
    fn a_link_of_the_hosts_in_what_is_guarded_is_in_view() {
        let link = Operation::Link {
            text: "/data/x/lib/program".into(),
            at: "/data/x/bin/program".into(),
        };
        let [data, part] = [writable("/data"), read_only("/data/x")];
        assert_eq!(
            placed([data.clone(), part, link]),
            [data, guard("/data/x", Guard::ReadOnly)]
        );
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

    /// After these places, a secret is masked.
    fn masked(operations: impl IntoIterator<Item = Operation>, secret: &str) -> Vec<Operation> {
        let mut layout = Layout::default();
        for operation in operations {
            layout.place(operation, "a test");
        }
        let hidden = |at| Operation::HiddenDirectory { at };
        layout.mask(Path::new(secret), &"a test".into(), hidden);
        let steps = layout.finish().into_iter();
        steps.map(|step| step.operation).collect()
    }

    #[test]
    fn a_mask_is_where_the_secret_is_seen_and_not_where_it_is_asked_for() {
        let at = |source: &str, at: &str| Operation::ReadOnly {
            source: source.into(),
            at: at.into(),
        };
        // Wherever links lead.
        let share = Operation::Scratch {
            source: "/disk/share".into(),
            at: "/h/share".into(),
            reserved: Vec::new(),
            fallback: Fallback::Empty,
        };
        let absent = Operation::Absent {
            at: "/h/share/keys".into(),
        };
        let link = at("/disk", "/h/l");
        assert_eq!(
            masked([share.clone(), link.clone()], "/disk/share/keys"),
            [
                share.clone(),
                link,
                absent.clone(),
                hidden("/h/l/share/keys")
            ]
        );
        let asked = at("/disk/share/keys", "/h/share/keys");
        let both = [share.clone(), asked];
        assert_eq!(masked(both.clone(), "/disk/share/keys"), both);
        let part = at("/disk/share/keys/one", "/h/share/keys/one");
        assert_eq!(
            masked([share.clone(), part.clone()], "/disk/share/keys"),
            [share, absent, part]
        );
        let part = read_only("/usr/keys/one");
        let link = at("/elsewhere", "/usr/keys/one");
        let (place, mode) = ("/usr/keys".into(), 0o700);
        let empty = Operation::Empty { at: place, mode };
        assert_eq!(
            masked([read_only("/usr"), part, link.clone()], "/usr/keys"),
            [read_only("/usr"), empty, link]
        );
        assert_eq!(
            masked([writable("/data"), read_only("/data/x/y")], "/data/x"),
            [writable("/data"), guard("/data/x", Guard::Hidden)]
        );
        assert_eq!(
            masked([read_only("/usr")], "/not/shown"),
            [read_only("/usr")]
        );
    }

    #[test]
    fn what_is_hidden_is_so_by_every_name_and_in_every_part() {
        let hide = |operations: &[Operation], real: &str| {
            let mut layout = Layout::default();
            for operation in operations {
                layout.place(operation.clone(), "a test");
            }
            let (at, real, kind) = (real.into(), real.into(), Kind::Directory);
            layout.hide(&Found { at, real, kind }, &"a test".into());
            let steps = layout.finish().into_iter();
            steps.map(|step| step.operation).collect::<Vec<_>>()
        };
        let named = Operation::ReadOnly {
            source: "/d".into(),
            at: "/h/l".into(),
        };
        assert_eq!(
            hide(std::slice::from_ref(&named), "/d/secret"),
            [named, hidden("/h/l/secret")]
        );
        // Of this only parts are shown, one by another name.
        let other = Operation::Writable {
            source: "/a/b/d".into(),
            at: "/elsewhere".into(),
        };
        let parts = [
            read_only("/a/b/c"),
            other,
            guard("/elsewhere/x", Guard::ReadOnly),
        ];
        assert_eq!(hide(&parts, "/a"), []);
        assert_eq!(
            hide(&[read_only("/a")], "/a"),
            [read_only("/a"), hidden("/a")]
        );
        // What is shown in bulk is then not shown at all.
        let bulk = Operation::Scratch {
            source: "/a".into(),
            at: "/a".into(),
            reserved: Vec::new(),
            fallback: Fallback::Empty,
        };
        assert_eq!(hide(std::slice::from_ref(&bulk), "/a"), []);
        let absent = Operation::Absent { at: "/a/b".into() };
        assert_eq!(hide(std::slice::from_ref(&bulk), "/a/b"), [bulk, absent]);
    }

    #[test]
    fn hiding_wins_over_what_lies_below() {
        let all = [read_only("/data"), hidden("/data/x"), writable("/data/x/y")];
        assert_eq!(placed(all.clone()), all[..2]);
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
