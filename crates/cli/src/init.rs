//! `stockade init`: creates a commented file. An existing one is never overwritten.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use stockade_config::{Loader, Places, shown_path, starter};
use stockade_wall::PathRefusal;

use crate::{args, context, exit::refused, terminal};

pub(crate) fn init(arguments: &args::Init) -> Result<ExitCode> {
    let loader = context::loader_here()?;
    let places = &loader.places;
    check_workspace(places)?;
    let path = if arguments.workspace_file {
        let path = places.workspace_file();
        create(&path, 0o644, &starter(None)).map_err(|error| not_created(&path, &error))?;
        path
    } else {
        let text = starter(Some(name_of_workspace(places)?));
        create_project_file(&loader, &text)?
    };
    terminal::print(format_args!("{}\n", shown_path(&path)))?;
    if arguments.workspace_file {
        tell!("stockade: it applies once you trust it: stockade trust");
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses a directory that no session could have as its workspace.
pub(crate) fn check_workspace(places: &Places) -> Result<()> {
    if let Some(refusal) = PathRefusal::of_workspace(&places.workspace, &places.home) {
        let workspace = shown_path(&places.workspace);
        return Err(refused(
            format!("{workspace} cannot be a workspace, because it {refusal}"),
            "change to the directory of one project; settings for all projects go to \
             ~/.config/stockade/config.toml",
        ));
    }
    Ok(())
}

/// The workspace as a file about it names it.
pub(crate) fn name_of_workspace(places: &Places) -> Result<&str> {
    let workspace = places.workspace.to_str();
    workspace.context("the path of the workspace is not UTF-8")
}

/// Makes the user's file about this workspace, under a name that is free. There must be none yet.
pub(crate) fn create_project_file(loader: &Loader, text: &str) -> Result<PathBuf> {
    let places = &loader.places;
    if let Some(path) = loader.project_file()? {
        return Err(exists(&path));
    }
    let directory = places.projects();
    let name = shown_path(&directory);
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&directory);
    made.with_context(|| format!("cannot create {name}"))?;
    for number in 1..1000 {
        let path = directory.join(places.project_file_name(number));
        match create(&path, 0o600, text) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(not_created(&path, &error)),
        }
    }
    anyhow::bail!("{name} has too many files of this name")
}

fn create(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(text.as_bytes())
}

fn not_created(path: &Path, error: &io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return exists(path);
    }
    anyhow::anyhow!("cannot write {}: {error}", shown_path(path))
}

fn exists(path: &Path) -> anyhow::Error {
    let what = format!("{} already exists", shown_path(path));
    refused(what, "edit it, or remove it first")
}
