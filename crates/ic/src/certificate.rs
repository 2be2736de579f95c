//! Certificates, and the verification of their claims.

use std::fmt;
use std::time::Duration;

use blst::BLST_ERROR;
use blst::min_sig::{PublicKey, Signature};

use crate::answer::RequestStatus;
use crate::cbor::{Reader, Undecodable};
use crate::der;
use crate::hash::Hash;
use crate::message::RequestId;
use crate::principal::Principal;
use crate::tree::{Branch, Lookup, Tree, leb128};

/// The domain of signatures in G1 (RFC 9380 names the suite).
pub(crate) const DOMAIN: &[u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

/// Returns the message that is signed to certify a tree with this root.
pub(crate) fn root_message(root: &Hash) -> [u8; 46] {
    let mut message = [0; 46];
    message[..14].copy_from_slice(b"\x0dic-state-root");
    message[14..].copy_from_slice(root);
    message
}

/// Reason why a certificate proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// The certificate cannot be read.
    Undecodable(Undecodable),
    /// The signature of the certificate, or that of its delegation, is not of the key that has to have made
    /// it: the root key is another network's, or somebody has changed the certificate.
    WrongSignature,
    /// The certificate is older than is taken.
    Stale {
        /// Age of the certificate.
        age: Duration,
    },
    /// The time of the certificate lies further ahead than clocks differ.
    FromTheFuture {
        /// Distance from now.
        by: Duration,
    },
    /// The certificate is of a subnet that does not have the canister.
    OtherCanisters,
    /// The certificate is in order, but lacks the requested part.
    Absent,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecodable(why) => write!(f, "the certificate cannot be read: {why}"),
            Self::WrongSignature => f.write_str("the certificate is not signed by the root key"),
            Self::Stale { age } => write!(f, "the certificate is {age:?} old"),
            Self::FromTheFuture { by } => write!(f, "the certificate is from {by:?} in the future"),
            Self::OtherCanisters => f.write_str("the certificate is of a subnet without the canister"),
            Self::Absent => f.write_str("the certificate does not show the status of the call"),
        }
    }
}

impl std::error::Error for CertificateError {}

impl From<Undecodable> for CertificateError {
    fn from(why: Undecodable) -> Self {
        Self::Undecodable(why)
    }
}

/// The key that certificates are signed by in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootKey(PublicKey);

impl RootKey {
    /// The key of this DER, which `/api/v2/status` has as `root_key`. None if it is not a BLS key of the
    /// Internet Computer.
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let key = der::key_of(der, der::BLS, Some(der::BLS_CURVE))?;
        PublicKey::key_validate(key).ok().map(Self)
    }

    fn has_signed(&self, root: &Hash, signature: &[u8]) -> bool {
        Signature::sig_validate(signature, true).is_ok_and(|signature| {
            let message = root_message(root);
            signature.verify(false, &message, DOMAIN, &[], &self.0, false) == BLST_ERROR::BLST_SUCCESS
        })
    }
}

/// The parts of a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Certificate<'a> {
    pub(crate) tree: Tree<'a>,
    signature: &'a [u8],
    delegation: Option<Reader<'a>>,
}

impl<'a> Certificate<'a> {
    /// Takes a certificate apart; its tree is not examined.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Undecodable> {
        let mut reader = Reader::new(bytes);
        let (mut tree, mut signature, mut delegation) = (None, None, None);
        reader.each(|key, mut value| {
            match key {
                b"tree" => tree = Some(Tree::at(value)),
                b"signature" => signature = Some(value.bytes()?),
                b"delegation" => delegation = Some(value),
                _ => {}
            }
            Ok(None::<()>)
        })?;
        match (tree, signature) {
            (Some(tree), Some(signature)) => Ok(Self { tree, signature, delegation }),
            _ => Err(reader.error("a certificate without a tree and a signature")),
        }
    }
}

/// Checks certificates. One check takes about a millisecond, with a delegation two.
#[derive(Clone, Debug)]
pub struct Verifier {
    /// The root key of the network.
    pub root: RootKey,
    /// Older certificates prove nothing any more.
    pub max_age: Duration,
    /// Furthest that a replica's clock may be ahead.
    pub max_ahead: Duration,
}

impl Verifier {
    /// Checks with this root key and the bounds that ic-agent has: five minutes in both directions.
    pub const fn new(root: RootKey) -> Self {
        Self { root, max_age: crate::expiry::MAX_AHEAD, max_ahead: crate::expiry::MAX_AHEAD }
    }

    /// Checks a certificate about this canister, at `now_ns` in nanoseconds since 1970. Where no subnet key
    /// is delegated to, which is so on the root subnet and in tests, any canister is the signer's.
    ///
    /// # Errors
    /// The reason why it proves nothing.
    pub fn verify<'a>(
        &self,
        certificate: &'a [u8],
        canister: &Principal,
        now_ns: u64,
    ) -> Result<Verified<'a>, CertificateError> {
        let certificate = Certificate::read(certificate)?;
        let delegated = match certificate.delegation {
            Some(delegation) => Some(self.delegated(delegation, canister)?),
            None => None,
        };
        let key = delegated.as_ref().unwrap_or(&self.root);
        if !key.has_signed(&certificate.tree.root_hash()?, certificate.signature) {
            return Err(CertificateError::WrongSignature);
        }
        let Lookup::Found(time) = certificate.tree.lookup(&[b"time"])? else {
            return Err(CertificateError::Absent);
        };
        let time_ns = leb128(time).ok_or(Undecodable { at: 0, problem: "a time that is not a number" })?;
        let age = Duration::from_nanos(now_ns.saturating_sub(time_ns));
        let by = Duration::from_nanos(time_ns.saturating_sub(now_ns));
        if age > self.max_age {
            Err(CertificateError::Stale { age })
        } else if by > self.max_ahead {
            Err(CertificateError::FromTheFuture { by })
        } else {
            Ok(Verified { tree: certificate.tree, time_ns })
        }
    }

    /// The key of the subnet that is delegated to, if it has the canister.
    fn delegated(&self, delegation: Reader<'_>, canister: &Principal) -> Result<RootKey, CertificateError> {
        let (mut subnet, mut certificate) = (None, None);
        delegation.clone().each(|key, mut value| {
            match key {
                b"subnet_id" => subnet = Some(value.bytes()?),
                b"certificate" => certificate = Some(value.bytes()?),
                _ => {}
            }
            Ok(None::<()>)
        })?;
        let (Some(subnet), Some(certificate)) = (subnet, certificate) else {
            return Err(delegation.error("a delegation without a subnet and a certificate").into());
        };
        let Certificate { tree, signature, delegation: further } = Certificate::read(certificate)?;
        if further.is_some() {
            return Err(delegation.error("a delegation within a delegation").into());
        }
        if !self.root.has_signed(&tree.root_hash()?, signature) {
            return Err(CertificateError::WrongSignature);
        }
        if *canister != Principal::management() && !has_canister(tree, subnet, canister.as_bytes())? {
            return Err(CertificateError::OtherCanisters);
        }
        match tree.lookup(&[b"subnet", subnet, b"public_key"])? {
            Lookup::Found(key) => RootKey::from_der(key)
                .ok_or_else(|| delegation.error("a delegation to something that is not a BLS key").into()),
            Lookup::Absent | Lookup::Unknown => Err(CertificateError::Absent),
        }
    }
}

/// Reports whether a subnet has a canister, by the list of its ranges or by the parts of that list below a
/// path of their own.
fn has_canister(tree: Tree<'_>, subnet: &[u8], canister: &[u8]) -> Result<bool, Undecodable> {
    if let Lookup::Found(ranges) = tree.lookup(&[b"subnet", subnet, b"canister_ranges"])? {
        return is_in_ranges(ranges, canister);
    }
    let Branch::There(parts) = tree.branch(&[b"canister_ranges", subnet])? else { return Ok(false) };
    let found = parts.each(|_, part| {
        let Lookup::Found(ranges) = part.lookup(&[])? else { return Ok(None) };
        Ok(is_in_ranges(ranges, canister)?.then_some(()))
    })?;
    Ok(found.is_some())
}

/// Returns `true` if one of these ranges, pairs of a first and a last canister, contains the canister.
fn is_in_ranges(ranges: &[u8], canister: &[u8]) -> Result<bool, Undecodable> {
    let mut reader = Reader::new(ranges);
    for _ in 0..reader.array()? {
        if reader.array()? != 2 {
            return Err(reader.error("a canister range without two ends"));
        }
        let (first, last) = (reader.bytes()?, reader.bytes()?);
        if first <= canister && canister <= last {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The tree and the time that a verified certificate proves.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    /// Tree of the certificate.
    pub tree: Tree<'a>,
    /// Time of the certificate, in nanoseconds since 1970.
    pub time_ns: u64,
}

impl<'a> Verified<'a> {
    /// Returns the status of a call.
    ///
    /// # Errors
    /// The tree cannot be read, or does not show the call.
    pub fn request_status(&self, id: &RequestId) -> Result<RequestStatus<'a>, CertificateError> {
        RequestStatus::read(self.tree, id)?.ok_or(CertificateError::Absent)
    }
}
