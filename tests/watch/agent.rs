//! Claude Code works on its own screen while its questions are answered on another.

use std::fs;

use serde_json::json;
use stockade_world::{Laptop, Running, Standard};

use super::{question, tmux::Tmux};
use crate::{
    feature::agents::{CLAUDE, LIMIT, path, with_world},
    support::standard,
};

const MODEL: &str = include_str!("../daily/model.py");

/// A model that has the agent run this command.
fn model(laptop: &Laptop, command: &str) -> Running {
    let home = laptop.home();
    let calls = home.join("calls.json");
    fs::write(&calls, json!([command]).to_string()).expect("the model's calls");
    let model = laptop.command("/usr/bin/python3").args(["-c", MODEL]);
    let model = model.arg(&calls).arg(home.join("results.json"));
    let model = model.limit(4 * LIMIT).spawn().expect("a model");
    model.expect("listening").expect("a model");
    model
}

/// The frame that it draws first, without what moves below.
fn welcome(screen: &str) -> Vec<String> {
    let lines = screen.lines().skip_while(|line| !line.starts_with('╭'));
    let frame = lines.take_while(|line| !line.starts_with('❯'));
    frame.map(str::to_owned).collect()
}

#[test]
fn claude_codes_screen_stays_intact_while_its_question_is_answered_elsewhere() {
    with_world(standard().limit(4 * LIMIT), &CLAUDE, |world| {
        let _servers = Standard::serve(world).expect("servers");
        let laptop = world.laptop();
        let _model = model(laptop, "curl -sS --max-time 100 http://192.168.10.21/");
        let workspace = laptop.workspace().display().to_string();
        let settings = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "projects": { workspace: { "hasTrustDialogAccepted": true } },
        });
        fs::write(laptop.home().join(".claude.json"), settings.to_string()).expect("settings");
        fs::create_dir_all(laptop.home().join(".claude")).expect("a directory");
        let tmux = Tmux::start(laptop, 100, 30);
        tmux.window("watch", "stockade watch");
        tmux.expect("watch", "no session is running");
        let variables = format!(
            "PATH={}:$PATH ANTHROPIC_AUTH_TOKEN=decoy ANTHROPIC_BASE_URL=http://127.0.0.1:8765 \
             CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
            path()
        );
        let line = "stockade run --ask --host-port 8765 -- claude 'Fetch it.' --allowedTools Bash";
        tmux.window("work", &format!("env {variables} {line}"));

        let screen = question(&tmux, "tcp://192.168.10.21:80, wanted by curl");
        assert!(screen.contains("< claude: curl -sS"), "{screen}");
        let waiting = tmux.expect("work", "Running…");
        let frame = welcome(&waiting);
        assert!(frame.len() > 5, "{waiting}");
        tmux.press("watch", "o");
        let done = tmux.expect_that("work", "its last word", |screen| screen.contains("Done."));
        assert!(done.contains("hello from device"), "{done}");
        assert_eq!(welcome(&done), frame);
        for screen in [&waiting, &done] {
            assert!(!screen.to_lowercase().contains("stockade"), "{screen}");
        }
        // The control: what somebody else writes there is seen.
        let terminal = tmux.ask("work", "#{pane_tty}");
        let script = format!("printf '\\033[1;1Hstockade asks' > {}", terminal.trim());
        tmux.window("other", &script);
        tmux.expect("work", "stockade asks");
    });
}
