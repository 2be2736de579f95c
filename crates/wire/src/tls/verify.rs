//! The verifier of server certificates.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::EndEntityCert;

/// Verifies the certificates of servers. The signature of the handshake is checked in every case: the work is
/// that of a handshake in earnest, and a peer that does not hold its key is noticed.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    trust: Trust,
}

#[derive(Debug)]
enum Trust {
    /// Every certificate (`-k`).
    Any,
    /// Verification by webpki, with two additions.
    ///
    /// webpki never takes the certificate of an authority (`CA:TRUE`, as made by `openssl req -x509`) for
    /// that of a server, even if exactly this certificate is trusted. OpenSSL, and so curl, does. Here, too,
    /// a server may show a certificate that is in the CA file byte for byte: validity, name and the
    /// possession of its key are checked as usual. If it has no alternative name, the name is the common name
    /// of its subject, as in OpenSSL: RFC 6125 (6.4.4) allows that, and `openssl req -x509` writes no other.
    /// A self-signed certificate gets an error of its own, beside that of an unknown authority.
    Given {
        verifier: Arc<WebPkiServerVerifier>,
        /// The certificates of the CA file; none where the system's authorities are trusted.
        given: Vec<CertificateDer<'static>>,
    },
}

impl Verifier {
    /// Accepts every certificate.
    pub(super) fn any(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, trust: Trust::Any }
    }

    /// Accepts certificates that the authorities vouch for, and servers that show one of the certificates in
    /// `given`.
    ///
    /// # Errors
    /// If there is no authority.
    pub(super) fn of(
        provider: Arc<CryptoProvider>,
        authorities: RootCertStore,
        given: Vec<CertificateDer<'static>>,
    ) -> Result<Self, VerifierBuilderError> {
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider));
        Ok(Self { provider, trust: Trust::Given { verifier: builder.build()?, given } })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Trust::Given { verifier, given } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(rustls::Error::InvalidCertificate(reason)) = verified else { return verified };
        match reason {
            // webpki has checked the validity before this: tests/tls/refusals.rs asserts that.
            _ if is_authority(&reason) && given.contains(end_entity) => {
                verify_name_of_given(end_entity, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            // Everything but the name was verified.
            _ if is_name(&reason) && given.contains(end_entity) => {
                verify_name_of_given(end_entity, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ if (is_authority(&reason) || is_unknown(&reason)) && signs_itself(end_entity) => {
                Err(CertificateError::Other(OtherError(Arc::new(SelfSigned))).into())
            }
            reason => Err(reason.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The certificate names itself as its issuer, and has no other signature.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is signed by itself, and is not one that is trusted")
    }
}

impl std::error::Error for SelfSigned {}

/// Returns `true` if the certificate was refused because a server showed that of an authority.
pub(super) fn is_authority(reason: &CertificateError) -> bool {
    matches!(
        reason,
        CertificateError::Other(OtherError(error))
            if matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
    )
}

fn is_unknown(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::UnknownIssuer)
}

fn is_name(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
}

/// Verifies the name of a certificate that is itself trusted.
fn verify_name_of_given(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
) -> Result<(), rustls::Error> {
    let (expected, presented) =
        match verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name) {
            Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                expected,
                presented,
            })) => (expected, presented),
            verified => return verified,
        };
    let common = match EndEntityCert::try_from(certificate) {
        Ok(parsed) if presented.is_empty() => common_name(parsed.subject()).map(str::to_owned),
        _ => None,
    };
    match common {
        Some(common) if common.eq_ignore_ascii_case(&server_name.to_str()) => Ok(()),
        common => {
            let presented = if presented.is_empty() { common.into_iter().collect() } else { presented };
            Err(CertificateError::NotValidForNameContext { expected, presented }.into())
        }
    }
}

/// The last common name of a subject (RFC 5280, 4.1.2.6), the most specific one, if it is plain text: the
/// content of a sequence of sets of pairs of a type and a value in DER.
fn common_name(subject: &[u8]) -> Option<&str> {
    /// `id-at-commonName`, 2.5.4.3.
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    const SEQUENCE: u8 = 0x30;
    const SET: u8 = 0x31;
    const TYPE: u8 = 0x06;
    /// UTF8String, PrintableString, T61String, IA5String.
    const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];
    let (mut rest, mut found) = (subject, None);
    while let Some((SET, mut set, after)) = element(rest) {
        while let Some((SEQUENCE, pair, next)) = element(set) {
            let (TYPE, kind, value) = element(pair)? else { return None };
            let (tag, text, _) = element(value)?;
            if kind == COMMON_NAME && TEXTS.contains(&tag) {
                found = std::str::from_utf8(text).ok();
            }
            set = next;
        }
        rest = after;
    }
    found
}

/// Tag and content of the first element of DER, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let count = usize::from(first & 0x7f);
        let (bytes, after) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
        length = bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

fn signs_itself(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}
