//! What `stockade run` would meet in the current directory.

use stockade_config::proxy_variables;
use stockade_wall::{Facts, Plan};

use super::Check;
use crate::{context, wall_config};

/// The configuration, then the directory.
pub(super) fn checks() -> Vec<Check> {
    const CONFIGURATION: &str = "configuration";
    let loader = match context::loader_here() {
        Ok(loader) => loader,
        Err(error) => return vec![Check::failure(CONFIGURATION, format!("{error:#}"))],
    };
    let loaded = match loader.load() {
        Ok(loaded) => loaded,
        // Who could write the files is part of what is checked.
        Err(problems) => {
            let text = problems.render(false);
            return vec![
                Check::failure(CONFIGURATION, text.trim())
                    .cost("no session can be started in this directory")
                    .fix("correct it; `stockade config check` checks it"),
            ];
        }
    };
    let count = loaded.files.len();
    let mut found = match count {
        0 => "no files; the defaults apply".to_owned(),
        1 => "one file, valid".to_owned(),
        count => format!("{count} files, valid"),
    };
    if let Some(notice) = loaded.workspace_file.notice() {
        found.push_str(&format!("\n{notice}"));
    }
    let mut checks = vec![Check::ok(CONFIGURATION, found)];
    checks.push(workspace(&loader, &loaded));
    checks.extend(proxy(&loader, &loaded));
    checks
}

/// The proxy that sessions use, or one that they do not.
fn proxy(loader: &stockade_config::Loader, loaded: &stockade_config::Loaded) -> Option<Check> {
    const NAME: &str = "proxy";
    match loader.proxy(&loaded.effective) {
        Ok(Some(proxy)) => {
            let (what, origin) = (proxy.describe(), &proxy.origin);
            Some(Check::ok(
                NAME,
                format!("sessions reach the internet through {what} ({origin})"),
            ))
        }
        // The workspace's check says so.
        Err(_) => None,
        Ok(None) => {
            let (variable, address) = proxy_variables(&loader.environment).next()?;
            let found = format!("{variable} names the proxy {address}, which sessions do not use");
            let cost = "if this machine has no other way to the internet, sessions have none";
            let fix = "add --proxy environment, or proxy = \"environment\" to [network]";
            Some(Check::warning(NAME, found).cost(cost).fix(fix))
        }
    }
}

/// Another directory may do, so it is no failure of the machine.
fn workspace(loader: &stockade_config::Loader, loaded: &stockade_config::Loaded) -> Check {
    const NAME: &str = "workspace";
    let config = match wall_config::config(&loaded.effective, loader, &"sh".into()) {
        Ok(config) => config,
        Err(error) => {
            return Check::warning(NAME, error.to_string()).cost("no session can be started");
        }
    };
    let facts = Facts::gather(&config, Some(&loader.places.workspace));
    let plan = facts.and_then(|facts| Plan::build(&config, &facts));
    match plan {
        Ok(plan) => {
            let mut found = "this directory can be a workspace".to_owned();
            for note in &plan.notes {
                found.push_str(&format!("\n{note}"));
            }
            Check::ok(NAME, found)
        }
        Err(error) => Check::warning(NAME, error.to_string())
            .cost("no session can be started in this directory"),
    }
}
