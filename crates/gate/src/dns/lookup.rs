//! One look-up before there is a gate: with little patience, by the host's file and resolvers.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use stockade_policy::Hostname;
use stockade_wire::dns::{Answer, Name, Query, Type};

use super::resolvers::Resolvers;
use crate::names::{host_file::HostFileContent as _, hosts};

/// The IPv4 addresses of a name that are found in this time. A name without a dot is completed by
/// the host's search domains.
#[must_use]
pub fn look_up(name: &Hostname, limit: Duration) -> Vec<IpAddr> {
    if name.is_localhost() || hosts::is_own(name) {
        return vec![Ipv4Addr::LOCALHOST.into()];
    }
    let table = hosts::Table::read().unwrap_or_default();
    if !table.addresses(name).is_empty() {
        return table.addresses(name).to_vec();
    }
    let until = Instant::now() + limit;
    let resolvers = Resolvers::read().unwrap_or_default();
    for full in full_names(name, &resolvers.search) {
        for server in resolvers.servers.iter().copied() {
            let left = until.saturating_duration_since(Instant::now());
            match ask(server, &full, left) {
                Some(found) if !found.is_empty() => return found,
                _ => {}
            }
        }
    }
    Vec::new()
}

/// The names that a name may stand for on this machine.
#[must_use]
pub fn completed(name: &Hostname) -> Vec<Hostname> {
    full_names(name, &Resolvers::read().unwrap_or_default().search)
}

/// The names that a name may stand for, as programs complete it.
pub(crate) fn full_names(name: &Hostname, search: &[Hostname]) -> Vec<Hostname> {
    if name.as_str().contains('.') {
        return vec![name.clone()];
    }
    let full = |domain: &Hostname| format!("{name}.{domain}").parse().ok();
    let names = search.iter().filter_map(full);
    names.chain([name.clone()]).collect()
}

fn ask(server: SocketAddr, name: &Hostname, limit: Duration) -> Option<Vec<IpAddr>> {
    const LARGEST: usize = 4096;
    let here: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((here, 0)).ok()?;
    // A time of zero would mean to wait forever.
    socket
        .set_read_timeout(Some(limit.max(Duration::from_millis(1))))
        .ok()?;
    socket.connect(server).ok()?;
    let query = Query::of(&Name::from_text(name.as_str())?, Type::A)?;
    let id = super::ask::random_id().ok()?;
    socket.send(&query.to_upstream(id)).ok()?;
    let mut buffer = [0; LARGEST];
    let length = socket.recv(&mut buffer).ok()?;
    let answer = query.accept(buffer.get(..length)?, id).ok()?;
    let answer = Answer::open(&query, &answer).ok()?;
    Some(answer.addresses().map(|(address, _)| address).collect())
}
