//! Documents that are written by the tests that hold them to the truth.
//!
//! What such a document says is found in worlds, and nothing gets out of a world but what its
//! test prints. So the tests are asked to print the document's sections, each between a pair
//! of markers that the document has, too.

use std::env;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bench::repository;

/// A document, and who knows what it is to say.
pub(crate) struct Document {
    pub(crate) path: &'static str,
    /// The task's name, which is in the markers.
    pub(crate) task: &'static str,
    pub(crate) sections: &'static [&'static str],
    /// The tests that print them, and the variable that has them do so.
    pub(crate) tests: &'static str,
    pub(crate) variable: &'static str,
}

impl Document {
    /// Prints the sections, or writes them into the document.
    pub(crate) fn run(&self, write: bool) -> ExitCode {
        match self.try_run(write) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cargo xtask {}: {error:#}", self.task);
                ExitCode::FAILURE
            }
        }
    }

    fn try_run(&self, write: bool) -> Result<()> {
        let printed = self.print()?;
        let (name, path) = (self.path, repository().join(self.path));
        let mut text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        for section in self.sections {
            let new = self
                .between(&printed, section)
                .with_context(|| format!("the tests printed nothing for {section}"))?;
            if write {
                text = replaced(&text, &self.markers(section), new)
                    .with_context(|| format!("{name} has lost its markers for {section}"))?;
            } else {
                println!("## {section}\n{new}");
            }
        }
        if write {
            fs::write(&path, text).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }

    fn print(&self) -> Result<String> {
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
            .args([self.tests, "--", "--nocapture", "--test-threads=1"])
            .env(self.variable, "1")
            .current_dir(repository())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "the tests failed:\n{text}");
        Ok(text)
    }

    /// A section, markers not included.
    fn between<'a>(&self, text: &'a str, section: &str) -> Option<&'a str> {
        let [begin, end] = self.markers(section);
        let (_, rest) = text.split_once(&begin)?;
        rest.split_once(&end).map(|(section, _)| section)
    }

    fn markers(&self, section: &str) -> [String; 2] {
        let task = self.task;
        ["begin", "end"]
            .map(|word| format!("<!-- cargo xtask {task} --write: {section}: {word} -->"))
    }
}

/// A text with something new between two markers; `None` if they are not there, in this order.
pub(crate) fn replaced(text: &str, [begin, end]: &[String; 2], new: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{new}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_section_replaces_its_own_predecessor_and_nothing_else() {
        let document = &crate::exposed::DOCUMENT;
        let [begin, end] = document.markers("desktop");
        let [other, other_end] = document.markers("container");
        let text = format!("\nabove\n{begin}\n{end}\n{other}\nkept\n{other_end}\n");
        let new = replaced(&text, &document.markers("desktop"), "\nnew\n").unwrap();
        assert_eq!(document.between(&new, "desktop"), Some("\nnew\n"));
        assert_eq!(document.between(&new, "container"), Some("\nkept\n"));
        assert!(new.starts_with("\nabove\n"));
        assert_eq!(
            replaced("no markers", &document.markers("desktop"), "new"),
            None
        );
    }
}
