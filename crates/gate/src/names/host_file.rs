//! Files of the host that the gate answers from.

use std::{cell::RefCell, fs, io, os::unix::fs::MetadataExt as _, rc::Rc};

/// What such a file says. Nothing by default.
pub(crate) trait HostFileContent: Default {
    const PATH: &str;

    fn read() -> io::Result<Self>;
}

/// A file, read again when it changes. A change counts from the next question on.
#[derive(Debug, Default)]
pub(crate) struct HostFile<T>(RefCell<Option<Known<T>>>);

#[derive(Debug)]
struct Known<T> {
    version: Version,
    content: Rc<T>,
}

/// What tells one state of a file from another. The time alone would not: its clock ticks
/// slowly.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    changed: (i64, i64),
    length: u64,
    inode: u64,
}

impl<T: HostFileContent> HostFile<T> {
    /// A file that is missing or cannot be read says nothing.
    pub(crate) fn current(&self) -> Rc<T> {
        let mut known = self.0.borrow_mut();
        *known = look(known.take()).ok();
        let content = known.as_ref().map(|known| Rc::clone(&known.content));
        content.unwrap_or_default()
    }
}

fn look<T: HostFileContent>(known: Option<Known<T>>) -> io::Result<Known<T>> {
    let file = fs::metadata(T::PATH)?;
    let version = Version {
        changed: (file.ctime(), file.ctime_nsec()),
        length: file.len(),
        inode: file.ino(),
    };
    let content = match known {
        Some(known) if known.version == version => known.content,
        _ => Rc::new(T::read()?),
    };
    Ok(Known { version, content })
}
