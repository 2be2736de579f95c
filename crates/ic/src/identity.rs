//! Identities: senders of messages, and the keys that sign for them.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, UnparsedPublicKey,
};
use secp256k1::{Message, PublicKey, Secp256k1, SecretKey, SignOnly};

use crate::hash::sha256;
use crate::pem::{self, Secret};
use crate::principal::Principal;
use crate::{Hash, der};

/// Sender of messages, anonymous or with a key. Cloning only counts a reference, and threads may share one.
///
/// Keys of Ed25519 and P-256 sign with AWS-LC (133,000 signatures of a request id by Ed25519 per second on a
/// core that makes 48,000 with ring and 72,000 with ed25519-dalek), those of secp256k1 with libsecp256k1
/// (55,000, k256 makes 18,000): measured on one virtual machine, in one program, optimised.
#[derive(Clone, Debug)]
pub struct Identity(Option<Arc<Signer>>);

/// A sender with a key.
struct Signer {
    key: Key,
    public_key_der: Vec<u8>,
    sender: Principal,
}

enum Key {
    Ed25519(Ed25519KeyPair),
    Secp256k1(Secp256k1<SignOnly>, SecretKey),
    P256(EcdsaKeyPair),
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sender)
    }
}

/// Reason why a file gives no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKey {
    /// Problem with the file.
    pub problem: String,
    /// Advice on how to fix it.
    pub hint: String,
}

impl BadKey {
    pub(crate) fn new(problem: impl Into<String>, hint: String) -> Self {
        Self { problem: problem.into(), hint }
    }
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for BadKey {}

impl Identity {
    /// The anonymous identity, which signs nothing.
    pub const fn anonymous() -> Self {
        Self(None)
    }

    /// The holder of an Ed25519 key, by its seed.
    ///
    /// # Errors
    /// The library refuses the key, which it has no reason to.
    pub fn ed25519(seed: &[u8; 32]) -> Result<Self, BadKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| BadKey::new("the Ed25519 key was refused", "make another key".to_owned()))?;
        let public_key_der = der::public_key(der::ED25519, None, pair.public_key().as_ref());
        Ok(Self::of(Key::Ed25519(pair), public_key_der))
    }

    /// The holder of a secp256k1 key, by its secret number.
    ///
    /// # Errors
    /// The number is zero, or not below the order of the curve.
    pub fn secp256k1(secret: [u8; 32]) -> Result<Self, BadKey> {
        let secret = SecretKey::from_byte_array(secret).map_err(|_| {
            let problem = "the secp256k1 key is zero or too large for its curve";
            BadKey::new(problem, "make another key".to_owned())
        })?;
        let curve = Secp256k1::signing_only();
        let public = PublicKey::from_secret_key(&curve, &secret).serialize_uncompressed();
        let public_key_der = der::public_key(der::EC_KEY, Some(der::SECP256K1), &public);
        Ok(Self::of(Key::Secp256k1(curve, secret), public_key_der))
    }

    /// The holder of a key of the curve P-256, by its secret number.
    ///
    /// # Errors
    /// The number is zero, or not below the order of the curve.
    pub fn p256(secret: [u8; 32]) -> Result<Self, BadKey> {
        let parsed = || {
            let public = PrivateKey::from_private_key(&ECDH_P256, &secret)?.compute_public_key()?;
            let pair = EcdsaKeyPair::from_private_key_and_public_key(
                &ECDSA_P256_SHA256_FIXED_SIGNING,
                &secret,
                public.as_ref(),
            );
            Ok::<_, aws_lc_rs::error::KeyRejected>((pair?, public))
        };
        let (pair, public) = parsed().map_err(|_| {
            let problem = "the P-256 key is zero or too large for its curve";
            BadKey::new(problem, "make another key".to_owned())
        })?;
        let public_key_der = der::public_key(der::EC_KEY, Some(der::P256), public.as_ref());
        Ok(Self::of(Key::P256(pair), public_key_der))
    }

    fn of(key: Key, public_key_der: Vec<u8>) -> Self {
        let sender = Principal::self_authenticating(&public_key_der);
        Self(Some(Arc::new(Signer { key, public_key_der, sender })))
    }

    /// The holder of the private key in this PEM file: Ed25519 (PKCS#8), or secp256k1 or
    /// P-256 (PKCS#8 or SEC 1).
    ///
    /// # Errors
    /// The content of the file, and how to make a key that is accepted.
    pub fn from_pem(text: &str) -> Result<Self, BadKey> {
        match pem::read(text)? {
            Secret::Secp256k1(secret) => Self::secp256k1(secret),
            Secret::P256(secret) => Self::p256(secret),
            Secret::Ed25519(seed, public) => {
                let identity = Self::ed25519(&seed)?;
                let own = identity.public_key_der().and_then(|der| der::key_of(der, der::ED25519, None));
                if public.is_some() && public.as_deref() != own {
                    let problem = "the public key in the file does not belong to its private key";
                    return Err(BadKey::new(problem, "the file is damaged: copy it once more".to_owned()));
                }
                Ok(identity)
            }
        }
    }

    /// Returns `true` if messages are not signed.
    pub const fn is_anonymous(&self) -> bool {
        self.0.is_none()
    }

    /// The principal that messages name as their sender.
    pub fn sender(&self) -> Principal {
        self.0.as_ref().map_or(Principal::anonymous(), |signer| signer.sender)
    }

    /// The public key as DER (SubjectPublicKeyInfo); `None` for the anonymous identity.
    pub fn public_key_der(&self) -> Option<&[u8]> {
        self.0.as_ref().map(|signer| signer.public_key_der.as_slice())
    }

    /// Signs a message; `None` for the anonymous identity. For curves of ECDSA it is the SHA-256 of the
    /// message that is signed, and the signature is `r` and `s`.
    #[inline]
    pub fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let signer = self.0.as_ref()?;
        Some(match &signer.key {
            Key::Ed25519(pair) => {
                let mut signature = [0; 64];
                signature.copy_from_slice(pair.sign(message).as_ref());
                signature
            }
            Key::Secp256k1(curve, secret) => {
                let digest: Hash = sha256(&[message]);
                curve.sign_ecdsa(Message::from_digest(digest), secret).serialize_compact()
            }
            Key::P256(pair) => {
                // The nonce comes from the system's random source, which always exists.
                let signed = pair.sign(&SystemRandom::new(), message).ok()?;
                let mut signature = [0; 64];
                signature.copy_from_slice(signed.as_ref());
                signature
            }
        })
    }
}

/// Returns `true` if the holder of this public key (Ed25519, secp256k1 or P-256, as DER) has signed
/// `message`. Keys of other kinds never verify.
pub fn is_signed_by(public_key_der: &[u8], message: &[u8], signature: &[u8]) -> bool {
    if let Some(key) = der::key_of(public_key_der, der::ED25519, None) {
        return UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok();
    }
    if let Some(key) = der::key_of(public_key_der, der::EC_KEY, Some(der::P256)) {
        return UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature).is_ok();
    }
    let Some(key) = der::key_of(public_key_der, der::EC_KEY, Some(der::SECP256K1)) else { return false };
    let signature = secp256k1::ecdsa::Signature::from_compact(signature).map(|mut signature| {
        // Both forms of the signature, with low and high s, are valid.
        signature.normalize_s();
        signature
    });
    match (PublicKey::from_slice(key), signature) {
        (Ok(key), Ok(signature)) => {
            let digest = Message::from_digest(sha256(&[message]));
            Secp256k1::verification_only().verify_ecdsa(digest, &signature, &key).is_ok()
        }
        _ => false,
    }
}
