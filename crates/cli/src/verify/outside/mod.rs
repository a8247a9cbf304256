//! What is put up outside for the prober to find, if it can: files, sockets, listeners, a
//! descriptor, a variable. Each is tried from here first: what cannot be found outside either
//! proves nothing by not being found inside.

mod canaries;
mod listeners;

use std::{collections::BTreeMap, fs::File, io::Read as _, path::PathBuf, process};

use anyhow::{Context as _, Result};
use stockade_sys::{confine::Landlock, transparent::Family};

pub(super) use canaries::{Canaries, Place};
pub(super) use listeners::{Listeners, Role};

use super::{identity, probe};

/// A variable of the session's caller that nothing passes on.
pub(super) const SECRET_VARIABLE: &str = "STOCKADE_VERIFY_SECRET";

pub(super) struct Outside {
    /// In what is found, and in nothing else.
    pub(super) token: String,
    pub(super) canaries: Canaries,
    pub(super) listeners: Listeners,
    /// The kernel has sockets of IPv6.
    pub(super) has_ipv6: bool,
    pub(super) namespaces: BTreeMap<String, String>,
    pub(super) calls: BTreeMap<String, i32>,
    pub(super) identities: BTreeMap<PathBuf, String>,
    pub(super) landlock: Landlock,
    /// What other processes must not see of this one.
    pub(super) own_secrets: Vec<PathBuf>,
}

/// Directories that are the session's own.
pub(super) const PRIVATE: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/dev", "/dev/shm"];

impl Outside {
    pub(super) fn put_up(home: &std::path::Path, workspace: &std::path::Path) -> Result<Self> {
        let token = token()?;
        let mut places: Vec<PathBuf> = PRIVATE.map(PathBuf::from).to_vec();
        places.push(home.to_owned());
        Ok(Self {
            canaries: Canaries::put_up(&token, home, workspace),
            listeners: Listeners::open(&token)?,
            has_ipv6: Family::V6.exists(),
            namespaces: probe::namespaces(),
            calls: probe::calls(),
            identities: identity::all(&places),
            own_secrets: ["environ", "maps", "root", "cwd", "fd/1"]
                .map(|name| format!("/proc/{}/{name}", process::id()).into())
                .to_vec(),
            landlock: Landlock::of_this_kernel(),
            token,
        })
    }
}

/// Something that nobody else has.
fn token() -> Result<String> {
    let mut bytes = [0_u8; 8];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
