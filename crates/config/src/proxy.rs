//! The proxy in force: what the configuration says, with the login that a file or the caller's
//! environment has for it.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{self, Path},
    sync::Arc,
};

use stockade_policy::{
    Exemption, Exemptions, Host, Hostname, ProxyAddress, ProxyLogin, ProxyScheme,
};

use crate::{
    diagnostic::Diagnostic,
    files::{Guard, own_file},
    keys::Effective,
    load::Loader,
    source::{Origin, Source},
    text::shown_path,
    value::{Mode, ProxySetting},
};

/// The variables that name a proxy for all that Stockade carries, the first that is set first.
const VARIABLES: [&str; 6] = [
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "http_proxy",
    "HTTP_PROXY",
];
const EXEMPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The file with the certificates of authorities that the caller trusts, instead of the system's.
const AUTHORITIES: &str = "SSL_CERT_FILE";
/// Where systems have them: Debian and Arch, Fedora, its derivatives, SUSE, Alpine.
const SYSTEMS_AUTHORITIES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A proxy, and who uses it for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyProxy {
    pub address: ProxyAddress,
    pub login: Option<ProxyLogin>,
    /// The variable that has the login, if it is not from a file.
    pub login_variable: Option<&'static str>,
    pub exempt: Exemptions,
}

/// What is said of the proxy.
#[derive(Debug, Clone)]
pub struct ProxyInUse {
    pub proxy: CompanyProxy,
    /// The variable or setting that names it.
    pub origin: String,
}

/// A proxy that a variable of the caller's names.
type Named = (&'static str, ProxyAddress, Option<ProxyLogin>);

/// The proxies that the caller's variables name, each with its variable. What is no proxy is left
/// out.
pub fn proxy_variables(
    environment: &BTreeMap<OsString, OsString>,
) -> impl Iterator<Item = (&'static str, ProxyAddress)> {
    named(environment).map(|(variable, address, _)| (variable, address))
}

fn named(environment: &BTreeMap<OsString, OsString>) -> impl Iterator<Item = Named> {
    VARIABLES.into_iter().filter_map(|variable| {
        let text = environment.get(OsStr::new(variable))?.to_str()?;
        let (address, login) = ProxyAddress::parse(text).ok()?;
        Some((variable, address, login))
    })
}

impl Loader {
    /// The proxy that sessions with this configuration use.
    ///
    /// # Errors
    /// If the variable that names it is no proxy, or the file with its login cannot be relied on.
    pub fn proxy(&self, effective: &Effective) -> Result<Option<ProxyInUse>, Diagnostic> {
        let network = &effective.network;
        if network.mode.value != Mode::Jail {
            return Ok(None);
        }
        let mut exempt: Vec<Exemption> = network
            .no_proxy
            .iter()
            .map(|exemption| exemption.value.clone())
            .collect();
        let (address, (mut login, mut login_variable), origin) = match &network.proxy.value {
            ProxySetting::None => return Ok(None),
            ProxySetting::At(address) => {
                let same = |known: &Named| {
                    let known = &known.1;
                    // What was given out for TLS is not sent in the clear.
                    let is_as_safe = known.scheme != ProxyScheme::Https || known == address;
                    known.host == address.host && known.port == address.port && is_as_safe
                };
                let known = named(&self.environment).find(same);
                let login = known.map_or((None, None), |known| (known.2, Some(known.0)));
                (address.clone(), login, network.proxy.origin.to_string())
            }
            ProxySetting::Environment => {
                let Some((variable, text)) = self.first(&VARIABLES) else {
                    return Ok(None);
                };
                let (address, login) = ProxyAddress::parse(&text).map_err(|error| {
                    let origin = &network.proxy.origin;
                    let title =
                        format!("the variable {variable} names no proxy ({origin}): {error}");
                    Diagnostic::new(title)
                        .help("correct the variable, or name the proxy with --proxy")
                })?;
                if let Some((_, list)) = self.first(&EXEMPTIONS) {
                    exempt.extend(list.split([',', ' ']).filter_map(exemption));
                }
                (address, (login, Some(variable)), variable.to_owned())
            }
        };
        if let Some(file) = &network.proxy_login {
            login = Some(self.proxy_login(&file.value.0, &file.origin)?);
            login_variable = None;
        }
        Ok(Some(ProxyInUse {
            proxy: CompanyProxy {
                address,
                login_variable: login_variable.filter(|_| login.is_some()),
                login,
                exempt: Exemptions(exempt),
            },
            origin,
        }))
    }

    /// The certificates of the authorities by which a proxy in TLS is known, in PEM.
    ///
    /// # Errors
    /// If there are none, or others could change them.
    pub fn proxy_authorities(&self) -> Result<Arc<Source>, Diagnostic> {
        let guard = Guard::new(&self.places);
        if let Some((_, path)) = self.first(&[AUTHORITIES]) {
            let path = path::absolute(&path).unwrap_or_else(|_| path.into());
            return own_file(&path, &guard)?.ok_or_else(|| {
                let name = shown_path(&path);
                let title = format!("{name} does not exist ({AUTHORITIES})");
                Diagnostic::new(title).help("correct the variable, or unset it")
            });
        }
        for path in SYSTEMS_AUTHORITIES {
            if let Some(source) = own_file(Path::new(path), &guard)? {
                return Ok(source);
            }
        }
        let title = "a proxy in TLS (https://) needs the certificates of authorities, and this system \
                     has none";
        let help = format!(
            "install the package ca-certificates, or name a file with your company's by {AUTHORITIES}"
        );
        Err(Diagnostic::new(title).help(help))
    }

    /// The first of these variables that is set and not empty.
    fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|name| {
            let value = self.environment.get(OsStr::new(name))?;
            let text = value.to_string_lossy().trim().to_owned();
            (!text.is_empty()).then_some((*name, text))
        })
    }

    fn proxy_login(&self, path: &Path, origin: &Origin) -> Result<ProxyLogin, Diagnostic> {
        let name = shown_path(path);
        let Some(source) = own_file(path, &Guard::new(&self.places))? else {
            let title = format!("{name} does not exist ({origin})");
            let help = "write USER:PASSWORD for the proxy to it, and make it readable for you alone: \
                        chmod 600";
            return Err(Diagnostic::new(title).help(help));
        };
        let mode = fs::metadata(path).map_or(0o777, |metadata| metadata.mode()) & 0o7777;
        if mode & 0o077 != 0 {
            let title = format!("others can read the login in {name} (mode {mode:04o})");
            let help =
                format!("change the password if others use this machine, or: chmod 600 {name}");
            return Err(Diagnostic::new(title).help(help));
        }
        let mut lines = source.text().lines();
        let line = lines.next().unwrap_or_default();
        if lines.any(|line| !line.trim().is_empty()) {
            let title = format!("{name} has more than one line");
            return Err(Diagnostic::new(title).help("write only USER:PASSWORD to it"));
        }
        ProxyLogin::from_text(line).map_err(|why| {
            let title = format!("{name} has no login for the proxy: {why}");
            Diagnostic::new(title).help("write USER:PASSWORD to it, in one line")
        })
    }
}

/// One of `no_proxy`, which may have a port or a final dot. What no program understands is left out.
fn exemption(text: &str) -> Option<Exemption> {
    let text = text.trim();
    let without_port = text
        .rsplit_once(':')
        .filter(|(_, port)| port.parse::<u16>().is_ok());
    let whole = text.parse().ok();
    let host = || without_port.map_or(text, |(host, _)| host);
    whole.or_else(|| host().trim_end_matches('.').parse().ok())
}

impl CompanyProxy {
    /// The domains that are the company's own, as far as the settings tell: those that go around the
    /// proxy, and the one that the proxy is in.
    pub fn domains(&self) -> Vec<Hostname> {
        let mut domains: Vec<Hostname> = self.exempt.domains().cloned().collect();
        if let Host::Name(name) = &self.address.host
            && let Some((_, domain)) = name.as_str().split_once('.')
            && let Ok(domain) = domain.parse::<Hostname>()
            // The proxy of a provider is in a domain of many: `proxy.example` says nothing of `example`.
            && domain.as_str().contains('.')
        {
            domains.push(domain);
        }
        domains
    }
}

impl ProxyInUse {
    /// Where it is, for people.
    pub fn describe(&self) -> String {
        let login = match self.proxy.login {
            Some(_) => ", with a login",
            None => "",
        };
        format!("{}{login}", self.proxy.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_the_environment_is_read_as_other_programs_do() {
        for (text, meant) in [
            ("corp.example", Some("corp.example")),
            (" .corp.example", Some("corp.example")),
            ("corp.example:8080", Some("corp.example")),
            ("corp.example.", Some("corp.example")),
            ("*", Some("*")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.1.2.3:80", Some("10.1.2.3")),
            ("fd00::5", Some("fd00::5")),
            ("[fd00::5]:80", Some("fd00::5")),
            ("<local>", None),
            ("", None),
        ] {
            let read = exemption(text).map(|exemption| exemption.to_string());
            assert_eq!(read.as_deref(), meant, "{text}");
        }
    }
}
