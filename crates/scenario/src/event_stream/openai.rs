//! Chunks of completions as OpenAI's API sends them, and as vLLM, llama.cpp, TGI and others do.
//!
//! Content is text, reasoning or a refusal, or a part of a tool call, that is not empty: a chunk that says
//! the role alone has none. Strings are examined and not kept.

use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};

use super::{EventFacts, EventFault, Usage};

/// The event behind the last chunk.
const DONE: &[u8] = b"[DONE]";

/// Returns `true` if an event is the one behind the last chunk.
pub(super) fn is_end_mark(data: &[u8]) -> bool {
    data == DONE
}

/// Returns what a chunk says.
pub(super) fn read(data: &[u8]) -> EventFacts {
    if is_end_mark(data) {
        return EventFacts { ends: true, ..EventFacts::default() };
    }
    match serde_json::from_slice::<Chunk>(data) {
        Ok(chunk) => EventFacts {
            content: chunk.choices.content,
            ends: chunk.choices.finished,
            fault: (chunk.error.is_some() || chunk.object.0).then_some(EventFault::Error),
            usage: chunk.usage,
        },
        Err(_) => EventFacts { fault: Some(EventFault::Malformed), ..EventFacts::default() },
    }
}

/// Returns the name of the completion that a chunk belongs to.
pub(super) fn id_of(data: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<String>,
    }
    serde_json::from_slice::<Named>(data).ok()?.id
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Choices,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(default)]
    object: IsError,
}

/// Something that is there and not empty.
#[derive(Clone, Copy, Default)]
struct Something(bool);

/// The object is called an error, as in older versions of vLLM.
#[derive(Clone, Copy, Default)]
struct IsError(bool);

/// All choices of a chunk together.
#[derive(Clone, Copy, Default)]
struct Choices {
    content: bool,
    finished: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice {
    delta: Option<Delta>,
    /// Of completions without a chat.
    text: Something,
    finish_reason: Something,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Something,
    reasoning_content: Something,
    reasoning: Something,
    refusal: Something,
    tool_calls: Something,
    function_call: Something,
}

impl Choice {
    fn has_content(&self) -> bool {
        let delta = self.delta.unwrap_or_default();
        let Delta { content, reasoning_content, reasoning, refusal, tool_calls, function_call } = delta;
        let all = [self.text, content, reasoning_content, reasoning, refusal, tool_calls, function_call];
        all.iter().any(|part| part.0)
    }
}

struct SomethingVisitor;

impl<'de> de::Visitor<'de> for SomethingVisitor {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(!text.is_empty())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let mut any = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(any)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut any = false;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(any)
    }
}

impl<'de> Deserialize<'de> for Something {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SomethingVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for IsError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = IsError;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an object")
            }

            fn visit_unit<E>(self) -> Result<IsError, E> {
                Ok(IsError(false))
            }

            fn visit_str<E>(self, text: &str) -> Result<IsError, E> {
                Ok(IsError(text == "error"))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Choices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Choices;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_unit<E>(self) -> Result<Choices, E> {
                Ok(Choices::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Choices, A::Error> {
                let mut all = Choices::default();
                while let Some(choice) = list.next_element::<Choice>()? {
                    all.content |= choice.has_content();
                    all.finished |= choice.finish_reason.0;
                }
                Ok(all)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt_tokens: u64, completion_tokens: u64) -> Option<Usage> {
        Some(Usage { prompt_tokens, completion_tokens })
    }

    #[test]
    fn chunks_say_what_their_servers_mean() {
        let nothing = EventFacts::default();
        let content = EventFacts { content: true, ..nothing };
        let ends = EventFacts { ends: true, ..nothing };
        let error = EventFacts { fault: Some(EventFault::Error), ..nothing };
        let malformed = EventFacts { fault: Some(EventFault::Malformed), ..nothing };
        let cases = [
            // A role alone is not a token (vllm#15106).
            (
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                nothing,
            ),
            (r#"{"choices":[{"delta":{"role":"assistant"}}]}"#, nothing),
            (r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":null}"#, content),
            (r#"{"choices":[{"delta":{"content":"\n\u00e9"}}]}"#, content),
            (r#"{"choices":[{"delta":{"content":null,"reasoning_content":"Hm"}}]}"#, content),
            (r#"{"choices":[{"delta":{"reasoning":"Hm"}}]}"#, content),
            (r#"{"choices":[{"delta":{"tool_calls":[]}}]}"#, nothing),
            (r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}"#, content),
            (r#"{"choices":[{"delta":{"function_call":{"name":"f"}}}]}"#, content),
            (r#"{"choices":[{"delta":{"refusal":"No"}}]}"#, content),
            (r#"{"choices":[{"delta":{}},{"delta":{"content":"b"}}]}"#, content),
            (r#"{"choices":[{"text":"Hi","logprobs":null,"finish_reason":null}]}"#, content),
            (r#"{"choices":[{"text":"","finish_reason":"length"}]}"#, ends),
            (r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, ends),
            (
                r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#,
                EventFacts { usage: usage(7, 3), ..nothing },
            ),
            (
                r#"{"choices":null,"usage":{"completion_tokens":3}}"#,
                EventFacts { usage: usage(0, 3), ..nothing },
            ),
            (r#"{"error":{"message":"out of memory","code":500}}"#, error),
            (r#"{"error":"Request failed during generation","error_type":"generation"}"#, error),
            (r#"{"error":null,"choices":[]}"#, nothing),
            (r#"{"object":"error","message":"m"}"#, error),
            ("[DONE]", ends),
            ("[DONE", malformed),
            ("plain text", malformed),
            ("", malformed),
        ];
        for (data, expected) in cases {
            assert_eq!(read(data.as_bytes()), expected, "{data}");
        }
    }

    #[test]
    fn completions_have_names() {
        assert_eq!(id_of(br#"{"id":"chatcmpl-1","choices":[]}"#).as_deref(), Some("chatcmpl-1"));
        for data in [&b"[DONE]"[..], b"{}", br#"{"id":null}"#, br#"{"id":7}"#] {
            assert_eq!(id_of(data), None);
        }
    }

    #[test]
    fn a_chunk_without_escapes_allocates_nothing() {
        let data = br#"{"id":"c","choices":[{"delta":{"content":"Hi"},"finish_reason":null}],"usage":null}"#;
        let measured = allocation_counter::measure(|| assert!(read(data).content));
        assert_eq!(measured.count_total, 0);
    }
}
