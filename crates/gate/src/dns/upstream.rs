//! The host's resolvers, one after the other, and what they said lately.

use std::{
    cell::RefCell,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use stockade_policy::NameServer;
use stockade_wire::dns::{ExtendedError, Query, Rcode, is_failure};
use tokio::time::timeout;

use super::{ask::SocketPool, cache::Cache, resolvers::Resolvers};
use crate::names::host_file::HostFile;

/// The agent's resolver waits five seconds by default, then asks again. Two rounds over
/// two servers fit into that.
const ANSWER_LIMIT: Duration = Duration::from_millis(1200);
const ROUNDS: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct Upstream {
    resolvers: HostFile<Resolvers>,
    sockets: SocketPool,
    asked: RefCell<Rc<Resolvers>>,
    cache: RefCell<Cache>,
}

impl Upstream {
    /// The answer of a server that a rule names, which is asked each time.
    pub(crate) async fn ask_named(
        &self,
        server: SocketAddr,
        by: NameServer,
        query: &Query,
    ) -> Vec<u8> {
        for _ in 0..ROUNDS {
            let asking = self.sockets.ask_named(server, by, query);
            if let Ok(Ok(answer)) = timeout(ANSWER_LIMIT, asking).await {
                return answer;
            }
        }
        let text = format!("Stockade: {} did not answer", server.ip());
        let code = ExtendedError::NO_REACHABLE_AUTHORITY;
        query.error(Rcode::ServFail, Some(&ExtendedError { code, text }))
    }

    /// The host's resolvers. Others may give other answers, so a change empties the cache.
    fn servers(&self) -> Rc<Resolvers> {
        let servers = self.resolvers.current();
        if *self.asked.borrow() != servers {
            self.cache.borrow_mut().clear();
            self.asked.replace(Rc::clone(&servers));
        }
        servers
    }

    /// The answer of the first resolver that knows one, or the failure that one reported, or
    /// one of our own that says why there is none.
    pub(crate) async fn ask(&self, query: &Query) -> Vec<u8> {
        let now = Instant::now();
        let servers = self.servers();
        let key = query.key();
        if let Some(answer) = self.cache.borrow().get(&key, query, now) {
            return answer;
        }
        let mut failure = None;
        for server in servers.iter().cycle().take(servers.len() * ROUNDS) {
            if let Ok(Ok(answer)) = timeout(ANSWER_LIMIT, self.sockets.ask(*server, query)).await {
                if is_failure(&answer) {
                    failure = Some(answer);
                    continue;
                }
                self.cache.borrow_mut().put(key, query, &answer, now);
                return answer;
            }
        }
        if let Some(failure) = failure {
            return failure;
        }
        let text = if servers.is_empty() {
            "Stockade: the host has no name server in /etc/resolv.conf".to_owned()
        } else {
            "Stockade: none of the host's name servers answered".to_owned()
        };
        let code = ExtendedError::NO_REACHABLE_AUTHORITY;
        query.error(Rcode::ServFail, Some(&ExtendedError { code, text }))
    }
}
