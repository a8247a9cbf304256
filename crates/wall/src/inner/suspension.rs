//! A suspended session: nothing inside runs.
//!
//! When the command stops, so does the warden, for that is what the caller's shell waits for; and with
//! it stops its watch over what the session does to git, just when somebody may type `git status`. So
//! process 1 stops everything else inside first, and stays awake itself.
//!
//! No program can block SIGSTOP, and one call sends it to all processes of the namespace and of those
//! below it; who is about to fork has to take it first. But it lasts until SIGCONT, which can still
//! come: from a call that is under way, and later from the kernel, by a timer (timer_create(2)) or at
//! the death of a parent. No filter of system calls sees which signal a timer is to send. So
//!
//! - nothing counts as stopped before all threads are, and two looks in a row find that no process
//!   has run in between;
//! - from then on process 1 looks again and again. If a process has run, however shortly, or is gone,
//!   it kills everything inside and wakes the warden, which puts back what was changed.
//!
//! What ran is known by the kernel's clocks of processes, which stand still with them: a process that
//! wakes up, does something and stops again between two looks is seen, too.
//!
//! Shells inside must not take their children for stopped. They are stopped before them, and continued
//! after them. What had stopped before stays so.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{io::Errno, process::Pid};
use stockade_sys::{
    process::cpu_time,
    signals::{self, Recipient, Signal},
};

use crate::control::Report;

/// How long the rest of the command's group has to tidy up and stop by itself.
const GRACE: Duration = Duration::from_millis(100);
/// How often is looked until nothing runs, from then on, and how often the warden is woken.
const SOON: Duration = Duration::from_millis(5);
const OFTEN: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_millis(100);
/// How long a process is waited for that the kernel does not let stop: because of a disk, or by
/// vfork(2), whose child has stopped. If it does run later, that is seen.
const UNINTERRUPTIBLE: Duration = Duration::from_secs(2);
/// How long the others are. On a machine that is not overloaded it takes milliseconds.
const LONGEST: Duration = Duration::from_secs(10);

pub(super) struct Suspension {
    /// The command, which is also its process group.
    command: Pid,
    begun: Instant,
    /// What had stopped before we had anything stop.
    stopped_before: Option<HashSet<Pid>>,
    phase: Phase,
}

enum Phase {
    /// With what the last look found, if nothing ran.
    Freezing(Option<Clocks>),
    Frozen(Clocks),
    /// All is lost, and everything inside killed.
    Awake,
}

/// How long each process has run.
type Clocks = HashMap<Pid, Duration>;

impl Suspension {
    pub(super) fn begin(command: Pid) -> Self {
        Self {
            command,
            begun: Instant::now(),
            stopped_before: None,
            phase: Phase::Freezing(None),
        }
    }

    /// How soon there is something to do.
    pub(super) fn interval(&self) -> Duration {
        match self.phase {
            Phase::Freezing(_) => SOON,
            Phase::Frozen(_) => OFTEN,
            Phase::Awake => AGAIN,
        }
    }

    /// Whether the warden may be stopped, so that only [`Report::Awake`] reaches it.
    pub(super) fn is_deaf(&self) -> bool {
        !matches!(self.phase, Phase::Freezing(_))
    }

    /// Goes on, and says what there is to report.
    pub(super) fn turn(&mut self) -> io::Result<Option<Report>> {
        match &self.phase {
            Phase::Freezing(_) => self.freeze(),
            Phase::Frozen(clocks) if clocks.iter().all(is_unchanged) => Ok(None),
            Phase::Frozen(_) => {
                self.give_up();
                Ok(Some(Report::Awake))
            }
            Phase::Awake => Ok(Some(Report::Awake)),
        }
    }

    fn freeze(&mut self) -> io::Result<Option<Report>> {
        let processes = processes()?;
        if self.stopped_before.is_none() {
            let is_busy = |it: &Process| it.group == self.command && it.activity.may_run();
            if self.begun.elapsed() < GRACE && processes.iter().any(is_busy) {
                return Ok(None);
            }
            let stopped = processes
                .iter()
                .filter(|it| it.activity == Activity::Stopped);
            self.stopped_before = Some(stopped.map(|it| it.pid).collect());
            self.begun = Instant::now();
            stop_downwards(processes);
            stop_all();
            return Ok(None);
        }
        let waited = self.begun.elapsed();
        let is_still = |it: &Process| match it.activity {
            Activity::Running => false,
            Activity::Uninterruptible => waited > UNINTERRUPTIBLE,
            Activity::Stopped | Activity::Traced | Activity::Dead => true,
        };
        let clocks = processes
            .iter()
            .all(is_still)
            .then(|| clocks_of(&processes));
        if let (Some(now), Phase::Freezing(Some(before))) = (&clocks, &self.phase)
            && now == before
        {
            self.phase = Phase::Frozen(now.clone());
            return Ok(Some(Report::Frozen));
        }
        if waited > LONGEST {
            self.give_up();
            return Ok(Some(Report::Awake));
        }
        stop_all();
        self.phase = Phase::Freezing(clocks);
        Ok(None)
    }

    /// Kills everything inside.
    pub(super) fn give_up(&mut self) {
        self.phase = Phase::Awake;
        // Fails only if nobody is left.
        let _ = signals::send(Signal::KILL, Recipient::Others);
    }

    /// Continues what was stopped, unless all is lost.
    pub(super) fn end(self) -> io::Result<Option<Self>> {
        if matches!(self.phase, Phase::Awake) {
            return Ok(Some(self));
        }
        if let Some(stopped_before) = self.stopped_before {
            for level in by_depth(processes()?).into_iter().rev() {
                for process in level {
                    if !stopped_before.contains(&process.pid) {
                        // Fails only if somebody outside has killed it.
                        let _ = signals::send(Signal::CONT, Recipient::Process(process.pid));
                    }
                }
            }
        }
        Ok(None)
    }
}

fn is_unchanged((pid, before): (&Pid, &Duration)) -> bool {
    cpu_time(*pid) == Some(*before)
}

/// Those that may run again.
fn clocks_of(processes: &[Process]) -> Clocks {
    let living = processes.iter().filter(|it| it.activity != Activity::Dead);
    living
        .filter_map(|it| Some((it.pid, cpu_time(it.pid)?)))
        .collect()
}

fn stop_all() {
    // Fails only if nobody is there.
    let _ = signals::send(Signal::STOP, Recipient::Others);
}

/// Stops parents before their children, as far as that can be had soon: a shell that waits for a child
/// would be told that it has stopped. It is no protection, and what it leaves awake does not matter.
fn stop_downwards(processes: Vec<Process>) {
    const LEVEL: Duration = Duration::from_millis(100);
    const ALL: Duration = Duration::from_secs(1);
    let begin = Instant::now();
    for level in by_depth(processes) {
        for process in &level {
            let _ = signals::send(Signal::STOP, Recipient::Process(process.pid));
        }
        let sent = Instant::now();
        let runs = |it: &Process| Process::read(it.pid).is_ok_and(|now| now.activity.may_run());
        while level.iter().any(runs) && sent.elapsed() < LEVEL && begin.elapsed() < ALL {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// By how far they are from process 1, the nearest first.
fn by_depth(processes: Vec<Process>) -> Vec<Vec<Process>> {
    let parents: HashMap<_, _> = processes.iter().map(|it| (it.pid, it.parent)).collect();
    let mut levels: BTreeMap<usize, Vec<Process>> = BTreeMap::new();
    for process in processes {
        let mut depth = 0;
        let mut above = process.parent;
        // The table may have been read while it changed.
        while let Some(parent) = above.filter(|_| depth < parents.len()) {
            depth += 1;
            above = parents.get(&parent).copied().flatten();
        }
        levels.entry(depth).or_default().push(process);
    }
    levels.into_values().collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    /// None for those that came from another namespace.
    parent: Option<Pid>,
    group: Pid,
    activity: Activity,
}

/// Of a thread or of a process, of which its busiest thread counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    Dead,
    Stopped,
    /// Stopped by a debugger.
    Traced,
    Uninterruptible,
    Running,
}

impl Activity {
    fn may_run(self) -> bool {
        self >= Self::Uninterruptible
    }
}

/// All that process 1 sees but itself.
fn processes() -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw).filter(|pid| !pid.is_init()) else {
            continue;
        };
        match Process::read(pid) {
            Ok(process) => processes.push(process),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(processes)
}

impl Process {
    fn read(pid: Pid) -> io::Result<Self> {
        let directory = format!("/proc/{}", pid.as_raw_nonzero());
        let mut process = Self::parse(pid, &stat(Path::new(&directory))?)?;
        // The first thread can end before the others.
        for thread in fs::read_dir(format!("{directory}/task"))? {
            let thread = thread.and_then(|thread| stat(&thread.path()));
            match thread.and_then(|stat| Self::parse(pid, &stat)) {
                Ok(thread) => process.activity = process.activity.max(thread.activity),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(process)
    }

    /// From "PID (NAME) STATE PARENT GROUP …". A name may hold anything.
    fn parse(pid: Pid, stat: &[u8]) -> io::Result<Self> {
        let text = String::from_utf8_lossy(stat);
        let parsed = text.rsplit_once(") ").and_then(|(_, rest)| {
            let mut fields = rest.split(' ');
            let activity = match fields.next()? {
                "T" => Activity::Stopped,
                "t" => Activity::Traced,
                "Z" | "X" => Activity::Dead,
                "D" => Activity::Uninterruptible,
                _ => Activity::Running,
            };
            let mut number = || fields.next()?.parse().ok();
            let (parent, group): (i32, i32) = (number()?, number()?);
            Some(Self {
                pid,
                parent: Pid::from_raw(parent),
                group: Pid::from_raw(group).unwrap_or(pid),
                activity,
            })
        });
        parsed.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn stat(directory: &Path) -> io::Result<Vec<u8>> {
    fs::read(directory.join("stat"))
}

fn is_gone(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    number == Some(Errno::NOENT.raw_os_error()) || number == Some(Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("a number")
    }

    #[test]
    fn the_kernels_table_is_read_whatever_a_program_is_called() {
        let process = Process::parse(pid(7), b"7 (a) R 1 1 (\xff) T 3 4 0 0 -1").expect("a line");
        let expected = Process {
            pid: pid(7),
            parent: Some(pid(3)),
            group: pid(4),
            activity: Activity::Stopped,
        };
        assert_eq!(process, expected);
        assert!(Process::parse(pid(7), b"7 (a) R 1").is_err());
        let own = Process::read(rustix::process::getpid()).expect("our own");
        assert_eq!(own.activity, Activity::Running);
    }

    #[test]
    fn parents_come_before_their_children_whatever_their_numbers() {
        let process = |own, parent| Process {
            pid: pid(own),
            parent: Pid::from_raw(parent),
            group: pid(own),
            activity: Activity::Running,
        };
        let all = vec![process(3, 9), process(9, 1), process(5, 3), process(6, 1)];
        let levels = by_depth(all).into_iter();
        let levels: Vec<Vec<_>> = levels
            .map(|level| level.iter().map(|it| it.pid).collect())
            .collect();
        assert_eq!(levels, [vec![pid(9), pid(6)], vec![pid(3)], vec![pid(5)]]);
        // As no table is.
        assert_eq!(by_depth(vec![process(2, 3), process(3, 2)]).len(), 1);
    }
}
