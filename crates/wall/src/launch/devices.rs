//! The sandbox's `/dev`.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::fs::symlinkat;
use stockade_sys::mount::Tree;

use super::staging::Stage;
use crate::nofollow::pin;

/// The host's, each of which works alike for everybody.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// What programs expect beside them.
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
    ("core", "/proc/kcore"),
];

/// By this name, programs find the terminal that they were started on: under its own name, it is not
/// among the sandbox's.
const CONSOLE: &str = "console";

impl Stage {
    /// Fills an empty directory.
    pub(super) fn devices(&self, dev: &Tree, terminal: Option<&OwnedFd>) -> io::Result<()> {
        for (link, text) in LINKS {
            symlinkat(*text, dev, *link)?;
        }
        Tree::terminals()?.attach(Self::make_in(dev, Path::new("pts"), true)?)?;
        for name in DEVICES {
            self.device(dev, name, &pin(&Path::new("/dev").join(name))?)?;
        }
        terminal.map_or(Ok(()), |terminal| self.device(dev, CONSOLE, terminal))
    }

    /// It can be written to. But its mode and owner, which are those of the host's, cannot be changed.
    fn device(&self, dev: &Tree, name: &str, device: &OwnedFd) -> io::Result<()> {
        let tree = Tree::view(device)?;
        tree.make_read_only()?;
        tree.attach(Self::make_in(dev, Path::new(name), false)?)
    }
}
