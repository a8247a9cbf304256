//! The plan as arguments of bubblewrap.
//!
//! They go to bubblewrap through a descriptor, each ended by NUL. So an argument can hold any byte
//! that a path or a variable can hold, and nothing shows in the process list.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::staging;
use crate::{
    plan::{Isolation, Operation, Plan, Step},
    sabotage,
};

/// Bubblewrap's options for `plan`.
pub(crate) fn arguments(plan: &Plan) -> Vec<u8> {
    let mut writer = Writer(Vec::new());
    for (isolation, _) in &plan.isolation {
        writer.options(isolation_options(*isolation));
    }
    if plan.nested {
        // For process 1 alone: see `inner::broker`.
        writer.options(&["--cap-add", "CAP_SYS_PTRACE"]);
    }
    if sabotage::gives_capabilities(plan) {
        writer.options(&["--cap-add", "ALL"]);
    }
    // What is staged has no working devices but those in its `/dev`.
    writer.options(&["--dev-bind", staging::ROOT, "/"]);
    let are_in_place = staging::are_in_place(&plan.files).into_iter();
    for ((number, step), is_in_place) in plan.files.iter().enumerate().zip(are_in_place) {
        if !is_in_place {
            let staged = staging::path(number, &step.operation).unwrap_or_default();
            writer.step(step, &staged);
        }
    }
    // The inner stage is told the environment by other means: a hook of the loader's that
    // the user passes on is for the command. This one is where programs are looked for.
    writer.raw("--clearenv");
    for variable in plan.environment.iter().filter(|it| it.name == "PATH") {
        writer.raw("--setenv");
        writer.raw(&variable.name);
        writer.raw(&variable.value);
    }
    writer.raw("--chdir");
    writer.raw(&plan.working_directory);
    // The inner stage is process 1 itself: bubblewrap's own reaper would only be in the
    // way, since it hides stops from us.
    writer.raw("--as-pid-1");
    writer.0
}

fn isolation_options(isolation: Isolation) -> &'static [&'static str] {
    match isolation {
        Isolation::Users => &["--unshare-user"],
        Isolation::Processes => &["--unshare-pid"],
        Isolation::Ipc => &["--unshare-ipc"],
        Isolation::HostName => &["--unshare-uts"],
        Isolation::Cgroups => &["--unshare-cgroup-try"],
        Isolation::Network => &["--unshare-net"],
        Isolation::Capabilities => &["--cap-drop", "ALL"],
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn raw(&mut self, argument: impl AsRef<OsStr>) {
        self.0.extend(argument.as_ref().as_bytes());
        self.0.push(0);
    }

    fn options(&mut self, options: &[&str]) {
        for option in options {
            self.raw(option);
        }
    }

    fn step(&mut self, step: &Step, staged: &str) {
        match &step.operation {
            Operation::ReadOnly { .. }
            | Operation::Text(_)
            | Operation::Socket
            | Operation::Login(_)
            | Operation::HiddenFile
            | Operation::HiddenDirectory => {
                self.options(&["--ro-bind", staged]);
            }
            Operation::Writable { .. }
            | Operation::Scratch { .. }
            | Operation::Kept(_)
            | Operation::Empty { .. } => {
                self.options(&["--bind", staged]);
            }
            Operation::Device { .. } => self.options(&["--dev-bind", staged]),
            // It is on the stage already, as a part of what it protects.
            Operation::Guard(_) | Operation::Absent | Operation::Devices => return,
            Operation::Link { text } => {
                self.raw("--symlink");
                self.raw(text);
            }
            Operation::Processes => self.raw("--proc"),
            Operation::Freeze => self.raw("--remount-ro"),
        }
        self.raw(&step.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Asked, Config, Network, PathRequest},
        facts::{
            Kind,
            tests::{facts, with},
        },
    };

    fn split(bytes: &[u8]) -> Vec<String> {
        let (last, rest) = bytes.split_last().unwrap();
        assert_eq!(*last, 0);
        rest.split(|byte| *byte == 0)
            .map(|argument| String::from_utf8(argument.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn paths_pass_byte_by_byte() {
        let mut facts = facts();
        facts.workspace = "/home/ada/a\nb --bind / /".into();
        facts.current_directory = facts.workspace.clone();
        let plan = Plan::build(&Config::default(), &facts).unwrap();
        let arguments = split(&arguments(&plan));
        let has = |wanted: &[&str]| arguments.windows(wanted.len()).any(|w| w == wanted);
        let workspace = "/home/ada/a\nb --bind / /";
        assert!(has(&["--chdir", workspace]), "{arguments:?}");
    }

    #[test]
    fn nothing_of_the_environment_but_the_search_path_is_for_the_inner_stage() {
        let mut facts = facts();
        facts.environment = [("LD_PRELOAD", "/x.so"), ("PATH", "/usr/bin"), ("LANG", "C")]
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        let config = Config {
            pass: vec![Asked::new("LD_PRELOAD", "a test")],
            ..Config::default()
        };
        let plan = Plan::build(&config, &facts).unwrap();
        let arguments = split(&arguments(&plan));
        let set = arguments
            .windows(2)
            .filter(|window| window[0] == "--setenv")
            .map(|window| window[1].as_str());
        assert_eq!(set.collect::<Vec<_>>(), ["PATH"]);
    }

    #[test]
    fn bubblewrap_puts_in_place_only_what_the_stage_cannot() {
        let (device, file) = ("/dev/kvm", "/home/ada/data");
        let facts = with(facts(), &[(device, Kind::Other), (file, Kind::File)]);
        let config = Config {
            network: Network::Jail {
                resolv_conf: "nameserver 192.0.2.53\n".into(),
            },
            write: [device, file].map(PathRequest::by_user).to_vec(),
            ..Config::default()
        };
        let plan = Plan::build(&config, &facts).unwrap();
        let arguments = split(&arguments(&plan));
        let bound = arguments
            .windows(3)
            .filter(|window| window[0].ends_with("bind"));
        let bound: Vec<_> = bound.map(|window| window[2].as_str()).collect();
        assert_eq!(bound, ["/"]);
    }

    #[test]
    fn the_network_stays_the_starting_threads() {
        let plan = Plan::build(&Config::default(), &facts()).unwrap();
        let arguments = split(&arguments(&plan));
        let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
        assert!(!has("--unshare-net") && !has("--unshare-all"));
        for wanted in ["--unshare-user", "--unshare-pid", "--as-pid-1"] {
            assert!(has(wanted), "{wanted}");
        }
    }
}
