//! Agents as their makers ship them: the packages of the npm registry, installed as a user
//! does (`npm install --global` with a prefix in the home), run by their profiles.
//!
//! They are installed once, outside of all worlds, below cargo's target directory, where
//! later runs find them. If the registry is out of reach, the tests say so and are skipped.
//! The agents themselves run in a closed world: none of them reaches anybody.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use stockade_world::{Builder, Laptop, Size, World, is_inside, test};

use crate::support::standard;

pub(crate) struct Agent {
    pub(crate) name: &'static str,
    package: &'static str,
    /// What its help says.
    help: &'static str,
}

pub(crate) const CLAUDE: Agent = Agent {
    name: "claude",
    package: "@anthropic-ai/claude-code",
    help: "Usage: claude",
};
pub(crate) const CODEX: Agent = Agent {
    name: "codex",
    package: "@openai/codex",
    help: "Usage: codex",
};
const SRT: Agent = Agent {
    name: "srt",
    package: "@anthropic-ai/sandbox-runtime",
    help: "Usage: srt",
};
pub(crate) const GEMINI: Agent = Agent {
    name: "gemini",
    package: "@google/gemini-cli",
    help: "Usage: gemini",
};

/// Where a user has npm put global packages who does not want to be root for that.
const PREFIX: &str = "/home/dev/.npm-global";

/// These are large programs, some of them scripts of many megabytes.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

#[test]
fn claude_code_from_the_registry_runs_inside() {
    runs_inside(&CLAUDE);
}

#[test]
fn codex_from_the_registry_runs_inside() {
    runs_inside(&CODEX);
}

#[test]
fn gemini_cli_from_the_registry_runs_inside() {
    runs_inside(&GEMINI);
}

/// An agent's own screen in a window of tmux: it is drawn, and hears keys.
#[test]
fn claude_codes_screen_works_in_a_multiplexer() {
    with(&CLAUDE, |laptop| {
        // The very first time: what it keeps its settings in has been made for it.
        let first = laptop.stockade(["claude"]).env("PATH", path()).limit(LIMIT);
        let terminal = first.terminal(Size::default()).expect("a terminal");
        terminal.expect("Welcome").expect("the screen");
        // Nobody answers it in the world, which ends it.
        let _ = terminal.wait().expect("its end");
        let file = laptop.home().join(".claude.json");
        let kept = fs::read_to_string(&file).expect("settings");
        assert!(kept.len() > "{}".len(), "{kept}");

        let settings = r#"{"hasCompletedOnboarding": true, "theme": "dark"}"#;
        fs::write(&file, settings).expect("settings");
        let tmux = laptop.stockade([
            "run",
            "--profile",
            "claude",
            "--",
            "tmux",
            "-f",
            "/dev/null",
        ]);
        // What reads the line after it takes no harm from late answers of the terminal.
        let tmux = tmux
            .args(["new", "claude; echo left $?; head -n 1 > /dev/null"])
            .env("PATH", path());
        let tmux = tmux.env("ANTHROPIC_AUTH_TOKEN", "decoy").limit(LIMIT);
        let mut terminal = tmux.terminal(Size::default()).expect("a terminal");
        // It asks something first; what, its makers change now and then. The mark of the choice
        // stays, and Ctrl-C, twice, leaves it.
        terminal.expect("❯").expect("the screen");
        terminal.write("\u{3}").expect("keys");
        terminal.write("\u{3}").expect("keys");
        terminal.expect("left ").expect("its end");
        terminal.write("done\r").expect("keys");
        assert!(terminal.wait().expect("the end").success());
        let kept = fs::read_to_string(&file).expect("settings");
        assert!(kept.contains("hasCompletedOnboarding"), "{kept}");
    });
}

/// What a command does that runs in a sandbox of an agent's own: it writes, renames, removes.
const WORK: &str = "echo one > one; mv one two; mkdir -p d/e; mv two d/e; cat d/e/two; rm -r d; ls -d d \
    2>/dev/null || echo gone; touch /usr/x 2>/dev/null && echo wrote; true";

#[test]
fn the_sandbox_of_codex_works_inside() {
    with(&CODEX, |laptop| {
        let boxed = [
            "codex",
            "sandbox",
            "-c",
            "sandbox_mode=\"workspace-write\"",
            "--",
            "bash",
            "-c",
            WORK,
        ];
        let inside = said(
            laptop
                .stockade(["run"])
                .args(["--profile", "codex", "--"])
                .args(boxed),
        );
        assert_eq!(inside, "one\ngone\n");
        // The profile is why it does.
        let without = laptop.stockade(["run", "--nested=false", "--profile", "codex", "--"]);
        let without = without.args(boxed).env("PATH", path()).limit(LIMIT).run();
        assert_eq!(without.expect("the end").stdout(), "");
    });
}

/// It is what Claude Code runs commands in, if its settings say so.
#[test]
fn the_sandbox_of_claude_code_works_inside() {
    for needed in ["/usr/bin/rg", "/usr/bin/socat"] {
        assert!(
            Path::new(needed).exists(),
            "{needed} is missing; ./test.sh installs it"
        );
    }
    with(&SRT, |laptop| {
        let settings = r#"{"network": {"allowedDomains": [], "deniedDomains": []},
            "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}"#;
        fs::write(laptop.home().join(".srt-settings.json"), settings).expect("settings");
        let read = ["--read", "~/.srt-settings.json"];
        let boxed = ["--", "srt", "bash", "-c", WORK];
        let run = |nested: &str| {
            let command = laptop.stockade(["run", nested]).args(read).args(boxed);
            command
                .env("PATH", path())
                .limit(LIMIT)
                .run()
                .expect("the end")
        };
        let inside = run("--nested");
        assert_eq!(inside.stdout(), "one\ngone\n", "{inside:?}");
        assert_eq!(run("--nested=false").stdout(), "");
    });
}

fn runs_inside(agent: &Agent) {
    with(agent, |laptop| {
        let version = installed_version(agent);
        let said = stockade(laptop, agent, "--version");
        assert!(said.contains(&version), "{version}: {said}");
        assert_eq!(said, outside(laptop, agent, "--version"));
        let help = stockade(laptop, agent, "--help");
        assert!(help.contains(agent.help), "{help}");
    });
}

/// Runs a test on a laptop that has the agent.
pub(crate) fn with(agent: &Agent, test_: impl FnOnce(&Laptop)) {
    with_in(standard().limit(4 * LIMIT), agent, test_);
}

/// The same on a laptop of this world.
pub(crate) fn with_in(world: Builder, agent: &Agent, test_: impl FnOnce(&Laptop)) {
    with_world(world, agent, |world| test_(world.laptop()));
}

/// The same with all of that world.
pub(crate) fn with_world(world: Builder, agent: &Agent, test_: impl FnOnce(&mut World)) {
    let prefix = prefix(agent);
    if !is_inside()
        && let Err(OutOfReach(why)) = install(agent.package, &prefix)
    {
        // Past libtest, which would keep it to itself.
        let _ = writeln!(
            io::stderr(),
            "skipped: the npm registry is out of reach: {why}"
        );
        return;
    }
    let world = world.directory(PREFIX, &prefix);
    test(&world, test_);
}

/// The version by the package's own description.
fn installed_version(agent: &Agent) -> String {
    let file = format!("{PREFIX}/lib/node_modules/{}/package.json", agent.package);
    let text = fs::read_to_string(&file).expect("the package's description");
    let description: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let version = description.get("version").and_then(|it| it.as_str());
    version.expect("a version").to_owned()
}

/// What the agent says in the sandbox, started by its name.
fn stockade(laptop: &Laptop, agent: &Agent, argument: &str) -> String {
    let command = laptop.stockade([agent.name, argument]);
    said(command)
}

fn outside(laptop: &Laptop, agent: &Agent, argument: &str) -> String {
    said(laptop.command("env").args([agent.name, argument]))
}

fn said(command: stockade_world::Command) -> String {
    let output = command.env("PATH", path()).limit(LIMIT).run();
    output.expect("the agent ends").expect_success().stdout()
}

pub(crate) fn path() -> String {
    format!("{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin")
}

/// Each in a place of its own: one that fails to install leaves the others alone.
fn prefix(agent: &Agent) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("agents")
        .join(agent.name)
}

/// Why npm cannot get at its registry.
pub(crate) struct OutOfReach(String);

/// npm's names for failures of the network.
const UNREACHABLE: [&str; 9] = [
    "EAI_AGAIN",
    "EAI_FAIL",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTFOUND",
    "ERR_SOCKET_TIMEOUT",
    "ETIMEDOUT",
];

/// Installs a package, if that was not done before.
pub(crate) fn install(package: &str, prefix: &Path) -> Result<(), OutOfReach> {
    // npm keeps one cache for all.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    if prefix.join("done").exists() {
        return Ok(());
    }
    let output = Command::new("npm")
        .args(["install", "--global", "--no-audit", "--no-fund"])
        .args(["--fetch-retries=1", "--fetch-timeout=60000"])
        .arg("--prefix")
        .arg(prefix)
        .arg(package)
        .output()
        .expect("npm starts (test.sh installs it)");
    let complaint = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let is_unreachable = |line: &&str| UNREACHABLE.iter().any(|code| line.contains(code));
        let line = complaint.lines().find(is_unreachable);
        let line = line.unwrap_or_else(|| panic!("npm does not install it: {complaint}"));
        return Err(OutOfReach(line.to_owned()));
    }
    fs::write(prefix.join("done"), "").expect("a mark");
    Ok(())
}
