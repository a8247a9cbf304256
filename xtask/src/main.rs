//! Tasks for people who work on Stockade: `cargo xtask --help`.

mod bench;
mod denials;
mod deny;
mod exposed;
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
    Denials(denials::Arguments),
    Deny(deny::Arguments),
    Exposed(exposed::Arguments),
    Pictures(pictures::Arguments),
    World(world::Arguments),
    /// Half of `bench` that runs in a world
    #[command(name = bench::DRIVER, hide = true)]
    BenchDriver(bench::rounds::Arguments),
    /// Half of `bench start` that runs on its stage
    #[command(name = bench::start::driver::DRIVER, hide = true)]
    BenchStartDriver(bench::start::driver::Arguments),
    /// Half of `bench` that runs in a sandbox
    #[command(name = bench::CLIENT, hide = true)]
    BenchClient(bench::client::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments),
        Task::BenchDriver(arguments) => bench::rounds::run(&arguments),
        Task::BenchStartDriver(arguments) => bench::start::driver::run(&arguments),
        Task::BenchClient(arguments) => bench::client::run(&arguments),
        Task::Denials(arguments) => denials::run(&arguments),
        Task::Deny(arguments) => deny::run(&arguments),
        Task::Exposed(arguments) => exposed::run(&arguments),
        Task::Pictures(arguments) => pictures::run(&arguments),
        Task::World(arguments) => world::run(&arguments),
    }
}
