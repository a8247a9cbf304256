//! The simple servers.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use stockade_world::{Builder, HostSpec, PATIENCE, World, eventually, test};

fn lab() -> Builder {
    Builder::new().host(HostSpec::new("server").at("10.0.0.5").at("fd00::5"))
}

fn connect(world: &World, address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = world
        .laptop()
        .enter(|| TcpStream::connect_timeout(&address, PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

#[test]
fn echo_returns_what_it_gets_and_follows_the_end() {
    test(&lab(), |world| {
        let echo = world.host("server").tcp_echo(7).unwrap();
        for address in ["10.0.0.5:7", "[fd00::5]:7"] {
            let mut stream = connect(world, address.parse().unwrap()).unwrap();
            stream.write_all(b"to and fro").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert_eq!(text, "to and fro");
        }
        let seen = echo.connections().wait_for(2).unwrap();
        assert_eq!(seen[0].peer.ip().to_string(), "192.168.10.5");
        assert_eq!(seen[1].local.to_string(), "[fd00::5]:7");
        assert_eq!(echo.received(), 20);
    });
}

#[test]
fn sink_and_source_count_bytes() {
    test(&lab(), |world| {
        let server = world.host("server");
        let sink = server.tcp_sink(9).unwrap();
        let source = server.tcp_source(19, 1_000_000).unwrap();
        let mut stream = connect(world, sink.address()).unwrap();
        stream.write_all(&vec![1; 300_000]).unwrap();
        eventually("all bytes", PATIENCE, || sink.received() == 300_000).unwrap();
        let mut stream = connect(world, source.address()).unwrap();
        let mut bytes = Vec::new();
        assert_eq!(stream.read_to_end(&mut bytes).unwrap(), 1_000_000);
    });
}

#[test]
fn banner_speaks_first_and_reset_resets() {
    test(&lab(), |world| {
        let server = world.host("server");
        let banner = server.tcp_banner(22, "SSH-2.0-world\r\n").unwrap();
        let mut stream = connect(world, banner.address()).unwrap();
        let mut greeting = [0; 15];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"SSH-2.0-world\r\n");

        let reset = server.tcp_reset(23).unwrap();
        // It may come while the client still waits for its connection.
        let outcome = connect(world, reset.address()).and_then(|mut s| s.read(&mut [0; 1]));
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_stopped_server_refuses() {
    test(&lab(), |world| {
        let echo = world.host("server").tcp_echo(7).unwrap();
        connect(world, echo.address()).unwrap();
        echo.stop();
        eventually("refusal", PATIENCE, || {
            connect(world, echo.address())
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        })
        .unwrap();
    });
}

#[test]
fn udp_echo_answers_and_a_sink_does_not() {
    test(&lab(), |world| {
        let server = world.host("server");
        let echo = server.udp_echo(7).unwrap();
        let sink = server.udp_sink(9).unwrap();
        let socket = world
            .laptop()
            .enter(|| UdpSocket::bind("0.0.0.0:0"))
            .unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(b"ping", echo.address()).unwrap();
        let mut buffer = [0; 16];
        let (count, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..count], from), (&b"ping"[..], echo.address()));

        socket.send_to(b"lost", sink.address()).unwrap();
        assert_eq!(sink.datagrams().wait_for(1).unwrap()[0].payload, b"lost");
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        assert!(socket.recv_from(&mut buffer).is_err());
    });
}

#[test]
fn a_server_on_one_address_is_on_that_address_only() {
    test(&lab(), |world| {
        let laptop = world.laptop();
        let _local = laptop.tcp_echo("127.0.0.1:5432").unwrap();
        laptop
            .enter(|| TcpStream::connect("127.0.0.1:5432"))
            .unwrap();
        let outside: SocketAddr = "192.168.10.5:5432".parse().unwrap();
        let refused = world
            .host("server")
            .enter(|| TcpStream::connect_timeout(&outside, PATIENCE));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}
