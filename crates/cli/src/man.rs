//! `stockade man`: the manual pages, from the definitions of the command line.

use std::{fs, io, path::Path, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};
use stockade_config::shown;

use crate::{
    args::{self, Arguments},
    exit::refused,
    terminal,
};

const PROGRAM: &str = "stockade";

pub(crate) fn man(arguments: &args::Man) -> Result<ExitCode> {
    let pages = pages()?;
    if let Some(directory) = &arguments.directory {
        return write(directory, &pages);
    }
    let name = match &arguments.command {
        Some(command) => format!("{PROGRAM}-{command}"),
        None => PROGRAM.to_owned(),
    };
    match pages.iter().find(|(page, _)| *page == name) {
        Some((_, text)) => terminal::write(text)?,
        None => {
            let what = format!("there is no page {}", shown(&name));
            return Err(refused(what, "`stockade help` lists the commands"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A page of the manual: its name without the section, as `stockade-run`, and its text.
type Page = (String, Vec<u8>);

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
    let text = page(command, &name)?;
    pages.push((name, text));
    let mut shown = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    shown.try_for_each(|below| add(below, pages))
}

fn write(directory: &Path, pages: &[Page]) -> Result<ExitCode> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    for (name, text) in pages {
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One page: what the definitions say, then what is said after the help, under headings that
/// readers of manuals look for.
fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    // By hand: without a date, the renderer's title has the others in the wrong places.
    let title = format!(
        ".TH \"{name}\" 1 \"\" \"Stockade {}\" \"Stockade Manual\"\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut text = title.into_bytes();
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    if let Some(after) = command.get_after_help() {
        sections(&after.to_string(), &mut rest);
    }
    if name != PROGRAM {
        rest.control("SH", ["SEE ALSO"]);
        rest.text([roman("stockade(1)")]);
    }
    rest.to_writer(&mut text)?;
    Ok(text)
}

/// Paragraphs that begin with a word and a colon: that is their heading.
fn sections(after_help: &str, roff: &mut Roff) {
    for paragraph in after_help.split("\n\n") {
        if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
            roff.control("SH", ["EXAMPLES"]);
            roff.control("nf", []);
            for line in examples.lines() {
                roff.text([roman(line.trim_start())]);
            }
            roff.control("fi", []);
            continue;
        }
        let (heading, text) = match paragraph.strip_prefix("Exit code:") {
            Some(text) => ("EXIT STATUS", text),
            None => ("NOTES", paragraph),
        };
        roff.control("SH", [heading]);
        for line in text.lines() {
            roff.text([roman(line.trim())]);
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn what_follows_the_help_has_the_headings_of_manuals() {
        let mut roff = Roff::new();
        let help = "Examples:\n  one -- x\n  two\n\nA word.\n\nExit code: 0\nor not.";
        sections(help, &mut roff);
        let text = roff.render().replace("\\-", "-");
        let body = text.split_once(".SH").expect("a section").1;
        assert_eq!(
            body,
            " EXAMPLES\n.nf\none -- x\ntwo\n.fi\n.SH NOTES\nA word.\n.SH \"EXIT STATUS\"\n0\nor not.\n"
        );
    }

    #[test]
    fn every_command_has_a_page_with_its_options_and_the_programs_names_them_all() {
        let pages = pages().expect("pages");
        let text = |name: &str| {
            let page = pages.iter().find(|(page, _)| *page == name);
            let (_, page) = page.unwrap_or_else(|| panic!("no page {name}"));
            String::from_utf8(page.clone()).expect("text")
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
