//! Services of the two loopbacks: the host's that the agent may use, and the agent's that
//! the host may see.
//!
//! A port of the host appears in the jail by way of the held SYN, like any destination
//! (`hold.rs`). A port of the jail appears on the host as a listener of the gate's, on the
//! loopback addresses only.

use std::{
    cell::RefCell,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener as StdTcpListener},
    rc::Rc,
    time::Duration,
};

use stockade_jail::SocketFactory;
use stockade_policy::Flow;
use stockade_sys::transparent::{Family, is_missing_family};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::spawn_local,
    time::sleep,
};

use super::{
    Tcp,
    connection::Connection,
    inspect::{farewell, forbidden, send},
    rebinding::{self, First, is_own},
    relay::{relay, reset},
};
use crate::{
    audit::denials::{Ruling, Subject, shown},
    descriptors::spare,
};

/// What crosses between the loopbacks.
#[derive(Debug, Default)]
pub struct Local {
    /// Ports of the host's loopback that appear in the jail.
    pub host_ports: Vec<u16>,
    /// Ports of the jail that appear on the host.
    pub publish: Vec<Publish>,
}

/// A port of the jail's loopback, and where the host sees it.
#[derive(Debug)]
pub struct Publish {
    pub(crate) listeners: Vec<StdTcpListener>,
    /// On the host's loopback.
    pub(crate) outside: u16,
    pub(crate) inside: u16,
}

impl Publish {
    /// Takes the port `outside` of the host's loopback, IPv4 and, where the host has it,
    /// IPv6.
    ///
    /// # Errors
    /// If the port is taken or not permitted.
    pub fn bind(outside: u16, inside: u16) -> io::Result<Self> {
        let mut listeners = vec![StdTcpListener::bind((Ipv4Addr::LOCALHOST, outside))?];
        match StdTcpListener::bind((Ipv6Addr::LOCALHOST, outside)) {
            Ok(listener) => listeners.push(listener),
            // A host without IPv6 has no such address.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) if is_missing_family(&error) => {}
            Err(error) => return Err(error),
        }
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        Ok(Self {
            listeners,
            outside,
            inside,
        })
    }
}

/// A listener on the host's loopback, and all that its connections need.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) listener: TcpListener,
    pub(crate) outside: u16,
    pub(crate) inside: u16,
    pub(crate) socket_factory: Rc<RefCell<SocketFactory>>,
    pub(crate) tcp: Rc<Tcp>,
    /// The name of the machine.
    pub(crate) machine: Rc<str>,
}

pub(crate) async fn serve(published: Published) {
    let published = Rc::new(published);
    loop {
        // Out of descriptors, or the client is gone already: the next may fare better.
        let accepted = published.listener.accept().await;
        let Ok((outer, client)) = accepted.and_then(|(outer, client)| Ok((spare(outer)?, client)))
        else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let published = Rc::clone(&published);
        spawn_local(async move {
            match connect(&published.socket_factory, published.inside).await {
                Ok(inner) => published.join(inner, outer, client).await,
                // Nobody listens inside, or not yet.
                Err(_) => reset(outer),
            }
        });
    }
}

impl Published {
    async fn join(&self, inner: TcpStream, mut outer: TcpStream, client: SocketAddr) {
        let Some(flow) = inner.peer_addr().ok().and_then(Flow::tcp) else {
            return reset(outer);
        };
        let mut read = Vec::new();
        let stranger = match rebinding::first(&inner, &mut outer, &mut read).await {
            First::Request(host) if !is_own(&host, &self.machine) => Some(host),
            First::Endless => Some("an endless request".to_owned()),
            First::Request(_) | First::Other => None,
        };
        if let Some(host) = stranger {
            let host = shown(&host);
            let why = format!(
                "port {} is published for this machine, and a web page of another site could \
                 call it by that name; use http://localhost:{} or add the name to /etc/hosts \
                 for 127.0.0.1",
                self.outside, self.outside
            );
            let message = forbidden(403, &format!("{host}: {why}"));
            let subject = Subject::Claim(flow, host);
            self.tcp.judge.denied(subject, Ruling::Malformed(why), None);
            return farewell(outer, &message).await;
        }
        if !self.tcp.judge.may_be_logged() {
            return reset(outer);
        }
        let flow = self.tcp.judge.published(flow, client, self.outside);
        if send(&inner, &read).await.is_err() {
            return reset(outer);
        }
        flow.received(read.len());
        drop(read);
        let connection = Connection::between(inner, outer, flow);
        relay(connection, Some(&self.tcp.carriers), None).await;
    }
}

/// Servers listen on either family; browsers try both, too.
async fn connect(socket_factory: &RefCell<SocketFactory>, port: u16) -> io::Result<TcpStream> {
    let attempt = async |family: Family, address: SocketAddr| {
        let socket = socket_factory.borrow().stream(family)?;
        let stream = TcpSocket::from_std_stream(socket).connect(address).await?;
        // Without this option the connection only gets slower.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    };
    match attempt(Family::V4, (Ipv4Addr::LOCALHOST, port).into()).await {
        Err(_) => attempt(Family::V6, (Ipv6Addr::LOCALHOST, port).into()).await,
        connected => connected,
    }
}
