//! Messages for canisters.

use plimsoll_document::{Field, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A message for a canister: exactly one of query, update and state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CanisterSpec {
    /// Call this method as a query.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub query: Field<Text>,
    /// Call this method as an update.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub update: Field<Text>,
    /// Ask what became of the update that this iteration has called last.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub state: Field<bool>,
    /// The canister: a principal as text, `aaaaa-aa`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub id: Field<Text>,
    /// The argument: bytes in hexadecimal. Default: none.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub arg: Field<Text>,
    /// An argument of this many bytes instead: zeros, or other bytes each time with `random`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub arg_size: Field<Text>,
    /// Use random bytes for `arg_size`, other ones each time.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub random: Field<bool>,
    /// Give each message a nonce, so that no two are the same. Default: true for updates.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub nonce: Field<bool>,
    /// Text in the nonces, `inc TEXT 17`, as the Internet Computer's generator writes them: at most 14 bytes.
    /// Default: 16 bytes of the run and the message.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub nonce_text: Field<Text>,
    /// A PEM file with the key that signs: Ed25519, secp256k1, P-256. Default: none; messages are anonymous.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub key: Field<Text>,
    /// Validity of messages. Default: 4m; replicas take no more than 5m.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub expiry: Field<Text>,
    /// Threads per worker that sign ahead. Default: 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub signers: Field<Text>,
    /// A variable that is set while the answer to an update is still to come.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub pending: Field<Text>,
}
