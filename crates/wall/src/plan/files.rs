//! The files of the plan: first the system, then what the configuration asks for.

use std::path::{Path, PathBuf};

use super::{INNER_STAGE, Operation, Step, git, home, layout::Layout, names, requests};
use crate::{
    config::{Config, Root},
    error::Error,
    facts::{Facts, Procfs, SystemForm, SystemPlace},
    tables::system::{PRIVATE, SECRET_REASON},
};

/// The steps, in order. What is not named here does not exist inside.
pub(super) fn steps(config: &Config, facts: &Facts) -> Result<Vec<Step>, Error> {
    let mut layout = Layout::default();
    if config.root == Root::All {
        let root = Operation::ReadOnly {
            source: "/".into(),
            at: "/".into(),
        };
        layout.add(root, "the whole disk");
    }
    private_places(config, &mut layout);
    system(config, facts, &mut layout);
    devices(facts, &mut layout);
    processes(facts, &mut layout);
    home::empty(config, facts, &mut layout)?;
    names::files(config, facts, &mut layout)?;
    layout.add(
        Operation::ReadOnly {
            source: facts.executable.clone(),
            at: INNER_STAGE.into(),
        },
        "starts the command and reports what becomes of it",
    );
    git::file(config, facts, &mut layout)?;
    requests::place(config, facts, &mut layout)?;
    requests::freeze_above(facts, &mut layout);
    layout.add(
        Operation::Freeze { at: "/dev".into() },
        "devices only, no files",
    );
    layout.add(
        Operation::Freeze { at: "/".into() },
        "only the places above can be written to",
    );
    Ok(layout.finish())
}

fn private_places(config: &Config, layout: &mut Layout) {
    for private in PRIVATE {
        let operation = Operation::Empty {
            at: private.path.into(),
            mode: private.mode,
        };
        layout.add(operation, private.reason);
    }
    // With the whole disk, the host's own link is in view.
    if config.root == Root::System {
        let operation = Operation::Link {
            text: "/run".into(),
            at: "/var/run".into(),
        };
        layout.add(operation, "the other name of /run");
    }
}

fn is_private(path: &Path) -> bool {
    PRIVATE.iter().any(|place| path.starts_with(place.path))
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
            SystemForm::Directory => Operation::ReadOnly {
                source: path.clone(),
                at: path.clone(),
            },
            SystemForm::Link { text, real } if visible(real) => Operation::Link {
                text: text.clone(),
                at: path.clone(),
            },
            // The link leads to where nothing is shown: show its target in its place.
            SystemForm::Link { real, .. } => Operation::ReadOnly {
                source: real.clone(),
                at: path.clone(),
            },
        };
        layout.add(operation, *reason);
    }
    for secret in &facts.secrets {
        if !visible(&secret.path) {
            continue;
        }
        let at = secret.path.clone();
        let operation = if secret.is_directory {
            Operation::HiddenDirectory { at }
        } else {
            Operation::HiddenFile { at }
        };
        layout.add(operation, SECRET_REASON);
    }
}

/// The devices that bubblewrap shows, which are those of the host.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

fn devices(facts: &Facts, layout: &mut Layout) {
    let operation = Operation::Devices { at: "/dev".into() };
    layout.add(operation, "no disks, no input devices, no other terminals");
    if facts.is_root {
        for device in DEVICES {
            // Once more, since what is staged is protected itself, and works as a device.
            let operation = Operation::Device {
                source: device.into(),
                at: device.into(),
            };
            let reason = "it belongs to this user, who could close it to all others";
            layout.add(operation, reason);
        }
    }
    let operation = Operation::Empty {
        at: "/dev/shm".into(),
        mode: 0o1777,
    };
    layout.add(operation, "shared memory of the sandbox's own");
}

fn processes(facts: &Facts, layout: &mut Layout) {
    let at = PathBuf::from("/proc");
    match facts.procfs {
        Procfs::Fresh => {
            let operation = Operation::Processes { at: at.clone() };
            layout.add(operation, "the sandbox's own processes only");
            // Root owns the kernel's settings, also without any capability; bubblewrap
            // covers some of /proc for that reason, but not /proc/sys.
            if facts.owns_kernel_settings {
                let operation = Operation::Freeze { at };
                layout.add(operation, "the kernel's settings belong to this user");
            }
        }
        Procfs::Outer => {
            let operation = Operation::ReadOnly {
                source: at.clone(),
                at,
            };
            let reason = "a part of it is masked here, so the kernel refuses a fresh one";
            layout.add(operation, reason);
        }
    }
}
