//! TLS certificates of the built-in servers.

use plimsoll_wire::tls::{ServerConfig, TlsConfigError};

/// The protocols of HTTP, as ALPN calls them, the preferred one first.
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Makes a server's TLS with a self-signed certificate for loopback names, of this process alone, with ALPN
/// for HTTP/2 and HTTP/1.1.
///
/// # Errors
/// In words: the system gives no random numbers, or TLS cannot use what was made.
pub fn self_signed() -> Result<ServerConfig, String> {
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
    let protocols: Vec<Vec<u8>> = HTTP.iter().map(|name| name.to_vec()).collect();
    ServerConfig::new(cert, key, &protocols, None)
}
