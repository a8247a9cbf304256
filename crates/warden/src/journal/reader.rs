//! The lines of a log, over all of its parts, also while it is being written.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
};

use serde_json::Value;

use super::LogDirectory;

/// The longest line that is taken for one. What the writer makes is far shorter.
const LONGEST: usize = 1 << 20;

/// What a log holds.
#[derive(Debug, PartialEq)]
pub enum LogItem {
    /// A line, and its bytes with the end.
    Line(Value, Vec<u8>),
    /// So many bytes that are none.
    Unreadable(usize),
}

impl LogItem {
    fn of(bytes: Vec<u8>) -> Self {
        match serde_json::from_slice(&bytes) {
            Ok(line @ Value::Object(_)) => Self::Line(line, bytes),
            _ => Self::Unreadable(bytes.len()),
        }
    }
}

/// Reads a log.
#[derive(Debug)]
pub struct LogReader {
    directory: LogDirectory,
    id: String,
    part: u32,
    lines: BufReader<File>,
    /// The beginning of a line whose end was not there yet.
    begun: Vec<u8>,
}

impl LogReader {
    /// Of this session.
    ///
    /// # Errors
    /// If there is no such log, or it cannot be read.
    pub fn open(directory: LogDirectory, id: &str) -> io::Result<Self> {
        Ok(Self {
            lines: BufReader::new(File::open(directory.file(id, 1))?),
            directory,
            id: id.to_owned(),
            part: 1,
            begun: Vec::new(),
        })
    }

    /// The next line; nothing if there is none yet.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn read(&mut self) -> io::Result<Option<LogItem>> {
        loop {
            if let Some(item) = self.here()? {
                return Ok(Some(item));
            }
            let parts = self.directory.parts(&self.id);
            let Some(next) = parts.into_iter().find(|part| *part > self.part) else {
                return Ok(None);
            };
            // A part that another one follows has got its last line: if this one came after
            // the look above, it is there now.
            if let Some(item) = self.here()? {
                return Ok(Some(item));
            }
            let rest = self.rest();
            match File::open(self.directory.file(&self.id, next)) {
                Ok(file) => self.lines = BufReader::new(file),
                // It was the oldest of the latest, and made way just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            self.part = next;
            if rest.is_some() {
                return Ok(rest);
            }
        }
    }

    /// What is left over, if nothing will ever follow it.
    pub fn rest(&mut self) -> Option<LogItem> {
        let bytes = std::mem::take(&mut self.begun);
        (!bytes.is_empty()).then_some(LogItem::Unreadable(bytes.len()))
    }

    fn here(&mut self) -> io::Result<Option<LogItem>> {
        self.lines.read_until(b'\n', &mut self.begun)?;
        if self.begun.ends_with(b"\n") || self.begun.len() > LONGEST {
            return Ok(Some(LogItem::of(std::mem::take(&mut self.begun))));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, OpenOptions},
        io::Write as _,
    };

    use super::*;

    fn all(reader: &mut LogReader) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(item) = reader.read().expect("a log") {
            found.push(match item {
                LogItem::Line(line, _) => line["n"].to_string(),
                LogItem::Unreadable(bytes) => format!("{bytes} bytes"),
            });
        }
        found
    }

    #[test]
    fn what_is_no_line_is_said_to_be_none_and_the_rest_is_read() {
        let path = tempfile::tempdir().expect("a directory");
        let directory = LogDirectory::at(path.path());
        let text = b"{\"n\":1}\n\xff\xfe\0\n{\"n\":\n7\n{\"n\":2}\n{\"n\":3";
        fs::write(directory.file("1", 1), text).expect("a log");
        let mut reader = LogReader::open(directory.clone(), "1").expect("a log");
        let expected = ["1", "4 bytes", "6 bytes", "2 bytes", "2"];
        assert_eq!(all(&mut reader), expected);
        // The last line may be on its way, or never come.
        let mut file = OpenOptions::new()
            .append(true)
            .open(directory.file("1", 1))
            .expect("a log");
        file.write_all(b"3}\n{\"n\":4").expect("a line");
        assert_eq!(all(&mut reader), ["33"]);
        assert_eq!(reader.rest(), Some(LogItem::Unreadable(6)));
        assert_eq!(reader.rest(), None);
    }

    #[test]
    fn further_parts_follow_in_their_order_also_when_they_come_later() {
        let path = tempfile::tempdir().expect("a directory");
        let directory = LogDirectory::at(path.path());
        let write = |part, text: &str| fs::write(directory.file("1", part), text).expect("a part");
        write(1, "{\"n\":1}\n");
        let mut reader = LogReader::open(directory.clone(), "1").expect("a log");
        assert_eq!(all(&mut reader), ["1"]);
        write(9, "{\"n\":9}\n{");
        write(10, "{\"n\":10}\n");
        assert_eq!(all(&mut reader), ["9", "1 bytes", "10"]);
    }
}
