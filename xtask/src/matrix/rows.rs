//! The machines, and what is expected of each.

use crate::dist::Arch;

/// A machine.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// The releases of Debian that its kernel and its root are from.
    pub(super) kernel: &'static str,
    pub(super) root: &'static str,
    pub(super) architecture: Architecture,
    /// Parameters of the kernel.
    pub(super) boot: &'static str,
    /// Modules that the kernel does not have.
    pub(super) without: &'static str,
    /// Functions for the guest's script: `internet` makes a server that stands for it, `setup` prepares the
    /// machine, `as_user` starts a command, `also` tries more.
    pub(super) script: &'static str,
    /// What `also` tries.
    pub(super) also: &'static [&'static str],
    pub(super) expected: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    /// Debian's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    pub(super) fn shipped(self) -> Arch {
        match self {
            Self::Amd64 => Arch::X86_64,
            Self::Arm64 => Arch::Aarch64,
        }
    }

    /// What emulates it, with all that does not depend on the row.
    pub(super) fn emulator(self) -> &'static str {
        match self {
            Self::Amd64 => "qemu-system-x86_64 -cpu max,-cx16",
            Self::Arm64 => "qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on",
        }
    }

    pub(super) fn console(self) -> &'static str {
        match self {
            Self::Amd64 => "ttyS0",
            Self::Arm64 => "ttyAMA0",
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Expected {
    /// `doctor` and `verify` find no failure; a session reaches the internet, and nothing nearby.
    Works,
    /// `doctor` fails, and `run` exits with 125 and says this.
    Refuses(&'static str),
}

const USUAL: Row = Row {
    name: "Debian 13",
    kernel: "trixie",
    root: "trixie",
    architecture: Architecture::Amd64,
    boot: "",
    without: "",
    script: "",
    also: &[],
    expected: Expected::Works,
};

pub(super) const ROWS: [Row; 14] = [
    Row {
        name: "Debian 11's kernel",
        kernel: "bullseye",
        root: "bookworm",
        expected: Expected::Refuses("is too old"),
        ..USUAL
    },
    Row {
        name: "Debian 12",
        kernel: "bookworm",
        root: "bookworm",
        ..USUAL
    },
    USUAL,
    Row {
        name: "Debian sid",
        kernel: "sid",
        root: "sid",
        ..USUAL
    },
    Row {
        name: "without `nft_tproxy`, `nft_socket`, `nft_reject`",
        without: "nft_tproxy nft_socket nft_reject nft_reject_inet nft_reject_ipv4 nft_reject_ipv6",
        ..USUAL
    },
    Row {
        name: "`modules_disabled`, with `nf_tables` and `veth`",
        script: "setup() { modprobe -a nf_tables veth; sysctl kernel.modules_disabled=1; }\n\
            also() { ! modprobe nft_tproxy; result locked $?; }",
        also: &["locked"],
        ..USUAL
    },
    Row {
        name: "without `nf_tables`",
        without: "nf_tables",
        expected: Expected::Refuses("the kernel lacks nf_tables"),
        ..USUAL
    },
    Row {
        name: "without `veth`",
        without: "veth",
        script: "internet() { :; }",
        expected: Expected::Refuses("the kernel lacks veth"),
        ..USUAL
    },
    Row {
        name: "`ipv6.disable=1`",
        boot: "ipv6.disable=1",
        ..USUAL
    },
    Row {
        name: "`lsm=` without Landlock",
        boot: "lsm=yama",
        script: "also() { try landlock sh -c 'stockade doctor | grep -q lsm=landlock,'; }",
        also: &["landlock"],
        ..USUAL
    },
    Row {
        name: "AppArmor with a profile for bubblewrap",
        script: include_str!("apparmor.sh"),
        also: &["control", "chromium", "nested", "profile", "strict"],
        ..USUAL
    },
    Row {
        name: "a login session of systemd",
        script: include_str!("login.sh"),
        also: &["memory"],
        ..USUAL
    },
    Row {
        name: "rootless Podman",
        script: include_str!("podman.sh"),
        also: &["setfcap"],
        ..USUAL
    },
    Row {
        name: "Debian 13, arm64",
        architecture: Architecture::Arm64,
        ..USUAL
    },
];
