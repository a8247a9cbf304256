//! What the user should know about a plan.

use crate::{config::Config, facts::Facts};

pub(super) fn notes(config: &Config, facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((path, why)) = &facts.git.refused {
        notes.push(format!(
            "git will not work inside: {path:?} is not shown, because {why}. \
             If it is yours, name the directory in files.write"
        ));
    }
    for path in &facts.unguarded {
        notes.push(format!(
            "{path:?} is executed outside and cannot be protected, because it is a link: \
             look at what it leads to after the session"
        ));
    }
    for state in &config.agent.state {
        if !facts.found.contains_key(&state.path) {
            notes.push(format!(
                "{:?} does not exist: what the agent writes there is gone at the end",
                state.path
            ));
        }
    }
    notes
}
