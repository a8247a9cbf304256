//! Whose socket is this? The kernel's table of sockets, asked for one of them.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use rustix::net::netlink::SOCK_DIAG;

use crate::netlink::{Message, REQUEST, Socket};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Where the inode stands in an answer: after family, states, timer and retransmits (4), the
/// identity (48), and expires, queues and uid (4 each).
const INODE_AT: usize = 4 + 48 + 4 * 4;

/// The table of sockets of the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct SocketTable(Socket);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

impl SocketTable {
    pub fn open() -> io::Result<Self> {
        Socket::open(Some(SOCK_DIAG)).map(Self)
    }

    /// The inode of the socket that is bound to `local` and speaks to `remote`.
    ///
    /// # Errors
    /// `ENOENT` if there is none, or what else the kernel says.
    pub fn inode(
        &mut self,
        transport: Transport,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<u32> {
        let family = if local.is_ipv4() { AF_INET } else { AF_INET6 };
        let protocol = match transport {
            Transport::Tcp => 6,
            Transport::Udp => 17,
        };
        let mut fixed = vec![family, protocol, 0, 0];
        // Any state.
        fixed.extend(u32::MAX.to_ne_bytes());
        // For UDP the kernel looks from the sender's side.
        let (first, second) = match transport {
            Transport::Tcp => (local, remote),
            Transport::Udp => (remote, local),
        };
        fixed.extend(first.port().to_be_bytes());
        fixed.extend(second.port().to_be_bytes());
        fixed.extend(padded(first.ip()));
        fixed.extend(padded(second.ip()));
        // Any interface; no cookie is known.
        fixed.extend(0_u32.to_ne_bytes());
        fixed.extend([0xff; 8]);
        let replies = self
            .0
            .request(Message::new(SOCK_DIAG_BY_FAMILY, REQUEST, &fixed))?;
        let inode = replies
            .first()
            .and_then(|reply| reply.payload.get(INODE_AT..)?.first_chunk())
            .copied();
        inode
            .map(u32::from_ne_bytes)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Whether somebody listens where a connection to `at` would arrive: at just that address
    /// or at any. Nothing is sent to find out.
    pub fn listens(&mut self, at: SocketAddr) -> io::Result<bool> {
        // No connection is from port 0, so what is found is none, but who would accept it.
        let nobody = SocketAddr::new(at.ip(), 0);
        match self.inode(Transport::Tcp, at, nobody) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn padded(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket},
        os::fd::AsFd,
        time::{Duration, Instant},
    };

    use super::*;

    fn inode_of(socket: impl AsFd) -> u64 {
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    #[test]
    fn the_socket_of_each_end_is_found() {
        let mut table = SocketTable::open().unwrap();
        for any in [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ] {
            let listener = TcpListener::bind((any, 0)).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (local, remote) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            let found = table.inode(Transport::Tcp, local, remote).unwrap();
            assert_eq!(u64::from(found), inode_of(&client));

            let [server, client] = [(); 2].map(|()| UdpSocket::bind((any, 0)).unwrap());
            let (local, remote) = (client.local_addr().unwrap(), server.local_addr().unwrap());
            let found = table.inode(Transport::Udp, local, remote).unwrap();
            assert_eq!(u64::from(found), inode_of(&client));
        }
    }

    #[test]
    fn who_listens_is_found_at_the_address_and_at_any_and_not_beside_it() {
        let mut table = SocketTable::open().unwrap();
        let localhosts: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let anywhere: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        for (localhost, any) in localhosts.into_iter().zip(anywhere) {
            for bound in [localhost, any] {
                let listener = TcpListener::bind((bound, 0)).unwrap();
                let at = SocketAddr::new(localhost, listener.local_addr().unwrap().port());
                assert!(table.listens(at).unwrap(), "{bound}");
                // An open connection does not count, and does not hide the listener.
                let client = TcpStream::connect(at).unwrap();
                assert!(!table.listens(client.local_addr().unwrap()).unwrap());
                assert!(table.listens(at).unwrap(), "{bound}");
                drop(listener);
                // A child that another test forks at this moment has the listener until its exec.
                let until = Instant::now() + Duration::from_secs(10);
                while table.listens(at).unwrap() {
                    assert!(Instant::now() < until, "{bound}");
                }
            }
        }
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 9), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!table.listens((Ipv4Addr::LOCALHOST, port).into()).unwrap());
        // Who listens at any address of both families hears IPv4, too.
        let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
        let port = both.local_addr().unwrap().port();
        assert!(table.listens((Ipv4Addr::LOCALHOST, port).into()).unwrap());
    }

    #[test]
    fn a_socket_that_is_not_there_is_not_found() {
        let mut table = SocketTable::open().unwrap();
        let nobody = SocketAddr::from((Ipv4Addr::new(127, 9, 9, 9), 9));
        assert!(table.inode(Transport::Tcp, nobody, nobody).is_err());
    }
}
