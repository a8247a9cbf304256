//! The world itself: built in one order, then there for the test.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::builder::{Builder, DNS_ADDRESS, DNS_ADDRESS_V6, Resolver, STUB_ADDRESS};
use crate::entry::Inside;
use crate::error::{Doing, Result};
use crate::laptop::Laptop;
use crate::leftovers::Snapshot;
use crate::net::{DeadEnd, Host, HostSpec, Network};
use crate::server::{Authority, DnsServer};
use crate::{fs as world_fs, guard, shape};

const CA_FILE: &str = "/run/world/ca.pem";

/// Where systems keep the certificates that all programs trust.
const SYSTEM_CA_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub struct World {
    network: Network,
    laptop: Laptop,
    hosts: BTreeMap<String, Host>,
    dns: DnsServer,
    authority: Authority,
}

impl World {
    pub(crate) fn build(builder: &Builder, inside: Inside) -> Result<Self> {
        // Used up: there is one world in a namespace.
        let Inside { outside, programs } = inside;
        // Nothing else comes before this.
        let closed = guard::check(&outside)?;

        world_fs::build(builder, programs.as_deref())?;
        let pinging = builder.ping.then(|| rustix::process::getgid().as_raw());
        let mut network = Network::boot(closed, builder.ipv6, pinging)?;
        let laptop = Laptop::furnish(builder, network.laptop.clone())?;
        world_fs::show_directories(builder)?;

        let dns_host = HostSpec::new("dns").at(DNS_ADDRESS).at(DNS_ADDRESS_V6);
        let specs: Vec<HostSpec> = std::iter::once(dns_host)
            .chain(builder.hosts.iter().cloned())
            .collect();
        let hosts: BTreeMap<String, Host> = network
            .add_hosts(&specs)?
            .into_iter()
            .map(|host| (host.name().to_owned(), host))
            .collect();
        for (prefix, kind) in &builder.dead_ends {
            network.add_dead_end(prefix, *kind)?;
        }

        let dns = serve_dns(builder.resolver, &hosts, &laptop)?;
        for spec in &specs {
            announce(&dns, spec);
        }
        let authority = trusted_authority()?;
        // Last: it takes away what building needs.
        shape::apply(builder.shape)?;
        Ok(Self {
            network,
            laptop,
            hosts,
            dns,
            authority,
        })
    }

    pub fn laptop(&self) -> &Laptop {
        &self.laptop
    }

    /// Panics if there is no such host.
    #[track_caller]
    pub fn host(&self, name: &str) -> &Host {
        match self.hosts.get(name) {
            Some(host) => host,
            None => panic!(
                "no host `{name}` in this world, only: {}",
                self.hosts.keys().cloned().collect::<Vec<_>>().join(", ")
            ),
        }
    }

    /// All hosts but the laptop and the router.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.values()
    }

    /// The resolver that the laptop asks, directly or through its stub.
    pub fn dns(&self) -> &DnsServer {
        &self.dns
    }

    /// The certificate authority that every program on the laptop trusts.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The authority's certificate as a file, for options such as `--cacert`.
    pub fn ca_file(&self) -> PathBuf {
        CA_FILE.into()
    }

    /// Adds a host while the world runs.
    pub fn add_host(&mut self, spec: HostSpec) -> Result<Host> {
        let mut added = self.network.add_hosts(std::slice::from_ref(&spec))?;
        announce(&self.dns, &spec);
        let host = added.remove(0);
        self.hosts.insert(spec.name, host.clone());
        Ok(host)
    }

    pub fn add_dead_end(&self, prefix: &str, kind: DeadEnd) -> Result<()> {
        self.network.add_dead_end(prefix, kind)
    }

    /// A bridge on the laptop, as container engines make it: `"docker0"`,
    /// `"172.17.0.1"`, 16. Hosts join it with [`HostSpec::on_bridge`].
    pub fn add_bridge(&mut self, name: &str, address: &str, prefix: u8) -> Result<()> {
        self.network
            .add_bridge(name, crate::net::parse(address), prefix)
    }

    /// A second interface of the laptop, with routes more specific than the
    /// default, as when a VPN comes up: `"tun0"`, `"10.8.0.2"`, 24,
    /// `&["10.99.0.0/16"]`. It goes with `world.laptop().ip("link del tun0")`.
    pub fn add_interface(
        &mut self,
        name: &str,
        address: &str,
        prefix: u8,
        routes: &[&str],
    ) -> Result<()> {
        let address: IpAddr = crate::net::parse(address);
        self.network.add_interface(name, address, prefix, routes)
    }

    /// What there is now, to be compared with what there is later.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(&self.laptop)
    }

    /// Waits until everything is again as it was: the last of what a program
    /// leaves disappears a moment after the program.
    pub fn wait_until_restored(&self, before: &Snapshot, limit: Duration) -> Result<()> {
        before.wait_until_restored(&self.laptop, limit)
    }
}

fn serve_dns(
    resolver: Resolver,
    hosts: &BTreeMap<String, Host>,
    laptop: &Laptop,
) -> Result<DnsServer> {
    let Some(host) = hosts.get("dns") else {
        panic!("the resolver's host was just added");
    };
    let dns = host.dns(53)?;
    if resolver == Resolver::LoopbackStub {
        dns.at(laptop, (crate::net::parse(STUB_ADDRESS), 53))?;
    }
    Ok(dns)
}

fn announce(dns: &DnsServer, spec: &HostSpec) {
    for name in &spec.dns_names {
        for address in &spec.addresses {
            dns.record(name, *address);
        }
    }
}

/// Makes an authority and puts it in the place of all those that the machine
/// trusts.
fn trusted_authority() -> Result<Authority> {
    let authority = Authority::new("Stockade test world")?;
    fs::write(CA_FILE, authority.pem()).doing(format_args!("write {CA_FILE}"))?;
    let mut covered = Vec::new();
    for file in SYSTEM_CA_FILES.map(Path::new) {
        let Ok(file) = fs::canonicalize(file) else {
            continue;
        };
        if !covered.contains(&file) {
            world_fs::bind_over(Path::new(CA_FILE), &file)?;
            covered.push(file);
        }
    }
    Ok(authority)
}
