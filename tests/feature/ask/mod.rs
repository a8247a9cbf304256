//! What no rule covers waits for the user's answer.

mod attempts;
mod desktop;
mod popup;

use std::{fs, time::Duration};

use serde_json::Value;
use stockade_world::{Laptop, Output, Running};

const WATCHER: &str = include_str!("watcher.py");

/// A session whose command begins when it is told to, and how long it may take.
pub(crate) fn session(laptop: &Laptop, options: &[&str], script: &str) -> Running {
    let script = format!("read go; {script}");
    laptop
        .stockade(["run"])
        .args(options)
        .args(["--", "bash", "-c", &script])
        // Else there would be a desktop to ask at.
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("TMUX")
        .limit(Duration::from_secs(120))
        .spawn()
        .expect("a session")
}

/// Somebody who looks at the session that runs.
pub(crate) struct Watcher(Running);

impl Watcher {
    pub(crate) fn attends(laptop: &Laptop) -> Self {
        Self::start(laptop, "attends")
    }

    pub(crate) fn only_looks(laptop: &Laptop) -> Self {
        Self::start(laptop, "looks")
    }

    fn start(laptop: &Laptop, how: &str) -> Self {
        let watcher = laptop
            .command("python3")
            .args(["-I", "-c", WATCHER, how])
            .limit(Duration::from_secs(180))
            .spawn()
            .expect("a watcher");
        watcher.expect("watching\n").expect("a session");
        Self(watcher)
    }

    pub(crate) fn question(&self) -> Value {
        self.line("question ")
    }

    pub(crate) fn answer(&mut self, question: &Value, answer: &str) -> Value {
        let line = format!("{} {answer}\n", question["id"]);
        self.0.write(line).expect("an answer");
        self.line("answered ")
    }

    /// Answers, and expects that to have an effect.
    pub(crate) fn says(&mut self, question: &Value, answer: &str) {
        let said = self.answer(question, answer);
        assert_eq!(said, serde_json::json!({ "Ok": null }), "{answer}");
    }

    pub(crate) fn live(&mut self) -> Value {
        self.0.write("live\n").expect("a question");
        self.line("live ")
    }

    /// How many questions came in all.
    pub(crate) fn count(&self) -> usize {
        let said = self.0.stdout_so_far();
        said.lines()
            .filter(|line| line.starts_with("question "))
            .count()
    }

    fn line(&self, begin: &str) -> Value {
        self.0.expect(begin).expect("a line");
        let line = self.0.expect("\n").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

/// Starts the command of a session.
pub(crate) fn go(session: &mut Running) {
    session.write("go\n").expect("a line");
}

/// The lines of these events in the log of the session that ran last.
pub(crate) fn logged(laptop: &Laptop, event: &str) -> Vec<Value> {
    let output = laptop.stockade(["log", "--json"]).run().expect("run");
    let output: Output = output.expect_success();
    let lines = output.stdout();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines
        .filter(|line: &Value| line["event"] == event)
        .collect()
}

/// The user's file about the workspace, as it is now.
pub(crate) fn project_file(laptop: &Laptop) -> Option<String> {
    let directory = laptop.home().join(".config/stockade/projects");
    let mut files = fs::read_dir(directory).ok()?.flatten();
    let file = files.find(|file| file.path().extension().is_some_and(|it| it == "toml"))?;
    fs::read_to_string(file.path()).ok()
}
