//! What a person types on the laptop, and sees.

use stockade_world::World;

pub(crate) struct Transcript<'a> {
    world: &'a World,
    text: String,
    /// Whether the text ends within a block of commands.
    typing: bool,
}

impl<'a> Transcript<'a> {
    pub(crate) fn of(world: &'a World) -> Self {
        Self {
            world,
            text: String::new(),
            typing: false,
        }
    }

    /// A remark for the reader.
    pub(crate) fn says(&mut self, remark: &str) {
        self.rest();
        self.text.push_str(&format!("{remark}\n\n"));
    }

    /// A piece of a file.
    pub(crate) fn shows(&mut self, language: &str, text: &str) {
        self.rest();
        self.text.push_str(&format!("```{language}\n{text}```\n\n"));
    }

    /// Runs a line in the laptop's shell. What it prints is as on a terminal, both streams
    /// in their order.
    pub(crate) fn types(&mut self, line: &str) -> String {
        let type_it = || {
            let shell = self.world.laptop().command("sh");
            let script = format!("exec 2>&1; {line}");
            let output = shell.args(["-c", &script]).run().expect("the shell ends");
            without_session(&without_times(&output.stdout()))
        };
        // On a busy machine, a program that was denied may be gone before its name is looked up.
        let mut printed = type_it();
        for _ in 0..5 {
            if !names_no_program(&printed) {
                break;
            }
            printed = type_it();
        }
        if !self.typing {
            self.text.push_str("```console\n");
            self.typing = true;
        }
        self.text.push_str(&format!("$ {line}\n{printed}"));
        printed
    }

    /// All of it, with its last block closed.
    pub(crate) fn text(&self) -> String {
        let end = if self.typing { "```\n" } else { "" };
        format!("{}{end}", self.text)
    }

    fn rest(&mut self) {
        if self.typing {
            self.text.push_str("```\n\n");
            self.typing = false;
        }
    }
}

/// curl tells how long it tried, which is never the same.
fn without_times(text: &str) -> String {
    let mut words = text.split(" after ");
    let mut steady = words.next().unwrap_or_default().to_owned();
    for part in words {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if rest.starts_with(" ms") && rest != part {
            "0"
        } else {
            &part[..part.len() - rest.len()]
        };
        steady.push_str(&format!(" after {number}{rest}"));
    }
    steady
}

/// The receipt names the session, which is never the same.
fn without_session(text: &str) -> String {
    let mut parts = text.split("`stockade log ");
    let mut steady = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c| c != '`');
        steady.push_str(&format!("`stockade log 1794882033-61-fd9a{rest}"));
    }
    steady
}

/// Whether a denied connection stands there without the program that wanted it.
fn names_no_program(printed: &str) -> bool {
    let denied = |line: &&str| line.starts_with("stockade: denied tcp://");
    printed
        .lines()
        .filter(denied)
        .any(|line| !line.contains(" to "))
}
