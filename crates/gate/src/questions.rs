//! Flows and names that wait for the user's answer.
//!
//! What no rule covers can be held until the user has answered: the SYN stays unanswered, the
//! datagram is kept, the question for a name waits. There is one question for each rule that would
//! allow something; everything that this rule would allow waits for the one answer.
//!
//! A program inside can make any number of attempts, and the human is what it may attack. So few
//! questions wait at a time, each for a bounded time and with a bounded number of attempts; what was
//! refused is not asked again before the configuration is read again, or for a minute if nobody answered; and after some refusals nothing
//! is asked for a while. Where nobody is there to answer, nothing is held.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    fmt,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use serde::{Deserialize, Serialize};
use stockade_policy::{Flow, Hostname, Rule};
use tokio::{sync::oneshot, task::spawn_local, time::sleep};

use crate::audit::{
    attribution::Attributor,
    denials::{Ruling, Subject},
    events::{Event, EventSender},
};

/// Questions that wait at a time.
const QUESTIONS: usize = 8;
/// How long each waits.
const TIME: Duration = Duration::from_secs(60);
/// Attempts that wait for one answer.
const ATTEMPTS: usize = 64;
/// After so many refusals in this time nothing is asked.
const REFUSALS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Refused rules that are remembered.
const REMEMBERED: usize = 256;
/// How long a name that was allowed once can be asked for: programs ask for its addresses of each
/// family, one after the other.
const ONCE: Duration = Duration::from_secs(10);

/// What the user can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Allow what waits now.
    Once,
    /// Add the rule until the session ends.
    Session,
    /// Add the rule to the user's file for this project, too.
    Always,
    Deny,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Deny => "deny",
        })
    }
}

/// Who gave an answer, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    Watch,
    Tmux,
    Desktop,
    /// Nobody did in time.
    TimeOut,
    /// There was nobody left to answer.
    Unattended,
    /// The configuration was read again, and decides it.
    Reload,
    /// The session has ended.
    End,
}

impl fmt::Display for AnsweredBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Watch => "watch",
            Self::Tmux => "tmux",
            Self::Desktop => "desktop",
            Self::TimeOut => "time-out",
            Self::Unattended => "unattended",
            Self::Reload => "reload",
            Self::End => "end",
        })
    }
}

/// Whether somebody is there to be asked. Any thread may change it.
#[derive(Debug, Default)]
pub struct Attention {
    /// Those who watch the session now.
    pub watchers: AtomicUsize,
    /// The user can be reached in another way.
    pub reachable: AtomicBool,
    /// The log is written. Questions come out of it.
    pub is_recorded: AtomicBool,
}

impl Attention {
    fn is_there(&self) -> bool {
        let Self {
            watchers,
            reachable,
            is_recorded,
        } = self;
        let is_there = watchers.load(Ordering::Relaxed) > 0 || reachable.load(Ordering::Relaxed);
        is_there && is_recorded.load(Ordering::Relaxed)
    }
}

/// What becomes of an attempt that waited.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It may pass as if this rule were in force.
    Once(Rule),
    /// The policy has changed, and decides.
    Judge,
    Deny,
}

/// An attempt that waits.
#[derive(Debug)]
pub(crate) struct Waiting(oneshot::Receiver<Decision>);

impl Waiting {
    pub(crate) async fn decision(self) -> Decision {
        self.0.await.unwrap_or(Decision::Deny)
    }
}

/// What would be denied, and could be asked.
pub(crate) struct Unknown<'a> {
    pub(crate) subject: Subject,
    pub(crate) ruling: Ruling,
    pub(crate) rule: &'a Rule,
    pub(crate) names: Vec<Hostname>,
    /// By whose socket the program behind it is found.
    pub(crate) socket: Option<(Flow, SocketAddr)>,
}

#[derive(Debug)]
pub(crate) struct Questions {
    is_on: Cell<bool>,
    attention: Arc<Attention>,
    events: EventSender,
    last: Cell<u64>,
    held: RefCell<BTreeMap<u64, Held>>,
    refused: RefCell<VecDeque<Refused>>,
    refusals: RefCell<VecDeque<Instant>>,
    /// Whether the user was told that nothing is asked for a while.
    is_paused: Cell<bool>,
    /// Names that were allowed once, and when.
    once: RefCell<Vec<(Hostname, Instant)>>,
}

/// What is not asked again.
#[derive(Debug)]
struct Refused {
    rule: Rule,
    /// None: for the whole session, since the user said so.
    until: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    subject: Subject,
    rule: Rule,
    waiting: Vec<oneshot::Sender<Decision>>,
}

impl Questions {
    pub(crate) fn new(is_on: bool, attention: Arc<Attention>, events: EventSender) -> Self {
        Self {
            is_on: Cell::new(is_on),
            attention,
            events,
            last: Cell::new(0),
            held: RefCell::default(),
            refused: RefCell::default(),
            refusals: RefCell::default(),
            is_paused: Cell::new(false),
            once: RefCell::default(),
        }
    }

    /// Holds an attempt that would be denied. Nothing if it is not asked about.
    pub(crate) fn hold(
        self: &Rc<Self>,
        unknown: Unknown<'_>,
        attributor: &Attributor,
    ) -> Option<Waiting> {
        if !self.is_on.get() || !self.attention.is_there() {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let mut held = self.held.borrow_mut();
        if let Some((id, known)) = held.iter_mut().find(|(_, it)| it.rule == *unknown.rule) {
            // Some may have given way to others.
            known.waiting.retain(|waiting| !waiting.is_closed());
            if known.waiting.len() >= ATTEMPTS {
                return None;
            }
            known.waiting.push(sender);
            let (id, count) = (*id, known.waiting.len());
            self.events.send(Event::HeldMore { id, count });
            return Some(Waiting(receiver));
        }
        if held.len() >= QUESTIONS || self.was_refused(&unknown) || self.is_paused() {
            return None;
        }
        let id = self.last.get() + 1;
        self.last.set(id);
        let rule = unknown.rule.clone();
        held.insert(
            id,
            Held {
                subject: unknown.subject.clone(),
                rule: rule.clone(),
                waiting: vec![sender],
            },
        );
        let searched = unknown
            .socket
            .and_then(|(flow, client)| attributor.ask(flow, client));
        self.events.send(Event::Held {
            id,
            subject: unknown.subject,
            ruling: unknown.ruling,
            rule,
            names: unknown.names,
            until: SystemTime::now() + TIME,
            program: searched.map(|(program, _)| program),
        });
        let questions = Rc::clone(self);
        spawn_local(async move {
            sleep(TIME).await;
            questions.answer(id, Answer::Deny, AnsweredBy::TimeOut);
        });
        Some(Waiting(receiver))
    }

    /// Answers a question. Whether there was one.
    pub(crate) fn answer(&self, id: u64, answer: Answer, by: AnsweredBy) -> bool {
        let Some(held) = self.held.borrow_mut().remove(&id) else {
            return false;
        };
        let count = held.waiting.len();
        self.events.send(Event::Answered {
            id,
            subject: held.subject.clone(),
            rule: held.rule.clone(),
            answer,
            by,
            count,
        });
        if answer == Answer::Deny {
            self.refuse(&held.rule, by);
        }
        if let (Answer::Once, Subject::Name(_), Some(name)) =
            (answer, &held.subject, held.rule.name())
        {
            let allowed = (name.name().clone(), Instant::now());
            self.once.borrow_mut().push(allowed);
        }
        for waiting in held.waiting {
            // Whoever has stopped waiting needs no answer.
            let _ = waiting.send(match answer {
                Answer::Once => Decision::Once(held.rule.clone()),
                Answer::Session | Answer::Always => Decision::Judge,
                Answer::Deny => Decision::Deny,
            });
        }
        true
    }

    /// What was refused may be asked again.
    pub(crate) fn forget_refused(&self) {
        self.refused.borrow_mut().clear();
    }

    /// Another policy is in force. Those that it decides need no answer.
    pub(crate) fn review(&self, is_on: bool, is_allowed: impl Fn(&Subject) -> bool) {
        self.is_on.set(is_on);
        let held = self.held.borrow();
        let decided = held.iter().filter_map(|(id, held)| {
            let answer = match is_allowed(&held.subject) {
                true => Answer::Session,
                false => Answer::Deny,
            };
            (answer == Answer::Session || !is_on).then_some((*id, answer))
        });
        let decided: Vec<_> = decided.collect();
        drop(held);
        for (id, answer) in decided {
            self.answer(id, answer, AnsweredBy::Reload);
        }
    }

    /// Nothing waits any more.
    pub(crate) fn end(&self) {
        self.is_on.set(false);
        let held: Vec<_> = self.held.borrow().keys().copied().collect();
        for id in held {
            self.answer(id, Answer::Deny, AnsweredBy::End);
        }
    }

    /// Whether a name was allowed a moment ago, and programs may still ask for its other addresses.
    pub(crate) fn was_allowed_once(&self, name: &Hostname) -> bool {
        let mut once = self.once.borrow_mut();
        once.retain(|(_, when)| when.elapsed() < ONCE);
        once.iter().any(|(allowed, _)| allowed == name)
    }

    fn refuse(&self, rule: &Rule, by: AnsweredBy) {
        let until = match by {
            AnsweredBy::Reload | AnsweredBy::End => return,
            // The user may be back later. But what just failed is tried again at once by many programs.
            AnsweredBy::TimeOut | AnsweredBy::Unattended => Some(Instant::now() + WINDOW),
            AnsweredBy::Watch | AnsweredBy::Tmux | AnsweredBy::Desktop => None,
        };
        self.refusals.borrow_mut().push_back(Instant::now());
        let mut refused = self.refused.borrow_mut();
        if refused.len() >= REMEMBERED {
            refused.pop_front();
        }
        let rule = rule.clone();
        refused.push_back(Refused { rule, until });
    }

    /// Whether it was refused before. A resolver that was refused a name tries the same with
    /// each search domain behind it.
    fn was_refused(&self, unknown: &Unknown<'_>) -> bool {
        let name = match unknown.subject {
            Subject::Name(_) => unknown.rule.name(),
            _ => None,
        };
        let is_behind = |refused: &Rule| {
            let (Some(name), Some(refused)) = (name, refused.name()) else {
                return false;
            };
            let rest = name.name().as_str().strip_prefix(refused.name().as_str());
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let mut refused = self.refused.borrow_mut();
        refused.retain(|it| it.until.is_none_or(|until| Instant::now() < until));
        let mut rules = refused.iter().map(|it| &it.rule);
        rules.any(|it| it == unknown.rule || is_behind(it))
    }

    fn is_paused(&self) -> bool {
        let mut refusals = self.refusals.borrow_mut();
        while refusals.front().is_some_and(|it| it.elapsed() >= WINDOW) {
            refusals.pop_front();
        }
        let is_paused = refusals.len() >= REFUSALS;
        if is_paused && !self.is_paused.get() {
            let first = refusals.get(refusals.len() - REFUSALS);
            let left = first.map_or(WINDOW, |first| WINDOW.saturating_sub(first.elapsed()));
            let until = SystemTime::now() + left;
            self.events.send(Event::Paused { until });
        }
        self.is_paused.set(is_paused);
        is_paused
    }
}

#[cfg(test)]
mod tests {
    use stockade_policy::{Policy, decide_name};
    use tokio::{
        runtime::Builder,
        task::{LocalSet, yield_now},
    };

    use super::*;
    use crate::audit::events::EventReceiver;

    fn asked(name: &str, questions: &Rc<Questions>) -> Option<Waiting> {
        let policy = Policy::default();
        let name: Hostname = name.parse().expect("a name");
        let verdict = decide_name(&policy, &name);
        let rule = verdict.fix().expect("a rule");
        let unknown = Unknown {
            subject: (&name).into(),
            ruling: Ruling::Name(Box::new(verdict)),
            rule: &rule,
            names: vec![name],
            socket: None,
        };
        let nobody = Attributor::start(None).expect("nobody");
        questions.hold(unknown, &nobody)
    }

    fn with_questions(test: impl AsyncFnOnce(Rc<Questions>, Arc<Attention>, EventReceiver)) {
        let (events, received) = EventSender::new();
        let attention = Arc::new(Attention::default());
        attention.watchers.store(1, Ordering::Relaxed);
        attention.is_recorded.store(true, Ordering::Relaxed);
        let questions = Questions::new(true, Arc::clone(&attention), events);
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime");
        LocalSet::new().block_on(&runtime, test(Rc::new(questions), attention, received));
    }

    #[test]
    fn where_nobody_is_or_nothing_is_recorded_or_asked_nothing_waits() {
        with_questions(async |questions, attention, _| {
            attention.watchers.store(0, Ordering::Relaxed);
            assert!(asked("a.example", &questions).is_none());
            attention.reachable.store(true, Ordering::Relaxed);
            attention.is_recorded.store(false, Ordering::Relaxed);
            assert!(asked("a.example", &questions).is_none());
            attention.is_recorded.store(true, Ordering::Relaxed);
            questions.is_on.set(false);
            assert!(asked("a.example", &questions).is_none());
            // Positive control.
            questions.is_on.set(true);
            assert!(asked("a.example", &questions).is_some());
        });
    }

    #[test]
    fn few_questions_wait_each_with_a_bounded_number_of_attempts() {
        with_questions(async |questions, _, events| {
            let waiting: Vec<_> = (0..2 * ATTEMPTS)
                .filter_map(|_| asked("a.example", &questions))
                .collect();
            assert_eq!(waiting.len(), ATTEMPTS);
            let others = (1..3 * QUESTIONS).map(|n| asked(&format!("n{n}.example"), &questions));
            assert_eq!(others.flatten().count(), QUESTIONS - 1);
            assert_eq!(questions.held.borrow().len(), QUESTIONS);
            // One answer is for all attempts.
            assert!(questions.answer(1, Answer::Once, AnsweredBy::Watch));
            for waiting in waiting {
                assert!(matches!(waiting.decision().await, Decision::Once(_)));
            }
            assert!(!questions.answer(1, Answer::Once, AnsweredBy::Watch));
            assert!(asked("more.example", &questions).is_some());
            let events = std::iter::from_fn(|| events.take().ok());
            let held = events.filter(|(_, event)| matches!(event, Event::Held { .. }));
            assert_eq!(held.count(), QUESTIONS + 1);
        });
    }

    #[test]
    fn what_was_refused_is_not_asked_again_nor_with_a_search_domain_behind_it() {
        with_questions(async |questions, _, _| {
            let waiting = asked("a.example", &questions).expect("a question");
            questions.answer(1, Answer::Deny, AnsweredBy::Watch);
            assert!(matches!(waiting.decision().await, Decision::Deny));
            assert!(asked("a.example", &questions).is_none());
            assert!(asked("a.example.lab.example", &questions).is_none());
            for other in ["b.example", "a.examples", "x.a.example"] {
                assert!(asked(other, &questions).is_some(), "{other}");
            }
            questions.forget_refused();
            assert!(asked("a.example", &questions).is_some());
        });
    }

    #[test]
    fn after_some_refusals_nothing_is_asked_for_a_while_and_that_is_said_once() {
        with_questions(async |questions, _, events| {
            for number in 0..REFUSALS {
                let name = format!("n{number}.example");
                assert!(asked(&name, &questions).is_some(), "{name}");
                let id = questions.last.get();
                questions.answer(id, Answer::Deny, AnsweredBy::TimeOut);
            }
            for number in 0..9 {
                assert!(asked(&format!("m{number}.example"), &questions).is_none());
            }
            let told = std::iter::from_fn(|| events.take().ok());
            let paused = told.filter(|(_, event)| matches!(event, Event::Paused { .. }));
            assert_eq!(paused.count(), 1);
            // The first refusal is long ago.
            let refusals = &questions.refusals;
            let before = Instant::now().checked_sub(WINDOW).expect("a time before");
            *refusals.borrow_mut().front_mut().expect("a refusal") = before;
            assert!(asked("later.example", &questions).is_some());
        });
    }

    #[test]
    fn another_policy_decides_what_waits_and_the_end_releases_it() {
        with_questions(async |questions, _, _| {
            let [a, b, c] = ["a.example", "b.example", "c.example"]
                .map(|name| asked(name, &questions).expect("a question"));
            let is_a = |subject: &Subject| subject.to_string().contains("a.example");
            questions.review(true, is_a);
            assert!(matches!(a.decision().await, Decision::Judge));
            assert_eq!(questions.held.borrow().len(), 2);
            questions.review(false, |_| false);
            assert!(matches!(b.decision().await, Decision::Deny));
            assert!(matches!(c.decision().await, Decision::Deny));
            questions.is_on.set(true);
            // Neither counts as a refusal of the user's.
            let waiting = asked("b.example", &questions).expect("a question");
            questions.end();
            assert!(matches!(waiting.decision().await, Decision::Deny));
            yield_now().await;
        });
    }
}
