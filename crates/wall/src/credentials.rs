//! Where people keep what only they should have, and what it is. A workspace is never there;
//! a path that is asked for may be, since the user decides, but not without a word.

use std::path::Path;

use crate::{
    config::{Config, PathRequest},
    facts::{Facts, Found, Place},
    home,
};

/// What lies in some places of a home directory.
struct Known {
    what: &'static str,
    /// A workspace is never there. What is only private may be what somebody works on.
    is_credential: bool,
    places: &'static [&'static str],
}

const fn c(what: &'static str, places: &'static [&'static str]) -> Known {
    let is_credential = true;
    Known {
        what,
        is_credential,
        places,
    }
}

const fn p(what: &'static str, places: &'static [&'static str]) -> Known {
    let is_credential = false;
    Known {
        what,
        is_credential,
        places,
    }
}

/// The one table of what only the user should have, by what it is. Whatever is about such places
/// comes from here: what is masked where `~/.cache` and `~/.local/share` are shown, what is said
/// when one of them is given, where a workspace is refused, and what `stockade verify` looks for.
#[rustfmt::skip]
const KNOWN: &[Known] = &[
    // Keys and passwords.
    c("keys of SSH", &[".ssh"]),
    c("keys of GnuPG", &[".gnupg", ".local/share/gnupg"]),
    c("keys of age and SOPS", &[".config/sops", ".config/age", ".age", ".local/share/age"]),
    c("keys that sign software", &[".sigstore", ".minisign"]),
    c("certificates and their keys", &[".pki", ".local/share/pki", ".step", ".local/share/step", ".acme.sh", ".lego", ".local/share/networkmanagement", ".cert", ".config/kdeconnect"]),
    c("keys of authorities that this machine trusts", &[".local/share/mkcert", ".local/share/caddy", ".aspnet", ".dotnet/corefx/cryptography"]),
    c("passwords", &[
        ".password-store", ".local/share/password-store", ".local/share/gopass", ".config/gopass", ".cache/gopass",
        ".local/share/keyrings", ".gnome2/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet",
        ".local/share/python_keyring", ".config/keepassxc", ".cache/keepassxc", ".local/share/KeePass",
        ".config/op", ".op", ".config/1Password", ".local/share/1password", ".cache/1password", ".cache/op",
        ".config/Bitwarden CLI", ".config/Bitwarden", ".local/share/rbw", ".cache/rbw", ".config/rbw",
        ".local/share/lpass", ".lpass", ".config/lpass", ".local/share/keybase", ".config/keybase", ".cache/keybase",
        ".config/Proton Pass", ".config/Enpass", ".local/share/Enpass", ".secretmanagement", ".local/share/secrets",
    ]),
    c("the login of Vault", &[".vault-token", ".vault"]),
    c("logins of stores of secrets", &[".doppler", ".infisical", ".config/infisical", ".akeyless", ".phase", ".config/teller", ".consul-token", ".nomad-token"]),
    c("keys of wallets", &[".bitcoin", ".ethereum", ".electrum", ".local/share/electrum", ".config/solana", ".config/Exodus", ".config/Ledger Live", ".sui", ".foundry/keystores", ".near-credentials", ".local/share/monero-project"]),
    // Clouds.
    c("the login of AWS", &[".aws", ".awsvault", ".aws-sso", ".config/aws-sso", ".granted", ".saml2aws", ".cache/saml2aws", ".okta", ".okta-aws", ".boto", ".s3cfg", ".passwd-s3fs", ".mc"]),
    c("the login of Azure", &[".azure", ".azd", ".azurefunctions", ".local/share/.IdentityService", ".IdentityService", ".config/fab", ".microsoft/usersecrets", ".cache/azure", ".cache/msal"]),
    c("the login of Google Cloud", &[".config/gcloud", ".gsutil", ".cache/gcloud", ".config/gspread", ".config/clasp", ".clasprc.json"]),
    c("logins of clouds", &[
        ".config/doctl", ".config/linode-cli", ".linode-cli", ".config/hcloud", ".oci", ".bluemix", ".config/scw",
        ".ovh.conf", ".config/openstack", ".aliyun", ".tccli", ".config/vultr-cli.yaml", ".config/civo", ".civo.json",
        ".config/exoscale", ".config/upctl.yaml", ".config/cloudera", ".cache/cloudera", ".cdp", ".config/ibmcloud",
    ]),
    c("logins of hosting services", &[
        ".local/share/com.vercel.cli", ".config/com.vercel.cli", ".vercel", ".now", ".config/netlify", ".netlify",
        ".fly", ".railway", ".render", ".config/.wrangler", ".wrangler", ".local/share/.wrangler", ".cloudflared",
        ".config/cloudflared", ".config/heroku", ".local/share/heroku/config.json", ".supabase", ".config/supabase",
        ".local/share/supabase", ".config/configstore", ".config/firebase", ".cache/firebase/tokens", ".deployctl",
        ".config/deno/credentials", ".config/neonctl", ".config/turso", ".config/planetscale", ".config/convex",
        ".convex", ".config/upstash", ".expo", ".config/expo", ".config/eas-cli", ".cf", ".config/pscale",
    ]),
    c("logins of tunnels and networks", &[".config/ngrok", ".ngrok2", ".zrok", ".tsh", ".config/teleport", ".local/share/tailscale", ".config/tailscale", ".cache/tailscale", ".openvpn", ".config/protonvpn", ".cache/Proton", ".cisco", ".config/wireguard", ".boundary"]),
    // Containers, clusters, infrastructure.
    c("logins of container registries", &[".docker", ".config/containers/auth.json", ".dockercfg", ".config/crane", ".config/oras"]),
    c("logins of Kubernetes clusters", &[".kube", ".minikube", ".config/k3d", ".config/argocd", ".argocd", ".rancher", ".config/helm/registry", ".local/share/helm/registry.json", ".cache/kubelogin", ".config/openlens", ".config/Lens", ".talos", ".talosconfig"]),
    c("logins of infrastructure tools", &[".terraform.d", ".terraformrc", ".tofurc", ".config/opentofu", ".pulumi/credentials.json", ".pulumi/accounts", ".ansible/galaxy_token", ".ansible/vault", ".vault_pass", ".chef", ".puppetlabs", ".vagrant.d/data", ".config/packer"]),
    p("secrets and disks of containers and machines", &[
        ".local/share/containers", ".local/share/docker", ".local/share/libvirt", ".local/share/gnome-boxes",
        ".local/share/lxc", ".local/share/multipass", ".lima", ".colima", ".config/libvirt", ".cache/libvirt",
    ]),
    // Forges, builds, packages.
    c("logins of git", &[".git-credentials", ".config/git/credentials", ".git-credential-cache", ".cache/git/credential", ".gcm", ".local/share/git-credential-manager", ".config/git-credential-manager", ".local/share/git-credential-oauth", ".subversion/auth", ".hgrc"]),
    c("the login of GitHub", &[".config/gh", ".config/hub"]),
    c("the login of GitLab", &[".config/glab-cli", ".gitlab-runner", ".config/gitlab-runner"]),
    c("logins of forges", &[".config/tea", ".config/berg-cli", ".local/share/forgejo-cli", ".config/forgejo-cli", ".config/bb", ".config/gitea"]),
    c("logins of build services", &[".circleci", ".config/buildkite", ".buildkite", ".travis", ".jfrog", ".sentryclirc", ".config/sentry", ".config/snyk", ".snyk.d", ".sonar", ".sonarlint", ".config/codecov", ".config/act", ".secrets", ".local/share/jenkins"]),
    c("logins by host", &[".netrc", ".authinfo", ".authinfo.gpg", ".curlrc", ".wgetrc"]),
    c("the login of npm", &[".npmrc", ".yarnrc.yml", ".config/pnpm/rc", ".config/pnpm/auth.ini", ".bunfig.toml", ".local/share/pnpm/auth.ini", ".config/jsr"]),
    c("the login of a Python index", &[".pypirc", ".config/pypoetry/auth.toml", ".local/share/uv/credentials", ".config/pip/pip.conf", ".pip/pip.conf", ".config/pdm", ".rye/credentials", ".rattler", ".continuum", ".config/binstar", ".local/share/binstar", ".conda/tokens", ".config/hatch", ".local/share/anaconda", ".anaconda/keyring"]),
    c("the login of a Rust registry", &[".cargo/credentials.toml", ".cargo/credentials", ".local/share/cargo/credentials.toml", ".local/share/cargo/credentials"]),
    c("logins of package registries", &[
        ".gem/credentials", ".local/share/gem/credentials", ".bundle/config", ".composer/auth.json",
        ".config/composer/auth.json", ".local/share/composer/auth.json", ".nuget/NuGet/NuGet.Config",
        ".config/NuGet/NuGet.Config", ".m2/settings.xml", ".m2/settings-security.xml",
        ".gradle/gradle.properties", ".sbt/.credentials", ".sbt/credentials", ".ivy2/.credentials",
        ".config/coursier/credentials.properties", ".hex", ".config/dart", ".pub-cache/credentials.json",
        ".luarocks/upload_config.lua", ".pause", ".config/opam/publish", ".julia/servers", ".config/conan", ".conan2/credentials.json",
    ]),
    c("keys that sign for phones", &[".android/adbkey", ".android/debug.keystore", ".fastlane", ".appstoreconnect"]),
    // Databases and data.
    c("passwords of databases", &[
        ".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".mongodb", ".config/mongodb", ".config/atlascli",
        ".config/mongocli", ".cassandra/credentials", ".influxdbv2", ".dbt", ".snowflake", ".snowsql",
        ".config/snowflake", ".cache/snowflake", ".databrickscfg", ".databricks", ".config/databricks",
        ".local/share/DBeaverData", ".local/share/azuredatastudio", ".config/azuredatastudio", ".pgadmin",
        ".config/pgadmin", ".local/share/pgadmin", ".config/beekeeper-studio", ".redisclirc", ".config/clickhouse",
        ".clickhouse-client", ".config/usql", ".local/share/usql", ".odbc.ini", ".duckdb/stored_secrets",
    ]),
    c("logins of storage", &[".config/rclone", ".rclone.conf", ".cache/rclone/vfs", ".config/restic", ".config/borg", ".cache/borg", ".config/duplicity", ".dropbox", ".config/onedrive", ".config/Nextcloud", ".local/share/Nextcloud", ".config/syncthing", ".local/state/syncthing", ".local/share/syncthing", ".local/share/data/Mega Limited", ".config/filezilla", ".config/Insync", ".config/wandb", ".config/dvc"]),
    c("logins of services", &[
        ".config/stripe", ".config/twilio-cli", ".twilio-cli", ".config/slack-cli", ".slack/credentials.json",
        ".config/Insomnia", ".config/Postman", ".config/bruno", ".config/jira", ".config/.jira", ".config/acli",
        ".config/exercism", ".config/todoist", ".config/linear", ".config/datadog", ".config/newrelic", ".newrelic",
        ".config/grafana", ".config/pagerduty", ".config/shopify", ".local/share/shopify-cli-kit-nodejs",
        ".config/shopify-cli-kit-nodejs", ".config/ghost", ".config/contentful", ".contentfulrc.json",
        ".config/atlassian", ".config/plaid-cli", ".paypal", ".config/kagi", ".config/auth0", ".local/share/charm",
    ]),
    c("logins of models", &[
        ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token", ".kaggle",
        ".config/kaggle", ".openai", ".config/openai", ".anthropic", ".config/anthropic", ".config/io.datasette.llm",
        ".config/shell_gpt", ".config/fabric", ".config/aichat", ".config/mods", ".config/replicate", ".modal.toml",
        ".config/ollama", ".ollama/id_ed25519", ".runpod", ".config/together", ".cache/vertexai", ".cache/openai",
    ]),
    c("logins of remote desktops and machines", &[".local/share/remmina", ".config/remmina", ".local/share/gnome-remote-desktop", ".vnc", ".config/freerdp", ".putty", ".config/putty", ".config/Termius", ".local/share/code-server", ".config/code-server", ".local/share/openvscode-server", ".local/share/krdpserver"]),
    c("tokens of Jupyter", &[".jupyter", ".local/share/jupyter/runtime", ".local/share/jupyter/notebook_secret", ".ipython/profile_default/security"]),
    c("logins of games", &[".local/share/Steam/config", ".local/share/lutris", ".cache/lutris", ".config/heroic", ".local/share/PrismLauncher", ".local/share/PolyMC", ".local/share/multimc", ".minecraft/launcher_accounts.json"]),
    // Other agents and editors: logins, and what was said in other projects.
    p("logins and conversations of agents", &[
        ".claude", ".claude.json", ".codex", ".gemini", ".aider", ".cursor", ".codeium", ".windsurf", ".continue", ".tabnine",
        ".config/TabNine", ".local/share/TabNine", ".config/github-copilot", ".copilot", ".cache/github-copilot",
        ".local/share/github-copilot", ".config/cody-nodejs", ".local/share/cody-nodejs", ".config/sourcegraph", ".sourcegraph",
        ".local/share/amazon-q", ".local/share/kiro-cli", ".local/share/codewhisperer", ".kiro", ".local/share/amp", ".config/amp", ".cache/amp",
        ".local/share/crush", ".local/share/goose", ".config/goose", ".cache/goose", ".local/share/kilo", ".local/share/opencode",
        ".local/share/mods", ".local/share/aichat", ".local/share/io.datasette.llm", ".cache/claude-cli-nodejs", ".cache/codex", ".local/share/plandex",
        ".local/share/openhands", ".openhands", ".qwen", ".factory", ".augment", ".roo", ".cline", ".config/Claude", ".local/share/warp-terminal",
        ".local/state/warp-terminal", ".local/share/zed/db", ".local/share/zed/threads", ".local/share/zed/conversations", ".local/share/zed/external_agents",
        ".local/share/droid", ".local/share/letta", ".letta", ".pi",
    ]),
    p("logins and histories of editors", &[
        ".config/Code/User/globalStorage", ".config/Code/User/workspaceStorage", ".config/Code/User/History", ".config/Code/Local Storage",
        ".config/VSCodium/User", ".config/Cursor", ".config/Windsurf", ".vscode-server/data", ".config/JetBrains",
        ".local/share/JetBrains/Toolbox/.securestorage", ".cache/JetBrains", ".local/share/nvim/shada", ".local/share/nvim/swap", ".local/share/nvim/undo",
        ".local/share/nvim/backup", ".local/state/nvim", ".cache/vim/swap", ".cache/vim/undo", ".cache/vim/backup", ".viminfo",
        ".cache/emacs/auto-save", ".cache/emacs/backup",
    ]),
    // What was typed and copied.
    p("what was typed", &[
        ".bash_history", ".zsh_history", ".histfile", ".python_history", ".psql_history", ".mysql_history", ".sqlite_history",
        ".node_repl_history", ".irb_history", ".rediscli_history", ".dbshell", ".lesshst", ".ipython/profile_default/history.sqlite",
        ".local/share/fish/fish_history", ".local/share/atuin", ".local/share/mcfly", ".local/share/zsh", ".local/share/bash",
        ".local/share/xonsh", ".local/share/history", ".local/share/mc/history", ".local/share/zoxide", ".local/share/autojump",
        ".local/share/powershell/PSReadLine", ".local/share/python_history", ".local/share/psql_history", ".local/share/node_repl_history",
        ".config/nushell/history.txt", ".config/nushell/history.sqlite3", ".cache/zsh/history", ".cache/bash_history",
        ".cache/zsh_history", ".cache/wofi", ".cache/rofi-entry-history.txt",
    ]),
    p("what was copied", &[".local/share/klipper", ".local/share/copyq", ".local/share/clipman.json", ".cache/cliphist", ".cache/clipboard-indicator@tudmotu.com", ".cache/greenclip.history", ".cache/clipman", ".local/share/gpaste", ".local/share/clipcat", ".cache/clipcat"]),
    // What was opened, and what stood in it.
    p("what was opened", &[
        ".local/share/recently-used.xbel", ".local/share/RecentDocuments", ".local/share/user-places.xbel", ".local/share/zeitgeist", ".local/share/kactivitymanagerd",
        ".local/share/gvfs-metadata", ".local/share/baloo", ".local/share/Trash", ".local/share/okular", ".local/share/direnv", ".cache/tracker",
        ".cache/tracker3", ".cache/thumbnails",
    ]),
    p("dotfiles, with what is secret in them", &[".local/share/chezmoi", ".local/share/yadm"]),
    // Mail, messages, browsers.
    c("mail and its logins", &[
        ".thunderbird", ".cache/thunderbird", ".local/share/evolution", ".config/evolution", ".cache/evolution", ".local/share/geary", ".config/geary", ".cache/geary",
        ".local/share/akonadi", ".local/share/kmail2", ".local/share/local-mail", ".local/share/mail", ".local/share/notmuch", ".cache/mutt", ".cache/neomutt",
        ".config/neomutt", ".mutt", ".muttrc", ".msmtprc", ".config/msmtp", ".mbsyncrc", ".config/isyncrc", ".offlineimaprc", ".fetchmailrc", ".getmail", ".config/aerc",
        ".local/share/himalaya", ".config/goa-1.0", ".cache/protonmail", ".local/share/protonmail", ".config/protonmail",
    ]),
    c("messages and their logins", &[
        ".local/share/TelegramDesktop", ".cache/TelegramDesktop", ".local/share/signal-cli", ".config/Signal", ".config/Slack", ".cache/Slack", ".config/discord", ".cache/discord", ".config/Element",
        ".config/teams", ".config/Microsoft", ".zoom", ".cache/zoom", ".purple", ".irssi", ".weechat", ".config/weechat", ".local/share/weechat", ".config/hexchat",
        ".local/share/dino", ".local/share/gajim", ".local/share/fractal", ".local/share/nheko", ".local/share/iamb", ".local/share/whatsapp", ".config/WhatsApp",
    ]),
    c("logins and cookies of Firefox", &[".mozilla", ".config/mozilla", ".cache/mozilla", ".librewolf", ".cache/librewolf", ".waterfox", ".cache/waterfox", ".zen", ".cache/zen", ".local/share/torbrowser", ".local/share/zen"]),
    c("logins and cookies of Chrome", &[".config/google-chrome", ".cache/google-chrome", ".config/google-chrome-beta", ".config/google-chrome-unstable"]),
    c("logins and cookies of Chromium", &[".config/chromium", ".cache/chromium"]),
    c("logins and cookies of browsers", &[
        ".config/BraveSoftware", ".cache/BraveSoftware", ".config/microsoft-edge", ".cache/microsoft-edge", ".config/vivaldi", ".cache/vivaldi", ".local/share/vivaldi",
        ".config/opera", ".cache/opera", ".local/share/epiphany", ".cache/epiphany", ".local/share/qutebrowser", ".cache/qutebrowser", ".local/share/webkitgtk", ".cache/webkitgtk", ".local/share/falkon", ".cache/falkon",
    ]),
    p("data of applications from Flatpak and Snap", &[".var/app", "snap"]),
    c("Stockade's own configuration", &[".config/stockade", ".local/state/stockade"]),
];

/// Every known place of what only the user should have, below a home directory, and what it is.
pub fn known_places() -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN
        .iter()
        .flat_map(|known| known.places.iter().map(|place| (*place, known.what)))
}

/// The known places in the directories of the home that are shown whole.
pub(crate) fn in_bulk() -> impl Iterator<Item = &'static str> {
    known_places()
        .map(|(place, _)| place)
        .filter(|place| is_in_bulk(place))
}

fn is_in_bulk(place: &str) -> bool {
    let below = |(directory, _): &(&str, &str)| Path::new(place).starts_with(directory);
    home::SCRATCH.iter().any(below)
}

/// The known place of credentials that a path below the home is, or is in.
pub(crate) fn holding(below_home: &Path) -> Option<&'static str> {
    KNOWN
        .iter()
        .filter(|known| known.is_credential)
        .flat_map(|known| known.places)
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
    let is_behind = |place: &Path| found.real.starts_with(place) && !path.starts_with(place);
    let mut places = known_places().map(|(place, _)| place);
    places.find(|place| is_behind(&home.join(place)))
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
        let Some(what) = of(request, facts) else {
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
fn of(request: &PathRequest, facts: &Facts) -> Option<String> {
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
    use crate::facts::{
        Kind,
        tests::{facts, with},
    };

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
    fn other_paths_and_what_profiles_ask_for_need_no_word() {
        assert_eq!(told("/home/ada/data", true), [""; 0]);
        assert_eq!(told("/home/ada/.sshd", true), [""; 0]);
        assert_eq!(told("/home/ada/.ssh", false), [""; 0]);
    }
}
