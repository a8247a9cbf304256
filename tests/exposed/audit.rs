//! What the audit finds.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use stockade_world::Command;

/// It looks at every file of the machine.
const LIMIT: Duration = Duration::from_secs(50);

#[derive(Debug, Deserialize)]
pub(super) struct Audit {
    /// Path, and `r`, `w` or both.
    pub(super) files: Vec<(String, String)>,
    pub(super) sockets: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) processes: Vec<Process>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Process {
    pub(super) name: String,
    /// `inside`, `outside` or `itself`.
    pub(super) place: String,
    /// What can be learnt of it, as entries of its directory in `/proc`.
    pub(super) looks: Vec<String>,
}

impl Audit {
    /// Runs a command that is the audit, or starts it.
    #[track_caller]
    pub(super) fn run(command: Command, arguments: &[String]) -> Self {
        let command = command.arg("--json").args(arguments).limit(LIMIT);
        let output = command.run().expect("the audit ends").expect_success();
        serde_json::from_slice(&output.stdout).expect("the audit's findings")
    }

    pub(super) fn reads(&self, path: &Path) -> bool {
        self.can(path, 'r')
    }

    pub(super) fn writes(&self, path: &Path) -> bool {
        self.can(path, 'w')
    }

    fn can(&self, path: &Path, what: char) -> bool {
        let mut files = self.files.iter();
        files.any(|(found, access)| Path::new(found) == path && access.contains(what))
    }
}
