//! Prompts for language models.

use plimsoll_document::{Field, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request for a completion as an API of OpenAI, Anthropic or Ollama takes it. Lengths are a number of
/// tokens, or `normal:MEAN,STDEV` or `uniform:LOW,HIGH` for another one in each request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub(crate) struct CompletionSpec {
    /// Name of the model.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) model: Field<Text>,
    /// How the request is formed: `chat`, `completions` or `responses` of OpenAI and others that have its
    /// API, `anthropic`, `ollama` or `ollama-generate`. Default: by the end of the step's path, such as
    /// `/chat/completions`, `/responses`, `/messages` or `/api/chat`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) api: Field<Text>,
    /// Length of the prompt in tokens. Default: 128.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) input: Field<Text>,
    /// Length of the answer in tokens at most (`max_tokens`, or as the API names it). Default: 64; of
    /// prompts from a file, that of the answer there.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) output: Field<Text>,
    /// Tokens at the front of the prompt that are the same in all requests. Default: 0.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) prefix: Field<Text>,
    /// Bytes of a prompt that are taken as a token. Default: 4.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) bytes_per_token: Field<Text>,
    /// A file with prompts, which are sent one after the other and over and over: ShareGPT's JSON, lines of
    /// JSON with `prompt` and perhaps `output_tokens`, recorded messages (lines with `messages`, or `input`
    /// of a response, and perhaps `tools`), which are sent as they are, or a trace of Mooncake, whose lines
    /// have `input_length`, `output_length` and `hash_ids`, the names of blocks of 512 tokens.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) prompts: Field<Text>,
    /// Turns of a conversation: this many requests of an iteration belong together, each with what was said
    /// before in front. The answers in there are made up, or those of the file. Default: 1,
    /// which is the last of recorded messages.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) turns: Field<Text>,
    /// Ask for a stream, with the server's count of tokens at its end. Default: true.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) stream: Field<bool>,
    /// Further members of the request, such as `{temperature: 0}`.
    #[serde(skip_serializing_if = "Field::is_absent")]
    pub(crate) extra: Field<Value>,
}
