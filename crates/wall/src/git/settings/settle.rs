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
    allowed::{GH, UNASKED},
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
            undone.extend(comparison.changes(setting, "belongs to what was undone"));
        }
    }
    // Nor is one that is put back without what belonged to it.
    for setting in &said {
        let is_gone = !is.contains_key(&setting.key);
        if is_gone && comparison.is_part_of_kept(setting, &passed) && passed.remove(&setting.key) {
            undone.extend(comparison.changes(setting, "belongs to what was undone"));
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
    /// The remote that git took where nothing names one.
    default: Option<Vec<u8>>,
    /// The remotes that branches and pushes had.
    named: BTreeSet<Vec<u8>>,
    /// The remotes that a session took out so that git takes another one, now or when there is one.
    lost: BTreeSet<Vec<u8>>,
}

impl<'a> Comparison<'a> {
    fn new(said: &[Setting], says: &[Setting], own: &'a [Setting], context: Context<'a>) -> Self {
        let was = values(said);
        let named = said.iter().filter(|setting| setting.names_a_remote());
        let mut this = Self {
            default: default_remote(&was),
            named: named.map(|setting| setting.bytes().to_vec()).collect(),
            lost: BTreeSet::new(),
            was,
            is: values(says),
            own,
            context,
        };
        this.context.known = this.known();
        let mut worktrees = said.iter().rev().filter(|it| it.is("core", "worktree"));
        this.context.worktree = worktrees.next().map(|it| it.bytes().to_vec());
        // The remotes that have an address when all is settled.
        let addresses = says.iter().filter(|setting| setting.is_address());
        let stays = |it: &&Setting| this.was.contains_key(&it.key) || this.judge(it).is_none();
        let names = addresses.filter(stays).filter_map(Setting::subsection);
        this.context.remotes = names.map(<[u8]>::to_vec).collect();
        this.lost = this.lost();
        if this.context.is_new {
            let promises = |name: &&Vec<u8>| addresses_of(&this.is, name).iter().all(is_global);
            let promisors = this.context.remotes.iter().filter(promises);
            this.context.promisors = promisors.cloned().collect();
        }
        this
    }

    /// The remotes whose addresses were there before, under whatever name.
    fn known(&self) -> BTreeSet<Vec<u8>> {
        let old = remotes(&self.was);
        let renamed = remotes(&self.is).into_iter().filter(|name| {
            let now = addresses_of(&self.is, name);
            old.iter().any(|old| addresses_of(&self.was, old) == now)
        });
        renamed.chain(old.iter().cloned()).collect()
    }

    /// Why a change of this key is undone, if it is.
    fn judge(&self, changed: &Setting) -> Option<&'static str> {
        let Some(now) = self.is.get(&changed.key) else {
            if let Some(why) = self.is_of_lost_remote(changed) {
                return Some(why);
            }
            if self.leaves_its_remote(changed) {
                return Some("makes git push to another repository");
            }
            if self.moves_gh(changed) {
                return Some(GH);
            }
            // Git asks before it fetches from a remote that promises no more.
            let is_promise = match changed.section() {
                b"remote" => matches!(changed.name(), b"promisor" | b"partialclonefilter"),
                b"extensions" => changed.name() == b"partialclone",
                _ => false,
            };
            // The remote may be gone as well.
            let is_gone = changed.names_a_remote() && self.context.known.contains(changed.bytes());
            if is_promise || is_gone {
                return None;
            }
            // Taken out. What described does not any more; but a remote without an address is a path.
            let Verdict::Drives(why) = changed.verdict(&self.context) else {
                return (changed.is_address() && self.is_still_named(changed))
                    .then_some("makes git take the name of a remote for a path");
            };
            return Some(why);
        };
        if self.is_of_no_remote(changed) {
            return Some("makes git take the name of a remote for a path");
        }
        if self.moves_gh(changed) {
            return Some(GH);
        }
        // Git clones a submodule that is not there yet from its address.
        let is_submodule = changed.section() == b"submodule" && changed.name() == b"url";
        let is_moved = (changed.is_address() && self.had_address(changed))
            || (is_submodule && self.was.contains_key(&changed.key) && !self.context.is_new)
            || self.is_new_default(changed);
        for value in now {
            let setting = setting(&changed.key, value.clone());
            let is_moved = is_moved || self.moves_a_branch(&setting);
            match setting.verdict(&self.context) {
                Verdict::Describes(_) if !is_moved => {}
                Verdict::Drives(_) if self.is_own(&setting) => {}
                Verdict::Describes(_) if changed.name() == b"merge" => {
                    return Some("makes git push to another branch, or merge it");
                }
                Verdict::Describes(_) => return Some("makes git talk to another repository"),
                Verdict::Drives(why) => return Some(why),
            }
        }
        None
    }

    /// Whether tools copy this setting into repositories, and the user's own settings say the same for all of
    /// them. No other setting passes for that: one that names a file leads elsewhere from another place
    /// (`include.path`), and some count in a repository only (`core.worktree`).
    fn is_own(&self, setting: &Setting) -> bool {
        let is_copied = match (setting.section(), setting.subsection()) {
            (b"filter", Some(_)) => {
                matches!(
                    setting.name(),
                    b"clean" | b"smudge" | b"process" | b"required"
                )
            }
            (b"core", None) => matches!(setting.name(), b"editor" | b"pager"),
            (b"commit" | b"tag", None) => setting.name() == b"gpgsign",
            _ => false,
        };
        // Of several, the last one counts.
        let mut own = self.own.iter().rev();
        is_copied && own.find(|own| own.key == setting.key) == Some(setting)
    }

    /// Whether a setting has what was there before pushed to, or fetched from, another remote or branch
    /// than before. A branch of the same name is what git itself takes for it. One that was there may be a remote of an earlier session. Where its own branches go is
    /// the session's affair.
    fn moves_a_branch(&self, setting: &Setting) -> bool {
        let context = &self.context;
        let key = |parts: [&[u8]; 3]| parts.concat();
        let push_default = b"remote.pushdefault".to_vec();
        // What said so before: the first that is there counts.
        let said = match (setting.section(), setting.subsection(), setting.name()) {
            (b"branch", Some(name), what @ (b"remote" | b"pushremote" | b"merge")) => {
                let stem = key([b"branch.", name, b"."]);
                let is_known = |branches: &BTreeSet<Vec<u8>>| branches.contains(name);
                let is_there = has_any(&self.was, &stem) || context.branches.is_none_or(is_known);
                if !is_there {
                    return false;
                }
                if what == b"merge" {
                    let same = key([b"refs/heads/", name, b""]);
                    let before = self.was.get(&setting.key).and_then(|values| values.last());
                    let before = before.and_then(Option::as_deref);
                    let stays = before == Some(setting.bytes()) || setting.bytes() == same;
                    return !context.is_new && !stays;
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
        // A branch that has no remote of its own may follow another one of the same repository.
        let follows = value == b"." && setting.name() == b"remote";
        if context.is_new || (follows && !self.was.contains_key(&setting.key)) {
            return false;
        }
        let mut said = said.iter().filter_map(|key| self.was.get(key)?.last());
        let before = said.next().and_then(Option::as_deref);
        // Without any, no remote is the branch's: one that was there may be of an earlier session.
        let Some(before) = before.or(self.default.as_deref()) else {
            return true;
        };
        let addresses = addresses_of(&self.was, before);
        let is_renamed = !addresses.is_empty() && addresses == addresses_of(&self.is, value);
        before != value && !is_renamed
    }

    /// Whether it has `gh` work on another repository: it would take secrets and requests there. One that was
    /// there may be a remote of an earlier session.
    fn moves_gh(&self, changed: &Setting) -> bool {
        let remote = changed
            .subsection()
            .filter(|_| changed.section() == b"remote" && changed.name() == b"gh-resolved");
        let Some(remote) = remote.filter(|_| !self.context.is_new) else {
            return false;
        };
        let now = addresses_of(&self.is, remote);
        if !self.is.contains_key(&changed.key) {
            return !now.is_empty();
        }
        let resolved = |name: &Vec<u8>| {
            let key = [b"remote.", name.as_slice(), b".gh-resolved"].concat();
            self.was.contains_key(&key)
        };
        let all = remotes(&self.was);
        let had_others = !all.is_empty() || !self.context.elsewhere.is_empty();
        let before = all.iter().find(|name| resolved(name));
        match before.or(self.default.as_ref()) {
            Some(before) => addresses_of(&self.was, before) != now,
            None => had_others,
        }
    }

    /// A remote that was given another name is not lost.
    fn lost(&self) -> BTreeSet<Vec<u8>> {
        if self.context.is_new {
            return BTreeSet::new();
        }
        let (old, left) = (remotes(&self.was), &self.context.remotes);
        let new = left.difference(&old);
        let new: BTreeSet<_> = new.map(|name| addresses_of(&self.is, name)).collect();
        let is_next = left.len() <= 1 && !left.contains(b"origin".as_slice());
        let is_default = |name: &Vec<u8>| is_next || self.default.as_ref() == Some(name);
        let gone = old.difference(left).filter(|name| is_default(name));
        let lost = gone.filter(|name| !new.contains(addresses_of(&self.was, name)));
        lost.cloned().collect()
    }

    /// Why a setting that was taken out comes back because of the remote that it is about.
    fn is_of_lost_remote(&self, gone: &Setting) -> Option<&'static str> {
        let stem = gone.key.len() - gone.name().len();
        let stem = gone.key.get(..stem).unwrap_or_default();
        let (remote, is_for_pushes) = match (gone.section(), gone.subsection(), gone.name()) {
            (b"remote", Some(name), _) => (name, false),
            (b"remote", None, b"pushdefault") => (gone.bytes(), true),
            // Who deletes a branch takes out all that is said of it.
            (b"branch", Some(_), b"pushremote") => (gone.bytes(), has_any(&self.is, stem)),
            (b"branch", Some(_), b"remote" | b"merge") => {
                let remote = self.was.get(&[stem, b"remote"].concat());
                (remote?.last()?.as_deref()?, false)
            }
            _ => return None,
        };
        if self.lost.contains(remote) {
            let why = match gone.is_address() {
                true => "git would push to the next remote that there is",
                false => "belongs to what was undone",
            };
            return Some(why);
        }
        let is_there = !addresses_of(&self.is, remote).is_empty();
        (is_for_pushes && is_there && !self.context.is_new)
            .then_some("makes git push to another repository")
    }

    /// Whether a branch that is still there has no remote any more, and git takes another one by itself.
    fn leaves_its_remote(&self, gone: &Setting) -> bool {
        let is_remote = gone.section() == b"branch" && gone.name() == b"remote";
        let name = gone.subsection().filter(|_| is_remote);
        let is_left = name.is_some_and(|name| self.context.left.contains(name));
        let before = self.was.get(&gone.key).and_then(|values| values.last());
        let (Some(Some(before)), Some(next)) = (before, default_remote(&self.is)) else {
            return false;
        };
        let is_other = addresses_of(&self.was, before) != addresses_of(&self.is, &next);
        is_left && is_other && !self.context.is_new
    }

    /// Whether it is the address of the remote that git takes by itself, where there were others, or of
    /// one that was named and had none: that is a path, or the user's settings for all repositories have it.
    fn is_new_default(&self, changed: &Setting) -> bool {
        let Some(name) = changed.subsection().filter(|_| changed.is_address()) else {
            return false;
        };
        let default = self.default.as_deref().unwrap_or(name);
        let is_renamed = addresses_of(&self.was, default) == addresses_of(&self.is, name);
        let had_others = !self.context.known.is_empty() || !self.context.elsewhere.is_empty();
        let is_default = name == b"origin" && had_others && !is_renamed;
        !self.context.is_new
            && addresses_of(&self.was, name).is_empty()
            && (self.named.contains(name) || is_default)
    }

    /// Whether it says something of a remote that has no address, in this file or in one that git reads with it.
    /// `git fetch --all` then fetches from the directory of that name.
    fn is_of_no_remote(&self, changed: &Setting) -> bool {
        let context = &self.context;
        let has_address =
            |name: &[u8]| context.remotes.contains(name) || context.kept_elsewhere.contains(name);
        let name = changed.subsection();
        let name = name.filter(|_| changed.section() == b"remote" && !changed.is_address());
        name.is_some_and(|name| !has_address(name))
    }

    /// Whether the remote had an address, in this file or in another.
    fn had_address(&self, address: &Setting) -> bool {
        let name = address.subsection().unwrap_or_default();
        self.was.contains_key(&address.key) || self.context.elsewhere.contains(name)
    }

    /// Whether anything else still speaks of the remote of this address, or will when it is put back. Also
    /// another file, which the session may have changed, too.
    fn is_still_named(&self, address: &Setting) -> bool {
        let Some(name) = address.subsection() else {
            return false;
        };
        if self.context.named_elsewhere.contains(name) {
            return true;
        }
        let names_it = |(key, values): &(&Vec<u8>, &Vec<Option<Vec<u8>>>)| {
            let setting = setting(key, None);
            let is_of_it = setting.section() == b"remote" && setting.subsection() == Some(name);
            let names_it = values.iter().any(|value| value.as_deref() == Some(name));
            is_of_it || (names_it && matches!(setting.section(), b"branch" | b"remote"))
        };
        let comes_back = |(key, values): (&Vec<u8>, &Vec<Option<Vec<u8>>>)| {
            let setting = setting(key, values.first().cloned().flatten());
            let is_changed = self.is.get(key) != Some(values);
            is_changed && !setting.is_address() && self.judge(&setting).is_some()
        };
        self.is.iter().any(|it| names_it(&it)) || self.was.iter().filter(names_it).any(comes_back)
    }

    /// Whether a setting belongs to a new remote or branch whose address or remote does not pass.
    fn is_rest(&self, setting: &Setting, passed: &BTreeSet<Vec<u8>>) -> bool {
        let Some(head) = head_of(setting) else {
            return false;
        };
        let is_new = !self.was.contains_key(&head) && self.is.contains_key(&head);
        is_new && !passed.contains(&head) && head != setting.key
    }

    /// Whether a setting belongs to a remote or branch whose address or remote is gone, and comes back.
    fn is_part_of_kept(&self, setting: &Setting, passed: &BTreeSet<Vec<u8>>) -> bool {
        let Some(head) = head_of(setting) else {
            return false;
        };
        let is_gone = self.was.contains_key(&head) && !self.is.contains_key(&head);
        is_gone && !passed.contains(&head) && head != setting.key
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

/// The setting without which the others of the same remote or branch say nothing.
fn head_of(setting: &Setting) -> Option<Vec<u8>> {
    let head: &[u8] = match setting.section() {
        b"remote" => b"url",
        b"branch" => b"remote",
        _ => return None,
    };
    let name = setting.subsection()?;
    Some([setting.section(), b".", name, b".", head].concat())
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

/// Whether any key begins like this.
fn has_any(values: &Values, stem: &[u8]) -> bool {
    let mut from = values.range(stem.to_vec()..);
    from.next().is_some_and(|(key, _)| key.starts_with(stem))
}

/// The remotes that have an address.
fn remotes(values: &Values) -> BTreeSet<Vec<u8>> {
    let keys = values.keys().map(|key| setting(key, None));
    let addresses = keys.filter(Setting::is_address);
    let names = addresses.filter_map(|setting| setting.subsection().map(<[u8]>::to_vec));
    names.collect()
}

/// The remote that git takes where nothing names one: `origin`, or the only one.
fn default_remote(values: &Values) -> Option<Vec<u8>> {
    let remotes = remotes(values);
    let is_only = remotes.len() == 1;
    let is_default = |name: &Vec<u8>| is_only || name == b"origin";
    remotes.into_iter().find(is_default)
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
