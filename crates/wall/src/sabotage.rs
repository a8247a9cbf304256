//! Hooks for tests that take a protection away and check that this is noticed.
//!
//! What the plan holds is taken out of the plan. The hooks here are for the inner stage and
//! bubblewrap. They exist only with the feature `sabotage`, which only `crates/sabotage` asks for.
//! Without it, each function here is a constant.

use std::ffi::CString;

use crate::plan::Plan;

#[cfg(not(feature = "sabotage"))]
mod hooks {
    use super::{CString, Plan};

    pub(crate) const fn gives_capabilities(_: &Plan) -> bool {
        false
    }

    pub(crate) const fn removes_filter(_: &[CString]) -> bool {
        false
    }

    pub(crate) const fn lets_rule_pass(_: &[CString], _: usize) -> bool {
        false
    }

    pub(crate) const fn keeps_capabilities(_: &[CString]) -> bool {
        false
    }

    pub(crate) const fn removes_broker(_: &[CString]) -> bool {
        false
    }

    pub(crate) const fn leak_descriptor(_: &[CString]) {}

    pub(crate) const fn environment(environment: &[CString]) -> &[CString] {
        environment
    }
}

#[cfg(feature = "sabotage")]
mod hooks {
    use std::os::fd::IntoRawFd;

    use rustix::fs::{Mode, OFlags};

    use super::{CString, Plan};
    use crate::plan::Variable;

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

    pub(crate) fn lets_rule_pass(environment: &[CString], rule: usize) -> bool {
        told(environment) == Some(&format!("filter {rule}"))
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
}

pub(crate) use hooks::{
    environment, gives_capabilities, keeps_capabilities, leak_descriptor, lets_rule_pass,
    removes_broker, removes_filter,
};
