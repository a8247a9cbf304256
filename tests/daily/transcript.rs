//! A session with Claude Code that builds, tests and commits a Rust, a Node and a Python project:
//! docs/daily.md. The agent is the package of the registry; the model is `model.py`, which asks for
//! the commands below, one after the other. The page has what Claude Code reported to the model.

use std::fs;

use super::{LIMIT, with_rust};
use crate::{
    feature::agents::{CLAUDE, path, with_in},
    support::Document,
};

pub(crate) const MODEL: &str = include_str!("model.py");

const DOCUMENT: Document = Document {
    text: include_str!("../../docs/daily.md"),
    task: "daily",
    print: "STOCKADE_PRINT_DAILY",
};

/// What the model has the agent do.
const CALLS: [&str; 5] = [
    "cargo init --quiet --lib rust
(cd rust && cargo build --quiet && cargo test --quiet --lib) 2>&1 |
    grep -o 'test result: ok. 1 passed'",
    "mkdir node && cd node && npm init --yes > /dev/null && npm pkg set scripts.test='node --test'
echo \"require('node:test')('adds', () => require('node:assert').equal(1 + 2, 3))\" > a.test.js
npm test 2>&1 | grep -oE '(pass|fail) [0-9]+'; cd ..",
    "mkdir python && cd python && python3 -m venv .venv
printf 'import unittest\\nclass Test(unittest.TestCase):\\n' > test_a.py
printf '    def test(self):\\n        self.assertEqual(1 + 2, 3)\\n' >> test_a.py
.venv/bin/python -m unittest 2>&1 | tail -1; cd ..",
    "printf 'target\\n.venv\\n__pycache__\\n' > .gitignore
git add .gitignore rust node python && git commit --quiet --message 'Add three projects'
git log --format='%an: %s'",
    "git show --format= --name-only | sort",
];

#[test]
fn claude_code_builds_tests_and_commits_three_projects() {
    let (world, rust) = with_rust();
    with_in(world, &CLAUDE, |laptop| {
        let home = laptop.home();
        let user = "[user]\n\tname = Dev\n\temail = dev@example.com\n";
        fs::write(home.join(".gitconfig"), user).expect("git's settings");
        let (calls, results) = (home.join("calls.json"), home.join("results.json"));
        let text = serde_json::to_string(&CALLS).expect("JSON");
        fs::write(&calls, text).expect("the model's calls");
        let model = laptop.command("/usr/bin/python3").args(["-c", MODEL]);
        let model = model.arg(&calls).arg(&results).limit(3 * LIMIT);
        let model = model.spawn().expect("a model");
        model.expect("listening").expect("a model");

        let typed =
            "stockade run --host-port 8765 -- claude -p 'Make three projects.' --allowedTools Bash";
        let line = ["run", "--host-port", "8765", "--", "claude", "-p"];
        let session = laptop.stockade(line).arg("Make three projects.");
        let session = session
            .args(["--allowedTools", "Bash"])
            .env("PATH", format!("{rust}:{}", path()))
            .env("ANTHROPIC_API_KEY", "decoy")
            .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:8765")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .limit(3 * LIMIT);
        let output = session.run().expect("its end").expect_success();
        drop(model);

        let results = fs::read_to_string(&results).expect("results");
        let results: Vec<String> = serde_json::from_str(&results).expect("JSON");
        assert_eq!(results.len(), CALLS.len(), "{output:?}");
        let mut page = format!("```console\n$ {typed}\n{}```\n", output.stdout());
        for (call, result) in CALLS.iter().zip(&results) {
            let (call, result) = (call.replace('\n', "\n> "), result.trim());
            page.push_str(&format!("\n```console\n$ {call}\n{result}\n```\n"));
        }
        // As git outside sees it.
        let log = laptop.command("git").args(["-C"]).arg(laptop.workspace());
        let log = log.args(["log", "--format=%s"]).run().expect("git");
        assert_eq!(log.stdout(), "Add three projects\n", "{page}");

        if DOCUMENT.is_to_be_printed() {
            return DOCUMENT.print("claude", &page);
        }
        assert_eq!(
            DOCUMENT.section("claude"),
            Some(page.as_str()),
            "docs/daily.md is not what happened (if that is meant: cargo xtask daily --write)"
        );
    });
}
