//! A log that is being written: whole lines or none, whatever the disk does.
//!
//! One `write` for each line. Where that fails (a full disk, a quota, a limit of the size of
//! files), what was written of the line is cut off again, and the line is counted as lost. The
//! first line that can be written again follows one that says how many were lost, since when
//! and why, so a reader sees the gap where it is. The first line of a file is kept until it has
//! been written: without it nobody would know whose log it is.
//!
//! A program inside can fill the disk. So room is reserved ahead of need, and the gate is told how
//! many lines have theirs: nothing passes for which there is none. The lines of what has passed are
//! owed, among them the ends of flows that are still open. Whatever else is to be said (of denials, of
//! files) is written only if their room stays.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    iter,
    time::SystemTime,
};

use rustix::{
    fs::{FallocateFlags, fallocate, fstatvfs},
    io::Errno,
};

use super::{Line, LogDirectory, lines};

/// Bytes of one part, about.
const LARGEST: u64 = 8 << 20;
/// Bytes that are reserved at a time: as many as leave half of what the disk has to others.
const RESERVES: [u64; 6] = [8 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10, 16 << 10];
/// What is reserved at most, however much is owed.
const MOST_RESERVED: u64 = 64 << 20;
/// Where a session is no short one any more.
const SHORT: u64 = 64 << 10;
/// Bytes that no line that is owed exceeds, with the one about lost events that may have to stand before it.
pub(super) const LINE: u64 = 2048;
/// Those of the latter.
pub(super) const GAP: u64 = 256;
/// Lines that have room beside those that are owed: the one that is being written, those of a flow that
/// the gate lets pass at this moment, and the last one.
pub(super) const SPARE: usize = 4;

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct LogFile {
    directory: LogDirectory,
    id: String,
    /// It is locked until the session ends.
    first: Option<File>,
    /// The part that is written now, and its number.
    file: File,
    part: u32,
    largest: u64,
    /// Bytes of whole lines in it.
    good: u64,
    /// Where what is reserved of it ends. Nothing if its filesystem reserves nothing.
    reserved: Option<u64>,
    /// There may be more than these.
    torn: bool,
    /// Its first line, until that has been written.
    head: Option<Line>,
    lines: Lines,
    /// What no line tells of yet.
    gap: Option<LostEvents>,
    lost: Option<LostEvents>,
}

/// How many lines there are.
#[derive(Debug, Default)]
struct Lines {
    /// In the part that is written now.
    here: u64,
    /// In the one before.
    before: u64,
    /// In those that were removed.
    removed: u64,
}

/// Events that could not be written.
#[derive(Debug, Clone)]
pub struct LostEvents {
    pub count: u64,
    pub why: String,
    /// When the first of them happened.
    since: SystemTime,
}

impl LogFile {
    pub(super) fn new(directory: LogDirectory, id: String, first: File) -> Self {
        Self {
            directory,
            id,
            file: first,
            first: None,
            part: 1,
            largest: LARGEST,
            good: 0,
            reserved: Some(0),
            torn: false,
            head: None,
            lines: Lines::default(),
            gap: None,
            lost: None,
        }
    }

    /// Has old sessions make way for this one.
    pub(super) fn make_room(&self) {
        self.directory.make_room_for(&self.id);
    }

    /// The line that comes before all others.
    pub(super) fn begin(&mut self, line: Line) {
        self.head = Some(line);
        // If this fails it is not lost: it is tried again with the next one.
        let _ = self.append(None);
    }

    /// Writes a line that is owed.
    pub(super) fn write(&mut self, line: &Line) {
        self.put(&lines::text(line));
    }

    /// The same, with something in it that may be missing: then it is what `short` says.
    pub(super) fn write_or(&mut self, line: &Line, short: impl FnOnce() -> Line, kept: usize) {
        let text = lines::text(line);
        match self.leaves(kept, text.len() as u64) {
            true => self.put(&text),
            false => self.write(&short()),
        }
    }

    /// Writes a line if so many others keep their room. Else it is lost.
    pub(super) fn write_beside(&mut self, line: &Line, kept: usize) {
        let text = lines::text(line);
        let length = text.len() as u64;
        // There may be room again. And where none is set aside, this takes none away.
        let may = self.leaves(kept, length) || {
            self.reserve(kept);
            self.left() == Some(0) || self.leaves(kept, length)
        };
        match may {
            true => self.put(&text),
            false => self.lose(&Errno::NOSPC.into()),
        }
    }

    /// Whether so many others keep their room if one more line is written.
    pub(super) fn has_room_beside(&self, kept: usize) -> bool {
        self.leaves(kept, LINE)
    }

    /// Whether there is room for so many lines behind so many bytes.
    fn leaves(&self, kept: usize, bytes: u64) -> bool {
        let needed = bytes_of(kept).saturating_add(GAP + bytes);
        self.left().is_none_or(|left| needed <= left)
    }

    /// What is reserved and not used.
    fn left(&self) -> Option<u64> {
        self.reserved.map(|end| end.saturating_sub(self.good))
    }

    fn put(&mut self, text: &str) {
        if let Err(error) = self.try_write(text) {
            self.lose(&error);
        }
    }

    fn lose(&mut self, error: &io::Error) {
        for lost in [&mut self.gap, &mut self.lost] {
            let lost = lost.get_or_insert_with(|| LostEvents::none(error));
            lost.count += 1;
            lost.why = error.to_string();
        }
    }

    /// Sees to it that there is room for more lines than are owed, and says for how many in all.
    pub(super) fn make_sure(&mut self, owed: usize) -> usize {
        self.reserve(owed);
        // What is not written yet goes first.
        if self.is_behind() && (!self.has_room_beside(owed + SPARE) || self.append(None).is_err()) {
            return 0;
        }
        let lines = self.left().map_or(u64::MAX, |left| left / LINE);
        let lines = usize::try_from(lines).unwrap_or(usize::MAX);
        lines.saturating_sub(SPARE)
    }

    /// Reserves more, if what is left is little beside what is owed.
    fn reserve(&mut self, owed: usize) {
        // A short session need not have a disk make so much room, nor take it back.
        let is_short = self.part == 1 && self.good < SHORT;
        let more = RESERVES[usize::from(is_short)];
        let most = MOST_RESERVED.min(more + bytes_of(owed.saturating_mul(2)));
        self.reserved = reserve(&self.file, self.good, self.reserved, most);
    }

    /// Whether something could not be written, and still is not.
    pub(super) fn is_behind(&self) -> bool {
        self.head.is_some() || self.gap.is_some() || self.torn
    }

    /// Gives back what was reserved. What was lost in all.
    pub(super) fn finish(&mut self) -> Option<LostEvents> {
        release(&self.file, self.good);
        self.lost.take()
    }

    fn try_write(&mut self, text: &str) -> io::Result<()> {
        if self.good > self.largest {
            // If there is no room for a new part, what was reserved of this one is used.
            let _ = self.turn_over();
        }
        self.append(Some(text))
    }

    /// Writes a line, at once with what has to stand before it.
    fn append(&mut self, line: Option<&str>) -> io::Result<()> {
        self.mend()?;
        let gap = self.gap.as_ref().map(|LostEvents { count, why, since }| {
            lines::lost(*since, SystemTime::now(), *count, why)
        });
        let before = [self.head.as_ref(), gap.as_ref()];
        let mut texts: Vec<String> = before.into_iter().flatten().map(lines::text).collect();
        texts.extend(line.map(str::to_owned));
        let text = texts.concat();
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            self.torn = true;
            // If this fails, too, it is tried again before the next line.
            let _ = self.mend();
            return Err(error);
        }
        self.good += text.len() as u64;
        self.lines.here += texts.len() as u64;
        self.head = None;
        self.gap = None;
        Ok(())
    }

    /// Cuts a line off that was written in part, or at least ends it.
    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            if self.file.set_len(self.good).is_err() {
                self.file.write_all(b"\n")?;
                self.good = self.file.metadata()?.len();
            }
            self.torn = false;
        }
        Ok(())
    }

    /// Goes on in a new part, if as much can be reserved of it as is left of this one. One before the
    /// last makes way, unless it is the first.
    fn turn_over(&mut self) -> io::Result<()> {
        self.mend()?;
        let part = self.part + 1;
        let new = self.directory.open_new(&self.id, part)?;
        // Its own first line needs some, too.
        let needed = self.left().map(|left| left + LINE);
        let most = RESERVES[0].max(needed.unwrap_or_default());
        let reserved = reserve(&new, 0, needed.map(|_| 0), most);
        if reserved < needed {
            let _ = fs::remove_file(self.directory.file(&self.id, part));
            return Err(Errno::NOSPC.into());
        }
        self.reserved = reserved;
        release(&self.file, self.good);
        let old = std::mem::replace(&mut self.file, new);
        // Closing it would give up the lock.
        self.first.get_or_insert(old);
        let Lines {
            here,
            before,
            removed,
        } = &mut self.lines;
        if let Some(gone) = part.checked_sub(2).filter(|gone| *gone > 1)
            && fs::remove_file(self.directory.file(&self.id, gone)).is_ok()
        {
            *removed += *before;
        }
        *before = std::mem::take(here);
        self.part = part;
        self.good = 0;
        self.head = Some(lines::part(SystemTime::now(), &self.id, part, *removed));
        Ok(())
    }
}

/// Reserves up to so much behind what is written, if that is little. Where it ends then.
fn reserve(file: &File, good: u64, reserved: Option<u64>, most: u64) -> Option<u64> {
    let end = reserved?;
    if end >= good + most / 2 {
        return reserved;
    }
    // Some filesystems have no size, and say nothing of what is free.
    let disk = fstatvfs(file).ok().filter(|disk| disk.f_blocks > 0)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let worthwhile =
        |size: &u64| *size <= most && size.saturating_mul(2) <= free && good + size > end;
    let sizes = iter::once(most).chain(RESERVES);
    for size in sizes.filter(worthwhile) {
        match fallocate(file, FallocateFlags::KEEP_SIZE, good, size) {
            Ok(()) => return Some(good + size),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return None,
            Err(_) => {}
        }
    }
    reserved
}

fn bytes_of(lines: usize) -> u64 {
    (lines as u64).saturating_mul(LINE)
}

/// Gives back what was reserved behind this. If it is not taken back, the disk has less room.
fn release(file: &File, good: u64) {
    let _ = file.set_len(good);
}

impl LostEvents {
    fn none(error: &io::Error) -> Self {
        Self {
            count: 0,
            why: error.to_string(),
            since: SystemTime::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::MetadataExt as _, path::Path};

    use serde_json::{Value, json};

    use super::*;

    fn event(number: u32) -> Line {
        let mut line = Line::new();
        line.insert("event".to_owned(), json!("test"));
        line.insert("number".to_owned(), json!(number));
        line
    }

    fn log(path: &Path, largest: u64) -> LogFile {
        let mut log = LogDirectory::at(path).create("7").expect("a log");
        log.largest = largest;
        let mut start = Line::new();
        start.insert("event".to_owned(), json!("start"));
        log.begin(start);
        log
    }

    fn read(path: &Path) -> Vec<Value> {
        let text = fs::read_to_string(path).expect("a part");
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    #[test]
    fn a_log_that_grows_too_long_keeps_its_beginning_and_its_end_and_counts_the_rest() {
        let path = tempfile::tempdir().expect("a directory");
        let mut log = log(path.path(), 1000);
        for number in 0..200 {
            log.write(&event(number));
        }
        assert!(log.finish().is_none());
        let directory = LogDirectory::at(path.path());
        let parts = directory.parts("7");
        let [1, before, last] = parts[..] else {
            panic!("{parts:?}");
        };
        assert_eq!(before + 1, last);
        let first = read(&directory.file("7", 1));
        assert_eq!(first[0]["event"], "start");
        assert_eq!(first[1]["number"], 0);
        let end = read(&directory.file("7", last));
        assert_eq!(end.last().expect("a line")["number"], 199);
        assert_eq!(end[0]["event"], "part");
        assert_eq!(end[0]["part"], last);
        // Every line is kept or counted; each part but the first begins with one of its own.
        let kept: usize = parts
            .iter()
            .map(|part| read(&directory.file("7", *part)).len())
            .sum();
        let removed = end[0]["removed"].as_u64().expect("a number");
        let written = 1 + 200 + u64::from(last - 1);
        assert_eq!(kept as u64 + removed, written);
        assert!(removed > 50, "{removed}");
    }

    #[test]
    fn the_first_part_stays_locked_when_the_log_goes_on_in_another() {
        let path = tempfile::tempdir().expect("a directory");
        let directory = LogDirectory::at(path.path());
        let mut log = log(path.path(), 100);
        let first = fs::metadata(directory.file("7", 1)).expect("a file").ino();
        // A lock is no obstacle to its own process, so the kernel's list has to tell.
        let locked = || {
            let locks = fs::read_to_string("/proc/locks").expect("locks");
            locks.contains(&format!(":{first} "))
        };
        assert!(locked());
        (0..50).for_each(|number| log.write(&event(number)));
        assert!(directory.parts("7").len() > 2);
        assert!(locked());
        drop(log);
        assert!(!locked());
    }
}
