//! Which program inside a socket belongs to.
//!
//! The kernel tells the inode of a socket of the jail; the process that has it open is looked
//! for among those whose network is the jail. That is best effort: a process may be gone, or
//! have closed the socket, before it is found. A denied connection is held until this has been
//! tried, so it mostly is.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use stockade_gate::Attribution;
pub use stockade_gate::{Program as Process, program_name};
use stockade_jail::Jail;
use stockade_policy::{Flow, Protocol};
use stockade_sys::diag::{SocketTable, Transport};

/// Of so many parts of time the search takes one.
const SHARE: u32 = 30;
/// Characters of a command line that are kept.
const COMMAND_LINE: usize = 400;
/// Those of the path of a program's file. The name of the file itself is never longer.
const FILE: usize = 400;
const ANCESTORS: usize = 8;
/// A search ends after this time: who was denied has been told by then, and is gone. Programs
/// inside can be many, and have very many files open, and the log must go on.
const PATIENCE: Duration = Duration::from_millis(100);
/// Of what the kernel tells about a process as much is read as can be of use. A process can
/// declare all of its memory to be its arguments.
const READ: u64 = 64 << 10;

#[cfg(test)]
pub(crate) fn example() -> Process {
    Process {
        pid: 7,
        exe: "/usr/bin/curl".to_owned(),
        argv: vec!["curl".to_owned()],
        parents: vec!["sh".to_owned()],
    }
}

/// Searches for those who open flows, on the journal's thread, and for those who are denied some,
/// beside the gate.
pub(crate) type SharedSearch = Arc<Mutex<ProgramSearch>>;

/// What the gate is given to search with.
pub(crate) fn attribution(search: &SharedSearch) -> Attribution {
    let search = Arc::clone(search);
    Box::new(move |flow, client| {
        let mut search = search.lock().unwrap_or_else(PoisonError::into_inner);
        search.of(flow, client, true)
    })
}

/// Looks for programs.
#[derive(Debug)]
pub(crate) struct ProgramSearch {
    table: SocketTable,
    /// What `/proc/PID/ns/net` reads for those inside.
    network: PathBuf,
    /// When the next search may begin.
    rested: Instant,
    /// The last one took too long.
    gave_up: bool,
    /// Whose the last one was: mostly the next one's, too.
    last: Option<PathBuf>,
}

impl ProgramSearch {
    /// # Errors
    /// If the kernel does not tell about sockets.
    pub(crate) fn new(jail: &Jail) -> io::Result<Self> {
        let made = jail.run(|| {
            let table = SocketTable::open()?;
            let network = fs::read_link("/proc/thread-self/ns/net")?;
            Ok(Self {
                table,
                network,
                rested: Instant::now(),
                gave_up: false,
                last: None,
            })
        });
        made.map_err(io::Error::other)?
    }

    /// The program whose flow this is, if it is found. There are few kinds of denials, and
    /// each is looked into; of what is allowed there may be very much. But a program inside can see to it
    /// that a search takes long, and be denied something all the time: then there is a rest here, too.
    pub(crate) fn of(&mut self, flow: &Flow, client: SocketAddr, denied: bool) -> Option<Process> {
        let transport = match flow.protocol() {
            Protocol::Tcp => Transport::Tcp,
            Protocol::Udp => Transport::Udp,
            Protocol::Icmp => return None,
        };
        let begin = Instant::now();
        if begin < self.rested && (self.gave_up || !denied) {
            return None;
        }
        let remote = SocketAddr::new(flow.destination(), flow.port()?.get());
        let inode = self.table.inode(transport, client, remote).ok()?;
        let until = begin + PATIENCE;
        let found = self.owner(inode, until);
        self.gave_up = found.is_none() && is_over(until);
        // A program that opens very many flows must not keep this thread busy.
        let spent = begin.elapsed();
        self.rested = begin + (spent * SHARE).min(Duration::from_secs(1));
        found
    }

    fn owner(&mut self, inode: u32, until: Instant) -> Option<Process> {
        let wanted = PathBuf::from(format!("socket:[{inode}]"));
        if let Some(last) = &self.last
            && self.is_inside(last)
            && has_open(last, &wanted, until)
        {
            return describe(last);
        }
        let mut processes = fs::read_dir("/proc").ok()?.filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?;
            number
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then_some(path)
        });
        let owner = processes.find(|process| {
            is_over(until) || (self.is_inside(process) && has_open(process, &wanted, until))
        });
        let owner = owner.filter(|_| !is_over(until))?;
        let process = describe(&owner);
        self.last = Some(owner);
        process
    }

    fn is_inside(&self, process: &Path) -> bool {
        fs::read_link(process.join("ns/net")).is_ok_and(|network| network == self.network)
    }
}

fn is_over(until: Instant) -> bool {
    Instant::now() >= until
}

fn has_open(process: &Path, wanted: &Path, until: Instant) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    descriptors
        .take_while(|_| !is_over(until))
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == wanted))
}

fn describe(process: &Path) -> Option<Process> {
    let status = status_of(process)?;
    let exe = fs::read_link(process.join("exe")).unwrap_or_default();
    let argv = words(&beginning(&process.join("cmdline")).unwrap_or_default());
    let mut parents = Vec::new();
    let mut parent = field(&status, "PPid");
    while let Some(pid) = parent.take()
        && parents.len() < ANCESTORS
    {
        let Some(status) = status_of(&Path::new("/proc").join(pid)) else {
            break;
        };
        // Process 1 inside is ours, and what is above it is outside.
        if inner_number(&status).is_none_or(|inner| inner == 1) {
            break;
        }
        parents.push(field(&status, "Name").unwrap_or_default());
        parent = field(&status, "PPid");
    }
    Some(Process {
        pid: inner_number(&status)?,
        exe: end(&exe.to_string_lossy()),
        argv,
        parents,
    })
}

/// As much of a path as is worth a line: its end. A program can lie very deep, and each of its flows has
/// the path in the log, and whenever `stockade watch` looks.
fn end(path: &str) -> String {
    match path.chars().count().checked_sub(FILE) {
        None | Some(0) => path.to_owned(),
        Some(hidden) => format!("…{}", path.chars().skip(hidden).collect::<String>()),
    }
}

/// A process can give itself any name, also one that is no text.
fn status_of(process: &Path) -> Option<String> {
    let status = beginning(&process.join("status")).ok()?;
    Some(String::from_utf8_lossy(&status).into_owned())
}

fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(READ).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Arguments, each ended by a zero. Of very long ones as much as is worth a line.
fn words(command: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(command);
    let mut left = COMMAND_LINE;
    let mut words = Vec::new();
    for word in text.trim_end_matches('\0').split('\0') {
        let kept: String = word.chars().take(left).collect();
        let cut = kept.len() < word.len();
        left -= kept.chars().count().min(left);
        words.push(if cut { format!("{kept}…") } else { kept });
        // An empty one counts as well: there may be very many.
        left = left.saturating_sub(1);
        if cut || left == 0 {
            break;
        }
    }
    words
}

fn field(status: &str, name: &str) -> Option<String> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// The number in the innermost namespace, of those that have one there.
fn inner_number(status: &str) -> Option<u32> {
    let numbers = field(status, "NSpid")?;
    let mut numbers = numbers.split_whitespace();
    numbers.next()?;
    numbers.next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_search_has_an_end() {
        let file = tempfile::tempfile().expect("a file");
        let (me, number) = (Path::new("/proc/self"), file.as_raw_fd());
        let wanted = fs::read_link(format!("/proc/self/fd/{number}")).expect("its name");
        let now = Instant::now();
        assert!(has_open(me, &wanted, now + Duration::from_secs(60)));
        assert!(!has_open(me, &wanted, now));
    }

    #[test]
    fn of_a_long_path_the_end_is_kept() {
        assert_eq!(end("/usr/bin/curl"), "/usr/bin/curl");
        let name = "\u{1}".repeat(255);
        let deep = end(&format!("/tmp{}/{name}", "/\u{1}".repeat(1800)));
        assert!(deep.starts_with('…') && deep.ends_with(&format!("/{name}")));
        assert_eq!(deep.chars().count(), FILE + 1);
    }

    #[test]
    fn arguments_stay_apart_and_long_ones_are_cut() {
        assert_eq!(words(b"sh\0-c\0a b\0\0"), ["sh", "-c", "a b"]);
        let long = format!("x\0{}\0end\0", "y".repeat(1000));
        let found = words(long.as_bytes());
        assert_eq!(found.len(), 2);
        assert!(found[1].ends_with("y…") && found[1].len() < 420);
        assert!(words(&[0; 5000]).len() < 500);
        assert_eq!(words(b"\xff\0"), ["\u{fffd}"]);
    }
}
