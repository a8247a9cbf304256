//! The plan as arguments of bubblewrap.
//!
//! They go to bubblewrap through a descriptor, each ended by NUL. So an argument can hold any byte
//! that a path or a variable can hold, and nothing shows in the process list.

use std::{
    ffi::OsStr,
    io,
    os::{fd::RawFd, unix::ffi::OsStrExt},
};

use super::staging;
use crate::{
    plan::{Isolation, Operation, Plan, Step},
    sabotage,
};

/// Bubblewrap's options for `plan`. For each file that the plan brings along, `provide`
/// makes a descriptor from which bubblewrap will read the contents.
pub(crate) fn arguments(
    plan: &Plan,
    provide: impl FnMut(&str) -> io::Result<RawFd>,
) -> io::Result<Vec<u8>> {
    let mut writer = Writer {
        bytes: Vec::new(),
        provide,
    };
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
    for (number, step) in plan.files.iter().enumerate() {
        let staged = staging::path(number, &step.operation).unwrap_or_default();
        writer.step(step, &staged)?;
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
    Ok(writer.bytes)
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

struct Writer<F> {
    bytes: Vec<u8>,
    provide: F,
}

impl<F: FnMut(&str) -> io::Result<RawFd>> Writer<F> {
    fn raw(&mut self, argument: impl AsRef<OsStr>) {
        self.bytes.extend(argument.as_ref().as_bytes());
        self.bytes.push(0);
    }

    fn options(&mut self, options: &[&str]) {
        for option in options {
            self.raw(option);
        }
    }

    fn step(&mut self, step: &Step, staged: &str) -> io::Result<()> {
        match &step.operation {
            Operation::ReadOnly { .. } | Operation::HiddenFile | Operation::HiddenDirectory => {
                self.options(&["--ro-bind", staged]);
            }
            Operation::Writable { .. } | Operation::Scratch { .. } | Operation::Empty { .. } => {
                self.options(&["--bind", staged]);
            }
            Operation::Device { .. } => self.options(&["--dev-bind", staged]),
            // It is on the stage already, as a part of what it protects.
            Operation::Guard(_) | Operation::Absent => return Ok(()),
            Operation::Link { text } => {
                self.raw("--symlink");
                self.raw(text);
            }
            Operation::Text(text) => {
                let fd = (self.provide)(text)?.to_string();
                self.options(&["--perms", "0444", "--ro-bind-data", &fd]);
            }
            Operation::Devices => self.raw("--dev"),
            Operation::Processes => self.raw("--proc"),
            Operation::Freeze => self.raw("--remount-ro"),
        }
        self.raw(&step.at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Asked, Config, Network},
        facts::tests::facts,
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
        let arguments = split(&arguments(&plan, |_| Ok(9)).unwrap());
        let has = |wanted: &[&str]| arguments.windows(wanted.len()).any(|w| w == wanted);
        let workspace = "/home/ada/a\nb --bind / /";
        let number = plan
            .files
            .iter()
            .position(|step| step.at == facts.workspace);
        let staged = format!("/tmp/{}", number.unwrap());
        assert!(has(&["--bind", &staged, workspace]), "{arguments:?}");
        assert!(has(&["--chdir", workspace]));
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
        let arguments = split(&arguments(&plan, |_| Ok(9)).unwrap());
        let set = arguments
            .windows(2)
            .filter(|window| window[0] == "--setenv")
            .map(|window| window[1].as_str());
        assert_eq!(set.collect::<Vec<_>>(), ["PATH"]);
    }

    #[test]
    fn files_are_handed_over_by_descriptor() {
        let config = Config {
            network: Network::Jail {
                resolv_conf: "nameserver 192.0.2.53\n".into(),
            },
            ..Config::default()
        };
        let plan = Plan::build(&config, &facts()).unwrap();
        let mut provided = Vec::new();
        let bytes = arguments(&plan, |text| {
            provided.push(text.to_owned());
            Ok(9)
        });
        let arguments = split(&bytes.unwrap());
        assert!(provided.contains(&"nameserver 192.0.2.53\n".to_owned()));
        let wanted = ["--perms", "0444", "--ro-bind-data", "9", "/etc/resolv.conf"];
        assert!(arguments.windows(5).any(|window| window == wanted));
    }

    #[test]
    fn the_network_stays_the_starting_threads() {
        let plan = Plan::build(&Config::default(), &facts()).unwrap();
        let arguments = split(&arguments(&plan, |_| Ok(9)).unwrap());
        let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
        assert!(!has("--unshare-net") && !has("--unshare-all"));
        for wanted in ["--unshare-user", "--unshare-pid", "--as-pid-1"] {
            assert!(has(wanted), "{wanted}");
        }
    }
}
