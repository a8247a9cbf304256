//! `cargo xtask pictures`: the pictures of the README, each for light and for dark screens.

use std::{fmt::Write as _, fs, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

/// The denial that is shown: a section of this page, which a test writes.
const DENIALS: &str = include_str!("../../docs/denials.md");
const FOLDER: &str = "docs/pictures";

#[derive(Args)]
#[command(
    about = "Draw the pictures of the README",
    long_about = "Draws docs/pictures: the architecture, and a denial with its fix, whose text comes from \
        docs/denials.md. Prints which pictures are out of date; --write replaces them."
)]
pub(crate) struct Arguments {
    /// Replace the pictures
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match draw(arguments.write) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pictures: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all pictures are as they should be.
fn draw(write: bool) -> Result<bool> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(FOLDER);
    let mut is_current = true;
    for (name, picture) in pictures()? {
        let path = folder.join(&name);
        if write {
            fs::create_dir_all(&folder)?;
            fs::write(&path, picture).with_context(|| path.display().to_string())?;
        } else if fs::read_to_string(&path).ok() != Some(picture) {
            println!("{FOLDER}/{name} is out of date: cargo xtask pictures --write");
            is_current = false;
        }
    }
    Ok(is_current)
}

fn pictures() -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for colours in [LIGHT, DARK] {
        let name = |subject: &str| format!("{subject}-{}.svg", colours.name);
        all.push((name("architecture"), architecture(colours)));
        all.push((name("denial"), denial(colours)?));
    }
    Ok(all)
}

#[derive(Clone, Copy)]
struct Colours {
    name: &'static str,
    text: &'static str,
    quiet: &'static str,
    line: &'static str,
    paper: &'static str,
    inside: &'static str,
    good: &'static str,
    bad: &'static str,
}

const LIGHT: Colours = Colours {
    name: "light",
    text: "#1f2328",
    quiet: "#59636e",
    line: "#818b98",
    paper: "#f6f8fa",
    inside: "#ddf4ff",
    good: "#1a7f37",
    bad: "#cf222e",
};
const DARK: Colours = Colours {
    name: "dark",
    text: "#f0f6fc",
    quiet: "#9198a1",
    line: "#656c76",
    paper: "#151b23",
    inside: "#0c2d4a",
    good: "#3fb950",
    bad: "#f85149",
};

/// A picture that grows. Its numbers are pixels.
struct Picture {
    colours: Colours,
    svg: String,
}

impl Picture {
    fn new(colours: Colours, width: u32, height: u32, title: &str) -> Self {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"system-ui, sans-serif\" \
             font-size=\"14\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n"
        );
        Self { colours, svg }
    }

    fn add(&mut self, element: &str) {
        self.svg.push_str(element);
        self.svg.push('\n');
    }

    fn rectangle(&mut self, [x, y, width, height]: [u32; 4], fill: &str) {
        let line = self.colours.line;
        self.add(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\" \
             fill=\"{fill}\" stroke=\"{line}\"/>"
        ));
    }

    fn text(&mut self, x: u32, y: u32, text: &str, colour: &str, more: &str) {
        let text = escaped(text);
        self.add(&format!(
            "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\"{more}>{text}</text>"
        ));
    }

    /// A box with a title and lines below it.
    fn card(&mut self, place: [u32; 4], fill: &str, title: &str, lines: &[&str]) {
        let (text, quiet) = (self.colours.text, self.colours.quiet);
        let [x, mut y, ..] = place;
        self.rectangle(place, fill);
        y += 24;
        self.text(x + 14, y, title, text, " font-weight=\"600\"");
        for line in lines {
            y += 20;
            self.text(x + 14, y, line, quiet, " font-size=\"13\"");
        }
    }

    /// From left to right, with a head at the end, or a cross if nothing passes.
    fn arrow(&mut self, [x1, y1, x2, y2]: [u32; 4], passes: bool) {
        let colour = if passes {
            self.colours.good
        } else {
            self.colours.bad
        };
        let head = if passes {
            format!("M{} {}l10 6l-10 6", x2 - 10, y2 - 6)
        } else {
            format!("M{} {}l12 12m0 -12l-12 12", x2 - 12, y2 - 6)
        };
        self.add(&format!(
            "<path d=\"M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}{head}\" fill=\"none\" \
             stroke=\"{colour}\" stroke-width=\"2\"/>",
            (x1 + x2) / 2,
            (x1 + x2) / 2
        ));
    }

    fn end(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

fn architecture(colours: Colours) -> String {
    let mut picture = Picture::new(colours, 880, 330, "How Stockade is built");
    let (paper, inside) = (colours.paper, colours.inside);
    picture.card(
        [10, 10, 330, 310],
        paper,
        "sandbox: wall and jail",
        &["your agent, and all that it starts"],
    );
    picture.card(
        [26, 74, 298, 128],
        inside,
        "wall: what it sees",
        &[
            "your project, writable",
            "programs and libraries, read-only",
            "a home of its own, without your keys,",
            "tokens, sockets and other projects",
        ],
    );
    picture.card(
        [26, 214, 298, 90],
        inside,
        "jail: its own network",
        &[
            "a network namespace; no device",
            "leads out, everything meets the gate",
        ],
    );
    picture.card(
        [400, 120, 170, 184],
        paper,
        "gate",
        &[
            "judges every flow by",
            "your rules: address,",
            "port and name;",
            "answers DNS;",
            "writes the log;",
            "says how to allow",
        ],
    );
    picture.card(
        [640, 10, 230, 70],
        paper,
        "internet",
        &["or only the hosts you name"],
    );
    picture.card(
        [640, 96, 230, 70],
        paper,
        "lab devices",
        &["the addresses you list"],
    );
    picture.card(
        [640, 182, 230, 138],
        paper,
        "everything else",
        &[
            "your LAN and VPN",
            "services on this machine",
            "cloud metadata",
            "other devices",
        ],
    );
    picture.arrow([324, 259, 398, 225], true);
    picture.arrow([570, 160, 638, 45], true);
    picture.arrow([570, 190, 638, 131], true);
    picture.arrow([570, 230, 632, 251], false);
    picture.end()
}

/// The first denial of the page, and the first command that gets through after it.
fn denial(colours: Colours) -> Result<String> {
    let transcripts = DENIALS.split("```console\n").skip(1).take(2);
    let transcripts = transcripts.filter_map(|rest| rest.split("```").next());
    let lines: Vec<&str> = transcripts.flat_map(str::lines).collect();
    ensure!(
        lines.iter().any(|line| line.contains("to allow it"))
            && lines.last().is_some_and(|line| line.starts_with("hello")),
        "docs/denials.md does not begin with a denial and the command that gets through"
    );
    let most = lines.iter().map(|line| line.chars().count()).max();
    let (columns, rows) = (
        u32::try_from(most.unwrap_or(0))?,
        u32::try_from(lines.len())?,
    );
    let (width, height) = (columns * 8 + 40, rows * 20 + 56);
    let mut picture = Picture::new(colours, width, height, "A denial, and its fix");
    picture.rectangle([1, 1, width - 2, height - 2], colours.paper);
    for (number, x) in [20, 38, 56].into_iter().enumerate() {
        let opacity = [1.0, 0.7, 0.4][number];
        let line = colours.line;
        picture.add(&format!(
            "<circle cx=\"{x}\" cy=\"20\" r=\"6\" fill=\"{line}\" opacity=\"{opacity}\"/>"
        ));
    }
    for (number, line) in (0..).zip(&lines) {
        let colour = match line {
            line if line.starts_with("$ ") => colours.text,
            line if line.contains("to allow it") || line.contains("--allow") => colours.good,
            line if line.contains("denied") => colours.bad,
            _ => colours.quiet,
        };
        let monospace =
            " font-family=\"ui-monospace, monospace\" font-size=\"13\" xml:space=\"preserve\"";
        picture.text(20, number * 20 + 54, line, colour, monospace);
    }
    Ok(picture.end())
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => {
                let _ = write!(escaped, "{other}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_are_what_the_command_draws() {
        assert!(draw(false).unwrap(), "run `cargo xtask pictures --write`");
    }
}
