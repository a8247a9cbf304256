//! `stockade caches`: what sessions keep of package caches, by workspace.

use std::{
    fs,
    path::Path,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use serde_json::json;
use stockade_config::shown_path;
use stockade_wall::{CacheOfWorkspace, CacheStore, Cleared};

use crate::{args, context, exit::refused, terminal};

pub(crate) fn caches(arguments: &args::Caches) -> Result<ExitCode> {
    let loader = context::loader_here()?;
    let store = CacheStore::of(&loader.places.state);
    let all = store
        .list(&|| false)
        .context("the caches cannot be listed")?;
    match &arguments.clear {
        None => list(&all, arguments.json),
        Some(_) if arguments.all => clear(&store, &all, arguments.json),
        Some(workspace) => {
            // It may be gone, and its caches still there.
            let real = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.clone());
            let of = all.into_iter().find(|cache| cache.workspace == real);
            let Some(cache) = of else {
                let what = format!("no caches are kept for {}", shown_path(&real));
                return Err(refused(what, "`stockade caches` lists them"));
            };
            clear(&store, &[cache], arguments.json)
        }
    }
}

fn list(all: &[CacheOfWorkspace], is_json: bool) -> Result<ExitCode> {
    if is_json {
        let all: Vec<_> = all.iter().map(as_json).collect();
        terminal::print(format_args!("{:#}\n", json!(all)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        terminal::write(b"No caches are kept.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |cache: &CacheOfWorkspace| {
        let least = if cache.is_at_least { ">" } else { "" };
        let used = match cache.is_in_use {
            true => "now".to_owned(),
            false => ago(cache.used),
        };
        let size = format!("{least}{}", terminal::size(cache.bytes));
        [size, used, shown_path(&cache.workspace)]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let table = terminal::table(["size", "used", "workspace"], &rows);
    let total = terminal::size(all.iter().map(|cache| cache.bytes).sum());
    terminal::print(format_args!("{table}{total} in all\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn clear(store: &CacheStore, all: &[CacheOfWorkspace], is_json: bool) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for cache in all {
        let path = shown_path(&cache.workspace);
        let cleared = store
            .clear(cache, &|| false)
            .with_context(|| format!("the caches of {path} cannot be removed"))?;
        match cleared {
            Cleared::Yes if is_json => {}
            Cleared::Yes => {
                let size = terminal::size(cache.bytes);
                terminal::print(format_args!("removed {size} of {path}\n"))?;
            }
            Cleared::InUse => {
                tell!("stockade: a session uses the caches of {path}: end it first");
                code = ExitCode::FAILURE;
            }
        }
    }
    if is_json {
        let left = store.list(&|| false)?;
        let left: Vec<_> = left.iter().map(as_json).collect();
        terminal::print(format_args!("{:#}\n", json!(left)))?;
    }
    Ok(code)
}

fn as_json(cache: &CacheOfWorkspace) -> serde_json::Value {
    let used = cache.used.duration_since(UNIX_EPOCH).unwrap_or_default();
    let path: &Path = &cache.workspace;
    json!({
        "workspace": path.to_string_lossy(),
        "bytes": cache.bytes,
        "at_least": cache.is_at_least,
        "used": used.as_secs(),
        "in_use": cache.is_in_use,
    })
}

fn ago(when: SystemTime) -> String {
    let seconds = when.elapsed().unwrap_or_default().as_secs();
    let (count, unit) = match seconds {
        0..3600 => (seconds / 60, "minute"),
        3600..86400 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    format!("{} ago", terminal::counted(count, unit))
}
