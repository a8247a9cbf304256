//! The system's parts of the disk, the private ones, and the secrets in `/etc`. Each entry has
//! its reason.

/// Where programs, libraries and their settings live. Shown read-only, if they exist.
pub(crate) const SYSTEM: &[(&str, &str)] = &[
    ("/usr", "programs and libraries"),
    ("/bin", "programs"),
    ("/sbin", "programs"),
    ("/lib", "libraries and the dynamic loader"),
    ("/lib32", "libraries"),
    ("/lib64", "libraries and the dynamic loader"),
    ("/libx32", "libraries"),
    ("/etc", "settings, users, certificates, time zone"),
    ("/opt", "programs installed beside the distribution's"),
    // Not the whole of /nix and /gnu: a connect() to the socket of a build daemon, which
    // works outside with the host's network, is not stopped by a read-only mount.
    ("/nix/store", "programs of NixOS and Nix"),
    ("/gnu/store", "programs of Guix"),
    ("/run/current-system", "programs of NixOS and Guix"),
    ("/home/linuxbrew/.linuxbrew", "programs of Homebrew"),
    ("/var/lib/dpkg", PACKAGES),
    ("/var/lib/rpm", PACKAGES),
    ("/var/lib/pacman", PACKAGES),
    ("/var/lib/apk", PACKAGES),
];

const PACKAGES: &str = "which packages are installed";

/// Directories that are empty at the start and gone at the end: path, mode, and why.
pub(crate) const PRIVATE: &[(&str, u32, &str)] = &[
    (
        "/tmp",
        0o1777,
        "the host's holds other programs' files and sockets",
    ),
    ("/var/tmp", 0o1777, "the host's holds other programs' files"),
    (
        "/run",
        0o755,
        "the host's holds the sockets of its services and agents",
    ),
];

/// Secrets below `/etc` that some users can read: root all of them, others by group.
/// Those that this user cannot read anyway need no mask.
pub(crate) const ETC_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/stockade",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/ipsec.secrets",
    "/etc/ipsec.d/private",
    "/etc/swanctl/private",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/wpa_supplicant",
    "/etc/NetworkManager/system-connections",
    "/etc/netplan",
    "/etc/iwd",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/etc/docker/key.json",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/ceph",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/cryptsetup-keys.d",
    "/etc/mysql/debian.cnf",
    "/etc/postfix/sasl_passwd",
    "/etc/exim4/passwd.client",
];

/// The directory whose `ssh_host_*_key` files are secrets, too.
pub(crate) const SSH_HOST_KEYS: &str = "/etc/ssh";

/// Why an entry of [`ETC_SECRETS`] is masked.
pub(crate) const SECRET_REASON: &str = "a secret that this user can read";
