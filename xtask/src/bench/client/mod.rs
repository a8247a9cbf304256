//! The client: runs inside a column, does what it is told, reports numbers.
//!
//! Plain threads and blocking sockets, the same code in every column. It comes
//! to life several times in a round, so it knows nothing about columns.

mod dns;
mod hold;
mod iperf;
mod tcp;
mod timing;
mod udp;

use std::io::{self, BufRead, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;

use super::task::{Reply, Task};

/// How long one exchange may take before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long to look for a server after the start.
const PATIENCE: Duration = Duration::from_secs(8);

#[derive(Args)]
pub(crate) struct Arguments {
    /// An echo server; the client is ready when that has answered
    hello: SocketAddr,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match serve(arguments.hello) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench client: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve(hello: SocketAddr) -> Result<()> {
    say(&Reply::Started)?;
    say(&match first_answer(hello) {
        Ok(()) => Reply::Ready,
        Err(error) => Reply::Failed(format!("no answer from {hello}: {error}")),
    })?;
    let mut held = hold::Held::default();
    for line in io::stdin().lock().lines() {
        let task: Task = serde_json::from_str(&line?).context("cannot understand the task")?;
        let reply =
            perform(&task, &mut held).unwrap_or_else(|error| Reply::Failed(format!("{error:#}")));
        say(&reply)?;
    }
    Ok(())
}

fn say(reply: &Reply) -> Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, reply)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}

fn perform(task: &Task, held: &mut hold::Held) -> Result<Reply> {
    Ok(match *task {
        Task::Iperf {
            server,
            streams,
            seconds,
            reverse,
        } => Reply::Transfer(iperf::run(server, streams, seconds, reverse)?),
        Task::Connect {
            server,
            threads,
            seconds,
        } => Reply::Exchanges(tcp::connect(server, threads, seconds)?),
        Task::TcpEcho { server, seconds } => Reply::Exchanges(tcp::echo(server, seconds)?),
        Task::UdpEcho { server, seconds } => Reply::Exchanges(udp::echo(server, seconds)?),
        Task::UdpFlood { server, seconds } => Reply::Exchanges(udp::flood(server, seconds)?),
        Task::Dns {
            server,
            threads,
            seconds,
        } => Reply::Exchanges(dns::ask(server, threads, seconds)?),
        Task::Hold {
            server,
            count,
            seconds,
        } => held.open(server, count, seconds)?,
        Task::Release => {
            held.release();
            Reply::Done
        }
    })
}

/// Asks until somebody answers: a network may come up after the program that
/// is to use it.
fn first_answer(server: SocketAddr) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = tcp::open(server).and_then(|mut stream| {
            stream.write_all(b"?")?;
            stream.read_exact(&mut [0])
        });
        match answer {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            answer => return answer,
        }
    }
}
