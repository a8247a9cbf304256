//! Giving the terminal back after programs that nobody trusts have written to it.
//!
//! # Theory of operation
//! A terminal answers questions: a program prints `ESC [ c`, and the terminal types its answer as
//! if the user had. A question printed just before the end is answered after it, so the answer is
//! read by the caller's shell, which runs it as a command. Some answers hold text that the
//! program chose. So, when nothing inside can write to the terminal any more, the warden
//!
//! 1. puts the kernel's side in order: output flow, exclusive use, line discipline; no echo, no
//!    signal, and no change to what is written ([`super::modes`]);
//! 2. ends unfinished sequences and switches off every mode that reports something;
//! 3. asks a question of its own, the **fence**, and discards all input up to its answer. A
//!    terminal answers in the order of the questions, so those before are answered by then. The
//!    answer must be one that no earlier question can have got: the cursor is moved to columns
//!    chosen at random, and its position asked for at each;
//! 4. discards what comes in a short time after, for terminals that ask somebody else (the
//!    clipboard) before they answer;
//! 5. flushes the input.
//!
//! A program can print what takes a terminal long to draw, so that it answers late. If no answer has
//! come, bytes that no terminal shows are written: while the terminal does not take them, it has not
//! read what came before, and is waited for. It could not show the shell's prompt either.
//!
//! A program can also ask a million questions. While the terminal still types, its answer to the
//! fence may be yet to come.
//!
//! A terminal that never answers costs its patience once for each session. What a user types
//! ahead in this time is discarded, too: nobody can tell it from an answer.

use std::{
    collections::VecDeque,
    env,
    hash::{BuildHasher as _, RandomState},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::PollFlags,
    io::Errno,
    termios::{QueueSelector, Winsize, tcflush, tcgetwinsize},
};
use stockade_sys::deadline::poll_until;

/// How long a terminal that has a size may take to answer: over a slow network, or with much to
/// draw.
const PATIENCE: Duration = Duration::from_secs(1);

/// The same for one that looks as if nobody sat before it.
const SHORT_PATIENCE: Duration = Duration::from_millis(200);

/// What follows the answer within this time is discarded, too.
const QUIET: Duration = Duration::from_millis(30);

/// The same where something else than the answer came.
const LONG_QUIET: Duration = Duration::from_millis(200);

/// How long a terminal may take nothing, or go on with what it was asked before.
const BUSY: Duration = Duration::from_secs(30);

/// So many bytes the kernel and most terminals do not keep unread.
const PADDING: usize = 64 * 1024;

/// However much comes that is no answer: somebody types.
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

pub(super) fn has_size(size: &Winsize) -> bool {
    size.ws_col > 0 && size.ws_row > 0
}

impl Fence {
    pub(crate) fn for_terminal(terminal: impl AsFd) -> Self {
        // Recorders and build servers often offer a terminal that has no size and no user.
        let is_used =
            tcgetwinsize(terminal).is_ok_and(|size| has_size(&size)) && env::var_os("CI").is_none();
        Self {
            language: language(&env::var("TERM").unwrap_or_default()),
            patience: if is_used { PATIENCE } else { SHORT_PATIENCE },
        }
    }

    /// Whether the terminal can be asked while these use it.
    pub(crate) fn is_for(&self, users: Users) -> bool {
        self.language != Language::None && users != Users::Pager
    }

    /// Resets the terminal and discards its answers. It has to listen to the caller's process
    /// group, its modes have to be silent if it can be asked, and its descriptor must not block.
    pub(crate) fn raise(&self, terminal: impl AsFd, users: Users) {
        let terminal = terminal.as_fd();
        if self.is_for(users) {
            self.ask(terminal, users);
            // Fails only if the terminal is gone, and then nothing is left to be done.
            let _ = tcflush(terminal, QueueSelector::IFlush);
        } else if self.language != Language::None {
            let text = self.reset(users) + MARGINS;
            write(terminal, text.as_bytes(), Instant::now() + BUSY);
        }
    }

    fn ask(&self, terminal: BorrowedFd<'_>, users: Users) {
        let mut reader = Reader::new(nonce());
        let text = self.reset(users) + &question(&reader.columns);
        let mut rest = text.as_bytes();
        let end = Instant::now() + self.patience + BUSY;
        let within = |patience: Duration| (Instant::now() + patience).min(end);
        reader.listen(terminal, &mut rest, || within(self.patience));
        let is_used = self.patience == PATIENCE;
        let is_late = reader.heard.is_none();
        if is_late {
            // What the terminal did not take yet comes before the padding: it makes the receipt seen.
            let padding = if is_used { PADDING } else { 0 };
            let padded = [rest, &vec![0; padding]].concat();
            let (mut rest, begin) = (padded.as_slice(), Instant::now());
            while reader.heard.is_none()
                && !rest.is_empty()
                && exchange(terminal, &mut reader, &mut rest, end)
            {}
            let was_busy = is_used && begin.elapsed() > SHORT_PATIENCE;
            let patience = if was_busy { PATIENCE } else { SHORT_PATIENCE };
            reader.listen(terminal, &mut &[][..], || within(patience));
        }
        if reader.heard.is_some() {
            hear_out(terminal, &mut reader, is_late);
        }
        let deadline = Instant::now() + SHORT_PATIENCE;
        if users != Users::Command {
            let margins = margins(terminal, reader.heard);
            write(terminal, margins.as_bytes(), deadline);
        }
        if reader.heard.is_none() && is_used {
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

/// Ends local echo of what is typed (SRM), and lets keys repeat. Switches off what makes the terminal type: mouse (9, 1000 to 1003) and its encodings, focus
/// (1004), bracketed paste (2004), changes of colours (2031) and size (2048), pastes (5522), keys as
/// Windows has them (9001). Then what keeps text from the screen: held updates (2026), reverse video (5), no wrapping (7), the
/// keyboard's lock (2).
const REPORTS: &str = "\x1b[12h\x1b[?8h\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\
    \x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?2004l\x1b[?2031l\x1b[?2048l\x1b[?5522l\x1b[?9001l\
    \x1b[?2026l\x1b[?5l\x1b[?7h\x1b[?25h\x1b[2l\x1b[4l\x1b[20l";

/// Controls of seven bits; no guarded area; an alternate screen where programs ask for one. Then
/// ordinary keys: modifiers with cursor and function keys as the user set them, empties kitty's stack, of which each screen has one, ends xterm's
/// modifyOtherKeys, clears texts that function keys would type, and stops DEC's locator, a mouse.
/// Then writes to the screen instead of a status line, of which there is none.
const KEYBOARD: &str = "\x1b F\x1bW\x1b[?1046h\x1b[>1m\x1b[>2m\x1b[<99u\x1b[=0;1u\x1b[>4;0m\x1bP0;1|\x1b\\\x1b[0'z\x1b[0$}\x1b[0$~";

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

/// Reads what the terminal types, and writes what it takes. Says whether it did either before that
/// time. Both at once: a terminal that waits until its answers are read takes nothing, and one that
/// has many answers types all the time.
fn exchange(
    terminal: BorrowedFd<'_>,
    reader: &mut Reader,
    rest: &mut &[u8],
    until: Instant,
) -> bool {
    let wanted = match rest {
        [] => PollFlags::IN,
        _ => PollFlags::IN | PollFlags::OUT,
    };
    if Instant::now() >= until {
        return false;
    }
    let ready = poll_until(terminal, wanted, until).unwrap_or(PollFlags::HUP);
    if ready.is_empty() || ready.contains(PollFlags::HUP) {
        return false;
    }
    if ready.contains(PollFlags::OUT) {
        match rustix::io::write(terminal, rest) {
            Ok(length) => *rest = rest.get(length..).unwrap_or_default(),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return false,
        }
    }
    !ready.contains(PollFlags::IN) || reader.read_from(terminal)
}

/// Reads and discards what follows the fence's answer: not all terminals keep to the order.
fn hear_out(terminal: BorrowedFd<'_>, reader: &mut Reader, is_late: bool) {
    let begin = Instant::now();
    let mut limit = begin + LONGEST;
    loop {
        let escapes = reader.escapes;
        let quiet = if is_late || reader.has_others() {
            LONG_QUIET
        } else {
            QUIET
        };
        let until = (Instant::now() + quiet).min(limit);
        if !exchange(terminal, reader, &mut &[][..], until) {
            return;
        }
        // People type without.
        if reader.escapes > escapes {
            limit = (Instant::now() + LONGEST).min(begin + BUSY);
        }
    }
}

/// Finds the fence's answer in what the terminal types: positions, `ESC [ row ; column R`. It looks
/// at each byte once, since a terminal can be made to type many millions.
#[derive(Debug)]
struct Reader {
    columns: [u32; LENGTH],
    /// Where the cursor was when it was asked for, once the answer has come.
    heard: Option<Position>,
    /// The last positions, as many as the answer has.
    positions: VecDeque<Position>,
    /// How many there were in all.
    count: usize,
    /// How many escape sequences began.
    escapes: usize,
    /// Something else than positions came.
    others: bool,
    state: State,
    block: Vec<u8>,
}

/// Where in a position the last byte was.
#[derive(Debug)]
enum State {
    Outside,
    /// After ESC, or after the first byte of `ESC [` in UTF-8.
    Begun(u8),
    /// In the numbers.
    Inside(String),
}

impl Reader {
    fn new(columns: [u32; LENGTH]) -> Self {
        Self {
            columns,
            heard: None,
            positions: VecDeque::new(),
            count: 0,
            escapes: 0,
            others: false,
            state: State::Outside,
            block: vec![0; 64 * 1024],
        }
    }

    /// Writes the rest and reads until the answer has come, or the time is up. Each answer to another
    /// question gives the terminal more time; what people type does not.
    fn listen(
        &mut self,
        terminal: BorrowedFd<'_>,
        rest: &mut &[u8],
        deadline: impl Fn() -> Instant,
    ) {
        let (mut escapes, mut until) = (self.escapes, deadline());
        while self.heard.is_none() && exchange(terminal, self, rest, until) {
            if self.escapes > escapes {
                (escapes, until) = (self.escapes, deadline());
            }
        }
    }

    /// Reads what there is. Whether there may be more.
    fn read_from(&mut self, terminal: BorrowedFd<'_>) -> bool {
        let mut block = std::mem::take(&mut self.block);
        let read = rustix::io::read(terminal, &mut block);
        if let Ok(length) = read {
            self.read(block.get(..length).unwrap_or_default());
        }
        self.block = block;
        match read {
            Ok(length) => length > 0,
            Err(error) => matches!(error, Errno::INTR | Errno::AGAIN),
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.read_byte(*byte);
        }
    }

    fn read_byte(&mut self, byte: u8) {
        const ESCAPE: u8 = 0x1b;
        // `ESC [` in one byte. In UTF-8 another one comes before it.
        const INTRODUCER: u8 = 0x9b;
        const BEFORE_IT: u8 = 0xc2;
        // Much longer than two numbers.
        const LONGEST: usize = 32;
        self.escapes += usize::from(matches!(byte, ESCAPE | INTRODUCER));
        let state = std::mem::replace(&mut self.state, State::Outside);
        self.state = match (state, byte) {
            (State::Inside(numbers), b'R') => {
                self.position(&numbers);
                State::Outside
            }
            (State::Inside(mut numbers), b'0'..=b'9' | b';') if numbers.len() < LONGEST => {
                numbers.push(char::from(byte));
                State::Inside(numbers)
            }
            (State::Begun(ESCAPE), b'[') | (State::Begun(BEFORE_IT), INTRODUCER) => {
                State::Inside(String::new())
            }
            (before, ESCAPE | BEFORE_IT) => {
                self.others |= !matches!(before, State::Outside);
                State::Begun(byte)
            }
            (before, INTRODUCER) => {
                self.others |= !matches!(before, State::Outside);
                State::Inside(String::new())
            }
            _ => {
                self.others = true;
                State::Outside
            }
        };
    }

    fn position(&mut self, numbers: &str) {
        let parsed = numbers.split_once(';').and_then(|(row, column)| {
            let (row, column) = (row.parse().ok()?, column.parse().ok()?);
            Some(Position { row, column })
        });
        let Some(position) = parsed else {
            self.others = true;
            return;
        };
        self.count += 1;
        self.positions.push_back(position);
        if self.positions.len() > LENGTH + 1 {
            self.positions.pop_front();
        }
        let columns = self.positions.iter().map(|position| position.column);
        if self.heard.is_none() && columns.skip(1).eq(self.columns) {
            self.heard = self.positions.front().copied();
        }
    }

    /// Whether anything but the fence's answer came.
    fn has_others(&self) -> bool {
        self.others || !matches!(self.state, State::Outside) || self.count > LENGTH + 1
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
                let mut reader = Reader::new(COLUMNS);
                text.chunks(pieces).for_each(|piece| reader.read(piece));
                let cursor = Some(Position { row: 2, column: 7 });
                assert_eq!(reader.heard, cursor, "{text:?}");
            }
        }
    }

    #[test]
    fn only_the_answer_is_the_answer() {
        let mut reader = Reader::new(COLUMNS);
        reader.read(&answers("\x1b[", ""));
        assert!(!reader.has_others());
        for columns in [[1; LENGTH], [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 9]] {
            let mut reader = Reader::new(columns);
            reader.read(&answers("\x1b[", ""));
            assert_eq!(reader.heard, None);
        }
        for other in ["\x1b[0n", "y", "\x1b[1;1R", "\x1b\x1b["] {
            let mut reader = Reader::new(COLUMNS);
            reader.read(&answers("\x1b[", ""));
            reader.read(other.as_bytes());
            assert!(reader.has_others(), "{other:?}");
        }
    }

    /// A pager that starts late chooses its modes while the terminal is put in order.
    #[test]
    fn the_modes_of_a_pager_stay_as_it_chose_them() {
        // On a busy machine, the fence may be over before the pager chooses.
        const ATTEMPTS: usize = 20;
        let are_kept = (0..ATTEMPTS).any(|_| chooses_meanwhile());
        assert!(are_kept, "the fence is always over before");
    }

    /// A pager chooses its modes while the fence waits, and they stay. Whether it was in time.
    fn chooses_meanwhile() -> bool {
        use rustix::{
            fs::{Mode, OFlags, open},
            pty::{OpenptFlags, openpt, ptsname, unlockpt},
            termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr},
        };
        use std::thread;

        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&main).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK;
        let fd = open(ptsname(&main, vec![]).unwrap(), flags, Mode::empty()).unwrap();
        let pagers = fd.try_clone().unwrap();
        // Nobody reads: what the fence writes waits.
        while rustix::io::write(&fd, &[b'x'; 4096]).is_ok() {}
        let terminal = super::super::Terminal {
            modes: tcgetattr(&fd).ok(),
            size: None,
            fd,
            fence: Fence {
                language: Language::Full,
                patience: SHORT_PATIENCE,
            },
            is_controlling: false,
        };
        let ended = thread::spawn(move || {
            terminal.give_back(Users::Pager, false, false);
            terminal
        });
        thread::sleep(Duration::from_millis(30));
        let mut modes = tcgetattr(&pagers).unwrap();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        tcsetattr(&pagers, OptionalActions::Now, &modes).unwrap();
        let is_in_time = !ended.is_finished();
        let read = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while rustix::io::read(&main, &mut buffer).is_ok() {}
        });
        let terminal = ended.join().unwrap();
        let now = tcgetattr(&pagers).unwrap();
        assert_eq!(now.local_modes, modes.local_modes);
        drop((terminal, pagers));
        read.join().unwrap();
        is_in_time
    }
}
