//! The tables of what is seen of the home directory. Everything else in it is hidden.
//!
//! By the customs of XDG, `.config` holds credentials: nothing of it is shown but the
//! logins of forges that are on. `.local/share` and `.cache` hold programs, plugins and
//! downloads: both are shown whole. But programs outside execute what lies there, and some
//! programs keep secrets there nevertheless. So changes stay inside, and the places that
//! are known for secrets are masked. `.local/state` and `.local/bin` are empty.

/// Directories that are shown whole. Changes to them are gone at the end.
pub(crate) const SCRATCH: &[(&str, &str)] = &[
    (".local/share", "plugins and data of programs"),
    (".cache", "downloads and other things that can be had again"),
];

/// Files and directories that can be read.
pub(crate) const READABLE: &[(&str, &str)] = &[(".terminfo", "what the terminal can do")];

/// Programs of `.local/bin` that are shown.
pub(crate) const PROGRAMS: &[&str] = &[".local/bin/uv", ".local/bin/uvx"];

pub(crate) const PROGRAM_REASON: &str = "programs of Python's tools";

/// Directories in those above that start empty.
pub(crate) const EMPTY: &[(&str, &str)] = &[
    (
        ".local/share/applications",
        "no program of the sandbox's enters the desktop's menu",
    ),
    (
        ".local/share/claude",
        "versions that the agent fetches are its own",
    ),
];

/// Files and directories in those above that hold secrets.
pub(crate) const SECRETS: &[&str] = &[
    // Keys and passwords.
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/gnupg",
    ".local/share/pki",
    ".local/share/password-store",
    ".local/share/gopass",
    ".local/share/lpass",
    ".local/share/rbw",
    ".local/share/chezmoi",
    ".local/share/networkmanagement",
    ".local/share/python_keyring",
    ".local/share/tailscale",
    ".local/share/keybase",
    ".cache/rbw",
    // Authorities whose certificates this machine trusts.
    ".local/share/mkcert",
    ".local/share/caddy",
    // Logins of tools.
    ".local/share/uv/credentials",
    ".local/share/cargo/credentials",
    ".local/share/cargo/credentials.toml",
    ".local/share/helm/registry.json",
    ".local/share/jupyter/runtime",
    ".local/share/code-server",
    ".local/share/DBeaverData",
    ".local/share/azuredatastudio",
    ".local/share/remmina",
    ".local/share/gnome-remote-desktop",
    ".local/share/PrismLauncher",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".cache/snowflake",
    // Containers and machines: their secrets and disks.
    ".local/share/containers",
    ".local/share/docker",
    ".local/share/libvirt",
    ".local/share/gnome-boxes",
    // Other agents: logins, and what was said in other projects.
    ".local/share/amp",
    ".local/share/crush",
    ".local/share/goose",
    ".local/share/kilo",
    ".local/share/opencode",
    ".cache/claude-cli-nodejs",
    // What was typed and copied.
    ".local/share/fish/fish_history",
    ".local/share/atuin",
    ".local/share/mcfly",
    ".local/share/zsh",
    ".local/share/mc/history",
    ".local/share/zoxide",
    ".local/share/klipper",
    ".local/share/copyq",
    ".local/share/clipman.json",
    ".cache/cliphist",
    // What was opened, and what stood in it.
    ".local/share/recently-used.xbel",
    ".local/share/RecentDocuments",
    ".local/share/zeitgeist",
    ".local/share/kactivitymanagerd",
    ".local/share/gvfs-metadata",
    ".local/share/baloo",
    ".local/share/Trash",
    ".cache/tracker",
    ".cache/tracker3",
    ".cache/thumbnails",
    // Mail and messages.
    ".local/share/evolution",
    ".local/share/geary",
    ".local/share/akonadi",
    ".local/share/kmail2",
    ".local/share/local-mail",
    ".local/share/mail",
    ".local/share/TelegramDesktop",
    ".local/share/signal-cli",
    ".local/share/dino",
    ".local/share/gajim",
    ".local/share/fractal",
    ".local/share/nheko",
    ".local/share/weechat",
    ".cache/evolution",
    ".cache/thunderbird",
    ".cache/mutt",
    ".cache/neomutt",
    // Browsers.
    ".local/share/epiphany",
    ".local/share/qutebrowser",
    ".local/share/webkitgtk",
    ".cache/mozilla",
    ".cache/google-chrome",
    ".cache/chromium",
    ".cache/BraveSoftware",
    ".cache/microsoft-edge",
    ".cache/vivaldi",
];

pub(crate) const SECRET_REASON: &str = "known to hold secrets";

/// Stores of forges' logins.
pub(crate) const GITHUB: &str = ".config/gh";
pub(crate) const GITLAB: &str = ".config/glab-cli";
