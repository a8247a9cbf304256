//! Places over one another.
//!
//! A step covers earlier steps at the same path. So what a new place means depends on what encloses
//! it. In a directory that shows the host's own, the path is there already. In a directory that the
//! command can write to, only the executor can protect it, by descriptor (see `staging`), because
//! whoever can write there can plant a link in the way.

use std::path::{Path, PathBuf};

use super::{Guard, Operation, Reason, Step, home::hidden};
use crate::facts::{Found, Mounts};

/// The steps so far.
#[derive(Debug, Default)]
pub(super) struct Layout {
    steps: Vec<Step>,
    /// What is mounted at more than one place of the host.
    mounts: Mounts,
}

impl Layout {
    pub(super) fn new(mounts: Mounts) -> Self {
        Self {
            steps: Vec::new(),
            mounts,
        }
    }

    /// Adds a step as it is.
    pub(super) fn add(
        &mut self,
        at: impl Into<PathBuf>,
        operation: Operation,
        reason: impl Into<Reason>,
    ) {
        self.steps.push(Step::new(at, operation, reason));
    }

    /// Adds a place, as far as it is not there already and nothing hides it.
    pub(super) fn place(&mut self, step: Step) {
        use Operation::{
            Absent, Empty, HiddenDirectory, HiddenFile, Link, ReadOnly, Scratch, Writable,
        };
        // A program may have been brought by this link.
        let is_link = matches!(step.operation, Link { .. });
        if is_link && self.steps.iter().any(|known| known.at == step.at) {
            return;
        }
        let around = self.enclosing(&step.at);
        let is_same = around.is_some_and(|around| shows_same(&step, around));
        let operation = match (around.map(|around| &around.operation), step.operation) {
            (Some(hidden), _) if hidden.hides() => None,
            (Some(Writable { .. }), ReadOnly { .. }) => {
                is_same.then_some(Operation::Guard(Guard::ReadOnly))
            }
            (Some(Writable { .. }), HiddenFile | HiddenDirectory) => {
                Some(Operation::Guard(Guard::Hidden))
            }
            (Some(Writable { .. }), guard @ Operation::Guard(_)) => Some(guard),
            // Whoever made all of it writable meant this, too.
            (Some(Writable { .. }), _) => None,
            (Some(ReadOnly { .. }), ReadOnly { .. }) if is_same => None,
            // A link of the host's is in view, too.
            (Some(ReadOnly { .. } | Scratch { .. } | Operation::Guard(_)), Link { .. }) => None,
            // A cover could be lifted by who has mounts of their own; a white-out cannot.
            (Some(Scratch { .. }), hidden) if hidden.hides() => Some(Absent),
            // What is not shown need not be hidden.
            (Some(Empty { .. }) | None, hidden) if hidden.hides() => None,
            (_, operation) => Some(operation),
        };
        if let Some(operation) = operation {
            self.add(step.at, operation, step.reason);
        }
    }

    /// The step that decides what is seen at a path.
    pub(super) fn enclosing(&self, path: &Path) -> Option<&Step> {
        self.steps.get(index_enclosing(&self.steps, path)?)
    }

    /// Whether the command can write at a path.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        let around = self.enclosing(path).map(|step| &step.operation);
        matches!(around, Some(Operation::Writable { .. }))
    }

    /// Hides something of the host wherever it is shown, and whatever is shown of it.
    pub(super) fn hide(&mut self, found: &Found, reason: &Reason) {
        let names = self.names(&found.real);
        let is_part = |step: &&Step| {
            let is_scratch = matches!(step.operation, Operation::Scratch { .. });
            let source = step.operation.source();
            source.is_some_and(|source| {
                let is_part = |real: &PathBuf| source.starts_with(real) && source != real;
                names.iter().any(is_part) || (is_scratch && names.iter().any(|it| it == source))
            })
        };
        let parts = self.steps.iter().filter(is_part);
        let parts: Vec<_> = parts.map(|step| step.at.clone()).collect();
        self.steps
            .retain(|step| !parts.iter().any(|part| step.at.starts_with(part)));
        let parts = self.mounts.parts_elsewhere(&found.real);
        let parts: Vec<_> = parts.iter().flat_map(|part| self.views(part)).collect();
        for view in self.views(&found.real).into_iter().chain(parts) {
            self.place(Step::new(view, hidden(found.kind), reason.clone()));
        }
    }

    /// Covers a directory of the host where it is mounted again, as far as that is shown.
    pub(super) fn cover_elsewhere(&mut self, real: &Path, operation: &Operation, reason: &str) {
        self.cover_shown(self.mounts.other_names(real), real, operation, reason);
    }

    /// The same where parts of it are mounted again.
    pub(super) fn cover_parts(&mut self, real: &Path, operation: &Operation, reason: &str) {
        self.cover_shown(self.mounts.parts_elsewhere(real), real, operation, reason);
    }

    fn cover_shown(
        &mut self,
        names: Vec<PathBuf>,
        real: &Path,
        operation: &Operation,
        reason: &str,
    ) {
        for name in names.into_iter().filter(|name| !name.starts_with(real)) {
            let around = self.enclosing(&name).map(|step| &step.operation);
            if around.is_some_and(|around| around.source().is_some()) {
                let reason = format!("{reason} (mounted here, too)");
                self.add(name, operation.clone(), reason);
            }
        }
    }

    /// All paths of something of the host.
    fn names(&self, real: &Path) -> Vec<PathBuf> {
        let mut names = self.mounts.other_names(real);
        names.insert(0, real.to_owned());
        names
    }

    /// Puts something in the place of a part of what is shown, wherever that is. Who asked for
    /// the part itself has it; who asked for something in it has that, and nothing beside it.
    pub(super) fn mask(&mut self, real: &Path, operation: &Operation, reason: &'static str) {
        for view in self.views(real) {
            let within = |step: &Step| step.at.starts_with(&view);
            if self.steps.iter().any(|step| step.at == view) {
                continue;
            }
            let around = self.enclosing(&view).map(|step| &step.operation);
            let is_scratch = matches!(around, Some(Operation::Scratch { .. }));
            match self.steps.iter().position(within) {
                Some(index) if !self.is_writable(&view) => {
                    let operation = match is_scratch && operation.hides() {
                        true => Operation::Absent,
                        false => Operation::Empty { mode: 0o700 },
                    };
                    self.steps.insert(index, Step::new(view, operation, reason));
                }
                _ => {
                    self.steps.retain(|step| !within(step));
                    self.place(Step::new(view, operation.clone(), reason));
                }
            }
        }
    }

    /// The paths at which something of the host is seen.
    pub(super) fn views(&self, real: &Path) -> Vec<PathBuf> {
        let names = self.names(real);
        let steps = self.steps.iter().enumerate();
        let shown = steps.flat_map(|(index, step)| {
            names.iter().filter_map(move |name| {
                let below = name.strip_prefix(step.operation.source()?).ok()?;
                let view = join(&step.at, below);
                // Nothing else is put there.
                (index_enclosing(&self.steps, &view) == Some(index)).then_some(view)
            })
        });
        shown.collect()
    }

    /// Whether the directory of this path shows that of the host, links and all.
    pub(super) fn shows_host_around(&self, path: &Path) -> bool {
        let around = path.parent().and_then(|parent| self.enclosing(parent));
        around.is_some_and(|step| match &step.operation {
            Operation::ReadOnly { source }
            | Operation::Writable { source }
            | Operation::Scratch { source, .. } => *source == step.at,
            _ => false,
        })
    }

    pub(super) fn finish(self) -> Vec<Step> {
        self.steps
    }
}

/// The step that decides what is seen at a path.
fn index_enclosing(steps: &[Step], path: &Path) -> Option<usize> {
    let deciding = steps.iter().enumerate().filter(|(_, step)| {
        let decides = !matches!(step.operation, Operation::Freeze | Operation::Link { .. });
        decides && path.starts_with(&step.at)
    });
    // The last one of the deepest.
    let deepest = deciding.max_by_key(|(_, step)| step.at.components().count());
    deepest.map(|(index, _)| index)
}

/// The earlier step that decides what is seen where this one goes.
pub(crate) fn enclosing(steps: &[Step], number: usize) -> Option<usize> {
    let (step, before) = (steps.get(number)?, steps.get(..number)?);
    index_enclosing(before, &step.at)
}

/// The writable directory that a step covers a part of.
pub(crate) fn writable_around(steps: &[Step], number: usize) -> Option<usize> {
    let around = enclosing(steps, number)?;
    let is_writable = matches!(steps.get(around)?.operation, Operation::Writable { .. });
    is_writable.then_some(around)
}

/// What is laid over parts of a writable directory: overlays of dependencies that other projects
/// share, and empty directories instead of scripts that agents outside run.
pub(crate) fn laid_over(steps: &[Step], writable: usize) -> impl Iterator<Item = &Path> {
    use Operation::{Empty, Scratch};
    let laid = steps.iter().enumerate().skip(writable);
    let laid = laid.filter(|(_, it)| matches!(it.operation, Scratch { .. } | Empty { .. }));
    let inside = laid.filter(move |(number, _)| {
        writable_around(steps, *number).is_some_and(|around| around == writable)
    });
    inside.map(|(_, step)| step.at.as_path())
}

/// Whether a step shows what the one that encloses it shows there anyway.
fn shows_same(step: &Step, around: &Step) -> bool {
    let below = step.at.strip_prefix(&around.at).ok();
    let shown = around.operation.source().zip(below);
    step.operation.source() == shown.map(|(source, below)| join(source, below)).as_deref()
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

    fn at(path: &str, operation: Operation) -> Step {
        Step::new(path, operation, "a test")
    }

    fn read_only(path: &str) -> Step {
        let source = path.into();
        at(path, Operation::ReadOnly { source })
    }

    fn writable(path: &str) -> Step {
        let source = path.into();
        at(path, Operation::Writable { source })
    }

    fn hidden(path: &str) -> Step {
        at(path, Operation::HiddenDirectory)
    }

    fn scratch(source: &str, path: &str) -> Step {
        let operation = Operation::Scratch {
            source: source.into(),
            reserved: Vec::new(),
            fallback: Fallback::Empty,
        };
        at(path, operation)
    }

    fn guard(path: &str, guard: Guard) -> Step {
        at(path, Operation::Guard(guard))
    }

    fn placed(operations: impl IntoIterator<Item = Step>) -> Vec<Step> {
        let mut layout = Layout::default();
        for operation in operations {
            layout.place(operation);
        }
        layout.finish()
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
        let text = "/data/x/lib/program".into();
        let link = at("/data/x/bin/program", Operation::Link { text });
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
    fn masked(operations: impl IntoIterator<Item = Step>, secret: &str) -> Vec<Step> {
        let mut layout = Layout::default();
        for operation in operations {
            layout.place(operation);
        }
        layout.mask(Path::new(secret), &Operation::HiddenDirectory, "a test");
        layout.finish()
    }

    #[test]
    fn a_mask_is_where_the_secret_is_seen_and_not_where_it_is_asked_for() {
        let shown = |source: &str, path: &str| {
            let source = source.into();
            at(path, Operation::ReadOnly { source })
        };
        // Wherever links lead.
        let share = scratch("/disk/share", "/h/share");
        let absent = at("/h/share/keys", Operation::Absent);
        let link = shown("/disk", "/h/l");
        assert_eq!(
            masked([share.clone(), link.clone()], "/disk/share/keys"),
            [
                share.clone(),
                link,
                absent.clone(),
                hidden("/h/l/share/keys")
            ]
        );
        let asked = shown("/disk/share/keys", "/h/share/keys");
        let both = [share.clone(), asked];
        assert_eq!(masked(both.clone(), "/disk/share/keys"), both);
        let part = shown("/disk/share/keys/one", "/h/share/keys/one");
        assert_eq!(
            masked([share.clone(), part.clone()], "/disk/share/keys"),
            [share, absent, part]
        );
        let part = read_only("/usr/keys/one");
        let link = shown("/elsewhere", "/usr/keys/one");
        let empty = at("/usr/keys", Operation::Empty { mode: 0o700 });
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
        let hide = |operations: &[Step], real: &str| {
            let mut layout = Layout::default();
            for operation in operations {
                layout.place(operation.clone());
            }
            let (at, real, kind) = (real.into(), real.into(), Kind::Directory);
            layout.hide(&Found { at, real, kind }, &"a test".into());
            layout.finish()
        };
        let source = "/d".into();
        let named = at("/h/l", Operation::ReadOnly { source });
        assert_eq!(
            hide(std::slice::from_ref(&named), "/d/secret"),
            [named, hidden("/h/l/secret")]
        );
        // Of this only parts are shown, one by another name.
        let source = "/a/b/d".into();
        let other = at("/elsewhere", Operation::Writable { source });
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
        let bulk = scratch("/a", "/a");
        assert_eq!(hide(std::slice::from_ref(&bulk), "/a"), []);
        let absent = at("/a/b", Operation::Absent);
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
