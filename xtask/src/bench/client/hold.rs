//! Many connections that stay open.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::tcp;
use crate::bench::task::Reply;

/// They share the number of connections and open them at the same time.
const THREADS: usize = 4;

#[derive(Default)]
pub(super) struct Held(Vec<TcpStream>);

impl Held {
    /// A connection counts once a byte has come back through it.
    pub(super) fn open(&mut self, server: SocketAddr, count: usize, seconds: f64) -> Result<Reply> {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let all = Rlimit {
            current: maximum,
            maximum,
        };
        setrlimit(Resource::Nofile, all)?;
        let deadline = Instant::now() + Duration::from_secs_f64(seconds);
        let shares: Vec<(Vec<TcpStream>, Option<String>)> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|number| (count + number) / THREADS)
                .map(|share| scope.spawn(move || open_share(server, share, deadline)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_default())
                .collect()
        });
        let mut complaint = None;
        for (streams, reason) in shares {
            self.0.extend(streams);
            complaint = complaint.or(reason);
        }
        Ok(Reply::Held {
            count: self.0.len(),
            complaint,
        })
    }

    pub(super) fn release(&mut self) {
        self.0 = Vec::new();
    }
}

/// What was opened, and why it is not more.
fn open_share(
    server: SocketAddr,
    count: usize,
    deadline: Instant,
) -> (Vec<TcpStream>, Option<String>) {
    let mut streams = Vec::with_capacity(count);
    while streams.len() < count {
        if Instant::now() > deadline {
            return (streams, Some("the time was over".to_owned()));
        }
        match one(server) {
            Ok(stream) => streams.push(stream),
            Err(error) => return (streams, Some(error.to_string())),
        }
    }
    (streams, None)
}

fn one(server: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = tcp::open(server)?;
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0]).map_err(tcp::named)?;
    Ok(stream)
}
