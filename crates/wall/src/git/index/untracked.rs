//! The untracked cache of an index: what `git status` found in directories when it listed them last.
//!
//! If a directory is as it was then, git does not list it again, but goes on with the directories that the
//! cache names in it, wherever a name leads.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, path::PathBuf};

use super::{is_odd, number, offset, string};

/// A directory that git goes to without a look at the one that it is in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cached {
    /// From the worktree down.
    pub(crate) path: PathBuf,
    /// When the directory that it is in was changed last, as the cache has it: the seconds. Else git
    /// lists that again.
    pub(crate) listed: u32,
}

/// What `stat` says of a file, as git keeps it.
const STAT: usize = 36;
const STAT_CHANGED: usize = 8;

/// `None` if it does not have git's form, or has other names than plain ones.
pub(super) fn read(data: &[u8], hash: usize) -> Option<Vec<Cached>> {
    // Flags. The two hashes and the name of the files of patterns follow.
    const FIELDS: usize = 2 * STAT + 4;
    let mut at = 0;
    let identity = offset(data, &mut at)?;
    at = at.checked_add(identity)?.checked_add(FIELDS + 2 * hash)?;
    if string(data, &mut at)? != b".gitignore" {
        return None;
    }
    let is_plain = |name: &[u8]| !is_odd(name) && !name.contains(&b'/');
    let count = offset(data, &mut at)?;
    if count == 0 {
        return Some(Vec::new());
    }
    // Paths of directories that are deep in one another are long.
    let mut room: usize = 64 << 20;
    // The paths, with the number of the directory that each is in.
    let mut all: Vec<(Vec<u8>, Option<usize>)> = Vec::new();
    // Each directory says how many there are in it, and they follow at once.
    let mut open: Vec<(Option<usize>, usize)> = vec![(None, 1)];
    while let Some((around, left)) = open.last_mut() {
        let around = *around;
        let Some(fewer) = left.checked_sub(1) else {
            open.pop();
            continue;
        };
        *left = fewer;
        let files = offset(data, &mut at)?;
        let directories = offset(data, &mut at)?;
        let name = string(data, &mut at)?;
        let is_top = around.is_none() && name.is_empty();
        if !is_top && !is_plain(name) {
            return None;
        }
        for _ in 0..files {
            let name = string(data, &mut at)?;
            if !is_plain(name.strip_suffix(b"/").unwrap_or(name)) {
                return None;
            }
        }
        let above = around.and_then(|number| all.get(number));
        let above = above.map_or(&[][..], |(path, _)| path.as_slice());
        let separator: &[u8] = if above.is_empty() { b"" } else { b"/" };
        let path = [above, separator, name].concat();
        room = room.checked_sub(path.len())?;
        open.push((Some(all.len()), directories));
        all.push((path, around));
    }
    if all.len() != count {
        return None;
    }
    let mut listed = vec![None; count];
    // Which are as git listed them, and two others.
    let valid = bits(data, &mut at, count)?;
    for _ in 0..2 {
        bits(data, &mut at, count)?;
    }
    for number in valid {
        let stat = data.get(at..at.checked_add(STAT)?)?;
        at += STAT;
        *listed.get_mut(number)? = super::number(stat, STAT_CHANGED);
    }
    let cached = all.into_iter().filter_map(|(path, around)| {
        let listed = listed.get(around?).copied().flatten()?;
        let path = OsString::from_vec(path).into();
        Some(Cached { path, listed })
    });
    Some(cached.collect())
}

/// The numbers of the bits that are set, in the compressed form that git has (EWAH).
fn bits(data: &[u8], at: &mut usize, most: usize) -> Option<Vec<usize>> {
    const BITS: usize = 64;
    let length = number(data, at.checked_add(4)?)? as usize;
    let begin = at.checked_add(8)?;
    let end = begin.checked_add(length.checked_mul(8)?)?;
    let mut words = data.get(begin..end)?.chunks_exact(8).map(|word| {
        let word = word.try_into().unwrap_or_default();
        u64::from_be_bytes(word)
    });
    // The place of the last word that says how many follow.
    *at = end.checked_add(4)?;
    let (mut found, mut position) = (Vec::new(), 0_usize);
    while let Some(marker) = words.next() {
        let is_set = marker & 1 != 0;
        let same = usize::try_from((marker >> 1) & 0xffff_ffff).ok()?;
        let end = position.checked_add(same.checked_mul(BITS)?)?;
        if is_set {
            found.extend(position..end.min(most));
        }
        position = end;
        for _ in 0..marker >> 33 {
            let word = words.next()?;
            let set = (0..BITS).filter(|bit| word >> bit & 1 != 0);
            found.extend(set.map(|bit| position + bit));
            position = position.checked_add(BITS)?;
        }
    }
    let are_meant = found.iter().all(|number| *number < most);
    are_meant.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bits_are_read_as_git_writes_them() {
        let made = |words: &[u64]| {
            let mut data = vec![0, 0, 0, 200, 0, 0, 0, u8::try_from(words.len()).unwrap()];
            data.extend(words.iter().flat_map(|word| word.to_be_bytes()));
            data.extend([0; 4]);
            let mut at = 0;
            let found = bits(&data, &mut at, 200);
            assert!(found.is_none() || at == data.len());
            found
        };
        let literal = |same: u64, is_set: u64, literal: u64| is_set | same << 1 | literal << 33;
        assert_eq!(made(&[literal(0, 0, 0)]), Some(vec![]));
        assert_eq!(made(&[literal(0, 0, 1), 0b101]), Some(vec![0, 2]));
        let second = made(&[literal(1, 0, 1), 1, literal(1, 1, 0)]);
        assert_eq!(second, Some([64].into_iter().chain(128..192).collect()));
        // More than there are, and longer than it is.
        assert_eq!(made(&[literal(3, 0, 1), 1 << 63]), None);
        assert_eq!(made(&[literal(0, 0, 2), 1]), None);
        assert_eq!(bits(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff], &mut 0, 9), None);
        // However many it says.
        let many = made(&[literal(0xffff_ffff, 1, 0)]);
        assert_eq!(many.map(|all| all.len()), Some(200));
    }
}
