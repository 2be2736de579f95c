//! Certificates and keys in PEM.

use rustls_pki_types::pem::{Error, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::{TlsConfigError, TlsFile};

/// First line of a PKCS #8 key with a passphrase, without its dashes.
const ENCRYPTED: &[u8] = b"BEGIN ENCRYPTED PRIVATE KEY";

/// Every certificate in `pem`; at least one.
pub(super) fn certificates(
    pem: &[u8],
    file: TlsFile,
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsConfigError::of(file, format!("is not valid PEM: {error}")))?;
    if found.is_empty() {
        return Err(TlsConfigError::of(file, "holds no certificate in PEM format"));
    }
    Ok(found)
}

/// The first private key in `pem`: PKCS #8, PKCS #1 or SEC 1.
pub(super) fn private_key(pem: &[u8], file: TlsFile) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        Error::NoItemsFound if pem.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED) => {
            TlsConfigError::of(
                file,
                "is protected by a passphrase: write it without one (openssl pkey -in KEY -out PLAIN)",
            )
        }
        Error::NoItemsFound => TlsConfigError::of(file, "holds no private key in PEM format"),
        error => TlsConfigError::of(file, format!("is not valid PEM: {error}")),
    })
}
