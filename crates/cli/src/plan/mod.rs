//! `stockade plan`: everything that a session would be given, as text to audit. The wall
//! describes its own part; the network is described here.

mod network;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use stockade_config::Effective;
use stockade_wall::{Facts, Plan};

use crate::{args, context, terminal, wall_config};

pub(crate) fn plan(arguments: &args::Plan) -> Result<ExitCode> {
    let program = arguments.command.first().cloned().unwrap_or_default();
    let profile = arguments.profile.as_deref();
    let loader = context::loader_for(&arguments.settings, profile, Some(&program))?;
    let loaded = context::load(&loader)?;
    let config = wall_config::config(&loaded.effective, &loader.places, &program);
    let facts = Facts::gather(&config, Some(&loader.places.workspace))?;
    let plan = Plan::build(&config, &facts)?;
    if arguments.json {
        terminal::print(format_args!("{:#}\n", as_json(&plan, &loaded.effective)))?;
    } else {
        let network = network::as_text(&loaded.effective);
        terminal::print(format_args!("{network}{plan}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(plan: &Plan, effective: &Effective) -> Value {
    let files: Vec<_> = plan
        .files
        .iter()
        .map(|step| {
            json!({
                "operation": step.operation.to_string(),
                "at": step.operation.at().to_string_lossy(),
                "source": step.operation.source().map(|path| path.to_string_lossy()),
                "reason": step.reason,
            })
        })
        .collect();
    let environment: Vec<_> = plan
        .environment
        .iter()
        .map(|variable| {
            json!({
                "name": variable.name.to_string_lossy(),
                "value": (!variable.is_private).then(|| variable.value.to_string_lossy()),
                "reason": variable.reason,
            })
        })
        .collect();
    let limits: Vec<_> = plan
        .limits
        .iter()
        .map(|(limit, reason)| {
            json!({
                "resource": format!("{:?}", limit.resource),
                "soft": limit.soft,
                "hard": limit.hard,
                "reason": reason,
            })
        })
        .collect();
    let isolation: Vec<_> = plan
        .isolation
        .iter()
        .map(|(isolation, reason)| json!({ "apart": format!("{isolation:?}"), "reason": reason }))
        .collect();
    let layers: Vec<_> = plan
        .layers
        .iter()
        .map(|layer| {
            let name = layer.protection.name();
            json!({ "layer": name, "state": layer.state.to_string() })
        })
        .collect();
    json!({
        "profile": effective.profile,
        "network": network::as_json(effective),
        "files": files,
        "environment": environment,
        "isolation": isolation,
        "limits": limits,
        "layers": layers,
        "working_directory": plan.working_directory.to_string_lossy(),
        "program": plan.program.as_ref().map(|path| path.to_string_lossy()),
        "given": plan.given,
        "notes": plan.notes,
    })
}
