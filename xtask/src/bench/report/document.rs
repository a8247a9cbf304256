//! Puts the results into the place that is kept for them in the documentation.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::results::Results;

const DOCUMENT: &str = "docs/performance.md";
const CHART: &str = "docs/performance.svg";
const BEGIN: &str = "<!-- cargo xtask bench net --write: begin -->";
const END: &str = "<!-- cargo xtask bench net --write: end -->";

pub(crate) fn write(repository: &Path, results: &Results) -> Result<()> {
    let path = repository.join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let text = replace(&text, &super::markdown(results))
        .with_context(|| format!("{DOCUMENT} has lost its markers, {BEGIN} and {END}"))?;
    fs::write(repository.join(CHART), super::chart(results))
        .with_context(|| format!("cannot write {CHART}"))?;
    fs::write(&path, text).with_context(|| format!("cannot write {DOCUMENT}"))
}

/// `None` if the markers are not there, or not in this order.
fn replace(text: &str, between: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{between}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let new = replace(&text, "new\n").unwrap();
        assert_eq!(new, format!("above\n{BEGIN}\nnew\n{END}\nbelow\n"));
        assert_eq!(replace(&new, "new\n").unwrap(), new);
        assert_eq!(replace("no markers", "new"), None);
    }
}
