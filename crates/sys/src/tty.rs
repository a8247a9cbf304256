//! What a terminal needs that no library has a safe name for.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use nix::errno::Errno;

/// The number of the line discipline that handles echo, editing and signals.
const N_TTY: libc::c_int = 0;

/// Gives a terminal its ordinary line discipline back. With another one, such as `N_NULL`, which
/// any process can choose, nothing can be read from it or written to it.
///
/// # Errors
/// If it is no terminal, or has gone away.
pub fn use_ordinary_line_discipline(terminal: impl AsFd) -> io::Result<()> {
    let terminal = terminal.as_fd().as_raw_fd();
    let mut current: libc::c_int = -1;
    // SAFETY: the descriptor is borrowed, so it is open; TIOCGETD writes one int, to `current`.
    Errno::result(unsafe { libc::ioctl(terminal, libc::TIOCGETD, &raw mut current) })?;
    if current == N_TTY {
        return Ok(());
    }
    let ordinary = N_TTY;
    // SAFETY: as above; TIOCSETD reads one int, from `ordinary`.
    Errno::result(unsafe { libc::ioctl(terminal, libc::TIOCSETD, &raw const ordinary) })?;
    Ok(())
}
