//! The authority that signs certificates for recorded hosts.

use core::time::Duration;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use plimsoll_core::{Nanos, calendar};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::hosts::Hosts;

/// Front of the name of every authority, as browsers list it; older versions have it, too.
const NAME: &str = "Plimsoll recording proxy";
/// Seconds of a day, of 24 hours.
const DAY: u64 = 86_400;
/// Days for which an authority is valid: whoever reads its key later has the rest of them.
const AUTHORITY_DAYS: u64 = 365;
/// Days for which a certificate of a host is valid at most: no recording lasts longer.
const HOST_DAYS: u64 = 30;
/// Days before its end from which an authority is not used any more, so that none ends within a recording.
const LAST_DAYS: u64 = 7;
/// Days by which certificates begin earlier: the clock of a client may be behind.
const SLACK_DAYS: u64 = 1;
/// Certificates of hosts that are kept at most. Others take their place, and cost a signature when they are
/// needed again.
pub(crate) const MOST_HOSTS: usize = 500;
/// Most characters of a name within a certificate (RFC 5280, `ub-common-name`).
const LONGEST_NAME: usize = 64;
/// Random bytes of a serial number.
const SERIAL_BYTES: usize = 16;

/// An authority of one machine: a key, and the certificate to be trusted by the recorded client.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    hosts: Hosts,
    /// The end of its validity, in seconds since 1970.
    until: u64,
    /// Both as PEM.
    certificate: String,
    key: String,
    /// The key of all hosts' certificates.
    host_key: KeyPair,
    made: HashMap<String, Made>,
}

/// The TLS of a host.
struct Made {
    config: Arc<ServerConfig>,
    /// The end of its certificate's validity, in seconds since 1970.
    until: u64,
}

/// Reason why an authority that was made before is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// An authority whose time is over, or of another version: a new one takes its place. In words.
    Stale(String),
    /// A certificate that this program has not made, and so may not replace. In words.
    Foreign(String),
}

/// Without the keys.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a new authority for these hosts, valid for a year from `now`, a time since 1970.
    ///
    /// # Errors
    /// In words: the system gives no random numbers.
    pub fn generate(hosts: Hosts, now: Nanos) -> Result<Self, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let until = seconds(now) + AUTHORITY_DAYS * DAY;
        let certificate = certificate_of(&hosts, until, &key)?.pem();
        Self::with(hosts, until, key, certificate)
    }

    /// The authority of these hosts that was made before, of its certificate and its key in PEM.
    ///
    /// # Errors
    /// It has expired at `now`, a time since 1970, or soon will; or it is another one.
    pub fn read(certificate: &str, key: &str, hosts: Hosts, now: Nanos) -> Result<Self, Unusable> {
        let foreign = || Unusable::Foreign("it is no certificate of this program".to_owned());
        let found = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|_| foreign())?;
        let anchor = anchor_from_trusted_cert(&found).map_err(|_| foreign())?;
        if !anchor.subject.windows(NAME.len()).any(|part| part == NAME.as_bytes()) {
            return Err(foreign());
        }
        let until = not_after(&found).ok_or_else(foreign)?;
        let now = seconds(now);
        let last = |has: &str| Err(Unusable::Stale(format!("{has} {}", date(until))));
        if until <= now {
            return last("it has expired on");
        }
        if until <= now + LAST_DAYS * DAY {
            return last("it expires on");
        }
        if until > now + (AUTHORITY_DAYS + SLACK_DAYS) * DAY {
            return last("it is of an older version, and valid until");
        }
        let stale = |wrong: &str| Unusable::Stale(wrong.to_owned());
        let key = KeyPair::from_pem(key).map_err(|_| stale("its key cannot be read"))?;
        // The name, the key and the constraints are those that it would be made with.
        let wanted = certificate_of(&hosts, until, &key).map_err(Unusable::Stale)?;
        if anchor_from_trusted_cert(wanted.der()) != Ok(anchor) {
            return Err(stale("it is of another version, for other names or of another key"));
        }
        Self::with(hosts, until, key, certificate.to_owned()).map_err(Unusable::Stale)
    }

    fn with(hosts: Hosts, until: u64, key: KeyPair, certificate: String) -> Result<Self, String> {
        let text = key.serialize_pem();
        let host_key = KeyPair::generate().map_err(|error| error.to_string())?;
        let issuer = Issuer::new(params(&hosts, until), key);
        Ok(Self { issuer, hosts, until, certificate, key: text, host_key, made: HashMap::new() })
    }

    /// Returns the certificate to be trusted, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns its key, as PEM. It decrypts the connections of every client that trusts the
    /// certificate.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the last day of its validity, as `2026-03-01`.
    pub fn last_day(&self) -> String {
        date(self.until)
    }

    pub(crate) const fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The TLS of a host, by a certificate that is signed for its name.
    ///
    /// # Errors
    /// In words: `host` is no name that a certificate can have, or none of the authority's.
    pub(crate) fn server_config(&mut self, host: &str, now: Nanos) -> Result<Arc<ServerConfig>, String> {
        let is_valid = |made: &&Made| seconds(now) + DAY < made.until;
        if let Some(known) = self.made.get(host).filter(is_valid) {
            return Ok(Arc::clone(&known.config));
        }
        let until = self.until.min(seconds(now) + HOST_DAYS * DAY);
        let signed = self.sign(host, now, until)?;
        let config = Arc::new(self.config(&signed)?);
        if self.made.len() >= MOST_HOSTS {
            self.made.clear();
        }
        self.made.insert(host.to_owned(), Made { config: Arc::clone(&config), until });
        Ok(config)
    }

    fn sign(&self, host: &str, now: Nanos, until: u64) -> Result<Certificate, String> {
        if !self.hosts.has(host) {
            return Err(format!("{host} is not among the hosts that are recorded"));
        }
        let name = ServerName::try_from(host).map_err(|_| "no certificate can have this name".to_owned())?;
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(|error| error.to_string())?;
        params.distinguished_name = DistinguishedName::new();
        // OpenSSL takes any name of this form for that of a host, an address too, and holds it against the
        // constraints.
        let is_short = matches!(name, ServerName::DnsName(_)) && host.len() <= LONGEST_NAME;
        params.distinguished_name.push(DnType::CommonName, if is_short { host } else { "A recorded host" });
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        // By default a hash of the key, which all hosts share. No two certificates of an issuer may have one
        // number (RFC 5280 section 4.1.2.2), and NSS refuses the second one.
        params.serial_number = Some(serial_number()?);
        (params.not_before, params.not_after) = (
            date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds(now).saturating_sub(SLACK_DAYS * DAY)),
            date_time_ymd(1970, 1, 1) + Duration::from_secs(until),
        );
        params.signed_by(&self.host_key, &self.issuer).map_err(|error| error.to_string())
    }

    fn config(&self, signed: &Certificate) -> Result<ServerConfig, String> {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.host_key.serialize_der()));
        let chain: Vec<CertificateDer<'static>> = vec![signed.der().clone()];
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?.with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key).map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn certificate_of(hosts: &Hosts, until: u64, key: &KeyPair) -> Result<Certificate, String> {
    params(hosts, until).self_signed(key).map_err(|error| error.to_string())
}

/// Parameters that depend on hosts and end alone, so that these and the key make the same issuer again.
fn params(hosts: &Hosts, until: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // Browsers list it among others: which one is to be removed has to be seen.
    params.distinguished_name.push(DnType::CommonName, format!("{NAME} until {}", date(until)));
    let names: String = hosts.to_string().chars().take(LONGEST_NAME).collect();
    params.distinguished_name.push(DnType::OrganizationalUnitName, names);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // Of servers alone: neither mail nor programs.
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.name_constraints = hosts.constraints();
    let from = until.saturating_sub((AUTHORITY_DAYS + SLACK_DAYS) * DAY);
    params.not_before = date_time_ymd(1970, 1, 1) + Duration::from_secs(from);
    params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(until);
    params
}

fn serial_number() -> Result<SerialNumber, String> {
    let mut bytes = [0; SERIAL_BYTES];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| "the system gives no random numbers".to_owned())?;
    // A positive number, whose length is that of the bytes.
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// The end of a certificate's validity, in seconds since 1970: that of the error when it is looked at after
/// all times.
fn not_after(certificate: &CertificateDer<'_>) -> Option<u64> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let never = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    match parsed.verify_for_usage(&[], &[], &[], never, KeyUsage::server_auth(), None, None) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(not_after.as_secs()),
        _ => None,
    }
}

const fn seconds(unix: Nanos) -> u64 {
    unix.0 / 1_000_000_000
}

fn date(unix_seconds: u64) -> String {
    let micros = i64::try_from(unix_seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    calendar::rfc3339_of_micros(micros, 0).split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
