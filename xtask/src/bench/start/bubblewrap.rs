//! Bare bubblewrap with the product's mounts and namespaces: what any sandbox of this kind
//! has to spend.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::PRODUCT;

/// With a network namespace of its own, as the product has one.
const NAMESPACES: &str = "--unshare-user --unshare-pid --unshare-ipc --unshare-uts \
    --unshare-cgroup-try --unshare-net --cap-drop ALL";

/// Bubblewrap's options, from the product's own plan.
pub(super) fn options() -> Result<Vec<String>> {
    let output = Command::new(PRODUCT)
        .args(["plan", "--json", "--", "true"])
        .output()?;
    ensure!(output.status.success(), "the product makes no plan");
    let plan: Value = serde_json::from_slice(&output.stdout).context("the product's plan")?;
    let mut options: Vec<String> = NAMESPACES.split(' ').map(str::to_owned).collect();
    for (number, step) in plan["files"]
        .as_array()
        .context("no files")?
        .iter()
        .enumerate()
    {
        options.extend(step_options(step, number)?);
    }
    Ok(options)
}

fn step_options(step: &Value, number: usize) -> Result<Vec<String>> {
    let at = step["at"].as_str().context("no place")?;
    let source = step["source"].as_str().unwrap_or(at);
    let operation = step["operation"].as_str().unwrap_or_default();
    let (word, rest) = operation.split_once(' ').unwrap_or_default();
    let file = format!("/tmp/text-{number}");
    let options = match word {
        "read-only" => vec!["--ro-bind", source, at],
        // What the product lays over a directory of the host costs more than this.
        "writable" | "scratch" => vec!["--bind", source, at],
        "kept" if step["source"].is_string() => vec!["--bind", source, at],
        "device" => vec!["--dev-bind", source, at],
        "empty" | "kept" => vec!["--tmpfs", at],
        "hidden" if Path::new(at).is_dir() => vec!["--tmpfs", at],
        "hidden" => vec!["--ro-bind", "/dev/null", at],
        "devices" => vec!["--dev", at],
        "processes" => vec!["--proc", at],
        "frozen" => vec!["--remount-ro", at],
        "link" => {
            let text = rest.split_once(" -> ").map_or("", |(_, text)| text);
            vec!["--symlink", text, at]
        }
        // Where the product has a socket or a login, a file costs bubblewrap the same.
        "text" | "socket" | "login" => {
            fs::write(&file, rest)?;
            vec!["--ro-bind", &file, at]
        }
        other => bail!("cannot tell bubblewrap what `{other}` is"),
    };
    Ok(options.into_iter().map(str::to_owned).collect())
}
