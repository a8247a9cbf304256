//! The prober: this same program, as the command of a session. It looks around and tries
//! what a hostile program would, and tells. It knows nothing of what is right.
//!
//! It makes no difference who starts it: it does nothing that its caller could not do.

mod files;
mod kernel;
mod nested;
mod network;

use std::{
    env,
    io::{self, BufRead as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use rustix::{
    fs::{FileType, fstat},
    stdio::stdin,
};
use serde::{Serialize, de::DeserializeOwned};

pub(super) use self::{
    files::read,
    kernel::{calls, namespaces},
    network::ask,
};
use super::messages::{Assignment, Observations, SecondAssignment, SecondObservations};

pub(crate) fn probe() -> Result<ExitCode> {
    let assignment: Assignment = hear()?;
    say(&Observations {
        namespaces: namespaces(),
        status: kernel::status(),
        environment: env::vars_os()
            .map(|(name, value)| {
                let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
                (text(name), text(value))
            })
            .collect(),
        descriptors: files::descriptors(),
        core_limit: kernel::core_limit(),
        own_proc: files::proc_is_own(),
        mounts: files::mounts(),
        reads: files::each(&assignment.reads, read),
        texts: files::texts(&assignment.texts),
        lists: files::lists(&assignment.lists),
        identities: super::identity::all(&assignment.identities),
        writes: files::each(&assignment.writes, files::write),
        left: Some(files::leave(&assignment.leaves)),
        sockets: files::each(&assignment.sockets, network::connect_to_file),
        abstract_socket: Some(network::connect_to_abstract(&assignment.abstract_socket)),
        calls: calls(),
        signal: Some(kernel::signal_to_keeper()),
        reopened: Some(files::reopen_stdin()),
        targets: assignment.targets.iter().map(ask).collect(),
        listener: network::listen(&assignment.token),
    })?;

    let second: SecondAssignment = hear()?;
    say(&SecondObservations {
        denied: second.denied.iter().map(ask).collect(),
        names: second
            .name_server
            .map_or_else(Vec::new, network::ask_for_localhost),
        changes: second.change.then(network::change),
        nested: Some(nested::attempts(second.change, second.covered.as_deref())),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What needs no assignment.
pub(super) fn look_around(writes: &[PathBuf]) -> Observations {
    Observations {
        status: kernel::status(),
        core_limit: kernel::core_limit(),
        writes: files::each(writes, files::write),
        calls: calls(),
        signal: Some(kernel::signal_to_keeper()),
        ..Observations::default()
    }
}

/// The next line of standard input: a file, which grows.
fn hear<T: DeserializeOwned>() -> Result<T> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let grows = FileType::from_raw_mode(fstat(stdin())?.st_mode) == FileType::RegularFile;
    let (mut line, begin) = (String::new(), Instant::now());
    while io::stdin().lock().read_line(&mut line)? == 0 || !line.ends_with('\n') {
        if !grows || begin.elapsed() > PATIENCE {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    serde_json::from_str(&line).context("this is a part of `stockade verify`")
}

fn say(what: &impl Serialize) -> Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, what)?;
    writeln!(stdout)?;
    stdout.flush()?;
    Ok(())
}
