//! Somebody who knows nothing but what was printed, and does it literally.

use std::{fs, path::PathBuf};

use super::transcript::Transcript;

/// What a receipt says there is to do.
pub(super) struct Receipt {
    /// To be put before the command.
    pub(super) flag: String,
    place: Place,
    /// What to write there.
    lines: Vec<String>,
}

/// Where something is to be written.
enum Place {
    /// Nowhere: this command does it.
    Command(String),
    /// Below the line `[network]` of the file that this command makes.
    SectionOfNew(String),
    /// Below the line `[network]` of this file.
    Section(PathBuf),
    /// At the end of this file.
    File(PathBuf),
    /// Into the list that begins in this line of this file, counted from one.
    List(PathBuf, usize),
}

impl Receipt {
    #[track_caller]
    pub(super) fn read(printed: &str) -> Self {
        let ours = printed
            .lines()
            .filter_map(|line| line.strip_prefix("stockade: "));
        let flag = ours
            .clone()
            .find_map(|line| line.strip_prefix("  to allow it: "));
        let mut rest = ours.skip_while(|line| !line.starts_with("to allow it always"));
        let place = rest.next().map(Place::read);
        Self {
            flag: flag
                .unwrap_or_else(|| panic!("no flag: {printed}"))
                .to_owned(),
            place: place.unwrap_or_else(|| panic!("no place: {printed}")),
            lines: rest
                .map_while(|line| line.strip_prefix("  "))
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Does what it says about the file, and shows it.
    pub(super) fn write_down(&self, transcript: &mut Transcript<'_>) {
        let path = match &self.place {
            Place::Command(command) => {
                transcript.types(command);
                return;
            }
            Place::SectionOfNew(command) => PathBuf::from(transcript.types(command).trim_end()),
            Place::Section(path) | Place::File(path) | Place::List(path, _) => path.clone(),
        };
        let text = fs::read_to_string(&path).expect("the file that is named");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let shown = match self.place {
            Place::Command(_) => return,
            Place::File(_) => {
                lines.extend(self.lines.clone());
                self.lines.clone()
            }
            Place::Section(_) | Place::SectionOfNew(_) => {
                let header = "[network]";
                let at = lines.iter().position(|line| line == header);
                let below = at.expect("the section that is named") + 1;
                lines.splice(below..below, self.lines.clone());
                [&[header.to_owned()], &self.lines[..]].concat()
            }
            Place::List(_, number) => {
                let line = &mut lines[number - 1];
                let (before, items) = line.split_once('[').expect("the list that is named");
                *line = format!("{before}[{}, {items}", self.lines.join(", "));
                vec![line.clone()]
            }
        };
        fs::write(&path, lines.join("\n") + "\n").expect("the file that is named");
        transcript.shows("toml", &(shown.join("\n") + "\n"));
    }
}

impl Place {
    #[track_caller]
    fn read(line: &str) -> Self {
        if let Some(command) = line.strip_prefix("to allow it always: ") {
            return Self::Command(command.to_owned());
        }
        let line = line
            .strip_suffix(':')
            .expect("a colon before what to write");
        let what = line.strip_prefix("to allow it always, ").expect("a place");
        if let Some(command) = what.strip_prefix("run `") {
            let (command, rest) = command.split_once('`').expect("a command");
            assert_eq!(rest, ", and add to [network] in the file that it makes");
            return Self::SectionOfNew(command.to_owned());
        }
        if let Some(list) = what.strip_prefix("add to the list ") {
            let (_, place) = list.split_once(" at ").expect("a place");
            let (path, number) = place.rsplit_once(':').expect("a line");
            return Self::List(path.into(), number.parse().expect("a line"));
        }
        if let Some(path) = what.strip_prefix("add to [network] in ") {
            return Self::Section(path.into());
        }
        let path = what.strip_prefix("add to ").expect("a place");
        Self::File(path.into())
    }
}
