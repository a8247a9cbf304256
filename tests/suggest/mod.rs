//! Policies that are learned from logs, and an agent that asks why it was denied.

mod agent;
mod inside;
mod learn;
mod logs;

use std::fs;

use stockade_world::{Laptop, Output};

/// The built program, by the path that it has outside and inside.
const STOCKADE: &str = "/run/world/bin/stockade";

fn stockade(laptop: &Laptop, arguments: &[&str]) -> Output {
    laptop.stockade(arguments).run().expect("stockade ends")
}

/// A session of a script.
fn session(laptop: &Laptop, options: &[&str], script: &str) -> Output {
    let line = [&["run"], options, &["--", "bash", "-uc", script]].concat();
    stockade(laptop, &line)
}

/// The user's file about the project.
fn project_file(laptop: &Laptop) -> String {
    let file = laptop.home().join(".config/stockade/projects/project.toml");
    fs::read_to_string(file).expect("the file about the project")
}
