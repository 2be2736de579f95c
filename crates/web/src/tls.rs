//! TLS of the server, for addresses that others can reach.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::options::Identity;

/// Accepts connections by this certificate and its key.
///
/// # Errors
/// A message: they are invalid, or do not belong together.
pub(crate) fn acceptor(identity: &Identity) -> Result<TlsAcceptor, String> {
    let chain = CertificateDer::pem_slice_iter(&identity.cert).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| format!("the certificate is not PEM: {error}"))?;
    if chain.is_empty() {
        return Err("there is no certificate in its file".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(&identity.key);
    let key = key.map_err(|error| format!("the key is not PEM: {error}"))?;
    let builder = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| format!("the certificate and the key do not go together: {error}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
