//! The client: runs inside a column, does one thing against one server, and prints a line of JSON.
//!
//! Plain threads and blocking sockets, the same code in every column.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use stockade_world::dns_messages::{CLASS, Name, Packet, Question, TYPE};

use super::machine;

/// Sizes of a request and its answer, and of a datagram, in bytes.
pub(super) const REQUEST: usize = 100;
pub(super) const ANSWER: usize = 1000;
pub(super) const DATAGRAM: usize = 64;

/// How long one exchange may take before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long to look for a server after the start.
const PATIENCE: Duration = Duration::from_secs(8);
/// The part of the time that is spent before counting starts.
const WARM_UP: f64 = 0.15;
/// After this many failures in a row, a thread gives up.
const HOPELESS: u32 = 3;

#[derive(Args)]
pub(super) struct Arguments {
    task: Task,
    server: SocketAddr,
    #[arg(default_value_t = 1)]
    threads: usize,
    #[arg(default_value_t = 1.0)]
    seconds: f64,
    /// Connections to hold
    #[arg(default_value_t = 0)]
    count: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Task {
    /// Says when it runs and when the server has answered, then becomes a shell
    Hello,
    /// Connect, ask, read the answer until the server closes: HTTP/1.0 in small
    Connect,
    /// One byte there and back on one connection
    TcpEcho,
    /// A small datagram there and back
    UdpEcho,
    /// A new name, and a new socket, for each query, as the C library's resolver does it
    Dns,
    /// Keep connections open until a line comes on standard input
    Hold,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let (server, threads, seconds) = (arguments.server, arguments.threads, arguments.seconds);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
    let reply = match arguments.task {
        Task::Hello => {
            println!("\"started\"");
            let reply = match first_answer(server) {
                Ok(()) => json!("ready"),
                Err(error) => json!({ "error": format!("no answer from {server}: {error}") }),
            };
            println!("{reply}");
            return Err(Command::new("sh").exec()).context("cannot become a shell");
        }
        Task::Connect => repeat(threads, seconds, |_| Ok(move || request(server))),
        Task::TcpEcho => repeat(threads, seconds, |_| {
            let mut stream = open(server)?;
            Ok(move || byte(&mut stream))
        }),
        Task::UdpEcho => repeat(threads, seconds, |_| {
            let (socket, mut number) = (datagrams(server)?, 0);
            Ok(move || {
                number += 1;
                datagram(&socket, number)
            })
        }),
        Task::Dns => repeat(threads, seconds, |thread| {
            let mut number = 0;
            Ok(move || {
                number += 1;
                look_up(server, &format!("n{now}-{thread}-{number}.bench.example"))
            })
        }),
        Task::Hold => {
            machine::raise_descriptor_limit();
            let (streams, complaint) = hold(server, threads, seconds, arguments.count);
            let reply = json!({ "count": streams.len(), "failed": complaint });
            println!("{reply}");
            io::stdin().read_line(&mut String::new())?;
            return Ok(());
        }
    };
    println!("{reply}");
    Ok(())
}

/// Asks until somebody answers: a network may come up after the program that is to use it.
fn first_answer(server: SocketAddr) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match open(server).and_then(|mut stream| byte(&mut stream)) {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            answer => return answer,
        }
    }
}

fn open(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn byte(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"?")?;
    stream.read_exact(&mut [0])
}

fn request(server: SocketAddr) -> io::Result<()> {
    let mut stream = open(server)?;
    stream.write_all(&[b'?'; REQUEST])?;
    let mut answer = Vec::with_capacity(2 * ANSWER);
    match stream.read_to_end(&mut answer)? {
        ANSWER => Ok(()),
        _ => Err(io::Error::other("the answer was cut short")),
    }
}

fn datagrams(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(server)?;
    // Long enough that a late answer is a lost one.
    socket.set_read_timeout(Some(TIMEOUT / 8))?;
    Ok(socket)
}

fn datagram(socket: &UdpSocket, number: u64) -> io::Result<()> {
    let mut datagram = [0; DATAGRAM];
    datagram[..8].copy_from_slice(&number.to_be_bytes());
    socket.send(&datagram)?;
    let mut answer = [0; DATAGRAM];
    // Late answers to earlier datagrams may come first.
    while answer != datagram {
        socket.recv(&mut answer)?;
    }
    Ok(())
}

fn look_up(server: SocketAddr, name: &str) -> io::Result<()> {
    let mut query = Packet::new_query(1);
    let name = Name::new(name).map_err(io::Error::other)?;
    query
        .questions
        .push(Question::new(name, TYPE::A.into(), CLASS::IN.into(), false));
    let socket = datagrams(server)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.send(&query.build_bytes_vec().map_err(io::Error::other)?)?;
    let mut answer = [0; 1500];
    let count = socket.recv(&mut answer)?;
    let answer = Packet::parse(&answer[..count]).map_err(io::Error::other)?;
    match answer.answers.len() {
        1 => Ok(()),
        _ => Err(io::Error::other("not the answer to this query")),
    }
}

/// Opens connections, of which each has carried a byte both ways; and why they are not more.
fn hold(
    server: SocketAddr,
    threads: usize,
    seconds: f64,
    count: usize,
) -> (Vec<TcpStream>, Option<String>) {
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let share = |_| {
        let mut streams = Vec::new();
        for _ in 0..count / threads {
            let stream = open(server).and_then(|mut stream| byte(&mut stream).map(|()| stream));
            match stream {
                _ if Instant::now() > deadline => {
                    return (streams, Some("the time was over".to_owned()));
                }
                Ok(stream) => streams.push(stream),
                Err(error) => return (streams, Some(error.to_string())),
            }
        }
        (streams, None)
    };
    let (streams, complaints): (Vec<_>, Vec<_>) = at_once(threads, share).into_iter().unzip();
    let streams = streams.into_iter().flatten().collect();
    (streams, complaints.into_iter().flatten().next())
}

/// The results of threads that do the same.
fn at_once<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let start = |number| scope.spawn(move || work(number));
        let threads: Vec<_> = (0..threads).map(start).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    })
}

/// Does an exchange over and over, on several threads; `prepare` makes it for each of them.
fn repeat<E: FnMut() -> io::Result<()>>(
    threads: usize,
    seconds: f64,
    prepare: impl Fn(usize) -> io::Result<E> + Sync,
) -> Value {
    let begin = Instant::now() + Duration::from_secs_f64(seconds * WARM_UP);
    let end = begin + Duration::from_secs_f64(seconds);
    let work = |number: usize| {
        let (mut latencies, mut failure, mut failures) = (Vec::new(), None, 0);
        let mut exchange = match prepare(number) {
            Ok(exchange) => exchange,
            Err(error) => return (latencies, Some(error.to_string())),
        };
        let mut start = Instant::now();
        while start < end && failures < HOPELESS {
            let outcome = exchange();
            let stop = Instant::now();
            match outcome {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    failure.get_or_insert(error.to_string());
                }
            }
            if failures == 0 && start >= begin && stop <= end {
                latencies.push((stop - start).as_secs_f64() * 1e6);
            }
            start = stop;
        }
        (latencies, failure)
    };
    let (latencies, failures): (Vec<_>, Vec<_>) = at_once(threads, work).into_iter().unzip();
    let mut latencies = latencies.concat();
    latencies.sort_by(f64::total_cmp);
    let failure = failures.into_iter().flatten().next();
    if latencies.is_empty() {
        let reason = failure.unwrap_or("the time was too short".to_owned());
        return json!({ "error": format!("no exchange succeeded: {reason}") });
    }
    let percentile = |percent| latencies[latencies.len() * percent / 100];
    json!({
        "rate": latencies.len() as f64 / seconds,
        "p50": percentile(50),
        "p99": percentile(99),
        "failed": failure.map(|_| "some exchanges failed"),
    })
}
