//! What is measured: the rows of the table.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Declared in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    Upload,
    Download,
    Upload4,
    Download4,
    Upload16,
    Download16,
    ConnectRate,
    ConnectP50,
    ConnectP99,
    TcpEcho,
    UdpEcho,
    UdpRate,
    DnsRate,
    DnsLatency,
    RelayCpuUpload,
    RelayCpuDownload,
    TotalCpuUpload,
    TotalCpuDownload,
    MemoryIdle,
    MemoryLoaded,
    Held,
    Start,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

/// The unit that a value is kept in, and shown in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    GigabitsPerSecond,
    PerSecond,
    Microseconds,
    Milliseconds,
    SecondsPerGigabyte,
    Megabytes,
    Count,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GigabitsPerSecond => "Gb/s",
            Self::PerSecond => "/s",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::SecondsPerGigabyte => "s/GB",
            Self::Megabytes => "MB",
            Self::Count => "",
        }
    }
}

impl Row {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Upload => "TCP upload, 1 stream",
            Self::Download => "TCP download, 1 stream",
            Self::Upload4 => "TCP upload, 4 streams",
            Self::Download4 => "TCP download, 4 streams",
            Self::Upload16 => "TCP upload, 16 streams",
            Self::Download16 => "TCP download, 16 streams",
            Self::ConnectRate => "connect, ask, answer, close",
            Self::ConnectP50 => "the same, one by one: p50",
            Self::ConnectP99 => "the same, one by one: p99",
            Self::TcpEcho => "TCP round trip, p50",
            Self::UdpEcho => "UDP round trip, p50",
            Self::UdpRate => "UDP datagrams delivered",
            Self::DnsRate => "DNS queries, new names",
            Self::DnsLatency => "DNS query, new name, p50",
            Self::RelayCpuUpload => "CPU of the relay, upload",
            Self::RelayCpuDownload => "CPU of the relay, download",
            Self::TotalCpuUpload => "CPU of relay and both ends, upload",
            Self::TotalCpuDownload => "CPU of relay and both ends, download",
            Self::MemoryIdle => "memory of the relay (RSS), idle",
            Self::MemoryLoaded => "memory of the relay (RSS), many connections",
            Self::Held => "connections that were open then",
            Self::Start => "start, until a server has answered",
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Upload
            | Self::Download
            | Self::Upload4
            | Self::Download4
            | Self::Upload16
            | Self::Download16 => Unit::GigabitsPerSecond,
            Self::ConnectRate | Self::UdpRate | Self::DnsRate => Unit::PerSecond,
            Self::ConnectP50
            | Self::ConnectP99
            | Self::TcpEcho
            | Self::UdpEcho
            | Self::DnsLatency => Unit::Microseconds,
            Self::RelayCpuUpload
            | Self::RelayCpuDownload
            | Self::TotalCpuUpload
            | Self::TotalCpuDownload => Unit::SecondsPerGigabyte,
            Self::MemoryIdle | Self::MemoryLoaded => Unit::Megabytes,
            Self::Held => Unit::Count,
            Self::Start => Unit::Milliseconds,
        }
    }

    pub(crate) fn better(self) -> Better {
        match self.unit() {
            Unit::GigabitsPerSecond | Unit::PerSecond | Unit::Count => Better::Higher,
            Unit::Microseconds
            | Unit::Milliseconds
            | Unit::SecondsPerGigabyte
            | Unit::Megabytes => Better::Lower,
        }
    }
}
