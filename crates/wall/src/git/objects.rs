//! Where git finds objects: in directories that lists name, and behind links among the objects. Who
//! has checked out such an object has its file in the worktree.

use std::{
    ffi::OsStr,
    fs,
    io::{
        self,
        ErrorKind::{NotADirectory, NotFound},
    },
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt as _,
            fs::{FileTypeExt as _, MetadataExt as _},
        },
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RawDir, open, statat},
    io::Errno,
};

use super::{
    controls::{Collection, Kind, MOST_NEW},
    names::has_odd_pack_lists,
};
use crate::{
    leftovers::{Identity, baseline::Baseline, changed, content::Content},
    nofollow::{self, MOST_ENTRIES},
    tables::autorun::{ALTERNATES, REDIRECTION},
};

/// Where git has the list of other directories of objects, in one of them.
const BORROWED: &str = "info/alternates";

impl Collection<'_> {
    /// The lists of other directories of objects, which count if they lead where no session can write.
    /// Returns the directories that lists name which are as they were: what is a link in those counts.
    /// If a session wrote the list, the list counts, and what it names is left alone.
    pub(super) fn add_alternates(&mut self, objects: &Path, of: Option<&Path>) -> Vec<PathBuf> {
        let mut all = vec![objects.to_owned()];
        let mut next = 0;
        while let Some(objects) = all.get(next).cloned() {
            next += 1;
            let path = objects.join(BORROWED);
            let list = match nofollow::read(&path) {
                Ok(list) => list,
                Err(error) if matches!(error.kind(), NotFound | NotADirectory) => continue,
                Err(_) => {
                    self.add(&path, Kind::Whole(ALTERNATES), of);
                    continue;
                }
            };
            let was = |before: &Baseline| {
                let was = before.contents.get(&path);
                was.and_then(Content::bytes) == Some(list.as_slice())
            };
            let is_as_it_was = self.before.is_none_or(was);
            if self.before.is_none() || (!is_as_it_was && self.leads_elsewhere(&objects, &list)) {
                self.add(&path, Kind::Whole(ALTERNATES), of);
            }
            if !is_as_it_was {
                continue;
            }
            for listed in listed(&objects, &list).take(MOST_LISTED) {
                let list = self.reached(&listed.join(BORROWED), of);
                let real = list.and_then(|list| nofollow::real(list.ancestors().nth(2)?).ok());
                if let Some(real) =
                    real.filter(|real| self.is_writable(real) && !all.contains(real))
                {
                    all.push(real);
                }
            }
        }
        all.split_off(1)
    }

    /// Whether git finds objects by a list, and by those that it leads to, where a session cannot write, or
    /// where `git checkout` can put a link that leads there.
    fn leads_elsewhere(&self, objects: &Path, list: &[u8]) -> bool {
        let (mut next, mut lines, mut left) = (0, 0, MOST_LOOKED_AT);
        let mut all = vec![(objects.to_owned(), list.to_vec())];
        while let Some((objects, list)) = all.get(next).cloned() {
            next += 1;
            // Git takes such a line for a path in quotes.
            if list
                .split(|byte| *byte == b'\n')
                .any(|line| line.starts_with(b"\""))
            {
                return true;
            }
            for path in listed(&objects, &list) {
                lines += 1;
                let real = self.among_gits(&objects, &path);
                let Some(real) = real.filter(|_| lines <= MOST_LISTED) else {
                    return true;
                };
                if all.iter().any(|(known, _)| *known == real) {
                    continue;
                }
                if [&real, &lfs_beside(&real)]
                    .iter()
                    .any(|it| self.holds_link(it, &mut left))
                    || has_odd_pack_lists(&real)
                {
                    return true;
                }
                match nofollow::read(&real.join(BORROWED)) {
                    Ok(list) => all.push((real, list)),
                    Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
                    Err(_) => return true,
                }
            }
        }
        false
    }

    /// What a line of a list leads to, if that is in `.git` of a directory that is given, and nothing on the
    /// way there can be a tracked file. `git checkout` can put a link in the place of those, and in the place
    /// of a repository below, if that is ignored.
    fn among_gits(&self, objects: &Path, path: &Path) -> Option<PathBuf> {
        let (real, links) = self.way(path);
        let is_real = match nofollow::real(path) {
            Ok(there) => there == real,
            // It may be there later.
            Err(error) => matches!(error.kind(), NotFound | NotADirectory),
        };
        // A name that the way leaves again is on the way, too.
        let line = path.strip_prefix(objects).unwrap_or(path);
        let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
        let mut rest = line.components().skip_while(|part| !is_name(part));
        let is_straight = rest.all(|part| is_name(&part));
        let tops = self.writable.iter().filter(|top| real.starts_with(top));
        let top = tops.min_by_key(|top| top.as_os_str().len())?;
        let below = real.strip_prefix(top).ok()?;
        let is_gits = below.starts_with(".git") || top.iter().any(|name| name == ".git");
        (is_real && is_straight && is_gits && links.is_empty()).then_some(real)
    }

    /// Whether a directory of objects holds a link or a pipe, or more than there is time to look at.
    fn holds_link(&self, objects: &Path, most: &mut usize) -> bool {
        const DEEPEST: usize = 3;
        let mut left = vec![(objects.to_owned(), 0)];
        while let Some((directory, depth)) = left.pop() {
            if self.bounds.are_reached() && !self.is_first() {
                return true;
            }
            let Ok(entries) = nofollow::list_at_most(&directory, *most) else {
                return true;
            };
            *most -= entries.len();
            for entry in entries {
                match entry.file_type() {
                    Ok(kind) if kind.is_file() => {}
                    Ok(kind) if kind.is_dir() && depth < DEEPEST => {
                        left.push((entry.path(), depth + 1));
                    }
                    Ok(kind) if !kind.is_symlink() && !kind.is_fifo() => {}
                    _ => return true,
                }
            }
        }
        false
    }

    /// Links and pipes among single objects. Those that were there before may have come with their directory
    /// from elsewhere, so they count as well.
    pub(super) fn add_odd_objects(&mut self, directory: &Path, of: Option<&Path>) {
        match odd_in(directory, MOST_ENTRIES) {
            Ok(odd) if odd.links.len() <= MOST_NEW => self.add_odd(&odd, of),
            _ => self.add_whole(directory, REDIRECTION, of),
        }
    }

    /// Whether `objects` is another directory than before the session. What was moved there with it has
    /// kept its times.
    pub(super) fn is_replaced(&self, objects: &Path) -> bool {
        let was = |before: &Baseline| before.objects.get(objects).copied();
        self.before
            .is_some_and(|before| was(before) != identity(objects))
    }

    /// Whether something may have come into a directory of single objects since the session began. They are
    /// many, so those that nobody has touched are not listed.
    pub(super) fn is_touched(&self, path: &Path) -> bool {
        self.before.is_some_and(|before| {
            fs::symlink_metadata(path).is_ok_and(|metadata| changed(&metadata) >= before.taken)
        })
    }
}

/// Which directory it is, if it is one and no link.
pub(crate) fn identity(directory: &Path) -> Option<Identity> {
    let metadata = fs::symlink_metadata(directory).ok();
    let metadata = metadata.filter(fs::Metadata::is_dir)?;
    Some((metadata.dev(), metadata.ino()))
}

/// Where Git LFS looks for its objects, if git looks for those of git in a directory.
pub(super) fn lfs_beside(objects: &Path) -> PathBuf {
    objects.parent().unwrap_or(objects).join("lfs/objects")
}

/// So many lines of lists are followed.
const MOST_LISTED: usize = 64;
/// So many files are looked at in what a new list names.
const MOST_LOOKED_AT: usize = 100_000;

fn listed<'a>(objects: &'a Path, list: &'a [u8]) -> impl Iterator<Item = PathBuf> + 'a {
    let lines = list.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    lines.map(|line| objects.join(OsStr::from_bytes(line)))
}

/// What is no file in a directory, of which there may be very many.
#[derive(Debug, Default)]
pub(crate) struct Odd {
    /// Links, and with them pipes, of which this is said.
    pub(crate) links: Vec<(PathBuf, bool)>,
    pub(crate) directories: Vec<PathBuf>,
}

/// Looks at the kinds of all entries, as the directory itself tells them, if these are at most so many.
pub(crate) fn odd_in(directory: &Path, most: usize) -> io::Result<Odd> {
    let mut listing = Listing::open(directory.to_owned())?;
    let mut odd = Odd::default();
    while listing.read_more(&mut odd)? {
        if listing.seen > most {
            break;
        }
    }
    if listing.seen > most {
        return Err(Errno::FBIG.into());
    }
    Ok(odd)
}

/// A directory of which a part has been read.
#[derive(Debug)]
pub(crate) struct Listing {
    directory: PathBuf,
    opened: OwnedFd,
    seen: usize,
}

impl Listing {
    /// Without following a link in its place.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || open(&directory, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::ACCESS) => {
                nofollow::open_up(&nofollow::pin(&directory)?)?;
                open()
            }
            opened => opened,
        }?;
        Ok(Self {
            directory,
            opened,
            seen: 0,
        })
    }

    /// Reads some hundreds of entries. Whether there may be more.
    pub(crate) fn read_more(&mut self, odd: &mut Odd) -> io::Result<bool> {
        const SOME: usize = 512;
        let until = self.seen + SOME;
        let mut buffer = Vec::with_capacity(1 << 15);
        let mut entries = RawDir::new(&self.opened, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            self.seen += 1;
            let name = entry.file_name().to_bytes();
            let kind = match entry.file_type() {
                // Not every file system says so here.
                FileType::Unknown => {
                    let stat = statat(&self.opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                kind => kind,
            };
            let path = || self.directory.join(OsStr::from_bytes(name));
            match kind {
                FileType::Symlink | FileType::Fifo => {
                    odd.links.push((path(), kind == FileType::Fifo));
                }
                FileType::Directory if name != b"." && name != b".." => {
                    odd.directories.push(path());
                }
                _ => {}
            }
            // What is left in the buffer would be lost.
            if self.seen >= until && entries.is_buffer_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a directory holds single objects: there are many, git writes no file twice, and takes
/// nothing for an object that is none.
pub(super) fn is_of_single(directory: &Path, objects: &Path) -> bool {
    let Ok(name) = directory.strip_prefix(objects) else {
        return false;
    };
    let name = name.as_os_str().as_encoded_bytes();
    name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}
