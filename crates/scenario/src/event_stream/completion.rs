//! Streams of language models: what the events of a completion say, whoever sends it.
//!
//! OpenAI's chunks (as vLLM, llama.cpp, TGI and others send them, too), the events of its responses, those of
//! Anthropic's messages, and Ollama's lines are told apart by their members: a proxy may give any path to any
//! of them.
//!
//! Content is text, reasoning or a refusal, or a part of a tool call, that is not empty: an event that says
//! the role alone, or begins a block that is still empty, has none. Strings are examined and not kept.

mod value;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};

use super::{CompletionApi, EventFacts, EventFault, Usage};
use value::{Count, FromAny, Kind, Something, any};

/// The event behind the last chunk.
const DONE: &[u8] = b"[DONE]";

/// Returns `true` if an event is the one behind the last chunk.
pub(super) fn is_end_mark(data: &[u8]) -> bool {
    data == DONE
}

/// Returns what an event says.
pub(super) fn read(data: &[u8]) -> EventFacts {
    if is_end_mark(data) {
        return EventFacts { ends: true, ..EventFacts::default() };
    }
    match serde_json::from_slice::<Said>(data) {
        Ok(said) => said.facts(),
        Err(_) => EventFacts { fault: Some(EventFault::Malformed), ..EventFacts::default() },
    }
}

/// Returns the name of the completion that an event belongs to.
pub(super) fn id_of(data: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<String>,
        /// Of responses.
        response: Option<Inner>,
        /// Of messages.
        message: Option<Inner>,
    }
    /// The object that has the name, or a text of Ollama.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Inner {
        Object { id: Option<String> },
        Other(IgnoredAny),
    }
    let Named { id, response, message } = serde_json::from_slice(data).ok()?;
    let inner = |inner: Option<Inner>| match inner? {
        Inner::Object { id } => id,
        Inner::Other(_) => None,
    };
    id.or_else(|| inner(response)).or_else(|| inner(message))
}

/// Members of an event that matter, of all dialects.
#[derive(Default)]
struct Said {
    /// Of chunks.
    choices: Option<Choices>,
    /// Of responses and messages.
    kind: Kind,
    /// There is an error, or, of chunks, the object is called one, as in older versions of vLLM.
    failed: bool,
    /// Of chunks, of messages at their end, and of the whole message or response in an event.
    usage: Option<Usage>,
    /// A text of a response, or a part of a message.
    delta: Part,
    /// The block of a message that begins.
    content_block: Part,
    /// The item of a response that begins.
    item: Part,
    /// Of a message as it begins, and of a chat with Ollama.
    message: Part,
    /// A whole response, and the text of a completion by Ollama.
    response: Part,
    /// Of a completion by Ollama.
    thinking: Something,
    done: Option<Something>,
    prompt_eval_count: Count,
    eval_count: Count,
}

impl Said {
    fn facts(self) -> EventFacts {
        let fault = self.failed.then_some(EventFault::Error);
        match self.kind {
            Kind::None | Kind::Other => EventFacts { fault, ..self.untyped() },
            Kind::Error | Kind::Failed => {
                EventFacts { fault: Some(EventFault::Error), ..EventFacts::default() }
            }
            Kind::Delta { reasoning } => {
                let Something(is_there) = self.delta.value;
                EventFacts::of(CompletionApi::Responses, is_there && !reasoning, is_there && reasoning)
            }
            Kind::ItemStart => EventFacts::of(CompletionApi::Responses, self.item.is_named, false),
            Kind::Complete => EventFacts {
                ends: true,
                usage: self.usage,
                ..EventFacts::of(CompletionApi::Responses, false, false)
            },
            Kind::OfResponse => EventFacts::of(CompletionApi::Responses, false, false),
            // Tokens of the answer are counted at its end.
            Kind::MessageStart => EventFacts {
                usage: self.usage.map(|usage| Usage { completion_tokens: None, ..usage }),
                ..EventFacts::of(CompletionApi::Messages, false, false)
            },
            Kind::BlockStart => {
                let Part { answer, reasoning, is_named, .. } = self.content_block;
                EventFacts::of(CompletionApi::Messages, answer || is_named, reasoning)
            }
            Kind::BlockDelta => {
                EventFacts::of(CompletionApi::Messages, self.delta.answer, self.delta.reasoning)
            }
            Kind::MessageDelta => EventFacts {
                ends: self.delta.stops,
                usage: self.usage,
                ..EventFacts::of(CompletionApi::Messages, false, false)
            },
            Kind::MessageStop => {
                EventFacts { ends: true, ..EventFacts::of(CompletionApi::Messages, false, false) }
            }
            Kind::OfMessage => EventFacts::of(CompletionApi::Messages, false, false),
        }
    }

    /// What an event says that has no type: a chunk, or a line of Ollama.
    fn untyped(self) -> EventFacts {
        if let Some(Something(done)) = self.done {
            let answer = self.message.answer || self.response.value.0;
            let usage = Usage {
                prompt_tokens: self.prompt_eval_count.0,
                completion_tokens: self.eval_count.0,
                reasoning_tokens: None,
            };
            return EventFacts {
                ends: done,
                usage: (usage != Usage::default()).then_some(usage),
                ..EventFacts::of(CompletionApi::Lines, answer, self.message.reasoning || self.thinking.0)
            };
        }
        let Choices { answer, reasoning, finished } = self.choices.unwrap_or_default();
        EventFacts {
            ends: finished,
            usage: self.usage,
            api: self.choices.map(|_| CompletionApi::Chunks),
            ..EventFacts::of(CompletionApi::Chunks, answer, reasoning)
        }
    }
}

/// All choices of a chunk together.
#[derive(Clone, Copy, Default)]
struct Choices {
    answer: bool,
    reasoning: bool,
    finished: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice {
    delta: Part,
    /// Of completions without a chat.
    text: Something,
    finish_reason: Something,
}

impl<'de> Deserialize<'de> for Choices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Choices;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Choices, A::Error> {
                let mut all = Choices::default();
                while let Some(choice) = list.next_element::<Choice>()? {
                    all.answer |= choice.delta.answer || choice.text.0;
                    all.reasoning |= choice.delta.reasoning;
                    all.finished |= choice.finish_reason.0;
                }
                Ok(all)
            }
        }
        deserializer.deserialize_seq(Visitor)
    }
}

/// A text, of which it matters whether it is empty, or an object with some members.
#[derive(Clone, Copy, Default)]
struct Part {
    value: Something,
    /// A member with text, or with a part of a tool call.
    answer: bool,
    /// A member with reasoning.
    reasoning: bool,
    /// `true` if the part has a name, as the tool that a call begins with.
    is_named: bool,
    /// `true` if the part says why the answer ends.
    stops: bool,
}

/// A whole message or response, with its usage.
#[derive(Clone, Copy, Default)]
struct Whole {
    part: Part,
    usage: Option<Usage>,
}

/// The members of [`Said`] that matter.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Choices,
    Type,
    Object,
    Error,
    Usage,
    Delta,
    ContentBlock,
    Item,
    Message,
    Response,
    Thinking,
    Done,
    PromptEvalCount,
    EvalCount,
    #[serde(other)]
    Other,
}

impl Said {
    fn members<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        let mut said = Self::default();
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Choices => said.choices = map.next_value()?,
                Key::Type => said.kind = map.next_value()?,
                Key::Object => said.failed |= map.next_value::<Kind>()? == Kind::Error,
                Key::Error => said.failed |= map.next_value::<Option<IgnoredAny>>()?.is_some(),
                Key::Usage => said.usage = map.next_value()?,
                Key::Delta => said.delta = map.next_value()?,
                Key::ContentBlock => said.content_block = map.next_value()?,
                Key::Item => said.item = map.next_value()?,
                Key::Message => said.message = said.whole(map.next_value()?),
                Key::Response => said.response = said.whole(map.next_value()?),
                Key::Thinking => said.thinking = map.next_value()?,
                Key::Done => said.done = map.next_value()?,
                Key::PromptEvalCount => said.prompt_eval_count = map.next_value()?,
                Key::EvalCount => said.eval_count = map.next_value()?,
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(said)
    }

    /// Takes the usage of a whole message or response over.
    fn whole(&mut self, whole: Whole) -> Part {
        self.usage = whole.usage.or(self.usage);
        whole.part
    }
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Said;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Said, A::Error> {
                Said::members(&mut map)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// The members of a [`Part`] that matter.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Member {
    Content,
    Text,
    PartialJson,
    Refusal,
    ToolCalls,
    FunctionCall,
    ReasoningContent,
    Reasoning,
    Thinking,
    Name,
    StopReason,
    Usage,
    #[serde(other)]
    Other,
}

impl Part {
    /// Reads a member; one that is not of a part is left.
    fn take<'de, A: MapAccess<'de>>(&mut self, member: Member, map: &mut A) -> Result<(), A::Error> {
        match member {
            Member::Content
            | Member::Text
            | Member::PartialJson
            | Member::Refusal
            | Member::ToolCalls
            | Member::FunctionCall => self.answer |= map.next_value::<Something>()?.0,
            Member::ReasoningContent | Member::Reasoning | Member::Thinking => {
                self.reasoning |= map.next_value::<Something>()?.0;
            }
            Member::Name => self.is_named = map.next_value::<Something>()?.0,
            Member::StopReason => self.stops = map.next_value::<Something>()?.0,
            Member::Usage | Member::Other => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

impl<'de> FromAny<'de> for Part {
    fn text(text: &str) -> Self {
        Self { value: Something::text(text), ..Self::default() }
    }

    fn members<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        let mut part = Self::default();
        while let Some(member) = map.next_key()? {
            part.take(member, map)?;
        }
        Ok(part)
    }
}

impl<'de> FromAny<'de> for Whole {
    fn text(text: &str) -> Self {
        Self { part: Part::text(text), usage: None }
    }

    fn members<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        let mut whole = Self::default();
        while let Some(member) = map.next_key()? {
            match member {
                Member::Usage => whole.usage = map.next_value()?,
                member => whole.part.take(member, map)?,
            }
        }
        Ok(whole)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

/// The members of a usage that matter.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum UsageMember {
    PromptTokens,
    CompletionTokens,
    InputTokens,
    OutputTokens,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    CompletionTokensDetails,
    OutputTokensDetails,
    #[serde(other)]
    Other,
}

/// The members of a breakdown that matter.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum DetailsMember {
    ReasoningTokens,
    #[serde(other)]
    Other,
}

/// Breakdown of the tokens of an answer.
#[derive(Clone, Copy, Default)]
struct Details {
    reasoning: Count,
}

impl<'de> FromAny<'de> for Details {
    fn members<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        let mut details = Self::default();
        while let Some(member) = map.next_key::<DetailsMember>()? {
            match member {
                DetailsMember::ReasoningTokens => details.reasoning = map.next_value()?,
                DetailsMember::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(details)
    }
}

impl<'de> Deserialize<'de> for Details {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

impl<'de> FromAny<'de> for Usage {
    fn members<A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        let (mut prompt, mut input, mut cached, mut output) = (None, None, 0_u64, None);
        let mut details = Details::default();
        while let Some(member) = map.next_key::<UsageMember>()? {
            match member {
                UsageMember::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                UsageMember::CompletionTokensDetails | UsageMember::OutputTokensDetails => {
                    details = map.next_value()?;
                    continue;
                }
                _ => {}
            }
            let Count(count) = map.next_value()?;
            match member {
                UsageMember::PromptTokens => prompt = count,
                UsageMember::InputTokens => input = count,
                // Anthropic counts these beside `input_tokens`.
                UsageMember::CacheCreationInputTokens | UsageMember::CacheReadInputTokens => {
                    cached = cached.saturating_add(count.unwrap_or(0));
                }
                UsageMember::CompletionTokens | UsageMember::OutputTokens => output = count.or(output),
                _ => {}
            }
        }
        let input = input.map(|tokens: u64| tokens.saturating_add(cached));
        let reasoning_tokens = details.reasoning.0;
        Ok(Self { prompt_tokens: prompt.or(input), completion_tokens: output, reasoning_tokens })
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt: impl Into<Option<u64>>, completion: impl Into<Option<u64>>) -> Option<Usage> {
        let (prompt_tokens, completion_tokens) = (prompt.into(), completion.into());
        Some(Usage { prompt_tokens, completion_tokens, reasoning_tokens: None })
    }

    #[test]
    fn chunks_say_what_their_servers_mean() {
        let other = EventFacts::default();
        let nothing = EventFacts::of(CompletionApi::Chunks, false, false);
        let content = EventFacts::of(CompletionApi::Chunks, true, false);
        let reasoning = EventFacts::of(CompletionApi::Chunks, false, true);
        let ends = EventFacts { ends: true, ..nothing };
        let error = EventFacts { fault: Some(EventFault::Error), ..other };
        let malformed = EventFacts { fault: Some(EventFault::Malformed), ..other };
        let cases = [
            // A role alone is not a token (vllm#15106).
            (
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                nothing,
            ),
            (r#"{"choices":[{"delta":{"role":"assistant"}}]}"#, nothing),
            (r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":null}"#, content),
            (r#"{"choices":[{"delta":{"content":"\n\u00e9"}}]}"#, content),
            (r#"{"choices":[{"delta":{"content":null,"reasoning_content":"Hm"}}]}"#, reasoning),
            (r#"{"choices":[{"delta":{"reasoning":"Hm"}}]}"#, reasoning),
            (r#"{"choices":[{"delta":{"reasoning":"Hm"}},{"delta":{"content":"a"}}]}"#, content),
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
                r#"{"choices":[],"usage":{"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":6,"x":[]}}}"#,
                EventFacts {
                    usage: usage(None, 9).map(|all| Usage { reasoning_tokens: Some(6), ..all }),
                    ..nothing
                },
            ),
            (
                r#"{"choices":[],"usage":{"completion_tokens_details":null,"completion_tokens":3}}"#,
                EventFacts { usage: usage(None, 3), ..nothing },
            ),
            (
                r#"{"choices":null,"usage":{"completion_tokens":3}}"#,
                EventFacts { usage: usage(None, 3), ..other },
            ),
            (r#"{"error":{"message":"out of memory","code":500}}"#, error),
            (r#"{"error":"Request failed during generation","error_type":"generation"}"#, error),
            (r#"{"error":null,"choices":[]}"#, nothing),
            (r#"{"object":"error","message":"m"}"#, error),
            ("[DONE]", EventFacts { ends: true, ..other }),
            (r#"{"type":7,"usage":"none","message":"m"}"#, EventFacts { usage: usage(None, None), ..other }),
            ("{}", other),
            ("[DONE", malformed),
            ("plain text", malformed),
            ("", malformed),
        ];
        for (data, expected) in cases {
            assert_eq!(read(data.as_bytes()), expected, "{data}");
        }
    }

    #[test]
    fn counts_that_none_can_be_are_told_from_missing_ones() {
        for (count, expected) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("null", None),
            ("\"7\"", None),
            ("-1", Some(u64::MAX)),
            ("1.5", Some(u64::MAX)),
            ("1000000000000000000", Some(1_000_000_000_000_000_000)),
            ("1e30", Some(u64::MAX)),
        ] {
            let data =
                format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{count},"completion_tokens":2}}}}"#);
            assert_eq!(read(data.as_bytes()).usage, usage(expected, 2), "{count}");
            let data = format!(r#"{{"response":"","done":true,"prompt_eval_count":2,"eval_count":{count}}}"#);
            assert_eq!(read(data.as_bytes()).usage, usage(2, expected), "{count}");
        }
    }

    #[test]
    fn completions_have_names() {
        for named in [r#"{"type":"response.created","response":{"id":"x"}}"#, r#"{"message":{"id":"x"}}"#] {
            assert_eq!(id_of(named.as_bytes()).as_deref(), Some("x"), "{named}");
        }
        assert_eq!(id_of(br#"{"id":"chatcmpl-1","choices":[]}"#).as_deref(), Some("chatcmpl-1"));
        for data in [&b"[DONE]"[..], b"{}", br#"{"id":null}"#, br#"{"id":7}"#, br#"{"response":"a"}"#] {
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
