//! Socket options that neither `rustix` nor `socket2` knows.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use crate::transparent::Family;

/// Makes a datagram socket tell all ICMP errors, not only those that the kernel holds for
/// final. They are queued beside the data and have to be fetched from there, too.
///
/// # Errors
/// If the kernel refuses.
pub fn report_errors(socket: impl AsFd, family: Family) -> io::Result<()> {
    let (level, name) = match family {
        Family::V4 => (libc::SOL_IP, libc::IP_RECVERR),
        Family::V6 => (libc::SOL_IPV6, libc::IPV6_RECVERR),
    };
    set_int(socket.as_fd(), level, name, 1)
}

/// Sets an option whose value is a C `int`.
pub(crate) fn set_int(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(&value)).expect("four bytes");
    // SAFETY: the kernel reads `length` bytes from the pointer during the call; it
    // points at `value`, a live local of just that size. The descriptor is borrowed,
    // so it is open.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            length,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
