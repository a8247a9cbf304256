//! The bubblewrap program: where it is and whether it is new enough.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read, Write as _},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::fs::{MemfdFlags, memfd_create};
use stockade_sys::{apparmor::Confinement, deadline::wait_readable};

use crate::error::Error;

/// Where bubblewrap is looked for. Never in `PATH`, which may lead into the workspace.
const PLACES: &[&str] = &[
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

/// The oldest version that will do: the first to read its arguments' permissions and
/// sizes (`--perms`, `--size`) and to be maintained in a stable distribution.
pub(crate) const OLDEST: Version = Version(0, 8, 0);

/// It does nothing else, but the disk that it is on may be slow, or gone.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: usize = 256;
/// What a version begins with.
const NAME: &str = "bubblewrap ";
/// A program that is longer is not searched for its version.
const LARGEST: u64 = 4 << 20;

/// Bubblewrap on this machine.
#[derive(Debug)]
pub struct Bubblewrap {
    path: PathBuf,
}

impl Bubblewrap {
    /// Finds bubblewrap.
    ///
    /// # Errors
    /// If there is none.
    pub fn find() -> Result<Self, Error> {
        let mut places = PLACES.iter().map(PathBuf::from);
        let path = places.find(|path| path.is_file());
        path.map(|path| Self { path })
            .ok_or_else(|| Error::BubblewrapMissing {
                looked_for: PLACES.join(", "),
            })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A copy in memory, to be started instead where AppArmor has given Stockade a profile.
    ///
    /// Ubuntu's own profile for the path of bubblewrap takes the capabilities from all that bubblewrap
    /// starts, also in their own user namespaces: no sandbox would work inside this one. A copy has no
    /// path, and stays in Stockade's profile. Without one, sessions start all the same.
    pub(super) fn copy(&self) -> Option<OwnedFd> {
        let own = Confinement::of_this_process() == Confinement::Own;
        own.then(|| in_memory(&self.path).ok()).flatten()
    }

    /// The program's path and version.
    ///
    /// # Errors
    /// If it is too old, cannot be started, or does not tell its version.
    pub fn identify(self) -> Result<(PathBuf, Version), Error> {
        let path = self.path;
        let version = match written_in(&path) {
            Some(version) => version,
            None => asked_of(&path)?,
        };
        if version < OLDEST {
            let found = version.to_string();
            return Err(Error::BubblewrapTooOld { path, found });
        }
        Ok((path, version))
    }
}

fn in_memory(path: &Path) -> io::Result<OwnedFd> {
    let program = fs::read(path)?;
    let flags = MemfdFlags::CLOEXEC;
    // Linux 6.3 wants to be told that it is for a program, and older ones do not know the word.
    let file = memfd_create("bwrap", flags | MemfdFlags::EXEC)
        .or_else(|_| memfd_create("bwrap", flags))?;
    let mut file = File::from(file);
    file.write_all(&program)?;
    Ok(file.into())
}

/// The version as it stands in the program, from where `--version` has it. Every start waits for
/// it: to look there takes 0.05 ms, to ask takes 1 ms of about 20. Nothing if the program is a
/// wrapper.
fn written_in(path: &Path) -> Option<Version> {
    let mut program = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LARGEST).read_to_end(&mut program).ok()?;
    let mut texts = program.split(|byte| *byte == 0);
    // The last one may go on.
    texts.next_back()?;
    texts
        .filter(|text| text.starts_with(NAME.as_bytes()))
        .find_map(|text| Version::parse(str::from_utf8(text).ok()?))
}

/// The version as the program tells it.
pub(super) fn asked_of(path: &Path) -> Result<Version, Error> {
    let path = path.to_owned();
    let asked = Command::new(&path)
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut asked = match asked {
        Ok(asked) => asked,
        Err(error) => return Err(Error::BubblewrapUnstartable { path, error }),
    };
    let answer = match asked.stdout.take() {
        Some(stdout) => read(stdout, PATIENCE),
        None => Ok(String::new()),
    };
    // It has answered, or is not waited for any more. The only failure is that it has ended.
    let _ = asked.kill();
    let _ = asked.wait();
    let why = match answer {
        Ok(answer) => match Version::parse(&answer) {
            Some(version) => return Ok(version),
            None => format!("it said {:?}", answer.trim()),
        },
        Err(error) => error.to_string(),
    };
    Err(Error::BubblewrapUnusable { path, why })
}

/// All that is written, in this time: whoever waits for it does not hear signals yet.
fn read(mut stdout: impl Read + AsFd, time: Duration) -> io::Result<String> {
    let late = Instant::now() + time;
    let mut answer = Vec::new();
    let mut buffer = [0; LONGEST];
    // A version is short; what is longer is none.
    while answer.len() < LONGEST {
        wait_readable(&stdout, late)?;
        match stdout.read(&mut buffer)? {
            0 => break,
            length => answer.extend(buffer.iter().take(length)),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A version of bubblewrap: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(major, minor, patch) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl Version {
    /// From `bubblewrap 0.8.0`.
    fn parse(answer: &str) -> Option<Self> {
        let version = answer.trim().strip_prefix(NAME)?;
        let mut numbers = version.split('.').map(|number| number.parse().ok());
        let major = numbers.next()??;
        let minor = numbers.next()??;
        let patch = numbers.next().map_or(Some(0), |patch| patch)?;
        Some(Self(major, minor, patch))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn versions_are_numbers_not_text() {
        let version = |text| Version::parse(text).unwrap();
        assert_eq!(version("bubblewrap 0.8.0\n"), OLDEST);
        assert!(version("bubblewrap 0.10.0\n") > version("bubblewrap 0.9.0\n"));
        assert!(version("bubblewrap 0.4.1") < OLDEST);
        assert!(version("bubblewrap 1.0") > OLDEST);
    }

    #[test]
    fn the_version_in_the_program_is_the_one_that_it_tells() {
        let path = Bubblewrap::find().unwrap().path;
        assert_eq!(written_in(&path), Some(asked_of(&path).unwrap()));
        assert_eq!(written_in(Path::new("/usr/bin/true")), None);

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bwrap");
        // Wherever the parts that are read begin and end.
        for length in (16_384 - 40..16_384 + 20).chain(32_768 - 40..32_768 + 20) {
            let text = [&vec![b'x'; length], &b"\0bubblewrap 1.2.3\0rest"[..]].concat();
            fs::write(&path, text).unwrap();
            assert_eq!(written_in(&path), Some(Version(1, 2, 3)), "{length}");
        }
        fs::write(&path, "#!/bin/sh\nexec bubblewrap 1.2.3\n").unwrap();
        assert_eq!(written_in(&path), None);
    }

    #[test]
    fn a_copy_in_memory_can_be_started() {
        let path = Bubblewrap::find().unwrap().path;
        let copy = in_memory(&path).unwrap();
        let started = format!("/proc/self/fd/{}", copy.as_raw_fd());
        assert_eq!(
            asked_of(Path::new(&started)).unwrap(),
            asked_of(&path).unwrap()
        );
    }

    #[test]
    fn an_answer_is_read_to_its_end_and_not_waited_for_forever() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"bubble").unwrap();
        let soon = Duration::from_millis(20);
        let late = read(reader.try_clone().unwrap(), soon).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        writer.write_all(b"bubblewrap 0.8.0\n").unwrap();
        drop(writer);
        assert_eq!(read(reader, PATIENCE).unwrap(), "bubblewrap 0.8.0\n");
        let endless = File::open("/dev/zero").unwrap();
        assert_eq!(read(endless, PATIENCE).unwrap().len(), LONGEST);
    }

    #[test]
    fn what_is_no_version_is_not_taken_for_one() {
        for answer in [
            "",
            "bubblewrap",
            "bubblewrap x.y.z",
            "bubblewrap 0",
            "0.8.0",
        ] {
            assert_eq!(Version::parse(answer), None, "{answer:?}");
        }
    }
}
