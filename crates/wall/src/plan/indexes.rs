//! The settings that name package indexes and versions of tools, without the rest of these files.

use super::{Operation, Step, layout::Layout, words::word_of_shell};
use crate::{
    config::Config,
    facts::{Facts, indexes::IndexFile},
};

const REASON: &str = "which packages and versions to use; logins and other settings are left out";

/// Puts them in their places, unless the files themselves are in view there, or are to be hidden.
pub(super) fn place(config: &Config, facts: &Facts, layout: &mut Layout) {
    let hide = config.hide.iter();
    let hidden: Vec<_> = hide.filter_map(|it| facts.found.get(&it.path)).collect();
    let is_hidden = |file: &&IndexFile| hidden.iter().any(|it| file.at.starts_with(&it.at));
    for file in facts.indexes.iter().filter(|file| !is_hidden(file)) {
        let around = layout.enclosing(&file.at).map(|step| &step.operation);
        let is_shown = matches!(
            around,
            Some(Operation::ReadOnly { .. } | Operation::Writable { .. } | Operation::Guard(_))
        );
        if !is_shown {
            let text = Operation::Text(file.text.clone());
            layout.place(Step::new(&file.at, text, REASON));
        }
    }
}

/// A sentence for each file with a login that an index may need.
pub(super) fn notes(config: &Config, facts: &Facts) -> impl Iterator<Item = String> {
    let given = config.read.iter().chain(&config.write).chain(&config.hide);
    let given = given.filter_map(|request| facts.found.get(&request.path));
    let given: Vec<_> = given.map(|found| found.at.clone()).collect();
    let logins = facts.indexes.iter().filter_map(|file| file.login.as_ref());
    let logins = logins.filter(move |file| !given.iter().any(|given| file.starts_with(given)));
    logins.map(|file| {
        let below = file.strip_prefix(&facts.home.real).ok();
        let word = match below {
            Some(below) => word_of_shell(below).map(|below| format!("~/{below}")),
            None => word_of_shell(file),
        };
        let (name, fix) = match word {
            Some(word) => (word.clone(), format!(", add --read {word}")),
            None => (format!("{file:?}"), ", give it with --read".to_owned()),
        };
        format!(
            "{name} has a login for a package index, which stays outside: if the index asks for \
             it{fix}"
        )
    })
}
