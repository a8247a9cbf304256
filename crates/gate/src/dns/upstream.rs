//! The host's resolvers, one after the other, and what they said lately.

use std::{
    cell::RefCell,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use stockade_policy::{Hostname, NameServer};
use stockade_wire::dns::{ExtendedError, Query, Rcode, is_failure, name_exists};
use tokio::time::timeout;

use super::{
    ask::SocketPool,
    cache::Cache,
    crowd::{Crowd, Crowded},
    resolvers::{Resolvers, SplitResolvers},
};
use crate::names::host_file::HostFile;

/// The agent's resolver waits five seconds by default, then asks again. Two rounds over
/// two servers fit into that.
const ANSWER_LIMIT: Duration = Duration::from_millis(1200);
const ROUNDS: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct Upstream {
    resolvers: HostFile<Resolvers>,
    split: HostFile<SplitResolvers>,
    sockets: SocketPool,
    crowd: Crowd,
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
    ) -> Result<Vec<u8>, Crowded> {
        let place = self.crowd.enter(query.name())?;
        for _ in 0..ROUNDS {
            let asking = self.sockets.ask_named(server, by, query);
            if let Ok(Ok(answer)) = place.keep(timeout(ANSWER_LIMIT, asking)).await? {
                return Ok(answer);
            }
        }
        let text = format!("Stockade: {} did not answer", server.ip());
        let code = ExtendedError::NO_REACHABLE_AUTHORITY;
        Ok(query.error(Rcode::ServFail, Some(&ExtendedError { code, text })))
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

    /// The domains that complete a short name inside, as the file there was made.
    pub(crate) fn search(&self) -> Vec<Hostname> {
        let (host, split) = (self.resolvers.current(), self.split.current());
        let domains = host.search.iter().chain(&split.0.search);
        domains.cloned().collect()
    }

    /// The answer about a name that may be private, which may be known on one link only. It is asked
    /// for anew each time: a VPN that comes up or goes down changes it from one moment to the next.
    /// Others are asked only if the stub does not know the name: they could place the IPv6 address
    /// of a host that has none.
    pub(crate) async fn ask_near(&self, query: &Query) -> Result<Vec<u8>, Crowded> {
        let place = self.crowd.enter(query.name())?;
        let (servers, split) = (self.servers(), self.split.current());
        let is_new = |server: &&SocketAddr| !servers.servers.contains(server);
        let stubs: Vec<_> = split
            .0
            .servers
            .iter()
            .copied()
            .filter(|it| is_new(&it))
            .collect();
        for stub in stubs {
            let asking = self.sockets.ask(stub, query);
            if let Ok(Ok(answer)) = place.keep(timeout(ANSWER_LIMIT, asking)).await?
                && name_exists(&answer)
            {
                return Ok(answer);
            }
        }
        place.keep(self.ask_all(&servers, query)).await
    }

    /// The answer of the first resolver that knows one, or the failure that one reported, or
    /// one of our own that says why there is none. What is known needs no place.
    pub(crate) async fn ask(&self, query: &Query) -> Result<Vec<u8>, Crowded> {
        let now = Instant::now();
        let servers = self.servers();
        let key = query.key();
        if let Some(answer) = self.cache.borrow().get(&key, query, now) {
            return Ok(answer);
        }
        let place = self.crowd.enter(query.name())?;
        let answer = place.keep(self.ask_all(&servers, query)).await?;
        if !is_failure(&answer) {
            self.cache.borrow_mut().put(key, query, &answer, now);
        }
        Ok(answer)
    }

    async fn ask_all(&self, resolvers: &Resolvers, query: &Query) -> Vec<u8> {
        let servers = &resolvers.servers;
        let mut failure = None;
        for server in servers.iter().cycle().take(servers.len() * ROUNDS) {
            if let Ok(Ok(answer)) = timeout(ANSWER_LIMIT, self.sockets.ask(*server, query)).await {
                if is_failure(&answer) {
                    failure = Some(answer);
                    continue;
                }
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

#[cfg(test)]
mod tests {
    use stockade_wire::dns::{Name, Own, Type};

    use super::*;

    fn query(name: &str) -> Query {
        let name = Name::from_text(name).expect("a name");
        Query::of(&name, Type::A).expect("a query")
    }

    #[tokio::test]
    async fn n16_what_is_known_is_answered_however_many_questions_wait() {
        let upstream = Upstream::default();
        let known = query("www.example.com");
        let answer = known.answer(&[Own::Address([192, 0, 2, 7].into())], 60);
        upstream.servers();
        let now = Instant::now();
        (upstream.cache.borrow_mut()).put(known.key(), &known, &answer, now);
        let names = (0..).map(|number| query(&format!("n{number}.example.com")));
        let flood: Vec<_> = names
            .map_while(|query| upstream.crowd.enter(query.name()).ok())
            .collect();
        assert!(!flood.is_empty());
        let given = upstream.ask(&known).await.expect("an answer");
        assert_eq!(given.last(), Some(&7));
        assert!(upstream.ask(&query("new.example.com")).await.is_err());
    }
}
