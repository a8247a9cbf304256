//! Echo, answer and close, and hold.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};
use stockade_world::Host;

use super::{ANSWER, REQUEST};

const BACKLOG: i32 = 4096;
/// More than any column has clients.
const ANSWERERS: usize = 8;
/// A client that stops in the middle of a request must not take an answerer
/// with it.
const TIMEOUT: Duration = Duration::from_secs(2);

fn listen(host: &Host) -> Result<(Arc<TcpListener>, SocketAddr)> {
    let address: IpAddr = host.v4();
    let bind = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(address, 0).into())?;
        socket.listen(BACKLOG)?;
        Ok::<_, io::Error>(TcpListener::from(socket))
    };
    let listener = host.enter(bind).context("cannot listen in the world")?;
    let address = listener.local_addr()?;
    Ok((Arc::new(listener), address))
}

/// Sends back what it gets, one thread for each connection.
pub(super) fn echo(host: &Host) -> Result<SocketAddr> {
    let (listener, address) = listen(host)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || repeat(stream));
        }
    });
    Ok(address)
}

fn repeat(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(buffer.get(..count).unwrap_or_default())?;
    }
}

/// Reads a request, answers, closes. Closing first leaves the waiting time
/// that TCP demands with the server: clients never run out of ports.
pub(super) fn answer(host: &Host) -> Result<SocketAddr> {
    let (listener, address) = listen(host)?;
    for _ in 0..ANSWERERS {
        let listener = Arc::clone(&listener);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = [0; REQUEST];
                // A client that goes away harms nobody else.
                let _ = stream
                    .set_read_timeout(Some(TIMEOUT))
                    .and_then(|()| stream.read_exact(&mut request))
                    .and_then(|()| stream.write_all(&[b'!'; ANSWER]));
            }
        });
    }
    Ok(address)
}

/// Answers one byte on each connection and keeps it open.
pub(crate) struct Holder {
    pub(crate) address: SocketAddr,
    held: Arc<Mutex<Vec<TcpStream>>>,
}

impl Holder {
    pub(super) fn start(host: &Host) -> Result<Self> {
        let (listener, address) = listen(host)?;
        let held: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let holder = Self {
            address,
            held: Arc::clone(&held),
        };
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let greeted = stream
                    .set_read_timeout(Some(TIMEOUT))
                    .and_then(|()| stream.read_exact(&mut [0]))
                    .and_then(|()| stream.write_all(b"!"));
                if greeted.is_ok() {
                    held.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(stream);
                }
            }
        });
        Ok(holder)
    }

    pub(crate) fn release(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Vec::new();
    }
}
