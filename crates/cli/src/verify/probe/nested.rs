//! What can be done with all capabilities over a user namespace of one's own, as any program
//! may have them.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
};

use rustix::{
    mount::{MountFlags, mount, mount_remount},
    pipe::{PipeFlags, pipe_with},
    process::{WaitOptions, waitpid},
};
use serde::{Serialize, de::DeserializeOwned};
use stockade_sys::{
    namespace::{self, Identity, UserNamespaceError},
    process,
    rtnl::{LOOPBACK, Routing},
};

use super::network;
use crate::verify::words::{Nested, Tried};

/// `change`: whether the network is the session's own.
pub(super) fn attempts(change: bool) -> Nested {
    apart(|| attempt(change)).unwrap_or_else(|error| Nested {
        user: Tried::from_error(&error),
        changes: None,
        remount: None,
        own_network: None,
        own_mount: None,
    })
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
            changes: None,
            remount: None,
            own_network: None,
            own_mount: None,
        };
    }
    let mounts = namespace::enter_mount_namespace();
    Nested {
        user,
        changes: change.then(network::change),
        remount: Some(match &mounts {
            Ok(()) => remount().into(),
            Err(error) => Tried::from_error(error),
        }),
        own_mount: Some(match &mounts {
            Ok(()) => own_mount().into(),
            Err(error) => Tried::from_error(error),
        }),
        // Last: there is no way back.
        own_network: Some(own_network().into()),
    }
}

/// Takes away what makes a directory of the system read-only.
fn remount() -> io::Result<()> {
    mount_remount("/usr", MountFlags::BIND, "")?;
    Ok(())
}

fn own_mount() -> io::Result<()> {
    mount("none", "/tmp", "tmpfs", MountFlags::empty(), None)?;
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
    while let Err(rustix::io::Errno::INTR) = waitpid(Some(child), WaitOptions::empty()) {}
    read?;
    Ok(serde_json::from_slice(&said)?)
}
