//! Asking a proxy for a tunnel. Not one byte is read beyond the proxy's answer: what follows is the
//! destination's, which may speak first.

use std::{fmt, io};

use stockade_policy::ProxyScheme;
use stockade_wire::proxy::{self, Destination, LONGEST_HEAD, Refusal};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

#[derive(Debug)]
pub(super) enum Error {
    Refused(Refusal),
    /// TLS to the proxy failed, in words.
    Tls(String),
    /// The connection to the proxy broke.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "{refusal}"),
            Self::Tls(why) => f.write_str(why),
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("it closed the connection without an answer")
            }
            Self::Io(error) => write!(f, "the connection to it broke: {error}"),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What has become a connection to the destination.
pub(super) async fn tunnel(
    mut stream: TcpStream,
    scheme: ProxyScheme,
    destination: Destination<'_>,
    port: u16,
    login: Option<(&str, &str)>,
) -> Result<TcpStream, Error> {
    match scheme {
        ProxyScheme::Http => connect(&mut stream, destination, port, login).await?,
        ProxyScheme::Socks5 => socks(&mut stream, destination, port, login).await?,
        // The login is not for the clear.
        ProxyScheme::Https => return Err(Error::Tls("there is no TLS to it".to_owned())),
    }
    Ok(stream)
}

pub(super) async fn connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    destination: Destination<'_>,
    port: u16,
    login: Option<(&str, &str)>,
) -> Result<(), Error> {
    stream
        .write_all(&proxy::connect(destination, port, login))
        .await?;
    let mut head = Vec::new();
    let connected = |head: &[u8]| {
        proxy::connected(head).map_err(|why| match why {
            Refusal::LoginMissing if login.is_some() => Refusal::LoginRefused,
            why => why,
        })
    };
    loop {
        // A byte at a time: some hundred of them, once for each connection.
        head.push(stream.read_u8().await?);
        let is_end = head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n");
        if (is_end || head.len() >= LONGEST_HEAD) && connected(&head)?.is_some() {
            return Ok(());
        }
        // What is no head need not be read to its end.
        if head.len() == 16 {
            connected(&head)?;
        }
    }
}

async fn socks(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    destination: Destination<'_>,
    port: u16,
    login: Option<(&str, &str)>,
) -> Result<(), Error> {
    let mut two = [0; 2];
    stream
        .write_all(proxy::socks_greeting(login.is_some()))
        .await?;
    stream.read_exact(&mut two).await?;
    if proxy::socks_wants_login(two, login.is_some())?
        && let Some(login) = login.and_then(proxy::socks_login)
    {
        stream.write_all(&login).await?;
        stream.read_exact(&mut two).await?;
        proxy::socks_logged_in(two)?;
    }
    let request = proxy::socks_request(destination, port).ok_or(Refusal::Malformed)?;
    stream.write_all(&request).await?;
    let mut start = [0; 5];
    stream.read_exact(&mut start).await?;
    let rest = proxy::socks_connected(start)?;
    stream.read_exact(&mut vec![0; rest]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    /// What comes of an answer to CONNECT, and what is left to be read after it.
    async fn answered(answer: &'static [u8]) -> (Result<(), Error>, Vec<u8>) {
        let (mut near, mut far) = duplex(64 * 1024);
        far.write_all(answer).await.expect("written");
        let asked = connect(&mut near, Destination::Name("a.example"), 443, None).await;
        drop(far);
        let mut rest = Vec::new();
        near.read_to_end(&mut rest).await.expect("read");
        (asked, rest)
    }

    #[tokio::test]
    async fn what_follows_the_head_is_the_destinations() {
        let (asked, rest) = answered(b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\nSSH-2.0-x\r\n").await;
        assert!(asked.is_ok(), "{asked:?}");
        assert_eq!(rest, b"SSH-2.0-x\r\n");
    }

    #[tokio::test]
    async fn garbage_and_endless_heads_end() {
        let (asked, _) = answered(b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").await;
        assert!(matches!(asked, Err(Error::Refused(Refusal::Malformed))));
        let (asked, _) = answered(&[b'\n'; LONGEST_HEAD]).await;
        assert!(matches!(asked, Err(Error::Refused(Refusal::Malformed))));
        let endless: &'static [u8] = Box::leak(
            [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'y'; LONGEST_HEAD]]
                .concat()
                .into_boxed_slice(),
        );
        let (asked, _) = answered(endless).await;
        assert!(matches!(asked, Err(Error::Refused(Refusal::TooLong))));
    }

    #[tokio::test]
    async fn a_proxy_that_closes_is_told_of() {
        let (mut near, far) = duplex(1024);
        drop(far);
        let asked = connect(&mut near, Destination::Name("a.example"), 443, None).await;
        assert!(matches!(asked, Err(Error::Io(_))), "{asked:?}");
    }
}
