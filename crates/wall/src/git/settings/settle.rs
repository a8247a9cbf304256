//! Restores a settings file that a session changed, and keeps the harmless changes.
//!
//! The result is made from the bytes before the session, so that every setting that decides
//! something stays as it was, in its order. Only settings that the session changed and may change
//! are cut out; their new values are appended. The result is read again. If it does not say
//! exactly that, the file from before the session is used.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Context, GitProgram, Setting, Verdict, address::is_by_global_name, allowed::UNASKED, entries,
    read,
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
    mut context: Context<'_>,
) -> Settled {
    let old = before.unwrap_or_default();
    if old == after {
        return Settled::default();
    }
    let whole = |change| Settled {
        undone: vec![(change, "git does not read it as it is")],
        contents: Some(old.to_vec()),
        ..Settled::default()
    };
    // One that was malformed already says nothing about what may be in it.
    let said = read(git, old).unwrap_or_default();
    let Ok(says) = read(git, after) else {
        return whole(Change::Malformed);
    };
    let (was, is) = (values(&said), values(&says));
    context.known = known(&was, &is);
    context.remotes = remotes(&says, &was, &is, own, &context);
    if context.is_new {
        let promises = |name: &&Vec<u8>| addresses(&is, name).iter().all(is_global);
        context.promisors = context.remotes.iter().filter(promises).cloned().collect();
    }

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
        // Git asks before it fetches from a remote that promises no more.
        let is_promise = match setting.section() {
            b"remote" => matches!(setting.name(), b"promisor" | b"partialclonefilter"),
            b"extensions" => setting.name() == b"partialclone",
            _ => false,
        };
        if is_promise {
            return None;
        }
        // Taken out. What described does not any more; but a remote without an address is a path.
        let Verdict::Drives(why) = setting.verdict(context) else {
            return (is_address(setting) && is_still_named(setting, is))
                .then_some("makes git take the name of a remote for a path");
        };
        return Some(why);
    };
    let is_moved = is_address(setting) && was.contains_key(key);
    let is_moved = is_moved || is_new_default(setting, was, context);
    for value in now {
        let setting = as_set(value);
        let is_moved = is_moved || moves_a_branch(&setting, was, context);
        match setting.verdict(context) {
            Verdict::Describes(_) if !is_moved => {}
            _ if own.contains(&setting) => {}
            Verdict::Describes(_) => return Some("makes git talk to another repository"),
            Verdict::Drives(why) => return Some(why),
        }
    }
    None
}

/// Whether a setting has what was there before pushed to, or fetched from, a remote that the session
/// made. Where its own branches go is its own affair.
fn moves_a_branch(setting: &Setting, was: &Values, context: &Context<'_>) -> bool {
    let is_of_branch = match (setting.section(), setting.subsection(), setting.name()) {
        (b"branch", Some(name), b"remote" | b"pushremote") => {
            let stem = [b"branch.", name, b"."].concat();
            let is_known = |branches: &BTreeSet<Vec<u8>>| branches.contains(name);
            was.keys().any(|key| key.starts_with(&stem)) || context.branches.is_none_or(is_known)
        }
        (b"remote", None, b"pushdefault") => true,
        _ => false,
    };
    let value = setting.bytes();
    is_of_branch && !context.is_new && value != b"." && !context.known.contains(value)
}

/// Whether it is the address of the remote that git takes by itself, where there were others.
fn is_new_default(setting: &Setting, was: &Values, context: &Context<'_>) -> bool {
    is_address(setting)
        && setting.subsection() == Some(b"origin")
        && !context.is_new
        && !context.known.contains(b"origin".as_slice())
        && was.keys().any(|key| is_address(&named(key)))
}

/// The remotes whose addresses were there before, under whatever name.
fn known(was: &Values, is: &Values) -> BTreeSet<Vec<u8>> {
    let all = |values: &Values| -> Vec<Vec<u8>> {
        let keys = values.keys().map(|key| named(key));
        let addresses = keys.filter(is_address);
        let names = addresses.filter_map(|setting| setting.subsection().map(<[u8]>::to_vec));
        names.collect()
    };
    let old = all(was);
    let renamed = all(is).into_iter().filter(|name| {
        let now = addresses(is, name);
        old.iter().any(|old| addresses(was, old) == now)
    });
    renamed.chain(old.iter().cloned()).collect()
}

/// A setting of this key.
fn named(key: &[u8]) -> Setting {
    Setting {
        key: key.to_vec(),
        value: None,
    }
}

/// The addresses of a remote.
fn addresses<'a>(values: &'a Values, remote: &[u8]) -> &'a [Option<Vec<u8>>] {
    let key = [b"remote.", remote, b".url"].concat();
    values.get(&key).map_or(&[], Vec::as_slice)
}

fn is_global(address: &Option<Vec<u8>>) -> bool {
    let text = address.as_deref().map(std::str::from_utf8);
    text.is_some_and(|text| text.is_ok_and(is_by_global_name))
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

    /// What is left of a file where `topic` is a new branch, or in a new repository.
    fn left_in(is_new: bool, old: Option<&str>, new: &str) -> Settled {
        let branches = [b"main".to_vec(), b"other".to_vec()].into();
        let context = Context {
            is_new,
            branches: Some(&branches),
            ..Context::default()
        };
        let git = GitProgram::none();
        settle(&git, old.map(str::as_bytes), new.as_bytes(), &[], context)
    }

    #[test]
    fn branches_that_were_there_stay_with_remotes_that_were_there() {
        let old = "[remote \"origin\"]\n\turl = https://example.com/a\n\
            [branch \"main\"]\n\tremote = origin\n";
        let fork = "[remote \"fork\"]\n\turl = https://example.org/b\n";
        let left = |more: &str| {
            let settled = left_in(false, Some(old), &format!("{old}{fork}{more}"));
            settled
                .contents
                .map(|left| String::from_utf8(left).unwrap())
        };
        for fine in [
            "[branch \"topic\"]\n\tremote = fork\n\tmerge = refs/heads/topic\n",
            "[branch \"topic\"]\n\tpushRemote = https://example.org/c\n",
            "[branch \"other\"]\n\tremote = origin\n",
            "[branch \"other\"]\n\tremote = .\n",
            "[remote]\n\tpushDefault = origin\n",
        ] {
            assert_eq!(left(fine), None, "{fine}");
        }
        for evil in [
            "[branch \"main\"]\n\tremote = fork\n",
            "[branch \"main\"]\n\tpushRemote = fork\n",
            "[branch \"main\"]\n\tpushRemote = https://example.org/c\n",
            "[branch \"other\"]\n\tremote = fork\n\tmerge = refs/heads/other\n",
            "[remote]\n\tpushDefault = fork\n",
            "[checkout]\n\tdefaultRemote = fork\n",
        ] {
            assert_eq!(left(evil), Some(format!("{old}{fork}")), "{evil}");
        }
        // The same remote under another name is not another one.
        let renamed = old.replace("origin", "upstream");
        assert_eq!(left_in(false, Some(old), &renamed).contents, None);
        // Git takes that one by itself.
        let others = old.replace("origin", "upstream");
        let origin = fork.replace("fork", "origin");
        let settled = left_in(false, Some(&others), &format!("{others}{origin}"));
        assert_eq!(settled.contents, Some(others.into_bytes()));
        // In a new repository all of it is the session's own.
        let new = format!("{fork}[branch \"main\"]\n\tremote = fork\n");
        assert_eq!(left_in(true, None, &new).contents, None);
    }

    #[test]
    fn git_fetches_unasked_in_new_repositories_only_and_from_global_names() {
        let promise = |url: &str| {
            format!(
                "[core]\n\tbare = false\n[remote \"x\"]\n\turl = {url}\n\tpromisor = true\n\
                 \tpartialclonefilter = blob:none\n[extensions]\n\tpartialClone = x\n"
            )
        };
        let global = promise("https://example.com/a");
        let settled = left_in(true, None, &global);
        assert_eq!(settled.contents, None);
        assert_eq!(settled.told.len(), 1, "it stays, and is told");
        for url in [
            "http://127.0.0.1:8080/a",
            "https://93.184.216.34/a",
            "http://localhost/a",
            "https://git/a",
            "/usr",
        ] {
            let left = left_in(true, None, &promise(url)).contents.unwrap();
            let left = String::from_utf8(left).unwrap();
            assert!(
                !left.contains("promisor") && !left.contains("partial"),
                "{left}"
            );
        }
        let old = "[core]\n\tbare = false\n[remote \"x\"]\n\turl = https://example.com/a\n";
        let settled = left_in(false, Some(old), &global);
        assert_eq!(settled.contents.as_deref(), Some(old.as_bytes()));
        assert!(settled.told.is_empty());
        // What promised before still does, or not any more.
        let more = format!("{global}[user]\n\tname = x\n");
        assert_eq!(left_in(false, Some(&global), &more).contents, None);
        assert_eq!(left_in(false, Some(&global), old).contents, None);
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
