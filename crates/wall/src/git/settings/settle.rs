//! Restores a settings file that a session changed, and keeps the harmless changes.
//!
//! The result is made from the bytes before the session, so that every setting that decides
//! something stays as it was, in its order. Only settings that the session changed and may change
//! are cut out; their new values are appended. The result is read again. If it does not say
//! exactly that, the file from before the session is used.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Context, GitProgram, Setting, Verdict,
    address::is_by_global_name,
    allowed::UNASKED,
    compose::{write_quoted, write_section},
    entries, read,
};

/// What came of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// What the session set, changed or took out and may not, with what it does.
    pub(crate) undone: Vec<(Change, &'static str)>,
    /// What stays, and should be known.
    pub(crate) told: Vec<(Setting, &'static str)>,
    /// What the file has to be, if not what it is. Empty: it need not be there.
    pub(crate) contents: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Set(Setting),
    Removed(Setting),
    Reordered,
    /// git does not read the file.
    Malformed,
}

/// All values of each key, in their order.
type Values = BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>;

/// Judges what a file has become. `own` are settings of the user's own, for all repositories.
pub(crate) fn settle(
    git: &GitProgram,
    before: Option<&[u8]>,
    after: &[u8],
    own: &[Setting],
    context: Context<'_>,
) -> Settled {
    let old = before.unwrap_or_default();
    if old == after {
        return Settled::default();
    }
    // One that was malformed already says nothing about what may be in it.
    let said = read(git, old).unwrap_or_default();
    let Ok(says) = read(git, after) else {
        return Settled {
            undone: vec![(Change::Malformed, "git does not read it as it is")],
            contents: Some(old.to_vec()),
            ..Settled::default()
        };
    };
    let comparison = Comparison::new(&said, &says, own, context);
    let (was, is) = (&comparison.was, &comparison.is);

    let mut passed = BTreeSet::new();
    let mut undone = Vec::new();
    let mut seen = BTreeSet::new();
    for setting in says.iter().chain(&said) {
        if was.get(&setting.key) == is.get(&setting.key) || !seen.insert(&setting.key) {
            continue;
        }
        match comparison.judge(setting) {
            None => {
                passed.insert(setting.key.clone());
            }
            Some(why) => undone.extend(comparison.changes(setting, why)),
        }
    }
    // A remote without its address, or a branch without its remote, is of no use to anybody.
    for setting in &says {
        let is_new = !was.contains_key(&setting.key);
        if is_new && comparison.is_rest(setting, &passed) && passed.remove(&setting.key) {
            undone.extend(comparison.changes(setting, "belongs to what was put back"));
        }
    }
    let promises = |setting: &&Setting| {
        let is_promise = setting.section() == b"remote" && setting.name() == b"promisor";
        is_promise && passed.contains(&setting.key)
    };
    let told = says.iter().filter(promises);
    let told = told.map(|setting| (setting.clone(), UNASKED)).collect();
    if undone.is_empty() {
        if decisive(&said, &passed).eq(decisive(&says, &passed)) {
            return Settled {
                told,
                ..Settled::default()
            };
        }
        undone.push((Change::Reordered, "the last one of several counts"));
    }
    let wanted = says.iter().filter(|setting| passed.contains(&setting.key));
    let wanted: Vec<&Setting> = wanted.collect();
    let contents = merged(old, &passed, &wanted).filter(|merged| {
        let Ok(reads) = read(git, merged) else {
            return false;
        };
        let rest = |setting: &&Setting| !passed.contains(&setting.key);
        let passes = |setting: &&Setting| passed.contains(&setting.key);
        reads.iter().filter(rest).eq(said.iter().filter(rest))
            && reads.iter().filter(passes).eq(wanted.iter().copied())
    });
    Settled {
        undone,
        told,
        contents: Some(contents.unwrap_or_else(|| old.to_vec())),
    }
}

/// What a file said and says, and what the verdict on that depends on.
struct Comparison<'a> {
    was: Values,
    is: Values,
    own: &'a [Setting],
    context: Context<'a>,
}

impl<'a> Comparison<'a> {
    fn new(said: &[Setting], says: &[Setting], own: &'a [Setting], context: Context<'a>) -> Self {
        let mut this = Self {
            was: values(said),
            is: values(says),
            own,
            context,
        };
        this.context.known = this.known();
        // The remotes that have an address when all is settled.
        let addresses = says.iter().filter(|setting| setting.is_address());
        let stays = |it: &&Setting| this.was.contains_key(&it.key) || this.judge(it).is_none();
        let names = addresses.filter(stays).filter_map(Setting::subsection);
        this.context.remotes = names.map(<[u8]>::to_vec).collect();
        if this.context.is_new {
            let promises = |name: &&Vec<u8>| addresses_of(&this.is, name).iter().all(is_global);
            let promisors = this.context.remotes.iter().filter(promises);
            this.context.promisors = promisors.cloned().collect();
        }
        this
    }

    /// The remotes whose addresses were there before, under whatever name.
    fn known(&self) -> BTreeSet<Vec<u8>> {
        let all = |values: &Values| -> Vec<Vec<u8>> {
            let keys = values.keys().map(|key| setting(key, None));
            let addresses = keys.filter(Setting::is_address);
            let names = addresses.filter_map(|setting| setting.subsection().map(<[u8]>::to_vec));
            names.collect()
        };
        let old = all(&self.was);
        let renamed = all(&self.is).into_iter().filter(|name| {
            let now = addresses_of(&self.is, name);
            old.iter().any(|old| addresses_of(&self.was, old) == now)
        });
        renamed.chain(old.iter().cloned()).collect()
    }

    /// Why a change of this key is undone, if it is.
    fn judge(&self, changed: &Setting) -> Option<&'static str> {
        let Some(now) = self.is.get(&changed.key) else {
            // Git asks before it fetches from a remote that promises no more.
            let is_promise = match changed.section() {
                b"remote" => matches!(changed.name(), b"promisor" | b"partialclonefilter"),
                b"extensions" => changed.name() == b"partialclone",
                _ => false,
            };
            if is_promise {
                return None;
            }
            // Taken out. What described does not any more; but a remote without an address is a path.
            let Verdict::Drives(why) = changed.verdict(&self.context) else {
                return (changed.is_address() && self.is_still_named(changed))
                    .then_some("makes git take the name of a remote for a path");
            };
            return Some(why);
        };
        let is_moved = changed.is_address() && self.had_address(changed);
        let is_moved = is_moved || self.is_new_default(changed);
        for value in now {
            let setting = setting(&changed.key, value.clone());
            let is_moved = is_moved || self.moves_a_branch(&setting);
            match setting.verdict(&self.context) {
                Verdict::Describes(_) if !is_moved => {}
                _ if self.own.contains(&setting) => {}
                Verdict::Describes(_) => return Some("makes git talk to another repository"),
                Verdict::Drives(why) => return Some(why),
            }
        }
        None
    }

    /// Whether a setting has what was there before pushed to, or fetched from, another remote than
    /// before. One that was there may be a remote of an earlier session. Where its own branches go is
    /// the session's affair.
    fn moves_a_branch(&self, setting: &Setting) -> bool {
        let context = &self.context;
        let key = |parts: [&[u8]; 3]| parts.concat();
        let push_default = b"remote.pushdefault".to_vec();
        // What said so before: the first that is there counts.
        let said = match (setting.section(), setting.subsection(), setting.name()) {
            (b"branch", Some(name), what @ (b"remote" | b"pushremote")) => {
                let stem = key([b"branch.", name, b"."]);
                let is_known = |branches: &BTreeSet<Vec<u8>>| branches.contains(name);
                let is_there = self.was.keys().any(|key| key.starts_with(&stem))
                    || context.branches.is_none_or(is_known);
                if !is_there {
                    return false;
                }
                let own = key([b"branch.", name, b".remote"]);
                match what {
                    b"remote" => vec![own],
                    _ => vec![setting.key.clone(), push_default, own],
                }
            }
            (b"remote", None, b"pushdefault") => vec![push_default],
            _ => return false,
        };
        let value = setting.bytes();
        if context.is_new || value == b"." {
            return false;
        }
        let mut said = said.iter().filter_map(|key| self.was.get(key)?.last());
        // Without any, git takes this one.
        let origin = Some(b"origin".as_slice());
        let origin = origin.filter(|name| !addresses_of(&self.was, name).is_empty());
        let before = said.next().and_then(Option::as_deref).or(origin);
        match before {
            Some(before) => {
                let addresses = addresses_of(&self.was, before);
                let is_renamed =
                    !addresses.is_empty() && addresses == addresses_of(&self.is, value);
                before != value && !is_renamed
            }
            None => !context.known.contains(value),
        }
    }

    /// Whether it is the address of the remote that git takes by itself, where there were others.
    fn is_new_default(&self, changed: &Setting) -> bool {
        let mut keys = self.was.keys();
        changed.is_address()
            && changed.subsection() == Some(b"origin")
            && !self.context.is_new
            && !self.context.known.contains(b"origin".as_slice())
            && (keys.any(|key| setting(key, None).is_address())
                || !self.context.elsewhere.is_empty())
    }

    /// Whether the remote had an address, in this file or in another.
    fn had_address(&self, address: &Setting) -> bool {
        let name = address.subsection().unwrap_or_default();
        self.was.contains_key(&address.key) || self.context.elsewhere.contains(name)
    }

    /// Whether anything else still speaks of the remote of this address.
    fn is_still_named(&self, address: &Setting) -> bool {
        let Some(name) = address.subsection() else {
            return false;
        };
        self.is.iter().any(|(key, values)| {
            let setting = setting(key, None);
            let is_of_it = setting.section() == b"remote" && setting.subsection() == Some(name);
            let names_it = values.iter().any(|value| value.as_deref() == Some(name));
            is_of_it || (names_it && matches!(setting.section(), b"branch" | b"remote"))
        })
    }

    /// Whether a setting belongs to a new remote or branch whose address or remote does not pass.
    fn is_rest(&self, setting: &Setting, passed: &BTreeSet<Vec<u8>>) -> bool {
        let head: &[u8] = match setting.section() {
            b"remote" => b"url",
            b"branch" => b"remote",
            _ => return false,
        };
        let Some(name) = setting.subsection() else {
            return false;
        };
        let head = [setting.section(), b".", name, b".", head].concat();
        let is_new = !self.was.contains_key(&head) && self.is.contains_key(&head);
        is_new && !passed.contains(&head) && head != setting.key
    }

    /// What happened to a key, and why it is undone.
    fn changes(&self, changed: &Setting, why: &'static str) -> Vec<(Change, &'static str)> {
        let of = |values: &Values| values.get(&changed.key).cloned().unwrap_or_default();
        let (was, is) = (of(&self.was), of(&self.is));
        let only_in = |one: &Vec<Option<Vec<u8>>>,
                       other: &Vec<Option<Vec<u8>>>,
                       change: fn(Setting) -> Change| {
            let values = one.iter().filter(|value| !other.contains(value));
            let settings = values.map(|value| setting(&changed.key, value.clone()));
            settings.map(|it| (change(it), why)).collect::<Vec<_>>()
        };
        let mut changes = only_in(&is, &was, Change::Set);
        if changes.is_empty() {
            changes = only_in(&was, &is, Change::Removed);
        }
        if changes.is_empty() {
            changes.push((Change::Reordered, why));
        }
        changes
    }
}

fn values(settings: &[Setting]) -> Values {
    let mut values = Values::new();
    for Setting { key, value } in settings {
        values.entry(key.clone()).or_default().push(value.clone());
    }
    values
}

fn setting(key: &[u8], value: Option<Vec<u8>>) -> Setting {
    let key = key.to_vec();
    Setting { key, value }
}

/// The addresses of a remote.
fn addresses_of<'a>(values: &'a Values, remote: &[u8]) -> &'a [Option<Vec<u8>>] {
    let key = [b"remote.", remote, b".url"].concat();
    values.get(&key).map_or(&[], Vec::as_slice)
}

fn is_global(address: &Option<Vec<u8>>) -> bool {
    let text = address.as_deref().map(std::str::from_utf8);
    text.is_some_and(|text| text.is_ok_and(is_by_global_name))
}

/// What decides something, in its order.
fn decisive<'a>(
    settings: &'a [Setting],
    passed: &'a BTreeSet<Vec<u8>>,
) -> impl Iterator<Item = &'a Setting> {
    settings
        .iter()
        .filter(|setting| !setting.may_describe() && !passed.contains(&setting.key))
}

/// The file of before, with other values of the keys that passed.
fn merged(old: &[u8], passed: &BTreeSet<Vec<u8>>, wanted: &[&Setting]) -> Option<Vec<u8>> {
    let mut merged = Vec::new();
    let mut from = 0;
    for entry in entries(old).ok()? {
        if passed.contains(&entry.setting.key) {
            merged.extend(old.get(from..entry.span.start)?);
            // With what indents it.
            let kept = merged.trim_ascii_end().len();
            if merged.get(kept..)?.contains(&b'\n') {
                let line = merged.iter().rposition(|byte| *byte == b'\n')?;
                merged.truncate(line + 1);
            }
            from = entry.span.end;
        }
    }
    merged.extend(old.get(from..)?);
    if !merged.is_empty() && !merged.ends_with(b"\n") {
        merged.push(b'\n');
    }
    let mut section = None;
    for setting in wanted {
        let this = (setting.section(), setting.subsection());
        if section != Some(this) {
            section = Some(this);
            write_section(this.0, this.1, &mut merged);
        }
        merged.push(b'\t');
        merged.extend(setting.name());
        if let Some(value) = &setting.value {
            merged.extend(b" = ");
            // In quotes where git would put some.
            let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\;#".contains(byte);
            match value.iter().all(is_plain) {
                true => merged.extend(value),
                false => write_quoted(value, &mut merged),
            }
        }
        merged.push(b'\n');
    }
    Some(merged)
}

#[cfg(test)]
mod tests;
