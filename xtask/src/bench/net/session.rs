//! Servers on a host of the world's internet, and a shell in a column that measures against them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use stockade_world::{Pid, Running, World, eventually};

use super::{CLIENT, COLUMNS, DIRECT, STOCKADE};
use crate::bench::client::{ANSWER, DATAGRAM, REQUEST};
use crate::bench::machine;

/// The host that serves, and what it serves where.
pub(super) const HOST: &str = "server";
pub(super) const ADDRESS: &str = "93.184.216.34";
const ECHO: u16 = 7;
const CONNECT: u16 = 8;
const HOLD: u16 = 9;
const IPERF: u16 = 5201;

/// How long a session may live, and how long a task may take.
const LIMIT: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(25);

/// For everything that is repeated and counted, and for opening thousands of connections; in
/// seconds.
const EXCHANGES: f64 = 0.5;
const HOLDING: f64 = 8.0;
const CONNECTIONS: usize = 10_000;
/// Clients at the same time.
const CROWD: usize = 4;

pub(super) struct Servers<'a> {
    world: &'a World,
    held: Arc<Mutex<Vec<TcpStream>>>,
}

impl<'a> Servers<'a> {
    pub(super) fn start(world: &'a World) -> Result<Self> {
        let host = world.host(HOST);
        world.dns().record("*.bench.example", host.v4());
        host.tcp_echo(ECHO)?;
        host.udp_echo(ECHO)?;
        // Closing first leaves the waiting time that TCP demands with the server: clients never
        // run out of ports.
        host.tcp(CONNECT, |stream| {
            stream.read_exact(&mut [0; REQUEST])?;
            stream.write_all(&[b'!'; ANSWER])
        })?;
        let held: Arc<Mutex<Vec<_>>> = Arc::default();
        let keep = Arc::clone(&held);
        host.tcp(HOLD, move |stream| {
            stream.read_exact(&mut [0])?;
            stream.write_all(b"!")?;
            let socket = stream.socket.try_clone()?;
            lock(&keep).push(socket);
            Ok(())
        })?;
        // Each column has an iperf3 of its own: one that is stuck with the client of one column
        // must not refuse those of the others.
        for (_, port) in COLUMNS.iter().zip(IPERF..) {
            let mut server = Command::new("iperf3");
            server.args(["--server", "--port", &port.to_string()]);
            server.stdout(Stdio::null());
            host.enter(|| server.spawn())
                .context("cannot start iperf3")?;
            let mut look = Command::new("ss");
            look.args(["-Hltn", &format!("sport = :{port}")]);
            eventually("iperf3 listens", PATIENCE, || {
                let found = host.enter(|| look.output());
                found.is_ok_and(|found| !found.stdout.is_empty())
            })?;
        }
        Ok(Self { world, held })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shell that runs in a column.
pub(super) struct Session {
    column: &'static str,
    shell: Running,
    /// Attached to the shell's namespace from outside.
    _helper: Option<Running>,
    /// The process that relays. There is none on the direct way.
    relay: Option<Pid>,
    /// From the start until a server had answered.
    start: Duration,
    client: String,
    /// What the numbers of the last measurement do not say.
    pub(super) note: Option<String>,
}

impl Session {
    pub(super) fn open(world: &World, column: &'static str) -> Result<Self> {
        let laptop = world.laptop();
        let client = laptop.workspace().join(CLIENT).display().to_string();
        let server = format!("{ADDRESS}:{ECHO}");
        let hello = [&client, "bench", "client", "hello", &server];
        let words: &[&str] = match column {
            DIRECT => &[],
            STOCKADE => &["stockade", "run", "--quiet", "--"],
            "pasta" => &["pasta", "--quiet", "--config-net", "--"],
            _ => &["unshare", "--user", "--map-root-user", "--net", "--"],
        };
        let words = [words, &hello].concat();
        let begin = Instant::now();
        let shell = laptop
            .command(words[0])
            .args(&words[1..])
            .limit(LIMIT)
            .spawn()?;
        let mut session = Self {
            column,
            relay: (column != DIRECT).then(|| shell.pid()),
            shell,
            _helper: None,
            start: Duration::ZERO,
            client: format!("{client} bench client"),
            note: None,
        };
        session.reply()?;
        if column == "slirp4netns" {
            // As its manual says to attach it to a namespace that `unshare` made.
            let helper = laptop
                .command(column)
                .args(["--configure", "--mtu=65520", "--disable-host-loopback"])
                .args([&session.shell.pid().as_raw_nonzero().to_string(), "tap0"])
                .limit(LIMIT)
                .spawn()?;
            session.relay = Some(helper.pid());
            session._helper = Some(helper);
        }
        session.reply()?;
        session.start = begin.elapsed();
        Ok(session)
    }

    fn ask(&mut self, line: &str) -> Result<Value> {
        self.shell.write(format!("{line}\n"))?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Value> {
        let line = self.shell.expect_within("\n", PATIENCE).map_err(|_| {
            // Its own text is the whole conversation.
            anyhow!("no reply; stderr: {}", self.shell.stderr_so_far().trim())
        })?;
        let reply: Value =
            serde_json::from_str(&line).with_context(|| format!("cannot understand `{line}`"))?;
        if let Some(error) = reply["error"].as_str() {
            bail!("{error}");
        }
        if let Some(note) = reply["failed"].as_str() {
            self.note = Some(note.to_owned());
        }
        Ok(reply)
    }

    /// The values of the rows that come from a measurement; what there is beyond has no row.
    pub(super) fn measure(
        &mut self,
        measurement: &str,
        servers: &Servers<'_>,
    ) -> Result<Vec<Option<f64>>> {
        let values = match measurement {
            "start" => vec![self.start.as_secs_f64() * 1e3],
            "upload" => return self.bulk(""),
            "download" => return self.bulk("--reverse"),
            "upload4" => vec![self.streams("--parallel 4")?],
            "download4" => vec![self.streams("--parallel 4 --reverse")?],
            "upload16" => vec![self.streams("--parallel 16")?],
            "download16" => vec![self.streams("--parallel 16 --reverse")?],
            "udp-rate" => {
                let report =
                    self.iperf(&format!("--udp --bitrate 0 --length {DATAGRAM} --time 1"))?;
                let sum = |name| number(&report, &format!("/end/sum/{name}"));
                vec![(sum("packets")? - sum("lost_packets")?) / sum("seconds")?]
            }
            "tcp-echo" | "udp-echo" => {
                let server = format!("{ADDRESS}:{ECHO}");
                let reply = self.client(measurement, &server, 1, EXCHANGES)?;
                vec![number(&reply, "/p50")?]
            }
            "connect" | "dns" => {
                servers.world.dns().queries().clear();
                let server = match (measurement, self.column) {
                    ("connect", _) => format!("{ADDRESS}:{CONNECT}"),
                    // It answers at this address of its own network.
                    (_, "slirp4netns") => "10.0.2.3:53".to_owned(),
                    _ => {
                        "$(sed -n 's/^nameserver *//p' /etc/resolv.conf | head -n 1):53".to_owned()
                    }
                };
                let crowd = self.client(measurement, &server, CROWD, EXCHANGES)?;
                let one = self.client(measurement, &server, 1, EXCHANGES / 2.0)?;
                vec![
                    number(&crowd, "/rate")?,
                    number(&one, "/p50")?,
                    number(&one, "/p99")?,
                ]
            }
            _ => return self.memory(servers),
        };
        Ok(values.into_iter().map(Some).collect())
    }

    fn client(&mut self, task: &str, server: &str, threads: usize, seconds: f64) -> Result<Value> {
        let client = &self.client;
        self.ask(&format!("{client} {task} \"{server}\" {threads} {seconds}"))
    }

    fn iperf(&mut self, options: &str) -> Result<Value> {
        let mut ports = COLUMNS.iter().zip(IPERF..);
        let (_, port) = ports
            .find(|(name, _)| **name == self.column)
            .context("no server")?;
        self.ask(&format!(
            "iperf3 --json --client {ADDRESS} --port {port} --connect-timeout 3000 {options} | tr -d '\\n'; echo"
        ))
    }

    fn streams(&mut self, options: &str) -> Result<f64> {
        let report = self.iperf(&format!("--time 1 {options}"))?;
        Ok(number(&report, "/end/sum_received/bits_per_second")? / 1e9)
    }

    /// Speed, processor time of the relay, and that of the relay and both ends.
    fn bulk(&mut self, options: &str) -> Result<Vec<Option<f64>>> {
        let used = |relay: Option<Pid>| relay.map(machine::cpu_seconds).transpose();
        let before = used(self.relay)?;
        let report = self.iperf(&format!("--time 2 {options}"))?;
        let relay = used(self.relay)?
            .zip(before)
            .map(|(after, before)| after - before);
        // In percent of one processor.
        let busy = number(&report, "/end/cpu_utilization_percent/host_total")?
            + number(&report, "/end/cpu_utilization_percent/remote_total")?;
        let ends = busy / 100.0 * number(&report, "/end/sum_received/seconds")?;
        let gigabytes = number(&report, "/end/sum_received/bytes")? / 1e9;
        Ok(vec![
            Some(number(&report, "/end/sum_received/bits_per_second")? / 1e9),
            relay.map(|relay| relay / gigabytes),
            Some((relay.unwrap_or_default() + ends) / gigabytes),
        ])
    }

    /// To be asked of a new session.
    fn memory(&mut self, servers: &Servers<'_>) -> Result<Vec<Option<f64>>> {
        let Some(relay) = self.relay else {
            return Ok(Vec::new());
        };
        let idle = machine::resident(relay)?;
        let client = &self.client;
        let reply = self.ask(&format!(
            "{client} hold {ADDRESS}:{HOLD} {CROWD} {HOLDING} {CONNECTIONS}"
        ));
        let loaded = machine::resident(relay);
        lock(&servers.held).clear();
        let count = number(&reply?, "/count")?;
        // It lets go.
        self.shell.write("\n")?;
        let note = self.note.take();
        self.note = note.map(|note| format!("no more connections at some point: {note}"));
        Ok(vec![Some(idle), Some(loaded?), Some(count)])
    }
}

fn number(reply: &Value, path: &str) -> Result<f64> {
    let number = reply.pointer(path).and_then(Value::as_f64);
    number.with_context(|| format!("no {path} in {reply}"))
}
