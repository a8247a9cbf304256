//! What is to be seen of the disk, and what can be written.

use std::path::{Path, PathBuf};

use stockade_wall::{Guard, Operation, Plan};

use super::{Case, guarded, shown};
use crate::verify::{
    credentials as known,
    messages::Tried,
    outside::{PRIVATE, Place},
    report::{Check, Finding},
};

pub(super) fn findings(case: &Case<'_>) -> Vec<Finding> {
    let private = |path: &'static str, name: &'static str, promise, place| {
        let check = Check::new(&format!("files.{name}"), promise);
        private(case, check, Path::new(path), place)
    };
    let [tmp, var_tmp, run, dev, shm] = PRIVATE;
    vec![
        home(case),
        credentials(case),
        beside(case),
        private(tmp, "tmp", "/tmp is private", Place::Temporary),
        private(var_tmp, "var-tmp", "/var/tmp is private", Place::Temporary),
        private(run, "run", "/run is private", Place::Runtime),
        private(
            dev,
            "dev",
            "/dev has the plain devices only",
            Place::SharedMemory,
        ),
        private(
            shm,
            "shared-memory",
            "/dev/shm is private",
            Place::SharedMemory,
        ),
        read_only(case),
        workspace(case),
        guards(case),
    ]
}

fn home(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "files.home",
        "the home directory is empty but for what is given",
    );
    let mut faults = found(case, Place::Home);
    if case.seen.identities.get(case.home) == case.outside.identities.get(case.home) {
        faults.push("it is the host's own".to_owned());
    }
    let allowed = case.planned_below(case.home);
    let names = case.seen.lists.get(case.home).into_iter().flatten();
    let others = names.filter(|name| !allowed.contains(*name));
    faults.extend(others.map(|name| format!("{name} is there, and nothing gives it")));
    if faults.is_empty() && case.outside.canaries.at(Place::Home).next().is_none() {
        return check.inconclusive("no file could be put there outside to look for");
    }
    check.unless(
        &faults,
        "a file that was put there outside is not to be seen",
    )
}

/// The canaries of a place that were seen, and are not shown by the plan.
fn found(case: &Case<'_>, place: Place) -> Vec<String> {
    let canaries = case.outside.canaries.at(place);
    canaries
        .filter(|path| case.seen.reads.get(*path).is_some_and(Tried::worked))
        .filter(|path| !case.is_shown(path))
        .map(|path| {
            let directory = path.parent().unwrap_or(path);
            format!("a file of the host's {} can be read", shown(directory))
        })
        .collect()
}

fn credentials(case: &Case<'_>) -> Finding {
    let check = Check::new("files.credentials", "no credential of the user is visible");
    let exist: Vec<PathBuf> = known()
        .map(|name| case.home.join(name))
        .filter(|path| case.seen.reads.contains_key(path))
        .collect();
    if exist.is_empty() {
        return check.inconclusive("there is none outside that could be looked for");
    }
    let seen = |path: &&PathBuf| case.seen.reads.get(*path).is_some_and(Tried::worked);
    let (given, leaked): (Vec<_>, Vec<_>) = exist
        .iter()
        .filter(seen)
        .filter(|path| !is_replaced(case, path))
        .partition(|path| case.is_shown(path) || holds_given(case, path));
    let faults: Vec<String> = leaked
        .iter()
        .map(|path| format!("{} can be read", shown(path)))
        .collect();
    let count = exist.len() - given.len();
    let note = match given.as_slice() {
        [] => format!("none of the {count} that can be read outside"),
        [first, ..] => format!(
            "none of {count} that can be read outside; by configuration, {} can",
            shown(first)
        ),
    };
    check.unless(&faults, note).but_for(&given)
}

/// A text of the plan's stands in the place of the file, and nothing else does.
fn is_replaced(case: &Case<'_>, path: &Path) -> bool {
    let Some(Operation::Text(text)) = case.planned(path) else {
        return false;
    };
    case.seen.texts.get(path) == Some(text)
}

/// The files of the home that a text of the plan's stands for.
pub(in crate::verify) fn replaced(plan: &Plan, home: &Path) -> Vec<PathBuf> {
    let steps = plan.files.iter();
    let texts = steps.filter(|step| matches!(step.operation, Operation::Text(_)));
    let texts = texts.map(|step| step.at.clone());
    texts
        .filter(|at| at.starts_with(home) && at.to_str().is_some())
        .collect()
}

/// A directory that is there only because something in it is given.
fn holds_given(case: &Case<'_>, path: &Path) -> bool {
    let mut steps = case.plan.files.iter();
    steps.any(|step| step.at != path && step.at.starts_with(path))
}

fn beside(case: &Case<'_>) -> Finding {
    let check = Check::new("files.beside", "nothing beside the workspace is visible");
    let mut canaries = case.outside.canaries.at(Place::Beside).peekable();
    // The directory above may be one that has a canary of another kind.
    if canaries.peek().is_none() {
        return check.inconclusive("no file could be put there outside to look for");
    }
    if canaries.all(|path| case.is_shown(path)) {
        return check.inconclusive("the configuration shows the directory that it lies in");
    }
    check.unless(
        &found(case, Place::Beside),
        "a file that was put there outside is not to be seen",
    )
}

/// What `/dev` of a sandbox may hold: what programs need, and its own terminals.
const DEVICES: [&str; 15] = [
    "console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
    "stdout", "tty", "urandom", "zero",
];

fn private(case: &Case<'_>, check: Check, path: &Path, place: Place) -> Finding {
    let canaries: Vec<_> = case
        .outside
        .canaries
        .at(place)
        .filter(|canary| canary.starts_with(path))
        .collect();
    let mut faults = found(case, place);
    faults.retain(|_| !canaries.is_empty());
    let [inside, outside] =
        [&case.seen.identities, &case.outside.identities].map(|identities| identities.get(path));
    match (inside, outside) {
        (Some(inside), Some(outside)) if inside == outside => {
            faults.push(format!("{} is the host's own", shown(path)));
        }
        (_, None) => return check.inconclusive("there is none outside"),
        _ => {}
    }
    let mut allowed = case.planned_below(path);
    if path == Path::new("/dev") {
        allowed.extend(DEVICES.map(str::to_owned));
    }
    // The prober comes first, so nobody has made anything there yet.
    let names = case.seen.lists.get(path).into_iter().flatten();
    let others = names.filter(|name| !allowed.contains(*name));
    faults.extend(others.map(|name| format!("{}/{name} is there", shown(path))));
    check.unless(&faults, "another one than the host's")
}

/// By what the kernel says of each mount, and by trying.
fn read_only(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "files.read-only",
        "only the workspace and what is given can be written",
    );
    if case.seen.mounts.is_empty() {
        return check.inconclusive("the mounts cannot be told");
    }
    let kernel = ["/dev", "/proc"].map(Path::new);
    let is_kernels =
        |path: &Path| kernel.iter().any(|it| path.starts_with(it)) && path != Path::new("/dev");
    let mounts = case.seen.mounts.iter().filter(|mount| mount.writable);
    let mut faults: Vec<String> = mounts
        .filter(|mount| !case.is_writable(&mount.point) && !is_kernels(&mount.point))
        .map(|mount| format!("{} is mounted writable", shown(&mount.point)))
        .collect();
    let written = case.seen.writes.iter().filter(|(_, tried)| tried.worked());
    faults.extend(
        written
            .filter(|(path, _)| !case.is_writable(path))
            .map(|(path, _)| format!("{} could be written to", shown(path))),
    );
    check.unless(&faults, "every other mount is read-only")
}

/// The control of the others: what is to be writable is, and is the host's.
fn workspace(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "files.workspace",
        "the workspace can be written, and is the real one",
    );
    match (&case.seen.left, case.left_is_found) {
        (Some(Tried::Worked(_)), true) => check.pass("a file made inside was found outside"),
        (Some(Tried::Worked(_)), false) => {
            check.inconclusive("a file could be made inside, but was not found outside")
        }
        (Some(tried), _) => check.inconclusive(format!("no file could be made in it: {tried}")),
        (None, _) => check.inconclusive("it was not tried"),
    }
}

fn guards(case: &Case<'_>) -> Finding {
    let check = Check::new(
        "files.executed-outside",
        "what programs outside execute of the workspace cannot be changed",
    );
    let guarded = guarded(case.plan, case.outside);
    if guarded.is_empty() {
        return check.inconclusive("there is no such file in this workspace");
    }
    let is_hidden = |path: &Path| {
        case.plan
            .files
            .iter()
            .any(|step| step.at == path && step.operation == Operation::Guard(Guard::Hidden))
    };
    let mut faults = Vec::new();
    for path in &guarded {
        if case.seen.writes.get(path).is_some_and(Tried::worked) {
            faults.push(format!("{} can be changed", shown(path)));
        }
        if is_hidden(path) && case.seen.reads.get(path).is_some_and(Tried::worked) {
            faults.push(format!("{} is hidden, and can be read", shown(path)));
        }
    }
    let control = case.seen.left.as_ref().is_some_and(Tried::worked);
    if faults.is_empty() && !control {
        return check.inconclusive("nothing can be changed in this workspace");
    }
    check.unless(
        &faults,
        format!(
            "{} of them, in a workspace that can be written",
            guarded.len()
        ),
    )
}
