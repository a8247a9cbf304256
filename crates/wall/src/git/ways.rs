//! The way to what settings name. Whoever can put a link on it chooses what git reads or runs there.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use super::{
    controls::{Collection, Kind, MOST_NAMED},
    repositories::modules::GITFILE,
    settings::Setting,
};
use crate::{leftovers::content::Content, nofollow, tables::autorun::REDIRECTION};

/// As many links are followed as the kernel follows.
const MOST_LINKS: usize = 40;

/// Where git may find remotes as paths, from a worktree: those whose address is one, and those that are not there
/// any more, or that people expect. Git takes their names for paths, and adds an end if there is nothing without.
pub(crate) fn remotes_below<'a>(
    root: &Path,
    settings: impl Iterator<Item = &'a Setting> + Clone,
) -> BTreeSet<PathBuf> {
    const USUAL: [&str; 2] = ["origin", "upstream"];
    let paths = settings.clone().filter_map(Setting::remote_at);
    let names = settings.filter_map(Setting::any_remote);
    let names = names.map(|name| Path::new(OsStr::from_bytes(name)));
    // Each branch names one. They are few, and those of before a session come first.
    let mut seen = BTreeSet::new();
    let named = paths.chain(names).filter(|path| seen.insert(*path));
    let all = USUAL.map(Path::new).into_iter();
    let all = all.chain(named.take(MOST_NAMED));
    let with_ends = |path: &Path| {
        let path = root.join(path).into_os_string();
        ["", ".git"].map(|end| {
            let mut path = path.clone();
            path.push(end);
            PathBuf::from(path)
        })
    };
    all.flat_map(with_ends).collect()
}

impl Collection<'_> {
    /// A path that settings name, without the links on the way; what it is itself may be one. Each of
    /// them that a session can write counts. None if one is not as it was: with that put back, there is
    /// nothing else to be put back behind it.
    pub(super) fn reached(&mut self, path: &Path, of: Option<&Path>) -> Option<PathBuf> {
        let (real, links) = self.way(path);
        let mut is_as_it_was = true;
        for link in links {
            let now = fs::read_link(&link).ok().map(Content::Link);
            let is_same = |content: &Content| now.as_ref().is_none_or(|now| now.is_same(content));
            is_as_it_was &= self
                .before
                .is_none_or(|before| before.contents.get(&link).is_some_and(is_same));
            self.add(&link, Kind::Whole(REDIRECTION), of);
        }
        is_as_it_was.then_some(real)
    }

    /// The same, as it will be when all is put back, and the places of the links that a session can write:
    /// of those that there are, and of those that there were.
    pub(super) fn way(&self, path: &Path) -> (PathBuf, Vec<PathBuf>) {
        let (mut links, mut followed) = (Vec::new(), 0);
        let mut real = PathBuf::from("/");
        let mut way = path.to_owned();
        loop {
            let mut components = way.components();
            let Some(component) = components.next() else {
                return (real, links);
            };
            let rest = components.as_path().to_owned();
            let is_last = rest.as_os_str().is_empty();
            way = match component {
                Component::RootDir => {
                    real = "/".into();
                    rest
                }
                Component::ParentDir => {
                    real.pop();
                    rest
                }
                Component::CurDir | Component::Prefix(_) => rest,
                Component::Normal(name) => {
                    real.push(name);
                    let to = match followed < MOST_LINKS && !is_last {
                        true => self.link_at(&real, &mut links),
                        false => None,
                    };
                    match to {
                        Some(to) => {
                            followed += 1;
                            real.pop();
                            to.join(rest)
                        }
                        None => rest,
                    }
                }
            };
        }
    }

    /// Where a link leads when all is put back.
    fn link_at(&self, path: &Path, links: &mut Vec<PathBuf>) -> Option<PathBuf> {
        let now = fs::read_link(path).ok();
        if !self.is_writable(path) || self.writable.iter().any(|top| top == path) {
            return now;
        }
        let Some(before) = self.before else {
            links.extend(now.is_some().then(|| path.to_owned()));
            return now;
        };
        let was = match before.contents.get(path) {
            Some(Content::Link(to)) => Some(to.clone()),
            _ => None,
        };
        links.extend((now.is_some() || was.is_some()).then(|| path.to_owned()));
        was
    }

    /// What has git find another repository at a path than the one that lies there: links on the way, and a
    /// file that names a directory.
    pub(super) fn add_way_to_remote(&mut self, path: &Path, of: Option<&Path>) {
        if fs::symlink_metadata(path).is_err() {
            return;
        }
        let head = self.reached(&path.join("HEAD"), of);
        let real = head.as_deref().and_then(Path::parent);
        if let Some(real) = real.filter(|it| self.is_writable(it))
            && nofollow::begins_with(real, GITFILE)
        {
            self.add(real, Kind::Whole(REDIRECTION), of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::settings::parse;

    #[test]
    fn many_branches_of_one_remote_hide_no_other() {
        use std::fmt::Write as _;
        let mut text = String::from("[remote \"a\"] url = https://example.com/a\n");
        for number in 0..2 * MOST_NAMED {
            writeln!(text, "[branch \"{number}\"] remote = a").unwrap();
        }
        text.push_str("[branch \"x\"] remote = gone\n");
        let settings = parse(text.as_bytes()).unwrap();
        let found = remotes_below(Path::new("/w"), settings.iter());
        assert!(found.contains(Path::new("/w/gone.git")));
    }
}
