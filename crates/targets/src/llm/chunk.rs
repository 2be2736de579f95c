//! The bytes of an answer: events of a stream, or one document.

use std::fmt::Write as _;

use plimsoll_wire::http1::write_response_head;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{ErrorCode, Payload};
use serde_json::json;

use super::api::Completion;
use crate::http_reply::HttpReply;
use crate::sink::connection::Protocol;

/// The request that an answer belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct To {
    /// The stream of HTTP/2; 0 on HTTP/1.1.
    pub(super) stream: u32,
    /// `true` for a HEAD request, whose answer has no body.
    pub(super) head_request: bool,
    /// `true` if the connection stays open after the answer.
    pub(super) stays: bool,
}

/// Writes an answer in the protocol of its connection. On HTTP/1.1 a stream is in the chunked transfer
/// coding. On HTTP/2 a part is not written that the client does not want any more, and one that its windows
/// hold back follows when they open.
pub(super) struct AnswerWriter<'a> {
    pub(super) protocol: &'a mut Protocol,
    pub(super) to: To,
    pub(super) out: &'a mut Vec<u8>,
}

impl AnswerWriter<'_> {
    /// Returns `true` if the client reads what it is sent: of the connection less than `most` bytes wait,
    /// with `unsent` that are queued already, and of the answer none for a window.
    pub(super) fn is_read(&self, unsent: usize, most: usize) -> bool {
        let is_held =
            matches!(&*self.protocol, Protocol::Http2(server) if server.waiting(self.to.stream) > 0);
        !is_held && unsent + self.out.len() < most
    }

    /// The head of a streamed answer.
    pub(super) fn head(&mut self) {
        let Self { protocol, to, out } = self;
        if let Protocol::Http2(server) = protocol {
            let fields =
                [(":status", "200"), ("content-type", "text/event-stream"), ("cache-control", "no-cache")];
            let write = |out: &mut Vec<u8>| put_fields(&fields, out);
            server.reply_head(to.stream, |_, out| write(out), out);
            return;
        }
        out.extend_from_slice(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
              transfer-encoding: chunked\r\n",
        );
        out.extend_from_slice(if to.stays { b"\r\n" } else { b"connection: close\r\n\r\n" });
    }

    /// An event with this data.
    pub(super) fn event(&mut self, data: &str) {
        let Self { protocol, to, out } = self;
        if let Protocol::Http2(server) = protocol {
            let event = format!("data: {data}\n\n");
            server.data(to.stream, Payload::Bytes(event.as_bytes()), false, out);
            return;
        }
        let mut size = String::new();
        // A string takes everything.
        let _ = write!(size, "{:x}\r\n", "data: ".len() + data.len() + 2);
        for part in [&size, "data: ", data, "\n\n\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// The end of the body of a streamed answer.
    pub(super) fn end(&mut self) {
        let Self { protocol, to, out } = self;
        match protocol {
            Protocol::Http2(server) => {
                server.data(to.stream, Payload::None, true, out);
            }
            _ => out.extend_from_slice(b"0\r\n\r\n"),
        }
    }

    /// The end of a stream that is broken off. On HTTP/1.1 that is the end of its connection, which is not
    /// written.
    pub(super) fn cut(&mut self) {
        let Self { protocol, to, out } = self;
        if let Protocol::Http2(server) = protocol {
            server.reset(to.stream, ErrorCode::InternalError, out);
        }
    }

    /// The head of an answer that is one document of JSON, of this length.
    pub(super) fn document_head(&mut self, length: u64) {
        let Self { protocol, to, out } = self;
        let Protocol::Http2(server) = protocol else {
            return write_response_head(out, 200, Some(JSON), length, !to.stays, &[]);
        };
        let length = length.to_string();
        let fields = [(":status", "200"), ("content-length", length.as_str()), ("content-type", JSON)];
        server.reply_head(to.stream, |_, out| put_fields(&fields, out), out);
    }

    /// A part of a document, or its last one.
    pub(super) fn part(&mut self, text: &str, is_last: bool) {
        let Self { protocol, to, out } = self;
        match protocol {
            Protocol::Http2(server) => {
                server.data(to.stream, Payload::Bytes(text.as_bytes()), is_last, out);
            }
            _ => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// An answer that is there as a whole.
    pub(super) fn reply(&mut self, reply: &HttpReply) {
        let Self { protocol, to, out } = self;
        let Protocol::Http2(server) = protocol else {
            return reply.write(out, to.head_request, to.stays);
        };
        let (status, length) = (reply.status.to_string(), reply.body.len().to_string());
        let mut fields = vec![(":status", status.as_str()), ("content-length", &length)];
        fields.extend(reply.content_type.map(|content_type| ("content-type", content_type)));
        let payload = Payload::Bytes(reply.body.as_bytes());
        server.reply(to.stream, |_, out| put_fields(&fields, out), payload, out);
    }
}

/// The block of a head, each field as it is: heads are few beside events.
fn put_fields(fields: &[(&str, &str)], out: &mut Vec<u8>) {
    for (name, value) in fields {
        put_literal(out, name.as_bytes(), value.as_bytes(), false);
    }
}

/// The type of an answer that is not a stream.
const JSON: &str = "application/json";

/// An answer as one document: a front, the words, and a back.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) front: String,
    pub(super) back: String,
    tokens: u64,
}

impl Document {
    /// Bytes of the whole.
    pub(super) fn length(&self) -> u64 {
        self.front.len() as u64 + words_bytes(self.tokens) + self.back.len() as u64
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

    /// A chunk with the next tokens after the first `behind`.
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
    pub(super) fn document(&self) -> Document {
        let Completion { chat, tokens, prompt_tokens, .. } = *self.completion;
        let (choice, key) = match chat {
            true => (
                json!({"index": 0, "message": {"role": "assistant", "content": ""},
                       "finish_reason": "length"}),
                r#""content":""#,
            ),
            false => (json!({"index": 0, "text": "", "finish_reason": "length"}), r#""text":""#),
        };
        let empty = json!({
            "id": format!("cmpl-{}", self.number),
            "object": if chat { "chat.completion" } else { "text_completion" },
            "created": 0,
            "model": self.model,
            "choices": [choice],
            "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": tokens,
                      "total_tokens": prompt_tokens + tokens},
        });
        let mut front = empty.to_string();
        // No value has a quotation mark that is not escaped, so that this is the key.
        let at = front.find(key).map_or(front.len(), |at| at + key.len());
        let back = front.split_off(at);
        Document { front, back, tokens }
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

/// Bytes of the first words.
fn words_bytes(tokens: u64) -> u64 {
    // ` w` of each, a digit of each, and one more from each power of ten on.
    let mut bytes = 3 * tokens;
    let mut power = 10;
    while power < tokens {
        bytes += tokens - power;
        power *= 10;
    }
    bytes
}

/// Words that count as a token each.
pub(super) fn words(behind: u64, tokens: u64) -> String {
    let mut text = String::new();
    for number in behind..behind + tokens {
        // A string takes everything.
        let _ = write!(text, " w{number}");
    }
    text
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::http1::RequestServer;

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
            let Document { front, back, .. } = answer.document();
            let document = read(format!("{front}{}{back}", words(0, 3)));
            assert_eq!(document.pointer("/usage/completion_tokens").unwrap(), 3);
            let pointer = if chat { "/choices/0/message/content" } else { "/choices/0/text" };
            assert_eq!(document.pointer(pointer).unwrap(), " w0 w1 w2");
        }
        let (mut protocol, mut out) = (Protocol::Http1(RequestServer::new()), Vec::new());
        let to = To { stream: 0, head_request: false, stays: true };
        let mut writer = AnswerWriter { protocol: &mut protocol, to, out: &mut out };
        writer.event("[DONE]");
        writer.end();
        assert_eq!(out, b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    }

    #[test]
    fn the_length_of_words_is_known_before_they_are_made() {
        for tokens in [1, 2, 9, 10, 11, 99, 100, 101, 12_345] {
            assert_eq!(words_bytes(tokens), words(0, tokens).len() as u64, "{tokens}");
        }
    }
}
