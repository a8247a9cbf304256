//! Protections of the inner stage and of bubblewrap that a test takes away: in the place of
//! `crates/wall/src/sabotage.rs`, where each function is a constant.

use std::{ffi::CString, os::fd::IntoRawFd};

use rustix::fs::{Mode, OFlags};
use stockade_sys::seccomp::Refusal;

use crate::plan::{Plan, Variable};

// The program's own package does not compile with this file, whatever flags the compiler is given.
const _: () = assert!(matches!(
    env!("CARGO_PKG_NAME").as_bytes(),
    b"stockade-sabotaged-wall"
));

/// A variable that tells the inner stage. The command does not get it: it is the last one,
/// and is cut off.
const CARRIER: &str = "STOCKADE_SABOTAGE_INSIDE";

impl Plan {
    /// Has the inner stage, or bubblewrap, do without something.
    pub fn sabotage(&mut self, what: &str) {
        match what {
            "landlock" => self.scopes = false,
            _ => self.environment.push(Variable {
                name: CARRIER.into(),
                value: what.into(),
                reason: "a test".into(),
                is_private: false,
            }),
        }
    }
}

pub(crate) fn gives_capabilities(plan: &Plan) -> bool {
    let last = plan.environment.last();
    last.is_some_and(|it| it.name == CARRIER && it.value == "capabilities")
}

fn told(environment: &[CString]) -> Option<&str> {
    let last = environment.last()?.to_str().ok()?;
    last.strip_prefix(CARRIER)?.strip_prefix('=')
}

pub(crate) fn removes_filter(environment: &[CString]) -> bool {
    told(environment) == Some("filter")
}

pub(crate) fn lets_rule_pass(environment: &[CString], rule: &Refusal) -> bool {
    told(environment).and_then(|what| what.strip_prefix("filter ")) == Some(rule.name)
}

pub(crate) fn keeps_capabilities(environment: &[CString]) -> bool {
    told(environment) == Some("capabilities")
}

pub(crate) fn removes_broker(environment: &[CString]) -> bool {
    told(environment) == Some("broker")
}

pub(crate) fn leak_descriptor(environment: &[CString]) {
    if told(environment) == Some("descriptors") {
        let file = rustix::fs::open("/etc/passwd", OFlags::RDONLY, Mode::empty());
        // The command has it, without knowing.
        let _ = file.map(IntoRawFd::into_raw_fd);
    }
}

pub(crate) fn environment(environment: &[CString]) -> &[CString] {
    match (told(environment), environment.split_last()) {
        (Some(_), Some((_, rest))) => rest,
        _ => environment,
    }
}
