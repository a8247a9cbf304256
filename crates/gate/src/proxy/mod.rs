//! The company's proxy: the only way to the internet, where there is one.
//!
//! # Theory of operation
//! The policy decides first, as always. What it admits to the internet is not dialled but asked of
//! the proxy ([`connect`]): by the name that the program inside was given the address for, else by
//! the address. The SYN of the program is held until the tunnel stands, so what the proxy refuses
//! fails inside with the error that it means.
//!
//! A name that this machine's resolvers do not know may be one that the proxy knows. It gets an
//! address of the gate's own ([`pool`]), so that programs which resolve first work unchanged.
//!
//! Nothing near ever goes through the proxy, and the proxy itself is out of reach from inside.

mod handshake;
pub(crate) mod pool;
mod tls;

use std::{
    cell::RefCell,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use ipnet::IpNet;
use stockade_policy::{
    Evidence, Exemption, Exemptions, Host, Hostname, ProxyAddress, ProxyLogin, Route, is_in_pool,
    only_the_proxy_may_know,
};
use stockade_wire::{
    packet::Unreachable,
    proxy::{Destination, Refusal},
};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    dns::{
        Resolution,
        lookup::{full_names, look_up},
        resolvers::{Resolvers, SplitResolvers},
    },
    flows::ActiveFlow,
    hold::Failure,
    judge::Judge,
    names::{
        host_file::{HostFile, HostFileContent as _},
        hosts,
    },
    routes::Routes,
    tcp::dial,
};
use pool::Pool;
use tls::Tls;

pub use tls::{Trust, TrustError};

/// How long the proxy may take to be found and to take a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to make a tunnel. Its own attempt may take a minute.
const TUNNEL_LIMIT: Duration = Duration::from_secs(75);
/// How long the first look-up may hold up the start.
const FIRST_LOOK_UP: Duration = Duration::from_secs(2);
/// How often it is looked up where it is.
const LOOK_UP: Duration = Duration::from_secs(30);
const LOOK_UP_AGAIN: Duration = Duration::from_secs(2);
/// Addresses of the proxy that are remembered.
const MOST_ADDRESSES: usize = 64;

/// The proxy that the gate uses.
#[derive(Debug, Clone)]
pub struct Proxy {
    pub address: ProxyAddress,
    pub login: Option<ProxyLogin>,
    /// The variable that has the login, if it is not from a file.
    pub login_variable: Option<&'static str>,
    /// What it is known by, if it speaks TLS.
    pub trust: Option<Trust>,
    /// What is reached without it.
    pub exempt: Exemptions,
    /// Domains of the company, besides the host's search domains: the proxy is not asked for names
    /// there that the resolvers do not know.
    pub domains: Vec<Hostname>,
}

/// What is known of proxies.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// The one that the gate uses.
    pub used: Option<Proxy>,
    /// Those that variables of the caller's name, with the variable. Programs inside may try them.
    pub named: Vec<(&'static str, ProxyAddress)>,
}

/// A destination, as far as a proxy matters for it.
#[derive(Debug)]
pub(crate) struct KnownDestination {
    pub(crate) address: IpAddr,
    pub(crate) is_proxy: bool,
    /// It is an address of the pool that was given to a name.
    pub(crate) stands_for_name: bool,
}

impl Proxy {
    /// Whether it may be asked for a name that this machine's resolvers do not know.
    #[must_use]
    pub fn may_stand_in(&self, name: &Hostname) -> bool {
        let mut search = Resolvers::read().unwrap_or_default().search;
        search.extend(SplitResolvers::read().unwrap_or_default().0.search);
        self.may_be_told(name, &search) && !hosts::is_own(name)
    }

    fn may_be_told(&self, name: &Hostname, search: &[Hostname]) -> bool {
        self.address.host != Host::Name(name.clone())
            && !self.exempt.0.contains(&Exemption::Everything)
            && only_the_proxy_may_know(name, &self.domains)
            && only_the_proxy_may_know(name, search)
    }

    /// What a host with this proxy knows of a destination.
    pub(crate) fn evidence<'a>(
        &self,
        known: &KnownDestination,
        evidence: Evidence<'a>,
        routes: &mut Routes,
    ) -> Evidence<'a> {
        if known.is_proxy && !evidence.own {
            return Evidence {
                route: Route::ToProxy,
                ..evidence
            };
        }
        if self.exempt.cover(known.address, evidence.names) {
            return evidence;
        }
        // A host that has a default route and none to this has closed it.
        let is_closed = !known.stands_for_name && routes.have_default(known.address);
        if evidence.route == Route::None && is_closed {
            return evidence;
        }
        evidence.through_proxy(known.address, known.stands_for_name)
    }
}

/// The proxy in use.
#[derive(Debug)]
pub(crate) struct Upstream {
    proxy: Proxy,
    /// Where it was found lately.
    addresses: RefCell<Vec<IpAddr>>,
    resolvers: HostFile<Resolvers>,
    split: HostFile<SplitResolvers>,
    pub(crate) pool: Pool,
    tls: Option<Tls>,
}

impl Upstream {
    /// # Errors
    /// If the thread for TLS cannot be had, or does not confine itself.
    pub(crate) fn new(
        proxy: Proxy,
        routes: &mut Routes,
        is_taken: impl Fn(IpNet) -> bool,
    ) -> io::Result<Self> {
        let trust = proxy.trust.as_ref();
        let tls = trust.map(|trust| Tls::start(trust, &proxy)).transpose()?;
        let addresses = match proxy.address.host {
            Host::Address(address) => vec![address],
            Host::Name(_) => Vec::new(),
        };
        Ok(Self {
            proxy,
            tls,
            addresses: RefCell::new(addresses),
            resolvers: HostFile::default(),
            split: HostFile::default(),
            pool: Pool::new(|part| {
                let mut networks = part.subnets(24).into_iter().flatten();
                is_taken(part.into()) || networks.any(|network| routes.knows(network.addr().into()))
            }),
        })
    }

    /// Looks it up once, before anybody inside can try to reach it.
    pub(crate) fn look_up_first(&self) {
        if let Host::Name(name) = &self.proxy.address.host {
            self.addresses.replace(look_up(name, FIRST_LOOK_UP));
        }
    }

    pub(crate) fn is_at(&self, address: IpAddr) -> bool {
        self.addresses.borrow().contains(&address)
    }

    /// What is known of a destination, on a host that has this proxy.
    pub(crate) fn evidence<'a>(
        &self,
        address: IpAddr,
        evidence: Evidence<'a>,
        routes: &mut Routes,
    ) -> Evidence<'a> {
        let known = KnownDestination {
            address,
            is_proxy: self.is_at(address),
            stands_for_name: self.pool.name(address).is_some(),
        };
        self.proxy.evidence(&known, evidence, routes)
    }

    /// Whether it may be asked for a name that the resolvers do not know.
    pub(crate) fn may_know(&self, name: &Hostname) -> bool {
        self.may_be_told(name) && !hosts::is_own(name)
    }

    /// Whether it may choose the address of a name: it is none of the company's own.
    pub(crate) fn may_be_told(&self, name: &Hostname) -> bool {
        self.proxy.may_be_told(name, &self.search())
    }

    fn search(&self) -> Vec<Hostname> {
        let (host, split) = (self.resolvers.current(), self.split.current());
        let domains = host.search.iter().chain(&split.0.search);
        domains.cloned().collect()
    }

    /// Where it is, as the resolvers say now.
    async fn locate(&self, resolution: &Resolution) -> Vec<IpAddr> {
        let Host::Name(name) = &self.proxy.address.host else {
            return self.addresses.borrow().clone();
        };
        let mut found = Vec::new();
        if name.is_localhost() || hosts::is_own(name) {
            found.push(Ipv4Addr::LOCALHOST.into());
        }
        for full in full_names(name, &self.search()) {
            if found.is_empty() {
                found = resolution.addresses(&full).await;
            }
        }
        let mut known = self.addresses.borrow_mut();
        for address in &found {
            if !known.contains(address) && known.len() < MOST_ADDRESSES {
                known.push(*address);
            }
        }
        found
    }
}

/// Looks up where the proxy is now and then, so that it is known before somebody inside tries to
/// reach it.
pub(crate) async fn watch(upstream: Rc<Upstream>, resolution: Rc<Resolution>) {
    if let Host::Address(_) = upstream.proxy.address.host {
        return;
    }
    loop {
        let found = upstream.locate(&resolution).await;
        sleep(if found.is_empty() {
            LOOK_UP_AGAIN
        } else {
            LOOK_UP
        })
        .await;
    }
}

/// Why there is no tunnel.
#[derive(Debug)]
pub(crate) struct NoTunnel {
    /// How the attempt inside fails.
    pub(crate) failure: Failure,
    /// For people.
    pub(crate) why: String,
}

/// A connection to the destination, through the proxy.
pub(crate) async fn connect(
    judge: &Judge,
    resolution: &Resolution,
    (host, port): (&Host, u16),
    flow: &Arc<ActiveFlow>,
) -> Result<TcpStream, NoTunnel> {
    let Some(upstream) = &judge.upstream else {
        // Only what goes through a proxy comes here.
        let why = "there is no proxy".to_owned();
        let failure = Failure::Unreachable(Unreachable::Network);
        return Err(NoTunnel { failure, why });
    };
    let address = &upstream.proxy.address;
    let silent = |why: String| NoTunnel {
        failure: Failure::Unreachable(Unreachable::Network),
        why: format!("the proxy {address} {why}"),
    };
    let reaching = reach(upstream, resolution, host);
    let stream = match timeout(CONNECT_LIMIT, reaching).await {
        Ok(stream) => stream.map_err(silent)?,
        Err(_) => return Err(silent("does not answer".to_owned())),
    };
    let destination = match host {
        Host::Name(name) => Destination::Name(name.as_str()),
        Host::Address(address) => Destination::Address(*address),
    };
    let login = upstream.proxy.login.as_ref().map(ProxyLogin::reveal);
    let shaking = async {
        match &upstream.tls {
            Some(tls) => tls.tunnel(stream, host, port, flow).await,
            None => handshake::tunnel(stream, address.scheme, destination, port, login).await,
        }
    };
    let refused = match timeout(TUNNEL_LIMIT, shaking).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(refused)) => refused,
        Err(_) => return Err(silent("does not make a tunnel".to_owned())),
    };
    let target = match host {
        Host::Name(name) => format!("{name}:{port}"),
        Host::Address(address) => SocketAddr::new(*address, port).to_string(),
    };
    let fix = login_fix(&upstream.proxy, &refused);
    Err(NoTunnel {
        failure: failure(&refused),
        why: format!("the proxy {address} makes no connection to {target}: {refused}{fix}"),
    })
}

/// What helps if the proxy wants another login: to be read after its refusal.
fn login_fix(proxy: &Proxy, refused: &handshake::Error) -> String {
    use handshake::Error::Refused;
    if !matches!(
        refused,
        Refused(Refusal::LoginMissing | Refusal::LoginRefused)
    ) {
        return String::new();
    }
    match proxy.login_variable {
        Some(variable) => format!("; correct the login in the variable {variable}"),
        None if proxy.login.is_some() => {
            "; correct USER:PASSWORD in the file that `proxy_login` names".to_owned()
        }
        None => "; write USER:PASSWORD to a file that only you can read, and name it by \
                 `proxy_login`"
            .to_owned(),
    }
}

async fn reach(
    upstream: &Upstream,
    resolution: &Resolution,
    host: &Host,
) -> Result<TcpStream, String> {
    let port = upstream.proxy.address.port;
    let found = upstream.locate(resolution).await;
    if found.is_empty() {
        return Err("cannot be resolved".to_owned());
    }
    // One that speaks to itself would serve whoever is inside.
    let is_itself = match host {
        // Its name has become one of the company's own since.
        Host::Address(address) if is_in_pool(*address) => {
            return Err("is not asked for names of the company".to_owned());
        }
        Host::Address(address) => upstream.is_at(*address),
        Host::Name(name) => upstream.proxy.address.host == Host::Name(name.clone()),
    };
    if is_itself {
        return Err("is itself out of reach".to_owned());
    }
    let mut last = String::new();
    for address in found {
        match dial::connect(SocketAddr::new(address, port.get())).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("cannot be reached: {error}"),
        }
    }
    Err(last)
}

/// What the program inside is told.
fn failure(why: &handshake::Error) -> Failure {
    let refusal = match why {
        handshake::Error::Refused(refusal) => refusal,
        handshake::Error::Tls(_) => return Failure::Unreachable(Unreachable::AdminProhibited),
        handshake::Error::Io(_) => return Failure::Unreachable(Unreachable::Network),
    };
    match refusal {
        Refusal::ConnectionRefused(_) => Failure::Reset,
        Refusal::NetworkUnreachable => Failure::Unreachable(Unreachable::Network),
        Refusal::Unreachable(_) | Refusal::Timeout(_) => Failure::Unreachable(Unreachable::Host),
        Refusal::LoginMissing
        | Refusal::LoginRefused
        | Refusal::Forbidden(_)
        | Refusal::Status(_)
        | Refusal::Malformed
        | Refusal::TooLong => Failure::Unreachable(Unreachable::AdminProhibited),
    }
}
