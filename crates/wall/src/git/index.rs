//! The gitlinks of an index: where other repositories lie in a worktree. And its files, which git
//! changes when it switches branches.
//!
//! `git status` at the top visits each gitlink, with its settings and its hooks.

mod untracked;

use std::{collections::BTreeMap, path::PathBuf};

use std::os::unix::ffi::OsStringExt as _;

/// What an index leads to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Links {
    pub(crate) paths: Vec<PathBuf>,
    /// Whole directories, whose entries git takes from a tree when it comes to that: any of them may
    /// be a gitlink.
    pub(crate) directories: Vec<PathBuf>,
    /// The file of the index that this one adds to.
    pub(crate) shared: Option<String>,
    /// Directories of the untracked cache.
    pub(crate) cached: Vec<Cached>,
    /// There are gitlinks in the place of some entries of that one; it does not say which.
    pub(crate) is_replacing: bool,
}

pub(crate) use self::untracked::Cached;

const GITLINK: u32 = 0o160_000;
const DIRECTORY: u32 = 0o040_000;

/// The gitlinks of an index whose hashes are so long, or all its paths. `None` if it is no index
/// that can be read in one way only, as git writes it.
pub(crate) fn read(index: &[u8], hash: usize, all: bool) -> Option<Links> {
    read_wanted(index, hash, &mut |entry| entry.kind == GITLINK || all)
}

/// The files and links of an index whose paths are wanted, in the same way, without those whose changes
/// git does not show. `None` also if the index adds to another one, whose entries it may remove.
pub(crate) fn files(
    index: &[u8],
    hash: usize,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Option<Vec<PathBuf>> {
    let is_file = |kind| !matches!(kind, GITLINK | DIRECTORY);
    let links = read_wanted(index, hash, &mut |entry| {
        is_file(entry.kind) && entry.is_shown && is_wanted(entry.path)
    })?;
    links.shared.is_none().then_some(links.paths)
}

/// Shows all entries of an index, if it can be read in the same way.
pub(crate) fn entries(index: &[u8], hash: usize, see: &mut dyn FnMut(&Entry<'_>)) -> Option<()> {
    let links = read_wanted(index, hash, &mut |entry| {
        see(entry);
        false
    })?;
    links.shared.is_none().then_some(())
}

pub(crate) struct Entry<'a> {
    kind: u32,
    /// Git looks for changes of it.
    is_shown: bool,
    pub(crate) path: &'a [u8],
    /// Of the file when git looked at it last: when it was changed, its number, and how long it was.
    pub(crate) seconds: u32,
    pub(crate) inode: u32,
    pub(crate) size: u32,
}

/// `is_wanted` is asked of each entry.
fn read_wanted(
    index: &[u8],
    hash: usize,
    is_wanted: &mut dyn FnMut(&Entry<'_>) -> bool,
) -> Option<Links> {
    const KIND: u32 = 0o170_000;
    const ASSUMED_UNCHANGED: u16 = 0x8000;
    const EXTENDED: u16 = 0x4000;
    /// In the first of the two bytes that follow.
    const SKIPPED: u8 = 0x40;
    const LENGTH: u16 = 0xfff;
    // Times, device, inode, mode, user, group, size.
    const FIELDS: usize = 40;
    const MODE: usize = 24;

    let body = index.get(..index.len().checked_sub(hash)?)?;
    if body.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(body, 4)?;
    let count = number(body, 8)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut links = Links::default();
    let mut path = Vec::new();
    // Entries share beginnings, so a short index can have very long paths.
    let mut room: usize = 64 << 20;
    let mut at = 12;
    let mut is_nameless = false;
    // Where each entry begins that does not build on the one before it.
    let mut whole = BTreeMap::new();
    for entry in 0..count {
        let begin = at;
        let mode = number(body, at + MODE)?;
        let kind = mode & KIND;
        let is_odd_directory = kind == DIRECTORY && mode != DIRECTORY;
        if !matches!(kind, 0o100_000 | 0o120_000 | GITLINK | DIRECTORY) || is_odd_directory {
            return None;
        }
        let flags = at + FIELDS + hash;
        let flags_value = u16::from_be_bytes(body.get(flags..flags + 2)?.try_into().ok()?);
        let extended = flags_value & EXTENDED != 0;
        if extended && version < 3 {
            return None;
        }
        let is_skipped = extended && body.get(flags + 2)? & SKIPPED != 0;
        let is_shown = !is_skipped && flags_value & ASSUMED_UNCHANGED == 0;
        let mut name = flags + 2 + if extended { 2 } else { 0 };
        if version == 4 {
            let cut = offset(body, &mut name)?;
            path.truncate(path.len().checked_sub(cut)?);
        } else {
            path.clear();
        }
        if path.is_empty() {
            whole.insert(begin, entry);
        }
        let rest = body.get(name..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        path.extend(rest.get(..length)?);
        // Git takes the length of a name from the flags, if they have room for it.
        if usize::from(flags_value & LENGTH) != path.len().min(LENGTH.into()) {
            return None;
        }
        let end = name + length;
        at = if version == 4 {
            end + 1
        } else {
            // Padded with one to eight zeros.
            at + (end - at + 8) / 8 * 8
        };
        if body.get(end..at)?.iter().any(|byte| *byte != 0) {
            return None;
        }
        if path.is_empty() {
            // One for a whole directory would be that of the worktree, and git writes none.
            if kind == DIRECTORY {
                return None;
            }
            is_nameless = true;
            links.is_replacing |= kind == GITLINK;
            continue;
        }
        // An entry for a whole directory, which git may leave out of the worktree.
        let name = match kind {
            DIRECTORY => path.strip_suffix(b"/")?,
            _ => &path,
        };
        if is_odd(name) {
            return None;
        }
        let entry = Entry {
            kind,
            is_shown,
            path: name,
            seconds: number(body, begin + 8)?,
            inode: number(body, begin + 20)?,
            size: number(body, begin + 36)?,
        };
        if kind == DIRECTORY || is_wanted(&entry) {
            room = room.checked_sub(name.len())?;
            let path = std::ffi::OsString::from_vec(name.to_vec()).into();
            match kind {
                DIRECTORY => links.directories.push(path),
                _ => links.paths.push(path),
            }
        }
    }
    let entries_end = at;
    // What follows are extensions, with their lengths.
    let (mut has_link, mut has_parts, mut end_of_entries) = (false, false, None);
    while at < body.len() {
        // Only what git writes at the very end comes after this one.
        if end_of_entries.is_some() {
            return None;
        }
        let here = at;
        let kind = body.get(at..at + 4)?;
        let begin = at + 8;
        at = begin.checked_add(number(body, at + 4)? as usize)?;
        let data = body.get(begin..at)?;
        let is_certain = match kind {
            b"link" if !has_link => {
                has_link = true;
                let id = data.get(..hash)?;
                let text = id.iter().map(|byte| format!("{byte:02x}"));
                let name = format!("sharedindex.{}", text.collect::<String>());
                links.shared = id.iter().any(|byte| *byte != 0).then_some(name);
                true
            }
            // Git may begin to read at the places that these name.
            b"EOIE" => {
                end_of_entries = Some(here);
                number(data, 0)? as usize == entries_end
            }
            b"IEOT" if !has_parts => {
                has_parts = true;
                are_parts(data, &whole, count)
            }
            b"sdir" => data.is_empty(),
            b"UNTR" => {
                links.cached = untracked::read(data, hash)?;
                true
            }
            // The paths of conflicts, which libgit2 writes and git skips.
            b"NAME" => data
                .split(|byte| *byte == 0)
                .all(|path| path.is_empty() || !is_odd(path)),
            b"TREE" | b"REUC" | b"FSMN" => true,
            // Git skips one that it does not know. Nobody writes such a one but to hide something in it.
            _ => false,
        };
        if !is_certain {
            return None;
        }
    }
    // Git looks for this extension at a fixed distance from the end, which may be inside of another one.
    // In a repository with longer hashes, git's own is longer, and git does not find it there.
    const END_OF_ENTRIES: usize = 8 + 4 + 20;
    let by_place = body.len().checked_sub(END_OF_ENTRIES);
    let by_place = by_place.filter(|at| body.get(*at..at + 4) == Some(b"EOIE"));
    let is_one = by_place.is_none() || by_place == end_of_entries;
    // Git takes the name of an entry without one from the shared index.
    let is_nameless = is_nameless && links.shared.is_none();
    (at == body.len() && is_one && !is_nameless).then_some(links)
}

/// Whether the parts of an index that can be read apart are all of its entries, in order.
fn are_parts(data: &[u8], whole: &BTreeMap<usize, u32>, count: u32) -> bool {
    let mut next = 0;
    let parts = data.get(4..).unwrap_or_default();
    for part in parts.chunks(8) {
        let (Some(begin), Some(entries)) = (number(part, 0), number(part, 4)) else {
            return false;
        };
        if whole.get(&(begin as usize)) != Some(&next) {
            return false;
        }
        next = next.saturating_add(entries);
    }
    next == count
}

/// What comes before the next zero.
fn string<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let rest = bytes.get(*at..)?;
    let string = rest.get(..rest.iter().position(|byte| *byte == 0)?)?;
    *at += string.len() + 1;
    Some(string)
}

/// No path that git would have taken into an index. Git checks what it takes in, and believes what
/// it finds there: it would write to such a path, and read from it.
fn is_odd(path: &[u8]) -> bool {
    const LONGEST: usize = 4096;
    path.len() > LONGEST
        || path
            .split(|byte| *byte == b'/')
            .any(|name| matches!(name, b"" | b"." | b"..") || name.eq_ignore_ascii_case(b".git"))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// As git writes offsets in packs.
fn offset(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut byte = *bytes.get(*at)?;
    *at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

    use super::*;

    /// Of every version and hash that git writes.
    #[test]
    fn gitlinks_are_found_as_git_wrote_them() {
        for (hash, length) in [("sha1", 20), ("sha256", 32)] {
            for version in ["2", "3", "4"] {
                let place = tempfile::tempdir().unwrap();
                let script = format!(
                    "set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
                    git init -q --object-format={hash} .; mkdir -p a/b; touch a/b/c a/b/d zz new
                    git add a zz; git add -N new
                    id=$(printf x | git hash-object -w --stdin)
                    git update-index --add --cacheinfo 160000,$id,a/b/sub
                    git update-index --add --cacheinfo 160000,$id,sub
                    git update-index --index-version {version}"
                );
                let status = Command::new("bash")
                    .args(["-c", &script])
                    .current_dir(place.path())
                    .status();
                assert!(status.unwrap().success());
                let index = fs::read(place.path().join(".git/index")).unwrap();
                let under_a = files(&index, length, &|path| path.starts_with(b"a/")).unwrap();
                assert_eq!(under_a, ["a/b/c", "a/b/d"].map(PathBuf::from));
                let links = read(&index, length, false).unwrap().paths;
                assert_eq!(
                    links,
                    ["a/b/sub", "sub"].map(PathBuf::from),
                    "{hash} {version}"
                );
                for end in 0..index.len() {
                    // No prefix makes it fail otherwise than by saying so.
                    let _ = read(index.get(..end).unwrap(), length, true);
                }
            }
        }
        assert_eq!(read(b"", 20, false), None);
    }

    /// What git has left out of the worktree as a whole.
    #[test]
    fn directories_of_a_sparse_index_are_found() {
        let place = tempfile::tempdir().unwrap();
        let script = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
            git init -q .; mkdir -p in a/b; touch in/x a/b/c top; git add .
            git -c user.name=a -c user.email=a commit -q -m one
            git sparse-checkout set --sparse-index in";
        let mut command = Command::new("bash");
        let command = command.args(["-ec", script]).current_dir(place.path());
        assert!(command.status().unwrap().success());
        let index = fs::read(place.path().join(".git/index")).unwrap();
        let links = read(&index, 20, false).unwrap();
        assert_eq!(links.directories, ["a"].map(PathBuf::from));
        assert_eq!(links.paths, Vec::<PathBuf>::new());
    }

    /// An index in parts, and one that adds to another; and none that has two readings.
    #[test]
    fn an_index_is_read_in_one_way_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let made = |script: &str| {
            let mut command = Command::new("bash");
            command.args(["-ec", script]).current_dir(place.path());
            for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
                command.env(name, "/dev/null");
            }
            assert!(command.status().unwrap().success());
            fs::read(place.path().join(".git/index")).unwrap()
        };
        let parts = made(
            "git init -q .; git config index.threads 2; git config index.recordOffsetTable true
             git config index.recordEndOfIndexEntries true; git config index.version 4
             touch aa b c d; git add .",
        );
        let at = |name: &[u8]| parts.windows(4).position(|part| part == name);
        assert!(read(&parts, 20, false).is_some());
        for name in [b"EOIE", b"IEOT"] {
            let mut other = parts.clone();
            // The last byte of the first place that it names.
            let skipped = if name == b"EOIE" { 11 } else { 15 };
            other[at(name).unwrap() + skipped] ^= 4;
            assert_eq!(read(&other, 20, false), None);
        }
        let split = made(
            "git config index.version 2; git update-index --index-version 2; git update-index --split-index",
        );
        let shared = read(&split, 20, false).unwrap().shared.unwrap();
        assert_eq!(files(&split, 20, &|_| true), None);
        assert!(place.path().join(".git").join(shared).exists());

        let plain = made("git update-index --no-split-index; git config --unset index.threads");
        assert!(read(&plain, 20, true).is_some_and(|links| links.paths.len() == 4));
        // A longer name by the flags, and something after a name.
        for (at, byte) in [(12 + 61, 3), (12 + 66, 1)] {
            let mut other = plain.clone();
            other[at] = byte;
            assert_eq!(read(&other, 20, false), None, "{at}");
        }
        for path in ["../a", ".git/a", "a/.GIT", "a//b", "/a", "./a"] {
            assert!(is_odd(path.as_bytes()), "{path}");
        }
        // Also in an entry that is no gitlink: "aa" is the first.
        let mut upwards = plain.clone();
        let name = plain.windows(3).position(|part| part == b"aa\0").unwrap();
        upwards[name..name + 2].copy_from_slice(b"..");
        assert_eq!(read(&upwards, 20, false), None);
        assert!(!is_odd(b".github/a..b/.gitmodules"));
    }

    /// Git looks for the end of the entries at a place of the file, not among the extensions.
    #[test]
    fn nothing_is_hidden_in_an_extension() {
        let entry = |mode: u32, name: &[u8]| {
            let mut entry = vec![0; 60];
            entry[24..28].copy_from_slice(&mode.to_be_bytes());
            entry.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            entry.extend(name);
            entry.resize((entry.len() + 8) / 8 * 8, 0);
            entry
        };
        let header = [b"DIRC".as_slice(), &[0, 0, 0, 2, 0, 0, 0, 1]].concat();
        let extension = |name: &[u8], data: &[u8]| {
            let length = u32::try_from(data.len()).unwrap().to_be_bytes();
            [name, &length, data].concat()
        };
        let index = |first: &[u8], rest: &[u8]| {
            let index = [&header, first, rest, &[0; 20]].concat();
            read(&index, 20, true)
        };
        let file = entry(0o100_644, b"file");
        let begin = header.len() + file.len();
        let end_at = |at: usize| {
            let at = u32::try_from(at).unwrap().to_be_bytes();
            extension(b"EOIE", &[at.as_slice(), &[0; 20]].concat())
        };
        let tree = extension(b"TREE", b"x");
        assert!(index(&file, &tree).is_some());
        assert!(index(&file, &[tree.clone(), end_at(begin)].concat()).is_some());
        // Of another place, not the last one, or inside of another one.
        assert_eq!(
            index(&file, &[tree.clone(), end_at(begin + 8)].concat()),
            None
        );
        assert_eq!(index(&file, &[end_at(begin), tree.clone()].concat()), None);
        for name in [b"TREE", b"REUC", b"UNTR", b"FSMN", b"NAME"] {
            for at in [begin, begin + 8] {
                assert_eq!(index(&file, &extension(name, &end_at(at))), None);
            }
        }
        // As libgit2 writes the names of a conflict, the second of which there is not.
        assert!(index(&file, &extension(b"NAME", b"a/b\0\0c\0")).is_some());
        assert_eq!(index(&file, &extension(b"NAME", b"a\0\0../c\0")), None);
        // Git itself writes none of these.
        for name in [b"ZZZZ", b"zzzz", b"tree"] {
            assert_eq!(index(&file, &extension(name, b"x")), None);
        }
        assert_eq!(index(&file, &extension(b"sdir", b"x")), None);
        let link = extension(b"link", &[0; 20]);
        assert!(index(&file, &link).is_some());
        assert_eq!(index(&file, &[link.clone(), link].concat()), None);

        // Entries without names are of a split index, and no directories.
        let link = extension(b"link", &[1; 20]);
        for (mode, is_read) in [(0o100_644, true), (0o160_000, true), (0o040_000, false)] {
            let nameless = entry(mode, b"");
            assert_eq!(index(&nameless, &link).is_some(), is_read);
            assert_eq!(index(&nameless, b""), None);
        }
        assert!(index(&entry(0o040_000, b"d/"), b"").is_some());
        assert_eq!(index(&entry(0o040_755, b"d/"), b""), None);
    }

    /// Git would list directories elsewhere, and write the names of what is in them into the index.
    #[test]
    fn an_untracked_cache_names_nothing_elsewhere() {
        for (format, hash) in [("sha1", 20), ("sha256", 32)] {
            let place = tempfile::tempdir().unwrap();
            let script = format!(
                "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
                git init -q --object-format={format} .; mkdir -p tracked/new .gi empty deep/er
                touch tracked/file tracked/new/x deep/er/file .gi/t name; git add tracked/file
                echo '*.o' > .gitignore; git init -q deep/nested
                git update-index --force-untracked-cache; git status -s"
            );
            for all in ["", " -uall"] {
                let mut command = Command::new("bash");
                let script = script.clone() + all;
                let command = command.args(["-ec", &script]).current_dir(place.path());
                assert!(command.output().unwrap().status.success());
                let index = fs::read(place.path().join(".git/index")).unwrap();
                let cache = index.windows(4).position(|part| part == b"UNTR").unwrap();
                let cached = read(&index, hash, false).unwrap().cached;
                let time = |path: &str| fs::metadata(place.path().join(path)).unwrap().mtime();
                assert!(cached.iter().any(|it| it.path == Path::new("tracked")));
                assert!(cached.len() > 1, "{format}{all}: {cached:?}");
                for it in &cached {
                    let around = it.path.parent().unwrap().to_str().unwrap();
                    assert_eq!(i64::from(it.listed), time(around), "{it:?}");
                }
                let changed = |from: &[u8], to: &[u8]| {
                    let mut other = index.clone();
                    let places = index.windows(from.len()).enumerate().skip(cache);
                    let mut places = places.filter(|(_, part)| *part == from);
                    let (at, _) = places.next().expect("a name");
                    other[at..at + to.len()].copy_from_slice(to);
                    read(&other, hash, false)
                };
                // Directories, then files.
                assert!(changed(b"tracked\0", b"another").is_some());
                for name in [
                    b"../else",
                    b"/else/x",
                    b"./track",
                    b".git\0\0\0",
                    b"\0\0\0\0\0\0\0",
                ] {
                    assert_eq!(changed(b"tracked\0", name), None, "{format}{all}");
                }
                assert!(changed(b"name\0", b"eman").is_some());
                for name in [b"../x", b"/a/b", b"a//b", b".GIT"] {
                    assert_eq!(changed(b"name\0", name), None, "{format}{all}");
                }
                // Files of patterns under another name, and more or fewer directories than it says.
                assert_eq!(changed(b".gitignore\0", b"/gitignore"), None);
                assert_eq!(changed(b".gitignore\0", b".gitignore\0\x02"), None);
            }
        }
        // Git has not been asked for anything yet.
        let empty = [&[0_u8; 1 + 76 + 40], b".gitignore\0\0".as_slice()].concat();
        assert_eq!(untracked::read(&empty, 20), Some(Vec::new()));
        assert_eq!(untracked::read(&[0xff; 40], 20), None);
    }

    /// Entries of version 4 take the beginning of the one before: a few bytes can be a long path.
    #[test]
    fn a_short_index_does_not_fill_the_memory() {
        let made = |length: usize, count: u32| {
            let mut index = b"DIRC\0\0\0\x04".to_vec();
            index.extend(count.to_be_bytes());
            for entry in 0..count {
                let name = vec![b'a'; if entry == 0 { length } else { 1 }];
                let mut fields = [0; 60];
                fields[24..28].copy_from_slice(&0o160_000_u32.to_be_bytes());
                index.extend(fields);
                let whole = length + usize::try_from(entry).unwrap();
                index.extend(u16::try_from(whole.min(0xfff)).unwrap().to_be_bytes());
                index.extend([b"\0", name.as_slice(), b"\0"].concat());
            }
            index.extend([0; 20]);
            read(&index, 20, false).map(|links| links.paths.len())
        };
        assert_eq!(made(1000, 3), Some(3));
        assert_eq!(made(5000, 3), None);
        assert_eq!(made(1, 4000), Some(4000));
        assert_eq!(made(4000, 90), Some(90));
    }
}
