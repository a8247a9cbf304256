//! The sockets of a desktop, listening for real.
//!
//! `connect()` is the attack, so each of them accepts, notes which one was
//! reached, and hangs up. One thread serves them all.

use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, thread};

use rustix::event::{PollFd, PollFlags, poll};

use crate::error::{Doing, Result};
use crate::net::Host;
use crate::wait::Seen;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketName {
    Path(PathBuf),
    /// In the abstract namespace, without the leading NUL. Reachable from the
    /// laptop's network namespace only.
    Abstract(String),
}

/// A listening unix socket that stands for a service of the desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecoySocket {
    pub service: &'static str,
    pub name: SocketName,
}

impl DecoySocket {
    /// Connects as a program of the laptop would; for positive controls.
    pub fn connect(&self, laptop: &Host) -> io::Result<UnixStream> {
        match &self.name {
            SocketName::Path(path) => UnixStream::connect(path),
            SocketName::Abstract(name) => laptop.enter(|| {
                UnixStream::connect_addr(&SocketAddr::from_abstract_name(name.as_bytes())?)
            }),
        }
    }
}

const PATHS: [(&str, &str); 17] = [
    ("ssh-agent", "/tmp/ssh-decoy/agent.4242"),
    ("docker", "/run/docker.sock"),
    ("podman", "/run/podman/podman.sock"),
    ("containerd", "/run/containerd/containerd.sock"),
    ("system D-Bus", "/run/dbus/system_bus_socket"),
    ("nscd", "/run/nscd/socket"),
    ("systemd", "/run/systemd/private"),
    (
        "resolved varlink",
        "/run/systemd/resolve/io.systemd.Resolve",
    ),
    ("X11", "/tmp/.X11-unix/X0"),
    ("tmux", "/tmp/tmux-1000/default"),
    ("session D-Bus", "/run/user/1000/bus"),
    ("Wayland", "/run/user/1000/wayland-0"),
    ("gpg-agent", "/run/user/1000/gnupg/S.gpg-agent"),
    ("keyring", "/run/user/1000/keyring/ssh"),
    ("rootless podman", "/run/user/1000/podman/podman.sock"),
    ("VS Code", "/run/user/1000/vscode-ipc-decoy.sock"),
    ("user systemd", "/run/user/1000/systemd/private"),
];

const ABSTRACT: [(&str, &str); 2] = [
    ("X11", "/tmp/.X11-unix/X0"),
    ("session manager", "/tmp/.ICE-unix/4242"),
];

pub(super) fn listen(host: &Host, uid: u32) -> Result<(Vec<DecoySocket>, Seen<SocketName>)> {
    let mut listeners = Vec::new();
    let mut sockets = Vec::new();
    for (service, path) in PATHS {
        let path = PathBuf::from(path.replace("1000", &uid.to_string()));
        let listener = bind(&path).doing(format_args!("listen on {}", path.display()))?;
        listeners.push(listener);
        sockets.push(DecoySocket {
            service,
            name: SocketName::Path(path),
        });
    }
    for (service, name) in ABSTRACT {
        let listener = host
            .enter(|| UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?))
            .doing(format_args!("listen on @{name}"))?;
        listeners.push(listener);
        sockets.push(DecoySocket {
            service,
            name: SocketName::Abstract(name.to_owned()),
        });
    }
    let seen = Seen::default();
    let names: Vec<_> = sockets.iter().map(|socket| socket.name.clone()).collect();
    let log = seen.clone();
    thread::spawn(move || serve(&listeners, &names, &log));
    Ok((sockets, seen))
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    UnixListener::bind(path)
}

fn serve(listeners: &[UnixListener], names: &[SocketName], seen: &Seen<SocketName>) {
    loop {
        let mut ready: Vec<PollFd<'_>> = listeners
            .iter()
            .map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN))
            .collect();
        if poll(&mut ready, None).is_err() {
            return;
        }
        let hits: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        for ((listener, name), hit) in listeners.iter().zip(names).zip(hits) {
            if hit && listener.accept().is_ok() {
                seen.push(name.clone());
            }
        }
    }
}
