//! One TCP connection of the agent, in named states.
//!
//! `Held` → `Dialled` → `Established`; bulk goes on through `Detached` to `Established` on
//! another thread. Each state is made from the one before, so none can be left out. A
//! connection that is dropped in any state has ended.

use std::{io, net::TcpStream as StdTcpStream, sync::Arc};

use stockade_wire::packet::Syn;
use tokio::net::TcpStream;

use super::{
    dial::{Failure, dial},
    relay::Direction,
};
use crate::flows::ActiveFlow;

#[derive(Debug)]
pub(crate) struct Connection<State> {
    pub(crate) flow: Arc<ActiveFlow>,
    pub(crate) state: State,
}

/// Admitted. The agent's kernel has no answer to its SYN yet.
#[derive(Debug)]
pub(crate) struct Held {
    syn: Syn,
}

/// The connection outside is open; inside there is none yet.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) syn: Syn,
    far: TcpStream,
}

/// Open on both sides.
#[derive(Debug)]
pub(crate) struct Established<Stream = TcpStream> {
    /// The agent's side, and the one outside.
    pub(crate) near: Stream,
    pub(crate) far: Stream,
    /// Outward and inward.
    pub(crate) directions: [Direction; 2],
}

/// In no event loop, and with no byte in anybody's hands.
pub(crate) type Detached = Established<StdTcpStream>;

impl Connection<Held> {
    pub(crate) fn hold(flow: Arc<ActiveFlow>, syn: Syn) -> Self {
        let state = Held { syn };
        Self { flow, state }
    }

    /// Connects outside. Gives the SYN back if that fails, so that it can be answered.
    pub(crate) async fn dial(self) -> Result<Connection<Dialled>, (Syn, Failure)> {
        let Held { syn } = self.state;
        match dial(syn.destination()).await {
            Ok(far) => Ok(Connection {
                flow: self.flow,
                state: Dialled { syn, far },
            }),
            Err(failure) => Err((syn, failure)),
        }
    }
}

impl Connection<Dialled> {
    /// The agent's side is open, too.
    pub(crate) fn establish(self, near: TcpStream) -> Connection<Established> {
        Connection::between(near, self.state.far, self.flow)
    }
}

impl Connection<Established> {
    pub(crate) fn between(near: TcpStream, far: TcpStream, flow: Arc<ActiveFlow>) -> Self {
        let directions = [Direction::outward(), Direction::inward()];
        let state = Established {
            near,
            far,
            directions,
        };
        Self { flow, state }
    }

    pub(crate) fn detach(self) -> io::Result<Connection<Detached>> {
        let state = Established {
            near: self.state.near.into_std()?,
            far: self.state.far.into_std()?,
            directions: self.state.directions,
        };
        let flow = self.flow;
        Ok(Connection { flow, state })
    }
}

impl Connection<Detached> {
    /// Goes on in this thread's event loop.
    pub(crate) fn attach(self) -> io::Result<Connection<Established>> {
        let state = Established {
            near: TcpStream::from_std(self.state.near)?,
            far: TcpStream::from_std(self.state.far)?,
            directions: self.state.directions,
        };
        let flow = self.flow;
        Ok(Connection { flow, state })
    }
}
