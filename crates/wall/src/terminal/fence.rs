//! Giving the terminal back after programs that nobody trusts have written to it.
//!
//! # Theory of operation
//! A terminal answers questions: a program prints `ESC [ c`, and the terminal types its answer as
//! if the user had. A question printed just before the end is answered after it, so the answer is
//! read by the caller's shell, which runs it as a command. Some answers hold text that the
//! program chose. So, when nothing inside can write to the terminal any more, the warden
//!
//! 1. puts the kernel's side in order: output flow, exclusive use, line discipline; no echo;
//! 2. ends unfinished sequences and switches off every mode that reports something;
//! 3. asks a question of its own, the **fence**, and discards all input up to its answer. A
//!    terminal answers in the order of the questions, so those before are answered by then. The
//!    answer must be one that no earlier question can have got: the cursor is moved to columns
//!    chosen at random, and its position asked for at each;
//! 4. discards what comes in a short time after, for terminals that ask somebody else (the
//!    clipboard) before they answer;
//! 5. flushes the input and gives the shell its modes back.
//!
//! A program can print what takes a terminal long to draw, so that it answers late. If no answer has
//! come, bytes that no terminal shows are written: while the terminal does not take them, it has not
//! read what came before, and is waited for. It could not show the shell's prompt either.
//!
//! A terminal that never answers costs its patience once for each session. What a user types
//! ahead in this time is discarded, too: nobody can tell it from an answer.

use std::{
    env,
    hash::{BuildHasher as _, RandomState},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::PollFlags,
    io::Errno,
    termios::{
        Action, InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios,
        ioctl_tiocnxcl, tcflow, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
    },
};
use stockade_sys::{deadline::poll_until, tty};

/// How long a terminal that has a size may take to answer: over a slow network, or with much to
/// draw.
const PATIENCE: Duration = Duration::from_secs(1);

/// The same for one that looks as if nobody sat before it.
const SHORT_PATIENCE: Duration = Duration::from_millis(200);

/// What follows the answer within this time is discarded, too.
const QUIET: Duration = Duration::from_millis(30);

/// The same where something else than the answer came.
const LONG_QUIET: Duration = Duration::from_millis(200);

/// How long a terminal may take nothing.
const BUSY: Duration = Duration::from_secs(30);

/// So many bytes the kernel and most terminals do not keep unread.
const PADDING: usize = 64 * 1024;

/// However much comes.
const LONGEST: Duration = Duration::from_millis(1500);

/// How many columns make the fence, each one of `COLUMNS`: 48 bits.
const LENGTH: usize = 12;

/// Every window is at least this wide.
const COLUMNS: u64 = 16;

/// How much the terminal understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// Nothing: it shows bytes.
    None,
    /// The common part of ECMA-48. Some of these show what they do not know.
    Basic,
    /// All that emulators have added to it. They ignore what they do not know.
    Full,
}

/// Who else may use the terminal at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// The caller alone, who waits.
    Caller,
    /// The command itself, which will go on.
    Command,
    /// A program that reads the command's output, and may have drawn on the screen.
    Reader,
    /// One that also reads what is typed: answers would be commands to it.
    Pager,
}

/// What is known of the terminal from the time before the command had it.
#[derive(Debug)]
pub(crate) struct Fence {
    language: Language,
    patience: Duration,
}

impl Fence {
    pub(crate) fn for_terminal(terminal: impl AsFd) -> Self {
        // Recorders and build servers often offer a terminal that has no size and no user.
        let is_used = tcgetwinsize(terminal).is_ok_and(|size| size.ws_col > 0 && size.ws_row > 0)
            && env::var_os("CI").is_none();
        Self {
            language: language(&env::var("TERM").unwrap_or_default()),
            patience: if is_used { PATIENCE } else { SHORT_PATIENCE },
        }
    }

    /// Does all of it. The terminal has to listen to the caller's process group, and its
    /// descriptor must not block.
    pub(crate) fn raise(&self, terminal: impl AsFd, users: Users, modes: Option<&Termios>) {
        let terminal = terminal.as_fd();
        // Each fails only if the terminal is gone, and then nothing is left to be done.
        let _ = tty::use_ordinary_line_discipline(terminal);
        let _ = ioctl_tiocnxcl(terminal);
        let _ = tcflow(terminal, Action::OOn);
        let Ok(found) = tcgetattr(terminal) else {
            return;
        };
        if self.language != Language::None && users == Users::Pager {
            let deadline = Instant::now() + SHORT_PATIENCE;
            let text = self.reset(users) + MARGINS;
            write(terminal, text.as_bytes(), deadline);
        } else if self.language != Language::None {
            let _ = tcsetattr(terminal, OptionalActions::Now, &silent(found.clone()));
            self.ask(terminal, users);
            let _ = tcflush(terminal, QueueSelector::IFlush);
        }
        let _ = tcsetattr(terminal, OptionalActions::Now, modes.unwrap_or(&found));
    }

    fn ask(&self, terminal: BorrowedFd<'_>, users: Users) {
        let columns = nonce();
        let deadline = Instant::now() + self.patience;
        let question = self.reset(users) + &question(&columns);
        write(terminal, question.as_bytes(), deadline);
        let mut reader = Reader::default();
        let mut heard = listen(terminal, &columns, &mut reader, deadline);
        if heard.is_none() && self.patience == PATIENCE {
            let deadline = outlast(terminal, &mut reader, &columns);
            heard = listen(terminal, &columns, &mut reader, deadline);
        }
        let deadline = Instant::now() + SHORT_PATIENCE;
        if users != Users::Command {
            write(terminal, margins(terminal, heard).as_bytes(), deadline);
        }
        if heard.is_none() && self.patience == PATIENCE {
            let warning = "stockade: WARNING: the terminal does not answer; what it answers later \
                           appears as if you had typed it\r\n";
            write(terminal, warning.as_bytes(), deadline);
        }
    }

    /// What ends unfinished sequences and puts modes back.
    fn reset(&self, users: Users) -> String {
        let mut text = String::from(UNFINISHED);
        let is_full = self.language == Language::Full;
        if is_full {
            text.push_str(KEYBOARD);
        }
        if users == Users::Caller {
            text.push_str(SCREEN);
        }
        text.push_str(REPORTS);
        if is_full {
            text.push_str(KEYBOARD);
            text.push_str(LINK);
        }
        text.push_str(ATTRIBUTES);
        text
    }
}

/// Makes the whole screen scroll again, which moves the cursor, and puts that back.
fn margins(terminal: BorrowedFd<'_>, cursor: Option<Position>) -> String {
    let width = tcgetwinsize(terminal).map_or(0, |size| u32::from(size.ws_col));
    match cursor {
        // In the last column the cursor may be about to wrap, which only DECRC restores.
        Some(Position { row, column }) if column < width => {
            format!("\x1b[?6l\x1b[?69l\x1b[r\x1b[{row};{column}H")
        }
        _ => String::from(MARGINS),
    }
}

/// Cancels a sequence; ends Tektronix mode; ends a string; ends VT52 mode; ends printing.
const UNFINISHED: &str = "\x18\x1b\x03\x1b\\\x1b<\x1b[4i";

/// Shows the main screen. To leave the alternate one puts the cursor where it was when that was
/// entered, however long ago. So it is entered before, which saves the cursor unless it is shown
/// already. Then ordinary cursor keys and keypad.
const SCREEN: &str = "\x1b[?1049h\x1b[?1049l\x1b[?1l\x1b>\x1b[?69l";

/// Switches off what makes the terminal type: mouse (9, 1000 to 1003) and its encodings, focus
/// (1004), bracketed paste (2004), changes of colours (2031) and size (2048), pastes (5522). Then
/// what keeps text from the screen: held updates (2026), reverse video (5), no wrapping (7), the
/// keyboard's lock (2).
const REPORTS: &str = "\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\
    \x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2031l\x1b[?2048l\x1b[?5522l\x1b[?2026l\
    \x1b[?5l\x1b[?7h\x1b[?25h\x1b[2l\x1b[4l\x1b[20l";

/// Ordinary keys: empties kitty's stack, of which each screen has one, ends xterm's
/// modifyOtherKeys, and clears texts that function keys would type. Then writes to the screen
/// instead of a status line, of which there is none.
const KEYBOARD: &str = "\x1b[<99u\x1b[=0;1u\x1b[>4;0m\x1bP0;1|\x1b\\\x1b[0$}\x1b[0$~";

/// Makes the whole screen scroll, and leaves the cursor where it is.
const MARGINS: &str = "\x1b7\x1b[?6l\x1b[?69l\x1b[r\x1b8";

/// Ends a link.
const LINK: &str = "\x1b]8;;\x1b\\";

/// The ordinary character sets, and no attribute.
const ATTRIBUTES: &str = "\x0f\x1b(B\x1b)B\x1b[0m";

fn language(name: &str) -> Language {
    let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if name.is_empty() || is(&["dumb", "unknown", "emacs", "network", "dialup"]) {
        Language::None
    } else if is(&["linux", "vt", "ansi", "cons", "sun", "wy", "hp", "ibm"]) {
        Language::Basic
    } else {
        Language::Full
    }
}

/// These modes without echo, signals, flow control and editing.
fn silent(mut modes: Termios) -> Termios {
    modes.local_modes -= LocalModes::ECHO
        | LocalModes::ECHONL
        | LocalModes::ICANON
        | LocalModes::ISIG
        | LocalModes::IEXTEN
        | LocalModes::EXTPROC;
    modes.input_modes -= InputModes::IXON
        | InputModes::IXOFF
        | InputModes::ICRNL
        | InputModes::INLCR
        | InputModes::IGNCR
        | InputModes::ISTRIP;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}

/// Columns that nobody can have asked for before.
fn nonce() -> [u32; LENGTH] {
    let random = RandomState::new();
    std::array::from_fn(|at| u32::try_from(random.hash_one(at) % COLUMNS + 1).unwrap_or(1))
}

/// Asks for the cursor's position, where it is and in each of these columns, and puts it back.
fn question(columns: &[u32; LENGTH]) -> String {
    let ask = |column: &u32| format!("\x1b[{column}G\x1b[6n");
    let asked: String = columns.iter().map(ask).collect();
    format!("\x1b7\x1b[6n{asked}\x1b8")
}

/// Writes what the terminal takes before the deadline.
fn write(terminal: BorrowedFd<'_>, mut bytes: &[u8], deadline: Instant) {
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(length) => bytes = bytes.get(length..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if wait(terminal, PollFlags::OUT, deadline) => {}
            Err(_) => return,
        }
    }
}

/// Waits until the terminal can be read or written. Says whether it can.
fn wait(terminal: BorrowedFd<'_>, what: PollFlags, deadline: Instant) -> bool {
    poll_until(terminal, what, deadline)
        .is_ok_and(|happened| !happened.is_empty() && !happened.contains(PollFlags::HUP))
}

/// A place on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    row: u32,
    column: u32,
}

/// Writes padding as the terminal takes it, reading what it types, until it has read all that was
/// written before, or has answered. Until when it is worth listening then.
fn outlast(terminal: BorrowedFd<'_>, reader: &mut Reader, columns: &[u32; LENGTH]) -> Instant {
    let begin = Instant::now();
    let mut left = PADDING;
    while left > 0
        && reader.answer(columns).is_none()
        && let Ok(ready) = poll_until(terminal, PollFlags::IN | PollFlags::OUT, begin + BUSY)
        && !ready.is_empty()
        && !ready.contains(PollFlags::HUP)
    {
        if ready.contains(PollFlags::IN) {
            if !reader.read_from(terminal) {
                break;
            }
        } else {
            let padding = [0; 1024];
            match rustix::io::write(terminal, &padding) {
                Ok(length) => left = left.saturating_sub(length),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => break,
            }
        }
    }
    let was_busy = begin.elapsed() > SHORT_PATIENCE;
    Instant::now() + if was_busy { PATIENCE } else { SHORT_PATIENCE }
}

/// Reads and discards until the fence's answer has come, and a moment more. Says where the cursor
/// was when it was asked for.
fn listen(
    terminal: BorrowedFd<'_>,
    columns: &[u32; LENGTH],
    reader: &mut Reader,
    deadline: Instant,
) -> Option<Position> {
    let limit = Instant::now() + LONGEST;
    let mut heard = reader.answer(columns);
    let mut until = match heard {
        Some(_) => Instant::now() + LONG_QUIET,
        None => deadline,
    };
    while wait(terminal, PollFlags::IN, until) {
        if !reader.read_from(terminal) {
            return heard;
        }
        heard = heard.or_else(|| reader.answer(columns));
        if heard.is_some() {
            let quiet = if reader.has_others() {
                LONG_QUIET
            } else {
                QUIET
            };
            until = (Instant::now() + quiet).min(limit);
        }
    }
    heard
}

/// Finds positions, `ESC [ row ; column R`, in what the terminal types.
#[derive(Debug, Default)]
struct Reader {
    /// The last that it typed.
    input: Vec<u8>,
}

impl Reader {
    /// Reads what there is. Whether there may be more.
    fn read_from(&mut self, terminal: BorrowedFd<'_>) -> bool {
        let mut buffer = [0; 1024];
        match rustix::io::read(terminal, &mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.read(buffer.get(..length).unwrap_or_default());
                true
            }
            Err(error) => matches!(error, Errno::INTR | Errno::AGAIN),
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        // Much longer than the answer.
        const LONGEST: usize = 8192;
        self.input.extend(bytes);
        let surplus = self.input.len().saturating_sub(LONGEST);
        self.input.drain(..surplus);
    }

    /// The positions, and whether anything else came.
    fn positions(&self) -> (Vec<Position>, bool) {
        let text: String = self.input.iter().copied().map(char::from).collect();
        // `ESC [` in one byte. In UTF-8 another one comes before it.
        let text = text.replace("\u{c2}\u{9b}", "\x1b[");
        let text = text.replace('\u{9b}', "\x1b[");
        let mut sequences = text.split("\x1b[");
        let mut has_others = sequences.next() != Some("");
        let mut positions = Vec::new();
        for sequence in sequences {
            let position = sequence.split_once('R').and_then(|(numbers, rest)| {
                let (row, column) = numbers.split_once(';')?;
                let (row, column) = (row.parse().ok()?, column.parse().ok()?);
                Some((Position { row, column }, rest))
            });
            has_others |= position.is_none_or(|(_, rest)| !rest.is_empty());
            positions.extend(position.map(|(position, _)| position));
        }
        (positions, has_others)
    }

    /// Where the cursor was, if the answer to the fence is among the positions.
    fn answer(&self, columns: &[u32; LENGTH]) -> Option<Position> {
        let (positions, _) = self.positions();
        let is_answer = |all: &&[Position]| {
            let asked = all.iter().skip(1);
            asked.map(|position| position.column).eq(*columns)
        };
        let answer = positions.windows(LENGTH + 1).find(is_answer)?;
        answer.first().copied()
    }

    /// Whether anything but the fence's answer came.
    fn has_others(&self) -> bool {
        let (positions, has_others) = self.positions();
        has_others || positions.len() > LENGTH + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [u32; LENGTH] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8];

    fn answers(introducer: &str, between: &str) -> Vec<u8> {
        let columns = [7].iter().chain(&COLUMNS);
        let answer = |column: &u32| format!("{introducer}2;{column}R{between}");
        columns.map(answer).collect::<String>().into_bytes()
    }

    #[test]
    fn the_answer_is_found_in_whatever_pieces_and_form_it_comes() {
        let c1 = String::from_utf8_lossy(&answers("\u{9b}", "")).into_owned();
        for text in [
            answers("\x1b[", ""),
            answers("\x1b[", "x"),
            c1.into_bytes(),
            [
                b"\x1b]11;rgb:0/0/0\x1b\\\x1b[1;1R",
                answers("\x1b[", "").as_slice(),
            ]
            .concat(),
        ] {
            for pieces in 1..text.len() {
                let mut reader = Reader::default();
                let mut found = None;
                for piece in text.chunks(pieces) {
                    for byte in piece {
                        reader.read(&[*byte]);
                        found = found.or(reader.answer(&COLUMNS));
                    }
                }
                assert_eq!(found, Some(Position { row: 2, column: 7 }), "{text:?}");
            }
        }
    }

    #[test]
    fn only_the_answer_is_the_answer() {
        let mut reader = Reader::default();
        reader.read(&answers("\x1b[", ""));
        assert!(!reader.has_others());
        for columns in [[1; LENGTH], [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 9]] {
            assert_eq!(reader.answer(&columns), None);
        }
        for other in ["\x1b[0n", "y", "\x1b[1;1R", "\x1b\x1b["] {
            let mut reader = Reader::default();
            reader.read(&answers("\x1b[", ""));
            reader.read(other.as_bytes());
            assert!(reader.has_others(), "{other:?}");
        }
    }
}
