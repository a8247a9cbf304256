//! Where the product's time goes: the moments of telling system calls, by strace.
//!
//! Only these calls stop for the tracer (`--seccomp-bpf`), so that most of the run takes the
//! time it takes. Some is added still: threads and processes are slower to start under it.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::PRODUCT;

const CALLS: &str = "trace=execve,unshare,exit_group";
const FILE: &str = "/tmp/trace";

/// What happens between one moment of [`moments`] and the next.
const STAGES: [&str; 8] = [
    "configuration, facts about the host, plan",
    "user, mount and network namespaces; the sandbox's files; control group",
    "bubblewrap: namespaces and mounts",
    "process 1: filter, limits, start of the command",
    "`true`",
    "ends of process 1 and of bubblewrap",
    "ends of gate and jail",
    "end of the process, as the kernel closes its sockets and namespaces",
];

/// Each stage and its median, in milliseconds.
pub(super) fn stages(traces: usize) -> Result<Vec<(&'static str, f64)>> {
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
    let stage = |(number, name)| {
        let lengths = runs
            .iter()
            .map(|moments| moments[number + 1] - moments[number]);
        let mut lengths: Vec<f64> = lengths.collect();
        lengths.sort_by(f64::total_cmp);
        (name, lengths[lengths.len() / 2] * 1000.0)
    };
    Ok(STAGES.into_iter().enumerate().map(stage).collect())
}

/// Process, time and text of a line: `28793 1794787357.505963 unshare(CLONE_NEWUSER) = 0`.
fn event(line: &str) -> Option<(&str, f64, &str)> {
    let (process, rest) = line.split_once(' ')?;
    let (time, text) = rest.trim_start().split_once(' ')?;
    Some((process, time.parse().ok()?, text))
}

/// The beginning, the ends of all stages but the last, and the end, in seconds.
fn moments(trace: &str) -> Option<[f64; STAGES.len() + 1]> {
    let mut events = trace.lines().filter_map(event);
    // The next event of a process, or of any, that begins so.
    let mut next = |wanted: Option<&str>, start: &str| {
        events.find(|(process, _, text)| {
            wanted.is_none_or(|wanted| *process == wanted) && text.starts_with(start)
        })
    };
    let start = next(None, "execve(")?;
    let user = next(None, "unshare(CLONE_NEWUSER")?;
    let bubblewrap = next(None, "execve(")?;
    let inner = next(None, "execve(\"/run/stockade/init\"")?;
    let mut command = next(None, "execve(")?;
    // It looks in several directories.
    while !command.2.ends_with("= 0") {
        command = next(None, "execve(")?;
    }
    let done = next(Some(command.0), "exit_group(")?;
    let walled = next(Some(bubblewrap.0), "+++ exited")?;
    let over = next(Some(start.0), "exit_group(")?;
    let end = next(Some(start.0), "+++ exited")?;
    let all = [
        start, user, bubblewrap, inner, command, done, walled, over, end,
    ];
    Some(all.map(|(_, time, _)| time))
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
        let expected = [1.0, 2.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0];
        assert_eq!(moments(TRACE), Some(expected));
        let cut = TRACE.replace("CLONE_NEWUSER", "CLONE_NEWUTS");
        assert_eq!(moments(&cut), None);
    }
}
