//! `cargo xtask exposed`: docs/exposed.md, written by the tests that hold it to the truth.
//!
//! What is exposed is found in worlds, by `tests/exposed.rs`, and nothing gets out of a world
//! but what its test prints. So the tests are asked to print the document's sections.

use std::env;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::bench::repository;

const DOCUMENT: &str = "docs/exposed.md";
const SHAPES: [&str; 2] = ["desktop", "container"];

#[derive(Args)]
#[command(
    about = "List everything that a command inside can get at",
    long_about = "Runs the audit of tests/exposed.rs on a desktop and in a container, each a closed \
        world, and prints the sections of docs/exposed.md."
)]
pub(crate) struct Arguments {
    /// Put the sections into docs/exposed.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match try_run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask exposed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(arguments: &Arguments) -> Result<()> {
    let printed = print()?;
    let path = repository().join(DOCUMENT);
    let mut text = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
    for shape in SHAPES {
        let section = between(&printed, shape)
            .with_context(|| format!("the tests printed nothing for a {shape}"))?;
        if arguments.write {
            text = replaced(&text, shape, section)
                .with_context(|| format!("{DOCUMENT} has lost its markers for a {shape}"))?;
        } else {
            println!("## {shape}\n{section}");
        }
    }
    if arguments.write {
        fs::write(&path, text).with_context(|| format!("cannot write {DOCUMENT}"))?;
    }
    Ok(())
}

fn print() -> Result<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "test",
            "--quiet",
            "--package",
            "stockade",
            "--test",
            "stockade",
        ])
        .args(["exposed::", "--", "--nocapture", "--test-threads=1"])
        .env("STOCKADE_PRINT_EXPOSED", "1")
        .current_dir(repository())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "the audit failed:\n{text}");
    Ok(text)
}

/// The section of a shape, markers not included.
fn between<'a>(text: &'a str, shape: &str) -> Option<&'a str> {
    let [begin, end] = markers(shape);
    let (_, rest) = text.split_once(&begin)?;
    rest.split_once(&end).map(|(section, _)| section)
}

fn replaced(text: &str, shape: &str, section: &str) -> Option<String> {
    let [begin, end] = markers(shape);
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{section}{end}{after}"))
}

fn markers(shape: &str) -> [String; 2] {
    ["begin", "end"].map(|word| format!("<!-- cargo xtask exposed --write: {shape}: {word} -->"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_replaces_its_own_predecessor_and_nothing_else() {
        let [begin, end] = markers("desktop");
        let [other, other_end] = markers("container");
        let text = format!("\nabove\n{begin}\n{end}\n{other}\nkept\n{other_end}\n");
        let new = replaced(&text, "desktop", "\nnew\n").unwrap();
        assert_eq!(between(&new, "desktop"), Some("\nnew\n"));
        assert_eq!(between(&new, "container"), Some("\nkept\n"));
        assert!(new.starts_with("\nabove\n"));
        assert_eq!(replaced("no markers", "desktop", "new"), None);
    }
}
