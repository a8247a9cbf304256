//! TLS between the gate and the proxy.
//!
//! A thread of its own speaks it, which holds up nobody else by its computing. It makes the tunnel,
//! and gives the gate one end of a pair of sockets that leads into it. So a connection through TLS
//! is for the rest of the gate a socket like others, with half-close. Of each connection little is in
//! memory: who does not read is not written to.

use std::{
    cell::Cell,
    fmt, io,
    net::TcpStream as StdTcpStream,
    rc::Rc,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use stockade_policy::{Host, ProxyLogin};
use stockade_wire::proxy::Destination;
use tokio::{
    io::{AsyncWriteExt as _, copy, split},
    net::{TcpStream, UnixStream},
    runtime,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::{LocalSet, spawn_local},
    time::sleep,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    Proxy,
    handshake::{self, Error},
};
use crate::{
    confine,
    descriptors::spare,
    flows::ActiveFlow,
    tcp::{dial::keep_alive, relay::Underway},
};

/// What a proxy in TLS is known by.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust")
    }
}

/// Why no proxy in TLS can be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(
        "this processor has no {0}, which TLS needs here: name a port of the proxy that speaks plain HTTP"
    )]
    Processor(&'static str),
    #[error("it has no certificate of an authority: expected some in PEM")]
    NoAuthority,
    #[error("TLS cannot be set up: {0}")]
    Library(#[from] rustls::Error),
}

impl Trust {
    /// Trusts these authorities, in PEM. Certificates of a kind that is not known are left out, as
    /// other programs do.
    ///
    /// # Errors
    /// If there is none, or this machine cannot do it.
    pub fn new(authorities: &str) -> Result<Self, TrustError> {
        if let Some(missing) = missing_instructions() {
            return Err(TrustError::Processor(missing));
        }
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_slice_iter(authorities.as_bytes());
        roots.add_parsable_certificates(certificates.filter_map(Result::ok));
        if roots.is_empty() {
            return Err(TrustError::NoAuthority);
        }
        let provider = Arc::new(rustls_graviola::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

/// The library ends the program where they are missing.
fn missing_instructions() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let needed = [
        ("AES", is_x86_feature_detected!("aes")),
        ("PCLMULQDQ", is_x86_feature_detected!("pclmulqdq")),
        ("BMI1", is_x86_feature_detected!("bmi1")),
        ("BMI2", is_x86_feature_detected!("bmi2")),
        ("ADX", is_x86_feature_detected!("adx")),
        ("AVX", is_x86_feature_detected!("avx")),
        ("AVX2", is_x86_feature_detected!("avx2")),
    ];
    #[cfg(target_arch = "aarch64")]
    let needed = [
        ("NEON", std::arch::is_aarch64_feature_detected!("neon")),
        ("AES", std::arch::is_aarch64_feature_detected!("aes")),
        ("PMULL", std::arch::is_aarch64_feature_detected!("pmull")),
        ("SHA-2", std::arch::is_aarch64_feature_detected!("sha2")),
    ];
    let missing = needed.into_iter().find(|(_, is_there)| !is_there);
    missing.map(|(name, _)| name)
}

/// The thread.
#[derive(Debug)]
pub(super) struct Tls(UnboundedSender<Order>);

/// A tunnel to be made.
#[derive(Debug)]
struct Order {
    proxy: StdTcpStream,
    host: Host,
    port: u16,
    flow: Arc<ActiveFlow>,
    made: oneshot::Sender<Result<StdTcpStream, Error>>,
}

/// What is the same for all tunnels.
struct Client {
    connector: TlsConnector,
    /// The name that the proxy's certificate must be for.
    name: ServerName<'static>,
    login: Option<ProxyLogin>,
}

impl Tls {
    /// # Errors
    /// If the thread cannot be had, or does not confine itself.
    pub(super) fn start(trust: &Trust, proxy: &Proxy) -> io::Result<Self> {
        let name = match &proxy.address.host {
            Host::Name(name) => {
                ServerName::try_from(name.as_str().to_owned()).map_err(io::Error::other)?
            }
            Host::Address(address) => ServerName::IpAddress((*address).into()),
        };
        let client = Client {
            connector: TlsConnector::from(Arc::clone(&trust.0)),
            name,
            login: proxy.login.clone(),
        };
        let (orders, received) = unbounded_channel();
        let (ready, started) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("tls".to_owned())
            .spawn(move || {
                let runtime = runtime::Builder::new_current_thread()
                    .enable_io()
                    .enable_time()
                    .build()
                    .and_then(|runtime| confine::confine_tls().map(|()| runtime));
                match runtime {
                    Ok(runtime) => {
                        // The starter waits for it.
                        let _ = ready.send(Ok(()));
                        LocalSet::new().block_on(&runtime, serve(received, client));
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })?;
        let died = || Err(io::Error::other("the gate's thread for TLS died"));
        started.recv().unwrap_or_else(|_| died())?;
        Ok(Self(orders))
    }

    /// Has a tunnel made through a new connection to the proxy. What is written to the socket goes
    /// to the destination.
    pub(super) async fn tunnel(
        &self,
        proxy: TcpStream,
        host: &Host,
        port: u16,
        flow: &Arc<ActiveFlow>,
    ) -> Result<TcpStream, Error> {
        let (made, tunnel) = oneshot::channel();
        let order = Order {
            proxy: proxy.into_std()?,
            host: host.clone(),
            port,
            flow: Arc::clone(flow),
            made,
        };
        let died = || Error::Io(io::Error::other("the gate's thread for TLS died"));
        self.0.send(order).map_err(|_| died())?;
        let tunnel = tunnel.await.map_err(|_| died())??;
        Ok(TcpStream::from_std(tunnel)?)
    }
}

async fn serve(mut orders: UnboundedReceiver<Order>, client: Client) {
    let client = Rc::new(client);
    while let Some(order) = orders.recv().await {
        let client = Rc::clone(&client);
        spawn_local(async move { client.carry(order).await });
    }
}

impl Client {
    /// The whole life of a tunnel.
    async fn carry(&self, order: Order) {
        let (host, port, flow) = (order.host, order.port, order.flow);
        let mut made = order.made;
        let making = async {
            let proxy = self.make(order.proxy, &host, port).await?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (gates, own) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(io::Error::from)?;
            let own = UnixStream::from_std(spare(own)?.into())?;
            // All that the gate does with it, the kernel does with this kind of socket, too.
            Ok((proxy, own, StdTcpStream::from(spare(gates)?)))
        };
        let result = tokio::select! {
            result = making => result,
            // The gate's patience has ended.
            () = made.closed() => return,
        };
        let (proxy, own) = match result {
            Err(error) => return drop(made.send(Err(error))),
            Ok((proxy, own, gates)) => match made.send(Ok(gates)) {
                Ok(()) => (proxy, own),
                Err(_) => return,
            },
        };
        pump(proxy, own, &flow).await;
    }

    async fn make(
        &self,
        proxy: StdTcpStream,
        host: &Host,
        port: u16,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let proxy = TcpStream::from_std(proxy)?;
        // What is written is in whole messages. Without these options the connection is slower, or may be
        // forgotten on the way.
        let _ = proxy.set_nodelay(true);
        keep_alive(&proxy);
        let shaking = self.connector.connect(self.name.clone(), proxy);
        let mut proxy = shaking.await.map_err(in_words)?;
        let destination = match host {
            Host::Name(name) => Destination::Name(name.as_str()),
            Host::Address(address) => Destination::Address(*address),
        };
        let login = self.login.as_ref().map(ProxyLogin::reveal);
        let asked = handshake::connect(&mut proxy, destination, port, login).await;
        asked.map_err(|error| match error {
            Error::Io(error) => in_words(error),
            refused => refused,
        })?;
        Ok(proxy)
    }
}

/// How often it is looked whether the gate is done with a flow, and how often more until what it
/// left has to have left here.
const LOOK: Duration = Duration::from_secs(1);
const LAST_LOOKS: u32 = 60;

/// Moves bytes both ways. An end of one direction is passed on alone. A connection that breaks on one
/// side is reset on the other.
async fn pump(mut proxy: TlsStream<TcpStream>, mut own: UnixStream, flow: &Arc<ActiveFlow>) {
    let has_come_in = Cell::new(false);
    let moved: io::Result<()> = {
        let underway = Underway::new();
        let (mut from_proxy, mut to_proxy) = split(&mut proxy);
        let (mut from_gate, mut to_gate) = own.split();
        let outward = async {
            copy(&mut from_gate, &mut to_proxy).await?;
            to_proxy.shutdown().await?;
            drop(underway);
            io::Result::Ok(())
        };
        let inward = async {
            // Without the proxy's goodbye this is an error: somebody on the way may have cut it off.
            copy(&mut from_proxy, &mut to_gate).await?;
            to_gate.shutdown().await?;
            has_come_in.set(true);
            io::Result::Ok(())
        };
        let abandoned = async {
            let mut looks = 0;
            while looks == 0 || (has_come_in.get() && looks < LAST_LOOKS) {
                sleep(LOOK).await;
                // Nobody else has it: it has ended.
                looks += u32::from(Arc::strong_count(flow) == 1);
            }
        };
        tokio::select! {
            moved = async { tokio::try_join!(outward, inward) } => moved.map(|_: ((), ())| ()),
            () = abandoned => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    };
    if moved.is_err() {
        flow.end();
        // If the option cannot be set, the connection is closed the polite way.
        let _ = sockopt::set_socket_linger(proxy.get_ref().0, Some(Duration::ZERO));
    }
}

/// What went wrong in TLS, for people. Nothing that the proxy says of itself is in it.
fn in_words(error: io::Error) -> Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(inner) = inner else {
        return Error::Io(error);
    };
    let why = match inner {
        rustls::Error::InvalidCertificate(why) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; is this machine's clock right?"
            }
            CertificateError::UnknownIssuer => {
                "no authority that this machine trusts has signed its certificate; if your company \
                 has its own, name the file by SSL_CERT_FILE, or add it to the system's"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            CertificateError::Revoked => "its certificate was revoked",
            _ => "its certificate is not valid",
        },
        rustls::Error::InvalidMessage(_) => {
            "what it says is no TLS; for a proxy in the clear use http://"
        }
        rustls::Error::AlertReceived(alert) => {
            return Error::Tls(format!("it ended TLS ({alert:?})"));
        }
        rustls::Error::PeerIncompatible(_) => "it supports no TLS that is safe",
        _ => "it does not speak TLS as it should",
    };
    Error::Tls(why.to_owned())
}
