//! JSON Web Tokens (RFC 7519) that are signed here, and signed again before they expire.
//!
//! A [`Signer`] has the key and the claims and is the same for all workers; [`Tokens`] are those of one
//! worker. Time is an argument: the owner of the tokens calls [`Tokens::due`] and renews the one that is due.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use plimsoll_core::Random;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

use crate::slot::{base64url, write_decimal, write_random_hex};
use crate::{Context, Scope, Template};

/// Signature algorithm of a token (RFC 7518 section 3.1, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All of them, in the order of messages.
    pub const ALL: [Self; 6] = [Self::Hs256, Self::Hs384, Self::Hs512, Self::Es256, Self::EdDsa, Self::Rs256];

    /// Returns the name of the algorithm in the header of a token.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// Describes a key for this algorithm in words.
    const fn key(self) -> &'static str {
        match self {
            Self::Hs256 | Self::Hs384 | Self::Hs512 => "any text or bytes",
            Self::Rs256 => "an RSA private key of 2048 bits or more (PEM, PKCS#8 or PKCS#1)",
            Self::Es256 => "a private key on the curve P-256 (PEM, PKCS#8 or SEC1)",
            Self::EdDsa => "an Ed25519 private key (PEM, PKCS#8)",
        }
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(text));
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not an algorithm of signatures; it can be one of {names}")
        })
    }
}

/// A claim that is made at each signing (RFC 7519 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// `iat`: when it was signed, in whole seconds since 1970.
    IssuedAt,
    /// `exp`: when it expires, likewise.
    Expires,
    /// `nbf`: not valid before it was signed.
    NotBefore,
    /// `jti`: 32 random hexadecimal digits.
    Id,
}

impl Stamp {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::IssuedAt, Self::Expires, Self::NotBefore, Self::Id];
    /// The stamps of a token, unless others are given.
    pub const DEFAULT: [Self; 2] = [Self::IssuedAt, Self::Expires];

    /// The name of the claim.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IssuedAt => "iat",
            Self::Expires => "exp",
            Self::NotBefore => "nbf",
            Self::Id => "jti",
        }
    }
}

/// Specification of a token.
#[derive(Clone, Debug)]
pub struct TokenSpec {
    /// Name of the token in templates.
    pub name: String,
    /// Signature algorithm.
    pub algorithm: Algorithm,
    /// `kid` of the header.
    pub key_id: Option<String>,
    /// The claims, a JSON object; its texts may have slots, which are rendered at each signing.
    pub claims: String,
    /// Claims that are made at each signing.
    pub stamps: Vec<Stamp>,
    /// From `iat` to `exp`, in seconds.
    pub lifetime_s: u64,
    /// Time before `exp` at which the token is signed again, in nanoseconds.
    pub refresh_before_ns: u64,
}

/// Problem with a token, and advice on how to fix it. The key is never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    /// Which part of the spec it is about.
    pub about: TokenPart,
    /// Description of the problem.
    pub message: String,
    /// Advice on how to fix it.
    pub hint: String,
}

/// A part of the source of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenPart {
    /// The key.
    Key,
    /// The claims.
    Claims,
    /// The lifetime, or when it is signed again.
    Lifetime,
}

enum Key {
    Hmac(Box<hmac::Key>),
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Signs tokens of one kind. Its key is in nothing that it shows.
pub struct Signer {
    spec: TokenSpec,
    key: Key,
    /// The header as it stands in tokens, with the point behind it.
    header: Vec<u8>,
    /// The object of claims without its last brace.
    claims: Template,
    /// `true` if the claims have no member.
    is_empty: bool,
    has_subject: bool,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Signers are equal if their sources are, except for the key, which is not compared.
impl PartialEq for Signer {
    fn eq(&self, other: &Self) -> bool {
        let parts = |signer: &Self| {
            let TokenSpec { name, algorithm, key_id, claims, stamps, lifetime_s, refresh_before_ns } =
                signer.spec.clone();
            (name, algorithm, key_id, claims, stamps, lifetime_s, refresh_before_ns)
        };
        parts(self) == parts(other)
    }
}

impl Eq for Signer {}

impl Signer {
    /// A signer with this key: bytes for HMAC, else PEM. The texts of the claims may use the names in
    /// `scope`, but no variables.
    ///
    /// # Errors
    /// The key does not fit the algorithm, the claims are not an object, or the times do not go together.
    pub fn new(spec: TokenSpec, key: &[u8], scope: &Scope<'_>) -> Result<Self, TokenError> {
        // `exp` is cut to whole seconds, so that up to one of the lifetime is not there.
        if spec.lifetime_s.saturating_sub(1).saturating_mul(1_000_000_000) < spec.refresh_before_ns
            || spec.lifetime_s < 2
        {
            return Err(TokenError {
                about: TokenPart::Lifetime,
                message: format!("a lifetime of {}s ends before the token is signed again", spec.lifetime_s),
                hint:
                    "it takes at least a second more than refresh_before, and 2s in all: `exp` is in whole \
                       seconds"
                        .to_owned(),
            });
        }
        let key = Key::read(spec.algorithm, key)?;
        let (claims, names) = claims(&spec, scope)?;
        let mut header = serde_json::Map::new();
        header.insert("alg".to_owned(), spec.algorithm.name().into());
        header.insert("typ".to_owned(), "JWT".into());
        if let Some(id) = &spec.key_id {
            header.insert("kid".to_owned(), id.clone().into());
        }
        let mut header = Value::Object(header).to_string().into_bytes();
        base64url(0, &mut header);
        header.push(b'.');
        let has_subject = names.iter().any(|name| name == "sub");
        let signer = Self { key, header, claims, is_empty: names.is_empty(), has_subject, spec };
        // A trial signature finds keys that cannot sign.
        let mut trial = Vec::new();
        signer.write(None, 0, &mut Random::new(0, 0), &mut trial);
        match trial.is_empty() {
            false => Ok(signer),
            true => Err(wrong_key(signer.spec.algorithm)),
        }
    }

    /// Returns the name of the token in templates.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Returns `true` if the claims have a `sub`.
    pub fn has_subject(&self) -> bool {
        self.has_subject
    }

    /// Returns `true` if signing takes about a millisecond, and not some microseconds.
    pub fn is_slow(&self) -> bool {
        matches!(self.key, Key::Rsa(_))
    }

    /// Returns the specification of the token, without the key: for fingerprints.
    pub fn spec(&self) -> &TokenSpec {
        &self.spec
    }

    /// The public key as its algorithm's signatures are verified with; `None` with HMAC.
    pub fn public_key(&self) -> Option<&[u8]> {
        match &self.key {
            Key::Hmac(_) => None,
            Key::Rsa(pair) => Some(pair.public_key().as_ref()),
            Key::Ecdsa(pair) => Some(pair.public_key().as_ref()),
            Key::Ed25519(pair) => Some(pair.public_key().as_ref()),
        }
    }

    /// Random numbers that a signing draws: always as many.
    pub(crate) fn draws(&self) -> u32 {
        self.claims.draws() + if self.spec.stamps.contains(&Stamp::Id) { ID_DRAWS } else { 0 }
    }

    /// Returns the text to sign, at a time in nanoseconds since 1970.
    pub fn draft(&self, unix_ns: u64, random: &mut Random) -> Draft {
        let mut input = Vec::with_capacity(512);
        let expires_s = self.write_input(None, unix_ns, random, &mut input);
        Draft { input, due_ns: self.due_ns(expires_s) }
    }

    /// Signs a draft: the token, empty if the system has no random numbers for it.
    pub fn sign(&self, draft: Draft) -> Signed {
        let Draft { input: mut text, due_ns } = draft;
        self.write_signature(0, &mut text);
        Signed { text, due_ns }
    }

    fn due_ns(&self, expires_s: u64) -> u64 {
        expires_s.saturating_mul(1_000_000_000).saturating_sub(self.spec.refresh_before_ns)
    }

    /// Appends a whole token, at a time in nanoseconds since 1970, with the escaped `sub` that stands in
    /// `out`. Without it, it allocates only for the growth of `out`.
    pub(crate) fn write(
        &self,
        subject: Option<Range<usize>>,
        unix_ns: u64,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        self.write_input(subject, unix_ns, random, out);
        self.write_signature(start, out);
    }

    /// Header and claims as they are signed; when it expires, in seconds since 1970.
    fn write_input(
        &self,
        subject: Option<Range<usize>>,
        unix_ns: u64,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) -> u64 {
        let issued_s = unix_ns / 1_000_000_000;
        let expires_s = issued_s + self.spec.lifetime_s;
        out.extend_from_slice(&self.header);
        let start = out.len();
        self.claims.render(&Context { unix_ns, ..Context::default() }, random, out);
        let mut first = self.is_empty;
        let mut separate = |out: &mut Vec<u8>, name: &str| {
            out.extend_from_slice(if std::mem::take(&mut first) { b"\"" } else { b",\"" });
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
        };
        if let Some(subject) = subject {
            separate(out, "sub");
            out.push(b'"');
            out.extend_from_within(subject);
            out.push(b'"');
        }
        for stamp in &self.spec.stamps {
            separate(out, stamp.name());
            match stamp {
                Stamp::IssuedAt | Stamp::NotBefore => write_decimal(issued_s, out),
                Stamp::Expires => write_decimal(expires_s, out),
                Stamp::Id => {
                    out.push(b'"');
                    write_random_hex(2 * 16, random, out);
                    out.push(b'"');
                }
            }
        }
        out.push(b'}');
        base64url(start, out);
        expires_s
    }

    /// Signs the text from `start` on, and removes it if that fails.
    fn write_signature(&self, start: usize, out: &mut Vec<u8>) {
        let end = out.len();
        out.push(b'.');
        let done = match &self.key {
            Key::Hmac(key) => {
                let tag = hmac::sign(key, &out[start..end]);
                out.extend_from_slice(tag.as_ref());
                true
            }
            Key::Ed25519(pair) => {
                let signature = pair.sign(&out[start..end]);
                out.extend_from_slice(signature.as_ref());
                true
            }
            Key::Ecdsa(pair) => match pair.sign(&SystemRandom::new(), &out[start..end]) {
                Ok(signature) => {
                    out.extend_from_slice(signature.as_ref());
                    true
                }
                Err(_) => false,
            },
            Key::Rsa(pair) => {
                out.resize(end + 1 + pair.public_modulus_len(), 0);
                let (input, signature) = out.split_at_mut(end + 1);
                let input = &input[start..end];
                pair.sign(&signature::RSA_PKCS1_SHA256, &SystemRandom::new(), input, signature).is_ok()
            }
        };
        match done {
            true => base64url(end + 1, out),
            false => out.truncate(start),
        }
    }
}

/// Random numbers behind a `jti`: 16 digits of one, as [`Slot::RandomHex`](crate::Slot) draws them.
const ID_DRAWS: u32 = 2;

impl Key {
    fn read(algorithm: Algorithm, key: &[u8]) -> Result<Self, TokenError> {
        let wrong = || wrong_key(algorithm);
        let hmac_key = |kind| match key {
            [] => Err(wrong()),
            // A public key is known to all, so as a secret for HMAC it would sign nothing.
            _ if key.starts_with(b"-----BEGIN ") => Err(wrong()),
            _ => Ok(Self::Hmac(Box::new(hmac::Key::new(kind, key)))),
        };
        let pem = || PrivateKeyDer::from_pem_slice(key).map_err(|_| wrong());
        match algorithm {
            Algorithm::Hs256 => hmac_key(hmac::HMAC_SHA256),
            Algorithm::Hs384 => hmac_key(hmac::HMAC_SHA384),
            Algorithm::Hs512 => hmac_key(hmac::HMAC_SHA512),
            Algorithm::Rs256 => match pem()? {
                PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
                PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
                _ => return Err(wrong()),
            }
            .map(Self::Rsa)
            .map_err(|_| wrong()),
            Algorithm::Es256 => {
                let kind = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
                match pem()? {
                    PrivateKeyDer::Pkcs8(der) => EcdsaKeyPair::from_pkcs8(kind, der.secret_pkcs8_der()),
                    PrivateKeyDer::Sec1(der) => {
                        EcdsaKeyPair::from_private_key_der(kind, der.secret_sec1_der())
                    }
                    _ => return Err(wrong()),
                }
                .map(Self::Ecdsa)
                .map_err(|_| wrong())
            }
            Algorithm::EdDsa => match pem()? {
                PrivateKeyDer::Pkcs8(der) => {
                    Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
                }
                _ => return Err(wrong()),
            }
            .map(Self::Ed25519)
            .map_err(|_| wrong()),
        }
    }
}

fn wrong_key(algorithm: Algorithm) -> TokenError {
    TokenError {
        about: TokenPart::Key,
        message: format!("the key does not fit {}", algorithm.name()),
        hint: format!("it takes {}", algorithm.key()),
    }
}

/// The claims without their last brace, and their names.
fn claims(spec: &TokenSpec, scope: &Scope<'_>) -> Result<(Template, Vec<String>), TokenError> {
    let wrong =
        |message: String, hint: &str| TokenError { about: TokenPart::Claims, message, hint: hint.to_owned() };
    const HINT: &str = "write a JSON object, as in {\"sub\": \"load\", \"scope\": \"write\"}";
    let object = match serde_json::from_str(&spec.claims) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(wrong("the claims are not an object".to_owned(), HINT)),
        Err(error) => return Err(wrong(format!("the claims are not JSON: {error}"), HINT)),
    };
    let names: Vec<String> = object.keys().cloned().collect();
    if let Some(stamp) = spec.stamps.iter().find(|stamp| object.contains_key(stamp.name())) {
        let message = format!("the claim `{}` is made at each signing", stamp.name());
        return Err(wrong(message, "leave it out of the claims, or out of those that are made"));
    }
    let text = spec.claims.trim_end();
    let text = text.strip_suffix('}').unwrap_or(text);
    let scope = Scope { variables: &[], tokens: &[], ..*scope };
    let template = Template::parse_in(text.as_bytes(), &scope).map_err(|error| TokenError {
        about: TokenPart::Claims,
        message: error.message().to_owned(),
        hint: error
            .hint()
            .unwrap_or("a token is the same for all users: its claims name no variable")
            .to_owned(),
    })?;
    Ok((template, names))
}

/// A token that is not signed yet.
#[derive(Debug)]
pub struct Draft {
    input: Vec<u8>,
    due_ns: u64,
}

/// A token, and when it is to be replaced.
#[derive(Debug)]
pub struct Signed {
    text: Vec<u8>,
    due_ns: u64,
}

/// The tokens of one worker, in the order of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    all: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    signer: Arc<Signer>,
    text: Vec<u8>,
    due_ns: u64,
}

impl Tokens {
    /// Signs all of them, at a time in nanoseconds since 1970.
    pub fn new(signers: &[Arc<Signer>], unix_ns: u64, random: &mut Random) -> Self {
        let sign = |signer: &Arc<Signer>| {
            let Signed { text, due_ns } = signer.sign(signer.draft(unix_ns, random));
            Token { signer: Arc::clone(signer), text, due_ns }
        };
        Self { all: signers.iter().map(sign).collect() }
    }

    /// When the first of them is to be signed again, in nanoseconds since 1970; never, if there are none.
    pub fn due_ns(&self) -> u64 {
        self.all.iter().map(|token| token.due_ns).min().unwrap_or(u64::MAX)
    }

    /// A token that is due by then, and its signer.
    pub fn due(&self, unix_ns: u64) -> Option<(usize, &Arc<Signer>)> {
        let number = self.all.iter().position(|token| token.due_ns <= unix_ns)?;
        Some((number, &self.all[number].signer))
    }

    /// This token is not due until then: another thread signs it.
    pub fn defer(&mut self, number: usize, unix_ns: u64) {
        self.all[number].due_ns = unix_ns;
    }

    /// Takes one that was signed again. One that could not be signed leaves the old one.
    pub fn replace(&mut self, number: usize, signed: Signed) {
        let token = &mut self.all[number];
        if !signed.text.is_empty() {
            token.text = signed.text;
        }
        token.due_ns = signed.due_ns;
    }

    /// The text of a token; empty if it is not signed yet.
    pub(crate) fn text(&self, number: u16) -> &[u8] {
        self.all.get(usize::from(number)).map_or(&[], |token| &token.text)
    }

    pub(crate) fn signer(&self, number: u16) -> Option<&Signer> {
        self.all.get(usize::from(number)).map(|token| &*token.signer)
    }
}

#[cfg(test)]
mod tests;
