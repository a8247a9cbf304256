//! Tasks for people who work on Stockade: `cargo xtask --help`.

mod bench;
mod company;
mod daily;
mod denials;
mod deny;
mod dist;
mod exposed;
mod live;
mod matrix;
mod pictures;
mod sections;
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
    Bench(bench::Arguments),
    Daily(daily::Arguments),
    Company(company::Arguments),
    Denials(denials::Arguments),
    Deny(deny::Arguments),
    Dist(dist::Arguments),
    Exposed(exposed::Arguments),
    Live(live::Arguments),
    Matrix(matrix::Arguments),
    Pictures(pictures::Arguments),
    World(world::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Daily(arguments) => daily::run(&arguments),
        Task::Company(arguments) => company::run(&arguments),
        Task::Denials(arguments) => denials::run(&arguments),
        Task::Deny(arguments) => deny::run(&arguments),
        Task::Dist(arguments) => dist::run(&arguments),
        Task::Exposed(arguments) => exposed::run(&arguments),
        Task::Live(arguments) => live::run(&arguments),
        Task::Matrix(arguments) => matrix::run(&arguments),
        Task::Pictures(arguments) => pictures::run(&arguments),
        Task::World(arguments) => world::run(&arguments),
    }
}
