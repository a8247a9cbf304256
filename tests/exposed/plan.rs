//! The plan, as far as it explains findings.

use serde::Deserialize;
use stockade_world::Laptop;

#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    files: Vec<Step>,
    environment: Vec<Variable>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    operation: String,
    pub(super) at: String,
    pub(super) reason: String,
}

#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    reason: String,
}

impl Plan {
    #[track_caller]
    pub(super) fn of(laptop: &Laptop, arguments: &[&str]) -> Self {
        let output = laptop.stockade(arguments).run().expect("stockade ends");
        serde_json::from_slice(&output.expect_success().stdout).expect("a plan")
    }

    /// The step that decides what is at a path: of the deepest, the last.
    pub(super) fn step(&self, path: &str) -> Option<&Step> {
        let steps = self.files.iter();
        steps
            .filter(|step| !matches!(step.word(), "frozen" | "link"))
            .filter(|step| is_at_or_below(path, &step.at))
            .max_by_key(|step| step.at.len())
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|it| it.name == name)?;
        Some(&found.reason)
    }
}

impl Step {
    /// What is done, in one word: `writable`, `scratch`, `empty`, `read-only` …
    pub(super) fn word(&self) -> &str {
        self.operation.split(' ').next().unwrap_or_default()
    }
}

pub(super) fn is_at_or_below(path: &str, place: &str) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => place == "/",
    }
}
