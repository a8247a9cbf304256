//! `cargo xtask company`: docs/company.md, from `tests/company/page.rs`.

use std::process::ExitCode;

use clap::Args;

use crate::sections::Document;

const DOCUMENT: Document = Document {
    path: "docs/company.md",
    task: "company",
    sections: &["page"],
    tests: "company::page::",
    variable: "STOCKADE_PRINT_COMPANY",
};

#[derive(Args)]
#[command(
    about = "Show a session that reaches the internet through a proxy",
    long_about = "Runs the case of tests/company/page.rs in a closed world, and prints the section \
        of docs/company.md."
)]
pub(crate) struct Arguments {
    /// Put the section into docs/company.md
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    DOCUMENT.run(arguments.write)
}
