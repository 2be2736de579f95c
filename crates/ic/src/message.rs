//! Requests: the content of a call, its request id and the signed envelope.

use std::fmt;

use plimsoll_core::text::hex;

use crate::cbor::{write_array, write_bytes, write_map, write_number, write_self_described, write_text};
use crate::hash::{Hash, Value, hash_of_pairs, sha256};
use crate::identity::Identity;
use crate::principal::Principal;

/// Domain separator: the bytes before a request id in the signed message.
pub(crate) const REQUEST_DOMAIN: &[u8; 11] = b"\x0aic-request";

/// The representation-independent hash of a message, under which its fate is asked for.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub Hash);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

impl RequestId {
    /// Returns the bytes that are signed for the message with this id.
    pub fn signable(&self) -> [u8; 43] {
        let mut signable = [0; 43];
        signable[..REQUEST_DOMAIN.len()].copy_from_slice(REQUEST_DOMAIN);
        signable[REQUEST_DOMAIN.len()..].copy_from_slice(&self.0);
        signable
    }
}

/// Kind of a call to a canister.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An answer of one replica, which changes nothing.
    Query,
    /// A change that the whole subnet agrees on.
    Update,
}

impl Kind {
    /// The value of `request_type`.
    pub const fn request_type(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Update => "call",
        }
    }
}

/// One call of a canister's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// Query or update.
    pub kind: Kind,
    /// The canister.
    pub canister: Principal,
    /// Method of the canister.
    pub method: &'a str,
    /// The argument, mostly Candid.
    pub arg: &'a [u8],
    /// Distinguishes messages with the same content; at most 32 bytes.
    pub nonce: Option<&'a [u8]>,
    /// When the message loses its validity, in nanoseconds since 1970; at most [five
    /// minutes](crate::expiry::MAX_AHEAD) ahead.
    pub ingress_expiry_ns: u64,
}

impl Call<'_> {
    /// The id of this call when `sender` makes it.
    pub fn request_id(&self, sender: &Principal) -> RequestId {
        let fixed = Fixed::of(self.kind, &self.canister, self.method, sender);
        fixed.request_id(Value::Bytes(self.arg).hash(), self.nonce, self.ingress_expiry_ns)
    }

    /// Appends the envelope, signed by `identity`. Use a [`Stencil`] to write many.
    pub fn write_envelope(&self, identity: &Identity, out: &mut Vec<u8>) -> RequestId {
        let stencil = Stencil::new(identity, self.kind, &self.canister, self.method, None);
        stencil.write(self.arg, self.nonce, self.ingress_expiry_ns, out)
    }
}

/// The pairs of hashes of a call, in their order, of which some differ from message to message.
#[derive(Clone, Debug)]
struct Fixed {
    pairs: [[Hash; 2]; FIELDS],
    /// The fields that differ: `arg`, `ingress_expiry`, `nonce`.
    places: [usize; 3],
}

/// Fields of a call with a nonce.
const FIELDS: usize = 7;

impl Fixed {
    fn of(kind: Kind, canister: &Principal, method: &str, sender: &Principal) -> Self {
        // Fields that differ between messages have an empty value for now.
        let fields = [
            ("arg", Value::Bytes(&[])),
            ("ingress_expiry", Value::Bytes(&[])),
            ("nonce", Value::Bytes(&[])),
            ("request_type", Value::Text(kind.request_type())),
            ("canister_id", Value::Bytes(canister.as_bytes())),
            ("method_name", Value::Text(method)),
            ("sender", Value::Bytes(sender.as_bytes())),
        ];
        let mut ordered = fields.map(|(key, value)| (sha256(&[key.as_bytes()]), key, value));
        ordered.sort_unstable_by_key(|&(hash, ..)| hash);
        let place = |wanted| ordered.iter().position(|&(_, key, _)| key == wanted);
        let places = ["arg", "ingress_expiry", "nonce"];
        let places = places.map(|key| place(key).expect("each of these is a field above"));
        Self { pairs: ordered.map(|(key, _, value)| [key, value.hash()]), places }
    }

    #[inline]
    fn request_id(&self, arg: Hash, nonce: Option<&[u8]>, expiry_ns: u64) -> RequestId {
        let [arg_at, expiry_at, nonce_at] = self.places;
        let mut pairs = self.pairs;
        pairs[arg_at][1] = arg;
        pairs[expiry_at][1] = Value::Number(expiry_ns).hash();
        RequestId(match nonce {
            Some(nonce) => {
                pairs[nonce_at][1] = sha256(&[nonce]);
                hash_of_pairs(&pairs)
            }
            None => {
                pairs.copy_within(nonce_at + 1.., nonce_at);
                hash_of_pairs(&pairs[..FIELDS - 1])
            }
        })
    }
}

/// Envelopes that differ in argument, nonce and expiry alone: everything else is encoded and hashed once.
/// Writing one allocates nothing beyond the growth of `out`.
#[derive(Clone, Debug)]
pub struct Stencil {
    identity: Identity,
    fixed: Fixed,
    /// The fields that are the same in all of them, encoded.
    fields: Vec<u8>,
    /// An argument that all of them have.
    arg: Option<(Vec<u8>, Hash)>,
}

impl Stencil {
    /// Envelopes of `identity` for one method; with `arg`, all have this argument.
    pub fn new(
        identity: &Identity,
        kind: Kind,
        canister: &Principal,
        method: &str,
        arg: Option<&[u8]>,
    ) -> Self {
        let sender = identity.sender();
        let mut fields = Vec::new();
        write_text(&mut fields, "request_type");
        write_text(&mut fields, kind.request_type());
        write_text(&mut fields, "canister_id");
        write_bytes(&mut fields, canister.as_bytes());
        write_text(&mut fields, "method_name");
        write_text(&mut fields, method);
        write_text(&mut fields, "sender");
        write_bytes(&mut fields, sender.as_bytes());
        Self {
            identity: identity.clone(),
            fixed: Fixed::of(kind, canister, method, &sender),
            fields,
            arg: arg.map(|arg| (arg.to_vec(), Value::Bytes(arg).hash())),
        }
    }

    /// Appends one envelope. Of a stencil with an argument of its own `arg` is ignored.
    #[inline]
    pub fn write(&self, arg: &[u8], nonce: Option<&[u8]>, expiry_ns: u64, out: &mut Vec<u8>) -> RequestId {
        let (arg, arg_hash) = match &self.arg {
            Some((arg, hash)) => (arg.as_slice(), *hash),
            None => (arg, Value::Bytes(arg).hash()),
        };
        let id = self.fixed.request_id(arg_hash, nonce, expiry_ns);
        open_envelope(&self.identity, out);
        write_map(out, if nonce.is_some() { FIELDS as u64 } else { FIELDS as u64 - 1 });
        out.extend_from_slice(&self.fields);
        write_text(out, "arg");
        write_bytes(out, arg);
        write_text(out, "ingress_expiry");
        write_number(out, expiry_ns);
        if let Some(nonce) = nonce {
            write_text(out, "nonce");
            write_bytes(out, nonce);
        }
        close_envelope(&self.identity, &id, out);
        id
    }

    /// Returns the identity that sends the messages.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// Appends the envelope of a `read_state` request for these paths, signed by `identity`, which has to be the
/// sender of the calls whose fate is asked for. That of a call is the path `request_status`, [its
/// id](RequestId).
pub fn write_read_state(
    identity: &Identity,
    paths: &[&[&[u8]]],
    expiry_ns: u64,
    out: &mut Vec<u8>,
) -> RequestId {
    let sender = identity.sender();
    let mut pairs = [
        ("request_type", Value::Text("read_state")),
        ("sender", Value::Bytes(sender.as_bytes())),
        ("ingress_expiry", Value::Number(expiry_ns)),
        ("paths", Value::Paths(paths)),
    ]
    .map(|(key, value)| [sha256(&[key.as_bytes()]), value.hash()]);
    pairs.sort_unstable();
    let id = RequestId(hash_of_pairs(&pairs));
    open_envelope(identity, out);
    write_map(out, 4);
    write_text(out, "request_type");
    write_text(out, "read_state");
    write_text(out, "sender");
    write_bytes(out, sender.as_bytes());
    write_text(out, "ingress_expiry");
    write_number(out, expiry_ns);
    write_text(out, "paths");
    write_array(out, paths.len() as u64);
    for path in paths {
        write_array(out, path.len() as u64);
        path.iter().for_each(|label| write_bytes(out, label));
    }
    close_envelope(identity, &id, out);
    id
}

#[inline]
fn open_envelope(identity: &Identity, out: &mut Vec<u8>) {
    write_self_described(out);
    write_map(out, if identity.is_anonymous() { 1 } else { 3 });
    write_text(out, "content");
}

#[inline]
fn close_envelope(identity: &Identity, id: &RequestId, out: &mut Vec<u8>) {
    if let (Some(key), Some(signature)) = (identity.public_key_der(), identity.sign(&id.signable())) {
        write_text(out, "sender_pubkey");
        write_bytes(out, key);
        write_text(out, "sender_sig");
        write_bytes(out, &signature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published example of the interface specification.
    #[test]
    fn the_published_example_has_its_request_id() {
        let call = Call {
            kind: Kind::Update,
            canister: Principal::from_bytes(&[0, 0, 0, 0, 0, 0, 4, 0xd2]).unwrap(),
            method: "hello",
            arg: b"DIDL\x00\xfd*",
            nonce: None,
            ingress_expiry_ns: 1_685_570_400_000_000_000,
        };
        let expected = "1d1091364d6bb8a6c16b203ee75467d59ead468f523eb058880ae8ec80e2b101";
        assert_eq!(call.request_id(&Principal::anonymous()).to_string(), expected);
        let mut out = Vec::new();
        assert_eq!(call.write_envelope(&Identity::anonymous(), &mut out).to_string(), expected);
    }

    #[test]
    fn a_stencil_with_an_argument_of_its_own_writes_the_same() {
        let identity = Identity::ed25519(&[7; 32]).unwrap();
        let canister = Principal::from_bytes(&[1, 2, 3]).unwrap();
        let own = Stencil::new(&identity, Kind::Query, &canister, "read", Some(b"arg"));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let id = own.write(b"ignored", Some(&[9]), 77, &mut first);
        let call = Call {
            kind: Kind::Query,
            canister,
            method: "read",
            arg: b"arg",
            nonce: Some(&[9]),
            ingress_expiry_ns: 77,
        };
        assert_eq!(call.write_envelope(&identity, &mut second), id);
        assert_eq!(call.request_id(&identity.sender()), id);
        assert_eq!(first, second);
        assert_ne!(Call { nonce: None, ..call }.request_id(&identity.sender()), id);
    }
}
