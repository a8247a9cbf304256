//! `stockade doctor`: what this machine lacks, what that costs, and the smallest fix.
//!
//! # Theory of operation
//! A [`Check`] is data: a name, a state, what was found, what it costs, what would mend it.
//! Most are made from files below `/proc` ([`Machine`]), so that tests can show them any
//! machine. Those say *why* something does not work. Whether it does work is never concluded
//! from them: [`session`] tries it, by starting a session of the real thing in a process of
//! its own.

mod apparmor;
mod bubblewrap;
mod container;
mod guards;
mod kernel;
mod machine;
mod namespaces;
mod nft;
mod session;
mod shims;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use stockade_sys::{namespace::UserNamespaceError, shortage};
use stockade_warden::SessionError;

use crate::{args, exit::Refused, terminal};
use machine::Machine;

pub(crate) fn doctor(arguments: &args::Doctor) -> Result<ExitCode> {
    if arguments.write_apparmor {
        return apparmor::write();
    }
    let machine = Machine::this();
    let bubblewrap = bubblewrap::check();
    let (trial, session) = match bubblewrap.state {
        // What that takes, and why, is said once.
        CheckState::Failure => (Trial::Failed, vec![session::not_tried(bubblewrap.name)]),
        CheckState::Ok | CheckState::Warning => session::checks(&machine),
    };
    let mut checks = vec![kernel::version(&machine), kernel::seccomp(&machine)];
    checks.extend(container::engine(&machine, trial));
    checks.extend(namespaces::limits(&machine));
    checks.extend(namespaces::apparmor(&machine, trial));
    checks.extend(namespaces::capabilities(&machine));
    checks.push(nft::check(&machine, trial == Trial::Started));
    checks.push(bubblewrap);
    checks.extend(session);
    checks.push(kernel::ping(&machine));
    checks.extend(kernel::ipv6(&machine));
    checks.extend(workspace::checks());
    checks.extend(shims::checks());
    checks.extend(guards::checks());

    if arguments.json {
        terminal::print(format_args!("{:#}\n", as_json(&checks)))?;
    } else {
        terminal::write(as_text(&checks).as_bytes())?;
    }
    Ok(match worst(&checks) {
        CheckState::Failure => ExitCode::FAILURE,
        CheckState::Ok | CheckState::Warning => ExitCode::SUCCESS,
    })
}

/// How bad something is, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Ok,
    /// Sessions start, but something is weaker or does not work in them.
    Warning,
    Failure,
}

impl CheckState {
    fn word_and_colour(self) -> (&'static str, &'static str) {
        match self {
            Self::Ok => ("ok", "\x1b[32m"),
            Self::Warning => ("warning", "\x1b[33m"),
            Self::Failure => ("failure", "\x1b[31m"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    Started,
    /// The kernel or who runs it gave no namespaces.
    Forbidden,
    Failed,
}

impl Trial {
    /// What a failure says about namespaces. One that was made, but in which the kernel lets the
    /// user not be mapped, was not forbidden, and neither was one too many.
    fn of(error: &SessionError) -> Self {
        use stockade_jail::Error::{NetworkNamespace, UserNamespace};
        let refusal = match error {
            SessionError::Jail(NetworkNamespace(refusal)) => refusal,
            SessionError::Jail(UserNamespace {
                error: UserNamespaceError::Create(refusal),
                ..
            }) => refusal,
            _ => return Self::Failed,
        };
        match shortage::advice(refusal) {
            Some(_) => Self::Failed,
            None => Self::Forbidden,
        }
    }
}

/// What keeps every session of this machine from starting, for a launch that has failed.
#[derive(Debug)]
pub(crate) struct Obstacles {
    machine: Machine,
    limits: Vec<Check>,
}

impl Obstacles {
    /// Call it before the launch, which enters a user namespace with limits of its own.
    pub(crate) fn look() -> Self {
        let machine = Machine::this();
        let limits = namespaces::limits(&machine);
        Self { machine, limits }
    }

    /// The obstacle that explains a failure, and what removes it.
    pub(crate) fn explain(&self, error: &SessionError) -> Option<Refused> {
        use stockade_jail::Error as Jail;
        use stockade_wall::Error as Wall;
        let is_of_the_machine = match error {
            SessionError::Jail(_) | SessionError::Capabilities(_) => true,
            SessionError::Wall(wall) => matches!(
                wall,
                Wall::Prepare { .. }
                    | Wall::Stage { .. }
                    | Wall::Start { .. }
                    | Wall::BubblewrapUnstartable { .. }
                    | Wall::BubblewrapFailed(_)
            ),
            SessionError::Gate(_)
            | SessionError::Publish(_)
            | SessionError::Questions(_)
            | SessionError::StageThread => false,
        };
        if !is_of_the_machine {
            return None;
        }
        let machine = &self.machine;
        let mut checks = vec![kernel::version(machine), kernel::seccomp(machine)];
        checks.extend(namespaces::capabilities(machine));
        checks.extend(self.limits.iter().cloned());
        checks.extend(container::engine(machine, Trial::of(error)));
        if let SessionError::Jail(Jail::Filter(_) | Jail::Pair(_)) = error {
            checks.push(nft::check(machine, false));
        }
        let mut failures = checks
            .into_iter()
            .filter(|it| it.state == CheckState::Failure);
        let Check { found, fix, .. } = failures.next()?;
        Some(Refused {
            what: format!("no session can be started: {found}"),
            fix: fix?,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    state: CheckState,
    found: String,
    /// What does not work, or is not protected, because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            state: CheckState::Ok,
            found: found.into(),
            cost: None,
            fix: None,
        }
    }

    fn warning(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: CheckState::Warning,
            ..Self::ok(name, found)
        }
    }

    fn failure(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: CheckState::Failure,
            cost: Some("no session can be started".to_owned()),
            ..Self::ok(name, found)
        }
    }

    fn cost(self, cost: impl Into<String>) -> Self {
        Self {
            cost: Some(cost.into()),
            ..self
        }
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }
}

fn worst(checks: &[Check]) -> CheckState {
    let states = checks.iter().map(|check| check.state);
    states.max().unwrap_or(CheckState::Ok)
}

fn as_json(checks: &[Check]) -> serde_json::Value {
    json!({
        "version": 1,
        "stockade": env!("CARGO_PKG_VERSION"),
        "state": worst(checks),
        "checks": checks,
    })
}

fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let (word, colour) = check.state.word_and_colour();
        let word = terminal::coloured(colour, word, 7);
        text += &format!("{word}  {:18}  {}\n", check.name, below(&check.found));
        for (word, what) in [("costs", &check.cost), ("fix", &check.fix)] {
            if let Some(what) = what {
                text += &format!("{:29}{word}: {}\n", "", below(what));
            }
        }
    }
    text.push_str(match worst(checks) {
        CheckState::Ok => "All is well.\n",
        CheckState::Warning => "Sessions can be started; the warnings say what they lack.\n",
        CheckState::Failure => "Fix the failures above to start sessions.\n",
    });
    text
}

/// Further lines of a text stand below its first.
fn below(text: &str) -> String {
    text.trim_end().replace('\n', &format!("\n{:29}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_is_that_of_the_whole() {
        let [ok, warning, failure] = [
            Check::ok("a", "1"),
            Check::warning("b", "2"),
            Check::failure("c", "3"),
        ];
        assert_eq!(worst(&[]), CheckState::Ok);
        assert_eq!(worst(&[warning.clone(), ok.clone()]), CheckState::Warning);
        assert_eq!(worst(&[ok, failure, warning]), CheckState::Failure);
    }

    fn explained(files: &[(&str, &str)], error: &SessionError) -> Option<Refused> {
        let (_root, machine) = machine::tests::machine(files);
        let limits = namespaces::limits(&machine);
        Obstacles { machine, limits }.explain(error)
    }

    const USER: (&str, &str) = ("/proc/self/ns/user", "");
    const FILTERS: (&str, &str) = ("/proc/sys/kernel/seccomp/actions_avail", "kill_process");
    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.8.0");

    #[test]
    fn a_kernel_that_is_too_old_explains_what_it_refuses() {
        let old = ("/proc/sys/kernel/osrelease", "5.10.0-32-amd64\n");
        let refusal = stockade_wall::Error::Prepare {
            what: "starting bubblewrap",
            error: std::io::ErrorKind::InvalidInput.into(),
        };
        let refused = explained(&[USER, FILTERS, old], &refusal.into()).expect("an obstacle");
        let wanted = "no session can be started: Linux 5.10.0-32-amd64 is too old";
        assert_eq!(refused.what, wanted);
        assert_eq!(refused.fix, "use Linux 5.12 or newer");
        // It does not explain what is the user's own.
        let own = stockade_wall::Error::HomeUnset.into();
        assert!(explained(&[USER, FILTERS, old], &own).is_none());
    }

    #[test]
    fn modules_that_cannot_be_loaded_any_more_explain_a_filter_that_is_refused() {
        const MODULES: &str = "/lib/modules/6.8.0/modules";
        let (builtin, dep) = (format!("{MODULES}.builtin"), format!("{MODULES}.dep"));
        let all = "a/nf_tables.ko:\na/veth.ko:\n";
        let locked = ("/proc/sys/kernel/modules_disabled", "1\n");
        let files = [USER, FILTERS, RELEASE, (&builtin, ""), (&dep, all), locked];
        let missing = || std::io::ErrorKind::NotFound.into();
        let filter = stockade_jail::Error::Filter(missing()).into();
        let refused = explained(&files, &filter).expect("an obstacle");
        assert!(
            refused.what.contains("no module can be loaded"),
            "{refused:?}"
        );
        assert!(refused.fix.contains("modules-load.d"), "{refused:?}");
        assert!(
            explained(&files[..5], &filter).is_none(),
            "it can be loaded"
        );
        let step = "add the route";
        let other = stockade_jail::Error::Plumbing {
            step,
            error: missing(),
        };
        assert!(explained(&files, &other.into()).is_none());
    }

    #[test]
    fn a_filter_is_blamed_for_namespaces_that_were_refused_and_not_for_others() {
        let podman = ("/run/.containerenv", "");
        let filtered = ("/proc/self/status", "Seccomp:\t2\n");
        let files = [USER, FILTERS, RELEASE, podman, filtered];
        let identity = stockade_sys::namespace::Identity { uid: 0, gid: 0 };
        let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let user_namespace = |error| -> SessionError {
            stockade_jail::Error::UserNamespace { identity, error }.into()
        };
        let created = user_namespace(UserNamespaceError::Create(denied()));
        let refused = explained(&files, &created).expect("an obstacle");
        assert!(refused.fix.contains("seccomp=unconfined"), "{refused:?}");
        // Root without CAP_SETFCAP (--cap-drop=all): its namespace is made, and stays empty.
        let mapped = user_namespace(UserNamespaceError::Map {
            file: "/proc/self/uid_map",
            error: denied(),
        });
        assert!(explained(&files, &mapped).is_none());
        assert!(mapped.fix().expect("a fix").contains("--cap-add SETFCAP"));
    }

    #[test]
    fn no_message_repeats_its_cause() {
        let identity = stockade_sys::namespace::Identity { uid: 1, gid: 1 };
        let cause = || std::io::Error::from_raw_os_error(1);
        let step = "add the route";
        let map = UserNamespaceError::Map {
            file: "/proc/self/uid_map",
            error: cause(),
        };
        for error in [
            stockade_jail::Error::UserNamespace {
                identity,
                error: map,
            },
            stockade_jail::Error::NetworkNamespace(cause()),
            stockade_jail::Error::Plumbing {
                step,
                error: cause(),
            },
            stockade_jail::Error::Filter(cause()),
        ] {
            let said = format!("{:#}", anyhow::Error::from(SessionError::from(error)));
            assert_eq!(said.matches("os error").count(), 1, "{said}");
        }
    }

    #[test]
    fn what_is_not_said_is_not_there_for_programs_either() {
        let checks = [
            Check::ok("a", "1"),
            Check::warning("b", "2").cost("c").fix("f"),
        ];
        let json = as_json(&checks);
        assert_eq!(json["state"], "warning");
        assert_eq!(
            json["checks"],
            json!([
                { "name": "a", "state": "ok", "found": "1" },
                { "name": "b", "state": "warning", "found": "2", "cost": "c", "fix": "f" },
            ])
        );
    }
}
