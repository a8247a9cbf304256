//! Where tests take protections away that are not in the plan, to see whether `verify` notices.
//! Here nothing is taken away: `sabotage/` builds this crate with another file in the place of this.

use std::ffi::CString;

use stockade_sys::seccomp::Refusal;

use crate::plan::Plan;

pub(crate) const fn gives_capabilities(_: &Plan) -> bool {
    false
}

pub(crate) const fn removes_filter(_: &[CString]) -> bool {
    false
}

pub(crate) const fn lets_rule_pass(_: &[CString], _: &Refusal) -> bool {
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
