//! What the kernel says of this process, and what it refuses to it.

use std::{collections::BTreeMap, fs};

use rustix::process::{Pid, Resource, getrlimit, test_kill_process};
use stockade_sys::attempt::ATTEMPTS;

use crate::verify::messages::Tried;

pub(in crate::verify) fn namespaces() -> BTreeMap<String, String> {
    let of = |entry: fs::DirEntry| {
        let kind = entry.file_name().into_string().ok()?;
        let identity = fs::read_link(entry.path()).ok()?;
        Some((kind, identity.to_string_lossy().into_owned()))
    };
    let entries = fs::read_dir("/proc/self/ns").into_iter().flatten();
    entries.flatten().filter_map(of).collect()
}

pub(super) fn status() -> BTreeMap<String, String> {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

pub(super) fn core_limit() -> Option<u64> {
    getrlimit(Resource::Core).maximum
}

/// The error number that each dangerous call gets.
pub(in crate::verify) fn calls() -> BTreeMap<String, i32> {
    let error = |attempt: &stockade_sys::attempt::Attempt| attempt.errno();
    ATTEMPTS
        .iter()
        .map(|attempt| (attempt.name.to_owned(), error(attempt)))
        .collect()
}

/// Whether process 1, which has the same user, could be signalled. Nothing is sent.
pub(super) fn signal_to_keeper() -> Tried {
    test_kill_process(Pid::INIT).map_err(Into::into).into()
}
