//! Steps on a WebSocket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::part;
use crate::{ExtractSpec, Field, Keyed, MatchSpec, Text};

/// A step on a WebSocket.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[non_exhaustive]
pub struct WebSocketStep {
    /// Open a WebSocket, send or await a message on it, or close it. The target has a URL like
    /// `ws://127.0.0.1:9000`.
    pub websocket: Field<WebSocketSpec>,
}

part!(WebSocketStep {
    "websocket": websocket,
});

/// An action on the WebSocket of an iteration: one of open, send, receive and close. A message that is sent
/// can be answered in the same step, which then takes the round trip: `{send: ping, receive: {body: pong}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebSocketSpec {
    /// Upgrade a connection with a request for this path; a template. The connection belongs to the iteration
    /// until its end, or until it is closed. Status 101 is expected.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub open: Field<Text>,
    /// Subprotocols to offer, separated by commas, the preferred one first.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub subprotocols: Field<Text>,
    /// Headers of the request that opens it, beside those of the scenario. An empty value leaves one out.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub headers: Keyed<Field<Text>>,
    /// Offer to compress messages, by permessage-deflate (RFC 7692). Default: false.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub compress: Field<bool>,
    /// Rules by which messages are answered as they come, whatever the iteration does: one or a list. The
    /// first rule that is for a message holds, and no step sees the message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<Field<AnswerSpec>>,
    /// A message that is sent again and again, whatever the iteration does.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub heartbeat: Field<HeartbeatSpec>,
    /// Send this text as a message; a template. Without `receive` the step ends when it is sent.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub send: Field<Text>,
    /// Send the content of this file as a message, as it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub send_file: Field<Text>,
    /// The message is binary, and not text.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub binary: Field<bool>,
    /// Await the next message that this describes; others are skipped. The step's own `expect` and `extract`
    /// look at the message that was awaited. Beside `send` only messages that come after it count; alone,
    /// also those that came since the last one awaited.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub receive: Field<ReceiveSpec>,
    /// Beside `receive`: the place of the time at which the message was sent, `{json: /at}` or
    /// `{regex: 'at=([0-9]+)'}`, in s, ms, µs or ns since 1970, as `${timestamp_ns}` makes it. The time until
    /// it came is its lag.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub lag: Field<ExtractSpec>,
    /// Close with this status (1000 is the usual one), and wait for the server to do the same.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub close: Field<Text>,
}

/// Description of a message. All of it has to hold. Written short, it is the whole message: `receive: '3'`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self", rename = "ReceiveSpec")]
#[non_exhaustive]
pub struct ReceiveSpec {
    /// The next message, whatever it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub any: Field<bool>,
    /// The whole message.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub equals: Field<Text>,
    /// Prefix of the message.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub starts: Field<Text>,
    /// Suffix of the message.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub ends: Field<Text>,
    /// Part of the message.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub contains: Field<Text>,
    /// A regular expression that matches in the message.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub regex: Field<Text>,
    /// Comparisons of the message, as in `expect`; one or a list. A plain text has to be in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<Field<MatchSpec>>,
    /// Values in the message, by JSON Pointer (`/a/0`) or JSONPath (`$.a[0]`). A plain text has to be equal.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub json: Keyed<Field<MatchSpec>>,
}

/// A rule by which messages on a WebSocket are answered. Without an answer they are only taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AnswerSpec {
    /// The messages that the rule is for.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub receive: Field<ReceiveSpec>,
    /// Values to take from the message for the answer, by the names of the variables they go into, which
    /// nothing else can use. The rule is not for a message without one of them.
    #[serde(skip_serializing_if = "Keyed::is_empty")]
    pub extract: Keyed<Field<ExtractSpec>>,
    /// Answer with this text; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub send: Field<Text>,
    /// Answer with the content of this file, as it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub send_file: Field<Text>,
    /// The answer is binary, and not text.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub binary: Field<bool>,
}

/// A message that is sent on a WebSocket again and again, from its opening to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct HeartbeatSpec {
    /// Time from one to the next: `30s`; at least a millisecond.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub every: Field<Text>,
    /// Send this text; a template.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub send: Field<Text>,
    /// Send the content of this file, as it is.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub send_file: Field<Text>,
    /// The message is binary, and not text.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub binary: Field<bool>,
}

impl From<WebSocketSpec> for WebSocketStep {
    fn from(action: WebSocketSpec) -> Self {
        Self { websocket: Field::new(action) }
    }
}

impl WebSocketSpec {
    /// The action and the path as they are written.
    pub fn title(&self) -> Option<String> {
        if let Some(path) = self.open.get() {
            return Some(format!("OPEN {}", path.as_str()));
        }
        let sends = !self.send.is_absent() || !self.send_file.is_absent();
        let words =
            [(sends, "SEND"), (!self.receive.is_absent(), "RECEIVE"), (!self.close.is_absent(), "CLOSE")];
        words.into_iter().find_map(|(given, word)| given.then(|| word.to_owned()))
    }
}
