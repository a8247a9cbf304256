//! The names that a connection shows.
//!
//! A connection that was admitted because its address was given out for an allowed name may
//! show a name itself: in the hello of TLS, in each request of plain HTTP. Many names share
//! one address, so what shows is judged. The client's bytes wait until they are; the
//! server's flow at once, so a protocol in which the server speaks first never stalls.
//!
//! What is neither TLS nor HTTP shows no name and passes, as far as its address may. What
//! claims to be one of them and is not well formed does not: two readers could understand it
//! differently.
//!
//! A connection that begins in the clear may go over to TLS at any time, and a client may speak
//! one protocol to the gate and another one to the server. So all that a client sends is searched
//! for hellos as it leaves, until the server's own first bytes show that none can come: it
//! answered a hello with one of its own, or speaks HTTP, ssh or rsync.
//!
//! A server that speaks first may still serve requests, as those of HTTP/2 do. So a client that
//! begins with a request, or begins with one after the server has spoken, is judged for it.
//!
//! Some servers serve first lines that are no requests to others, too. Until the server has spoken, the
//! client is refused if a request's fields follow such a line, or another request. If the server
//! then answers in HTTP, nothing more is passed on.
//!
//! A client may send the start of what could become a request, and then wait for an answer to
//! just that. So what has been held for a moment is sent, and read on all the same: no server
//! acts on a part of a hello or of a head, and the last byte of either leaves only when the
//! name in it may show.

use std::{
    cell::{Cell, RefCell},
    io,
    net::IpAddr,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use rustix::net::{RecvFlags, recv};
use stockade_policy::Hostname;
use stockade_wire::{
    http::{self, Authority, FirstLine, Head, Kind, LateRequest, Requests, Step, Unanswered},
    tls::{self, Handshake, Hello, Inspection, Late, Next, SPARE_WORK, Search},
};
use tokio::{
    io::{AsyncWriteExt as _, Interest, copy, sink},
    net::TcpStream,
    sync::Notify,
    task::yield_now,
    time::{Instant, timeout},
};

use super::relay::Stop;
use crate::{
    audit::denials::{Ruling, Subject, shown},
    event_loop::busy_poll,
    flows::ActiveFlow,
    judge::Judge,
};

const READ: usize = 16 * 1024;
/// Of all connections together, besides the little that each may hold, which is all that most ever
/// do. A program inside could have thousands of them wait. Beyond it, the one that holds most fails.
const HELD_LIMIT: usize = 16 << 20;
const LITTLE: usize = 4096;
/// So many small pieces leave before others have their turn.
const PIECES: usize = 32;
/// How long what a client sent is held while it sends nothing more.
const HESITATION: Duration = Duration::from_millis(100);
/// How long a client may take to read why it was refused.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);

/// How much of the work for odd hellos comes back: all of it in eight seconds. It takes a small part of the gate's
/// time, whatever programs inside send.
const SPARE_PER_MILLISECOND: usize = SPARE_WORK >> 13;

thread_local! {
    static SPARE: RefCell<(usize, Instant)> = RefCell::new((SPARE_WORK, Instant::now()));
    /// What each connection holds.
    static HOLDERS: RefCell<Holders> = RefCell::default();
    /// Bytes stay here only until it is known whose they are.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// Looks for hellos with what all connections share for odd ones, which comes back with time.
fn with_spare_work<T>(look: impl FnOnce(&mut usize) -> T) -> T {
    SPARE.with_borrow_mut(|(spare, since)| {
        let now = Instant::now();
        let back = now.duration_since(*since).as_millis() as usize * SPARE_PER_MILLISECOND;
        if back > 0 {
            *spare = spare.saturating_add(back).min(SPARE_WORK);
            *since = now;
        }
        look(spare)
    })
}

/// Watches over one connection.
#[derive(Debug)]
pub(crate) struct Inspector {
    judge: Rc<Judge>,
    flow: Arc<ActiveFlow>,
    requests: RefCell<Requests>,
    /// The client asked for a WebSocket; the server has not answered yet.
    may_switch: Cell<bool>,
    /// What the server speaks, once it has said something.
    server: Cell<Option<Speech>>,
    /// It has said something since the client did.
    spoke: Cell<bool>,
}

/// A protocol, by the first bytes of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    Tls,
    Http,
    /// It stays what it is, without TLS.
    Ssh,
    Rsync,
    Other,
}

impl Speech {
    fn of(start: &[u8]) -> Self {
        match start {
            // A handshake record that begins with a ServerHello.
            [22, 3, _, _, _, 2, ..] => Self::Tls,
            _ if start.starts_with(b"HTTP/") => Self::Http,
            _ if start.starts_with(b"SSH-") => Self::Ssh,
            _ if start.starts_with(b"@RSYNCD:") => Self::Rsync,
            _ => Self::Other,
        }
    }
}

/// How a connection goes on.
pub(crate) enum Vetted {
    /// Nothing more is looked at.
    Opaque,
    /// The client has ended.
    Ended,
}

/// What is known of the client's protocol.
enum Protocol {
    Unknown,
    Tls(Handshake),
    Http,
    /// Neither; the client began like this.
    Other(Speech),
}

/// All that a client has sent so far, as far as it matters.
#[derive(Default)]
struct Sent {
    hellos: Search,
    first_line: FirstLine,
    late_request: LateRequest,
    /// What stands behind a first line that is none of HTTP. Nothing before the client is known to begin so.
    unanswered: Option<Unanswered>,
}

impl Sent {
    fn kept(&self) -> usize {
        let unanswered = self.unanswered.as_ref().map_or(0, Unanswered::kept);
        self.hellos.kept() + self.late_request.kept() + unanswered
    }

    /// Nothing of what is held has been dropped when a client is first known to begin with something else
    /// than HTTP, though some of it may have left.
    fn look_behind(&mut self, held: &Held, count: usize) -> Result<(), http::Broken> {
        let is_new = self.unanswered.is_none();
        let fresh = match is_new {
            true => held.bytes.get(..count).unwrap_or_default(),
            false => held.unsent(count),
        };
        self.unanswered.get_or_insert_default().pass(fresh)
    }
}

/// What to do next.
enum Todo {
    Read,
    Send(usize),
    /// All that is held, and all that follows.
    LetGo,
}

impl Inspector {
    pub(crate) fn new(judge: Rc<Judge>, flow: Arc<ActiveFlow>) -> Self {
        Self {
            judge,
            flow,
            requests: RefCell::default(),
            may_switch: Cell::new(false),
            server: Cell::new(None),
            spoke: Cell::new(false),
        }
    }

    /// Passes on what the client sends, as long as it has to be looked at.
    /// Tells how much that was.
    pub(crate) async fn vet(
        &self,
        near: &TcpStream,
        far: &TcpStream,
        passed: impl Fn(usize),
    ) -> Result<Vetted, Stop> {
        let mut held = Held::default();
        let holder = Rc::clone(&held.holder);
        tokio::select! {
            biased;
            () = holder.fails.notified() => Err(Stop::Failed),
            vetted = self.vet_held(&mut held, near, far, passed) => vetted,
        }
    }

    async fn vet_held(
        &self,
        held: &mut Held,
        near: &TcpStream,
        far: &TcpStream,
        passed: impl Fn(usize),
    ) -> Result<Vetted, Stop> {
        let mut protocol = Protocol::Unknown;
        let mut sent = Sent::default();
        let mut pieces = 0_usize;
        loop {
            match self.next(&mut protocol, &held.bytes)? {
                Todo::Send(count) => {
                    self.search(&protocol, &mut sent, held, count)?;
                    held.send(far, count, &passed).await?;
                    held.drop_front(count);
                    held.count(sent.kept());
                    busy_poll::extend();
                    // A fast sender must not keep the others waiting.
                    pieces += 1;
                    if count >= LITTLE || pieces.is_multiple_of(PIECES) {
                        yield_now().await;
                    }
                }
                Todo::LetGo => {
                    held.send(far, held.bytes.len(), &passed).await?;
                    return Ok(Vetted::Opaque);
                }
                Todo::Read => {
                    let all = held.bytes.len();
                    let read = if held.unsent(all).is_empty() {
                        held.read(near).await?
                    } else {
                        match timeout(HESITATION, held.read(near)).await {
                            Ok(read) => read?,
                            Err(_hesitates) => {
                                self.search(&protocol, &mut sent, held, all)?;
                                held.send(far, all, &passed).await?;
                                held.read(near).await?
                            }
                        }
                    };
                    if read == 0 {
                        self.may_end(&protocol, &held.bytes)?;
                        self.search(&protocol, &mut sent, held, all)?;
                        held.send(far, all, &passed).await?;
                        return Ok(Vetted::Ended);
                    }
                }
            }
        }
    }

    fn next(&self, protocol: &mut Protocol, held: &[u8]) -> Result<Todo, Stop> {
        match protocol {
            Protocol::Unknown => match tls::inspect(held) {
                Inspection::NeedMore => Ok(Todo::Read),
                Inspection::NotTls => {
                    *protocol = Protocol::Http;
                    self.next(protocol, held)
                }
                Inspection::Hello(hello) => {
                    self.judge_hello(&hello)?;
                    *protocol = Protocol::Tls(Handshake::after(&hello));
                    Ok(Todo::Send(hello.length))
                }
                Inspection::Broken(why) => Err(self.deny_tls(&why.to_string())),
            },
            Protocol::Tls(handshake) => match handshake.next(held) {
                Next::NeedMore => Ok(Todo::Read),
                Next::Release(count) => Ok(Todo::Send(count)),
                // The client goes on from what the server answered, and that came by here.
                Next::Opaque if self.server.get() == Some(Speech::Tls) => Ok(Todo::LetGo),
                Next::Opaque => {
                    *protocol = Protocol::Other(Speech::Tls);
                    Ok(Todo::Send(held.len()))
                }
                Next::Broken(why) => Err(self.deny_tls(&why.to_string())),
            },
            Protocol::Http => match self.http(held)? {
                Some(todo) => Ok(todo),
                None => {
                    *protocol = Protocol::Other(Speech::of(held));
                    self.next(protocol, held)
                }
            },
            Protocol::Other(_) if held.is_empty() => Ok(Todo::Read),
            Protocol::Other(speech @ (Speech::Ssh | Speech::Rsync))
                if self.server.get() == Some(*speech) =>
            {
                Ok(Todo::LetGo)
            }
            Protocol::Other(_) => Ok(Todo::Send(held.len())),
        }
    }

    /// Looks for names in what is about to leave, wherever they stand: the first `count` of what is held.
    fn search(
        &self,
        protocol: &Protocol,
        sent: &mut Sent,
        held: &Held,
        count: usize,
    ) -> Result<(), Stop> {
        let leaving = held.unsent(count);
        let server = self.server.get();
        if server.is_some() {
            sent.first_line.greeted();
        }
        sent.first_line.pass(leaving);
        let is_disguised = match protocol {
            Protocol::Unknown | Protocol::Tls(_) => sent.first_line.names_http_in_hello(),
            Protocol::Other(_) => sent.first_line.names_http(),
            Protocol::Http => false,
        };
        if is_disguised {
            return Err(self.deny_http(http::Broken::Disguised));
        }
        if let Protocol::Other(speech) = protocol {
            match server {
                // It took for a request what was passed on unread.
                Some(Speech::Http) if !leaving.is_empty() => {
                    return Err(self.deny_http(http::Broken::Late));
                }
                Some(_) => sent.unanswered = None,
                None if *speech == Speech::Tls => {}
                None => sent
                    .look_behind(held, count)
                    .map_err(|why| self.deny_http(why))?,
            }
            if self.spoke.take() {
                sent.late_request.turn();
            }
            if sent.late_request.pass(leaving) {
                return Err(self.deny_http(http::Broken::Late));
            }
        }
        if matches!(protocol, Protocol::Http) && server == Some(Speech::Http) {
            return Ok(());
        }
        with_spare_work(|spare| {
            sent.hellos.pass(leaving, spare, |late| match late {
                Late::Hello(hello) => self.judge_hello(&hello),
                Late::Broken(why) => Err(self.deny_tls(&why.to_string())),
            })
        })
    }

    /// Whether what is left at the end may go: not a part of a hello or of a request, on which
    /// some server might act.
    fn may_end(&self, protocol: &Protocol, held: &[u8]) -> Result<(), Stop> {
        let may = match protocol {
            Protocol::Unknown | Protocol::Tls(_) => held.is_empty(),
            Protocol::Http => self.requests.borrow().may_end(held),
            Protocol::Other(_) => true,
        };
        if may { Ok(()) } else { Err(Stop::Failed) }
    }

    /// Nothing if the connection is not HTTP.
    fn http(&self, held: &[u8]) -> Result<Option<Todo>, Stop> {
        let mut requests = self.requests.borrow_mut();
        // Servers of HTTP/2 may speak first, and nobody knows who else. MySQL's clients begin like a
        // sloppy request, but do not name HTTP.
        let is_other = self
            .server
            .get()
            .is_some_and(|server| server != Speech::Http);
        if is_other {
            requests.greeted();
        }
        match requests.step(held) {
            Step::NeedMore => Ok(Some(Todo::Read)),
            Step::Release(count) => Ok(Some(Todo::Send(count))),
            Step::Head(head) => {
                self.judge_head(&head)?;
                self.may_switch.set(head.kind == Kind::WebSocket);
                Ok(Some(Todo::Send(head.length)))
            }
            Step::Opaque => Ok(Some(Todo::LetGo)),
            Step::NotHttp => Ok(None),
            Step::Broken(why) => Err(self.deny_http(why)),
        }
    }

    fn deny_http(&self, why: http::Broken) -> Stop {
        self.record("a request", &why.to_string());
        Stop::Denied(forbidden(400, &why.to_string()))
    }

    /// A hello without a name shows none.
    fn judge_hello(&self, hello: &Hello) -> Result<(), Stop> {
        let Some(text) = &hello.server_name else {
            return Ok(());
        };
        match self.judge_name(text) {
            Ok(()) => Ok(()),
            Err(_) => Err(Stop::Denied(ACCESS_DENIED.to_vec())),
        }
    }

    fn judge_head(&self, head: &Head) -> Result<(), Stop> {
        let refused = |why: String| Stop::Denied(forbidden(403, &why));
        if head.kind == Kind::Connect {
            let why = "a tunnel through a server that is allowed by name could lead anywhere; \
                       have Stockade use the proxy, with --proxy";
            self.record("CONNECT", why);
            return Err(refused(why.to_owned()));
        }
        // HTTP/1.0 without a Host shows no name.
        match head.authority.as_ref().map(Authority::host) {
            None => Ok(()),
            Some(host) => self.judge_name(host).map_err(|ruling| {
                let fix = ruling.fix().map(|rule| format!("; to allow it: {rule}"));
                refused(format!("{ruling}{}", fix.unwrap_or_default()))
            }),
        }
    }

    fn judge_name(&self, text: &str) -> Result<(), Ruling> {
        let Some(name) = Hostname::from_wire(text.as_bytes()) else {
            let address = text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
            let why = if address {
                "an address stands where a name of this server is expected"
            } else {
                "this is no host name"
            };
            self.record(&shown(text), why);
            return Err(Ruling::Malformed(why.to_owned()));
        };
        self.judge.judge_claim(&self.flow, &name)?;
        self.flow.claims(name);
        Ok(())
    }

    fn deny_tls(&self, why: &str) -> Stop {
        self.record("a TLS hello", why);
        Stop::Denied(DECODE_ERROR.to_vec())
    }

    fn record(&self, what: &str, why: &str) {
        let subject = Subject::Claim(self.flow.flow, what.to_owned());
        self.judge
            .denied(subject, Ruling::Malformed(why.to_owned()), None);
    }

    /// To be called before what the server sent is passed on: its first bytes show what it
    /// speaks, and an agreement to a WebSocket changes how the client is read.
    pub(crate) async fn look_at_answer(&self, far: &TcpStream) -> io::Result<()> {
        self.spoke.set(true);
        if self.server.get().is_none() {
            let mut start = [0; 16];
            // Nothing is there if it has ended. What comes in small pieces is not recognised,
            // and its client is looked at for longer.
            if let Ok((length, _)) = recv(far, &mut start, RecvFlags::PEEK | RecvFlags::DONTWAIT)
                && length > 0
            {
                let start = start.get(..length).unwrap_or_default();
                self.server.set(Some(Speech::of(start)));
            }
        }
        while self.may_switch.get() {
            far.readable().await?;
            let mut start = [0; 16];
            let looked = far.try_io(Interest::READABLE, || {
                let (length, _) = recv(far, &mut start, RecvFlags::PEEK)?;
                let answer = start.get(..length).unwrap_or_default();
                match http::is_switch(answer) {
                    // The rest is on its way.
                    None if length > 0 => Err(io::ErrorKind::WouldBlock.into()),
                    switch => Ok(switch == Some(true)),
                }
            });
            match looked {
                Ok(switches) => {
                    self.may_switch.set(false);
                    if switches && !self.requests.borrow_mut().switched() {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Bytes that wait, counted.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// So many of them have left already.
    sent: usize,
    /// Kept besides them, and counted with them.
    elsewhere: usize,
    holder: Rc<Holder>,
}

/// How much one connection holds, beyond a little.
#[derive(Debug, Default)]
struct Holder {
    counted: Cell<usize>,
    /// Others need the room.
    fails: Notify,
}

/// Those that hold more than a little.
#[derive(Debug, Default)]
struct Holders {
    all: Vec<Rc<Holder>>,
    sum: usize,
}

impl Holders {
    fn set(&mut self, holder: &Rc<Holder>, counted: usize) {
        let before = holder.counted.replace(counted);
        self.sum = self.sum - before + counted;
        match (before, counted) {
            (0, 1..) => self.all.push(Rc::clone(holder)),
            (1.., 0) => self.all.retain(|it| !Rc::ptr_eq(it, holder)),
            _ => {}
        }
    }

    /// Has those fail that hold most, until the rest is within the limit.
    fn keep_limit(&mut self) {
        while self.sum > HELD_LIMIT {
            let most = self.all.iter().max_by_key(|it| it.counted.get()).cloned();
            let Some(most) = most else {
                return;
            };
            // It lets go when it runs next, which is soon.
            most.fails.notify_one();
            self.set(&most, 0);
        }
    }
}

impl Held {
    /// Reads more. Nothing is the end.
    async fn read(&mut self, from: &TcpStream) -> io::Result<usize> {
        loop {
            from.readable().await?;
            let read = BUFFER.with_borrow_mut(|buffer| {
                // Where much is held already, little is taken at a time, which is no failure.
                let most = if HOLDERS.with_borrow(|it| it.sum) > HELD_LIMIT / 2 {
                    LITTLE
                } else {
                    READ
                };
                let buffer = buffer.get_mut(..most).unwrap_or_default();
                let read = from.try_read(buffer)?;
                self.bytes
                    .extend_from_slice(buffer.get(..read).unwrap_or_default());
                Ok::<_, io::Error>(read)
            });
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => {
                    let read = read?;
                    self.count(self.elsewhere);
                    return Ok(read);
                }
            }
        }
    }

    /// Sends the first `count`, as far as they have not left. Tells of each part as it leaves.
    async fn send(
        &mut self,
        to: &TcpStream,
        count: usize,
        passed: &impl Fn(usize),
    ) -> io::Result<()> {
        while self.sent < count {
            to.writable().await?;
            match to.try_write(self.unsent(count)) {
                Ok(written) => {
                    self.sent += written;
                    passed(written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn drop_front(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
        self.sent = self.sent.saturating_sub(count);
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }

    /// What has not left of the first `count`.
    fn unsent(&self, count: usize) -> &[u8] {
        self.bytes.get(self.sent..count).unwrap_or_default()
    }

    /// `elsewhere` are bytes of the connection that are kept besides these.
    fn count(&mut self, elsewhere: usize) {
        self.elsewhere = elsewhere;
        let counted = (self.bytes.capacity() + elsewhere).saturating_sub(LITTLE);
        HOLDERS.with_borrow_mut(|holders| {
            holders.set(&self.holder, counted);
            holders.keep_limit();
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // At the end of the thread the counter may be gone before the flows.
        let _ = HOLDERS.try_with(|holders| holders.borrow_mut().set(&self.holder, 0));
    }
}

pub(crate) async fn send(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Tells a client why its connection ends. To close at once would take the message back, if
/// something of the client's is still unread.
pub(crate) async fn farewell(mut near: TcpStream, message: &[u8]) {
    let told = async {
        near.write_all(message).await?;
        near.shutdown().await?;
        copy(&mut near, &mut sink()).await
    };
    // A client that does not listen is not told.
    let _ = timeout(FAREWELL_LIMIT, told).await;
}

/// Fatal alerts of TLS: access_denied and decode_error.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];

/// An answer of the gate's own to a plain HTTP request.
pub(crate) fn forbidden(status: u16, why: &str) -> Vec<u8> {
    let reason = if status == 403 {
        "Forbidden"
    } else {
        "Bad Request"
    };
    let body = format!("Stockade: denied: {why}\n");
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
