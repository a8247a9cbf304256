//! What is asked: may this go there?

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use crate::registry;

/// The usual UDP port of QUIC, which hides the name that a connection is for.
pub(crate) const QUIC: NonZeroU16 = NonZeroU16::new(443).unwrap();

/// The protocols that leave the jail at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
    /// Echo request and reply, of either family.
    Icmp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Icmp => "icmp",
        })
    }
}

/// One connection, datagram flow or ping, by its destination.
///
/// An IPv4 address written as IPv6 (`::ffff:10.0.0.1`) is the IPv4 address to
/// the kernel that dials it, so it is turned into that here: no later code sees
/// two forms of one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    destination: IpAddr,
    service: Service,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Service {
    Tcp(NonZeroU16),
    Udp(NonZeroU16),
    Echo,
}

impl Flow {
    /// Nothing for port zero, which no connection can have.
    pub fn tcp(destination: SocketAddr) -> Option<Self> {
        let port = NonZeroU16::new(destination.port())?;
        Some(Self::new(destination.ip(), Service::Tcp(port)))
    }

    /// Nothing for port zero, which no datagram can be answered from.
    pub fn udp(destination: SocketAddr) -> Option<Self> {
        let port = NonZeroU16::new(destination.port())?;
        Some(Self::new(destination.ip(), Service::Udp(port)))
    }

    pub fn echo(destination: IpAddr) -> Self {
        Self::new(destination, Service::Echo)
    }

    fn new(destination: IpAddr, service: Service) -> Self {
        Self {
            destination: destination.to_canonical(),
            service,
        }
    }

    pub fn destination(&self) -> IpAddr {
        self.destination
    }

    pub fn protocol(&self) -> Protocol {
        match self.service {
            Service::Tcp(_) => Protocol::Tcp,
            Service::Udp(_) => Protocol::Udp,
            Service::Echo => Protocol::Icmp,
        }
    }

    pub fn port(&self) -> Option<NonZeroU16> {
        match self.service {
            Service::Tcp(port) | Service::Udp(port) => Some(port),
            Service::Echo => None,
        }
    }

    /// Whether nothing in it shows which name it is for.
    pub(crate) fn is_quic(&self) -> bool {
        self.service == Service::Udp(QUIC)
    }

    /// What a program tries when QUIC does not work.
    pub(crate) fn without_quic(&self) -> Flow {
        let port = self.port().unwrap_or(QUIC);
        Self::new(self.destination, Service::Tcp(port))
    }

    /// The IPv4 addresses that the destination carries inside, if it is one of
    /// the IPv6 formats that do. The host's evidence about each of them counts.
    pub fn embedded(&self) -> impl Iterator<Item = IpAddr> {
        registry::embedded(self.destination).map(|embedding| embedding.address.into())
    }
}

/// In the form of a rule that covers just this flow.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.protocol())?;
        match self.port() {
            Some(port) => write!(f, "{}", SocketAddr::new(self.destination, port.get())),
            None => write!(f, "{}", self.destination),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_shown_as_a_rule() {
        let tcp = Flow::tcp("192.168.1.5:80".parse().unwrap()).unwrap();
        assert_eq!(tcp.to_string(), "tcp://192.168.1.5:80");
        let udp = Flow::udp("[fd00::5]:53".parse().unwrap()).unwrap();
        assert_eq!(udp.to_string(), "udp://[fd00::5]:53");
        let echo = Flow::echo("fd00::5".parse().unwrap());
        assert_eq!(echo.to_string(), "icmp://fd00::5");
    }

    #[test]
    fn port_zero_is_no_flow() {
        assert_eq!(Flow::tcp("10.0.0.1:0".parse().unwrap()), None);
        assert_eq!(Flow::udp("10.0.0.1:0".parse().unwrap()), None);
    }

    #[test]
    fn a_mapped_address_is_its_ipv4_address() {
        let mapped = Flow::tcp("[::ffff:10.0.0.1]:80".parse().unwrap());
        assert_eq!(mapped, Flow::tcp("10.0.0.1:80".parse().unwrap()));
    }
}
