//! `stockade plan`: everything that a session would be given, as text to audit. The wall
//! describes its own part; the network is described here.

mod network;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use stockade_config::{Diagnostics, Effective};
use stockade_wall::{Facts, Plan, Step, Variable};

use crate::{args, context, terminal, wall_config};

pub(crate) fn plan(arguments: &args::Plan) -> Result<ExitCode> {
    let program = arguments.command.first().cloned().unwrap_or_default();
    let profile = arguments.profile.as_deref();
    let loader = context::loader_for(&arguments.settings, profile, Some(&program))?;
    let loaded = context::load(&loader)?;
    let config = wall_config::config(&loaded.effective, &loader, &program)?;
    let facts = Facts::gather(&config, Some(&loader.places.workspace))?;
    let plan = Plan::build(&config, &facts)?;
    if arguments.json {
        terminal::print(format_args!("{:#}\n", as_json(&plan, &loaded.effective)))?;
    } else {
        let proxy = loader.proxy(&loaded.effective).map_err(Diagnostics::from)?;
        let network = network::as_text(&loaded.effective, proxy.as_ref());
        terminal::print(format_args!("{network}{plan}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(plan: &Plan, effective: &Effective) -> Value {
    let file = |step: &Step| {
        json!({
            "operation": step.to_string(),
            "at": step.at.to_string_lossy(),
            "source": step.operation.source().map(|path| path.to_string_lossy()),
            "reason": step.reason,
        })
    };
    let variable = |variable: &Variable| {
        json!({
            "name": variable.name.to_string_lossy(),
            "value": (!variable.is_private).then(|| variable.value.to_string_lossy()),
            "reason": variable.reason,
        })
    };
    let isolation = plan
        .isolation
        .iter()
        .map(|(isolation, reason)| json!({ "apart": format!("{isolation:?}"), "reason": reason }));
    let limits = plan.limits.iter().map(|(limit, reason)| {
        let resource = format!("{:?}", limit.resource);
        json!({ "resource": resource, "soft": limit.soft, "hard": limit.hard, "reason": reason })
    });
    let layers = plan.layers.iter().map(|layer| {
        let name = layer.protection.name();
        json!({ "layer": name, "state": layer.state.to_string() })
    });
    json!({
        "profile": effective.profile,
        "network": network::as_json(effective),
        "files": plan.files.iter().map(file).collect::<Value>(),
        "environment": plan.environment.iter().map(variable).collect::<Value>(),
        "isolation": isolation.collect::<Value>(),
        "limits": limits.collect::<Value>(),
        "layers": layers.collect::<Value>(),
        "working_directory": plan.working_directory.to_string_lossy(),
        "program": plan.program.as_ref().map(|path| path.to_string_lossy()),
        "given": plan.given,
        "notes": plan.notes,
    })
}
