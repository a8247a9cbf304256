//! Puts the results into the place that is kept for them in the documentation.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::results::Results;

const DOCUMENT: &str = "docs/performance.md";
const CHART: &str = "docs/performance.svg";

/// The place of one bench's results, between two lines.
pub(crate) struct Section {
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
}

const NET: Section = Section {
    begin: "<!-- cargo xtask bench net --write: begin -->",
    end: "<!-- cargo xtask bench net --write: end -->",
};

pub(crate) fn write(repository: &Path, results: &Results) -> Result<()> {
    NET.write(repository, &super::markdown(results))?;
    fs::write(repository.join(CHART), super::chart(results))
        .with_context(|| format!("cannot write {CHART}"))
}

impl Section {
    pub(crate) fn write(&self, repository: &Path, between: &str) -> Result<()> {
        let path = repository.join(DOCUMENT);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
        let text = self.replace(&text, between).with_context(|| {
            let Self { begin, end } = self;
            format!("{DOCUMENT} has lost its markers, {begin} and {end}")
        })?;
        fs::write(&path, text).with_context(|| format!("cannot write {DOCUMENT}"))
    }

    /// `None` if the markers are not there, or not in this order.
    fn replace(&self, text: &str, between: &str) -> Option<String> {
        let Self { begin, end } = self;
        let (before, rest) = text.split_once(begin)?;
        let (_, after) = rest.split_once(end)?;
        Some(format!("{before}{begin}\n{between}{end}{after}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let Section { begin, end } = NET;
        let text = format!("above\n{begin}\nold\n{end}\nbelow\n");
        let new = NET.replace(&text, "new\n").unwrap();
        assert_eq!(new, format!("above\n{begin}\nnew\n{end}\nbelow\n"));
        assert_eq!(NET.replace(&new, "new\n").unwrap(), new);
        assert_eq!(NET.replace("no markers", "new"), None);
    }
}
