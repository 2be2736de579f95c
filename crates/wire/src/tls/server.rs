//! Configuration of the server side, for the built-in targets.

use std::fmt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::WebPkiClientVerifier;

use super::{TlsConfigError, TlsFile, pem, provider};

/// The server side's configuration; cheap to clone.
#[derive(Clone)]
pub struct ServerConfig(pub(super) Arc<rustls::ServerConfig>);

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig").field("alpn", &self.0.alpn_protocols).finish_non_exhaustive()
    }
}

impl ServerConfig {
    /// A server of TLS 1.2 and 1.3 with this certificate chain and key (PEM) that speaks the protocols of
    /// `alpn`, the preferred one first. With `client_ca_pem` it demands a client certificate of one of those
    /// authorities.
    ///
    /// # Errors
    /// If a PEM file is unusable or the key does not fit the certificate.
    pub fn new(
        cert_pem: &[u8],
        key_pem: &[u8],
        alpn: &[Vec<u8>],
        client_ca_pem: Option<&[u8]>,
    ) -> Result<Self, TlsConfigError> {
        let builder =
            rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let builder = match client_ca_pem {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in pem::certificates(pem, TlsFile::ClientAuthorities)? {
                    roots.add(certificate).map_err(|error| {
                        TlsConfigError::of(
                            TlsFile::ClientAuthorities,
                            format!("holds a bad certificate: {error}"),
                        )
                    })?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                    .build()
                    .map_err(|error| {
                        TlsConfigError::of(TlsFile::ClientAuthorities, format!("is unusable: {error}"))
                    })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(
                pem::certificates(cert_pem, TlsFile::ServerCertificate)?,
                pem::private_key(key_pem, TlsFile::ServerKey)?,
            )
            .map_err(|error| {
                TlsConfigError::new(format!("the certificate and key do not go together: {error}"))
            })?;
        config.alpn_protocols = alpn.to_vec();
        // The session travels in the ticket, so that any number of clients can resume; a store would forget
        // them.
        config.ticketer = Ticketer::new()?;
        Ok(Self(Arc::new(config)))
    }
}
