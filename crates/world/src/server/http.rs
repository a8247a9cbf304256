//! Web servers: HTTP/1.1 with fixed pages, plain or over TLS.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::listen::{Endpoint, plain};
use super::tcp::{Stream, TcpServer};
use super::tls::Authority;
use crate::error::Result;
use crate::net::Host;
use crate::wait::Seen;

/// Larger heads and bodies end the connection.
const LARGEST_HEAD: u64 = 64 * 1024;
const LARGEST_BODY: u64 = 64 * 1024 * 1024;

/// What a web server answers.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pages: BTreeMap<String, Page>,
    fallback: Option<Page>,
}

#[derive(Clone, Debug)]
pub struct Page {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Site {
    /// Nothing but "404 Not Found".
    pub fn empty() -> Self {
        Self::default()
    }

    /// The same text at every path.
    pub fn text(body: &str) -> Self {
        Self {
            pages: BTreeMap::new(),
            fallback: Some(Page::new(200, body)),
        }
    }

    pub fn page(mut self, path: &str, page: impl Into<Page>) -> Self {
        self.pages.insert(path.to_owned(), page.into());
        self
    }

    fn find(&self, target: &str) -> Page {
        let path = target.split('?').next().unwrap_or_default();
        self.pages
            .get(path)
            .or(self.fallback.as_ref())
            .cloned()
            .unwrap_or_else(|| Page::new(404, "not here\n"))
    }
}

impl Page {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl From<&str> for Page {
    fn from(body: &str) -> Self {
        Self::new(200, body)
    }
}

/// A request that reached a web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub target: String,
    /// In the order and spelling of the client.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub peer: SocketAddr,
    /// The name in the TLS handshake, if there was one.
    pub server_name: Option<String>,
}

impl Request {
    /// The value of the first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Debug)]
pub struct HttpServer {
    tcp: TcpServer,
    requests: Seen<Request>,
}

impl HttpServer {
    pub fn address(&self) -> SocketAddr {
        self.tcp.address()
    }

    pub fn requests(&self) -> &Seen<Request> {
        &self.requests
    }

    /// The connections, and with them the bytes, below the requests.
    pub fn tcp(&self) -> &TcpServer {
        &self.tcp
    }

    pub fn stop(&self) {
        self.tcp.stop();
    }
}

impl Host {
    pub fn http(&self, endpoint: impl Into<Endpoint>, site: Site) -> Result<HttpServer> {
        let requests = Seen::default();
        let log = requests.clone();
        let tcp = self.tcp(endpoint, move |stream| {
            let peer = plain(stream.socket.peer_addr()?);
            serve(stream, &site, &log, peer, || None)
        })?;
        Ok(HttpServer { tcp, requests })
    }

    /// A web server with a certificate of `authority` for `names`.
    pub fn https(
        &self,
        endpoint: impl Into<Endpoint>,
        authority: &Authority,
        names: &[&str],
        site: Site,
    ) -> Result<HttpServer> {
        let config = authority.server(names)?;
        let requests = Seen::default();
        let log = requests.clone();
        let tcp = self.tcp(endpoint, move |stream| {
            serve_tls(stream, Arc::clone(&config), &site, &log)
        })?;
        Ok(HttpServer { tcp, requests })
    }
}

fn serve_tls(
    stream: &mut Stream,
    config: Arc<ServerConfig>,
    site: &Site,
    log: &Seen<Request>,
) -> io::Result<()> {
    let peer = plain(stream.socket.peer_addr()?);
    let mut session = ServerConnection::new(config).map_err(io::Error::other)?;
    // Finished before the first request, so that the name is known by then.
    while session.is_handshaking() {
        session.complete_io(stream)?;
    }
    let name = session.server_name().map(str::to_owned);
    let mut stream = StreamOwned::new(session, stream);
    serve(&mut stream, site, log, peer, || name.clone())?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Requests one after the other, until either side has had enough.
fn serve(
    stream: &mut (impl Read + Write),
    site: &Site,
    log: &Seen<Request>,
    peer: SocketAddr,
    server_name: impl Fn() -> Option<String>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(mut request) = read_request(&mut stream, peer)? {
        request.server_name = server_name();
        let page = site.find(&request.target);
        let last = request
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let head_only = request.method == "HEAD";
        log.push(request);
        respond(stream.get_mut(), &page, head_only)?;
        if last {
            break;
        }
    }
    Ok(())
}

/// `None` when the client has closed the connection between two requests.
fn read_request(stream: &mut impl BufRead, peer: SocketAddr) -> io::Result<Option<Request>> {
    let mut head = (&mut *stream).take(LARGEST_HEAD);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        head.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None if line.trim_end().is_empty() => break,
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    let mut request = Request {
        method,
        target,
        headers,
        body: Vec::new(),
        peer,
        server_name: None,
    };
    let length = request.header("content-length").unwrap_or("0").parse();
    let length: u64 = length.map_err(|_| io::ErrorKind::InvalidData)?;
    if length > LARGEST_BODY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    stream.take(length).read_to_end(&mut request.body)?;
    Ok(Some(request))
}

fn respond(stream: &mut impl Write, page: &Page, head_only: bool) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} Page\r\nContent-Length: {}\r\n",
        page.status,
        page.body.len()
    );
    for (name, value) in &page.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    if !head_only {
        stream.write_all(&page.body)?;
    }
    stream.flush()
}
