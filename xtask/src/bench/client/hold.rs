//! Many connections that stay open.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::tcp;
use crate::bench::task::Reply;

#[derive(Default)]
pub(super) struct Held(Vec<TcpStream>);

impl Held {
    /// A connection counts once a byte has come back through it.
    pub(super) fn open(&mut self, server: SocketAddr, count: usize) -> Result<Reply> {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let all = Rlimit {
            current: maximum,
            maximum,
        };
        setrlimit(Resource::Nofile, all)?;
        let mut complaint = None;
        while self.0.len() < count {
            match one(server) {
                Ok(stream) => self.0.push(stream),
                Err(error) => {
                    complaint = Some(error.to_string());
                    break;
                }
            }
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

fn one(server: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = tcp::open(server)?;
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0])?;
    Ok(stream)
}
