//! Tasks for people who work on Stockade: `cargo xtask --help`.

mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    about = "Tasks for people who work on Stockade"
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    World(world::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::World(arguments) => world::run(&arguments),
    }
}
