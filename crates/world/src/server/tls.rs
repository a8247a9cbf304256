//! Certificates that the laptop trusts.

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

use crate::error::{Error, Result};

/// A certificate authority, made anew for each world.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

/// A server's certificate and key, in PEM, for servers that are programs.
#[derive(Clone)]
pub struct ServerIdentity {
    pub certificate: String,
    pub key: String,
}

impl fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerIdentity")
    }
}

impl Authority {
    /// A new authority. The world has one that the laptop trusts
    /// ([`crate::World::authority`]); one made here nobody trusts.
    pub fn new(name: &str) -> Result<Self> {
        let make = || {
            let mut params = CertificateParams::new(Vec::new())?;
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            CertifiedIssuer::self_signed(params, KeyPair::generate()?)
        };
        make().map(Self).map_err(|error| failed(&[name], &error))
    }

    /// The authority's certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A fresh certificate for these host names and addresses.
    pub fn identity(&self, names: &[&str]) -> Result<ServerIdentity> {
        self.identity_until(names, 4096)
    }

    /// One that is valid until the beginning of this year.
    pub fn identity_until(&self, names: &[&str], year: i32) -> Result<ServerIdentity> {
        let (certificate, key) = self
            .certify(names, year)
            .map_err(|error| failed(names, &error))?;
        Ok(ServerIdentity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// A server's configuration with a fresh certificate for these host names
    /// and addresses.
    pub fn server(&self, names: &[&str]) -> Result<Arc<ServerConfig>> {
        let (certificate, key) = self
            .certify(names, 4096)
            .map_err(|error| failed(names, &error))?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let configure = || {
            let mut config =
                ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                    .with_safe_default_protocol_versions()?
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate.der().clone()], key)?;
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Ok::<_, rustls::Error>(Arc::new(config))
        };
        configure().map_err(|error| failed(names, &error))
    }

    fn certify(
        &self,
        names: &[&str],
        year: i32,
    ) -> std::result::Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.not_after = date_time_ymd(year, 1, 1);
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok((certificate, key))
    }
}

fn failed(names: &[&str], error: &impl fmt::Display) -> Error {
    Error::Certificate {
        names: names.join(", "),
        reason: error.to_string(),
    }
}
