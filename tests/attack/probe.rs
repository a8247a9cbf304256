//! Asking for an answer, on the laptop itself and in the sandbox.
//!
//! Targets are written as rules are: `tcp://10.20.0.5:80`, `udp://[fd00::5]:7`,
//! `icmp://10.20.0.5`. What `probe.py` tells is `answer`, `silence` or the name of an errno.

use std::collections::BTreeMap;
use std::fmt;

use stockade_world::{Capture, Command, Host, Laptop, Output, Packet, Protocol, Running, World};

pub(crate) const PROBE: &str = include_str!("probe.py");

/// Echo servers of the standard world that every sandbox reaches.
pub(crate) const INTERNET: [&str; 3] = [
    "tcp://93.184.216.34:7",
    "udp://93.184.216.34:7",
    "tcp://[2606:2800:220:1::34]:7",
];

/// Where a program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// On the laptop, as any program of the user.
    Outside,
    /// In the sandbox, with these rules.
    Inside(&'a [&'a str]),
    /// In the sandbox, with these rules and without the internet.
    Closed(&'a [&'a str]),
    /// In the sandbox, with these rules for names that may be private.
    Near(&'a [&'a str]),
    /// The same without the internet.
    ClosedNear(&'a [&'a str]),
    /// In the sandbox, where sandboxes work inside.
    Nested,
}

pub(crate) const INSIDE: Place<'static> = Place::Inside(&[]);

impl Place<'_> {
    pub(crate) fn command(self, laptop: &Laptop, program: &str) -> Command {
        let (internet, list, rules) = match self {
            Self::Outside => return laptop.command(program),
            Self::Nested => return laptop.stockade(["run", "--nested", "--", program]),
            Self::Inside(rules) => ("--internet=true", "--allow", rules),
            Self::Closed(rules) => ("--internet=false", "--allow", rules),
            Self::Near(rules) => ("--internet=true", "--near", rules),
            Self::ClosedNear(rules) => ("--internet=false", "--near", rules),
        };
        let rules = rules.iter().flat_map(|rule| [list, rule]);
        laptop
            .stockade(["run", internet])
            .args(rules)
            .args(["--", program])
    }

    /// Isolated and without site packages: nothing but the script and the language.
    pub(crate) fn python(self, laptop: &Laptop, script: &str) -> Command {
        self.command(laptop, "/usr/bin/python3")
            .args(["-IS", "-c", script])
    }

    /// Starts a session that can be asked again and again.
    pub(crate) fn prober(self, laptop: &Laptop) -> Prober {
        Prober::start(self.python(laptop, PROBE))
    }

    pub(crate) fn probe<T: AsRef<str>>(self, laptop: &Laptop, targets: &[T]) -> Answers {
        let mut prober = self.prober(laptop);
        let answers = prober.ask(targets);
        prober.end();
        answers
    }
}

/// A running `probe.py`, or a script that tells its results in the same way.
pub(crate) struct Prober(Running);

impl Prober {
    pub(crate) fn start(command: Command) -> Self {
        Self(command.spawn().expect("start the probe"))
    }

    #[track_caller]
    pub(crate) fn ask<T: AsRef<str>>(&mut self, targets: &[T]) -> Answers {
        let line: Vec<&str> = targets.iter().map(AsRef::as_ref).collect();
        self.0
            .write(line.join(" ") + "\n")
            .expect("write to the probe");
        let answers = self.results();
        assert_eq!(answers.0.len(), targets.len(), "{answers:?}");
        answers
    }

    /// What it tells next.
    #[track_caller]
    pub(crate) fn results(&self) -> Answers {
        let lines = self.0.expect("done\n").expect("results");
        let result = |line: &str| {
            let (name, outcome) = line.split_once('\t')?;
            Some((name.to_owned(), outcome.to_owned()))
        };
        Answers(lines.lines().filter_map(result).collect())
    }

    /// The process that was started: with a sandbox, the warden.
    pub(crate) fn pid(&self) -> i32 {
        self.0.pid().as_raw_nonzero().get()
    }

    #[track_caller]
    pub(crate) fn end(self) {
        self.0.wait().expect("end").expect_success();
    }
}

/// What became of each target.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Answers(BTreeMap<String, String>);

impl Answers {
    /// Each target and its outcome.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(target, outcome)| (&**target, &**outcome))
    }

    #[track_caller]
    pub(crate) fn expect_answers(&self) {
        self.expect("an answer", |outcome| outcome == "answer");
    }

    /// Whatever the error, but no answer.
    #[track_caller]
    pub(crate) fn expect_none(&self) {
        self.expect("no answer", |outcome| outcome != "answer");
    }

    /// Refused at once, in the words for "administratively prohibited".
    #[track_caller]
    pub(crate) fn expect_denials(&self) {
        self.expect("a denial", |outcome| {
            matches!(outcome, "EHOSTUNREACH" | "EACCES")
        });
    }

    #[track_caller]
    pub(crate) fn expect(&self, what: &str, is_right: impl Fn(&str) -> bool) {
        let wrong: Vec<_> = self.0.iter().filter(|(_, o)| !is_right(o)).collect();
        assert!(
            wrong.is_empty(),
            "expected {what}, but for {wrong:?}; all were:\n{self:?}"
        );
    }
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0).finish()
    }
}

/// Asserts that the internet works inside while the `targets` are denied, that none of it
/// arrives at `hosts`, and that all targets answer on the laptop: they are there.
#[track_caller]
pub(crate) fn only_outside<T: AsRef<str>>(
    world: &World,
    hosts: &[&Host],
    place: Place<'_>,
    targets: &[T],
) {
    let laptop = world.laptop();
    let watch = Watch::on(hosts);
    let targets: Vec<&str> = targets.iter().map(AsRef::as_ref).collect();
    let (denied, internet) = place
        .probe(laptop, &[&targets[..], &INTERNET].concat())
        .without(&INTERNET);
    internet.expect_answers();
    denied.expect_denials();
    watch.expect_nothing();
    Place::Outside.probe(laptop, &targets).expect_answers();
    watch.expect_something();
}

impl Answers {
    /// Takes some out.
    pub(crate) fn without(mut self, targets: &[&str]) -> (Self, Self) {
        let taken = targets
            .iter()
            .filter_map(|target| self.0.remove_entry(*target))
            .collect();
        (self, Self(taken))
    }
}

/// What `dig` makes of a name, with these options.
pub(crate) fn dig(world: &World, place: Place<'_>, options: &[&str]) -> Output {
    let patient = ["+short", "+time=6", "+tries=1"];
    let dig = place.command(world.laptop(), "dig").args(patient);
    dig.args(options).run().expect("dig")
}

/// Captures on hosts that nothing should reach.
pub(crate) struct Watch(Vec<(String, Capture)>);

impl Watch {
    pub(crate) fn on(hosts: &[&Host]) -> Self {
        let capture = |host: &&Host| {
            let capture = host.capture().expect("capture");
            (host.name().to_owned(), capture)
        };
        Self(hosts.iter().map(capture).collect())
    }

    #[track_caller]
    pub(crate) fn expect_nothing(&self) {
        for (name, capture) in &self.0 {
            let seen: Vec<_> = capture.packets().into_iter().filter(is_traffic).collect();
            assert!(seen.is_empty(), "{name} saw {seen:?}");
        }
    }

    /// Nothing but DNS, of which there was some, on each host.
    #[track_caller]
    pub(crate) fn expect_questions_alone(&self) {
        let is_dns =
            |packet: &Packet| [packet.source_port, packet.destination_port].contains(&Some(53));
        for (name, capture) in &self.0 {
            let seen: Vec<_> = capture.packets().into_iter().filter(is_traffic).collect();
            assert!(!seen.is_empty(), "nothing reached {name}");
            assert!(seen.iter().all(is_dns), "{name} saw {seen:?}");
        }
    }

    /// On each host.
    #[track_caller]
    pub(crate) fn expect_something(&self) {
        for (name, capture) in &self.0 {
            assert!(capture.count(is_traffic) > 0, "nothing reached {name}");
        }
    }
}

/// Not the talk of neighbours about where they are.
fn is_traffic(packet: &Packet) -> bool {
    const ECHO_REQUEST: [(u8, u8); 2] = [(8, 0), (128, 0)];
    match packet.protocol {
        Protocol::Tcp | Protocol::Udp => true,
        Protocol::Icmp => packet
            .icmp()
            .is_some_and(|message| ECHO_REQUEST.contains(&message)),
        Protocol::Other(_) => false,
    }
}
