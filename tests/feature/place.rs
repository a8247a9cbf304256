//! The same program outside and inside, so that what it meets can be compared.

use stockade_world::{Command, Laptop};

/// Where a program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Outside,
    /// In the sandbox, with these rules.
    Inside(&'a [&'a str]),
    /// In the sandbox, with these rules and without the internet.
    Closed(&'a [&'a str]),
}

impl Place<'_> {
    pub(crate) fn command(self, laptop: &Laptop, program: &str) -> Command {
        let (internet, rules) = match self {
            Place::Outside => return laptop.command(program),
            Place::Inside(rules) => ("--internet=true", rules),
            Place::Closed(rules) => ("--internet=false", rules),
        };
        laptop
            .stockade(["run", internet])
            .args(rules.iter().flat_map(|rule| ["--allow", rule]))
            .args(["--", program])
    }

    /// A script, free of what a user's Python would load besides.
    pub(crate) fn python(self, laptop: &Laptop, script: &str) -> Command {
        self.command(laptop, "python3").args(["-I", "-c", script])
    }

    pub(crate) fn shell(self, laptop: &Laptop, line: &str) -> Command {
        self.command(laptop, "sh").args(["-c", line])
    }
}
