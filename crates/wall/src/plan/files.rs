//! The files of the plan: first the system, then what the configuration asks for.

use std::path::{Path, PathBuf};

use super::{
    INNER_STAGE, OWN, Operation, SESSION_SOCKET, Step, git, home, layout::Layout, names, requests,
};
use crate::{
    config::{Config, Root},
    error::Error,
    facts::{Facts, Procfs, SystemForm, SystemPlace},
    tables::system::{PRIVATE, SECRET_REASON},
};

/// The steps, in order. What is not named here does not exist inside.
pub(super) fn steps(config: &Config, facts: &Facts) -> Result<Vec<Step>, Error> {
    let mut layout = Layout::new(facts.mounts.clone());
    if config.root == Root::All {
        layout.add("/", read_only("/"), "the whole disk");
    }
    private_places(config, &mut layout);
    system(config, facts, &mut layout);
    devices(&mut layout);
    processes(facts, &mut layout);
    home::empty(config, facts, &mut layout)?;
    names::files(config, facts, &mut layout)?;
    let own = Operation::Empty { mode: 0o755 };
    layout.add(OWN, own, "what Stockade itself needs inside");
    layout.add(
        INNER_STAGE,
        read_only(&facts.executable),
        "starts the command and reports what becomes of it",
    );
    layout.add(
        SESSION_SOCKET,
        Operation::Socket,
        "Stockade answers questions from inside, such as `stockade inside`",
    );
    git::file(config, facts, &mut layout)?;
    requests::place(config, facts, &mut layout)?;
    layout.place(Step::new(
        &facts.executable,
        read_only(&facts.executable),
        "this program: hooks outside and inside call it by the same path",
    ));
    let named = facts.launched_by.iter();
    for link in named.filter(|link| link.ends_with("stockade")) {
        let text = facts.executable.clone();
        let reason = "the name by which this program was started";
        layout.place(Step::new(link, Operation::Link { text }, reason));
    }
    requests::freeze_above(facts, &mut layout);
    let reason = "what Stockade itself needs inside cannot be replaced";
    layout.add(OWN, Operation::Freeze, reason);
    layout.add("/dev", Operation::Freeze, "devices only, no files");
    let reason = "only the places above can be written to";
    layout.add("/", Operation::Freeze, reason);
    Ok(layout.finish())
}

fn read_only(source: impl Into<PathBuf>) -> Operation {
    let source = source.into();
    Operation::ReadOnly { source }
}

fn private_places(config: &Config, layout: &mut Layout) {
    for (path, mode, reason) in PRIVATE {
        let empty = Operation::Empty { mode: *mode };
        layout.cover_elsewhere(Path::new(path), &empty, reason);
        layout.add(path, empty, *reason);
    }
    // With the whole disk, the host's own link is in view.
    if config.root == Root::System {
        let text = "/run".into();
        layout.add(
            "/var/run",
            Operation::Link { text },
            "the other name of /run",
        );
    }
}

fn is_private(path: &Path) -> bool {
    PRIVATE.iter().any(|(place, ..)| path.starts_with(place))
}

fn system(config: &Config, facts: &Facts, layout: &mut Layout) {
    let visible = |path: &Path| {
        let in_system = facts
            .system
            .iter()
            .any(|place| place.form == SystemForm::Directory && path.starts_with(&place.path));
        config.root == Root::All || in_system || is_private(path)
    };
    for SystemPlace { path, form, reason } in &facts.system {
        if config.root == Root::All && !is_private(path) {
            continue;
        }
        let operation = match form {
            SystemForm::Directory => read_only(path),
            SystemForm::Link { text, real } if visible(real) => {
                Operation::Link { text: text.clone() }
            }
            // The link leads to where nothing is shown: show its target in its place.
            SystemForm::Link { real, .. } => read_only(real),
        };
        layout.add(path, operation, *reason);
    }
    for secret in facts.secrets.iter().filter(|secret| visible(&secret.path)) {
        let operation = match secret.is_directory {
            true => Operation::HiddenDirectory,
            false => Operation::HiddenFile,
        };
        layout.cover_elsewhere(&secret.path, &operation, SECRET_REASON);
        layout.add(&secret.path, operation, SECRET_REASON);
    }
}

fn devices(layout: &mut Layout) {
    let reason = "no disks, no input devices, no other terminals";
    layout.add("/dev", Operation::Devices, reason);
    let reason = "shared memory of the sandbox's own";
    layout.add("/dev/shm", Operation::Empty { mode: 0o1777 }, reason);
}

fn processes(facts: &Facts, layout: &mut Layout) {
    match facts.procfs {
        Procfs::Fresh => {
            let reason = "the sandbox's own processes only";
            layout.add("/proc", Operation::Processes, reason);
            // Root owns the kernel's settings, also without any capability; bubblewrap
            // covers some of /proc for that reason, but not /proc/sys.
            if facts.owns_kernel_settings {
                let reason = "the kernel's settings belong to this user";
                layout.add("/proc", Operation::Freeze, reason);
            }
        }
        Procfs::Outer => {
            let reason = "a part of it is masked here, so the kernel refuses a fresh one";
            layout.add("/proc", read_only("/proc"), reason);
        }
    }
}
