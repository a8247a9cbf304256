//! A [`View`] on the screen.

use std::time::Duration;

use jiff::Timestamp;
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    terminal::Frame,
};

use crate::{
    questions::{self, Kind},
    rows::{Column, List, Row, Width},
    text::{counted, cut, cut_name, wrap},
    view::{ANSWERS, Panel, View},
};

const KEYS: &str = " ? help  q quit  Enter details  / filter  c sort  ←→ lists  Tab next question";

const HELP: [(&str, &str); 13] = [
    ("1 2 3 4, ← →", "connections, denials, names, sessions"),
    ("↑ ↓ j k, PgUp PgDn, g G", "move"),
    ("Enter", "details of the row"),
    ("Space", "show only the session of this row, or all again"),
    ("Esc", "close details, clear the filter, show all sessions"),
    (
        "/",
        "filter: show rows that contain the text; Enter keeps it, Esc clears it",
    ),
    ("c, r", "sort by the next column; reverse the order"),
    ("Tab, Shift-Tab", "choose the next or previous question"),
    (
        "i",
        "details of the question: all arguments, parents, reason",
    ),
    ("o", "allow once: what waits now"),
    (
        "s, a",
        "add the rule until the session ends; also to your file for this project",
    ),
    ("d", "deny"),
    (
        "q, Ctrl-C",
        "quit. Questions are then denied, unless somebody else is there to answer",
    ),
];

/// At this time since the start, and at this date.
pub(crate) fn draw(view: &View, frame: &mut Frame<'_>, now: Duration, date: Timestamp) {
    let area = frame.area();
    let mut canvas = Canvas {
        buffer: frame.buffer_mut(),
        area,
        colours: view.colours,
        y: 0,
    };
    canvas.line(
        &title(view),
        canvas.style(None).add_modifier(Modifier::REVERSED),
    );
    for (kind, line) in view.question_panel(now).lines {
        let style = match kind {
            Kind::Heading => canvas
                .style(Some(Color::Yellow))
                .add_modifier(Modifier::BOLD),
            Kind::Chosen => canvas.style(Some(Color::Yellow)),
            Kind::Other => canvas.style(None),
            Kind::Keys => canvas.style(None).add_modifier(Modifier::BOLD),
        };
        canvas.line(&line, style);
    }
    canvas.tabs(view);
    match view.panel {
        Panel::List => canvas.list(view, date),
        Panel::Details(scroll) => {
            let rows = view.rows(date);
            let row = rows.get(view.chosen_row(&rows));
            canvas.details(row.map_or(&[], |row| &row.details), scroll);
        }
        Panel::Question(scroll) => {
            let question = view.chosen_question();
            let details = question.map(|(session, question)| questions::details(session, question));
            canvas.details(&details.unwrap_or_default(), scroll);
        }
        Panel::Help(scroll) => {
            let help = HELP.map(|(keys, text)| (keys, text.to_owned()));
            canvas.details(&help, scroll);
        }
    }
    canvas.y = area.height.saturating_sub(1);
    let dim = canvas.style(None).add_modifier(Modifier::DIM);
    match view.notice(now) {
        _ if view.is_typing => canvas.line(&format!(" filter: {}_", view.filter), Style::new()),
        Some(notice) => canvas.line(&format!(" {notice}"), canvas.style(Some(Color::Cyan))),
        None if !view.filter.is_empty() => {
            canvas.line(&format!(" filter: {}   (Esc clears it)", view.filter), dim);
        }
        None => canvas.line(KEYS, dim),
    }
}

fn title(view: &View) -> String {
    let running = view
        .sessions
        .values()
        .filter(|session| !session.has_ended());
    let sum = |count: &dyn Fn(&crate::session::Session) -> u64| {
        view.sessions.values().map(count).sum::<u64>()
    };
    let parts = [
        counted(view.questions().count() as u64, "question"),
        counted(running.count() as u64, "session"),
        counted(sum(&|it| it.open() as u64), "connection"),
        counted(sum(&|it| it.denied), "denial"),
    ];
    format!(" stockade: {}", parts.join(", "))
}

/// The screen, which is written from top to bottom.
struct Canvas<'b> {
    buffer: &'b mut Buffer,
    area: Rect,
    colours: bool,
    y: u16,
}

impl Canvas<'_> {
    fn style(&self, colour: Option<Color>) -> Style {
        match colour.filter(|_| self.colours) {
            Some(colour) => Style::new().fg(colour),
            None => Style::new(),
        }
    }

    /// A whole line, in one style to its end. What is below the screen is not there.
    fn line(&mut self, text: &str, style: Style) {
        let y = self.y;
        self.y = self.y.saturating_add(1);
        if y < self.area.height {
            let whole = Rect::new(0, y, self.area.width, 1);
            self.buffer.set_style(whole, style);
            self.put(0, y, text, self.area.width);
        }
    }

    fn put(&mut self, x: u16, y: u16, text: &str, width: u16) {
        if x < self.area.width && y < self.area.height {
            self.buffer
                .set_stringn(x, y, text, usize::from(width), Style::new());
        }
    }

    /// What is left below, but for the last line.
    fn room(&self) -> usize {
        let end = self.area.height.saturating_sub(1);
        usize::from(end.saturating_sub(self.y))
    }

    fn tabs(&mut self, view: &View) {
        let y = self.y;
        self.line("", self.style(None));
        let mut x = 1;
        for (number, list) in (1..).zip(List::ALL) {
            let text = format!("{number} {}", list.title());
            let width = u16::try_from(text.len()).unwrap_or_default();
            self.put(x, y, &text, width);
            if list == view.list && y < self.area.height && x < self.area.width {
                let width = width.min(self.area.width - x);
                let style = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
                self.buffer.set_style(Rect::new(x, y, width, 1), style);
            }
            x += width + 3;
        }
        if let Some(only) = &view.only {
            let place = view
                .sessions
                .get(only)
                .map_or("", |session| session.place());
            self.put(x, y, &format!("only {place}"), self.area.width);
        }
    }

    fn list(&mut self, view: &View, date: Timestamp) {
        let rows = view.rows(date);
        if rows.is_empty() {
            let text = nothing(view);
            let dim = self.style(None).add_modifier(Modifier::DIM);
            return self.line(&text, dim);
        }
        let columns = columns(view, self.area.width);
        let heading = self.style(None).add_modifier(Modifier::DIM);
        let y = self.y;
        self.line("", heading);
        let sorting = view.sorting();
        for (index, column, x, width) in &columns {
            let mark = match (*index == sorting.column, sorting.is_reversed) {
                (true, false) => "^",
                (true, true) => "v",
                _ => "",
            };
            self.put(*x, y, &format!("{}{mark}", column.title), *width + 1);
        }
        let chosen = view.chosen_row(&rows);
        let room = self.room().max(1);
        let first = (chosen + 1).saturating_sub(room);
        for (number, row) in rows.iter().enumerate().skip(first).take(room) {
            self.row(view.list, row, &columns, number == chosen);
        }
    }

    fn row(&mut self, list: List, row: &Row, columns: &[Placed], is_chosen: bool) {
        let y = self.y;
        let style = match list {
            List::Denials => self.style(Some(Color::Red)),
            _ => self.style(None),
        };
        match is_chosen {
            true => self.line("", style.add_modifier(Modifier::REVERSED)),
            false => self.line("", style),
        }
        for (index, column, x, width) in columns {
            let text = row.cells.get(*index).map_or("", |cell| cell.text.as_str());
            let text = match column.is_name {
                true => cut_name(text, usize::from(*width)),
                false => cut(text, usize::from(*width)),
            };
            self.put(*x, y, &text, *width);
        }
    }

    /// Names and their texts, wrapped, scrolled so far.
    fn details(&mut self, details: &[(&str, String)], scroll: u16) {
        let names = details.iter().map(|(name, _)| name.chars().count());
        let column = names.max().unwrap_or_default() + 3;
        let width = usize::from(self.area.width).saturating_sub(column + 1);
        let mut lines = Vec::new();
        for (name, text) in details {
            let mut name = *name;
            for line in wrap(text, width) {
                lines.push((name.to_owned(), line));
                name = "";
            }
        }
        // The last line stays on the screen.
        let most = lines.len().saturating_sub(self.room().max(1));
        let first = usize::from(scroll).min(most);
        let room = self.room();
        let column = u16::try_from(column).unwrap_or(u16::MAX);
        for (name, text) in lines.iter().skip(first).take(room) {
            let y = self.y;
            self.line("", self.style(None));
            self.put(1, y, name, column);
            if y < self.area.height {
                let dim = Style::new().add_modifier(Modifier::DIM);
                let width = column.min(self.area.width);
                self.buffer.set_style(Rect::new(0, y, width, 1), dim);
            }
            self.put(column, y, text, self.area.width);
        }
    }
}

/// The index of a column, the column, and where it stands and how wide.
type Placed = (usize, &'static Column, u16, u16);

/// The columns that fit into this width.
fn columns(view: &View, width: u16) -> Vec<Placed> {
    const GAP: u16 = 2;
    let is_one = view.sessions.len() < 2 || view.only.is_some();
    let all = view.list.columns().iter().enumerate();
    let shown: Vec<_> = all
        .filter(|(index, column)| {
            let is_needless = *index == 0 && is_one && view.list != List::Sessions;
            column.from <= width && !is_needless
        })
        .collect();
    let (mut fixed, mut parts) = (1_u16, 0_u16);
    for (_, column) in &shown {
        match column.width {
            Width::Cells(cells) => fixed = fixed.saturating_add(cells + GAP),
            Width::Parts(share) => {
                fixed = fixed.saturating_add(GAP);
                parts += share;
            }
        }
    }
    let left = width.saturating_sub(fixed);
    let mut x = 1;
    let mut placed = Vec::new();
    for (index, column) in shown {
        let width = match column.width {
            Width::Cells(cells) => cells,
            Width::Parts(share) => left * share / parts.max(1),
        };
        placed.push((index, column, x, width));
        x += width + GAP;
    }
    placed
}

fn nothing(view: &View) -> String {
    if !view.filter.is_empty() {
        return format!(" nothing here contains \"{}\"", view.filter);
    }
    let text = match view.list {
        _ if view.sessions.is_empty() => {
            " no session is running; `stockade run -- COMMAND` in another terminal starts one"
        }
        List::Connections => " no connection is open",
        List::Denials => " nothing was denied",
        List::Names => " no name was asked for",
        List::Sessions => " no session is running",
    };
    text.to_owned()
}

/// What an answer is called once it has been given.
pub(crate) fn given(answer: stockade_warden::live::Answer) -> &'static str {
    let mut all = ANSWERS.into_iter();
    let words = all.find_map(|(_, it, words)| (it == answer).then_some(words));
    words.unwrap_or_default()
}
