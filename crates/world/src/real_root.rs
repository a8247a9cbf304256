//! Tests that only the machine's real root can make.
//!
//! The world's root is enough for nearly everything. What is left (giving files away, the
//! machine's control groups) runs again by sudo when an ordinary user started the tests.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::entry::test_arguments;
use crate::tool;

/// Is this the real root? If not, the calling test runs again by sudo, and fails if that one
/// does; the caller has nothing left to do then.
///
/// Where there is no sudo, or it asks for a password, a line on standard error says that the test
/// was not made.
#[track_caller]
pub fn is_real_root() -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let arguments = test_arguments();
    let name = arguments[1].display();
    let Some(mut again) = sudo() else {
        let note = format!("NOT TESTED: {name} needs root, by sudo without a password\n");
        // Not by a macro: libtest would keep the line to itself.
        let _ = io::stderr().write_all(note.as_bytes());
        return false;
    };
    again.arg(std::env::current_exe().expect("the path of this test"));
    let output = again.args(&arguments).output().expect("sudo runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{name}, run by sudo, failed:\n{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// sudo, if it works without asking.
fn sudo() -> Option<Command> {
    let path = tool::find("sudo").ok()?;
    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).status()
    };
    let mut trial = Command::new(&path);
    let works = quiet(trial.args(["-n", "true"])).is_ok_and(|status| status.success());
    let mut command = Command::new(path);
    command.args(["-n", "--"]);
    works.then_some(command)
}
