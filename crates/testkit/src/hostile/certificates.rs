//! Certificates that are good, and such as no client should accept.

use std::sync::OnceLock;

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, CustomExtension, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate of a server, by its fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Nothing.
    Good,
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    Early,
    /// The certificate is for another host.
    OtherHost,
    /// The certificate is for no host.
    NoHost,
    /// An authority of the same name signed it, with another key.
    OtherAuthority,
    /// The certificate is signed only by itself.
    SelfSigned,
    /// The certificate is that of the authority.
    Authority,
    /// The certificate is for clients only.
    ClientsOnly,
    /// The certificate was signed by one that is not of an authority.
    NoAuthority,
    /// The certificate was signed by an authority that may vouch for other names only.
    Constrained,
    /// The certificate was signed by an authority that is not shown.
    Gap,
    /// The certificate has an unknown critical extension.
    CriticalExtension,
    /// A bit of the certificate's signature is wrong.
    BadSignature,
    /// The certificate was signed with a method that is too weak.
    WeakSignature,
    /// The server does not have its key.
    OtherKey,
    /// The bytes are not a certificate.
    Garbage,
    /// The bytes are half a certificate.
    Half,
    /// The certificate comes with 99 others, and none of them vouches for it.
    LongChain,
}

/// The authority that clients trust.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pem: String,
}

fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(new_authority)
}

/// The authority that clients have to trust, in PEM.
pub fn authority_pem() -> &'static str {
    &authority().pem
}

fn new_authority() -> Authority {
    let (params, key) = (authority_params("Hostile servers"), key());
    let certificate = params.self_signed(&key).expect("the parameters are good");
    let (der, pem) = (certificate.der().clone(), certificate.pem());
    Authority { issuer: Issuer::new(params, key), der, pem }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key can be made")
}

/// The certificate chain of a server, and the key with which it signs.
pub(super) fn chain(identity: Identity) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let own = key();
    let names = |name: &str| CertificateParams::new(vec![name.to_owned()]).expect("the name is one");
    let mut params = names("127.0.0.1");
    params.distinguished_name.push(DnType::CommonName, "server");
    let authority = authority();
    let signed = |params: &CertificateParams, issuer: &Issuer<'static, KeyPair>| {
        params.signed_by(&own, issuer).expect("the parameters are good").der().clone()
    };
    let by_authority = |params: &CertificateParams| signed(params, &authority.issuer);
    // A certificate between the authority and the server.
    let between = |middle: CertificateParams| {
        let key = key();
        let der = middle.signed_by(&key, &authority.issuer).expect("the parameters are good").der().clone();
        (der, Issuer::new(middle, key))
    };
    let chain = match identity {
        Identity::Good => vec![by_authority(&params)],
        Identity::Expired => {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
            vec![by_authority(&params)]
        }
        Identity::Early => {
            (params.not_before, params.not_after) = (date_time_ymd(3000, 1, 1), date_time_ymd(3001, 1, 1));
            vec![by_authority(&params)]
        }
        Identity::OtherHost => vec![by_authority(&names("other.test"))],
        Identity::NoHost => {
            params.subject_alt_names.clear();
            vec![by_authority(&params)]
        }
        Identity::OtherAuthority => vec![signed(&params, &new_authority().issuer)],
        Identity::SelfSigned => {
            vec![params.self_signed(&own).expect("the parameters are good").der().clone()]
        }
        // Its key differs; the key is checked last.
        Identity::Authority => vec![authority.der.clone()],
        Identity::ClientsOnly => {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            vec![by_authority(&params)]
        }
        Identity::NoAuthority => {
            let (der, issuer) = between(names("127.0.0.1"));
            vec![signed(&params, &issuer), der]
        }
        Identity::Constrained => {
            let mut middle = authority_params("Authority of other names");
            let subnet = GeneralSubtree::IpAddress(CidrSubnet::V4([10, 0, 0, 0], [255, 0, 0, 0]));
            middle.name_constraints =
                Some(NameConstraints { permitted_subtrees: vec![subnet], excluded_subtrees: Vec::new() });
            let (der, issuer) = between(middle);
            vec![signed(&params, &issuer), der]
        }
        Identity::Gap => {
            let (_, issuer) = between(authority_params("Authority that is not shown"));
            vec![signed(&params, &issuer)]
        }
        Identity::CriticalExtension => {
            let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![5, 0]);
            extension.set_criticality(true);
            params.custom_extensions.push(extension);
            vec![by_authority(&params)]
        }
        Identity::BadSignature => {
            let mut der = by_authority(&params).to_vec();
            // The signature stands last.
            let last = der.len() - 1;
            der[last] ^= 1;
            vec![der.into()]
        }
        Identity::WeakSignature => {
            let mut der = by_authority(&params).to_vec();
            // ecdsa-with-SHA256, whose last byte is 1 for SHA-224 (RFC 5758 section 3.2); it is named twice.
            let method = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
            let places: Vec<usize> = (0..der.len()).filter(|&at| der[at..].starts_with(&method)).collect();
            for at in places {
                der[at + method.len() - 1] = 1;
            }
            vec![der.into()]
        }
        Identity::OtherKey => {
            let other = params.signed_by(&key(), &authority.issuer).expect("the parameters are good");
            vec![other.der().clone()]
        }
        Identity::Garbage => vec![vec![0xff; 500].into()],
        Identity::Half => {
            let der = by_authority(&params);
            vec![der[..der.len() / 2].to_vec().into()]
        }
        Identity::LongChain => {
            let mut chain = vec![signed(&params, &new_authority().issuer)];
            chain.resize(100, authority.der.clone());
            chain
        }
    };
    (chain, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der())))
}
