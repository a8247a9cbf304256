//! A host: a network namespace that threads can enter.

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use rustix::fs::{Mode, OFlags, openat};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::ip_in;
use crate::error::{Doing, Result};

/// A host of the world. Cheap to clone; all clones are the same host.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) name: String,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) netns: Arc<OwnedFd>,
    /// `/proc/sys` as it was before a container shape made it read-only.
    pub(super) sysctls: Arc<OwnedFd>,
}

impl Host {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// The first address.
    pub fn address(&self) -> IpAddr {
        self.first("address", |_| true)
    }

    /// The first IPv4 address.
    pub fn v4(&self) -> IpAddr {
        self.first("IPv4 address", IpAddr::is_ipv4)
    }

    /// The first IPv6 address.
    pub fn v6(&self) -> IpAddr {
        self.first("IPv6 address", IpAddr::is_ipv6)
    }

    fn first(&self, what: &str, matches: impl Fn(&IpAddr) -> bool) -> IpAddr {
        match self.addresses.iter().find(|address| matches(address)) {
            Some(address) => *address,
            None => panic!("host {} has no {what}", self.name),
        }
    }

    /// Runs `work` on a thread of this host: sockets it makes, and threads and
    /// processes it starts, belong to the host for ever.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.move_in();
                work()
            });
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Starts a thread that stays on this host.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        let host = self.clone();
        thread::spawn(move || {
            host.move_in();
            work();
        });
    }

    fn move_in(&self) {
        // Cannot fail in a built world: we hold every capability over a
        // namespace that we made. If it does, nothing may go on: the thread
        // would work in the wrong network.
        if let Err(errno) =
            move_into_link_name_space(self.netns.as_fd(), Some(LinkNameSpaceType::Network))
        {
            panic!("cannot enter host {}: {errno}", self.name);
        }
    }

    /// Runs one `ip` command on this host: `host.ip("route add 10.9.0.0/16 dev eth0")`.
    pub fn ip(&self, command: &str) -> Result<()> {
        ip_in(&self.name, &[command.to_owned()])
    }

    /// Sets a network sysctl of this host: `host.sysctl("net/ipv4/tcp_syn_retries", "1")`.
    pub fn sysctl(&self, path: &str, value: &str) -> Result<()> {
        self.sysctl_all(&[(path, value)])
    }

    pub(super) fn sysctl_all(&self, settings: &[(&str, &str)]) -> Result<()> {
        // The directory shows the settings of the thread that looks.
        self.enter(|| {
            for (path, value) in settings {
                openat(
                    self.sysctls.as_fd(),
                    *path,
                    OFlags::WRONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                )
                .map_err(std::io::Error::from)
                .and_then(|file| File::from(file).write_all(value.as_bytes()))
                .doing(format_args!("set {path} to {value} on {}", self.name))?;
            }
            Ok(())
        })
    }
}
