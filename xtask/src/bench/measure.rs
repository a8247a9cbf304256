//! From a task to the rows of the table.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::column::{Column, Session};
use super::relay;
use super::rows::Row;
use super::server::Servers;
use super::settings::Settings;
use super::task::{Exchanges, Reply, Task, Transfer};

/// One thing to do in every column, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measurement {
    /// Until a server has answered the first byte
    Start,
    /// iperf3, one stream, with the relay's CPU time
    Upload,
    /// iperf3, one stream, with the relay's CPU time
    Download,
    /// iperf3, four streams at once
    Upload4,
    /// iperf3, four streams at once
    Download4,
    /// iperf3, sixteen streams at once
    Upload16,
    /// iperf3, sixteen streams at once
    Download16,
    /// A new connection for each request
    Connect,
    /// One byte there and back on one connection
    TcpEcho,
    /// A datagram there and back
    UdpEcho,
    /// Datagrams one way, counted where they arrive
    UdpRate,
    /// Queries for new names
    Dns,
    /// Resident memory of a new relay, idle and with many connections
    Memory,
}

/// Clients that connect, or ask for names, at the same time.
const CROWD: usize = 4;
/// What a task may take beyond the time it was given.
const GRACE: Duration = Duration::from_secs(25);
/// For opening thousands of connections, in seconds.
const HOLDING: f64 = 8.0;

/// Values for rows, and what has to be said about them.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) values: Vec<(Row, f64)>,
    pub(crate) notes: Vec<String>,
}

impl Findings {
    fn of<const N: usize>(values: [(Row, f64); N]) -> Self {
        Self {
            values: values.to_vec(),
            notes: Vec::new(),
        }
    }
}

/// One column's client with all that it is measured against.
pub(crate) struct Bench<'a> {
    pub(crate) column: Column,
    pub(crate) session: &'a mut Session,
    pub(crate) servers: &'a Servers,
    pub(crate) settings: &'a Settings,
}

impl Bench<'_> {
    pub(crate) fn measure(&mut self, what: Measurement) -> Result<Findings> {
        match what {
            Measurement::Start => self.start(),
            Measurement::Upload => self.bulk(false),
            Measurement::Download => self.bulk(true),
            Measurement::Upload4 => self.streams(Row::Upload4, 4, false),
            Measurement::Download4 => self.streams(Row::Download4, 4, true),
            Measurement::Upload16 => self.streams(Row::Upload16, 16, false),
            Measurement::Download16 => self.streams(Row::Download16, 16, true),
            Measurement::Connect => self.connect(),
            Measurement::TcpEcho => self.tcp_echo(),
            Measurement::UdpEcho => self.udp_echo(),
            Measurement::UdpRate => self.udp_rate(),
            Measurement::Dns => self.dns(),
            Measurement::Memory => self.memory(),
        }
    }

    /// Already known: opening the session took its time.
    fn start(&self) -> Result<Findings> {
        let milliseconds = self.session.start.as_secs_f64() * 1e3;
        Ok(Findings::of([(Row::Start, milliseconds)]))
    }

    fn bulk(&mut self, reverse: bool) -> Result<Findings> {
        let (speed, relay_cpu, total_cpu) = if reverse {
            (Row::Download, Row::RelayCpuDownload, Row::TotalCpuDownload)
        } else {
            (Row::Upload, Row::RelayCpuUpload, Row::TotalCpuUpload)
        };
        let before = self.relay_cpu()?;
        let transfer = self.transfer(1, self.settings.stream_seconds, reverse)?;
        let after = self.relay_cpu()?;
        let gigabytes = transfer.bytes / 1e9;
        let relayed = after.zip(before).map(|(after, before)| after - before);
        let mut findings = Findings::of([
            (speed, transfer.bits_per_second / 1e9),
            (
                total_cpu,
                (transfer.cpu_seconds + relayed.unwrap_or_default()) / gigabytes,
            ),
        ]);
        if let Some(relayed) = relayed {
            findings.values.push((relay_cpu, relayed / gigabytes));
        }
        Ok(findings)
    }

    fn relay_cpu(&self) -> Result<Option<f64>> {
        self.session.relay().map(relay::cpu_seconds).transpose()
    }

    fn streams(&mut self, row: Row, streams: u32, reverse: bool) -> Result<Findings> {
        let transfer = self.transfer(streams, self.settings.streams_seconds, reverse)?;
        Ok(Findings::of([(row, transfer.bits_per_second / 1e9)]))
    }

    fn transfer(&mut self, streams: u32, seconds: u32, reverse: bool) -> Result<Transfer> {
        let task = Task::Iperf {
            server: self.servers.iperf(self.column),
            streams,
            seconds,
            reverse,
        };
        match self.session.ask(&task, GRACE)? {
            Reply::Transfer(transfer) => Ok(transfer),
            other => bail!("unexpected reply {other:?}"),
        }
    }

    /// A crowd for the rate, a single client for the latency.
    fn connect(&mut self) -> Result<Findings> {
        let task = |threads, seconds| Task::Connect {
            server: self.servers.connect,
            threads,
            seconds,
        };
        let (crowd, single) = (
            task(CROWD, self.settings.exchange_seconds),
            task(1, self.settings.exchange_seconds / 2.0),
        );
        let (rate, mut notes) = self.exchanges(&crowd)?;
        let (latency, more) = self.exchanges(&single)?;
        notes.extend(more);
        Ok(Findings {
            values: vec![
                (Row::ConnectRate, rate.per_second),
                (Row::ConnectP50, latency.p50 * 1e6),
                (Row::ConnectP99, latency.p99 * 1e6),
            ],
            notes,
        })
    }

    fn tcp_echo(&mut self) -> Result<Findings> {
        let (latency, notes) = self.exchanges(&Task::TcpEcho {
            server: self.servers.tcp_echo,
            seconds: self.settings.exchange_seconds,
        })?;
        let values = vec![(Row::TcpEcho, latency.p50 * 1e6)];
        Ok(Findings { values, notes })
    }

    fn udp_echo(&mut self) -> Result<Findings> {
        let (latency, notes) = self.exchanges(&Task::UdpEcho {
            server: self.servers.udp_echo,
            seconds: self.settings.exchange_seconds,
        })?;
        let values = vec![(Row::UdpEcho, latency.p50 * 1e6)];
        Ok(Findings { values, notes })
    }

    fn udp_rate(&mut self) -> Result<Findings> {
        self.servers.sink.reset();
        let task = Task::UdpFlood {
            server: self.servers.sink.address,
            seconds: self.settings.exchange_seconds,
        };
        self.session.ask(&task, GRACE)?;
        Ok(Findings::of([(Row::UdpRate, self.servers.sink.rate())]))
    }

    fn dns(&mut self) -> Result<Findings> {
        let task = |threads, seconds| Task::Dns {
            server: self.column.resolver(),
            threads,
            seconds,
        };
        let (crowd, single) = (
            task(CROWD, self.settings.exchange_seconds),
            task(1, self.settings.exchange_seconds / 2.0),
        );
        let (rate, mut notes) = self.exchanges(&crowd)?;
        let (latency, more) = self.exchanges(&single)?;
        notes.extend(more);
        Ok(Findings {
            values: vec![
                (Row::DnsRate, rate.per_second),
                (Row::DnsLatency, latency.p50 * 1e6),
            ],
            notes,
        })
    }

    fn exchanges(&mut self, task: &Task) -> Result<(Exchanges, Vec<String>)> {
        let Reply::Exchanges(exchanges) = self.session.ask(task, GRACE)? else {
            bail!("unexpected reply");
        };
        let note = (exchanges.failed > 0).then(|| "some exchanges failed".to_owned());
        let note = note.into_iter().collect();
        Ok((exchanges, note))
    }

    /// To be asked of a new session.
    fn memory(&mut self) -> Result<Findings> {
        let Some(relay) = self.session.relay() else {
            return Ok(Findings::default());
        };
        let idle = relay::resident(relay)?;
        let wanted = self.settings.connections;
        let task = Task::Hold {
            server: self.servers.holder.address,
            count: wanted,
            seconds: HOLDING,
        };
        let reply = self.session.ask(&task, GRACE);
        let loaded = relay::resident(relay);
        self.servers.holder.release();
        let Reply::Held { count, complaint } = reply? else {
            bail!("unexpected reply");
        };
        self.session.ask(&Task::Release, GRACE)?;
        let mut findings = Findings::of([
            (Row::MemoryIdle, idle),
            (Row::MemoryLoaded, loaded?),
            (Row::Held, count as f64),
        ]);
        if count < wanted {
            let reason = complaint.context("no reason was given")?;
            findings
                .notes
                .push(format!("no more connections at some point: {reason}"));
        }
        Ok(findings)
    }
}
