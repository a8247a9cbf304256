//! The machine as its files describe it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::thread::CapabilitySet;
use stockade_sys::{confine::Landlock, transparent::Family};

#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// Where its files are: `/`, but for tests.
    root: PathBuf,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) capabilities: CapabilitySet,
    /// The kernel has sockets of IPv6.
    pub(super) has_ipv6: bool,
    pub(super) landlock: Landlock,
}

impl Machine {
    pub(super) fn this() -> Self {
        let capabilities = rustix::thread::capabilities(None);
        Self {
            root: "/".into(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            capabilities: capabilities.map_or(CapabilitySet::empty(), |sets| sets.effective),
            has_ipv6: Family::V6.exists(),
            landlock: Landlock::of_this_kernel(),
        }
    }

    /// The text of a file, without the space around it; none if it cannot be read.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A setting of the kernel: `net/ipv4/ping_group_range`.
    pub(super) fn setting(&self, name: &str) -> Option<String> {
        self.read(&format!("/proc/sys/{name}"))
    }

    pub(super) fn status(&self, field: &str) -> Option<String> {
        let status = self.read("/proc/self/status")?;
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| *name == field)?;
        Some(value.trim().to_owned())
    }

    /// What AppArmor calls this process's profile; nothing without it.
    pub(super) fn apparmor_label(&self) -> String {
        let own = self.read("/proc/self/attr/apparmor/current");
        own.or_else(|| self.read("/proc/self/attr/current"))
            .unwrap_or_default()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root
            .join(Path::new(path).strip_prefix("/").unwrap_or(Path::new(path)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A machine of an ordinary user with just these files.
    pub(in crate::doctor) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().expect("a directory");
        let machine = Machine {
            root: root.path().to_owned(),
            uid: 1000,
            gid: 1000,
            capabilities: CapabilitySet::empty(),
            has_ipv6: true,
            landlock: Landlock::Missing,
        };
        for (path, text) in files {
            let path = machine.path(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        (root, machine)
    }

    #[test]
    fn fields_of_the_status_are_found_by_their_whole_name() {
        let (_root, machine) = machine(&[(
            "/proc/self/status",
            "Name:\tx\nSeccomp_filters:\t3\nSeccomp:\t2\n",
        )]);
        assert_eq!(machine.status("Seccomp").as_deref(), Some("2"));
        assert_eq!(machine.status("CapEff"), None);
    }
}
