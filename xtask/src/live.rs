//! `cargo xtask live`: docs/live.md, from `tests/watch/page.rs`.

use std::process::ExitCode;

use clap::Args;

use crate::sections::Document;

const DOCUMENT: Document = Document {
    path: "docs/live.md",
    task: "live",
    sections: &["question", "denial", "ps"],
    tests: "watch::page::",
    variable: "STOCKADE_PRINT_LIVE",
};

#[derive(Args)]
#[command(
    about = "Show the screens of stockade watch",
    long_about = "Runs tests/watch/page.rs in a closed world, and prints the sections \
        of docs/live.md."
)]
pub(crate) struct Arguments {
    /// Put the sections into docs/live.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    DOCUMENT.run(arguments.write)
}
