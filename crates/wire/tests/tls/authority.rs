//! Certificates for the tests.

use plimsoll_wire::tls::{ClientConfig, ClientOptions, Identity, ServerConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// A certificate for these names (or addresses), valid in the years from the first to the last.
    pub(crate) fn issue_for(&self, names: &[&str], key: &KeyPair, years: (i32, i32)) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        self.sign(&params, key)
    }

    /// A certificate of any kind.
    pub(crate) fn sign(&self, params: &CertificateParams, key: &KeyPair) -> Vec<u8> {
        params.signed_by(key, &self.0).unwrap().pem().into_bytes()
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_between(names, (2020, 4000))
    }

    pub(crate) fn issue_between(&self, names: &[&str], years: (i32, i32)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let cert_pem = self.issue_for(names, &key, years);
        Identity { cert_pem, key_pem: key.serialize_pem().into_bytes() }
    }

    /// A server for these names that speaks HTTP/1.1 and asks for no client certificate.
    pub(crate) fn server(&self, names: &[&str]) -> ServerConfig {
        server(&self.issue(names), None)
    }

    /// Options of a client that trusts this authority.
    pub(crate) fn trust(&self) -> ClientOptions {
        ClientOptions { ca_pem: vec![self.pem()], ..ClientOptions::default() }
    }

    pub(crate) fn client(&self) -> ClientConfig {
        ClientConfig::new(&self.trust()).unwrap()
    }
}

pub(crate) fn server(identity: &Identity, client_ca: Option<&[u8]>) -> ServerConfig {
    ServerConfig::new(&identity.cert_pem, &identity.key_pem, &[b"http/1.1".to_vec()], client_ca).unwrap()
}
