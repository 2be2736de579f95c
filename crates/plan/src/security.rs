//! TLS towards the targets, and credentials.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_document::{Problem, RawValue};
use plimsoll_scenario::Template;
use plimsoll_scenario::token::Signer;
use plimsoll_wire::tls::{
    ClientConfig, ClientOptions, Identity, KeyLogSink, TlsConfigError, TlsFile, Versions,
};

use crate::files::KeyLog;
use crate::grants::unreadable;
use crate::protocol::ProtocolPreference;
use crate::resolve::Resolver;
use crate::tokens::OF_FLAGS;
use crate::{Fingerprint, PlanPatch};

/// TLS towards the targets of a plan, and servers elsewhere.
pub(crate) struct TlsPart {
    /// There if a target speaks TLS.
    pub(crate) settings: Option<TlsSettings>,
    /// Options that the configuration is built from; present if it may be needed.
    pub(crate) options: Option<ClientOptions>,
}

/// TLS towards all targets.
pub(crate) struct TlsSettings {
    pub(crate) config: ClientConfig,
    pub(crate) fingerprint: Fingerprint,
}

impl Resolver<'_> {
    /// One configuration for all targets, if any of them speaks TLS, and the settings it was built from, also
    /// if only servers that come up during the run may speak it.
    pub(crate) fn tls(
        &mut self,
        patch: &PlanPatch,
        preference: &ProtocolPreference,
        needed: bool,
        dynamic_origins: bool,
    ) -> Option<TlsPart> {
        let versions = self.read(patch.tls.as_ref(), parse_versions);
        if !needed && !dynamic_origins {
            self.refuse_tls_flags(patch);
            return versions.map(|_| TlsPart { settings: None, options: None });
        }
        let authorities = match &patch.cacert {
            Some(given) => self.file(given, &given.text).map(|pem| vec![pem]),
            None => Some(Vec::new()),
        };
        let identity = self.identity(patch);
        let key_log = match &patch.key_log {
            None => Some(None),
            Some(path) => match self.files.key_log(path) {
                Ok(file) => Some(Some(Arc::new(KeyLog(file)) as Arc<dyn KeyLogSink>)),
                Err(error) => self
                    .fail(Problem::new(format!("SSLKEYLOGFILE: cannot open `{}`: {error}", path.display()))),
            },
        };
        if let (Some(insecure), Some(cacert)) = (patch.insecure.given(), &patch.cacert) {
            let message = format!("{} has no effect with {}", cacert.by, insecure.by);
            return self.fail(
                Problem::new(message)
                    .at(cacert.place.or(insecure.place))
                    .with_hint("leave `-k` out to verify with this certificate"),
            );
        }
        let options = ClientOptions {
            verify: !patch.insecure.is_on(),
            ca_pem: authorities?,
            identity: identity?,
            alpn: preference.alpn(),
            versions: versions?.unwrap_or(Versions::Both),
            resumption: true,
            key_log: key_log?,
        };
        if !needed {
            return Some(TlsPart { settings: None, options: Some(options) });
        }
        match ClientConfig::new(&options) {
            Ok(config) => {
                let settings = TlsSettings { config, fingerprint: fingerprint(&options) };
                Some(TlsPart { settings: Some(settings), options: Some(options) })
            }
            Err(error) => {
                let problem = tls_problem(patch, &error);
                self.fail(problem)
            }
        }
    }

    /// A flag without effect is a mistake: nothing is ignored silently.
    fn refuse_tls_flags(&mut self, patch: &PlanPatch) {
        let given = [&patch.cacert, &patch.cert, &patch.key, &patch.tls, &patch.sni];
        for given in given.into_iter().flatten().chain(patch.insecure.given()) {
            self.problems.push(
                given
                    .problem(format!("{} has no effect: no URL is https", given.by))
                    .with_hint("write https:// or leave the flag out"),
            );
        }
    }

    /// The client's certificate. One file may hold both parts.
    fn identity(&mut self, patch: &PlanPatch) -> Option<Option<Identity>> {
        let (certificate, key) = match (&patch.cert, &patch.key) {
            (None, None) => return Some(None),
            (None, Some(key)) => {
                return self.fail(key.problem(format!("{} needs --cert", key.by)));
            }
            (Some(certificate), key) => (certificate, key.as_ref()),
        };
        let cert_pem = self.file(certificate, &certificate.text);
        let key_pem = match key {
            Some(key) => self.file(key, &key.text),
            None => cert_pem.clone(),
        };
        let (cert_pem, key_pem) = (cert_pem?, key_pem?);
        if !holds(&cert_pem, CERTIFICATE) {
            let message =
                format!("{}: `{}` holds no certificate in PEM format", certificate.by, certificate.text);
            return self.fail(certificate.problem(message).with_hint(PEM_HINT));
        }
        let has_key = holds(&key_pem, "PRIVATE KEY-");
        if key.is_none() && !has_key {
            let message = format!("{}: `{}` has no private key", certificate.by, certificate.text);
            return self.fail(certificate.problem(message).with_hint("give the key's file with `--key`"));
        }
        Some(Some(Identity { cert_pem, key_pem }))
    }

    /// Reads a file that a flag names.
    pub(crate) fn file(&mut self, given: &RawValue, path: &str) -> Option<Vec<u8>> {
        if path.is_empty() {
            return self.fail(given.problem(format!("{}: the file name is empty", given.by)));
        }
        if given.reported {
            return None;
        }
        match self.content(&self.path(given, path), given.place.is_some()) {
            Ok(content) => Some(content),
            Err(error) => {
                let mut problem = unreadable(path, &error);
                problem.message = format!("{}: {}", given.by, problem.message);
                self.fail(problem.at(given.place))
            }
        }
    }

    /// The value of an Authorization header that the flags ask for.
    /// A template.
    pub(crate) fn authorization(
        &mut self,
        patch: &PlanPatch,
        token: Option<&Signer>,
    ) -> Option<Option<String>> {
        if token.is_some() {
            return Some(Some(format!("Bearer ${{token({OF_FLAGS})}}")));
        }
        let basic = patch.basic.as_ref().map(|given| (given, self.secret(given)));
        let bearer = patch.bearer.as_ref().map(|given| (given, self.secret(given)));
        match (basic, bearer) {
            (None, None) => Some(None),
            (Some((basic, _)), Some((bearer, _))) => {
                let message = format!("{} and {} exclude each other", basic.by, bearer.by);
                self.fail(bearer.problem(message))
            }
            (Some((given, secret)), None) => match basic_authorization(&secret?) {
                Some(value) => Some(Some(Template::escape(&value))),
                None => self.fail(given.problem(format!("{}: no `:` between user and password", given.by))),
            },
            (None, Some((given, secret))) => {
                let token = secret?;
                if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                    let message =
                        format!("{}: the token is empty or has characters that no token has", given.by);
                    return self.fail(given.problem(message));
                }
                Some(Some(Template::escape(&format!("Bearer {token}"))))
            }
        }
    }

    /// A credential: the text itself, or the first line of `@file`.
    fn secret(&mut self, given: &RawValue) -> Option<String> {
        if given.reported {
            return None;
        }
        let Some(path) = given.text.strip_prefix('@') else {
            return Some(given.text.clone());
        };
        let content = self.file(given, path)?;
        match String::from_utf8(content) {
            Ok(text) => Some(text.lines().next().unwrap_or_default().trim().to_owned()),
            Err(_) => self.fail(given.problem(format!("{}: `{path}` is not text", given.by))),
        }
    }
}

/// First line of a certificate in PEM.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
/// Advice about a file without a certificate.
const PEM_HINT: &str = "a certificate in PEM begins with -----BEGIN CERTIFICATE-----; \
    `openssl x509 -inform der -in FILE -out FILE.pem` makes one of DER";

fn holds(pem: &[u8], part: &str) -> bool {
    pem.windows(part.len()).any(|window| window == part.as_bytes())
}

/// A configuration that cannot be used, with the name of the file that is at fault.
fn tls_problem(patch: &PlanPatch, error: &TlsConfigError) -> Problem {
    let given = match error.file {
        Some(TlsFile::Authorities) => patch.cacert.as_ref(),
        Some(TlsFile::ClientCertificate) => patch.cert.as_ref(),
        Some(TlsFile::ClientKey) => patch.key.as_ref().or(patch.cert.as_ref()),
        _ => None,
    };
    let Some(given) = given else { return Problem::new(format!("TLS: {error}")) };
    let problem = given.problem(format!("{}: `{}` {}", given.by, given.text, error.reason));
    match error.reason.contains("no certificate") {
        true => problem.with_hint(PEM_HINT),
        false => problem,
    }
}

/// Identifies the options, without the key.
fn fingerprint(options: &ClientOptions) -> Fingerprint {
    let versions = match options.versions {
        Versions::Both => 0,
        Versions::Tls12 => 1,
        Versions::Tls13 => 2,
    };
    let offers = options.alpn.len() as u8;
    let mut hash = Fingerprint::EMPTY.with(&[u8::from(options.verify), versions, offers]);
    for part in options.alpn.iter().chain(&options.ca_pem) {
        hash = hash.with_field(part);
    }
    match &options.identity {
        None => hash,
        // With both parts in one file, only its presence counts: the key is in it.
        Some(identity) if identity.cert_pem == identity.key_pem => hash.with(&[1]),
        Some(identity) => hash.with(&[2]).with_field(&identity.cert_pem),
    }
}

/// RFC 7617: `user:password` in base64; `None` without a colon.
pub(crate) fn basic_authorization(credentials: &str) -> Option<String> {
    credentials.contains(':').then(|| format!("Basic {}", BASE64_STANDARD.encode(credentials)))
}

fn parse_versions(text: &str) -> Result<Versions, String> {
    match text {
        "1.2" => Ok(Versions::Tls12),
        "1.3" => Ok(Versions::Tls13),
        _ => Err(format!("`{text}` is not one of 1.2, 1.3")),
    }
}
