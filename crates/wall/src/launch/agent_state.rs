//! Creates the places of an agent's state that do not exist yet.
//!
//! A place that does not exist cannot be shown. An agent that starts for the first time would lose
//! its login at the end. So the places of state that its profile names are created before it runs:
//! an empty directory, or a JSON file with an empty object. Other files are not created: an agent
//! may refuse an empty one.
//!
//! Everything is created by descriptor below the home directory, without following links. A link
//! that is in the way is the user's, and we do not write where it leads.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
};

use crate::{
    config::Agent,
    facts::{Facts, Place},
    nofollow::{pin, pin_below},
};

/// What an empty place of state looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Directory,
    Json,
}

impl Form {
    /// The form that a name tells, if it does.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension().and_then(OsStr::to_str) {
            Some("json") => Some(Self::Json),
            Some("yml" | "yaml" | "toml") => None,
            // The rest of a directory's name may have a dot in it.
            _ => Some(Self::Directory),
        }
    }
}

impl Agent {
    /// The places of state that are missing and are made when this agent is run. None if its
    /// program was not found.
    pub fn missing_state(&self, facts: &Facts) -> impl Iterator<Item = &Path> {
        let is_run = self.keeps_state && facts.installation.is_some();
        let state = self.state.iter().filter(move |_| is_run);
        state
            .filter(|request| !request.required && !facts.found.contains_key(&request.path))
            .map(|request| request.path.as_path())
            .filter(|path| Form::of(path).is_some())
    }

    /// Makes them, each the user's alone, and says how that went.
    #[must_use]
    pub fn create_missing_state(&self, facts: &Facts) -> Vec<(PathBuf, io::Result<()>)> {
        self.missing_state(facts)
            .map(|path| (path.to_owned(), create(path, &facts.home)))
            .collect()
    }
}

fn create(path: &Path, home: &Place) -> io::Result<()> {
    let below = path
        .strip_prefix(&home.named)
        .or_else(|_| path.strip_prefix(&home.real))
        .map_err(|_| io::Error::other("it is not in the home directory"))?;
    let mut names: Vec<&OsStr> = Vec::new();
    for component in below.components() {
        match component {
            Component::Normal(name) => names.push(name),
            _ => return Err(Errno::INVAL.into()),
        }
    }
    let (last, above) = names.split_last().ok_or(Errno::INVAL)?;
    let mut directory = pin(&home.real)?;
    for name in above {
        match make_directory(&directory, name) {
            Err(Errno::EXIST) => {}
            result => result?,
        }
        directory = pin_below(&directory, Path::new(name))?;
    }
    match Form::of(path) {
        Some(Form::Directory) => make_directory(&directory, last)?,
        Some(Form::Json) => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = openat(&directory, *last, flags | OFlags::CLOEXEC, mode)?;
            File::from(file).write_all(b"{}\n")?;
        }
        None => return Err(Errno::INVAL.into()),
    }
    Ok(())
}

/// Makes a directory of scripts that agents outside run, unless it is there. A file in it keeps
/// agents from removing it while it is empty, and the cover with it.
pub(super) fn make_scripts(path: &Path) -> io::Result<()> {
    const KEPT: &str = ".kept-by-stockade";
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
    let parent = pin(parent)?;
    match make_directory(&parent, name) {
        Err(Errno::EXIST) => return Ok(()),
        result => result?,
    }
    let directory = pin_below(&parent, Path::new(name))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    openat(
        &directory,
        KEPT,
        flags | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    )?;
    Ok(())
}

fn make_directory(directory: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    mkdirat(directory, name, Mode::RWXU)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;
    use crate::{
        config::PathRequest,
        facts::{Found, Installation, Kind, tests::facts},
    };

    const NAMES: [&str; 6] = [
        ".claude",
        ".claude.json",
        ".old.json",
        ".aider.conf.yml",
        ".a/b/c",
        ".planted.json",
    ];

    /// A home, and an agent that was found in it and wants `NAMES`.
    fn home() -> (tempfile::TempDir, Facts, Agent) {
        let directory = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(directory.path()).unwrap();
        let mut facts = facts();
        facts.home = Place {
            named: home.clone(),
            real: home.clone(),
        };
        let program = Found {
            at: "/usr/bin/claude".into(),
            real: "/usr/bin/claude".into(),
            kind: Kind::File,
        };
        facts.installation = Some(Installation {
            program,
            parts: Vec::new(),
            search: Vec::new(),
        });
        let state = NAMES.map(|name| PathRequest::by_profile(home.join(name)));
        let agent = Agent {
            keeps_state: true,
            state: state.to_vec(),
            ..Agent::default()
        };
        (directory, facts, agent)
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_there_stays() {
        let (home, facts, agent) = home();
        let path = |name: &str| home.path().join(name);
        fs::write(path(".old.json"), "old").unwrap();
        let made = agent.create_missing_state(&facts);
        let failed: Vec<_> = made.iter().filter(|(_, result)| result.is_err()).collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        let again = agent.create_missing_state(&facts);
        assert!(again.iter().all(|(_, result)| result.is_err()), "{again:?}");
        assert!(path(".claude").is_dir() && path(".a/b/c").is_dir());
        assert_eq!(fs::read_to_string(path(".claude.json")).unwrap(), "{}\n");
        assert_eq!(fs::read_to_string(path(".old.json")).unwrap(), "old");
        assert!(!path(".aider.conf.yml").exists());
        for (name, mode) in [(".claude", 0o700), (".a", 0o700), (".claude.json", 0o600)] {
            let found = fs::metadata(path(name)).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{name}");
        }
    }

    #[test]
    fn links_are_not_followed() {
        let (home, facts, agent) = home();
        let path = |name: &str| home.path().join(name);
        fs::create_dir(path("elsewhere")).unwrap();
        symlink("elsewhere", path(".a")).unwrap();
        symlink("elsewhere/x", path(".claude")).unwrap();
        symlink("elsewhere/y", path(".planted.json")).unwrap();
        for (name, result) in agent.create_missing_state(&facts) {
            let is_link = [".a/b/c", ".claude", ".planted.json"]
                .iter()
                .any(|link| name.ends_with(link));
            assert_eq!(result.is_err(), is_link, "{name:?}: {result:?}");
        }
        assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_made_for_another_program_or_for_one_that_is_not_there() {
        let (home, mut facts, mut agent) = home();
        facts.installation = None;
        assert!(agent.create_missing_state(&facts).is_empty());
        agent.keeps_state = false;
        facts = self::home().1;
        assert!(agent.create_missing_state(&facts).is_empty());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
