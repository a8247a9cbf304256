//! What was denied in a session, folded by what it was.
//!
//! The receipt has each kind once, with a number. For the log, denials of the same kind that
//! follow each other closely are folded: the first is told at once, those that come within a few
//! seconds after it together.

use std::{
    cmp::Reverse,
    collections::HashMap,
    fmt,
    time::{Duration, Instant, SystemTime},
};

use stockade_policy::{Discovery, Flow, Hostname, NameVerdict, Rule, Verdict};

use super::events::{Event, EventSender};

/// How long denials of one kind are folded for the log.
pub(crate) const FOLD: Duration = Duration::from_secs(5);

/// What was denied.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    Flow(Flow),
    /// A datagram from outside to a program that searches for devices: the flow that it would answer.
    Answer(Flow),
    /// A question for a name.
    Name(String),
    /// A connection that may be made, but showed a name that it may not.
    Claim(Flow, String),
    /// A connection to this port of the loopback inside, where nobody listens. The host does.
    HostPort(u16),
    /// A packet of which no flow can be made.
    Packet(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(flow) | Self::Answer(flow) => write!(f, "{flow}"),
            Self::Name(name) => write!(f, "the name {name}"),
            Self::Claim(flow, name) => write!(f, "{name} at {flow}"),
            Self::HostPort(port) => write!(f, "localhost:{port}"),
            Self::Packet(what) => f.write_str(what),
        }
    }
}

/// Why.
#[derive(Debug, Clone)]
pub enum Ruling {
    Flow(Box<Verdict>),
    Name(Box<NameVerdict>),
    /// The loopback inside is not the host's.
    HostPort(u16),
    /// Not a matter of rules.
    Malformed(String),
    /// It may pass, but the proxy makes no connection.
    Proxy(String),
    /// It is the proxy that a variable of the caller's names, with the reason why it is denied.
    ProxyVariable(&'static str, Box<Ruling>),
}

/// The narrowest change of the settings that would have allowed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// A rule more.
    Allow(Rule),
    /// A rule more for a name that may lead to private addresses.
    Near(Rule),
    /// A port of the host's loopback.
    HostPort(u16),
    /// Searches for devices.
    Discovery(Discovery),
    /// Stockade uses the proxy of the caller's environment, for the command.
    Proxy,
}

impl Ruling {
    #[must_use]
    pub fn fix(&self) -> Option<Fix> {
        match self {
            Self::Flow(verdict) => {
                let discovery = verdict.discovery().map(Fix::Discovery);
                discovery.or_else(|| verdict.fix().cloned().map(Fix::from))
            }
            Self::Name(verdict) => verdict.fix().map(Fix::from),
            Self::HostPort(port) => Some(Fix::HostPort(*port)),
            Self::ProxyVariable(..) => Some(Fix::Proxy),
            Self::Malformed(_) | Self::Proxy(_) => None,
        }
    }
}

impl Ruling {
    /// What somebody gives away who makes the change that [`fix`](Self::fix) says.
    #[must_use]
    pub fn danger(&self) -> Option<&'static str> {
        match self {
            Self::Flow(verdict) => verdict.danger(),
            Self::HostPort(port) => danger_of_port(*port),
            Self::Name(_) | Self::Malformed(_) | Self::Proxy(_) | Self::ProxyVariable(..) => None,
        }
    }
}

/// The same of services of the host that are made to be driven by whoever reaches them.
#[must_use]
pub fn danger_of_port(port: u16) -> Option<&'static str> {
    match port {
        22 => Some("it is where people log in to this machine"),
        2375 | 2376 => Some("whoever reaches Docker is root on this machine"),
        4444 | 9515 => Some("whoever reaches WebDriver drives a browser outside"),
        5037 => Some("whoever reaches adb drives the phones at this machine"),
        // Not 5984, CouchDB's.
        5900..=5909 => Some("whoever reaches VNC may see and use your desktop"),
        // Of the screen and of ssh. Not 6006, which web servers for developers use.
        6000..=6003 | 6010..=6019 => {
            Some("whoever reaches X11 may see your screen and type for you")
        }
        6443 | 10250 => Some("whoever reaches Kubernetes may run containers on this machine"),
        8888 => Some("whoever reaches Jupyter may run programs outside"),
        2345 | 5005 | 5678 | 9222 | 9229 => {
            Some("whoever reaches a debugger drives the browser or program outside")
        }
        _ => None,
    }
}

impl From<Rule> for Fix {
    fn from(rule: Rule) -> Self {
        match rule.is_near() {
            true => Self::Near(rule),
            false => Self::Allow(rule),
        }
    }
}

impl Fix {
    /// The option of `run` that has the same effect.
    #[must_use]
    pub fn flag(&self) -> String {
        match self {
            Self::Allow(rule) => format!("--allow {rule}"),
            Self::Near(rule) => format!("--near {rule}"),
            Self::HostPort(port) => format!("--host-port {port}"),
            Self::Discovery(entry) => format!("--discovery {entry}"),
            Self::Proxy => "--proxy environment".to_owned(),
        }
    }
}

/// What is to be added to the settings: an entry of `allow`, or a key.
impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(rule) => write!(f, "{rule}"),
            Self::Near(rule) => write!(f, "near = [\"{rule}\"]"),
            Self::HostPort(port) => write!(f, "host_ports = [{port}]"),
            Self::Discovery(entry) => write!(f, "discovery = [\"{entry}\"]"),
            Self::Proxy => f.write_str("proxy = \"environment\""),
        }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(verdict) => verdict.fmt(f),
            Self::Name(verdict) => write!(f, "{verdict}"),
            Self::HostPort(_) => f.write_str(
                "nothing listens there inside the sandbox, which has a localhost of its own; a program \
                 of your machine does",
            ),
            Self::Malformed(why) | Self::Proxy(why) => f.write_str(why),
            Self::ProxyVariable(variable, ruling) => write!(
                f,
                "{ruling}; it is the proxy in {variable}. A command that uses it directly bypasses \
                 your rules; Stockade can use it for the command instead"
            ),
        }
    }
}

/// Something that was denied, and how often.
#[derive(Debug, Clone)]
pub struct Denial {
    pub subject: Subject,
    pub ruling: Ruling,
    pub count: u64,
}

/// All denials of a session. A program inside can make any number of them, so only so
/// many are remembered; the rest are counted.
#[derive(Debug, Default)]
pub struct Denials {
    known: HashMap<Subject, (Ruling, u64)>,
    others: u64,
    recent: HashMap<Subject, Recent>,
}

/// Denials of one kind since the first of them was told.
#[derive(Debug)]
struct Recent {
    since: Instant,
    ruling: Ruling,
    count: u64,
    first: SystemTime,
    last: SystemTime,
}

/// What a denial is to those who hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Novelty {
    /// Of a kind that was not denied before.
    First,
    /// Of one that was, but not lately.
    Again,
    /// Told later, together with others.
    Folded,
}

impl Denials {
    const REMEMBERED: usize = 256;
    const FOLDED: usize = 4096;

    /// What cannot be folded for want of room is told.
    pub(crate) fn record(
        &mut self,
        subject: &Subject,
        ruling: &Ruling,
        events: &EventSender,
    ) -> Novelty {
        let mut novelty = Novelty::Again;
        if let Some((_, count)) = self.known.get_mut(subject) {
            *count += 1;
        } else if self.known.len() < Self::REMEMBERED || self.make_room_for(ruling) {
            self.known.insert(subject.clone(), (ruling.clone(), 1));
            novelty = Novelty::First;
        } else {
            self.others += 1;
        }
        let now = SystemTime::now();
        if let Some(recent) = self.recent.get_mut(subject) {
            if recent.count == 0 {
                recent.first = now;
            }
            recent.count += 1;
            recent.last = now;
            return Novelty::Folded;
        }
        if self.recent.len() >= Self::FOLDED {
            self.tell_folded(Duration::ZERO, events);
        }
        let recent = Recent {
            since: Instant::now(),
            ruling: ruling.clone(),
            count: 0,
            first: now,
            last: now,
        };
        self.recent.insert(subject.clone(), recent);
        novelty
    }

    /// Forgets a denial that would not be dangerous to allow for one that would, or else one of the danger
    /// that most are of. Whether there was one.
    fn make_room_for(&mut self, ruling: &Ruling) -> bool {
        let danger = ruling.danger();
        if danger.is_none() {
            return false;
        }
        let mut dangers: HashMap<_, usize> = HashMap::new();
        for (ruling, _) in self.known.values() {
            *dangers.entry(ruling.danger()).or_default() += 1;
        }
        let most = dangers.into_iter().max_by_key(|(_, count)| *count);
        let gives_way = match most.map(|(most, _)| most) {
            _ if self.known.values().any(|(it, _)| it.danger().is_none()) => None,
            most => most.flatten(),
        };
        if gives_way == danger {
            return false;
        }
        let those = self.known.iter();
        let those = those.filter(|(_, (ruling, _))| ruling.danger() == gives_way);
        let rarest = those.min_by_key(|(_, (_, count))| *count);
        let Some(subject) = rarest.map(|(subject, _)| subject.clone()) else {
            return false;
        };
        let forgotten = self.known.remove(&subject);
        self.others += forgotten.map_or(0, |(_, count)| count);
        true
    }

    /// Tells of what was folded for so long, in the order in which it began.
    pub(crate) fn tell_folded(&mut self, age: Duration, events: &EventSender) {
        let is_due = |_: &Subject, recent: &mut Recent| recent.since.elapsed() >= age;
        let mut due: Vec<_> = self.recent.extract_if(is_due).collect();
        due.retain(|(_, recent)| recent.count > 0);
        due.sort_by_key(|(_, recent)| recent.first);
        for (subject, recent) in due {
            events.send(Event::DeniedAgain {
                subject,
                ruling: recent.ruling,
                count: recent.count,
                first: recent.first,
                last: recent.last,
            });
        }
    }

    /// What would be dangerous to allow first, so that nobody can bury it: one of each danger, then the second of
    /// each, and so on. Then the most frequent. What programs inside tried comes before what others sent.
    #[must_use]
    pub fn by_count(&self) -> Vec<Denial> {
        let mut all: Vec<_> = self
            .known
            .iter()
            .map(|(subject, (ruling, count))| Denial {
                subject: subject.clone(),
                ruling: ruling.clone(),
                count: *count,
            })
            .collect();
        all.sort_by_key(|denial| {
            let is_answer = matches!(denial.subject, Subject::Answer(_));
            let is_harmless = denial.ruling.danger().is_none();
            let count = Reverse(denial.count);
            (is_answer, is_harmless, count, denial.subject.to_string())
        });
        let mut numbers: HashMap<_, usize> = HashMap::new();
        let numbered = all.into_iter().map(|denial| {
            let is_answer = matches!(denial.subject, Subject::Answer(_));
            let danger = denial.ruling.danger();
            let number = numbers.entry((is_answer, danger)).or_default();
            *number += usize::from(danger.is_some());
            ((is_answer, danger.is_none(), *number), denial)
        });
        let mut numbered: Vec<_> = numbered.collect();
        numbered.sort_by_key(|(key, _)| *key);
        numbered.into_iter().map(|(_, denial)| denial).collect()
    }

    /// Denied attempts of what is not remembered.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }
}

/// A name that a program inside made up, for people: no more of it than fits, and nothing
/// that a terminal would act on.
pub(crate) fn shown(name: &str) -> String {
    const SHOWN: usize = 80;
    let short: String = name.chars().take(SHOWN).collect();
    let dots = if short.len() < name.len() { "…" } else { "" };
    format!("{}{dots}", short.escape_debug())
}

/// For a name that is one.
impl From<&Hostname> for Subject {
    fn from(name: &Hostname) -> Self {
        Self::Name(name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> Subject {
        Subject::Name(format!("n{number}.example"))
    }

    #[test]
    fn denials_of_one_kind_are_told_once_and_then_together() {
        let (events, told) = EventSender::new();
        let (mut denials, why) = (Denials::default(), Ruling::Malformed("odd".to_owned()));
        let deny = |denials: &mut Denials| denials.record(&name(1), &why, &events);
        assert_eq!(deny(&mut denials), Novelty::First);
        assert_eq!(deny(&mut denials), Novelty::Folded);
        assert_eq!(deny(&mut denials), Novelty::Folded);
        denials.tell_folded(FOLD, &events);
        assert!(told.take().is_err());
        denials.tell_folded(Duration::ZERO, &events);
        let (_, event) = told.take().expect("an event");
        assert!(matches!(event, Event::DeniedAgain { count: 2, .. }));
        assert_eq!(deny(&mut denials), Novelty::Again);
        // Nothing was folded since.
        denials.tell_folded(Duration::ZERO, &events);
        assert!(told.take().is_err());
        assert_eq!(denials.by_count()[0].count, 4);
    }

    #[test]
    fn very_many_kinds_are_bounded_and_all_are_counted() {
        let (events, told) = EventSender::new();
        let (mut denials, why) = (Denials::default(), Ruling::Malformed("odd".to_owned()));
        let kinds = 3 * Denials::FOLDED;
        for number in (0..kinds).flat_map(|number| [number, number]) {
            denials.record(&name(number), &why, &events);
        }
        assert!(denials.recent.len() <= Denials::FOLDED);
        assert_eq!(denials.by_count().len(), Denials::REMEMBERED);
        let remembered: u64 = denials.by_count().iter().map(|denial| denial.count).sum();
        assert_eq!(remembered + denials.others(), 2 * kinds as u64);
        denials.tell_folded(Duration::ZERO, &events);
        let mut folded = told.take_lost();
        while let Ok((_, Event::DeniedAgain { count, .. })) = told.take() {
            folded += count;
        }
        assert_eq!(folded, kinds as u64);
    }

    #[test]
    fn what_would_be_dangerous_to_allow_is_named_whatever_else_was_denied() {
        let (events, _told) = EventSender::new();
        let (mut denials, why) = (Denials::default(), Ruling::Malformed("odd".to_owned()));
        for number in (0..2 * Denials::REMEMBERED).flat_map(|number| [number, number]) {
            denials.record(&name(number), &why, &events);
        }
        denials.record(&Subject::HostPort(2375), &Ruling::HostPort(2375), &events);
        let all = denials.by_count();
        assert_eq!(all.len(), Denials::REMEMBERED);
        assert_eq!(all[0].subject, Subject::HostPort(2375));
        let remembered: u64 = all.iter().map(|denial| denial.count).sum();
        assert_eq!(
            remembered + denials.others(),
            4 * Denials::REMEMBERED as u64 + 1
        );
    }

    #[test]
    fn what_drives_the_machine_is_dangerous_and_what_only_serves_it_is_not() {
        for (ports, what) in [
            (&[22][..], "log in"),
            (&[2345, 5005, 5678, 9222, 9229], "debugger"),
            (&[2375, 2376], "Docker"),
            (&[4444, 9515], "WebDriver"),
            (&[5037], "adb"),
            (&[5900, 5901, 5909], "VNC"),
            (&[6000, 6010, 6019], "X11"),
            (&[6443, 10250], "Kubernetes"),
            (&[8888], "Jupyter"),
        ] {
            for port in ports {
                let danger = danger_of_port(*port);
                assert!(danger.is_some_and(|why| why.contains(what)), "{port}");
            }
        }
        for port in [80, 3000, 5173, 5432, 5899, 6064, 6379, 8000, 8080] {
            assert_eq!(danger_of_port(port), None, "{port}");
        }
    }

    /// All of one danger, as many as there are, leave room for others.
    #[test]
    fn one_danger_does_not_bury_another() {
        let (events, _told) = EventSender::new();
        let mut denials = Denials::default();
        let deny = |denials: &mut Denials, subject: Subject, port| {
            for _ in 0..2 {
                denials.record(&subject, &Ruling::HostPort(port), &events);
            }
        };
        for number in 0..2 * Denials::REMEMBERED {
            deny(&mut denials, name(number), 22);
        }
        deny(&mut denials, Subject::HostPort(2375), 2375);
        denials.record(&name(5000), &Ruling::HostPort(9222), &events);
        let all = denials.by_count();
        assert_eq!(all.len(), Denials::REMEMBERED);
        let ports = all.iter().map(|denial| match denial.ruling {
            Ruling::HostPort(port) => port,
            _ => 0,
        });
        let mut first: Vec<_> = ports.take(4).collect();
        assert_eq!(first.pop(), Some(22));
        first.sort_unstable();
        assert_eq!(first, [22, 2375, 9222]);
        let remembered: u64 = all.iter().map(|denial| denial.count).sum();
        assert_eq!(
            remembered + denials.others(),
            4 * Denials::REMEMBERED as u64 + 3
        );
    }
}
