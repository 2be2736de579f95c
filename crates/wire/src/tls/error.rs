//! Errors of TLS, each with a message in a sentence.

use std::fmt;

use plimsoll_core::text::plural;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use rustls_pki_types::UnixTime;

use super::verify::{SelfSigned, is_authority};

/// A TLS configuration that cannot be used: a bad PEM file, a key that does not fit, an impossible name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfigError {
    /// The file that is at fault, if it is a single one.
    pub file: Option<TlsFile>,
    /// Description of the fault: a sentence, or the rest of one that begins with the name of the file.
    pub reason: String,
}

impl TlsConfigError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { file: None, reason: reason.into() }
    }

    pub(super) fn of(file: TlsFile, reason: impl Into<String>) -> Self {
        Self { file: Some(file), reason: reason.into() }
    }
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file {
            Some(file) => write!(f, "{} {}", file.name(), self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// A file of a TLS configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFile {
    /// The authorities that a client trusts.
    Authorities,
    /// The certificate of a client.
    ClientCertificate,
    /// The private key of a client.
    ClientKey,
    /// The certificate of a server.
    ServerCertificate,
    /// The private key of a server.
    ServerKey,
    /// The authorities whose clients a server trusts.
    ClientAuthorities,
}

impl TlsFile {
    /// Returns the name of the file in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authorities => "the CA file",
            Self::ClientCertificate => "the client certificate",
            Self::ClientKey => "the client key",
            Self::ServerCertificate => "the certificate",
            Self::ServerKey => "the key",
            Self::ClientAuthorities => "the client CA file",
        }
    }
}

impl std::error::Error for TlsConfigError {}

impl From<Error> for TlsConfigError {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

/// A connection that TLS gave up: a failed handshake, a bad record, an alert of the peer.
#[derive(Debug, Clone, PartialEq)]
pub struct TlsError {
    error: Error,
    /// `true` if the peer had sent anything in TLS before.
    greeted: bool,
}

impl TlsError {
    pub(super) fn new(error: Error, greeted: bool) -> Self {
        Self { error, greeted }
    }

    /// Returns `true` if we did not accept the peer's certificate: the case in which verification can be
    /// configured.
    pub fn is_certificate(&self) -> bool {
        matches!(self.error, Error::InvalidCertificate(_))
    }

    /// Returns advice for the user of the client, in terms of the command's flags.
    pub fn hint(&self) -> Option<&'static str> {
        match &self.error {
            Error::InvalidCertificate(reason) => Some(hint_for(reason)),
            Error::AlertReceived(alert) if is_about_certificate(*alert) => {
                Some("--cert and --key give the certificate of the client and its key")
            }
            _ if self.is_not_tls() => {
                Some("write http:// if this port is without TLS, or name the port that speaks it")
            }
            Error::AlertReceived(AlertDescription::ProtocolVersion) => {
                Some("--tls chooses the version that is offered; without it 1.2 and 1.3 are")
            }
            Error::NoApplicationProtocol | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
                Some("--alpn h2,http/1.1 offers both, --http2 h2 alone")
            }
            Error::AlertReceived(AlertDescription::UnrecognisedName) => {
                Some("--sni NAME asks for another name than that of the URL")
            }
            _ => None,
        }
    }

    /// Returns `true` if the first bytes of the peer were not TLS.
    fn is_not_tls(&self) -> bool {
        !self.greeted && matches!(self.error, Error::InvalidMessage(_) | Error::InappropriateMessage { .. })
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            _ if self.is_not_tls() => f.write_str("the peer does not speak TLS on this port"),
            Error::InvalidCertificate(reason) => {
                f.write_str("the certificate was not accepted: ")?;
                write_reason(f, reason)
            }
            Error::NoCertificatesPresented => f.write_str("the peer showed no certificate"),
            Error::AlertReceived(AlertDescription::CertificateRequired) => {
                f.write_str("the server demands a certificate of the client")
            }
            Error::AlertReceived(alert) if is_about_certificate(*alert) => {
                write!(f, "the peer did not accept our certificate (alert {alert:?})")
            }
            Error::AlertReceived(AlertDescription::ProtocolVersion)
            | Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::Tls13RequiredForQuic
                | PeerIncompatible::SupportedVersionsExtensionRequired,
            ) => f.write_str("the two sides have no TLS version in common"),
            Error::NoApplicationProtocol | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
                f.write_str("the two sides have no application protocol in common (ALPN)")
            }
            Error::AlertReceived(AlertDescription::UnrecognisedName) => {
                f.write_str("the server does not know the name that it was asked for (SNI)")
            }
            Error::AlertReceived(alert) => write!(f, "the peer gave up TLS with the alert {alert:?}"),
            other => write!(f, "TLS failed: {other}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// Returns `true` for alerts about our certificate: it is missing or bad.
fn is_about_certificate(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
    )
}

/// Returns the advice for a server certificate that was refused for this reason.
fn hint_for(reason: &CertificateError) -> &'static str {
    match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "renew it on the server, or look at the clock of this machine; -k accepts it as it is"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "look at the clocks of this machine and of the one that issued it; -k accepts it as it is"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "write a URL with a name that it is for (--resolve gives its address), or that name with --sni; \
             -k accepts any"
        }
        CertificateError::UnknownIssuer => {
            "--cacert FILE names the authority that issued it; a server that has intermediate certificates has \
             to send them, too; -k accepts any"
        }
        CertificateError::Other(error) if error.0.is::<SelfSigned>() => {
            "--cacert FILE with this very certificate trusts it, -k accepts any"
        }
        _ => "-k accepts any certificate",
    }
}

fn write_reason(f: &mut fmt::Formatter<'_>, reason: &CertificateError) -> fmt::Result {
    match reason {
        CertificateError::Expired => f.write_str("it has expired"),
        CertificateError::ExpiredContext { time, not_after } => {
            write!(f, "it expired {} ago", Span::between(*not_after, *time))
        }
        CertificateError::NotValidYet => f.write_str("it is not valid yet"),
        CertificateError::NotValidYetContext { time, not_before } => {
            write!(f, "it is not valid yet, but in {}", Span::between(*time, *not_before))
        }
        CertificateError::UnknownIssuer => f.write_str("its issuer is not trusted"),
        CertificateError::NotValidForName => f.write_str("it is for another name"),
        CertificateError::NotValidForNameContext { expected, presented } => {
            write!(f, "it is not for `{}`, but for ", expected.to_str())?;
            if presented.is_empty() {
                return f.write_str("no name at all");
            }
            for (position, name) in presented.iter().enumerate() {
                let comma = if position == 0 { "" } else { ", " };
                write!(f, "{comma}`{}`", bare_name(name))?;
            }
            Ok(())
        }
        CertificateError::Revoked => f.write_str("it has been revoked"),
        CertificateError::BadEncoding => f.write_str("it cannot be read"),
        CertificateError::BadSignature => f.write_str("its signature is wrong"),
        other if is_authority(other) => {
            f.write_str("it is the certificate of an authority, and not of a server")
        }
        CertificateError::Other(error) => write!(f, "{error}"),
        other => write!(f, "{other}"),
    }
}

/// `localhost` of `DnsName("localhost")`, and `::1` of `IpAddress(::1)`.
fn bare_name(presented: &str) -> &str {
    let inside = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(presented).trim_matches('"')
}

/// A length of time to be read, in seconds.
struct Span(u64);

impl Span {
    fn between(earlier: UnixTime, later: UnixTime) -> Self {
        Self(later.as_secs().saturating_sub(earlier.as_secs()))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
        let (unit, length) =
            units.into_iter().find(|(_, length)| self.0 >= 2 * length).unwrap_or(("second", 1));
        let count = self.0 / length;
        f.write_str(&plural(count, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_readable() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7_199, "119 minutes"),
            (172_800, "2 days"),
        ] {
            assert_eq!(Span(seconds).to_string(), text);
        }
    }

    #[test]
    fn names_are_taken_out_of_their_kind() {
        assert_eq!(bare_name("DnsName(\"a.test\")"), "a.test");
        assert_eq!(bare_name("IpAddress(::1)"), "::1");
        assert_eq!(bare_name("other"), "other");
    }

    #[test]
    fn errors_without_a_certificate_are_sentences_too() {
        let text = |error| TlsError::new(error, true).to_string();
        let alert = |alert| text(Error::AlertReceived(alert));
        assert_eq!(alert(AlertDescription::ProtocolVersion), "the two sides have no TLS version in common");
        assert_eq!(
            alert(AlertDescription::UnknownCA),
            "the peer did not accept our certificate (alert UnknownCA)"
        );
        assert_eq!(
            alert(AlertDescription::InternalError),
            "the peer gave up TLS with the alert InternalError"
        );
        assert!(text(Error::DecryptError).starts_with("TLS failed: "));
    }
}
