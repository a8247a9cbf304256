//! Logins for forges that only sandboxed sessions use.
//!
//! # Theory of operation
//! Each login is one file of its own, `logins/FORGE/HOST/login.json` in Stockade's state directory.
//! A session gets the logins of its own forges and hosts, and no file beside them. The state
//! directory is never shown inside. It is not the configuration directory, which people keep in
//! repositories and copy to other machines.
//!
//! A [`Token`] does not print itself, and has only characters that need no quoting in a header, in
//! YAML or in git's protocol for credentials.

use std::{
    fmt,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    diagnostic::Diagnostic,
    files::{Guard, Places, own_file, resolved},
    text::shown_path,
    trust::replace,
    value::HostName,
};

/// A kind of forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    Github,
    Gitlab,
}

impl ForgeKind {
    pub const ALL: [Self; 2] = [Self::Github, Self::Gitlab];

    /// As configuration and commands have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Github => "GitHub",
            Self::Gitlab => "GitLab",
        }
    }

    /// The host that everybody uses.
    pub const fn usual_host(self) -> &'static str {
        match self {
            Self::Github => "github.com",
            Self::Gitlab => "gitlab.com",
        }
    }
}

/// A secret that lets its holder act as its owner at a forge. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    const LONGEST: usize = 2048;
    const SHORTEST: usize = 8;

    /// # Errors
    /// If it cannot be a token. The reason does not repeat it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let is_usual = |c: char| c.is_ascii_alphanumeric() || "_-.~+/=:".contains(c);
        if text.is_empty() {
            Err("nothing was entered")
        } else if text.contains(char::is_whitespace) {
            Err("a token has no blanks and no line breaks")
        } else if !text.chars().all(is_usual) {
            Err("it has a character that tokens do not have")
        } else if text.len() < Self::SHORTEST {
            Err("it is too short to be a token")
        } else if text.len() > Self::LONGEST {
            Err("it is too long to be a token")
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// For whoever has to send or store it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What is stored for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub forge: ForgeKind,
    pub host: HostName,
    pub token: Token,
    /// Whose token it is, if the forge said so.
    pub user: Option<String>,
}

/// The logins of the user.
#[derive(Debug, Clone)]
pub struct Logins {
    places: Places,
}

impl Logins {
    pub fn new(places: &Places) -> Self {
        Self {
            places: places.clone(),
        }
    }

    fn directory(&self, forge: ForgeKind, host: &HostName) -> PathBuf {
        let host = host.to_string();
        self.places.logins().join(forge.word()).join(host)
    }

    /// The file of a login, whether or not it exists.
    pub fn file(&self, forge: ForgeKind, host: &HostName) -> PathBuf {
        self.directory(forge, host).join("login.json")
    }

    /// The hosts that have a login, in the order of forges and names.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn hosts(&self) -> Result<Vec<(ForgeKind, HostName)>, Diagnostic> {
        let mut hosts = Vec::new();
        for forge in ForgeKind::ALL {
            let directory = self.places.logins().join(forge.word());
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(cannot("read", &directory, &error)),
            };
            let names = entries.flatten().map(|entry| entry.file_name());
            let names = names.filter_map(|name| HostName::parse(name.to_str()?).ok());
            let mut found: Vec<_> = names.collect();
            found.retain(|host| self.file(forge, host).exists());
            found.sort_by_key(ToString::to_string);
            hosts.extend(found.into_iter().map(|host| (forge, host)));
        }
        Ok(hosts)
    }

    /// The login for a host, if there is one.
    ///
    /// # Errors
    /// If somebody else can read or change the file, or it is damaged.
    pub fn read(&self, forge: ForgeKind, host: &HostName) -> Result<Option<Login>, Diagnostic> {
        let path = self.file(forge, host);
        let Some(source) = own_file(&path, &Guard::new(&self.places))? else {
            return Ok(None);
        };
        let metadata = fs::metadata(&path).map_err(|error| cannot("read", &path, &error))?;
        if metadata.mode() & 0o077 != 0 {
            let name = shown_path(&path);
            let mode = metadata.mode() & 0o7777;
            let title = format!("others can read the token in {name} (mode {mode:04o})");
            let help = format!("revoke the token if others use this machine, or: chmod 600 {name}");
            return Err(Diagnostic::new(title).help(help));
        }
        let value: Value = serde_json::from_str(source.text()).unwrap_or_default();
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let is_of_host = text("host") == Some(&host.to_string());
        match text("token").map(Token::parse) {
            Some(Ok(token)) if is_of_host => Ok(Some(Login {
                forge,
                host: host.clone(),
                token,
                user: text("user").filter(|user| is_user(user)).map(str::to_owned),
            })),
            _ => {
                let title = format!("{} is damaged", shown_path(&path));
                let host = host_option(forge, host);
                let remove = format!(
                    "remove it with `stockade auth remove {}{host}`",
                    forge.word()
                );
                Err(Diagnostic::new(title).help(remove))
            }
        }
    }

    /// Stores a login, in place of an older one for the same host.
    ///
    /// # Errors
    /// If it cannot be written, or would lie where the command inside can write.
    pub fn store(&self, login: &Login) -> Result<(), Diagnostic> {
        let Login {
            forge,
            host,
            token,
            user,
        } = login;
        let all = self.places.logins();
        Guard::new(&self.places).check_outside(&resolved(&all))?;
        let directory = self.directory(*forge, host);
        let failed = |error: io::Error| cannot("store the login in", &directory, &error);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&directory).map_err(failed)?;
        // They may be older than this program, or copied.
        for path in directory.ancestors().take(3) {
            fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let value = json!({
            "version": 1,
            "forge": forge.word(),
            "host": host.to_string(),
            "user": user,
            "token": token.reveal(),
        });
        let contents = format!("{value:#}\n");
        replace(&self.file(*forge, host), contents.as_bytes()).map_err(failed)?;
        // A session would refuse one that others could have written.
        let outcome = self.read(*forge, host).map(drop);
        if outcome.is_err() {
            self.remove(*forge, host)?;
        }
        outcome
    }

    /// Removes a login with everything beside it. Whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, forge: ForgeKind, host: &HostName) -> Result<bool, Diagnostic> {
        let directory = self.directory(forge, host);
        match fs::remove_dir_all(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(cannot("remove", &directory, &error)),
        }
        // Those that hold other logins stay.
        for above in directory.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(above);
        }
        Ok(true)
    }
}

/// Whether this can be a user's name at a forge. Names of bots have brackets.
pub fn is_user(name: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-_.[]".contains(c);
    !name.is_empty() && name.len() <= 255 && name.chars().all(is_usual)
}

/// What a command needs to name a host.
pub fn host_option(forge: ForgeKind, host: &HostName) -> String {
    let host = host.to_string();
    match host == forge.usual_host() {
        true => String::new(),
        false => format!(" --host {host}"),
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot {what} {}: {error}", shown_path(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins(home: &Path) -> Logins {
        let workspace = home.join("project");
        fs::create_dir_all(&workspace).unwrap();
        Logins::new(&Places::new(home, &workspace, |_| None))
    }

    fn login(host: &str, token: &str) -> Login {
        Login {
            forge: ForgeKind::Github,
            host: HostName::parse(host).unwrap(),
            token: Token::parse(token).unwrap(),
            user: Some("ada".to_owned()),
        }
    }

    #[test]
    fn what_is_stored_is_read_again_and_is_gone_after_its_removal() {
        let home = tempfile::tempdir().unwrap();
        let logins = logins(home.path());
        let first = login("github.com", "ghp_decoydecoy");
        let second = login("ghe.example.org", "ghp_seconddecoy");
        for login in [&login("github.com", "ghp_olderdecoy"), &first, &second] {
            logins.store(login).unwrap();
        }
        let hosts = logins.hosts().unwrap();
        let hosts: Vec<_> = hosts.iter().map(|(_, host)| host.to_string()).collect();
        assert_eq!(hosts, ["ghe.example.org", "github.com"]);
        for login in [&first, &second] {
            let found = logins.read(login.forge, &login.host).unwrap();
            assert_eq!(found.as_ref(), Some(login));
            let file = logins.file(login.forge, &login.host);
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
            for directory in file.ancestors().skip(1).take(3) {
                assert_eq!(fs::metadata(directory).unwrap().mode() & 0o7777, 0o700);
            }
        }
        assert!(
            logins
                .read(ForgeKind::Gitlab, &first.host)
                .unwrap()
                .is_none()
        );
        assert!(!logins.remove(ForgeKind::Gitlab, &first.host).unwrap());
        assert!(logins.remove(ForgeKind::Github, &first.host).unwrap());
        assert!(
            logins
                .read(ForgeKind::Github, &second.host)
                .unwrap()
                .is_some()
        );
        assert!(logins.remove(ForgeKind::Github, &second.host).unwrap());
        assert!(!logins.places.logins().exists());
    }

    #[test]
    fn a_file_that_others_can_read_or_that_is_damaged_is_refused_and_its_token_not_repeated() {
        let home = tempfile::tempdir().unwrap();
        let logins = logins(home.path());
        let login = login("github.com", "ghp_decoydecoy");
        logins.store(&login).unwrap();
        let file = logins.file(login.forge, &login.host);
        let refusal = || {
            let refusal = logins.read(login.forge, &login.host).unwrap_err();
            format!("{refusal:?}")
        };
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        assert!(refusal().contains("others can read"), "{}", refusal());
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        for damaged in [
            text.replace("github.com", "evil.example"),
            text.replace("ghp_decoydecoy", "ghp_decoy\\nx: y"),
            text[..text.len() / 2].to_owned(),
        ] {
            fs::write(&file, damaged).unwrap();
            assert!(refusal().contains("damaged"), "{}", refusal());
            assert!(!refusal().contains("ghp_"), "{}", refusal());
        }
    }

    #[test]
    fn a_token_prints_nothing_of_itself_and_has_nothing_that_needs_quotes() {
        let token = Token::parse("ghp_decoydecoy").unwrap();
        assert!(!format!("{token:?} {:?}", login("h", "ghp_decoydecoy")).contains("decoy"));
        for text in [
            "",
            "abc",
            "with blank here",
            "quote\"quote",
            "line\nline2",
            "ünïcödeee",
            "back\\slash",
        ] {
            let why = Token::parse(text).unwrap_err();
            assert!(text.is_empty() || !why.contains(text), "{why}");
        }
        assert!(Token::parse(&"x".repeat(3000)).is_err());
    }
}
