//! The terminal: its raw mode, its second screen, and what is drawn on it.
//!
//! ratatui's usual backend would bring a second event loop, signal handlers and fourteen crates.
//! What is needed is this file.

use std::{
    io::{self, Write as _},
    panic,
};

use ratatui_core::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::{Color, Modifier},
};
use rustix::{
    stdio::{stdin, stdout},
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

/// The second screen, without a cursor; and back, in no style.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
const BELL: &[u8] = b"\x07";

/// The terminal of standard input and output, until this is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    before: Termios,
    out: Vec<u8>,
}

impl Screen {
    /// # Errors
    /// If there is no terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut screen = Self {
            before: before.clone(),
            out: Vec::new(),
        };
        // A program that panics may end without dropping anything.
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave(&before);
            usual(panic);
        }));
        screen.take()?;
        Ok(screen)
    }

    /// Takes the terminal, at the beginning and after a stop. What was typed before is forgotten: it
    /// is no answer to anything.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Flush, &raw)?;
        self.out.extend(ENTER);
        self.flush()
    }

    /// Gives it back as it was.
    pub(crate) fn give_back(&self) {
        leave(&self.before);
    }

    pub(crate) fn ring(&mut self) {
        self.out.extend(BELL);
    }

    fn style(&mut self, cell: &Cell) {
        self.out.extend(b"\x1b[0");
        let modifiers: [(Modifier, &[u8]); 4] = [
            (Modifier::BOLD, b";1"),
            (Modifier::DIM, b";2"),
            (Modifier::UNDERLINED, b";4"),
            (Modifier::REVERSED, b";7"),
        ];
        for (modifier, code) in modifiers {
            if cell.modifier.contains(modifier) {
                self.out.extend(code);
            }
        }
        // Those that are used.
        let colour: &[u8] = match cell.fg {
            Color::Red => b";31",
            Color::Yellow => b";33",
            Color::Cyan => b";36",
            _ => b"",
        };
        self.out.extend(colour);
        self.out.push(b'm');
    }

    fn move_to(&mut self, x: u16, y: u16) {
        let place = format!("\x1b[{};{}H", u32::from(y) + 1, u32::from(x) + 1);
        self.out.extend(place.as_bytes());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.give_back();
        let _ = panic::take_hook();
    }
}

/// If this fails, nobody is there to see it.
fn leave(before: &Termios) {
    let mut out = io::stdout();
    let _ = out.write_all(LEAVE).and_then(|()| out.flush());
    let _ = tcsetattr(stdin(), OptionalActions::Flush, before);
}

impl Backend for Screen {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut next = None;
        let mut last: Option<&Cell> = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.move_to(x, y);
            }
            let is_same = |it: &Cell| (it.fg, it.modifier) == (cell.fg, cell.modifier);
            if !last.is_some_and(is_same) {
                self.style(cell);
            }
            last = Some(cell);
            self.out.extend(cell.symbol().as_bytes());
            // The terminal may find another character wider, or narrower, than it is thought to be.
            let is_known = cell.symbol().is_ascii();
            next = is_known.then(|| (x.saturating_add(1), y));
        }
        self.out.extend(b"\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        self.move_to(x, y);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, what: ClearType) -> io::Result<()> {
        self.out.extend(match what {
            ClearType::All => &b"\x1b[2J"[..],
            ClearType::AfterCursor => b"\x1b[J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(stdout())?;
        Ok(match (size.ws_col, size.ws_row) {
            // A serial line, for example, has none.
            (0, _) | (_, 0) => Size::new(80, 24),
            (columns, rows) => Size::new(columns, rows),
        })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        let mut stdout = io::stdout();
        stdout.write_all(&out)?;
        stdout.flush()
    }
}
