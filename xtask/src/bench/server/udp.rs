//! Datagrams: sent back, or counted.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use stockade_world::Host;

/// When nothing has come for this long, nothing is under way any more.
const QUIET: Duration = Duration::from_millis(150);
/// Longest wait for that.
const PATIENCE: Duration = Duration::from_secs(5);

fn bind(host: &Host) -> Result<(UdpSocket, SocketAddr)> {
    let address: IpAddr = host.v4();
    let socket = host
        .enter(|| UdpSocket::bind((address, 0)))
        .context("cannot bind in the world")?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

pub(super) fn echo(host: &Host) -> Result<SocketAddr> {
    let (socket, address) = bind(host)?;
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            // Errors are those of earlier answers: a client's port was closed.
            if let Ok((count, peer)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(buffer.get(..count).unwrap_or_default(), peer);
            }
        }
    });
    Ok(address)
}

/// Counts what arrives.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    arrivals: Arc<Mutex<Arrivals>>,
}

#[derive(Clone, Copy, Default)]
struct Arrivals {
    count: u64,
    first_and_last: Option<(Instant, Instant)>,
}

impl Sink {
    pub(super) fn start(host: &Host) -> Result<Self> {
        let (socket, address) = bind(host)?;
        let arrivals: Arc<Mutex<Arrivals>> = Arc::default();
        let sink = Self {
            address,
            arrivals: Arc::clone(&arrivals),
        };
        thread::spawn(move || {
            let mut buffer = [0; 2048];
            loop {
                if socket.recv(&mut buffer).is_ok() {
                    let now = Instant::now();
                    let mut arrivals = lock(&arrivals);
                    arrivals.count += 1;
                    let first = arrivals.first_and_last.map_or(now, |(first, _)| first);
                    arrivals.first_and_last = Some((first, now));
                }
            }
        });
        Ok(sink)
    }

    pub(crate) fn reset(&self) {
        *lock(&self.arrivals) = Arrivals::default();
    }

    /// Datagrams per second between the first and the last, once no more come.
    pub(crate) fn rate(&self) -> f64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let arrivals = *lock(&self.arrivals);
            let Some((first, last)) = arrivals.first_and_last else {
                return 0.0;
            };
            if last.elapsed() > QUIET || Instant::now() > deadline {
                let seconds = (last - first).as_secs_f64();
                return if seconds > 0.0 {
                    arrivals.count as f64 / seconds
                } else {
                    0.0
                };
            }
            thread::sleep(QUIET / 4);
        }
    }
}

fn lock(arrivals: &Mutex<Arrivals>) -> MutexGuard<'_, Arrivals> {
    arrivals.lock().unwrap_or_else(PoisonError::into_inner)
}
