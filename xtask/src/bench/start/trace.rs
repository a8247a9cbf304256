//! Where the product's time goes: the moments of telling system calls, by strace.
//!
//! Only these calls stop for the tracer (`--seccomp-bpf`), so that most of the run takes the
//! time it takes. Some is added still: threads and processes are slower to start under it.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::results::{Spread, Stage};
use super::stage::PRODUCT;

const CALLS: &str = "trace=execve,unshare,exit_group";
const FILE: &str = "/tmp/trace";

/// What happens between one moment of [`moments`] and the next.
const STAGES: [&str; 10] = [
    "configuration, facts about the host, plan",
    "user namespace, thread of the jail",
    "network namespace, its links, filter, sockets, routes; threads of the gate",
    "mount namespace, stage, control group; the version of bubblewrap",
    "bubblewrap: namespaces and mounts",
    "process 1: filter, limits, start of the command",
    "`true`",
    "ends of process 1 and of bubblewrap",
    "ends of gate and jail",
    "end of the process, as the kernel closes its sockets and namespaces",
];

/// The median of each stage, in milliseconds.
pub(super) fn stages(traces: usize) -> Result<Vec<Stage>> {
    let mut runs = Vec::new();
    for _ in 0..traces {
        let status = Command::new("strace")
            .args(["-f", "--seccomp-bpf", "-q", "-ttt", "-e", CALLS, "-o", FILE])
            .args([PRODUCT, "run", "--", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .context("strace does not start")?;
        ensure!(status.success(), "strace ended with {status}");
        let text = fs::read_to_string(FILE)?;
        runs.push(moments(&text).context("the trace is not as expected")?);
    }
    let stage = |(number, name): (usize, &str)| {
        let lengths = runs.iter().filter_map(|moments| {
            let (from, to) = (moments.get(number)?, moments.get(number + 1)?);
            Some((to - from) * 1000.0)
        });
        Some(Stage {
            name: name.to_owned(),
            milliseconds: Spread::of(lengths)?.median,
        })
    };
    Ok(STAGES.into_iter().enumerate().filter_map(stage).collect())
}

/// One line of a trace: `28793 1794787357.505963 unshare(CLONE_NEWUSER) = 0`.
struct Event<'a> {
    process: &'a str,
    time: f64,
    text: &'a str,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (process, rest) = line.split_once(' ')?;
        let (time, text) = rest.trim_start().split_once(' ')?;
        let time = time.parse().ok()?;
        Some(Self {
            process,
            time,
            text,
        })
    }
}

/// The beginning, the ends of all stages but the last, and the end, in seconds.
fn moments(trace: &str) -> Option<[f64; STAGES.len() + 1]> {
    let mut events = trace.lines().filter_map(Event::parse);
    let mut next = |wanted: &dyn Fn(&Event<'_>) -> bool| events.find(|event| wanted(event));
    let begins = |event: &Event<'_>, start: &str| event.text.starts_with(start);

    let start = next(&|event| begins(event, "execve("))?;
    let own = start.process;
    let user = next(&|event| begins(event, "unshare(CLONE_NEWUSER"))?;
    let network = next(&|event| begins(event, "unshare(CLONE_NEWNET"))?;
    let mount = next(&|event| begins(event, "unshare(CLONE_NEWNS"))?;
    let bubblewrap = next(&|event| begins(event, "execve("))?;
    let inner = next(&|event| begins(event, "execve(\"/run/stockade/init\""))?;
    // It looks in several directories.
    let command = next(&|event| begins(event, "execve(") && event.text.ends_with("= 0"))?;
    let done = next(&|event| event.process == command.process && begins(event, "exit_group("))?;
    let keeper = bubblewrap.process;
    let walled = next(&|event| event.process == keeper && begins(event, "+++ exited"))?;
    let over = next(&|event| event.process == own && begins(event, "exit_group("))?;
    let end = next(&|event| event.process == own && begins(event, "+++ exited"))?;
    let all = [
        start, user, network, mount, bubblewrap, inner, command, done, walled, over, end,
    ];
    Some(all.map(|event| event.time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
10 1.0 execve(\"/home/stockade\", [\"stockade\", \"run\"], 0x7 /* 6 vars */) = 0
11 1.1 execve(\"/usr/bin/bwrap\", [\"/usr/bin/bwrap\", \"--version\"], 0x5) = 0
11 1.2 exit_group(0)   = ?
11 1.2 +++ exited with 0 +++
10 2.0 unshare(CLONE_NEWUSER) = 0
12 3.0 unshare(CLONE_NEWNET) = 0
13 4.0 unshare(CLONE_NEWNS) = 0
13 4.1 unshare(CLONE_NEWCGROUP) = 0
14 5.0 execve(0x55, 0x55, 0x7f) = 0
15 5.5 unshare(CLONE_NEWUSER) = 0
15 6.0 execve(\"/run/stockade/init\", [\"/run/stockade/init\"], 0x55) = 0
16 6.9 execve(\"/usr/local/bin/true\", [\"true\"], 0x56) = -1 ENOENT (No such file or directory)
16 7.0 execve(\"/usr/bin/true\", [\"true\"], 0x56) = 0
16 8.0 exit_group(0)   = ?
15 8.5 exit_group(0)   = ?
15 8.6 +++ exited with 0 +++
14 9.0 +++ exited with 0 +++
10 10.0 exit_group(0)   = ?
12 10.5 +++ exited with 0 +++
10 11.0 +++ exited with 0 +++
";

    #[test]
    fn the_moments_are_those_of_the_right_processes() {
        let expected = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0];
        assert_eq!(moments(TRACE), Some(expected));
        let cut = TRACE.replace("CLONE_NEWNET", "CLONE_NEWUTS");
        assert_eq!(moments(&cut), None);
    }
}
