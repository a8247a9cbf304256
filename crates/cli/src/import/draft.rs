//! What files of other sandboxes say, in the words of Stockade → settings. Pure, but for the
//! questions whether a path exists, and where it leads.
//!
//! # Theory of operation
//! Each format adds to one [`Draft`] what it allows, denies and cannot say. [`Draft::settle`] then
//! decides, so that the result is never wider than the sources:
//!
//! - Stockade has no deny rules. What a source allows, and denies a part of, is left out.
//! - Of contradictions, the narrower side wins. Lists of several files add up.
//! - Where Stockade itself gives more than a source (it cannot make the workspace read-only), there
//!   is a note that this is wider. Such a result is never written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stockade_config::{Diagnostics, Mode, Place, shown, shown_path};
use stockade_policy::{Hostname, Rule};

use super::domains::{Denied, allowed, is_special};
use super::paths::{Surroundings, absolute, literal};
use super::tree::Node;

/// Something that a source says.
#[derive(Debug)]
pub(super) enum Said {
    Mode(Mode),
    Internet(bool),
    LogDenials(bool),
    NoForge,
    Allow(Rule),
    Deny(String, Denied),
    /// A rule about a tool that fetches pages: whether it allows, and the host. It is about the
    /// network if that is closed.
    Fetch(bool, String),
    /// Addresses that allowed names must not lead to.
    NotResolved(String),
    Path(Access, PathBuf),
    Pass(String),
    /// The hosts of which the program of this name itself needs one, and when.
    Needs(&'static str, &'static [(&'static str, &'static str)]),
    /// Only this file allows hosts.
    OnlyHere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    DenyRead,
    DenyWrite,
}

struct Entry {
    said: Said,
    place: Place,
    /// What else to say about it.
    why: &'static str,
}

pub(super) struct Draft<'a> {
    pub(super) around: &'a Surroundings<'a>,
    /// Where relative paths of this file start.
    pub(super) base: Option<PathBuf>,
    entries: Vec<Entry>,
    notes: Vec<Note>,
}

/// What did not become a setting. Its texts are fit for a terminal and for a comment.
pub(super) struct Note {
    pub(super) place: Place,
    pub(super) what: String,
    pub(super) why: String,
    /// The command gets more than from the source. Otherwise it gets less, or the same.
    pub(super) wider: bool,
}

pub(super) struct Setting {
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    pub(super) is_list: bool,
    pub(super) value: Value,
    pub(super) place: Place,
    pub(super) why: &'static str,
}

/// Settings in the order of sections and keys.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) settings: Vec<Setting>,
    pub(super) notes: Vec<Note>,
    /// Why an agent cannot work with these settings, fit for a terminal and for a comment.
    pub(super) warnings: Vec<String>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(around: &'a Surroundings<'a>) -> Self {
        let (base, entries, notes) = (None, Vec::new(), Vec::new());
        Self {
            around,
            base,
            entries,
            notes,
        }
    }

    pub(super) fn say(&mut self, said: Said, place: &Place) {
        self.say_why(said, place, "");
    }

    pub(super) fn say_why(&mut self, said: Said, place: &Place, why: &'static str) {
        let place = place.clone();
        self.entries.push(Entry { said, place, why });
    }

    /// A host that is allowed, with `protocol` before it or all protocols.
    pub(super) fn allow(&mut self, protocol: &str, host: &str, place: &Place) {
        match allowed(protocol, host) {
            Ok(rule) => self.say(Said::Allow(rule), place),
            Err(why) => self.left_out(place, host, &why),
        }
    }

    pub(super) fn deny(&mut self, host: &str, place: &Place) {
        self.say(Said::Deny(host.to_owned(), Denied::parse(host)), place);
    }

    /// A path or pattern of one.
    pub(super) fn path(&mut self, access: Access, pattern: &str, place: &Place) {
        let denies = matches!(access, Access::DenyRead | Access::DenyWrite);
        let Some(path) = literal(pattern, denies) else {
            return match denies {
                true => self.wider(place, pattern, "Stockade denies single paths, not patterns"),
                false => self.left_out(place, pattern, "Stockade gives single paths, not patterns"),
            };
        };
        match absolute(path, self.around.home, self.base.as_deref()) {
            Some(path) => self.say(Said::Path(access, path), place),
            None => self.notes.push(note(
                place,
                pattern,
                "it is not clear where this is",
                denies,
            )),
        }
    }

    pub(super) fn paths(&mut self, access: Access, list: &Node) -> Result<(), Diagnostics> {
        for (path, place) in list.texts()? {
            self.path(access, path, place);
        }
        Ok(())
    }

    pub(super) fn left_out(&mut self, place: &Place, what: &str, why: &str) {
        self.notes.push(note(place, what, why, false));
    }

    pub(super) fn wider(&mut self, place: &Place, what: &str, why: &str) {
        self.notes.push(note(place, what, why, true));
    }

    /// A key among the sandbox's settings that may deny anything.
    pub(super) fn unknown(&mut self, place: &Place, key: &str) {
        self.wider(
            place,
            key,
            "Stockade does not know this setting, which may restrict the sandbox",
        );
    }

    /// Settings of a program that are none of its sandbox, by name. The first one has the place.
    pub(super) fn not_about_sandbox(&mut self, names: &[(&str, &Place)], why: &str) {
        const MOST: usize = 12;
        let more = if names.len() > MOST { ", …" } else { "" };
        let text = names
            .iter()
            .take(MOST)
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ");
        if let Some((_, place)) = names.first() {
            self.left_out(place, &(text + more), why);
        }
    }

    fn is_closed(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| matches!(entry.said, Said::Internet(false)))
    }

    pub(super) fn settle(mut self) -> Settled {
        let is_closed = self.is_closed();
        let (fetch, entries) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| matches!(entry.said, Said::Fetch(..)));
        self.entries = entries;
        for Entry { said, place, .. } in fetch {
            match said {
                Said::Fetch(true, host) if is_closed => self.allow("tcp://", &host, &place),
                Said::Fetch(false, host) if is_closed => self.deny(&host, &place),
                Said::Fetch(_, host) => {
                    let why = "it is about one tool of Claude Code, which applies it inside, too";
                    self.left_out(&place, &host, why);
                }
                _ => {}
            }
        }
        let notes = std::mem::take(&mut self.notes);
        let mut settled = Settled {
            notes,
            ..Settled::default()
        };
        self.settle_network(&mut settled);
        self.settle_files(&mut settled);
        for entry in &self.entries {
            if let Said::Pass(name) = &entry.said {
                settled.add("env", "pass", true, json!(name), entry);
            }
        }
        if let Some(entry) = self
            .entries
            .iter()
            .find(|it| matches!(it.said, Said::NoForge))
        {
            settled.add("forge", "github", false, json!(false), entry);
            settled.add("forge", "gitlab", false, json!(false), entry);
        }
        settled
    }

    fn settle_network(&self, settled: &mut Settled) {
        let is_closed = self.is_closed();
        let mode = |entry: &Entry| match entry.said {
            Said::Mode(mode) => Some(mode),
            _ => None,
        };
        let modes = self.entries.iter().filter(|it| mode(it).is_some());
        let narrowest = modes.min_by_key(|it| mode(it));
        match narrowest.map(|entry| (mode(entry), entry)) {
            Some((Some(Mode::Host), entry)) if is_closed => {
                settled.note(
                    &entry.place,
                    "mode = \"host\"",
                    "another line closes the network",
                    false,
                );
            }
            Some((Some(mode), entry)) => {
                settled.add("network", "mode", false, json!(mode.to_string()), entry);
            }
            _ => {}
        }
        let has_network = narrowest.is_none_or(|entry| mode(entry) != Some(Mode::None));
        // Of contradictions the narrower side; of equals the first.
        for value in [false, true] {
            let is_it = |it: &&Entry| matches!(it.said, Said::Internet(said) if said == value);
            if let Some(entry) = self.entries.iter().find(is_it)
                && (!value || !is_closed)
            {
                settled.add("network", "internet", false, json!(value), entry);
            }
        }
        let rules = self.settle_rules(is_closed, settled);
        for value in [true, false] {
            let is_it = |it: &&Entry| matches!(it.said, Said::LogDenials(said) if said == value);
            let is_said = settled.settings.iter().any(|it| it.key == "log_denials");
            if let (Some(entry), false) = (self.entries.iter().find(is_it), is_said) {
                settled.add("network", "log_denials", false, json!(value), entry);
            }
        }
        let has_names = rules.iter().any(|rule| rule.name().is_some());
        for Entry { said, place, .. } in &self.entries {
            match said {
                Said::Deny(text, _) if has_network && !is_closed => {
                    let why = "the internet is open, and Stockade has no deny rules";
                    settled.note(place, text, why, true);
                }
                Said::Deny(text, denied) if has_names && denied.is_reached_by_names() => {
                    let why = "an allowed name that leads to this address would reach it";
                    settled.note(place, text, why, true);
                }
                Said::NotResolved(range) if has_names && !is_special(range) => {
                    let why = "an allowed name that leads to such an address would reach it";
                    settled.note(place, range, why, true);
                }
                Said::Needs(program, hosts) if is_closed => {
                    let warning = warning(program, hosts);
                    let is_reached = |(host, _): &(&str, _)| is_allowed(host, &rules);
                    // Several files of a program say it once.
                    if !hosts.iter().any(is_reached) && !settled.warnings.contains(&warning) {
                        settled.warnings.push(warning);
                    }
                }
                _ => {}
            }
        }
    }

    /// Allows what nothing else limits, and returns it.
    fn settle_rules(&self, is_closed: bool, settled: &mut Settled) -> Vec<&Rule> {
        let mut rules = Vec::new();
        let only = self
            .entries
            .iter()
            .find(|it| matches!(it.said, Said::OnlyHere));
        for entry in &self.entries {
            let Said::Allow(rule) = &entry.said else {
                continue;
            };
            let limit = self.entries.iter().find_map(|it| match &it.said {
                Said::Deny(text, denied) if denied.limits(rule) => Some((text, &it.place)),
                _ => None,
            });
            let elsewhere = |it: &&Entry| it.place.source().name() != entry.place.source().name();
            let why = if let Some((text, place)) = limit {
                format!(
                    "{place} denies `{}`, and Stockade has no deny rules",
                    shown(text)
                )
            } else if rule.name().is_some() && !is_closed {
                "the internet is open, so rules for names have no effect".to_owned()
            } else if let Some(only) = only.filter(elsewhere) {
                format!("{} lets only that file allow hosts", only.place)
            } else {
                rules.push(rule);
                settled.add("network", "allow", true, json!(rule.to_string()), entry);
                continue;
            };
            settled.note(&entry.place, &rule.to_string(), &why, false);
        }
        rules
    }

    /// Whether the command has another /tmp there than this machine.
    fn is_in_own_tmp(&self, path: &Path) -> bool {
        let Surroundings {
            workspace,
            home,
            real,
            ..
        } = *self.around;
        // By a link, it may be in the workspace.
        let path = real(path);
        let mut shown = [workspace, home].into_iter().map(real);
        path.ancestors().any(is_tmp) && !shown.any(|shown| path.starts_with(shown))
    }

    fn settle_files(&self, settled: &mut Settled) {
        let Surroundings {
            workspace,
            home,
            exists,
            real,
            ..
        } = *self.around;
        let of = |wanted: Access| {
            self.entries.iter().filter_map(move |it| match &it.said {
                Said::Path(access, path) if *access == wanted => Some((path, it)),
                _ => None,
            })
        };
        let is_hidden =
            |path: &Path| of(Access::DenyRead).any(|(hidden, _)| path.starts_with(hidden));
        let (mut read, mut write, mut hide) = (Vec::new(), Vec::new(), Vec::new());
        for (access, list) in [(Access::Write, &mut write), (Access::Read, &mut read)] {
            // All of the workspace is there already.
            for (path, entry) in of(access).filter(|(path, _)| !path.starts_with(workspace)) {
                let meets = |own: &PathBuf| own.starts_with(path) || path.starts_with(own);
                let why = if is_hidden(path) {
                    "another line denies reading it"
                } else if is_tmp(path) || (self.is_in_own_tmp(path) && !exists(path)) {
                    OWN_TMP
                } else if workspace.starts_with(path) || home.starts_with(path) {
                    "it holds the workspace or your home directory"
                } else if self.around.own.iter().any(meets) {
                    "Stockade's own files are there"
                } else if !exists(path) {
                    "it does not exist here"
                } else {
                    list.push((path.clone(), entry));
                    continue;
                };
                settled.note(&entry.place, &shown_path(path), why, false);
            }
        }
        for (path, entry) in of(Access::DenyRead) {
            let is_secret = self
                .around
                .secret
                .iter()
                .any(|secret| path.starts_with(secret));
            let (why, wider) = if workspace.starts_with(path) || Path::new("/usr").starts_with(path)
            {
                (
                    "Stockade shows the workspace, the system and parts of your home",
                    true,
                )
            } else if exists(path) {
                hide.push((path.clone(), entry));
                continue;
            } else if self.is_in_own_tmp(path)
                && !read
                    .iter()
                    .chain(&write)
                    .any(|(given, _)| real(path).starts_with(real(given)))
            {
                (OWN_TMP, false)
            } else if is_secret {
                ("it does not exist, and Stockade shows nothing there", false)
            } else {
                (
                    "it does not exist, and Stockade hides only what exists: create the file \
                     first, or remove the line",
                    true,
                )
            };
            settled.note(&entry.place, &shown_path(path), why, wider);
        }
        let given: Vec<PathBuf> = write.iter().map(|(path, _)| real(path)).collect();
        for (named, entry) in of(Access::DenyWrite).filter(|(path, _)| !is_hidden(path)) {
            // By a link, what can be written has other names.
            let path = real(named);
            let state: Vec<PathBuf> = self.around.state.iter().map(|place| real(place)).collect();
            let is_state = state.iter().any(|state| path.starts_with(state));
            let own: Vec<PathBuf> = self.around.own.iter().map(|own| real(own)).collect();
            let is_own = own.iter().any(|own| path.starts_with(own));
            let why = if workspace.starts_with(&path) {
                "Stockade lets the command write the workspace"
            } else if given.iter().any(|given| given.starts_with(&path)) {
                "another line lets the command write there"
            } else if !is_state && state.iter().any(|state| state.starts_with(&path)) {
                // To give all of it would show what is beside them.
                "an agent's own settings are there, which it can write"
            } else if is_own {
                // It is hidden or read-only anyway.
                continue;
            } else if own.iter().any(|own| own.starts_with(&path)) {
                "Stockade's own files are there"
            } else if !path.starts_with(workspace)
                && !is_state
                && !given.iter().any(|given| path.starts_with(given))
            {
                // Nothing there can be written.
                continue;
            } else if exists(&path) {
                read.push((path, entry));
                continue;
            } else {
                "it does not exist, and Stockade protects only what exists: create the file first, \
                 or remove the line"
            };
            settled.note(&entry.place, &shown_path(named), why, true);
        }
        for (key, list) in [("read", read), ("write", write), ("hide", hide)] {
            for (path, entry) in list {
                settled.add("files", key, true, json!(path.to_string_lossy()), entry);
            }
        }
    }
}

impl Settled {
    fn add(
        &mut self,
        section: &'static str,
        key: &'static str,
        is_list: bool,
        value: Value,
        from: &Entry,
    ) {
        let is_same = |it: &Setting| (it.section, it.key) == (section, key) && it.value == value;
        if self.settings.iter().any(is_same) {
            return;
        }
        let why = match from.said {
            Said::Path(Access::DenyWrite, _) => READ_ONLY,
            _ => from.why,
        };
        let place = from.place.clone();
        self.settings.push(Setting {
            section,
            key,
            is_list,
            value,
            place,
            why,
        });
    }

    fn note(&mut self, place: &Place, what: &str, why: &str, wider: bool) {
        self.notes.push(note(place, what, why, wider));
    }
}

const OWN_TMP: &str = "the command has its own /tmp and /var/tmp";

fn is_tmp(path: &Path) -> bool {
    [Path::new("/tmp"), Path::new("/var/tmp")].contains(&path)
}

fn is_allowed(host: &str, rules: &[&Rule]) -> bool {
    let Ok(name) = host.parse::<Hostname>() else {
        return false;
    };
    let mut patterns = rules.iter().filter_map(|rule| rule.name());
    patterns.any(|pattern| pattern.covers(&name))
}

/// An agent runs outside of its own sandbox, and inside of Stockade.
fn warning(program: &str, hosts: &[(&str, &str)]) -> String {
    let or = |text: fn(&(&str, &str)) -> String| -> String {
        hosts.iter().map(text).collect::<Vec<_>>().join(" or ")
    };
    let names = or(|(host, when)| format!("{host}{when}"));
    let rules = or(|(host, _)| format!("\"tcp://{host}:443\""));
    format!(
        "{program} will not work with this configuration yet: it needs {names}, which its own \
         sandbox does not restrict. To allow it, add {rules} to `allow`. Its commands can then \
         reach that host, too."
    )
}

/// Why a path that must not be written is given to read.
pub(super) const READ_ONLY: &str = "makes it read-only";

fn note(place: &Place, what: &str, why: &str, wider: bool) -> Note {
    let (place, what, why) = (place.clone(), shown(what), shown(why));
    Note {
        place,
        what,
        why,
        wider,
    }
}
