//! `cargo xtask daily`: docs/daily.md, from `tests/daily/transcript.rs`.

use std::process::ExitCode;

use clap::Args;

use crate::sections::Document;

const DOCUMENT: Document = Document {
    path: "docs/daily.md",
    task: "daily",
    sections: &["claude"],
    tests: "daily::transcript::",
    variable: "STOCKADE_PRINT_DAILY",
};

#[derive(Args)]
#[command(
    about = "Show a session with Claude Code that builds, tests and commits",
    long_about = "Runs the session of tests/daily/transcript.rs in a closed world, and prints the section \
        of docs/daily.md."
)]
pub(crate) struct Arguments {
    /// Put the sections into docs/daily.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    DOCUMENT.run(arguments.write)
}
