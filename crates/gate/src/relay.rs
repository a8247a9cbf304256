//! Joining two established connections.

use std::{cell::RefCell, io};

use rustix::net::{Shutdown, shutdown};
use tokio::net::TcpStream;

const BUFFER: usize = 64 * 1024;

thread_local! {
    /// One buffer for all flows: bytes stay in it only between a read and the write that
    /// follows at once. What the other side does not take is moved to the flow itself.
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into_boxed_slice());
}

/// Carries bytes both ways until both sides have ended. An end of one direction is passed
/// on alone (half-close); a reset of one side resets the other.
pub(crate) async fn relay(near: TcpStream, far: TcpStream) {
    let both = tokio::try_join!(pump(&near, &far), pump(&far, &near));
    if both.is_err() {
        reset(near);
        reset(far);
    }
}

/// Ends a connection with RST instead of FIN.
pub(crate) fn reset(stream: TcpStream) {
    // If the option cannot be set, the connection is closed the polite way.
    let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO));
    drop(stream);
}

async fn pump(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    loop {
        from.readable().await?;
        match transfer(from, to) {
            Ok(Step::Ended) => break,
            Ok(Step::Moved) => {}
            Ok(Step::Left(rest)) => write_all(to, &rest).await?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        // A fast sender must not keep the others waiting.
        tokio::task::yield_now().await;
    }
    // A peer that is gone needs no goodbye.
    let _ = shutdown(to, Shutdown::Write);
    Ok(())
}

enum Step {
    Moved,
    Ended,
    /// Read, but not taken by the other side yet.
    Left(Vec<u8>),
}

fn transfer(from: &TcpStream, to: &TcpStream) -> io::Result<Step> {
    SHARED.with_borrow_mut(|buffer| {
        let length = from.try_read(buffer)?;
        if length == 0 {
            return Ok(Step::Ended);
        }
        let bytes = &buffer[..length];
        match to.try_write(bytes) {
            Ok(written) if written == length => Ok(Step::Moved),
            Ok(written) => Ok(Step::Left(bytes[written..].to_vec())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(Step::Left(bytes.to_vec()))
            }
            Err(error) => Err(error),
        }
    })
}

async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
