//! The bytes of an answer: chunks of a stream in the chunked transfer coding, or one document.

use std::fmt::Write as _;

use serde_json::json;

use super::api::Completion;
use crate::http_reply::HttpReply;

/// The head of a streamed answer.
pub(super) fn write_head(out: &mut Vec<u8>, stays: bool) {
    out.extend_from_slice(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
          transfer-encoding: chunked\r\n",
    );
    out.extend_from_slice(if stays { b"\r\n" } else { b"connection: close\r\n\r\n" });
}

/// The end of the body.
pub(super) fn write_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// Writes an event with this data as a chunk of the transfer coding.
pub(super) fn write_event(out: &mut Vec<u8>, data: &str) {
    let mut size = String::new();
    // A string takes everything.
    let _ = write!(size, "{:x}\r\n", "data: ".len() + data.len() + 2);
    for part in [&size, "data: ", data, "\n\n\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// The answer to one request.
#[derive(Clone, Debug)]
pub(super) struct Answer<'a> {
    pub(super) completion: &'a Completion,
    pub(super) model: &'a str,
    pub(super) number: u64,
}

impl Answer<'_> {
    /// The chunk that says the role alone.
    pub(super) fn role(&self) -> String {
        self.chunk(r#""delta":{"role":"assistant","content":""},"finish_reason":null"#, None)
    }

    /// A chunk with the next tokens behind so many.
    pub(super) fn content(&self, behind: u64, tokens: u64) -> String {
        let text = words(behind, tokens);
        let choice = match self.completion.chat {
            true => format!(r#""delta":{{"content":"{text}"}},"finish_reason":null"#),
            false => format!(r#""text":"{text}","logprobs":null,"finish_reason":null"#),
        };
        self.chunk(&choice, self.completion.continuous_usage.then_some(behind + tokens))
    }

    /// The chunk that says why the answer ends.
    pub(super) fn finish(&self) -> String {
        let choice = match self.completion.chat {
            true => r#""delta":{},"finish_reason":"length""#,
            false => r#""text":"","logprobs":null,"finish_reason":"length""#,
        };
        self.chunk(choice, None)
    }

    /// The chunk with the numbers of tokens.
    pub(super) fn usage(&self, tokens: u64) -> String {
        let usage = self.tokens(tokens);
        format!(r#"{{{},"choices":[],"usage":{usage}}}"#, self.head())
    }

    /// The answer as one document.
    pub(super) fn document(&self) -> HttpReply {
        let Completion { chat, tokens, prompt_tokens, .. } = *self.completion;
        let text = words(0, tokens);
        let choice = match chat {
            true => json!({"index": 0, "message": {"role": "assistant", "content": text},
                           "finish_reason": "length"}),
            false => json!({"index": 0, "text": text, "finish_reason": "length"}),
        };
        HttpReply::json(
            200,
            &json!({
                "id": format!("cmpl-{}", self.number),
                "object": if chat { "chat.completion" } else { "text_completion" },
                "created": 0,
                "model": self.model,
                "choices": [choice],
                "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": tokens,
                          "total_tokens": prompt_tokens + tokens},
            }),
        )
    }

    fn chunk(&self, choice: &str, tokens: Option<u64>) -> String {
        let usage = match tokens {
            Some(tokens) => format!(r#","usage":{}"#, self.tokens(tokens)),
            None if self.completion.include_usage => r#","usage":null"#.to_owned(),
            None => String::new(),
        };
        format!(r#"{{{},"choices":[{{"index":0,{choice}}}]{usage}}}"#, self.head())
    }

    fn head(&self) -> String {
        let object = if self.completion.chat { "chat.completion.chunk" } else { "text_completion" };
        let model = serde_json::Value::from(self.model);
        format!(r#""id":"cmpl-{}","object":"{object}","created":0,"model":{model}"#, self.number)
    }

    fn tokens(&self, tokens: u64) -> String {
        let prompt = self.completion.prompt_tokens;
        let total = prompt + tokens;
        format!(r#"{{"prompt_tokens":{prompt},"completion_tokens":{tokens},"total_tokens":{total}}}"#)
    }
}

/// Words that count as a token each.
fn words(behind: u64, tokens: u64) -> String {
    let mut text = String::new();
    for number in behind..behind + tokens {
        // A string takes everything.
        let _ = write!(text, " w{number}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_json_and_say_what_they_should() {
        for chat in [true, false] {
            let completion = Completion {
                chat,
                stream: true,
                include_usage: true,
                continuous_usage: true,
                tokens: 3,
                prompt_tokens: 2,
            };
            let answer = Answer { completion: &completion, model: "a\"b", number: 5 };
            let read = |chunk: String| serde_json::from_str::<serde_json::Value>(&chunk).expect("JSON");
            let content = read(answer.content(1, 2));
            let pointer = if chat { "/choices/0/delta/content" } else { "/choices/0/text" };
            assert_eq!(content.pointer(pointer).unwrap(), " w1 w2");
            assert_eq!(content.pointer("/usage/completion_tokens").unwrap(), 3);
            assert_eq!(content["model"], "a\"b");
            assert_eq!(read(answer.finish()).pointer("/choices/0/finish_reason").unwrap(), "length");
            assert_eq!(read(answer.usage(3)).pointer("/usage/total_tokens").unwrap(), 5);
            assert_eq!(read(answer.role()).pointer("/choices/0/delta/role").unwrap(), "assistant");
            let document = read(answer.document().body);
            assert_eq!(document.pointer("/usage/completion_tokens").unwrap(), 3);
        }
        let mut out = Vec::new();
        write_event(&mut out, "[DONE]");
        assert_eq!(out, b"e\r\ndata: [DONE]\n\n\r\n");
    }
}
