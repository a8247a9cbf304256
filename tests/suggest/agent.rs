//! Claude Code, driven by a model that does what a denial says: it asks why, and tells the user.

use std::fs;

use stockade_world::Standard;

use super::STOCKADE;
use crate::{
    daily::{LIMIT, transcript::MODEL},
    feature::agents::{CLAUDE, path, with_world},
    support::standard,
};

/// What the model calls after the first denial: nothing but the question why. Its last words are
/// what the tool said to be done.
const MODEL_THAT_ASKS: &str = "
import re
CALLS = ['curl -sS --max-time 5 http://192.168.10.21/', 'STOCKADE denials']
def last_words(given):
    found = re.search(r'ask the user to run: (.*)', given[-1])
    return 'I cannot reach the device. Please run: ' + found.group(1)
";

#[test]
fn an_agent_reads_the_denial_and_tells_the_user_what_to_run() {
    with_world(standard(), &CLAUDE, |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let home = laptop.home();
        let (calls, results) = (home.join("calls.json"), home.join("results.json"));
        fs::write(&calls, "[]").expect("no calls of its own");
        let (head, rest) = MODEL.split_once("\n\n\n").expect("a head");
        let model = format!("{head}\n{MODEL_THAT_ASKS}\n{rest}")
            .replace("STOCKADE", STOCKADE)
            .replace("text = \"Done.\"", "text = last_words(given)");
        let model = laptop.command("/usr/bin/python3").args(["-c", &model]);
        let model = model.arg(&calls).arg(&results).limit(LIMIT);
        let model = model.spawn().expect("a model");
        model.expect("listening").expect("a model");

        let line = [
            "run",
            "--host-port",
            "8765",
            "--",
            "claude",
            "-p",
            "Ask the device.",
        ];
        let claude = |options: &[&str]| {
            let session = laptop.stockade(line).args(options);
            session
                .env("PATH", path())
                .env("ANTHROPIC_API_KEY", "decoy")
                .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:8765")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .limit(LIMIT)
                .run()
                .expect("its end")
                .expect_success()
        };
        let output = claude(&["--allowedTools", "Bash"]);
        // What the user reads is the fix.
        let fix = "stockade allow tcp://192.168.10.21:80";
        let said = output.stdout();
        assert_eq!(
            said.trim(),
            format!("I cannot reach the device. Please run: {fix}"),
            "{output:?}"
        );
        let given = fs::read_to_string(&results).expect("results");
        assert!(given.contains("Do not work around it"), "{given}");
        // It tried nothing else.
        let log = laptop
            .stockade(["log", "--denied", "--json"])
            .run()
            .expect("a log")
            .stdout();
        let what: Vec<_> = log
            .lines()
            .filter(|line| line.contains("\"kind\""))
            .collect();
        assert_eq!(what.len(), 1, "{log}");
        // The user does what it said, and then it works.
        let words: Vec<&str> = fix.split(' ').skip(1).collect();
        laptop
            .stockade(words)
            .run()
            .expect("its end")
            .expect_success();
        let curl = laptop.stockade(["run", "--", "curl", "-sS", "http://192.168.10.21/"]);
        let said = curl.run().expect("its end").expect_success().stdout();
        assert_eq!(said, "hello from device\n");
        drop(model);
    });
}
