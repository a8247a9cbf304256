//! Restores a settings file that a session changed, and keeps the harmless changes.
//!
//! The result is made from the bytes before the session, so that every setting that decides
//! something stays as it was, in its order. Only settings that the session changed and may change
//! are cut out; their new values are appended. The result is read again. If it does not say
//! exactly that, the file from before the session is used.

use std::collections::{BTreeMap, BTreeSet};

use super::{Context, GitProgram, Setting, Verdict, entries, read};

/// What came of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// What the session set, changed or took out and may not, with what it does.
    pub(crate) undone: Vec<(Change, &'static str)>,
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
    mut context: Context<'_>,
) -> Settled {
    let old = before.unwrap_or_default();
    if old == after {
        return Settled::default();
    }
    let whole = |change| Settled {
        undone: vec![(change, "git does not read it as it is")],
        contents: Some(old.to_vec()),
    };
    // One that was malformed already says nothing about what may be in it.
    let said = read(git, old).unwrap_or_default();
    let Ok(says) = read(git, after) else {
        return whole(Change::Malformed);
    };
    let (was, is) = (values(&said), values(&says));
    context.remotes = remotes(&says, &was, &is, own, &context);

    let mut passed = BTreeSet::new();
    let mut undone = Vec::new();
    let mut seen = BTreeSet::new();
    for setting in says.iter().chain(&said) {
        if was.get(&setting.key) == is.get(&setting.key) || !seen.insert(&setting.key) {
            continue;
        }
        match judge(setting, &was, &is, own, &context) {
            None => {
                passed.insert(setting.key.clone());
            }
            Some(why) => undone.extend(changes(setting, &was, &is).map(|change| (change, why))),
        }
    }
    // A remote without its address, or a branch without its remote, is of no use to anybody.
    for setting in &says {
        let is_new = !was.contains_key(&setting.key);
        if is_new && is_rest(setting, &was, &is, &passed) && passed.remove(&setting.key) {
            let why = "belongs to what was put back";
            undone.extend(changes(setting, &was, &is).map(|change| (change, why)));
        }
    }
    if undone.is_empty() {
        if decisive(&said, &passed).eq(decisive(&says, &passed)) {
            return Settled::default();
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
        contents: Some(contents.unwrap_or_else(|| old.to_vec())),
    }
}

fn values(settings: &[Setting]) -> Values {
    let mut values = Values::new();
    for Setting { key, value } in settings {
        values.entry(key.clone()).or_default().push(value.clone());
    }
    values
}

/// Why a change of this key is undone, if it is.
fn judge(
    setting: &Setting,
    was: &Values,
    is: &Values,
    own: &[Setting],
    context: &Context<'_>,
) -> Option<&'static str> {
    let key = &setting.key;
    let as_set = |value: &Option<Vec<u8>>| Setting {
        key: key.clone(),
        value: value.clone(),
    };
    let Some(now) = is.get(key) else {
        // Taken out. What described does not any more; but a remote without an address is a path.
        let Verdict::Drives(why) = setting.verdict(context) else {
            return (is_address(setting) && is_still_named(setting, is))
                .then_some("makes git take the name of a remote for a path");
        };
        return Some(why);
    };
    let is_moved = is_address(setting) && was.contains_key(key);
    for value in now {
        let setting = as_set(value);
        match setting.verdict(context) {
            Verdict::Describes(_) if !is_moved => {}
            _ if own.contains(&setting) => {}
            Verdict::Describes(_) => return Some("makes git talk to another repository"),
            Verdict::Drives(why) => return Some(why),
        }
    }
    None
}

/// Whether a setting belongs to a new remote or branch whose address or remote does not pass.
fn is_rest(setting: &Setting, was: &Values, is: &Values, passed: &BTreeSet<Vec<u8>>) -> bool {
    let head: &[u8] = match setting.section() {
        b"remote" => b"url",
        b"branch" => b"remote",
        _ => return false,
    };
    let Some(name) = setting.subsection() else {
        return false;
    };
    let head = [setting.section(), b".", name, b".", head].concat();
    let is_undone = !was.contains_key(&head) && is.contains_key(&head) && !passed.contains(&head);
    is_undone && head != setting.key
}

/// The remotes that have an address when all is settled.
fn remotes(
    says: &[Setting],
    was: &Values,
    is: &Values,
    own: &[Setting],
    context: &Context<'_>,
) -> BTreeSet<Vec<u8>> {
    let names = says.iter().filter(|setting| is_address(setting));
    let stays = |setting: &&Setting| {
        was.contains_key(&setting.key) || judge(setting, was, is, own, context).is_none()
    };
    let names = names.filter(stays).filter_map(Setting::subsection);
    names.map(<[u8]>::to_vec).collect()
}

fn is_address(setting: &Setting) -> bool {
    setting.section() == b"remote" && setting.name() == b"url" && setting.subsection().is_some()
}

/// Whether anything else still speaks of the remote of this address.
fn is_still_named(address: &Setting, is: &Values) -> bool {
    let Some(name) = address.subsection() else {
        return false;
    };
    is.iter().any(|(key, values)| {
        let setting = Setting {
            key: key.clone(),
            value: None,
        };
        let is_of_it = setting.section() == b"remote" && setting.subsection() == Some(name);
        let names_it = values.iter().any(|value| value.as_deref() == Some(name));
        is_of_it || (names_it && matches!(setting.section(), b"branch" | b"remote"))
    })
}

/// What happened to a key.
fn changes<'a>(
    setting: &'a Setting,
    was: &'a Values,
    is: &'a Values,
) -> impl Iterator<Item = Change> + 'a {
    let of = |values: &'a Values| values.get(&setting.key).map_or(&[][..], Vec::as_slice);
    let (was, is) = (of(was), of(is));
    let as_set = |value: &Option<Vec<u8>>| Setting {
        key: setting.key.clone(),
        value: value.clone(),
    };
    let new = is.iter().filter(|value| !was.contains(value));
    let new: Vec<Change> = new.map(|value| Change::Set(as_set(value))).collect();
    let gone = was.iter().filter(|_| new.is_empty());
    let gone = gone.filter(|value| !is.contains(value));
    let gone: Vec<Change> = gone.map(|value| Change::Removed(as_set(value))).collect();
    let both = [new, gone].concat();
    let reordered = both.is_empty().then_some(Change::Reordered);
    both.into_iter().chain(reordered)
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
            merged.push(b'[');
            merged.extend(this.0);
            if let Some(subsection) = this.1 {
                merged.extend(b" \"");
                for byte in subsection {
                    if matches!(byte, b'"' | b'\\') {
                        merged.push(b'\\');
                    }
                    merged.push(*byte);
                }
                merged.push(b'"');
            }
            merged.extend(b"]\n");
        }
        merged.push(b'\t');
        merged.extend(setting.name());
        if let Some(value) = &setting.value {
            merged.extend(b" = ");
            write_value(value, &mut merged);
        }
        merged.push(b'\n');
    }
    Some(merged)
}

/// In quotes where git would put some.
fn write_value(value: &[u8], to: &mut Vec<u8>) {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\;#".contains(byte);
    let is_plain = value.iter().all(is_plain);
    if !is_plain {
        to.push(b'"');
    }
    for byte in value {
        match byte {
            b'"' => to.extend(b"\\\""),
            b'\\' => to.extend(b"\\\\"),
            b'\n' => to.extend(b"\\n"),
            b'\t' => to.extend(b"\\t"),
            8 => to.extend(b"\\b"),
            byte => to.push(*byte),
        }
    }
    if !is_plain {
        to.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::git::settings::parse;

    const OLD: &str = "# mine\n[core]\n\tbare = false\n\tsshCommand = good # keep\n\
        [remote \"origin\"]\n\turl = https://example.com/a\n[branch \"x\"]\n\tmerge = y\n";

    /// What is left of a file, by git and by our own reader.
    fn left(old: Option<&str>, new: &str) -> Option<String> {
        let own = parse(b"[filter \"lfs\"] clean = git-lfs clean").unwrap();
        let writable = [Path::new("/w")];
        let [one, other] = [GitProgram::find(), GitProgram::none()].map(|git| {
            let context = Context {
                writable: &writable,
                ..Context::default()
            };
            let old = old.map(str::as_bytes);
            let settled = settle(&git, old, new.as_bytes(), &own, context);
            assert_eq!(settled.undone.is_empty(), settled.contents.is_none());
            settled.contents
        });
        assert_eq!(one, other, "{new}");
        one.map(|contents| String::from_utf8(contents).unwrap())
    }

    #[test]
    fn what_describes_is_kept_and_the_rest_is_as_before() {
        let kept = "[branch \"new\"]\n\tmerge = \"a b\"\n\tremote = origin\n";
        assert_eq!(left(Some(OLD), &format!("{OLD}{kept}")), None);
        for evil in [
            "[core] fsmonitor = evil\n",
            "[core]\n\tsshCommand = evil\n",
            "[include]\n\tpath = evil\n",
            "[filter.a \"b\"] clean = evil\n",
            "[filter \"lfs\"] clean = evil\n",
            "[alias] st = evil\n",
        ] {
            for new in [
                format!("{OLD}{evil}{kept}"),
                format!("{evil}{OLD}{kept}"),
                format!("{OLD}{kept}{evil}"),
            ] {
                assert_eq!(left(Some(OLD), &new), Some(format!("{OLD}{kept}")), "{new}");
            }
            assert_eq!(
                left(None, &format!("{evil}{kept}")).as_deref(),
                Some(""),
                "a remote that is not there is a path"
            );
        }
    }

    #[test]
    fn a_remote_is_put_back_as_a_whole() {
        let fetch = "\tfetch = +refs/heads/*:refs/remotes/b/*\n";
        let branch = "[branch \"n\"]\n\tremote = b\n\tmerge = refs/heads/n\n";
        let new = format!("{OLD}[remote \"b\"]\n\turl = ./b.git\n{fetch}{branch}");
        assert_eq!(left(Some(OLD), &new).as_deref(), Some(OLD));
        // What describes one that stays, stays.
        let more = format!("{OLD}[remote \"origin\"]\n{fetch}");
        assert_eq!(left(Some(OLD), &more), None);
    }

    #[test]
    fn changed_values_are_put_back_and_harmless_ones_are_not() {
        let evil = OLD
            .replace("good", "evil")
            .replace("= y", "= z")
            .replace("# mine\n", "");
        let expected = OLD.replace("\tmerge = y\n", "") + "[branch \"x\"]\n\tmerge = z\n";
        assert_eq!(left(Some(OLD), &evil), Some(expected));
        // Taken out, or moved elsewhere.
        let gone = OLD.replace("\tsshCommand = good # keep\n", "");
        assert_eq!(left(Some(OLD), &gone).as_deref(), Some(OLD));
        let moved = OLD.replace("example.com/a", "example.org/a");
        assert_eq!(left(Some(OLD), &moved).as_deref(), Some(OLD));
        let more = OLD.replace("/a\n", "/a\n\turl = https://example.org/a\n");
        assert_eq!(left(Some(OLD), &more).as_deref(), Some(OLD));
        // `git remote remove` is fine; a name without an address is not.
        let removed = OLD.replace("[remote \"origin\"]\n\turl = https://example.com/a\n", "");
        assert_eq!(left(Some(OLD), &removed), None);
        let named = format!("{removed}[branch \"x\"] remote = origin\n");
        assert!(left(Some(OLD), &named).unwrap().contains("example.com/a"));
    }

    #[test]
    fn the_order_of_what_decides_is_put_back() {
        let old = "[include]\n\tpath = a\n[core]\n\tsshCommand = b\n[user]\n\tname = c\n";
        let new = "[core]\n\tsshCommand = b\n[include]\n\tpath = a\n[user]\n\tname = c\n";
        assert_eq!(left(Some(old), new).as_deref(), Some(old));
        let new = "[user]\n\tname = c\n[include]\n\tpath = a\n[core]\n\tsshCommand = b\n";
        assert_eq!(left(Some(old), new), None);
    }

    #[test]
    fn what_git_does_not_read_is_put_back_as_a_whole() {
        for new in ["[core", "[core]\nfsmonitor = \"evil\n", "[a]\nb c"] {
            assert_eq!(left(Some(OLD), new).as_deref(), Some(OLD));
            assert_eq!(left(None, new).as_deref(), Some(""));
        }
    }

    #[test]
    fn what_the_user_has_for_all_repositories_passes() {
        let lfs = format!("{OLD}[filter \"lfs\"]\n\tclean = git-lfs clean\n");
        assert_eq!(left(Some(OLD), &lfs), None);
    }
}
