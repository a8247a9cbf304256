//! The outer process: starts the stages, waits, and passes on what they say.

use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use super::{PASSED, stages};
use crate::builder::Builder;
use crate::error::{Doing, Result};
use crate::process;

/// Runs the calling test again behind the stages and panics unless its body
/// passed.
#[track_caller]
pub(super) fn run_test(builder: &Builder, arguments: &[OsString]) {
    let (status, output) = match capture(builder, arguments) {
        Ok(outcome) => outcome,
        Err(error) => panic!("cannot enter a world: {error}{}", hint("")),
    };
    match status {
        Some(status) if status.code() == Some(PASSED) => print!("{output}"),
        Some(status) if status.code() == Some(0) => {
            panic!("no test of this name ran in the world\n{output}")
        }
        Some(_) => panic!(
            "the test failed in its world{}\n--- output of the world ---\n{output}",
            hint(&output)
        ),
        None => panic!(
            "the test was killed after {:?}\n--- output of the world ---\n{output}",
            builder.limit
        ),
    }
}

/// Exit status (`None`: killed at the time limit) and everything printed.
fn capture(builder: &Builder, arguments: &[OsString]) -> Result<(Option<ExitStatus>, String)> {
    let (reader, writer) = io::pipe().doing("make a pipe")?;
    let mut command = stages::first(builder, arguments)?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().doing("share the pipe")?)
        .stderr(writer);
    let mut child = command.spawn().doing("start unshare")?;
    // The command keeps copies of the pipe's end; without this the reader
    // would never see the end of it.
    drop(command);
    let reader = thread::spawn(move || read_to_end(reader));
    let status = wait_or_kill(&mut child, builder.limit)?;
    let output = reader.join().unwrap_or_default();
    Ok((status, without_libtest_headers(&output)))
}

fn wait_or_kill(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    if process::exits_within(child, limit)? {
        return child.wait().map(Some).doing("wait for the world");
    }
    child.kill().doing("kill the world")?;
    child.wait().doing("wait for the killed world")?;
    Ok(None)
}

fn read_to_end(mut reader: PipeReader) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is still worth showing.
    let _ = reader.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Every stage is a libtest process and announces its one test.
fn without_libtest_headers(output: &str) -> String {
    output
        .split_inclusive('\n')
        .filter(|line| {
            let line = line.trim();
            line != "running 1 test" && !(line.starts_with("test ") && line.ends_with(" ..."))
        })
        .collect::<String>()
        .trim_start()
        .to_owned()
}

/// Runs the calling program again with its own arguments and streams.
pub(super) fn run_program(builder: &Builder) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let status = stages::first(builder, &arguments)
        .and_then(|mut command| command.status().doing("start unshare"));
    match status {
        Ok(status) => {
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("world: {error}{}", hint(""));
            ExitCode::FAILURE
        }
    }
}

/// The usual reasons why namespaces cannot be made, read from the machine
/// instead of guessed. Empty if `output` shows that the body was reached.
fn hint(output: &str) -> String {
    if !output.is_empty() && !output.contains("unshare:") {
        return String::new();
    }
    const SWITCHES: [(&str, &str); 4] = [
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("user/max_user_namespaces", "0"),
        ("user/max_net_namespaces", "0"),
    ];
    SWITCHES
        .iter()
        .filter(|(name, forbidding)| {
            fs::read_to_string(format!("/proc/sys/{name}"))
                .is_ok_and(|value| value.trim() == *forbidding)
        })
        .map(|(name, forbidding)| {
            format!(
                "\nnote: this machine forbids namespaces to ordinary users: sysctl {} is {forbidding}",
                name.replace('/', ".")
            )
        })
        .collect()
}
