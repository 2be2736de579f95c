//! The authority that signs certificates for recorded hosts.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Its name, as browsers list it.
const NAME: &str = "Plimsoll recording proxy of this machine";

/// An authority of one machine: a key, and the certificate to be trusted by the recorded client.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Both as PEM.
    certificate: String,
    key: String,
    /// The key of all hosts' certificates.
    host_key: KeyPair,
    /// TLS configurations of hosts, by their names.
    hosts: HashMap<String, Arc<ServerConfig>>,
}

/// Without the keys.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a new authority.
    ///
    /// # Errors
    /// In words: the system gives no random numbers.
    pub fn generate() -> Result<Self, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = params().self_signed(&key).map_err(|error| error.to_string())?;
        Self::with(key, certificate.pem())
    }

    /// The authority that was made before, of its certificate and its key in PEM.
    ///
    /// # Errors
    /// In words: the key cannot be used.
    pub fn read(certificate: &str, key: &str) -> Result<Self, String> {
        let key = KeyPair::from_pem(key).map_err(|error| format!("the key: {error}"))?;
        Self::with(key, certificate.to_owned())
    }

    fn with(key: KeyPair, certificate: String) -> Result<Self, String> {
        let text = key.serialize_pem();
        let host_key = KeyPair::generate().map_err(|error| error.to_string())?;
        let issuer = Issuer::new(params(), key);
        Ok(Self { issuer, certificate, key: text, host_key, hosts: HashMap::new() })
    }

    /// Returns the certificate to be trusted, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns its key, as PEM. It decrypts the connections of every client that trusts the
    /// certificate.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The TLS of a host, by a certificate that is signed for its name.
    ///
    /// # Errors
    /// In words: `host` is no name that a certificate can have.
    pub(crate) fn server_config(&mut self, host: &str) -> Result<Arc<ServerConfig>, String> {
        if let Some(known) = self.hosts.get(host) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(self.made(host)?);
        self.hosts.insert(host.to_owned(), Arc::clone(&made));
        Ok(made)
    }

    fn made(&self, host: &str) -> Result<ServerConfig, String> {
        let mut of_host = CertificateParams::new(vec![host.to_owned()]).map_err(|error| error.to_string())?;
        of_host.distinguished_name.push(DnType::CommonName, host);
        of_host.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        of_host.use_authority_key_identifier_extension = true;
        let signed = of_host.signed_by(&self.host_key, &self.issuer).map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.host_key.serialize_der()));
        let chain: Vec<CertificateDer<'static>> = vec![signed.der().clone()];
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?.with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key).map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The same each time, so that the key alone makes the same issuer again.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}
