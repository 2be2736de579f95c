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

/// Verifies the certificates of servers. The signature of the handshake is checked whatever is trusted: the
/// work is that of a handshake in earnest, and a peer that does not hold its key is noticed.
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
    /// webpki never takes the certificate of an authority (`CA:TRUE`, what `openssl req -x509` makes) for
    /// that of a server, even if exactly this certificate is trusted. OpenSSL, and so curl, does. Here, too,
    /// a server may show a certificate that is in the CA file byte for byte: validity, name and the
    /// possession of its key are checked as ever. And a certificate that signs itself is told apart from one
    /// of an unknown authority.
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

    /// Accepts what the authorities vouch for, and servers that show one of the certificates in `given`.
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
            // webpki looks at the validity before this: tests/tls/refusals.rs holds it to that.
            _ if is_authority(&reason) && given.contains(end_entity) => {
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

/// The certificate names itself as its issuer, and nobody else vouches for it.
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

fn signs_itself(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}
