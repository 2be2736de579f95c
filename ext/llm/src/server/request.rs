//! Reads the body of a request, without making a tree of it: that would take many times its bytes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The members of an object that matter somewhere in a request. One with a value of another type is as if it
/// were missing, and of several with one name the last counts.
#[derive(Debug, Default)]
pub(super) struct CompletionRequest {
    pub(super) model: Option<String>,
    /// Bytes of the texts of all messages.
    pub(super) messages: Option<u64>,
    /// Bytes of the texts of the prompt.
    pub(super) prompt: Option<u64>,
    /// Bytes of the texts of the input of a response.
    pub(super) input: Option<u64>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: StreamOptions,
    pub(super) max_completion_tokens: Option<u64>,
    pub(super) max_tokens: Option<u64>,
    pub(super) max_output_tokens: Option<u64>,
    /// Of the options of Ollama; of an object that is these, its own.
    pub(super) num_predict: Option<u64>,
    /// Members that it has as the options of a stream, and not as a request.
    as_options: StreamOptions,
    /// Bytes of its `text`, as a part of a list.
    text: u64,
    /// Bytes of its `content`, as a message.
    content: u64,
}

/// The options of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
    pub(super) continuous_usage: bool,
}

impl CompletionRequest {
    /// Reads a body; `None` if it is not an object of JSON.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Seen>(body).ok()?.object
    }

    /// Takes a member over.
    fn take(&mut self, name: &str, value: Seen) {
        match name {
            "model" => self.model = value.text,
            "messages" => self.messages = value.messages,
            "prompt" => self.prompt = Some(value.bytes),
            "input" => self.input = value.messages.or(value.text.map(|_| value.bytes)),
            "stream" => self.stream = value.flag,
            "stream_options" => {
                self.stream_options = value.object.map(|object| object.as_options).unwrap_or_default();
            }
            "max_completion_tokens" => self.max_completion_tokens = value.number,
            "max_tokens" => self.max_tokens = value.number,
            "max_output_tokens" => self.max_output_tokens = value.number,
            "options" => self.num_predict = value.object.and_then(|object| object.num_predict),
            "num_predict" => self.num_predict = value.number,
            "include_usage" => self.as_options.include_usage = value.flag == Some(true),
            "continuous_usage_stats" => self.as_options.continuous_usage = value.flag == Some(true),
            "text" => self.text = value.bytes,
            "content" => self.content = value.bytes,
            _ => {}
        }
    }
}

/// Names of the members that matter.
const NAMES: [&str; 15] = [
    "model",
    "input",
    "max_output_tokens",
    "options",
    "num_predict",
    "messages",
    "prompt",
    "stream",
    "stream_options",
    "max_completion_tokens",
    "max_tokens",
    "include_usage",
    "continuous_usage_stats",
    "text",
    "content",
];

/// What matters of a value of any type.
#[derive(Debug, Default)]
struct Seen {
    flag: Option<bool>,
    number: Option<u64>,
    text: Option<String>,
    /// Bytes of a text, or of the texts in a list.
    bytes: u64,
    /// Bytes of the contents of the messages in a list.
    messages: Option<u64>,
    object: Option<CompletionRequest>,
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeenVisitor)
    }
}

struct SeenVisitor;

impl<'de> Visitor<'de> for SeenVisitor {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Seen, E> {
        Ok(Seen { flag: Some(value), ..Seen::default() })
    }

    fn visit_u64<E>(self, value: u64) -> Result<Seen, E> {
        Ok(Seen { number: Some(value), ..Seen::default() })
    }

    fn visit_i64<E>(self, _: i64) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_unit<E>(self) -> Result<Seen, E> {
        Ok(Seen::default())
    }

    fn visit_str<E>(self, value: &str) -> Result<Seen, E> {
        Ok(Seen { bytes: value.len() as u64, text: Some(value.to_owned()), ..Seen::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Seen, A::Error> {
        let (mut bytes, mut messages) = (0, 0);
        while let Some(part) = list.next_element::<Seen>()? {
            bytes += part.object.as_ref().map_or(part.bytes, |object| object.text);
            messages += part.object.as_ref().map_or(0, |object| object.content);
        }
        Ok(Seen { bytes, messages: Some(messages), ..Seen::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Seen, A::Error> {
        let mut object = CompletionRequest::default();
        while let Some(name) = members.next_key::<String>()? {
            match NAMES.contains(&name.as_str()) {
                true => object.take(&name, members.next_value()?),
                false => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Seen { object: Some(object), ..Seen::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> CompletionRequest {
        CompletionRequest::read(body.as_bytes()).expect("it is an object")
    }

    #[test]
    fn texts_are_counted_wherever_they_may_be() {
        for (messages, bytes) in [
            (r#"[{"content":"12345"},{"content":["1",{"text":"23"},["4",{"text":["5"]}]]}]"#, Some(10)),
            (r#"[{"role":"user","name":"x"},7,null,"text",{"content":{"text":"no list"}}]"#, Some(0)),
            (r#"[{"content":"1","content":"23"}]"#, Some(2)),
            (r#"[{"content":"\u00e9\n"}]"#, Some(3)),
            ("[]", Some(0)),
            ("{}", None),
            (r#""text""#, None),
        ] {
            assert_eq!(read(&format!(r#"{{"messages":{messages}}}"#)).messages, bytes, "{messages}");
        }
        for (prompt, bytes) in [(r#""abc""#, 3), (r#"["a",["bc"],{"text":"d"},1]"#, 4), ("null", 0)] {
            assert_eq!(read(&format!(r#"{{"prompt":{prompt}}}"#)).prompt, Some(bytes), "{prompt}");
        }
    }

    #[test]
    fn members_of_other_types_are_as_if_they_were_missing() {
        let odd = read(
            r#"{"model":1,"stream":"true","stream_options":[],"max_tokens":-1,"max_completion_tokens":1.5,
                "include_usage":true}"#,
        );
        assert_eq!((odd.model, odd.stream, odd.stream_options.include_usage), (None, None, false));
        assert_eq!((odd.max_tokens, odd.max_completion_tokens), (None, None));
        let good = read(
            r#"{"model":"m","stream":true,
                "stream_options":{"include_usage":true,"continuous_usage_stats":true},"max_tokens":7,"unknown":{"deep":[1,{"text":2}]}}"#,
        );
        assert_eq!((good.model.as_deref(), good.stream, good.max_tokens), (Some("m"), Some(true), Some(7)));
        assert!(good.stream_options.include_usage && good.stream_options.continuous_usage);
        for body in ["", "[]", "1", "{", r#"{"a":1}x"#] {
            assert!(CompletionRequest::read(body.as_bytes()).is_none(), "{body}");
        }
    }
}
