//! What the tests share.

use std::env;

use stockade_world::Builder;

/// A world with one host of each kind, and the built program on the laptop.
pub(crate) fn standard() -> Builder {
    Builder::standard().product(env!("CARGO_BIN_EXE_stockade"))
}

/// A document that says what tests found. Each of its sections stands between two markers;
/// `cargo xtask TASK --write` has the tests print them, and puts them there.
pub(crate) struct Document {
    pub(crate) text: &'static str,
    pub(crate) task: &'static str,
    /// Set by the task: print the sections, compare nothing.
    pub(crate) print: &'static str,
}

impl Document {
    pub(crate) fn is_to_be_printed(&self) -> bool {
        env::var_os(self.print).is_some()
    }

    pub(crate) fn print(&self, section: &str, text: &str) {
        let [begin, end] = self.markers(section);
        println!("{begin}\n{text}{end}");
    }

    /// What it says now.
    pub(crate) fn section(&self, section: &str) -> Option<&'static str> {
        let [begin, end] = self.markers(section);
        let (_, rest) = self.text.split_once(&begin)?;
        let (text, _) = rest.split_once(&end)?;
        text.strip_prefix('\n')
    }

    fn markers(&self, section: &str) -> [String; 2] {
        let task = self.task;
        ["begin", "end"]
            .map(|word| format!("<!-- cargo xtask {task} --write: {section}: {word} -->"))
    }
}
