//! TLS certificates of the built-in servers.

use plimsoll_wire::tls::{ServerConfig, TlsConfigError};

/// A server's TLS by a self-signed certificate for loopback names, made for this process.
///
/// # Errors
/// In words: the system gives no random numbers, or TLS cannot use what was made.
pub(crate) fn self_signed() -> Result<ServerConfig, String> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    server_config(cert.as_bytes(), key.as_bytes()).map_err(|error| error.to_string())
}

/// A server's TLS by this certificate and its key (PEM), with ALPN for HTTP/2 and HTTP/1.1.
///
/// # Errors
/// If they are none, or do not belong together.
pub(crate) fn server_config(cert: &[u8], key: &[u8]) -> Result<ServerConfig, TlsConfigError> {
    ServerConfig::new(cert, key, &[b"h2".to_vec(), b"http/1.1".to_vec()], None)
}
