//! iperf3 in server mode.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use stockade_world::{Host, eventually};

use crate::bench::column::Column;

const FIRST_PORT: u16 = 5201;

pub(super) struct Servers {
    address: IpAddr,
    children: Vec<Child>,
}

impl Servers {
    pub(super) fn start(host: &Host) -> Result<Self> {
        let mut servers = Self {
            address: host.v4(),
            children: Vec::new(),
        };
        for column in Column::ALL {
            let mut command = Command::new("iperf3");
            command
                .args(["--server", "--port", &port(column).to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let child = host
                .enter(|| command.spawn())
                .context("cannot start iperf3")?;
            servers.children.push(child);
            eventually("iperf3 listens", Duration::from_secs(5), || {
                host.enter(|| listens(port(column)))
            })?;
        }
        Ok(servers)
    }

    pub(super) fn address(&self, column: Column) -> SocketAddr {
        (self.address, port(column)).into()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Looked up, not tried: iperf3 would take a connection for a client.
fn listens(port: u16) -> bool {
    let (port, listening) = (format!(":{port:04X} "), " 0A ");
    ["tcp", "tcp6"].iter().any(|table| {
        fs::read_to_string(format!("/proc/thread-self/net/{table}")).is_ok_and(|text| {
            text.lines()
                .any(|line| line.contains(&port) && line.contains(listening))
        })
    })
}

fn port(column: Column) -> u16 {
    Column::ALL
        .into_iter()
        .zip(FIRST_PORT..)
        .find_map(|(known, port)| (known == column).then_some(port))
        .unwrap_or(FIRST_PORT)
}
