//! The broker: renames and removes for programs that have a mount namespace of their own.
//!
//! Such a program can lift the covers of its own namespace, and rename what they cover. So where mount
//! namespaces are allowed (`agent.nested`), a filter holds every call that takes away a name, and a
//! thread of process 1 decides (docs/decisions/0016-covers-hold.md):
//!
//! - The caller is in the sandbox's own mount namespace: the kernel makes the call and protects the
//!   covers. Nobody but the caller itself can change its namespace, and it is blocked.
//! - It is in another one: the thread makes the call for it, in the sandbox's own mount namespace.
//!   The directories are found as the caller sees them (`view`), and held by descriptor, which
//!   carries the caller's mount: what is read-only there stays so. The strings are read once.
//!
//! A mount point of the caller's own namespace is refused here, since the kernel would not know of it.

mod view;

use std::{io, os::fd::AsRawFd as _, sync::Arc, thread};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, OFlags, RenameFlags, StatxAttributes, StatxFlags, renameat_with,
        stat, statx, unlinkat,
    },
    io::Errno,
};
use stockade_sys::{
    notify::{self, Listener, UNNAMING, Unnaming, Verdict, Waiting, read_path},
    process,
};

use self::view::{Parent, View};
use crate::supervise::FAILED;

/// Calls at a time. One that waits for a disk holds up none of the others but this many.
const THREADS: usize = 8;

/// A mount namespace: the device and number of the file that stands for it.
type Namespace = (u64, u64);

struct Broker {
    listener: Listener,
    own: Namespace,
}

/// Holds the calls of this process, and of all it starts, for the broker.
pub(super) fn hold() -> io::Result<Listener> {
    let calls: Vec<_> = UNNAMING.iter().map(|(call, _)| *call).collect();
    notify::install(&calls)
}

/// Answers the calls that were held, until the end of this process: without a broker there is
/// nothing inside.
pub(super) fn serve(listener: Listener) -> io::Result<()> {
    listener.hand_over_quickly();
    let broker = Arc::new(Broker {
        listener,
        own: namespace("self")?,
    });
    for _ in 0..THREADS {
        let broker = Arc::clone(&broker);
        let thread = thread::Builder::new().name("broker".to_owned());
        thread.spawn(move || {
            let _end = EndsAll;
            while broker.turn().is_ok() {}
        })?;
    }
    Ok(())
}

/// Ends the process, and with it everything inside, when its thread does, by a panic too.
struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        process::exit(FAILED)
    }
}

impl Broker {
    fn turn(&self) -> io::Result<()> {
        if let Some(waiting) = self.listener.receive()? {
            let verdict = self.judge(&waiting).unwrap_or_else(Verdict::Failed);
            self.listener.answer(&waiting, verdict);
        }
        Ok(())
    }

    fn judge(&self, waiting: &Waiting) -> Result<Verdict, Errno> {
        let caller = waiting.caller.as_raw_nonzero().to_string();
        let namespace = namespace(&caller)?;
        // From here on the number is known to be the caller's: it waits.
        if !self.listener.is_waiting(waiting) {
            return Err(Errno::SRCH);
        }
        if namespace == self.own {
            return Ok(Verdict::Continue);
        }
        self.act(waiting, &caller)?;
        Ok(Verdict::Done)
    }

    fn act(&self, waiting: &Waiting, caller: &str) -> Result<(), Errno> {
        let mut calls = UNNAMING.iter();
        let call = calls.find(|(number, _)| *number == waiting.call);
        let (_, call) = call.ok_or(Errno::NOSYS)?;
        let path = |index: usize| {
            let address = waiting.arguments.get(index).copied().unwrap_or_default();
            read_path(waiting.caller, address)
        };
        let here = CWD.as_raw_fd();
        // Directory and path of what is renamed or removed; of the new name; the flags.
        let (old, new, flags) = match call {
            Unnaming::Rename => ((here, path(0)?), Some((here, path(1)?)), 0),
            Unnaming::RenameAt | Unnaming::RenameAt2 => (
                (waiting.int(0), path(1)?),
                Some((waiting.int(2), path(3)?)),
                match call {
                    Unnaming::RenameAt2 => waiting.int(4),
                    _ => 0,
                },
            ),
            Unnaming::Unlink => ((here, path(0)?), None, 0),
            Unnaming::Rmdir => (
                (here, path(0)?),
                None,
                AtFlags::REMOVEDIR.bits().cast_signed(),
            ),
            Unnaming::UnlinkAt => ((waiting.int(0), path(1)?), None, waiting.int(2)),
        };
        let flags = flags.cast_unsigned();
        let how = match new {
            Some(_) => How::Rename(rename_flags(flags)?),
            None if flags & !AtFlags::REMOVEDIR.bits() != 0 => return Err(Errno::INVAL),
            None => How::Remove(AtFlags::from_bits_retain(flags)),
        };
        let view = View::of(caller)?;
        let old = view.parent(old.0, &old.1)?;
        let new = match new {
            Some((directory, path)) => Some(view.parent(directory, &path)?),
            None => None,
        };
        refuse_mount_point(&old, how, false)?;
        if let Some(new) = &new {
            refuse_mount_point(new, how, true)?;
        }
        // Not again, if it was interrupted and begins anew.
        if !self.listener.is_waiting(waiting) {
            return Err(Errno::INTR);
        }
        match (how, new) {
            (How::Rename(flags), Some(new)) => {
                renameat_with(&old.directory, &old.name, &new.directory, &new.name, flags)
            }
            (How::Remove(flags), _) => unlinkat(&old.directory, &old.name, flags),
            (How::Rename(_), None) => Err(Errno::INVAL),
        }
    }
}

/// What is done, as its flags say.
#[derive(Clone, Copy)]
enum How {
    Rename(RenameFlags),
    Remove(AtFlags),
}

/// Refuses what the kernel would, before it looks for the names.
fn rename_flags(bits: u32) -> Result<RenameFlags, Errno> {
    let flags = RenameFlags::from_bits_retain(bits);
    let others = RenameFlags::NOREPLACE | RenameFlags::WHITEOUT;
    let known = others | RenameFlags::EXCHANGE;
    let contradicts = flags.contains(RenameFlags::EXCHANGE) && flags.intersects(others);
    if !known.contains(flags) || contradicts {
        return Err(Errno::INVAL);
    }
    Ok(flags)
}

fn namespace(process: &str) -> Result<Namespace, Errno> {
    let namespace = stat(format!("/proc/{process}/ns/mnt"))?;
    Ok((namespace.st_dev, namespace.st_ino))
}

/// What is a mount point as the caller sees it cannot lose its name, as the kernel has it. Errors that
/// the kernel finds first are told first.
fn refuse_mount_point(parent: &Parent, how: How, is_new: bool) -> Result<(), Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let name = parent.plain_name();
    if matches!(name, b"." | b".." | b"") {
        // The kernel has answers of its own.
        return Ok(());
    }
    match statx(&parent.directory, name, flags, StatxFlags::TYPE) {
        Ok(found) if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) => {
            let kind = FileType::from_raw_mode(found.stx_mode.into());
            let is_directory = kind == FileType::Directory;
            Err(match how {
                How::Remove(flags) if flags.is_empty() && is_directory => Errno::ISDIR,
                How::Remove(flags) if !flags.is_empty() && !is_directory => Errno::NOTDIR,
                How::Rename(flags) if is_new && flags.contains(RenameFlags::NOREPLACE) => {
                    Errno::EXIST
                }
                _ => Errno::BUSY,
            })
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// How directories are opened on the way to a name.
const PATH: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
