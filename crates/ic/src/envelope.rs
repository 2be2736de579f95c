//! Envelopes, read: the requests that a replica gets.

use std::fmt;

use crate::cbor::{Item, Reader, Undecodable};
use crate::hash::{Hash, hash_of_pairs, sha256};
use crate::identity::is_signed_by;
use crate::message::{Kind, RequestId};
use crate::principal::Principal;

/// Fields that the content of a message may have. The specification has nine.
const MAX_FIELDS: usize = 16;

/// A message as it came.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// Id of the message, which covers all of its fields.
    pub id: RequestId,
    /// Claimed sender; [`authenticate`](Self::authenticate) verifies it.
    pub sender: Principal,
    /// When it loses its validity, in nanoseconds since 1970.
    pub ingress_expiry_ns: u64,
    /// The request itself.
    pub content: Content<'a>,
    public_key_der: Option<&'a [u8]>,
    signature: Option<&'a [u8]>,
    delegated: bool,
}

/// Request that a message carries.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A call of a canister.
    Call {
        /// Query or update.
        kind: Kind,
        /// The canister.
        canister: Principal,
        /// Method of the canister.
        method: &'a str,
        /// The argument.
        arg: &'a [u8],
    },
    /// Parts of the state.
    ReadState(Paths<'a>),
}

/// Reason why the sender of a message is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTheSender {
    /// The message has no signature, and its sender is not the anonymous one.
    Unsigned,
    /// The sender is another than the one with the public key.
    OtherKey,
    /// The signature is not of the public key.
    WrongSignature,
    /// Delegations between keys of a sender are not known here.
    Delegated,
}

impl fmt::Display for NotTheSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsigned => "the message has no signature, and its sender is not the anonymous one",
            Self::OtherKey => "the sender of the message does not belong to its public key",
            Self::WrongSignature => "the signature of the message is wrong",
            Self::Delegated => "delegations between the keys of a sender are not known here",
        })
    }
}

impl std::error::Error for NotTheSender {}

impl<'a> Envelope<'a> {
    /// Reads an envelope. Its signature is not examined: [`authenticate`](Self::authenticate) does that.
    ///
    /// # Errors
    /// The bytes are not an envelope.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Undecodable> {
        let mut reader = Reader::new(bytes);
        let (mut content, mut public_key_der, mut signature, mut delegated) = (None, None, None, false);
        reader.each(|key, mut value| {
            match key {
                b"content" => content = Some(value),
                b"sender_pubkey" => public_key_der = optional_bytes(&mut value)?,
                b"sender_sig" => signature = optional_bytes(&mut value)?,
                b"sender_delegation" => delegated = !matches!(value.untagged()?, Item::Simple(_)),
                _ => {}
            }
            Ok(None::<()>)
        })?;
        let Some(mut content) = content else { return Err(reader.error("an envelope without a content")) };
        let mut fields = Fields::default();
        content.each(|key, value| fields.take(key, value).map(|()| None::<()>))?;
        let missing = |what| content.error(what);
        let sender = fields.sender.ok_or(missing("a message without a sender"))?;
        let ingress_expiry_ns = fields.expiry.ok_or(missing("a message without an ingress expiry"))?;
        let kind = match fields.request_type {
            Some("query") => Some(Kind::Query),
            Some("call") => Some(Kind::Update),
            Some("read_state") => None,
            _ => return Err(missing("a message of no known request type")),
        };
        let asked = match (kind, fields.canister, fields.method, fields.arg, fields.paths) {
            (Some(kind), Some(canister), Some(method), Some(arg), _) => {
                Content::Call { kind, canister, method, arg }
            }
            (None, .., Some(paths)) => Content::ReadState(paths),
            _ => return Err(missing("a message with a field missing")),
        };
        let pairs = &mut fields.pairs[..fields.count];
        pairs.sort_unstable();
        let id = RequestId(hash_of_pairs(pairs));
        Ok(Self { id, sender, ingress_expiry_ns, content: asked, public_key_der, signature, delegated })
    }

    /// Verifies that the claimed sender has sent the message.
    ///
    /// # Errors
    /// The message does not prove its sender.
    pub fn authenticate(&self) -> Result<(), NotTheSender> {
        match (self.public_key_der, self.signature) {
            _ if self.delegated => Err(NotTheSender::Delegated),
            (None, None) if self.sender == Principal::anonymous() => Ok(()),
            (Some(key), Some(signature)) => {
                if Principal::self_authenticating(key) != self.sender {
                    Err(NotTheSender::OtherKey)
                } else if is_signed_by(key, &self.id.signable(), signature) {
                    Ok(())
                } else {
                    Err(NotTheSender::WrongSignature)
                }
            }
            _ => Err(NotTheSender::Unsigned),
        }
    }
}

/// Bytes, or null where there are none.
fn optional_bytes<'a>(value: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Undecodable> {
    match value.untagged()? {
        Item::Bytes(bytes) => Ok(Some(bytes)),
        Item::Simple(_) => Ok(None),
        _ => Err(value.error("no CBOR byte string")),
    }
}

/// Fields of the content, as far as they were read.
#[derive(Default)]
struct Fields<'a> {
    request_type: Option<&'a str>,
    sender: Option<Principal>,
    expiry: Option<u64>,
    canister: Option<Principal>,
    method: Option<&'a str>,
    arg: Option<&'a [u8]>,
    paths: Option<Paths<'a>>,
    pairs: [[Hash; 2]; MAX_FIELDS],
    count: usize,
}

impl<'a> Fields<'a> {
    fn take(&mut self, key: &[u8], value: Reader<'a>) -> Result<(), Undecodable> {
        let mut read = value;
        match key {
            b"request_type" => self.request_type = Some(read.text()?),
            b"sender" => self.sender = Some(principal(&mut read)?),
            b"ingress_expiry" => self.expiry = Some(read.number()?),
            b"canister_id" => self.canister = Some(principal(&mut read)?),
            b"method_name" => self.method = Some(read.text()?),
            b"arg" => self.arg = Some(read.bytes()?),
            b"paths" => self.paths = Some(Paths(value)),
            _ => {}
        }
        // Null stands for a field that is not there.
        if let Some(hash) = hash_of_item(&mut { value }, 0)? {
            let pair = self.pairs.get_mut(self.count).ok_or(value.error("a message with too many fields"))?;
            *pair = [sha256(&[key]), hash];
            self.count += 1;
        }
        Ok(())
    }
}

fn principal(value: &mut Reader<'_>) -> Result<Principal, Undecodable> {
    Principal::from_bytes(value.bytes()?).ok_or(value.error("a principal of more than 29 bytes"))
}

/// The representation-independent hash of the item that comes next; none of null.
fn hash_of_item(value: &mut Reader<'_>, depth: usize) -> Result<Option<Hash>, Undecodable> {
    // Paths are arrays of arrays.
    const MAX_ARRAYS: usize = 4;
    Ok(Some(match value.untagged()? {
        Item::Bytes(bytes) | Item::Text(bytes) => sha256(&[bytes]),
        Item::Unsigned(number) => crate::hash::Value::Number(number).hash(),
        Item::Array(Some(items)) if depth < MAX_ARRAYS => {
            let mut hashes = Vec::new();
            for _ in 0..items {
                hashes.extend(hash_of_item(value, depth + 1)?);
            }
            sha256(&[hashes.as_flattened()])
        }
        Item::Simple(_) => return Ok(None),
        // Maps within a content are for delegated senders, which do not exist here.
        _ => return Err(value.error("a field of a message of a kind that is not known here")),
    }))
}

/// The paths of a `read_state` request.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a>(Reader<'a>);

impl<'a> Paths<'a> {
    /// Calls `see` with each path; of a longer one than eight labels with its start.
    ///
    /// # Errors
    /// The bytes are not paths.
    pub fn each(&self, mut see: impl FnMut(&[&'a [u8]])) -> Result<(), Undecodable> {
        let mut reader = self.0;
        for _ in 0..reader.array()? {
            let (mut labels, mut count) = ([&[][..]; 8], 0);
            for _ in 0..reader.array()? {
                let label = reader.bytes()?;
                if let Some(place) = labels.get_mut(count) {
                    *place = label;
                    count += 1;
                }
            }
            see(&labels[..count]);
        }
        Ok(())
    }
}
