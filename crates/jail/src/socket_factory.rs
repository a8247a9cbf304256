//! Sockets that are made when they are wanted, or ahead of that.
//!
//! A UDP flow needs a socket that speaks for the flow's destination. Only the thread in the gatehouse
//! can make one, so it makes them in batches, and the gate finds them ready.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
};

use stockade_sys::transparent::{self, Family, Unbound};

use crate::worker::{Order, Orders};

const BATCH: usize = 32;
const LOW: usize = 8;

/// A stock of unbound sockets, filled up by the thread in the gatehouse.
#[derive(Debug)]
pub struct SocketFactory {
    /// Of the thread in the agent's network.
    agents: Orders,
    /// Of the one in the gatehouse.
    gatehouse: Orders,
    v4: Stock,
    v6: Stock,
}

#[derive(Debug)]
struct Stock {
    family: Family,
    ready: Vec<Unbound>,
    ordered: Option<mpsc::Receiver<io::Result<Vec<Unbound>>>>,
}

impl SocketFactory {
    pub(crate) fn new(agents: Orders, gatehouse: Orders) -> Self {
        let stock = |family| Stock {
            family,
            ready: Vec::new(),
            ordered: None,
        };
        Self {
            agents,
            gatehouse,
            v4: stock(Family::V4),
            v6: stock(Family::V6),
        }
    }

    /// A socket that can be bound to any address of the family.
    ///
    /// # Errors
    /// If the jail thread is gone or the kernel gives no more sockets.
    pub fn take(&mut self, family: Family) -> io::Result<Unbound> {
        let stock = match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        };
        stock.take(&self.gatehouse)
    }

    /// A listener for connections to this port, to whatever address of the family.
    ///
    /// # Errors
    /// As for [`SocketFactory::take`].
    pub fn listen(&self, family: Family, port: u16) -> io::Result<TcpListener> {
        let at = SocketAddr::new(family.unspecified(), port);
        ask(&self.gatehouse, move || transparent::listen(at))
    }

    /// A TCP socket that can be connected to what listens in the jail.
    ///
    /// # Errors
    /// As for [`SocketFactory::take`].
    pub fn stream(&self, family: Family) -> io::Result<TcpStream> {
        ask(&self.agents, move || transparent::unconnected_tcp(family))
    }
}

fn ask<T: Send + 'static>(
    orders: &Orders,
    make: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, made) = mpsc::sync_channel(1);
    let make = move || {
        // Nobody waits any more if the gate has ended.
        let _ = done.send(make());
    };
    orders
        .send(Order::Run(Box::new(make)))
        .map_err(|_| gone())?;
    made.recv().map_err(|_| gone())?
}

impl Stock {
    fn take(&mut self, orders: &Orders) -> io::Result<Unbound> {
        if self.ready.is_empty() {
            self.order(orders)?;
            // The batch has been on its way since the stock was low, so this rarely waits.
            if let Some(ordered) = self.ordered.take() {
                self.ready = ordered.recv().map_err(|_| gone())??;
            }
        }
        let socket = self.ready.pop().ok_or_else(gone)?;
        if self.ready.len() < LOW {
            self.order(orders)?;
        }
        Ok(socket)
    }

    fn order(&mut self, orders: &Orders) -> io::Result<()> {
        if self.ordered.is_some() {
            return Ok(());
        }
        let (done, ordered) = mpsc::sync_channel(1);
        let family = self.family;
        let make = move || {
            let batch = (0..BATCH)
                .map(|_| transparent::unbound_udp(family))
                .collect();
            // Nobody waits any more if the gate has ended.
            let _ = done.send(batch);
        };
        orders
            .send(Order::Run(Box::new(make)))
            .map_err(|_| gone())?;
        self.ordered = Some(ordered);
        Ok(())
    }
}

fn gone() -> io::Error {
    io::Error::other("the jail's thread is gone")
}
