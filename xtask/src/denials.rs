//! `cargo xtask denials`: docs/denials.md, from `tests/denials.rs`.

use std::process::ExitCode;

use clap::Args;

use crate::sections::Document;

const DOCUMENT: Document = Document {
    path: "docs/denials.md",
    task: "denials",
    sections: &["device", "name", "localhost"],
    tests: "denials::",
    variable: "STOCKADE_PRINT_DENIALS",
};

#[derive(Args)]
#[command(
    about = "Show the way from a denial to a rule that works",
    long_about = "Runs the cases of tests/denials.rs, each in a closed world, and prints the sections \
        of docs/denials.md."
)]
pub(crate) struct Arguments {
    /// Put the sections into docs/denials.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    DOCUMENT.run(arguments.write)
}
