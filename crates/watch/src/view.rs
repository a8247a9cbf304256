//! What the user looks at, and what keys do to it. Pure: sessions, keys and times go in; what is
//! drawn, and what a session is to be told, come out.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use ratatui_core::layout::Size;
use stockade_warden::live::Answer;

use crate::{
    keys::Key,
    questions::{self, QuestionPanel},
    rows::{List, Row},
    session::{Question, Session},
};

/// So long a question must have been chosen before it takes an answer: who types something else when
/// it appears, or when the one before it goes away, has not read it.
pub(crate) const UNREAD: Duration = Duration::from_millis(500);
/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(8);
/// Lines that stay for the list below the questions: title, tabs, columns, two rows, keys.
const BELOW: u16 = 6;
/// Title and keys.
const AROUND: u16 = 2;

#[derive(Debug)]
pub(crate) struct View {
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) size: Size,
    pub(crate) colours: bool,
    pub(crate) list: List,
    pub(crate) panel: Panel,
    /// The one session whose rows are shown. Questions of all sessions are.
    pub(crate) only: Option<String>,
    pub(crate) filter: String,
    /// Letters go to the filter.
    pub(crate) is_typing: bool,
    /// Of each list.
    places: [Place; List::ALL.len()],
    /// The question that an answer is for, and since when.
    chosen: Option<(QuestionKey, Duration)>,
    /// Questions that have been answered and are still told.
    answered: Vec<QuestionKey>,
    notice: Option<(String, Duration)>,
    /// Those that have been there before.
    rung: Vec<QuestionKey>,
}

/// What stands below the tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    List,
    /// Of a row, scrolled so far.
    Details(u16),
    /// Of the chosen question.
    Question(u16),
    Help(u16),
}

/// A session and the number of a question in it.
pub(crate) type QuestionKey = (String, u64);

/// Where the user is in a list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sorting {
    pub(crate) column: usize,
    pub(crate) is_reversed: bool,
}

#[derive(Debug, Clone, Default)]
struct Place {
    sorting: Sorting,
    /// The row that was chosen, and where it was. Without one, the first.
    chosen: Option<(String, usize)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Answer {
        session: String,
        question: u64,
        answer: Answer,
    },
    Quit,
    Suspend,
    Redraw,
}

impl View {
    pub(crate) fn new(size: Size, colours: bool) -> Self {
        let places = List::ALL.map(|list| Place {
            // The newest first, or the oldest session.
            sorting: Sorting {
                column: list.columns().len() - 1,
                is_reversed: list == List::Sessions,
            },
            chosen: None,
        });
        Self {
            sessions: BTreeMap::new(),
            size,
            colours,
            list: List::default(),
            panel: Panel::List,
            only: None,
            filter: String::new(),
            is_typing: false,
            places,
            chosen: None,
            answered: Vec::new(),
            notice: None,
            rung: Vec::new(),
        }
    }

    pub(crate) fn session(&mut self, id: &str) -> &mut Session {
        let known = self.sessions.entry(id.to_owned());
        known.or_insert_with(|| Session::new(id))
    }

    /// Looks at what has come. Whether there is a question that was not there before.
    pub(crate) fn update(&mut self, now: Duration) -> bool {
        let all: Vec<_> = self.questions().map(|(key, _)| key).collect();
        let told = |key: &QuestionKey| {
            let session = self.sessions.get(&key.0);
            session.is_some_and(|it| it.questions.iter().any(|question| question.id == key.1))
        };
        let answered: Vec<_> = self
            .answered
            .iter()
            .filter(|key| told(key))
            .cloned()
            .collect();
        self.answered = answered;
        let is_chosen = |chosen: &(QuestionKey, Duration)| all.contains(&chosen.0);
        if !self.chosen.as_ref().is_some_and(is_chosen) {
            self.chosen = all.first().map(|first| (first.clone(), now));
            if matches!(self.panel, Panel::Question(_)) {
                self.panel = Panel::List;
            }
        }
        let is_new = all.iter().any(|key| !self.rung.contains(key));
        self.rung = all;
        is_new
    }

    /// All questions that wait for an answer, in order.
    pub(crate) fn questions(&self) -> impl Iterator<Item = (QuestionKey, (&Session, &Question))> {
        let all = self.sessions.iter().flat_map(|(id, session)| {
            let of = session.questions.iter();
            of.map(move |question| ((id.clone(), question.id), (session, question)))
        });
        all.filter(|(key, _)| !self.answered.contains(key))
    }

    pub(crate) fn chosen_question(&self) -> Option<(&Session, &Question)> {
        let (chosen, _) = self.chosen.as_ref()?;
        let mut all = self.questions();
        all.find_map(|(key, question)| (key == *chosen).then_some(question))
    }

    /// The chosen question has not been there for long enough to be read.
    fn is_unread(&self, now: Duration) -> bool {
        let since = self.chosen.as_ref().map(|(_, since)| *since);
        since.is_some_and(|since| now < since + UNREAD)
    }

    pub(crate) fn question_panel(&self, now: Duration) -> QuestionPanel {
        let chosen = self
            .chosen
            .as_ref()
            .map(|(key, _)| (key, self.is_unread(now)));
        let Size { width, height } = self.size;
        let panel = |below: u16| {
            let height = height.saturating_sub(below);
            questions::panel(self, chosen, usize::from(width), usize::from(height))
        };
        // The list makes way for a question that needs its place.
        let beside_list = panel(BELOW);
        if beside_list.is_complete {
            beside_list
        } else {
            panel(AROUND)
        }
    }

    /// The rows of the list that is shown.
    pub(crate) fn rows(&self, now: Timestamp) -> Vec<Row> {
        let wanted = self.filter.to_lowercase();
        let shown = |session: &&Session| {
            self.list == List::Sessions || self.only.as_ref().is_none_or(|only| *only == session.id)
        };
        let sessions = self.sessions.values().filter(shown);
        let rows = sessions.flat_map(|session| self.list.rows(session, now));
        let mut rows: Vec<_> = rows.filter(|row| row.contains(&wanted)).collect();
        let sorting = self.sorting();
        rows.sort_by(|one, other| match sorting.is_reversed {
            false => one.compare(other, sorting.column),
            true => other.compare(one, sorting.column),
        });
        rows
    }

    pub(crate) fn sorting(&self) -> Sorting {
        self.place().sorting
    }

    /// Which of the rows is chosen.
    pub(crate) fn chosen_row(&self, rows: &[Row]) -> usize {
        let Some((key, at)) = &self.place().chosen else {
            return 0;
        };
        let known = rows.iter().position(|row| row.key == *key);
        known.unwrap_or(*at).min(rows.len().saturating_sub(1))
    }

    fn place(&self) -> &Place {
        &self.places[self.list as usize]
    }

    fn place_mut(&mut self) -> &mut Place {
        &mut self.places[self.list as usize]
    }

    pub(crate) fn notify(&mut self, text: String, now: Duration) {
        self.notice = Some((text, now + NOTICE));
    }

    pub(crate) fn notice(&self, now: Duration) -> Option<&str> {
        let notice = self.notice.as_ref().filter(|(_, until)| now < *until);
        notice.map(|(text, _)| text.as_str())
    }

    /// An answer did not count.
    pub(crate) fn unanswered(&mut self, session: &str, question: u64) {
        self.answered
            .retain(|key| *key != (session.to_owned(), question));
    }

    /// Takes the keys that were pressed at once: one, unless something was pasted. What was pasted
    /// answers nothing.
    pub(crate) fn press(&mut self, keys: &[Key], now: Duration, date: Timestamp) -> Option<Action> {
        let is_one = keys.len() == 1;
        self.notice = None;
        keys.iter()
            .find_map(|key| self.key(*key, is_one, (now, date)))
    }

    fn key(
        &mut self,
        key: Key,
        is_one: bool,
        (now, date): (Duration, Timestamp),
    ) -> Option<Action> {
        match key {
            Key::Interrupt => return Some(Action::Quit),
            Key::Suspend => return Some(Action::Suspend),
            Key::Redraw => return Some(Action::Redraw),
            key if self.is_typing => self.type_filter(key),
            Key::Letter('q') => return Some(Action::Quit),
            Key::Letter(letter) => match answer(letter) {
                Some(answer) if is_one => return self.answer(answer, now),
                Some(_) => {}
                None => self.letter(letter, now, date),
            },
            Key::Tab => self.choose_question(1, now),
            Key::BackTab => self.choose_question(-1, now),
            Key::Left => self.change_list(-1),
            Key::Right => self.change_list(1),
            Key::Up => self.step(-1, date),
            Key::Down => self.step(1, date),
            Key::PageUp => self.step(-self.page(), date),
            Key::PageDown => self.step(self.page(), date),
            Key::Home => self.step(isize::MIN, date),
            Key::End => self.step(isize::MAX, date),
            Key::Enter => self.enter(date),
            Key::Escape => self.back(),
            Key::Backspace => {}
        }
        None
    }

    fn letter(&mut self, letter: char, now: Duration, date: Timestamp) {
        match letter {
            '1'..='4' => {
                let lists = List::ALL.iter().zip('1'..);
                if let Some((list, _)) = lists.into_iter().find(|(_, key)| *key == letter) {
                    self.list = *list;
                    self.panel = Panel::List;
                }
            }
            'j' => self.step(1, date),
            'k' => self.step(-1, date),
            'g' => self.step(isize::MIN, date),
            'G' => self.step(isize::MAX, date),
            'c' => {
                let columns = self.list.columns().len();
                let sorting = &mut self.place_mut().sorting;
                sorting.column = (sorting.column + 1) % columns;
                let title = self.list.columns()[self.sorting().column].title;
                self.notify(format!("sorted by {title}; r reverses"), now);
            }
            'r' => {
                let sorting = &mut self.place_mut().sorting;
                sorting.is_reversed = !sorting.is_reversed;
            }
            '/' => {
                self.is_typing = true;
                self.panel = Panel::List;
            }
            ' ' => {
                let rows = self.rows(date);
                let row = rows.get(self.chosen_row(&rows));
                let session = row.map(|row| row.session.clone());
                self.only = if self.only == session { None } else { session };
            }
            'i' if self.chosen_question().is_some() => self.panel = Panel::Question(0),
            '?' => self.panel = Panel::Help(0),
            _ => {}
        }
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Letter(letter) => self.filter.push(letter),
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
    }

    fn answer(&mut self, answer: Answer, now: Duration) -> Option<Action> {
        let (key, _) = self.chosen.clone()?;
        self.chosen_question()?;
        if self.is_unread(now) {
            self.notify(
                "this question has just come: read it, then answer".to_owned(),
                now,
            );
            return None;
        }
        if answer != Answer::Deny && !self.question_panel(now).is_complete {
            self.notify(
                "the window is too small for the question: enlarge it".to_owned(),
                now,
            );
            return None;
        }
        self.answered.push(key.clone());
        let (session, question) = key;
        self.update(now);
        Some(Action::Answer {
            session,
            question,
            answer,
        })
    }

    fn choose_question(&mut self, by: isize, now: Duration) {
        let all: Vec<_> = self.questions().map(|(key, _)| key).collect();
        let Some((chosen, _)) = &self.chosen else {
            return;
        };
        let at = all.iter().position(|key| key == chosen).unwrap_or(0);
        let next = at
            .checked_add_signed(by)
            .unwrap_or(all.len().saturating_sub(1));
        let next = all.get(next).or(all.first());
        if next != Some(chosen) {
            self.chosen = next.map(|next| (next.clone(), now));
        }
    }

    fn change_list(&mut self, by: isize) {
        let at = (self.list as usize).checked_add_signed(by);
        let next = at.and_then(|at| List::ALL.get(at));
        self.list = *next.unwrap_or(&self.list);
        self.panel = Panel::List;
    }

    fn page(&self) -> isize {
        isize::try_from(self.size.height / 2).unwrap_or(1)
    }

    /// Up or down, in the list or in what is open over it.
    fn step(&mut self, by: isize, date: Timestamp) {
        let scroll = |at: u16| {
            let to = isize::try_from(at).unwrap_or_default().saturating_add(by);
            u16::try_from(to.clamp(0, 500)).unwrap_or_default()
        };
        match self.panel {
            Panel::List => {
                let rows = self.rows(date);
                let at = self.chosen_row(&rows).saturating_add_signed(by);
                let at = at.min(rows.len().saturating_sub(1));
                self.place_mut().chosen = rows.get(at).map(|row| (row.key.clone(), at));
            }
            Panel::Details(at) => self.panel = Panel::Details(scroll(at)),
            Panel::Question(at) => self.panel = Panel::Question(scroll(at)),
            Panel::Help(at) => self.panel = Panel::Help(scroll(at)),
        }
    }

    fn enter(&mut self, date: Timestamp) {
        if self.panel != Panel::List {
            self.panel = Panel::List;
            return;
        }
        let rows = self.rows(date);
        let at = self.chosen_row(&rows);
        let Some(row) = rows.get(at) else {
            return;
        };
        // It stays the same one, even if it was the first by chance.
        self.place_mut().chosen = Some((row.key.clone(), at));
        self.panel = Panel::Details(0);
    }

    /// One thing after the other: what is open, the filter, the one session.
    fn back(&mut self) {
        if self.panel != Panel::List {
            self.panel = Panel::List;
        } else if !self.filter.is_empty() {
            self.filter.clear();
        } else {
            self.only = None;
        }
    }
}

/// The keys of the answers, with their words.
pub(crate) const ANSWERS: [(char, Answer, &str); 4] = [
    ('o', Answer::Once, "allow once"),
    ('s', Answer::Session, "allow for this session"),
    ('a', Answer::Always, "always allow"),
    ('d', Answer::Deny, "deny"),
];

fn answer(letter: char) -> Option<Answer> {
    let mut all = ANSWERS.into_iter();
    all.find_map(|(key, answer, _)| (key == letter).then_some(answer))
}
