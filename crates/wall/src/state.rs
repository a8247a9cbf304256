//! The agent's state, where there is none yet.
//!
//! What does not exist cannot be shown, and an agent that is started for the first time
//! would lose its login at the end. So places of state that a profile names are made: a
//! directory, empty, or a file of JSON, with an empty object. Others are left alone, since
//! it is not known what the agent takes for an empty one.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use crate::config::Agent;

impl Agent {
    /// Makes the places of state that are missing. Each is the user's alone.
    ///
    /// # Errors
    /// If the home directory cannot be written to.
    pub fn create_missing_state(&self) -> io::Result<()> {
        for request in self.state.iter().filter(|request| !request.required) {
            match create(&request.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => result?,
            }
        }
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<()> {
    match path.extension() {
        None => DirBuilder::new().mode(0o700).recursive(true).create(path),
        Some(extension) if extension == "json" => OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?
            .write_all(b"{}\n"),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::config::PathRequest;

    #[test]
    fn what_is_missing_is_made_and_what_is_there_stays() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        fs::write(path(".old.json"), "old").unwrap();
        let names = [".claude", ".claude.json", ".old.json", ".aider.conf.yml"];
        let agent = Agent {
            state: names
                .map(|name| PathRequest::by_profile(path(name)))
                .to_vec(),
            ..Agent::default()
        };
        agent.create_missing_state().unwrap();
        agent.create_missing_state().unwrap();
        assert!(path(".claude").is_dir());
        assert_eq!(fs::read_to_string(path(".claude.json")).unwrap(), "{}\n");
        assert_eq!(fs::read_to_string(path(".old.json")).unwrap(), "old");
        assert!(!path(".aider.conf.yml").exists());
        let mode = fs::metadata(path(".claude")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
