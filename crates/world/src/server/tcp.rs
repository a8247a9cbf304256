//! TCP servers that do one simple thing.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use socket2::SockRef;

use super::listen::{Endpoint, Stop, accept_loop, plain, tcp};
use crate::error::Result;
use crate::net::Host;
use crate::wait::Seen;

/// A connection that a server accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    pub peer: SocketAddr,
    /// The address it was made to.
    pub local: SocketAddr,
}

#[derive(Clone, Debug)]
pub struct TcpServer {
    address: SocketAddr,
    connections: Seen<Connection>,
    received: Arc<AtomicU64>,
    stop: Stop,
}

impl TcpServer {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn connections(&self) -> &Seen<Connection> {
        &self.connections
    }

    /// How many bytes its clients have sent, over all connections.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }

    /// Stops listening; open connections go on.
    pub fn stop(&self) {
        self.stop.stop();
    }
}

impl Host {
    /// Listens and calls `serve` for each connection, on a thread of its own.
    pub fn tcp(
        &self,
        endpoint: impl Into<Endpoint>,
        serve: impl Fn(&mut Stream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<TcpServer> {
        let endpoint = endpoint.into();
        let listener = tcp(self, endpoint)?;
        let server = TcpServer {
            address: endpoint.public(self, bound_address(&listener)),
            connections: Seen::default(),
            received: Arc::default(),
            stop: Stop::new()?,
        };
        let handle = server.clone();
        let serve = Arc::new(serve);
        self.spawn(move || {
            accept_loop(&listener, &handle.stop, |socket, peer| {
                let local = socket.local_addr().map_or(peer, plain);
                handle.connections.push(Connection { peer, local });
                let mut stream = Stream {
                    socket,
                    received: Arc::clone(&handle.received),
                };
                let serve = Arc::clone(&serve);
                // A client that goes away ends its connection, nothing else.
                thread::spawn(move || drop(serve(&mut stream)));
            });
        });
        Ok(server)
    }

    /// Sends back what it gets; ends when the client does.
    pub fn tcp_echo(&self, endpoint: impl Into<Endpoint>) -> Result<TcpServer> {
        self.tcp(endpoint, |stream| {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = stream.read(&mut buffer)?;
                if count == 0 {
                    return stream.socket.shutdown(Shutdown::Write);
                }
                stream.write_all(buffer.get(..count).unwrap_or_default())?;
            }
        })
    }

    /// Reads everything and says nothing; see [`TcpServer::received`].
    pub fn tcp_sink(&self, endpoint: impl Into<Endpoint>) -> Result<TcpServer> {
        self.tcp(endpoint, |stream| {
            io::copy(stream, &mut io::sink()).map(drop)
        })
    }

    /// Sends `count` zero bytes to whoever connects, then closes.
    pub fn tcp_source(&self, endpoint: impl Into<Endpoint>, count: u64) -> Result<TcpServer> {
        self.tcp(endpoint, move |stream| {
            let mut left = count;
            let chunk = vec![0; 64 * 1024];
            while left > 0 {
                let size = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
                stream.write_all(chunk.get(..size).unwrap_or_default())?;
                left -= u64::try_from(size).unwrap_or(left);
            }
            stream.socket.shutdown(Shutdown::Write)
        })
    }

    /// Speaks first, as ssh and smtp servers do, then echoes.
    pub fn tcp_banner(
        &self,
        endpoint: impl Into<Endpoint>,
        banner: impl Into<Vec<u8>>,
    ) -> Result<TcpServer> {
        let banner = banner.into();
        self.tcp(endpoint, move |stream| {
            stream.write_all(&banner)?;
            let mut writer = stream.socket.try_clone()?;
            io::copy(stream, &mut writer)?;
            stream.socket.shutdown(Shutdown::Write)
        })
    }

    /// Accepts, and resets the connection at once.
    pub fn tcp_reset(&self, endpoint: impl Into<Endpoint>) -> Result<TcpServer> {
        self.tcp(endpoint, |stream| {
            // Closing a socket that must not linger sends RST, not FIN.
            SockRef::from(&stream.socket).set_linger(Some(std::time::Duration::ZERO))
        })
    }
}

fn bound_address(listener: &std::net::TcpListener) -> SocketAddr {
    match listener.local_addr() {
        Ok(address) => address,
        Err(error) => panic!("a listening socket has an address: {error}"),
    }
}

/// A connection as its server sees it; counts what it reads.
#[derive(Debug)]
pub struct Stream {
    pub socket: TcpStream,
    received: Arc<AtomicU64>,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(buffer)?;
        let bytes = u64::try_from(count).unwrap_or_default();
        self.received.fetch_add(bytes, Ordering::SeqCst);
        Ok(count)
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.socket.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
