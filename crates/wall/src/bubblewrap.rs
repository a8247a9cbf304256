//! The bubblewrap program: where it is and whether it is new enough.

use std::{
    fmt,
    io::Read,
    path::PathBuf,
    process::{Child, Command, Stdio},
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
const OLDEST: Version = Version(0, 8, 0);

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
            Err(error) => Err(Error::BubblewrapUnusable {
                path,
                why: error.to_string(),
            }),
        }
    }

    /// The program's path and version.
    ///
    /// # Errors
    /// If it is too old, or does not tell its version.
    pub fn identify(mut self) -> Result<(PathBuf, Version), Error> {
        let mut answer = String::new();
        let read = match self.version.stdout.take() {
            // A version is short; what is longer is none.
            Some(stdout) => stdout.take(256).read_to_string(&mut answer),
            None => Ok(0),
        };
        let path = std::mem::take(&mut self.path);
        if let Err(error) = read {
            let why = error.to_string();
            return Err(Error::BubblewrapUnusable { path, why });
        }
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
