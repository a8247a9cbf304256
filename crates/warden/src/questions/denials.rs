//! What was denied in this session, for programs inside that ask.
//!
//! The log's thread fills it. It holds so many kinds of denials; a new kind takes the place of the
//! one that was seen longest ago, which is only counted from then on.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use stockade_gate::{Ruling, Subject};
use stockade_policy::{Disclosed, Policy, disclose, disclose_name};

/// Kinds of denials that are remembered.
const REMEMBERED: usize = 256;
/// Characters of what was denied. A program inside makes names up.
const LONGEST: usize = 300;

/// The denials of a session, for the thread that fills it and the one that answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedDenials(Arc<Mutex<RecentDenials>>);

/// Something that was denied, as programs inside hear of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialInside {
    /// `flow`, `name`, `claim` or `packet`, as in the log.
    pub kind: String,
    pub what: String,
    pub count: u64,
    /// When it was denied last: RFC 3339, UTC.
    pub last: String,
    pub reason: String,
    /// The reason, as a sentence.
    pub text: String,
    /// The narrowest rule that would allow it, if there is one that somebody should add.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Whether that rule is one for private addresses of a name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub near: bool,
}

/// The denials of a session, the latest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialsInside {
    pub denials: Vec<DenialInside>,
    /// Denied attempts that are not listed.
    pub others: u64,
    /// Whether denials are noted at all: without a log they are not.
    pub noted: bool,
}

#[derive(Debug, Default)]
struct RecentDenials {
    /// The latest last.
    known: Vec<(Subject, DenialInside)>,
    others: u64,
    is_noted: bool,
}

impl SharedDenials {
    /// From now on, denials are noted here.
    pub(crate) fn begin(&self) {
        self.with(|denials| denials.is_noted = true);
    }

    /// Notes that something was denied so often. What the host alone knows is left out, as the host's
    /// own listeners are.
    pub(crate) fn note(
        &self,
        (subject, ruling): (&Subject, &Ruling),
        policy: &Policy,
        count: u64,
        last: SystemTime,
    ) {
        let Some(kind) = kind(subject) else {
            return;
        };
        self.with(|denials| {
            let at = denials.known.iter().position(|(known, _)| known == subject);
            let before = at.map(|at| denials.known.remove(at).1.count);
            if before.is_none() && denials.known.len() == REMEMBERED {
                let (_, oldest) = denials.known.remove(0);
                denials.others += oldest.count;
            }
            let Disclosed {
                reason,
                text,
                fix,
                near,
                ..
            } = told(ruling, policy);
            let denial = DenialInside {
                kind: kind.to_owned(),
                what: cut(&subject.to_string()),
                count: before.unwrap_or(0) + count,
                last: crate::journal::time(last),
                reason,
                text: cut(&text),
                fix,
                near,
            };
            denials.known.push((subject.clone(), denial));
        });
    }

    /// At most so many, the latest first.
    pub(super) fn latest(&self, most: usize) -> DenialsInside {
        self.with(|denials| {
            let all = denials.known.iter().rev().map(|(_, denial)| denial);
            let rest: u64 = all.clone().skip(most).map(|denial| denial.count).sum();
            DenialsInside {
                denials: all.take(most).cloned().collect(),
                others: denials.others + rest,
                noted: denials.is_noted,
            }
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut RecentDenials) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// None for what a program inside cannot know: that a port that is free inside is in use outside.
fn kind(subject: &Subject) -> Option<&'static str> {
    match subject {
        Subject::Flow(_) => Some("flow"),
        Subject::Name(_) => Some("name"),
        Subject::Claim(..) => Some("claim"),
        Subject::Packet(_) => Some("packet"),
        // They are about hosts that the program did not ask, or about the host.
        Subject::Answer(_) | Subject::HostPort(_) => None,
    }
}

fn told(ruling: &Ruling, policy: &Policy) -> Disclosed {
    match ruling {
        Ruling::Flow(verdict) => disclose(policy, verdict),
        Ruling::Name(verdict) => disclose_name(verdict),
        // What helps is the user's proxy, and no rule.
        Ruling::ProxyVariable(_, ruling) => Disclosed {
            fix: None,
            ..told(ruling, policy)
        },
        Ruling::Proxy(_) => denied("proxy", "the user's proxy made no connection".to_owned()),
        Ruling::HostPort(_) | Ruling::Malformed(_) => denied("malformed", ruling.to_string()),
    }
}

/// No rule would help.
fn denied(reason: &str, text: String) -> Disclosed {
    Disclosed {
        allowed: false,
        reason: reason.to_owned(),
        text,
        rule: None,
        fix: None,
        near: false,
    }
}

/// No more than fits, and nothing that a terminal would act on.
fn cut(text: &str) -> String {
    stockade_config::shown(text).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use stockade_policy::{Evidence, Flow, Route, decide};

    use super::*;

    fn policy() -> Policy {
        Policy {
            internet: true,
            rules: ["10.0.0.0/8".parse().expect("a rule")]
                .into_iter()
                .collect(),
            ..Policy::default()
        }
    }

    fn denied(to: &str, route: Route, own: bool) -> (Subject, Ruling) {
        let flow = Flow::tcp(to.parse().expect("an address")).expect("a flow");
        let names = &[];
        let verdict = decide(&policy(), &flow, &Evidence { route, own, names });
        assert!(!verdict.is_allowed());
        (Subject::Flow(flow), Ruling::Flow(Box::new(verdict)))
    }

    fn note(denials: &SharedDenials, (subject, ruling): &(Subject, Ruling), count: u64) {
        let now = SystemTime::UNIX_EPOCH;
        denials.note((subject, ruling), &policy(), count, now);
    }

    #[test]
    fn kinds_are_bounded_and_nothing_is_lost_from_the_count() {
        let denials = SharedDenials::default();
        assert!(!denials.latest(9).noted);
        denials.begin();
        for number in 0..REMEMBERED + 44 {
            let to = format!("192.168.{}.{}:80", number / 250, number % 250 + 1);
            note(&denials, &denied(&to, Route::Default, false), 3);
        }
        let all = denials.latest(usize::MAX);
        assert!(all.noted);
        assert_eq!((all.denials.len(), all.others), (REMEMBERED, 3 * 44));
        let some = denials.latest(4);
        assert_eq!(some.denials, all.denials[..4]);
        let rest = 3 * (REMEMBERED as u64 - 4);
        assert_eq!(some.others, all.others + rest);
        // One that comes again is the latest, with all of its attempts.
        note(
            &denials,
            &denied("192.168.1.9:80", Route::Default, false),
            2,
        );
        let again = denials.latest(1);
        assert_eq!(again.denials[0].what, "tcp://192.168.1.9:80");
        assert_eq!(again.denials[0].count, 5);
        let fix = again.denials[0].fix.as_deref();
        assert_eq!(fix, Some("tcp://192.168.1.9:80"));
    }

    #[test]
    fn what_only_the_host_knows_is_not_noted() {
        let denials = SharedDenials::default();
        let port = Subject::HostPort(5432);
        note(&denials, &(port, Ruling::HostPort(5432)), 1);
        assert_eq!(denials.latest(9).denials, []);
        // The host's own address, a broadcast address and a device are one thing from inside.
        let device = Route::Specific("192.168.1.0/24".parse().expect("a network"));
        let kinds = [
            (Route::Local, true),
            (Route::Broadcast, false),
            (device, false),
        ];
        let told = kinds.map(|(route, own)| {
            let denials = SharedDenials::default();
            note(&denials, &denied("192.168.1.7:80", route, own), 1);
            denials.latest(1).denials
        });
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0], told[2]);
        // Credentials are not proposed.
        let metadata = denied("169.254.169.254:80", Route::Default, false);
        note(&denials, &metadata, 1);
        let metadata = &denials.latest(1).denials[0];
        assert_eq!(
            (metadata.reason.as_str(), &metadata.fix),
            ("metadata-service", &None)
        );
    }
}
