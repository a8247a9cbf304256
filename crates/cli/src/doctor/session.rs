//! Whether a session starts: by starting one.
//!
//! It is one of the real thing, jail and wall, in a process of its own: entering a user
//! namespace is for good. Its workspace is an empty directory, its command this program,
//! which says its version there.

use std::{
    convert, env,
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt as _, FileExt as _},
    },
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, WaitOptions, kill_process, setsid, waitpid},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};
use serde::{Deserialize, Serialize};
use stockade_config::Effective;
use stockade_jail::NAME_SERVER;
use stockade_sys::{confine::Landlock, deadline::wait_readable};
use stockade_wall::{CommandLine, Config, INNER_STAGE, Layer, LayerState, Network, Protection};
use stockade_warden::{Planned, SessionError, SessionRequest};

use super::{Check, Trial, container::Engine, machine::Machine};
use crate::terminal;

const NAME: &str = "session";

/// A session starts in milliseconds; a machine that is busy may take its time.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of it, as the process that tried it tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Attempt {
    Started {
        /// Protections that are not there, by the wall's names for them, and why.
        lacking: Vec<(String, String)>,
    },
    Failed {
        what: String,
        fix: Option<String>,
        /// There were no namespaces to be had.
        forbidden: bool,
    },
}

pub(super) fn checks(machine: &Machine) -> (Trial, Vec<Check>) {
    match attempt() {
        Ok(Attempt::Started { lacking: layers }) => {
            let mut checks = vec![Check::ok(
                NAME,
                "a session with a jail was started, and ended",
            )];
            let lacking = |(name, why): &(String, String)| lacking(name, why, machine);
            checks.extend(layers.iter().filter_map(lacking));
            (Trial::Started, checks)
        }
        Ok(Attempt::Failed {
            what,
            fix,
            forbidden,
        }) => {
            let check = Check {
                fix,
                ..Check::failure(NAME, what)
            };
            let trial = if forbidden {
                Trial::Forbidden
            } else {
                Trial::Failed
            };
            (trial, vec![check])
        }
        Err(error) => {
            let check = Check::warning(NAME, format!("it could not be tried: {error:#}"))
                .cost("it is not known whether sessions start")
                .fix("try it: stockade run -- true");
            (Trial::Failed, vec![check])
        }
    }
}

/// Without something that a session cannot do without.
pub(super) fn not_tried(without: &str) -> Check {
    Check::failure(NAME, format!("not tried, for want of {without}"))
}

/// What a protection that is not there costs, and what would bring it.
fn lacking(layer: &str, why: &str, machine: &Machine) -> Option<Check> {
    let mut all = Protection::ALL.into_iter();
    let (name, cost, fix) = match all.find(|it| it.name() == layer)? {
        // They are there, or the launch is refused.
        Protection::SystemCalls | Protection::NoUserNamespaces | Protection::NoMountNamespaces => {
            return None;
        }
        Protection::Scopes => (
            "landlock",
            "without a jail (mode \"host\"), the command can connect to abstract sockets of the \
             desktop; the gate's thread can open files",
            landlock(machine, "6.12"),
        ),
        Protection::Files => (
            "landlock-files",
            "hardening = \"strict\" is weaker",
            landlock(machine, "5.13"),
        ),
        Protection::OwnProcesses => (
            "proc",
            "the command sees the command lines of the processes around the sandbox, and the addresses \
             and open ports of the network outside",
            Engine::of(machine)
                .map_or("let no part of /proc be masked", Engine::unmask)
                .to_owned(),
        ),
        Protection::ProcessLimit => (
            "process-limit",
            "a fork bomb inside takes the machine with it",
            "do not run Stockade as root".to_owned(),
        ),
        Protection::Scratch => (
            "overlay",
            "it is empty inside, and package caches have none of your downloads",
            "Linux 5.11 or newer with overlayfs (in a container: on a disk, not on overlayfs)"
                .to_owned(),
        ),
        Protection::Caches => (
            "caches",
            "package caches start empty",
            "Linux 5.11 or newer with overlayfs (in a container: ~/.local/state on a disk, not on \
             overlayfs)"
                .to_owned(),
        ),
        Protection::Group => (
            "control-group",
            "limits count for each process on its own; where the user owns the control group of \
             the login, a command can freeze what is in it",
            OWN_GROUP.to_owned(),
        ),
        Protection::Memory => (
            "memory-limit",
            "a limit of memory counts for each process on its own",
            OWN_GROUP.to_owned(),
        ),
    };
    let found = format!("unavailable: {layer}: {why}");
    Some(Check::warning(name, found).cost(cost).fix(fix))
}

/// What brings Landlock, which Linux has had as it is needed since version `since`.
fn landlock(machine: &Machine, since: &str) -> String {
    if machine.landlock != Landlock::Off {
        return format!("Linux {since} or newer, with \"landlock\" in the boot parameter lsm=");
    }
    let others = machine.read("/sys/kernel/security/lsm");
    let others = others.filter(|others| !others.is_empty());
    match others {
        Some(others) => format!("start the kernel with lsm=landlock,{others}"),
        None => "add \"landlock\" to the boot parameter lsm=".to_owned(),
    }
}

const OWN_GROUP: &str =
    "start it in a control group of the user's own, as in: systemd-run --user --scope";

fn attempt() -> Result<Attempt> {
    let workspace = Scratch::make()?;
    let (news, teller) = pipe_with(PipeFlags::CLOEXEC).context("a pipe")?;
    let messages = memfd_create("stockade", MemfdFlags::CLOEXEC).context("a file in memory")?;
    let heard = messages.try_clone().context("a descriptor")?;
    let child = match stockade_sys::process::fork(|| {
        let outcome = try_it(&workspace.0, &messages, File::from(teller));
        u8::from(outcome.is_err())
    }) {
        // It asks unshare(2) whether there are threads, and Docker's filter forbids that call.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Attempt::Failed {
                what: "no namespace can be made: unshare(2) is forbidden".to_owned(),
                fix: None,
                forbidden: true,
            });
        }
        child => child.context("cannot make a process")?,
    };
    let told = hear(File::from(news));
    if told.is_err() {
        // It is a child of ours that has not been waited for, so the number is its own.
        let _ = kill_process(child, Signal::KILL);
    }
    wait(child);
    let mut attempt = told?;
    if let Attempt::Failed { what, .. } = &mut attempt {
        let said = text_of(&File::from(heard));
        if !said.is_empty() {
            what.push_str(&format!("\n{said}"));
        }
    }
    Ok(attempt)
}

/// What the process says before it ends, or an error if it does not come to it.
fn hear(mut news: File) -> Result<Attempt> {
    wait_readable(&news, Instant::now() + PATIENCE).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => {
            anyhow!(
                "it did not come to an end in {} seconds",
                PATIENCE.as_secs()
            )
        }
        _ => error.into(),
    })?;
    let mut said = String::new();
    news.read_to_string(&mut said)?;
    serde_json::from_str(&said).context("the process that tried it died")
}

fn wait(child: Pid) {
    while let Err(rustix::io::Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
}

/// What was written to a file in memory, by whomever.
fn text_of(file: &File) -> String {
    let mut bytes = vec![0; 4096];
    let length = file.read_at(&mut bytes, 0).unwrap_or_default();
    bytes.truncate(length);
    terminal::shown_lines(String::from_utf8_lossy(&bytes).trim())
}

/// In the new process: away from the terminal, tries it and tells.
fn try_it(workspace: &Path, messages: &OwnedFd, mut teller: File) -> io::Result<()> {
    setsid()?;
    // The directory that the caller is in is another matter, and may be gone.
    env::set_current_dir(workspace)?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(messages)?;
    dup2_stderr(messages)?;
    let attempt = start(workspace).unwrap_or_else(|error| Attempt::Failed {
        fix: error.fix(),
        forbidden: Trial::of(&error) == Trial::Forbidden,
        what: format!("{:#}", anyhow::Error::from(error)),
    });
    teller.write_all(serde_json::to_string(&attempt)?.as_bytes())
}

fn start(workspace: &Path) -> Result<Attempt, SessionError> {
    let config = Config {
        network: Network::Jail {
            resolv_conf: stockade_gate::resolv_conf(NAME_SERVER, false, false),
        },
        ..Config::default()
    };
    let effective = Effective::default();
    let request = SessionRequest {
        command: CommandLine {
            program: INNER_STAGE.into(),
            arguments: vec!["--version".into()],
        },
        policy: effective.policy(),
        proxies: stockade_gate::Proxies::default(),
        effective,
        listing: None,
    };
    let ready = Planned::new(&config, Some(workspace))?.launch(request, convert::identity)?;
    let lacking = ready.layers().iter().filter_map(absent).collect();
    let outcome = ready.run().outcome?;
    if outcome.exit_code() == 0 {
        return Ok(Attempt::Started { lacking });
    }
    let complaint = outcome.complaint().unwrap_or_default();
    let code = outcome.exit_code();
    Ok(Attempt::Failed {
        what: format!("this program does not run inside (exit code {code}) {complaint}"),
        fix: None,
        forbidden: false,
    })
}

/// What was not asked for is nobody's fault.
fn absent(layer: &Layer) -> Option<(String, String)> {
    match layer.state {
        LayerState::Active | LayerState::Off(_) => None,
        LayerState::Absent(why) => Some((layer.protection.name().to_owned(), why.to_owned())),
    }
}

/// An empty directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> Result<Self> {
        let path = env::temp_dir().join(format!("stockade-doctor-{}", process::id()));
        let mut builder = DirBuilder::new();
        let made = builder.mode(0o700).create(&path);
        made.with_context(|| format!("cannot make {}", path.display()))?;
        let real = fs::canonicalize(&path).unwrap_or(path);
        Ok(Self(real))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An empty directory that stays does no harm.
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::machine::tests::machine, *};

    #[test]
    fn every_protection_that_can_lack_has_a_check_of_its_own() {
        let (_root, machine) = machine(&[]);
        let lacking = Protection::ALL.into_iter().filter_map(|protection| {
            let layer = Layer {
                protection,
                state: LayerState::Absent("a test"),
            };
            let (name, why) = absent(&layer).expect("a layer");
            lacking(&name, &why, &machine)
        });
        let names: BTreeSet<_> = lacking.map(|check| check.name).collect();
        assert_eq!(names.len(), Protection::ALL.len() - 3, "{names:?}");
    }

    #[test]
    fn a_kernel_that_was_started_without_landlock_is_told_from_one_that_has_none() {
        let modules = ("/sys/kernel/security/lsm", "lockdown,capability,yama\n");
        let (_root, mut machine) = machine(&[modules]);
        assert!(landlock(&machine, "6.12").starts_with("Linux 6.12 or newer"));
        machine.landlock = Landlock::Off;
        let wanted = "start the kernel with lsm=landlock,lockdown,capability,yama";
        assert_eq!(landlock(&machine, "6.12"), wanted);
    }

    #[test]
    fn a_masked_proc_names_the_engines_own_argument() {
        let (_root, machine) = machine(&[("/.dockerenv", "")]);
        let layer = Protection::OwnProcesses.name();
        let fix = lacking(layer, "masked", &machine).and_then(|check| check.fix);
        assert!(fix.expect("a fix").contains("systempaths=unconfined"));
    }
}
