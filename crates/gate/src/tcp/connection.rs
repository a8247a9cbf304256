//! One TCP connection of the agent, in named states.
//!
//! `Held` → `Dialled` → `Established`; bulk goes on through `Detached` to `Established` on
//! another thread. Each state is made from the one before, so none can be left out. A
//! connection that is dropped in any state has ended.

use std::{io, net::TcpStream as StdTcpStream, rc::Rc, sync::Arc};

use tokio::net::TcpStream;

use super::{
    Tcp,
    accept::Acceptor,
    dial::dial,
    inspect::Inspector,
    relay::{Direction, relay},
};
use crate::{
    audit::denials::{Ruling, Subject},
    flows::{ActiveFlow, FlowKey},
    hold::{Failure, HeldSyn},
    proxy::{NoTunnel, connect},
};

#[derive(Debug)]
pub(crate) struct Connection<State> {
    pub(crate) flow: Arc<ActiveFlow>,
    pub(crate) state: State,
}

/// Admitted. The agent's kernel has no answer to its SYN yet.
#[derive(Debug)]
pub(crate) struct Held {
    syn: HeldSyn,
}

/// The connection outside is open; inside there is none yet.
#[derive(Debug)]
pub(crate) struct Dialled {
    syn: HeldSyn,
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
    pub(crate) fn hold(flow: Arc<ActiveFlow>, syn: HeldSyn) -> Self {
        let state = Held { syn };
        Self { flow, state }
    }

    /// The whole life of a connection that was admitted.
    pub(crate) async fn carry(self, tcp: Rc<Tcp>) {
        let Some(dialled) = self.dial(&tcp).await else {
            return;
        };
        let Some(connection) = dialled.let_through(&tcp.acceptor).await else {
            return;
        };
        let flow = &connection.flow;
        let inspect = || Inspector::new(Rc::clone(&tcp.judge), Arc::clone(flow));
        let inspector = flow.admission.by_name.then(inspect);
        relay(connection, Some(&tcp.carriers), inspector.as_ref()).await;
    }

    /// Connects outside. If that fails, so does the agent's attempt.
    async fn dial(self, tcp: &Tcp) -> Option<Connection<Dialled>> {
        let Self { flow, state } = self;
        let Held { syn } = state;
        let FlowKey {
            client,
            destination,
        } = syn.key();
        let dial = async {
            match &flow.admission.proxied {
                None => dial(destination).await,
                Some(host) => {
                    let target = (host, destination.port());
                    let tunnel = connect(&tcp.judge, &tcp.resolution, target, &flow);
                    tunnel.await.map_err(|NoTunnel { failure, why }| {
                        let subject = Subject::Flow(flow.flow);
                        drop(tcp.judge.denied(subject, Ruling::Proxy(why), Some(client)));
                        failure
                    })
                }
            }
        };
        let dialled = tokio::select! {
            dialled = dial => dialled,
            () = syn.gives_way() => Err(Failure::Silence),
        };
        match dialled {
            Ok(far) => Some(Connection {
                flow,
                state: Dialled { syn, far },
            }),
            Err(failure) => {
                syn.fail(failure);
                None
            }
        }
    }
}

impl Connection<Dialled> {
    /// Answers the SYN, so that the agent's side opens, too.
    async fn let_through(self, acceptor: &Acceptor) -> Option<Connection<Established>> {
        let Dialled { syn, far } = self.state;
        let near = acceptor.let_through(syn).await?;
        Some(Connection::between(near, far, self.flow))
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
