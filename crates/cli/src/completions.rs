//! `stockade completions` and `stockade man`: what can be typed, for shells and for people,
//! from the definitions that parse it.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::{
    args::{self, Arguments},
    exit::Refused,
};

pub(crate) fn completions(arguments: &args::Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "stockade", &mut script);
    say(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(arguments: &args::Man) -> Result<ExitCode> {
    let pages = pages()?;
    if let Some(directory) = &arguments.directory {
        return write(directory, &pages);
    }
    let name = match &arguments.command {
        Some(command) => format!("stockade-{command}"),
        None => "stockade".to_owned(),
    };
    match pages.iter().find(|page| page.name == name) {
        Some(page) => say(&page.text)?,
        None => {
            return Err(Refused {
                what: format!("there is no page {}", name.escape_debug()),
                fix: "`stockade help` lists the commands".to_owned(),
            }
            .into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A page of the manual, in the language of man(7).
struct Page {
    /// Without the section: `stockade-run`.
    name: String,
    text: Vec<u8>,
}

/// The program's page, then one for each command that is no secret, and those below it.
fn pages() -> Result<Vec<Page>> {
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    add(&program, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<Page>) -> Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let mut text = Vec::new();
    Man::new(command.clone()).render(&mut text)?;
    pages.push(Page { name, text });
    let mut shown = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    shown.try_for_each(|below| add(below, pages))
}

fn write(directory: &Path, pages: &[Page]) -> Result<ExitCode> {
    for Page { name, text } in pages {
        let mut file = OsString::from(name);
        file.push(".1");
        let path = directory.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whoever reads only the beginning has what he wanted.
fn say(text: &[u8]) -> Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("cannot write"),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use clap_complete::Shell;

    use super::*;

    fn commands() -> Vec<String> {
        let program = Arguments::command();
        let shown = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let names: Vec<_> = shown.map(|command| command.get_name().to_owned()).collect();
        assert!(names.len() > 8, "{names:?}");
        names
    }

    #[test]
    fn every_shells_script_has_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "stockade", &mut script);
            let script = String::from_utf8(script).expect("text");
            for command in commands() {
                assert!(script.contains(&command), "{shell}: {command}");
            }
            assert!(script.contains("host-port"), "{shell}");
        }
    }

    #[test]
    fn every_command_has_a_page_with_its_options_and_the_programs_names_them_all() {
        let pages = pages().expect("pages");
        let text = |name: &str| {
            let page = pages.iter().find(|page| page.name == name);
            let page = page.unwrap_or_else(|| panic!("no page {name}"));
            String::from_utf8(page.text.clone()).expect("text")
        };
        // A hyphen is written as an escape there.
        let plain = |text: String| text.replace("\\-", "-");
        let program = plain(text("stockade"));
        for command in commands() {
            let page = plain(text(&format!("stockade-{command}")));
            assert!(page.contains(".SH SYNOPSIS"), "{command}");
            assert!(
                program.contains(&format!("stockade-{command}(1)")),
                "{command}"
            );
        }
        assert!(plain(text("stockade-run")).contains("--host-port"));
        assert!(text("stockade-config-show").contains("json"));
    }
}
