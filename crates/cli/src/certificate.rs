//! Certificates for servers that live as long as this process.

/// A certificate for loopback names that nobody vouches for, and its key, as PEM.
///
/// # Errors
/// If the system gives no random numbers.
pub(crate) fn self_signed() -> Result<(String, String), rcgen::Error> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}
