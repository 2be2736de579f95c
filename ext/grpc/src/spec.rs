//! Messages of gRPC.

use plimsoll_document::{Field, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call of gRPC. The step posts to `/package.Service/Method`, over HTTP/2. The method says whether messages
/// come as a stream: those of an answer are read, timed and counted as events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GrpcSpec {
    /// File with the service, as protobuf writes it. Its imports are looked for beside it, those of
    /// `google/protobuf` are known.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub proto: Field<Text>,
    /// File with the service as a descriptor set, instead: what `protoc --include_imports
    /// --descriptor_set_out` writes. `data:;base64,…` is such a set itself.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub descriptor_set: Field<Text>,
    /// The message as JSON; its texts are templates. For a stream of messages an array of them, or one.
    /// Default: an empty one.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub message: Field<Value>,
    /// File with an array of messages as JSON, instead, which are sent in turn.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub messages: Field<Text>,
    /// Compression of messages: `gzip`; `none` does not let the server compress its own, either. Default:
    /// they are not compressed, and the server may compress its own by gzip.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub compress: Field<Text>,
    /// In a call that streams to the server, repetitions of the message or the array of messages, or the
    /// number of messages taken from the file. Default: 1.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub send: Field<Text>,
    /// Messages after which a call that streams from the server is cancelled, as a success. Default: the
    /// server ends it.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub take: Field<Text>,
    /// In a call that streams in both directions, send each message but the first when one of the server has
    /// come. Default: all are sent at once.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub wait: Field<bool>,
}
