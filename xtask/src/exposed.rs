//! `cargo xtask exposed`: docs/exposed.md, from `tests/exposed.rs`.

use std::process::ExitCode;

use clap::Args;

use crate::sections::Document;

pub(crate) const DOCUMENT: Document = Document {
    path: "docs/exposed.md",
    task: "exposed",
    sections: &["desktop", "container"],
    tests: "exposed::",
    variable: "STOCKADE_PRINT_EXPOSED",
};

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
    DOCUMENT.run(arguments.write)
}
