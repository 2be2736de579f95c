//! What can go wrong with TLS, in a sentence with a hint.

use std::fmt;

use rustls::CertificateError;

/// A TLS configuration that cannot be used: a bad PEM file, a key that does not fit, an impossible name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfigError(pub(crate) String);

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsConfigError {}

impl From<rustls::Error> for TlsConfigError {
    fn from(error: rustls::Error) -> Self {
        Self(error.to_string())
    }
}

/// A connection that TLS gave up: a failed handshake, a bad record, an alert of the peer.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsError(pub(crate) rustls::Error);

impl TlsError {
    /// Whether the peer's certificate was not accepted: the case in which verification can be configured.
    pub fn is_certificate(&self) -> bool {
        matches!(self.0, rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rustls::Error::InvalidCertificate(reason) = &self.0 else {
            return match &self.0 {
                rustls::Error::InvalidMessage(_) => {
                    write!(f, "the peer does not speak TLS on this port ({})", self.0)
                }
                other => write!(f, "TLS: {other}"),
            };
        };
        let reason = match reason {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "it has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "it is not valid yet".to_owned()
            }
            CertificateError::UnknownIssuer => "its issuer is not trusted".to_owned(),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "it is for another name".to_owned()
            }
            CertificateError::Revoked => "it has been revoked".to_owned(),
            other => other.to_string(),
        };
        write!(f, "the certificate was not accepted: {reason}")
    }
}

impl std::error::Error for TlsError {}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self(error)
    }
}
