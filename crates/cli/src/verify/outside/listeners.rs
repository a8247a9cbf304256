//! Listeners on the loopback and on the addresses of this machine. What is sent to them stays
//! on it.

use std::{
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context as _, Result};
use stockade_sys::interfaces::interfaces;

use crate::verify::{
    messages::{Target, Transport, Tried},
    probe,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verify) enum Role {
    Loopback,
    /// One of the machine's addresses.
    Address,
    /// The session is to reach it, by a port or rule that verify gives it. It shows that the
    /// prober would have reached the others, were they open.
    Control,
}

pub(in crate::verify) struct Listener {
    pub(in crate::verify) role: Role,
    pub(in crate::verify) target: Target,
    /// It was reached from here.
    pub(in crate::verify) works: bool,
    /// Somebody has come since then.
    reached: Arc<AtomicBool>,
}

impl Listener {
    pub(in crate::verify) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

pub(in crate::verify) struct Listeners(pub(in crate::verify) Vec<Listener>);

/// More addresses need not be tried; each costs time where nothing answers.
const ADDRESSES: usize = 8;

impl Listeners {
    pub(in crate::verify) fn open(token: &str) -> Result<Self> {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
        let own = own_addresses();
        let mut all = Vec::new();
        let both = [Transport::Tcp, Transport::Udp];
        for (role, addresses) in [(Role::Loopback, &loopback[..]), (Role::Address, &own)] {
            for address in addresses {
                for transport in both {
                    // A machine without IPv6 has no such address.
                    all.extend(listen(role, transport, *address, token).ok());
                }
            }
        }
        all.push(
            listen(Role::Control, Transport::Tcp, loopback[0], token)
                .context("cannot listen on 127.0.0.1")?,
        );
        let outward = own.iter().find(|address| address.is_ipv4());
        if let Some(address) = outward {
            all.extend(listen(Role::Control, Transport::Udp, *address, token).ok());
        }
        for listener in &mut all {
            let said = probe::ask(&listener.target);
            listener.works = said == Tried::Worked(token.to_owned());
            listener.reached.store(false, Ordering::Relaxed);
        }
        Ok(Self(all))
    }

    pub(in crate::verify) fn targets(&self) -> Vec<Target> {
        self.0.iter().map(|listener| listener.target).collect()
    }

    /// The target of the control of this kind.
    pub(in crate::verify) fn control(&self, transport: Transport) -> Option<SocketAddr> {
        let is_it = |it: &&Listener| it.role == Role::Control && it.target.transport == transport;
        self.0.iter().find(is_it).map(|it| it.target.address)
    }
}

/// The addresses of this machine, without those that need a zone.
pub(in crate::verify) fn own_addresses() -> Vec<IpAddr> {
    let link_local = |address: &IpAddr| match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let all = interfaces().unwrap_or_default();
    let mut own: Vec<IpAddr> = all
        .into_iter()
        .filter(|interface| !interface.is_loopback && interface.is_up)
        .filter_map(|interface| interface.address)
        .filter(|address| !link_local(address))
        .collect();
    own.sort_unstable();
    own.dedup();
    own.truncate(ADDRESSES);
    own
}

/// Listens on a thread of its own, for as long as this process lives, and says the token to
/// whoever comes.
fn listen(role: Role, transport: Transport, address: IpAddr, token: &str) -> io::Result<Listener> {
    let reached = Arc::new(AtomicBool::new(false));
    let (noted, token) = (Arc::clone(&reached), token.to_owned());
    let address = match transport {
        Transport::Tcp => {
            let listener = TcpListener::bind((address, 0))?;
            let bound = listener.local_addr()?;
            thread::Builder::new().spawn(move || {
                for stream in listener.incoming().flatten() {
                    noted.store(true, Ordering::Relaxed);
                    // Whoever does not listen has come all the same.
                    let _ = { stream }.write_all(token.as_bytes());
                }
            })?;
            bound
        }
        Transport::Udp => {
            let socket = UdpSocket::bind((address, 0))?;
            let bound = socket.local_addr()?;
            thread::Builder::new().spawn(move || {
                let mut question = [0; 64];
                while let Ok((_, from)) = socket.recv_from(&mut question) {
                    noted.store(true, Ordering::Relaxed);
                    let _ = socket.send_to(token.as_bytes(), from);
                }
            })?;
            bound
        }
    };
    Ok(Listener {
        role,
        target: Target { transport, address },
        works: false,
        reached,
    })
}
