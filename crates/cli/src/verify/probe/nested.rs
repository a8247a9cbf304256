//! What can be done with all capabilities over a user namespace of one's own, as any program
//! may have them.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    path::Path,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdir, open, openat, renameat, unlinkat},
    io::Errno,
    mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount},
    pipe::{PipeFlags, pipe_with},
    process::{WaitOptions, chdir, pivot_root, waitpid},
};
use serde::{Serialize, de::DeserializeOwned};
use stockade_sys::{
    namespace::{self, Identity, UserNamespaceError},
    process,
    rtnl::{LOOPBACK, Routing},
};

use super::network;
use crate::verify::messages::{Lift, Nested, Tried};

/// `change`: whether the network is the session's own.
/// `covered`: a file that is hidden in a directory that can be written.
pub(super) fn attempts(change: bool, covered: Option<&Path>) -> Nested {
    let nested = apart(|| attempt(change)).unwrap_or_else(|error| Nested {
        user: Tried::from_error(&error),
        ..Nested::default()
    });
    Nested {
        lift: covered.and_then(|covered| apart(|| lift(covered).ok()).ok().flatten()),
        ..nested
    }
}

/// Leaves every mount behind, as far as that is possible, and takes the name of what is covered
/// away by a descriptor of its directory. What could be renamed gets its name back.
fn lift(covered: &Path) -> io::Result<Lift> {
    let name = covered.file_name().ok_or(Errno::INVAL)?;
    let moved = [name.as_encoded_bytes(), b".moved"].concat();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = covered.parent().ok_or(Errno::INVAL)?;
    let directory = open(parent, flags, Mode::empty())?;
    let plain = [name.as_encoded_bytes(), b".plain"].concat();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(&directory, &*plain, flags, Mode::RUSR)?;
    let apart = leave_mounts();
    let moves = |name: &[u8]| {
        renameat(&directory, name, &directory, &*moved)?;
        renameat(&directory, &*moved, &directory, name)
    };
    // What is removed is gone, and the session with it: not if it is known already.
    let remove = |flags| unlinkat(&directory, name, flags);
    let taken = match moves(name.as_encoded_bytes()) {
        Ok(()) => Tried::Worked("renamed".to_owned()),
        Err(_)
            if remove(AtFlags::empty())
                .or(remove(AtFlags::REMOVEDIR))
                .is_ok() =>
        {
            Tried::Worked("removed".to_owned())
        }
        Err(error) => Tried::from_error(&error.into()),
    };
    let control = moves(&plain).and(unlinkat(&directory, &*plain, AtFlags::empty()));
    // If the control did not work, perhaps this does.
    let _ = unlinkat(&directory, &*plain, AtFlags::empty());
    Ok(Lift {
        apart: apart.into(),
        taken,
        control: control.map_err(Into::into).into(),
    })
}

/// A mount namespace of one's own in which nothing is mounted but an empty root.
fn leave_mounts() -> io::Result<()> {
    namespace::enter_user_namespace(Identity::current()).map_err(io::Error::other)?;
    namespace::enter_mount_namespace()?;
    mount("none", "/tmp", "tmpfs", MountFlags::empty(), None)?;
    mkdir("/tmp/old", Mode::RWXU)?;
    pivot_root("/tmp", "/tmp/old")?;
    chdir("/")?;
    unmount("/old", UnmountFlags::DETACH)?;
    Ok(())
}

fn attempt(change: bool) -> Nested {
    let user = match namespace::enter_user_namespace(Identity::current()) {
        Ok(()) => Tried::Worked(String::new()),
        Err(UserNamespaceError::Threads) => Tried::Refused(0),
        Err(UserNamespaceError::Create(error) | UserNamespaceError::Map { error, .. }) => {
            Tried::from_error(&error)
        }
    };
    if !user.worked() {
        return Nested {
            user,
            ..Nested::default()
        };
    }
    Nested {
        user,
        changes: change.then(network::change),
        remount: Some(
            namespace::enter_mount_namespace()
                .and_then(|()| remount())
                .into(),
        ),
        lift: None,
        // Last: there is no way back.
        own_network: Some(own_network().into()),
    }
}

/// Takes away what makes a directory of the system read-only.
fn remount() -> io::Result<()> {
    mount_remount("/usr", MountFlags::BIND, "")?;
    Ok(())
}

/// The same as in the session's own network, where it must not work.
fn own_network() -> io::Result<()> {
    namespace::enter_network_namespace()?;
    Routing::open()?.set_up(LOOPBACK)?;
    network::filter()
}

/// Does something in a process of its own, because it is for good.
fn apart<T: Serialize + DeserializeOwned>(what: impl FnOnce() -> T) -> io::Result<T> {
    let (news, teller) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = process::fork(|| {
        let told = serde_json::to_vec(&what())
            .map_err(io::Error::from)
            .and_then(|said| File::from(teller).write_all(&said));
        u8::from(told.is_err())
    })?;
    let mut said = Vec::new();
    let read = File::from(news).read_to_end(&mut said);
    while let Err(Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
    read?;
    Ok(serde_json::from_slice(&said)?)
}
