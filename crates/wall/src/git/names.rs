//! Files in which git has the names of other files. It believes them, wherever they lead.

use std::{
    ffi::OsStr,
    fs,
    io::{
        self,
        ErrorKind::{NotADirectory, NotFound},
    },
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use rustix::io::Errno;

use super::{
    controls::{Collection, Kind, MOST_NEW},
    links::is_real,
};
use crate::{
    facts::named_directory,
    nofollow,
    tables::autorun::{NAMES, WORKTREE},
};

impl Collection<'_> {
    /// Indexes of several packs that name other files than those beside them. Git makes them anew.
    pub(super) fn add_packs(&mut self, objects: &Path, of: Option<&Path>) {
        let packs = objects.join("pack");
        let layers = packs.join("multi-pack-index.d");
        let mut all = vec![packs.join("multi-pack-index")];
        if is_real(&layers) {
            match nofollow::list_at_most(&layers, MOST_NEW) {
                Ok(entries) => {
                    let paths = entries.iter().map(fs::DirEntry::path);
                    all.extend(paths.filter(|path| path.extension() == Some("midx".as_ref())));
                }
                Err(_) => self.add_whole(&layers, NAMES, of),
            }
        }
        for path in all {
            if is_odd_pack_list(&path) {
                self.add(&path, Kind::Whole(NAMES), of);
            }
        }
    }

    /// The list of the files that have all references, in a repository of that form.
    pub(super) fn add_tables(&mut self, directory: &Path, of: Option<&Path>) {
        let path = directory.join("reftable/tables.list");
        let is_plain = |names: &[u8]| !names.contains(&b'/');
        if self.before.is_none() || is_odd(nofollow::read(&path), is_plain) {
            self.add(&path, Kind::Whole(NAMES), of);
        }
    }

    /// Where a worktree is, as its repository has it.
    pub(super) fn add_place_of_worktree(&mut self, directory: &Path, of: Option<&Path>) {
        let path = directory.join("gitdir");
        if self.before.is_none() || !self.is_harmless_place(directory, &path) {
            self.add(&path, Kind::Whole(WORKTREE), of);
        }
    }

    fn is_harmless_place(&self, directory: &Path, gitdir: &Path) -> bool {
        let text = nofollow::read(gitdir).ok();
        // Git reads no further than to a zero.
        let Some(text) = text.filter(|text| !text.contains(&0)) else {
            return false;
        };
        let path = text.trim_ascii_end();
        let path = path.strip_suffix(b"/.git").unwrap_or(path);
        let path = Path::new(OsStr::from_bytes(path));
        let place = directory.join(path);
        let dot_git = place.join(".git");
        let (real, links) = self.way(&dot_git);
        // Older gits take a relative path from wherever they run, not from here.
        let is_plain = path.is_absolute() || path.starts_with("../../..");
        if is_plain && self.is_writable(&real) && links.is_empty() {
            return true;
        }
        // One that the session has made in a place of its own is not there outside; git writes nothing
        // then. One of the user's leads back.
        let is_missing = || fs::metadata(&place).is_err_and(|error| error.kind() == NotFound);
        let leads_back = || named_directory(&dot_git).as_deref() == Some(directory);
        path.is_absolute() && (is_missing() || leads_back())
    }
}

/// Whether there is something that is not as it should be. Links, also on the way, are looked for elsewhere.
fn is_odd(read: io::Result<Vec<u8>>, is_plain: impl Fn(&[u8]) -> bool) -> bool {
    match read {
        Ok(contents) => !is_plain(&contents),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => false,
        Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
    }
}

/// Whether there are indexes of several packs in a directory of objects that name other files than those
/// beside them, or more such indexes than there is time for.
pub(super) fn has_odd_pack_lists(objects: &Path) -> bool {
    let packs = objects.join("pack");
    let layers = nofollow::list_at_most(&packs.join("multi-pack-index.d"), MOST_NEW);
    let is_odd_layer = |entry: &fs::DirEntry| is_odd_pack_list(&entry.path());
    is_odd_pack_list(&packs.join("multi-pack-index"))
        || match layers {
            Ok(layers) => layers.iter().any(is_odd_layer),
            Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
        }
}

fn is_odd_pack_list(path: &Path) -> bool {
    let is_plain = |beginning: &[u8]| names_plain_packs(beginning) == Some(true);
    is_odd(nofollow::read_beginning(path), is_plain)
}

/// Whether an index of several packs names only files beside it, as far as its beginning says. `None` if it
/// does not have git's form.
fn names_plain_packs(index: &[u8]) -> Option<bool> {
    const HEADER: usize = 12;
    const ROW: usize = 12;
    let header = index.get(..HEADER)?;
    let (head, count) = header.split_at(8);
    let count = u32::from_be_bytes(count.try_into().ok()?) as usize;
    let chunks = usize::from(*head.get(6)?);
    // One row more says where the last chunk ends.
    let rows = index.get(HEADER..HEADER + (chunks + 1) * ROW)?;
    let rows = || rows.chunks(ROW).zip(rows.chunks(ROW).skip(1));
    let mut names = rows().filter(|(row, _)| row.starts_with(b"PNAM"));
    let ((row, next), None) = (names.next()?, names.next()) else {
        return None;
    };
    let place =
        |row: &[u8]| usize::try_from(u64::from_be_bytes(row.get(4..)?.try_into().ok()?)).ok();
    let names = index.get(place(row)?..place(next)?)?;
    let ends = names.iter().filter(|byte| **byte == 0).count();
    Some(head.starts_with(b"MIDX") && ends >= count && !names.contains(&b'/'))
}
