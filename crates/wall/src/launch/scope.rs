//! A scope of the caller's systemd: a control group of the session's own, with controllers.
//!
//! A login session, and a terminal of a desktop, are control groups that hold processes. Below such
//! a group the kernel counts no memory, and no user can change that. The user's systemd can: it
//! moves the warden into a new scope, and leaves to the warden what becomes of that scope. This is
//! what `systemd-run --user --scope` does, by the same call.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    process, thread,
    time::{Duration, Instant},
};

/// How long systemd may take for an answer, and for the move after it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest answer that is read.
const LONGEST: usize = 1 << 16;

/// Has systemd move this process into a scope of its own.
pub(super) fn enter() -> io::Result<()> {
    let user = rustix::process::geteuid();
    let socket = match user.is_root() {
        true => "/run/systemd/private".to_owned(),
        false => format!("/run/user/{user}/systemd/private"),
    };
    let name = format!("stockade-{}.scope", process::id());
    let mut systemd = UnixStream::connect(socket)?;
    systemd.set_read_timeout(Some(PATIENCE))?;
    systemd.set_write_timeout(Some(PATIENCE))?;
    authenticate(&mut systemd, &user.to_string())?;
    systemd.write_all(&start_scope(&name, process::id()))?;
    answer(&mut systemd)?;
    // The answer says that the move is under way.
    let end = Instant::now() + PATIENCE;
    while !fs::read_to_string("/proc/self/cgroup")?.contains(&name) {
        if Instant::now() > end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// D-Bus's greeting: the kernel tells systemd who this is, and the text has to agree.
fn authenticate(systemd: &mut UnixStream, user: &str) -> io::Result<()> {
    let user: String = user.bytes().map(|digit| format!("{digit:02x}")).collect();
    write!(systemd, "\0AUTH EXTERNAL {user}\r\n")?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        systemd.read_exact(&mut byte)?;
        line.extend(byte);
        if line.len() > 256 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    if !line.starts_with(b"OK ") {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    systemd.write_all(b"BEGIN\r\n")
}

/// Reads until the answer to the one call that was made.
fn answer(systemd: &mut UnixStream) -> io::Result<()> {
    const RETURN: u8 = 2;
    const ERROR: u8 = 3;
    for _ in 0..64 {
        let mut head = [0; 16];
        systemd.read_exact(&mut head)?;
        let [order, kind, ..] = head;
        let number = |at: usize| {
            let bytes = head.get(at..at + 4)?.try_into().ok()?;
            let number = match order {
                b'l' => u32::from_le_bytes(bytes),
                _ => u32::from_be_bytes(bytes),
            };
            usize::try_from(number).ok().filter(|it| *it <= LONGEST)
        };
        let (Some(body), Some(fields)) = (number(4), number(12)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut rest = vec![0; fields.next_multiple_of(8) + body];
        systemd.read_exact(&mut rest)?;
        match kind {
            RETURN => return Ok(()),
            ERROR => return Err(io::Error::other("systemd refuses a scope")),
            // A signal, which nobody asked for.
            _ => {}
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The call `StartTransientUnit(name, "fail", properties, [])` of systemd's manager.
fn start_scope(name: &str, pid: u32) -> Vec<u8> {
    let mut body = Message::default();
    body.text(name);
    body.text("fail");
    body.list(8, |properties| {
        let mut property = |key: &str, signature: &str, value: &dyn Fn(&mut Message)| {
            properties.align(8);
            properties.text(key);
            properties.signature(signature);
            value(properties);
        };
        property("Description", "s", &|it| it.text("Stockade"));
        property("PIDs", "au", &|it| it.list(4, |list| list.number(pid)));
        // With all controllers, and ours to divide.
        property("Delegate", "b", &|it| it.number(1));
        property("CollectMode", "s", &|it| it.text("inactive-or-failed"));
    });
    body.list(8, |_| {});

    const CALL: u8 = 1;
    const SERIAL: u32 = 1;
    let length = u32::try_from(body.0.len()).unwrap_or(u32::MAX);
    let mut message = Message(vec![b'l', CALL, 0, 1]);
    message.number(length);
    message.number(SERIAL);
    message.list(8, |fields| {
        let mut field = |code: u8, signature: &str, value: &str| {
            fields.align(8);
            fields.0.push(code);
            fields.signature(signature);
            match signature {
                "g" => fields.signature(value),
                _ => fields.text(value),
            }
        };
        field(1, "o", "/org/freedesktop/systemd1");
        field(2, "s", "org.freedesktop.systemd1.Manager");
        field(3, "s", "StartTransientUnit");
        field(6, "s", "org.freedesktop.systemd1");
        field(8, "g", "ssa(sv)a(sa(sv))");
    });
    message.align(8);
    message.0.extend(body.0);
    message.0
}

/// A message of D-Bus, or a part of one that begins at a multiple of eight bytes.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u32) {
        self.align(4);
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, signature: &str) {
        self.0
            .push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
        self.0.extend(signature.as_bytes());
        self.0.push(0);
    }

    /// An array. Its length does not include the padding before the first element.
    fn list(&mut self, alignment: usize, elements: impl FnOnce(&mut Self)) {
        self.number(0);
        let length_at = self.0.len() - 4;
        self.align(alignment);
        let start = self.0.len();
        elements(self);
        let length = u32::try_from(self.0.len() - start).unwrap_or(u32::MAX);
        self.0
            .splice(length_at..length_at + 4, length.to_le_bytes());
    }
}
