//! Whether guarded agents refuse to work outside.

use super::Check;
use crate::{context, guard};

const NAME: &str = "guard";

/// One for each guard that is there. Nobody needs one.
pub(super) fn checks() -> Vec<Check> {
    let Ok(loader) = context::loader_here() else {
        return Vec::new();
    };
    let check = |guard: &guard::Guard| match guard.fault() {
        None => Check::ok(
            NAME,
            format!("{} is guarded by {}", guard.agent, guard.file()),
        ),
        Some(fault) => Check::warning(
            NAME,
            format!(
                "{} is not guarded by {}: {fault}",
                guard.agent,
                guard.file()
            ),
        )
        .cost("started by mistake, the agent works outside of the sandbox, or not at all")
        .fix(guard.fix().unwrap_or_default()),
    };
    guard::all(&loader).iter().map(check).collect()
}
