//! Bulk transfer, by iperf3.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::task::Transfer;

pub(super) fn run(
    server: SocketAddr,
    streams: u32,
    seconds: u32,
    reverse: bool,
) -> Result<Transfer> {
    let mut command = Command::new("iperf3");
    command
        .args(["--json", "--client", &server.ip().to_string()])
        .args(["--port", &server.port().to_string()])
        .args(["--time", &seconds.to_string()])
        .args(["--parallel", &streams.to_string()])
        .args(["--connect-timeout", "3000"]);
    if reverse {
        command.arg("--reverse");
    }
    let output = command.output().context("cannot start iperf3")?;
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "iperf3 printed no report: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )
    })?;
    if let Some(error) = report.get("error").and_then(Value::as_str) {
        bail!("iperf3: {error}");
    }
    let number = |path: &str| {
        report
            .pointer(path)
            .and_then(Value::as_f64)
            .with_context(|| format!("iperf3's report has no {path}"))
    };
    // Of the time that the test took, in percent of one processor.
    let busy = number("/end/cpu_utilization_percent/host_total")?
        + number("/end/cpu_utilization_percent/remote_total")?;
    Ok(Transfer {
        bytes: number("/end/sum_received/bytes")?,
        bits_per_second: number("/end/sum_received/bits_per_second")?,
        cpu_seconds: busy / 100.0 * number("/end/sum_received/seconds")?,
    })
}
