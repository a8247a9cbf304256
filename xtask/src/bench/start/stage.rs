//! The stage: where the sandboxes are started.
//!
//! A mount namespace and a network namespace of their own, with loopback in it and nothing
//! else: whatever a peer does at its start, no packet leaves the machine. In it an ordinary
//! user with an ordinary home, in memory. Root becomes that user; others stay who they are,
//! in a user namespace, in which setuid programs do not work.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::driver::{DRIVER, Settings};
use super::results::Results;

pub(super) const PRODUCT: &str = "/home/stockade";
pub(super) const PEERS: &str = "/home/peers";

/// Arguments: the product, the peers' directory, this program, the driver's arguments. What
/// is needed of the disk is bound before anything is covered: it may lie anywhere.
const SET: &str = r#"
set -eu
product=$1 peers=$2 itself=$3
shift 3
ip link set lo up
set_at=$(mktemp -d)
mount -t tmpfs -o mode=755 stage "$set_at"
home=$set_at/bench
mkdir -p "$set_at/peers" "$home/.cache" "$home/.local/share" "$home/project/.git/hooks"
mount --bind "$peers" "$set_at/peers"
cp "$product" "$set_at/stockade"
cp "$itself" "$set_at/xtask"
echo 'ref: refs/heads/main' > "$home/project/.git/HEAD"
mkdir "$home/project/.git/objects" "$home/project/.git/refs"
become='--ambient-caps -all --inh-caps -all'
if [ "$(id -u)" = 0 ]; then
    become='--reuid 61000 --regid 61000 --clear-groups'
    for file in passwd group; do cp "/etc/$file" "$set_at/$file"; done
    echo 'bench:x:61000:61000::/home/bench:/bin/sh' >> "$set_at/passwd"
    echo 'bench:x:61000:' >> "$set_at/group"
    for file in passwd group; do mount --bind "$set_at/$file" "/etc/$file"; done
    chown -R 61000:61000 "$home"
fi
mount --rbind "$set_at" /home
mount -t tmpfs -o mode=1777 stage /tmp
cd /home/bench/project
exec setpriv $become env -i HOME=/home/bench USER=bench LANG=C.UTF-8 TERM=dumb \
    PATH=/usr/local/bin:/usr/bin:/bin /home/xtask "$@"
"#;

/// Runs the driver on the stage and collects what it found.
pub(super) fn run(settings: &Settings, product: &Path, peers: &Path) -> Result<Results> {
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    let driver = unshare
        .args(["--net", "--mount", "--propagation", "private", "--"])
        .args(["sh", "-c", SET, "stage"])
        .args([product, peers])
        .arg(env::current_exe()?)
        .arg(DRIVER)
        .arg(serde_json::to_string(settings)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start unshare")?
        .wait_with_output()?;
    ensure!(driver.status.success(), "the measurement failed");
    serde_json::from_slice(&driver.stdout).context("cannot understand the driver")
}
