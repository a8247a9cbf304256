//! The standard world: one host of each kind that matters.
//!
//! | host     | addresses                                   | serves |
//! |----------|---------------------------------------------|--------|
//! | dns      | 8.8.8.8, 2001:4860:4860::8888               | 53 |
//! | web      | 93.184.216.34, 2606:2800:220:1::34          | 80, 443, 7 (echo) |
//! | mirror   | 151.101.1.69, 2a04:4e42::69                 | 80, 443 |
//! | device   | 192.168.10.21 (LAN)                         | 80, 7 |
//! | intranet | 10.20.0.5, fd00:20::5                       | 80, 7 |
//! | metadata | 169.254.169.254, fd00:ec2::254              | 80 |
//! | —        | 198.51.44.66                                | drops everything |
//! | —        | 198.51.44.67                                | host unreachable |
//!
//! Every other port is closed, every other address has no route.

use crate::builder::Builder;
use crate::error::Result;
use crate::net::{DeadEnd, HostSpec};
use crate::server::{HttpServer, Site, TcpServer, UdpServer};
use crate::world::World;

pub const BLACK_HOLE: &str = "198.51.44.66";
pub const UNREACHABLE: &str = "198.51.44.67";

const WEB_NAMES: [&str; 3] = ["www.example.com", "example.com", "*.pages.example.com"];
const MIRROR_NAMES: [&str; 1] = ["mirror.example.org"];

impl Builder {
    /// The hosts of the standard world. Their servers start with
    /// [`Standard::serve`].
    pub fn standard() -> Self {
        let web = named("web", &WEB_NAMES)
            .at("93.184.216.34")
            .at("2606:2800:220:1::34");
        let mirror = named("mirror", &MIRROR_NAMES)
            .at("151.101.1.69")
            .at("2a04:4e42::69");
        Self::new()
            .host(web)
            .host(mirror)
            .host(
                named("device", &["device.lan"])
                    .at("192.168.10.21")
                    .on_lan(),
            )
            .host(
                named("intranet", &["intranet.corp.example"])
                    .at("10.20.0.5")
                    .at("fd00:20::5"),
            )
            .host(
                HostSpec::new("metadata")
                    .at("169.254.169.254")
                    .at("fd00:ec2::254"),
            )
            .dead_end(BLACK_HOLE, DeadEnd::BlackHole)
            .dead_end(UNREACHABLE, DeadEnd::Unreachable)
    }
}

fn named(host: &str, names: &[&str]) -> HostSpec {
    names
        .iter()
        .fold(HostSpec::new(host), |spec, name| spec.named(name))
}

/// The running servers of the standard world.
#[derive(Debug)]
pub struct Standard {
    pub web: HttpServer,
    pub web_tls: HttpServer,
    pub web_echo: TcpServer,
    pub web_udp_echo: UdpServer,
    pub mirror: HttpServer,
    pub mirror_tls: HttpServer,
    pub device: HttpServer,
    pub device_echo: TcpServer,
    pub device_udp_echo: UdpServer,
    pub intranet: HttpServer,
    pub intranet_echo: TcpServer,
    pub intranet_udp_echo: UdpServer,
    pub metadata: HttpServer,
}

impl Standard {
    pub fn serve(world: &World) -> Result<Self> {
        let authority = world.authority();
        let web = world.host("web");
        let mirror = world.host("mirror");
        let device = world.host("device");
        let intranet = world.host("intranet");
        let credentials = Site::empty().page(
            "/latest/meta-data/iam/security-credentials/role",
            "{\"SecretAccessKey\": \"DECOY-SECRET-98\"}\n",
        );
        Ok(Self {
            web: web.http(80, Site::text("hello from web\n"))?,
            web_tls: web.https(443, authority, &WEB_NAMES, Site::text("hello from web\n"))?,
            web_echo: web.tcp_echo(7)?,
            web_udp_echo: web.udp_echo(7)?,
            mirror: mirror.http(80, Site::text("hello from mirror\n"))?,
            mirror_tls: mirror.https(
                443,
                authority,
                &MIRROR_NAMES,
                Site::text("hello from mirror\n"),
            )?,
            device: device.http(80, Site::text("hello from device\n"))?,
            device_echo: device.tcp_echo(7)?,
            device_udp_echo: device.udp_echo(7)?,
            intranet: intranet.http(80, Site::text("hello from intranet\n"))?,
            intranet_echo: intranet.tcp_echo(7)?,
            intranet_udp_echo: intranet.udp_echo(7)?,
            metadata: world.host("metadata").http(80, credentials)?,
        })
    }
}
