//! Verifiers of server certificates: one that takes trusted certificates at their word, and one that accepts
//! every certificate.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::EndEntityCert;

/// Verifies as webpki does, and accepts two more things for what they are.
///
/// webpki never takes the certificate of an authority (`CA:TRUE`, what `openssl req -x509` makes) for that of
/// a server, even if exactly this certificate is trusted. OpenSSL, and so curl, does. Here, too, a server may
/// show a certificate that is in the CA file byte for byte: validity, name and the possession of its key are
/// checked as ever. And a certificate that signs itself is told from one of an unknown authority.
#[derive(Debug)]
pub(super) struct TrustGiven {
    verifier: Arc<WebPkiServerVerifier>,
    /// The certificates of the CA file; none where the system's authorities are trusted.
    given: Vec<CertificateDer<'static>>,
}

impl TrustGiven {
    pub(super) fn new(verifier: Arc<WebPkiServerVerifier>, given: Vec<CertificateDer<'static>>) -> Self {
        Self { verifier, given }
    }
}

impl ServerCertVerifier for TrustGiven {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(rustls::Error::InvalidCertificate(reason)) = verified else { return verified };
        match reason {
            // webpki looks at the validity before this: tests/tls/refusals.rs holds it to that.
            _ if is_authority(&reason) && self.given.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
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
        self.verifier.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// The certificate names itself as its issuer, and nobody else vouches for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is signed by itself, and is not one that is trusted")
    }
}

impl std::error::Error for SelfSigned {}

/// Whether it is the certificate of an authority that a server shows.
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

fn signs_itself(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}

/// Accepts every certificate (`-k`), but still checks that the peer holds its key: the handshake stays the
/// work that it is in earnest, and a broken peer is still noticed.
#[derive(Debug)]
pub(super) struct AcceptAny(pub(super) Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
