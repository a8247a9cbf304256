//! `stockade allow`: the user allows something for this project from now on, in one line.

use std::{path::Path, process::ExitCode};

use anyhow::{Result, anyhow};
use stockade_config::{NetworkEdit, NewRule, shown, shown_path};
use stockade_policy::Rule;
use stockade_warden::{self as warden, LogDirectory};

use crate::{args, context, init, log, receipt, reload, terminal};

pub(crate) fn allow(arguments: &args::Allow) -> Result<ExitCode> {
    let rule = |text: &String| -> Result<NewRule> {
        let rule = match arguments.near {
            true => Rule::parse_near(text),
            false => text.parse(),
        };
        let rule = rule.map_err(|error| anyhow!("`{}`: {error}", shown(text)))?;
        Ok(rule.into())
    };
    let rules: Result<Vec<_>> = arguments.rules.iter().map(rule).collect();
    let edit = NetworkEdit {
        rules: rules?,
        ..NetworkEdit::default()
    };
    let loader = context::loader_here()?;
    init::check_workspace(&loader.places)?;
    let (path, edited) = loader.edit_project_file(&edit)?;
    let path = shown_path(&path);
    for rule in &edited.added {
        terminal::print(format_args!("{path}: allows {rule}\n"))?;
        if let Some(danger) = receipt::danger_of_rule(rule) {
            tell!("stockade: WARNING: {rule}: {danger}");
        }
    }
    if edited.added.is_empty() {
        terminal::print(format_args!("{path} allows this already\n"))?;
    }
    for idle in context::idle_rules(&context::load(&loader)?.effective) {
        tell!("stockade: {idle}");
    }
    reload_sessions_of(&loader.places.home, &loader.places.workspace)
}

/// Has the running sessions of a workspace take up its configuration.
pub(crate) fn reload_sessions_of(home: &Path, workspace: &Path) -> Result<ExitCode> {
    let directory = LogDirectory::of(home);
    let mut code = ExitCode::SUCCESS;
    for id in warden::all()? {
        let is_here = log::workspace(&directory, &id).as_deref() == Some(workspace);
        if is_here && reload::one(&id)? == Some(false) {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}
