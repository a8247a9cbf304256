//! The bubblewrap program: where it is and whether it is new enough.

use std::{
    fmt,
    io::{self, Read},
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

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

/// Bubblewrap on this machine. Its answer to the question for its version is waited for
/// only when it is needed: asking costs a process, but no time.
#[derive(Debug)]
pub struct Bubblewrap {
    path: PathBuf,
    version: Child,
}

impl Bubblewrap {
    /// Finds bubblewrap and asks for its version.
    ///
    /// # Errors
    /// If there is none, or it cannot be started.
    pub fn find() -> Result<Self, Error> {
        let path = PLACES
            .iter()
            .map(PathBuf::from)
            .find(|path| path.is_file())
            .ok_or_else(|| Error::BubblewrapMissing {
                looked_for: PLACES.join(", "),
            })?;
        let version = Command::new(&path)
            .arg("--version")
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        match version {
            Ok(version) => Ok(Self { path, version }),
            Err(error) => Err(Error::BubblewrapUnstartable { path, error }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The program's path and version.
    ///
    /// # Errors
    /// If it is too old, or does not tell its version.
    pub fn identify(mut self) -> Result<(PathBuf, Version), Error> {
        let answer = match self.version.stdout.take() {
            Some(stdout) => read(stdout, PATIENCE),
            None => Ok(String::new()),
        };
        let path = std::mem::take(&mut self.path);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let why = error.to_string();
                return Err(Error::BubblewrapUnusable { path, why });
            }
        };
        match Version::parse(&answer) {
            Some(version) if version >= OLDEST => Ok((path, version)),
            Some(version) => Err(Error::BubblewrapTooOld {
                path,
                found: version.to_string(),
            }),
            None => Err(Error::BubblewrapUnusable {
                path,
                why: format!("it said {:?}", answer.trim()),
            }),
        }
    }
}

/// All that is written, in this time: whoever waits for it does not hear signals yet.
fn read(mut stdout: impl Read + AsFd, time: Duration) -> io::Result<String> {
    let late = Instant::now() + time;
    let mut answer = Vec::new();
    let mut buffer = [0; LONGEST];
    // A version is short; what is longer is none.
    while answer.len() < LONGEST {
        let left = late.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match stdout.read(&mut buffer)? {
            0 => break,
            length => answer.extend(buffer.iter().take(length)),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl Drop for Bubblewrap {
    fn drop(&mut self) {
        // It has answered long ago, or is not wanted any more. The only failure is that
        // it has ended already.
        let _ = self.version.kill();
        let _ = self.version.wait();
    }
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
        let version = answer.trim().strip_prefix("bubblewrap ")?;
        let mut numbers = version.split('.').map(|number| number.parse().ok());
        let major = numbers.next()??;
        let minor = numbers.next()??;
        let patch = numbers.next().map_or(Some(0), |patch| patch)?;
        Some(Self(major, minor, patch))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _};

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
