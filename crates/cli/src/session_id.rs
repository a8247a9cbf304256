//! Which session somebody means who types a part of its identifier.

use anyhow::Result;
use stockade_config::shown;

use crate::exit::refused;

/// The one of these sessions that is meant by its identifier, or by the beginning of it.
///
/// # Errors
/// If several are; `fix` says what shows them.
pub(crate) fn meant(sessions: &[String], wanted: &str, fix: &str) -> Result<Option<String>> {
    const SHOWN: usize = 8;
    let meant = sessions.iter().filter(|id| id.starts_with(wanted));
    let meant: Vec<_> = meant.map(String::as_str).collect();
    if meant.len() < 2 || meant.contains(&wanted) {
        let exactly = meant.iter().find(|id| **id == wanted);
        return Ok(exactly.or(meant.first()).map(ToString::to_string));
    }
    let dots = if meant.len() > SHOWN { ", …" } else { "" };
    let latest: Vec<_> = meant.iter().rev().take(SHOWN).map(|id| shown(id)).collect();
    let what = format!(
        "{} sessions begin with {}: {}{dots}",
        meant.len(),
        shown(wanted),
        latest.join(", ")
    );
    Err(refused(what, fix))
}
