//! The way to what settings name. Whoever can put a link on it chooses what git reads or runs there.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use super::controls::{Collection, Kind};
use crate::{leftovers::content::Content, tables::autorun::REDIRECTION};

/// As many links are followed as the kernel follows.
const MOST_LINKS: usize = 40;

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
}
