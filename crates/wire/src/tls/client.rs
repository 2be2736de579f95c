//! Configuration of the client side.

use std::fmt;
use std::sync::Arc;

use plimsoll_core::text::hex;
use rustls::client::Resumption;
use rustls::{RootCertStore, SupportedProtocolVersion, version};
use rustls_pki_types::CertificateDer;

use super::verify::Verifier;
use super::{TlsConfigError, TlsFile, pem, provider};

/// Tickets kept for resumption per configuration. A server name takes eight of them (rustls), so this is
/// enough for 512 names; beyond it the oldest are forgotten and connections to them shake hands in full.
const SESSIONS_KEPT: usize = 4096;

/// TLS settings for a target.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Set to require a certificate that is valid for the name and comes from a trusted issuer.
    pub verify: bool,
    /// PEM files of authorities. If there are any, they replace the system's.
    pub ca_pem: Vec<Vec<u8>>,
    /// Certificate and key of the client, if the server asks for one.
    pub identity: Option<Identity>,
    /// Protocols offered by ALPN, the preferred one first.
    pub alpn: Vec<Vec<u8>>,
    /// TLS versions offered.
    pub versions: Versions,
    /// Set to let connections after the first resume its session.
    pub resumption: bool,
    /// Destination for the secrets of the sessions, for decrypting a capture.
    pub key_log: Option<Arc<dyn KeyLogSink>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            verify: true,
            ca_pem: Vec::new(),
            identity: None,
            alpn: vec![b"http/1.1".to_vec()],
            versions: Versions::Both,
            resumption: true,
            key_log: None,
        }
    }
}

/// A certificate chain and its private key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The chain, the leaf first, in PEM.
    pub cert_pem: Vec<u8>,
    /// The key (PKCS #8, PKCS #1 or SEC 1), in PEM.
    pub key_pem: Vec<u8>,
}

/// Without the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// TLS versions to offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Versions {
    /// 1.2 and 1.3.
    #[default]
    Both,
    /// Only 1.2.
    Tls12,
    /// Only 1.3.
    Tls13,
}

impl Versions {
    fn supported(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Both => vec![&version::TLS13, &version::TLS12],
            Self::Tls12 => vec![&version::TLS12],
            Self::Tls13 => vec![&version::TLS13],
        }
    }
}

/// Takes lines of the NSS key log format (`SSLKEYLOGFILE`).
pub trait KeyLogSink: Send + Sync + fmt::Debug {
    /// One line, without the line feed.
    fn line(&self, line: &str);
}

/// The client side's configuration; a clone shares its session cache.
#[derive(Clone)]
pub struct ClientConfig(pub(super) Arc<rustls::ClientConfig>);

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig").field("alpn", &self.0.alpn_protocols).finish_non_exhaustive()
    }
}

impl ClientConfig {
    /// Builds the configuration.
    ///
    /// # Errors
    /// If a PEM file is unusable, the key does not fit the certificate, or no authority is available.
    pub fn new(options: &ClientOptions) -> Result<Self, TlsConfigError> {
        let provider = provider();
        let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&options.versions.supported())?;
        let verifier = if options.verify {
            let (roots, given) = roots(&options.ca_pem)?;
            Verifier::of(provider, roots, given)
                .map_err(|error| TlsConfigError::of(TlsFile::Authorities, format!("is unusable: {error}")))?
        } else {
            Verifier::any(provider)
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(
                    pem::certificates(&identity.cert_pem, TlsFile::ClientCertificate)?,
                    pem::private_key(&identity.key_pem, TlsFile::ClientKey)?,
                )
                .map_err(|error| {
                    TlsConfigError::new(format!("the client certificate and key do not go together: {error}"))
                })?,
        };
        config.alpn_protocols.clone_from(&options.alpn);
        config.resumption = if options.resumption {
            Resumption::in_memory_sessions(SESSIONS_KEPT)
        } else {
            Resumption::disabled()
        };
        if let Some(sink) = &options.key_log {
            config.key_log = Arc::new(KeyLog(sink.clone()));
        }
        Ok(Self(Arc::new(config)))
    }

    /// Returns the configuration for clients that drive rustls themselves.
    pub fn to_rustls(&self) -> rustls::ClientConfig {
        (*self.0).clone()
    }
}

/// The authorities to trust: those given, else the system's. The certificates that were given are returned,
/// too: a server may show one of them itself.
fn roots(given: &[Vec<u8>]) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsConfigError> {
    let (mut roots, mut certificates) = (RootCertStore::empty(), Vec::new());
    for pem in given {
        for certificate in pem::certificates(pem, TlsFile::Authorities)? {
            roots.add(certificate.clone()).map_err(|error| {
                TlsConfigError::of(TlsFile::Authorities, format!("holds a bad certificate: {error}"))
            })?;
            certificates.push(certificate);
        }
    }
    if given.is_empty() {
        let system = rustls_native_certs::load_native_certs();
        // A store of a distribution may hold an old certificate that rustls cannot read: the others count.
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            let reason = system.errors.first().map_or(String::new(), |error| format!(": {error}"));
            return Err(TlsConfigError::new(format!(
                "this system has no trusted certificate authorities (package ca-certificates){reason}"
            )));
        }
    }
    Ok((roots, certificates))
}

/// Writes the secrets that rustls reports in the NSS key log format.
#[derive(Debug)]
struct KeyLog(Arc<dyn KeyLogSink>);

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.0.line(&format!("{label} {} {}", hex(client_random), hex(secret)));
    }
}
