//! Places of credentials and private data in a home directory.
//!
//! Stockade masks them, refuses them as a workspace, and warns the user who gives one to a command.

use std::{fs, path::Path};

use super::home::{self, GITHUB, GITLAB, OWN_DIRECTORIES};
use crate::{
    config::{Config, PathRequest},
    facts::{Facts, Found, Kind, Place, absolute},
    nofollow,
};

/// What lies in some places of a home directory: whether it is a credential, what it is, and the
/// places. A workspace is never at a credential. What is only private may be what somebody works on.
struct Known(bool, &'static str, &'static [&'static str]);

const fn credential(what: &'static str, places: &'static [&'static str]) -> Known {
    Known(true, what, places)
}

const fn private(what: &'static str, places: &'static [&'static str]) -> Known {
    Known(false, what, places)
}

const AGENTS: &str = "logins and conversations of agents";

/// The one table of what only the user should have, by what it is. Whatever is about such places
/// comes from here: what is masked where `~/.cache` and `~/.local/share` are shown, what is said
/// when one of them is given, where a workspace is refused, and what `stockade verify` looks for.
#[rustfmt::skip]
const KNOWN: &[Known] = &[
    // Keys and passwords.
    credential("keys of SSH", &[".ssh"]),
    credential("keys of GnuPG", &[".gnupg", ".local/share/gnupg"]),
    credential("keys of age and SOPS", &[".config/sops", ".config/age", ".age"]),
    credential("keys that sign software", &[".sigstore", ".minisign"]),
    credential("certificates and their keys", &[
        ".pki", ".local/share/pki", ".step", ".acme.sh", ".lego", ".local/share/networkmanagement", ".cert",
        ".config/kdeconnect",
    ]),
    credential("keys of authorities that this machine trusts", &[
        ".local/share/mkcert", ".local/share/caddy", ".aspnet", ".dotnet/corefx/cryptography",
    ]),
    credential("passwords", &[
        ".password-store", ".local/share/password-store", ".local/share/gopass", ".config/gopass",
        ".cache/gopass", ".local/share/keyrings", ".gnome2/keyrings", ".local/share/kwalletd",
        ".kde/share/apps/kwallet", ".local/share/python_keyring", ".config/keepassxc", ".cache/keepassxc",
        ".config/op", ".op", ".config/1Password", ".config/Bitwarden CLI", ".config/Bitwarden",
        ".local/share/rbw", ".cache/rbw", ".config/rbw", ".local/share/lpass", ".lpass", ".config/lpass",
        ".local/share/keybase", ".config/keybase", ".cache/keybase", ".config/Proton Pass", ".config/Enpass",
        ".local/share/Enpass", ".secretmanagement",
    ]),
    credential("the login of Vault", &[".vault-token", ".vault"]),
    credential("logins of stores of secrets", &[
        ".doppler", ".infisical", ".config/infisical", ".akeyless", ".phase", ".config/teller",
        ".consul-token", ".nomad-token",
    ]),
    credential("keys of wallets", &[
        ".bitcoin", ".ethereum", ".electrum", ".config/solana", ".config/Exodus", ".config/Ledger Live",
        ".sui", ".foundry/keystores", ".near-credentials",
    ]),
    // Clouds.
    credential("the login of AWS", &[
        ".aws", ".awsvault", ".aws-sso", ".config/aws-sso", ".granted", ".saml2aws", ".okta", ".okta-aws",
        ".boto", ".s3cfg", ".passwd-s3fs", ".mc",
    ]),
    credential("the login of Azure", &[
        ".azure", ".azd", ".azurefunctions", ".local/share/.IdentityService", ".IdentityService",
        ".config/fab", ".microsoft/usersecrets",
    ]),
    credential("the login of Google Cloud", &[
        ".config/gcloud", ".gsutil", ".config/gspread", ".config/clasp", ".clasprc.json",
    ]),
    credential("logins of clouds", &[
        ".config/doctl", ".config/linode-cli", ".linode-cli", ".config/hcloud", ".oci", ".bluemix",
        ".config/scw", ".ovh.conf", ".config/openstack", ".aliyun", ".tccli", ".config/vultr-cli.yaml",
        ".config/civo", ".civo.json", ".config/exoscale", ".config/upctl.yaml", ".config/cloudera",
        ".cache/cloudera", ".cdp", ".config/ibmcloud",
    ]),
    credential("logins of hosting services", &[
        ".local/share/com.vercel.cli", ".config/com.vercel.cli", ".vercel", ".now", ".config/netlify",
        ".netlify", ".fly", ".railway", ".render", ".config/.wrangler", ".wrangler", ".cloudflared",
        ".config/cloudflared", ".config/heroku", ".local/share/heroku/config.json", ".supabase",
        ".config/supabase", ".config/configstore", ".config/firebase", ".deployctl",
        ".config/deno/credentials", ".config/neonctl", ".config/turso", ".config/planetscale",
        ".config/convex", ".convex", ".config/upstash", ".expo", ".config/expo", ".config/eas-cli", ".cf",
        ".config/pscale",
    ]),
    credential("logins of tunnels and networks", &[
        ".config/ngrok", ".ngrok2", ".zrok", ".tsh", ".config/teleport", ".local/share/tailscale",
        ".config/tailscale", ".openvpn", ".config/protonvpn", ".cache/Proton", ".cisco", ".config/wireguard",
        ".boundary",
    ]),
    // Containers, clusters, infrastructure.
    credential("logins of container registries", &[
        ".docker", ".config/containers/auth.json", ".dockercfg", ".config/crane", ".config/oras",
    ]),
    credential("logins of Kubernetes clusters", &[
        ".kube", ".minikube", ".config/k3d", ".config/argocd", ".argocd", ".rancher", ".config/helm/registry",
        ".local/share/helm/registry.json", ".config/openlens", ".config/Lens", ".talos", ".talosconfig",
    ]),
    credential("logins of infrastructure tools", &[
        ".terraform.d", ".terraformrc", ".tofurc", ".config/opentofu", ".pulumi/credentials.json",
        ".pulumi/accounts", ".ansible/galaxy_token", ".ansible/vault", ".vault_pass", ".chef", ".puppetlabs",
        ".vagrant.d/data", ".config/packer",
    ]),
    private("secrets and disks of containers and machines", &[
        ".local/share/containers", ".local/share/docker", ".local/share/libvirt", ".local/share/gnome-boxes",
        ".local/share/lxc", ".lima", ".colima", ".config/libvirt", ".cache/libvirt",
    ]),
    // Forges, builds, packages.
    credential("logins of git", &[
        ".git-credentials", ".config/git/credentials", ".git-credential-cache", ".cache/git/credential",
        ".gcm", ".config/git-credential-manager", ".subversion/auth", ".hgrc",
    ]),
    credential("the login of GitHub", &[GITHUB, ".config/hub"]),
    credential("the login of GitLab", &[GITLAB, ".gitlab-runner", ".config/gitlab-runner"]),
    credential("logins of forges", &[
        ".config/tea", ".config/berg-cli", ".local/share/forgejo-cli", ".config/forgejo-cli", ".config/bb",
        ".config/gitea",
    ]),
    credential("logins of build services", &[
        ".circleci", ".config/buildkite", ".buildkite", ".travis", ".jfrog", ".sentryclirc", ".config/sentry",
        ".config/snyk", ".snyk.d", ".sonar", ".sonarlint", ".config/codecov", ".config/act", ".secrets",
    ]),
    credential("logins by host", &[".netrc", ".authinfo", ".authinfo.gpg", ".curlrc", ".wgetrc"]),
    credential("the login of npm", &[
        ".npmrc", ".yarnrc.yml", ".config/pnpm/rc", ".config/pnpm/auth.ini", ".bunfig.toml", ".config/jsr",
    ]),
    credential("the login of a Python index", &[
        ".pypirc", ".config/pypoetry/auth.toml", ".local/share/uv/credentials", ".config/pip/pip.conf",
        ".pip/pip.conf", ".config/pdm", ".rye/credentials", ".rattler", ".continuum", ".config/binstar",
        ".local/share/binstar", ".conda/tokens", ".config/hatch", ".anaconda/keyring",
    ]),
    credential("the login of a Rust registry", &[
        ".cargo/credentials.toml", ".cargo/credentials", ".local/share/cargo/credentials.toml",
        ".local/share/cargo/credentials",
    ]),
    credential("logins of package registries", &[
        ".gem/credentials", ".local/share/gem/credentials", ".bundle/config", ".composer/auth.json",
        ".config/composer/auth.json", ".nuget/NuGet/NuGet.Config", ".config/NuGet/NuGet.Config",
        ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".sbt/.credentials",
        ".sbt/credentials", ".ivy2/.credentials", ".config/coursier/credentials.properties", ".hex",
        ".config/dart", ".pub-cache/credentials.json", ".luarocks/upload_config.lua", ".pause",
        ".config/opam/publish", ".julia/servers", ".config/conan", ".conan2/credentials.json",
    ]),
    credential("keys that sign for phones", &[
        ".android/adbkey", ".android/debug.keystore", ".fastlane", ".appstoreconnect",
    ]),
    // Databases and data.
    credential("passwords of databases", &[
        ".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".mongodb", ".config/mongodb",
        ".config/atlascli", ".config/mongocli", ".cassandra/credentials", ".influxdbv2", ".dbt", ".snowflake",
        ".snowsql", ".config/snowflake", ".cache/snowflake", ".databrickscfg", ".databricks",
        ".config/databricks", ".local/share/DBeaverData", ".local/share/azuredatastudio",
        ".config/azuredatastudio", ".pgadmin", ".config/pgadmin", ".local/share/pgadmin",
        ".config/beekeeper-studio", ".redisclirc", ".config/clickhouse", ".clickhouse-client", ".config/usql",
        ".odbc.ini", ".duckdb/stored_secrets", ".local/share/db_ui",
    ]),
    credential("logins of storage", &[
        ".config/rclone", ".rclone.conf", ".cache/rclone/vfs", ".config/restic", ".config/borg",
        ".cache/borg", ".config/duplicity", ".dropbox", ".config/onedrive", ".config/Nextcloud",
        ".local/share/Nextcloud", ".config/syncthing", ".local/state/syncthing", ".local/share/syncthing",
        ".local/share/data/Mega Limited", ".config/filezilla", ".config/Insync", ".config/wandb",
        ".config/dvc",
    ]),
    credential("logins of services", &[
        ".config/stripe", ".config/twilio-cli", ".twilio-cli", ".config/slack-cli", ".slack/credentials.json",
        ".config/Insomnia", ".config/Postman", ".config/bruno", ".config/jira", ".config/.jira",
        ".config/acli", ".config/exercism", ".config/todoist", ".config/linear", ".config/datadog",
        ".config/newrelic", ".newrelic", ".config/grafana", ".config/pagerduty", ".config/shopify",
        ".local/share/shopify-cli-kit-nodejs", ".config/shopify-cli-kit-nodejs", ".config/ghost",
        ".config/contentful", ".contentfulrc.json", ".config/atlassian", ".config/plaid-cli", ".paypal",
        ".config/kagi", ".config/auth0", ".local/share/charm",
    ]),
    credential("logins of models", &[
        ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token", ".kaggle",
        ".config/kaggle", ".openai", ".config/openai", ".anthropic", ".config/anthropic",
        ".config/io.datasette.llm", ".config/shell_gpt", ".config/fabric", ".config/aichat", ".config/mods",
        ".config/replicate", ".modal.toml", ".config/ollama", ".ollama/id_ed25519", ".runpod",
        ".config/together",
    ]),
    credential("logins of remote desktops and machines", &[
        ".local/share/remmina", ".config/remmina", ".local/share/gnome-remote-desktop", ".vnc",
        ".config/freerdp", ".putty", ".config/putty", ".config/Termius", ".local/share/code-server",
        ".config/code-server", ".local/share/openvscode-server", ".local/share/krdpserver",
    ]),
    credential("tokens of Jupyter", &[
        ".jupyter", ".local/share/jupyter/runtime", ".local/share/jupyter/notebook_secret",
        ".ipython/profile_default/security",
    ]),
    credential("logins of games", &[
        ".local/share/Steam/config", ".local/share/lutris", ".cache/lutris", ".config/heroic",
        ".local/share/PrismLauncher", ".local/share/PolyMC", ".local/share/multimc",
        ".minecraft/launcher_accounts.json",
    ]),
    // Other agents and editors: logins, and what was said in other projects.
    private(AGENTS, &[
        ".claude", ".claude.json", ".codex", ".gemini", ".aider", ".cursor", ".codeium", ".windsurf",
        ".continue", ".tabnine", ".config/TabNine", ".local/share/TabNine", ".config/github-copilot",
        ".copilot", ".cache/github-copilot", ".config/Cody-nodejs", ".local/share/Cody-nodejs",
        ".config/sourcegraph", ".sourcegraph", ".local/share/amazon-q", ".local/share/kiro-cli",
        ".local/share/codewhisperer", ".kiro", ".local/share/amp", ".config/amp", ".cache/amp",
        ".local/share/crush", ".local/share/goose", ".config/goose", ".local/share/kilo",
        ".local/share/opencode", ".local/share/mods", ".cache/claude-cli-nodejs", ".openhands", ".qwen",
        ".factory", ".augment", ".roo", ".cline", ".config/Claude", ".local/share/warp-terminal",
        ".local/state/warp-terminal", ".local/share/zed/db", ".local/share/zed/threads",
        ".local/share/zed/conversations", ".local/share/zed/external_agents", ".letta", ".pi",
    ]),
    private("logins and histories of editors", &[
        ".config/Code/User/globalStorage", ".config/Code/User/workspaceStorage", ".config/Code/User/History",
        ".config/Code/Local Storage", ".config/VSCodium/User", ".config/Cursor", ".config/Windsurf",
        ".vscode-server/data", ".config/JetBrains", ".local/share/JetBrains/Toolbox/.securestorage",
        ".cache/JetBrains", ".local/share/nvim/shada", ".local/share/nvim/swap", ".local/share/nvim/undo",
        ".local/share/nvim/backup", ".local/state/nvim", ".cache/vim/swap", ".cache/vim/undo",
        ".cache/vim/backup", ".viminfo",
    ]),
    // What was typed and copied.
    private("what was typed", &[
        ".bash_history", ".zsh_history", ".histfile", ".python_history", ".psql_history", ".mysql_history",
        ".sqlite_history", ".node_repl_history", ".irb_history", ".rediscli_history", ".dbshell", ".lesshst",
        ".ipython/profile_default/history.sqlite", ".local/share/fish/fish_history", ".local/share/atuin",
        ".local/share/mcfly", ".local/share/zsh", ".local/share/bash", ".local/share/xonsh",
        ".local/share/history", ".local/share/mc/history", ".local/share/zoxide", ".local/share/autojump",
        ".local/share/powershell/PSReadLine", ".local/share/python_history", ".local/share/psql_history",
        ".local/share/node_repl_history", ".config/nushell/history.txt", ".config/nushell/history.sqlite3",
        ".cache/zsh/history", ".cache/bash_history", ".cache/zsh_history", ".cache/wofi",
        ".cache/rofi-entry-history.txt",
    ]),
    private("what was copied", &[
        ".local/share/klipper", ".local/share/copyq", ".local/share/clipman.json", ".cache/cliphist",
        ".cache/clipboard-indicator@tudmotu.com", ".cache/greenclip.history", ".cache/clipman",
        ".local/share/gpaste", ".local/share/clipcat", ".cache/clipcat",
    ]),
    // What was opened, and what stood in it.
    private("what was opened", &[
        ".local/share/recently-used.xbel", ".local/share/RecentDocuments", ".local/share/user-places.xbel",
        ".local/share/zeitgeist", ".local/share/kactivitymanagerd", ".local/share/gvfs-metadata",
        ".local/share/baloo", ".local/share/Trash", ".local/share/okular", ".local/share/direnv",
        ".cache/tracker", ".cache/tracker3", ".cache/thumbnails",
    ]),
    private("dotfiles, with what is secret in them", &[".local/share/chezmoi", ".local/share/yadm"]),
    // Mail, messages, browsers.
    credential("mail and its logins", &[
        ".thunderbird", ".cache/thunderbird", ".local/share/evolution", ".config/evolution",
        ".cache/evolution", ".local/share/geary", ".config/geary", ".cache/geary", ".local/share/akonadi",
        ".local/share/kmail2", ".local/share/local-mail", ".local/share/mail", ".local/share/notmuch",
        ".cache/mutt", ".cache/neomutt", ".config/neomutt", ".mutt", ".muttrc", ".msmtprc", ".config/msmtp",
        ".mbsyncrc", ".config/isyncrc", ".offlineimaprc", ".fetchmailrc", ".getmail", ".config/aerc",
        ".config/goa-1.0", ".cache/protonmail", ".local/share/protonmail", ".config/protonmail",
    ]),
    credential("messages and their logins", &[
        ".local/share/TelegramDesktop", ".cache/TelegramDesktop", ".local/share/signal-cli", ".config/Signal",
        ".config/Slack", ".cache/Slack", ".config/discord", ".cache/discord", ".config/Element",
        ".config/teams", ".config/Microsoft", ".zoom", ".cache/zoom", ".purple", ".irssi", ".weechat",
        ".config/weechat", ".local/share/weechat", ".config/hexchat", ".local/share/dino",
        ".local/share/gajim", ".local/share/fractal", ".local/share/nheko", ".local/share/iamb",
        ".config/WhatsApp",
    ]),
    credential("logins and cookies of Firefox", &[
        ".mozilla", ".config/mozilla", ".cache/mozilla", ".librewolf", ".cache/librewolf", ".waterfox",
        ".cache/waterfox", ".zen", ".cache/zen", ".local/share/torbrowser",
    ]),
    credential("logins and cookies of Chrome", &[
        ".config/google-chrome", ".cache/google-chrome", ".config/google-chrome-beta",
        ".config/google-chrome-unstable",
    ]),
    credential("logins and cookies of Chromium", &[".config/chromium", ".cache/chromium"]),
    credential("logins and cookies of browsers", &[
        ".config/BraveSoftware", ".cache/BraveSoftware", ".config/microsoft-edge", ".cache/microsoft-edge",
        ".config/vivaldi", ".cache/vivaldi", ".local/share/vivaldi", ".config/opera", ".cache/opera",
        ".local/share/epiphany", ".cache/epiphany", ".local/share/qutebrowser", ".cache/qutebrowser",
        ".local/share/webkitgtk", ".cache/webkitgtk", ".cache/falkon",
        ".cache/chrome-devtools-mcp", ".cache/ms-playwright/mcp-chrome-profile",
        ".cache/ms-playwright/mcp-chromium-profile", ".cache/ms-playwright/mcp-firefox-profile",
        ".cache/ms-playwright/mcp-webkit-profile", ".cache/ms-playwright/mcp-msedge-profile",
    ]),
    credential("logins of music players", &[
        ".cache/spotifyd", ".cache/spotify-player", ".cache/ncspot",
    ]),
    private("data of applications from Flatpak and Snap", &[".var/app", "snap"]),
    credential("Stockade's own configuration", OWN_DIRECTORIES),
];

/// Every known place of what only the user should have, below a home directory, and what it is.
pub fn known_places() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN
        .iter()
        .flat_map(|Known(_, what, places)| places.iter().map(move |place| (*place, *what)))
}

/// The known places in the directories of the home that are shown whole, from the home down.
pub(crate) fn in_bulk() -> impl Iterator<Item = &'static str> {
    known_places()
        .map(|(place, _)| place)
        .filter(|place| is_in_bulk(place))
}

fn is_in_bulk(place: &str) -> bool {
    let mut directories = home::SCRATCH.iter();
    directories.any(|(directory, _)| below(place, directory).is_some())
}

/// The known places in one of these directories, from it down.
pub(crate) fn below_bulk(directory: &str) -> impl Iterator<Item = &'static str> {
    known_places().filter_map(move |(place, _)| below(place, directory))
}

/// What follows a directory's name, by the text alone.
fn below<'a>(place: &'a str, directory: &str) -> Option<&'a str> {
    place.strip_prefix(directory)?.strip_prefix('/')
}

/// The known place of credentials that a path below the home is, or is in.
pub(crate) fn holding(below_home: &Path) -> Option<&'static str> {
    KNOWN
        .iter()
        .filter(|Known(is_credential, ..)| *is_credential)
        .flat_map(|Known(.., places)| *places)
        .find(|place| below_home.starts_with(place))
        .copied()
}

/// Sockets and directories of sockets: who can connect can do what the service does.
const SOCKETS: &[(&str, &str)] = &[
    ("/run/docker.sock", "Docker, which is as good as root"),
    ("/run/podman", "Podman, which is as good as root"),
    ("/run/containerd", "containerd, which is as good as root"),
    ("/run/dbus", "the services of this machine"),
    ("/run/user", "the services and agents of users"),
    ("/tmp/.X11-unix", "the screen and the keyboard"),
];

/// The place of credentials that a path leads into although it does not name it.
pub(crate) fn behind(path: &Path, found: &Found, home: &Path) -> Option<&'static str> {
    if found.real == path {
        return None;
    }
    let is_behind = |place: &Path| found.real.starts_with(place) && !path.starts_with(place);
    let mut places = known_places().map(|(place, _)| place);
    places.find(|place| is_behind(&home.join(place)))
}

/// The same of a path that is to be read or written: also where the place is a link itself, where the
/// path leads to a directory that holds credentials, and of sockets. A session may have made the link.
pub(crate) fn behind_link(path: &Path, found: &Found, home: &Place) -> Option<&'static str> {
    // Its own path is another name for /run, on every machine.
    let named = match path.strip_prefix("/var/run") {
        Ok(below) => Path::new("/run").join(below),
        Err(_) => absolute(path),
    };
    if found.real == named {
        return None;
    }
    let meets = |path: &Path, place: &Path| path.starts_with(place) || place.starts_with(path);
    let is_socket = |place: &Path| meets(&found.real, place) && !meets(&named, place);
    let mut sockets = SOCKETS.iter().map(|(place, _)| *place);
    if let Some(socket) = sockets.find(|place| is_socket(Path::new(place))) {
        return Some(socket);
    }
    let is_behind = |place: &&str| {
        let is_named = [&home.named, &home.real]
            .iter()
            .any(|home| match is_in_bulk(place) {
                true => named.starts_with(home.join(place)),
                false => meets(&named, &home.join(place)),
            });
        if is_named {
            return false;
        }
        let usual = home.real.join(place);
        let real = fs::canonicalize(&usual).unwrap_or_else(|_| usual.clone());
        let is_in = found.real.starts_with(&usual) || found.real.starts_with(real);
        is_in || (!is_in_bulk(place) && usual.starts_with(&found.real))
    };
    known_places().map(|(place, _)| place).find(is_behind)
}

/// Why a file that a variable names as certificates is none to be shown: nobody asked for it by a
/// path, and whoever set the variable may not have been the user.
pub(crate) fn no_certificates(found: &Found, home: &Path) -> Option<&'static str> {
    let is_at = |place: &Path| found.real.starts_with(place) || found.at.starts_with(place);
    let own = OWN_DIRECTORIES.iter().any(|place| is_at(&home.join(place)));
    let secret = known_places().any(|(place, _)| is_at(&home.join(place)));
    if found.kind != Kind::File {
        Some("no file")
    } else if own {
        Some("Stockade's own")
    } else if secret || SOCKETS.iter().any(|(place, _)| is_at(Path::new(place))) {
        Some("where credentials are kept")
    } else if is_at(Path::new("/dev")) || is_at(Path::new("/proc")) {
        Some("no ordinary file")
    } else {
        // What cannot be read at all is for the kernel to refuse.
        let text = nofollow::read_beginning(&found.real).ok()?;
        let holds = |mark: &[u8]| text.windows(mark.len()).any(|part| part == mark);
        if text.len() as u64 >= nofollow::LONGEST {
            Some("too long for certificates, as far as Stockade reads")
        } else if holds(b"PRIVATE KEY-----") {
            Some("a private key")
        } else if !holds(b"CERTIFICATE-----") {
            Some("a file without a certificate")
        } else {
            None
        }
    }
}

/// A sentence for each path that the user gives with something in it that only the user
/// should have.
pub(crate) fn given(config: &Config, facts: &Facts) -> Vec<String> {
    let reads = config.read.iter().map(|request| (request, "read"));
    let writes = config
        .write
        .iter()
        .map(|request| (request, "read and write"));
    let mut given = Vec::new();
    for (request, verb) in reads.chain(writes) {
        let Some(what) = of(request, config, facts) else {
            continue;
        };
        let PathRequest { path, by, .. } = request;
        let sentence = format!("{path:?} is given ({by}): the command can {verb} {what}");
        if !given.contains(&sentence) {
            given.push(sentence);
        }
    }
    given
}

/// What is at a path that the user asks for, as far as it is a credential.
fn of(request: &PathRequest, config: &Config, facts: &Facts) -> Option<String> {
    let found = facts
        .found
        .get(&request.path)
        .filter(|_| request.required)?;
    let mut all: Vec<&str> = Vec::new();
    let mut add = |what: &'static str| {
        if !all.contains(&what) {
            all.push(what);
        }
    };
    let meets = |place: &Path| place.starts_with(&found.real) || found.real.starts_with(place);
    for (place, what) in SOCKETS {
        if meets(Path::new(place)) {
            add(what);
        }
    }
    for moved in &config.moved_state {
        if facts.found.get(&moved.at).is_some_and(|it| meets(&it.real)) {
            add(AGENTS);
        }
    }
    let Place { real: home, .. } = &facts.home;
    for (place, what) in known_places() {
        let path = home.join(place);
        // Where they are masked, only who asks for one of them has it.
        if found.real.starts_with(&path) || (!is_in_bulk(place) && meets(&path)) {
            add(what);
        }
    }
    match all.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        [some @ .., last] if some.len() < 3 => Some(format!("{} and {last}", some.join(", "))),
        [first, second, rest @ ..] => Some(format!(
            "{first}, {second} and {} more of that kind",
            rest.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::{facts, with};

    fn told(path: &str, by_user: bool) -> Vec<String> {
        let facts = with(facts(), &[(path, Kind::Directory)]);
        let request = if by_user {
            PathRequest::by_user(path)
        } else {
            PathRequest::by_profile(path)
        };
        let config = Config {
            read: vec![request.clone(), request],
            ..Config::default()
        };
        given(&config, &facts)
    }

    #[test]
    fn a_link_that_leads_to_secrets_is_known_by_where_it_leads() {
        let home = Path::new("/home/u");
        let found = |real: &str| Found {
            at: "/home/u/.claude".into(),
            real: real.into(),
            kind: Kind::Directory,
        };
        let behind = |path: &str, real: &str| behind(Path::new(path), &found(real), home);
        let mkcert = "/home/u/.local/share/mkcert";
        assert_eq!(
            behind("/home/u/.claude", mkcert),
            Some(".local/share/mkcert")
        );
        assert_eq!(behind("/home/u/.claude", "/home/u/.ssh/x"), Some(".ssh"));
        assert_eq!(behind("/home/u/.claude", "/home/u/dotfiles"), None);
        assert_eq!(behind(mkcert, mkcert), None);
    }

    #[test]
    fn a_link_to_what_a_path_does_not_name_is_known_and_a_plain_name_is_none() {
        let home = Place {
            named: "/home/u".into(),
            real: "/disk/u".into(),
        };
        let behind = |path: &str, real: &str| {
            let found = Found {
                at: path.into(),
                real: real.into(),
                kind: Kind::Directory,
            };
            behind_link(Path::new(path), &found, &home)
        };
        for (path, real, place) in [
            ("/home/u/led", "/disk/u/.ssh", Some(".ssh")),
            ("/home/u/led", "/disk/u/.ssh/keys", Some(".ssh")),
            ("/home/u/led/keys", "/disk/u/.ssh/keys", Some(".ssh")),
            ("/home/u/led", "/run/docker.sock", Some("/run/docker.sock")),
            ("/home/u/led", "/run", Some("/run/docker.sock")),
            ("/home/u/.claude/led", "/disk/u/.ssh", Some(".ssh")),
            // By the one name of the home or the other.
            ("/home/u/.ssh", "/disk/u/.ssh", None),
            ("/disk/u/.ssh", "/disk/u/.ssh", None),
            ("/home/u/.ssh", "/elsewhere", None),
            ("/home/u/.config", "/disk/u/.config", None),
            ("/var/run/docker.sock", "/run/docker.sock", None),
            ("/var/run", "/run", None),
            ("/home/u/led", "/disk/u/data", None),
            ("/home/u/data", "/disk/u/data", None),
            // What is secret in it is hidden there.
            ("/home/u/led", "/disk/u/.local/share", None),
        ] {
            assert_eq!(behind(path, real), place, "{path} -> {real}");
        }
        assert!(behind("/home/u/led", "/disk/u/.config").is_some());
    }

    #[test]
    fn what_is_given_of_credentials_is_said_once() {
        assert_eq!(
            told("/home/ada/.ssh", true),
            ["\"/home/ada/.ssh\" is given (the user): the command can read keys of SSH"]
        );
        for (path, what) in [
            ("/home/ada/.ssh/id_ed25519", "keys of SSH"),
            ("/home/ada/.vault-token", "the login of Vault"),
            ("/home/ada/.config", " more of that kind"),
            ("/run/docker.sock", "Docker"),
            ("/home/ada/.local/share/atuin", "what was typed"),
        ] {
            let told = told(path, true);
            assert!(
                told.len() == 1 && told[0].contains(what),
                "{path}: {told:?}"
            );
        }
    }

    #[test]
    fn every_entry_of_the_tables_is_said_whether_it_is_read_or_written() {
        let in_home = known_places().map(|(place, what)| (format!("/home/ada/{place}"), what));
        let sockets = SOCKETS
            .iter()
            .map(|(place, what)| ((*place).to_owned(), *what));
        for (place, what) in in_home.chain(sockets) {
            for path in [place.clone(), format!("{place}/below")] {
                let facts = with(facts(), &[(&path, Kind::Directory)]);
                let request = vec![PathRequest::by_user(&path)];
                let read = Config {
                    read: request.clone(),
                    ..Config::default()
                };
                let write = Config {
                    write: request,
                    ..Config::default()
                };
                for (config, verb) in [(read, "read"), (write, "read and write")] {
                    let said = given(&config, &facts);
                    let expected =
                        format!("{path:?} is given (the user): the command can {verb} {what}");
                    assert_eq!(said, [expected]);
                }
            }
        }
    }

    #[test]
    fn other_paths_and_what_profiles_ask_for_need_no_word() {
        assert_eq!(told("/home/ada/data", true), [""; 0]);
        assert_eq!(told("/home/ada/.sshd", true), [""; 0]);
        assert_eq!(told("/home/ada/.ssh", false), [""; 0]);
    }
}
