//! Bare bubblewrap with the product's mounts and namespaces: what any sandbox of this kind
//! has to spend.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::stage::PRODUCT;

#[derive(Deserialize)]
struct Plan {
    files: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    operation: String,
    at: String,
    source: Option<String>,
}

/// With a network namespace of its own, as the product has one.
const NAMESPACES: [&str; 8] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--unshare-net",
    "--cap-drop",
    "ALL",
];

/// Bubblewrap's options, from the product's own plan.
pub(super) fn options() -> Result<Vec<String>> {
    let output = Command::new(PRODUCT)
        .args(["plan", "--json", "--", "true"])
        .output()?;
    ensure!(output.status.success(), "the product makes no plan");
    let plan: Plan = serde_json::from_slice(&output.stdout).context("the product's plan")?;
    let mut options: Vec<String> = NAMESPACES.map(str::to_owned).to_vec();
    for (number, step) in plan.files.iter().enumerate() {
        options.extend(step.options(number)?);
    }
    Ok(options)
}

impl Step {
    fn options(&self, number: usize) -> Result<Vec<String>> {
        let at = self.at.as_str();
        let source = self.source.as_deref().unwrap_or(at);
        let (word, rest) = self.operation.split_once(' ').unwrap_or_default();
        let options = match word {
            "read-only" => vec!["--ro-bind", source, at],
            // What the product lays over a directory of the host costs more than this.
            "writable" | "scratch" => vec!["--bind", source, at],
            "device" => vec!["--dev-bind", source, at],
            "empty" => vec!["--tmpfs", at],
            "hidden" if Path::new(at).is_dir() => vec!["--tmpfs", at],
            "hidden" => vec!["--ro-bind", "/dev/null", at],
            "devices" => vec!["--dev", at],
            "processes" => vec!["--proc", at],
            "frozen" => vec!["--remount-ro", at],
            "link" => {
                let text = rest.split_once(" -> ").map_or("", |(_, text)| text);
                vec!["--symlink", text, at]
            }
            "text" => {
                let file = format!("/tmp/text-{number}");
                fs::write(&file, rest)?;
                return Ok(vec!["--ro-bind".to_owned(), file, at.to_owned()]);
            }
            other => anyhow::bail!("cannot tell bubblewrap what `{other}` is"),
        };
        Ok(options.into_iter().map(str::to_owned).collect())
    }
}
