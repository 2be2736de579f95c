//! The bytes of an answer: events of a stream, or one document.

use std::fmt::Write as _;

use plimsoll_targets::http_reply::HttpReply;
use plimsoll_targets::server::http::HttpProtocol;
use plimsoll_wire::http1::write_response_head;
use plimsoll_wire::http2::hpack::put_literal;
use plimsoll_wire::http2::{ErrorCode, Payload};

use super::api::Completion;
use super::dialect::Dialect;

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
    pub(super) protocol: &'a mut HttpProtocol,
    pub(super) to: To,
    /// Set if a stream is lines of JSON.
    pub(super) in_lines: bool,
    pub(super) out: &'a mut Vec<u8>,
}

impl AnswerWriter<'_> {
    /// Returns `true` if more may be written: less than `most` bytes wait for the client, and none of the
    /// answer for a window.
    pub(super) fn is_read(&self, most: usize) -> bool {
        let is_held =
            matches!(&*self.protocol, HttpProtocol::Http2(server) if server.waiting(self.to.stream) > 0);
        !is_held && self.out.len() < most
    }

    /// The head of a streamed answer.
    pub(super) fn head(&mut self) {
        let Self { protocol, to, in_lines, out } = self;
        let kind = if *in_lines { LINES } else { EVENTS };
        if let HttpProtocol::Http2(server) = protocol {
            let fields = [(":status", "200"), ("content-type", kind), ("cache-control", "no-cache")];
            let write = |out: &mut Vec<u8>| put_fields(&fields, out);
            server.reply_head(to.stream, |_, out| write(out), out);
            return;
        }
        for part in ["HTTP/1.1 200 OK\r\ncontent-type: ", kind, "\r\ncache-control: no-cache\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        out.extend_from_slice(if to.stays { b"\r\n" } else { b"connection: close\r\n\r\n" });
    }

    /// An event with this data, and with this name if it has one.
    pub(super) fn event(&mut self, name: &str, data: &str) {
        let Self { protocol, to, in_lines, out } = self;
        let parts = match (*in_lines, name) {
            (true, _) => ["", "", "", data, "\n"],
            (false, "") => ["", "", "data: ", data, "\n\n"],
            (false, name) => ["event: ", name, "\ndata: ", data, "\n\n"],
        };
        if let HttpProtocol::Http2(server) = protocol {
            server.data(to.stream, Payload::Bytes(parts.concat().as_bytes()), false, out);
            return;
        }
        let mut size = String::new();
        // A string takes everything.
        let _ = write!(size, "{:x}\r\n", parts.iter().map(|part| part.len()).sum::<usize>());
        for part in [size.as_str()].into_iter().chain(parts).chain(["\r\n"]) {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// The end of the body of a streamed answer.
    pub(super) fn end(&mut self) {
        let Self { protocol, to, out, .. } = self;
        match protocol {
            HttpProtocol::Http2(server) => {
                server.data(to.stream, Payload::None, true, out);
            }
            _ => out.extend_from_slice(b"0\r\n\r\n"),
        }
    }

    /// The end of a stream that is broken off. On HTTP/1.1 that is the end of its connection, which is not
    /// written.
    pub(super) fn cut(&mut self) {
        let Self { protocol, to, out, .. } = self;
        if let HttpProtocol::Http2(server) = protocol {
            server.reset(to.stream, ErrorCode::InternalError, out);
        }
    }

    /// The head of an answer that is one document of JSON, of this length.
    pub(super) fn document_head(&mut self, length: u64) {
        let Self { protocol, to, out, .. } = self;
        let HttpProtocol::Http2(server) = protocol else {
            return write_response_head(out, 200, Some(JSON), length, !to.stays, &[]);
        };
        let length = length.to_string();
        let fields = [(":status", "200"), ("content-length", length.as_str()), ("content-type", JSON)];
        server.reply_head(to.stream, |_, out| put_fields(&fields, out), out);
    }

    /// A part of a document, or its last one.
    pub(super) fn part(&mut self, text: &str, is_last: bool) {
        let Self { protocol, to, out, .. } = self;
        match protocol {
            HttpProtocol::Http2(server) => {
                server.data(to.stream, Payload::Bytes(text.as_bytes()), is_last, out);
            }
            _ => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// An answer that is there as a whole.
    pub(super) fn reply(&mut self, reply: &HttpReply) {
        let Self { protocol, to, out, .. } = self;
        let HttpProtocol::Http2(server) = protocol else {
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

/// The types of streams.
const EVENTS: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";
/// The type of an answer that is not a stream.
const JSON: &str = "application/json";

/// An answer as one document: a front, the words, and a back.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) front: String,
    pub(super) back: String,
    pub(super) tokens: u64,
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
    /// A chunk of OpenAI with this choice.
    pub(super) fn chunk(&self, choice: &str, tokens: Option<u64>) -> String {
        let usage = match tokens {
            Some(tokens) => format!(r#","usage":{}"#, self.tokens(tokens)),
            None if self.completion.include_usage => r#","usage":null"#.to_owned(),
            None => String::new(),
        };
        format!(r#"{{{},"choices":[{{"index":0,{choice}}}]{usage}}}"#, self.head())
    }

    /// The members that all chunks of OpenAI have.
    pub(super) fn head(&self) -> String {
        let object = match self.completion.dialect {
            Dialect::Chat => "chat.completion.chunk",
            _ => "text_completion",
        };
        let model = serde_json::Value::from(self.model);
        format!(r#""id":"cmpl-{}","object":"{object}","created":0,"model":{model}"#, self.number)
    }

    /// The usage of OpenAI.
    pub(super) fn tokens(&self, tokens: u64) -> String {
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

    /// The events of a whole stream, with their names.
    fn streamed(answer: &Answer<'_>) -> Vec<(String, String)> {
        let (mut protocol, mut out) = (HttpProtocol::Http1(RequestServer::new()), Vec::new());
        let to = To { stream: 0, head_request: false, stays: true };
        let in_lines = answer.completion.dialect.is_in_lines();
        let mut writer = AnswerWriter { protocol: &mut protocol, to, in_lines, out: &mut out };
        answer.begin(&mut writer);
        answer.content(&mut writer, 0, 1);
        answer.content(&mut writer, 1, 2);
        answer.finish(&mut writer, 3);
        let text = String::from_utf8(out).expect("a text");
        // Behind the size of each chunk of HTTP.
        let events = text.split_terminator("\r\n").skip(1).step_by(2).map(|event| {
            let event = event.trim_end();
            let (name, data) = event.split_once('\n').unwrap_or(("", event));
            let data = data.trim_start_matches("data: ").to_owned();
            (name.trim_start_matches("event: ").to_owned(), data)
        });
        events.collect()
    }

    #[test]
    fn answers_are_json_and_say_what_they_should() {
        for reasoning in [0, 1] {
            check_answers(reasoning);
        }
    }

    fn check_answers(reasoning: u64) {
        let (chat, text) = ("/choices/0/delta/content", "/choices/0/text");
        for (dialect, path, whole, usage) in [
            (Dialect::Chat, chat, "/choices/0/message/content", "/usage/completion_tokens"),
            (Dialect::Text, text, text, "/usage/completion_tokens"),
            (Dialect::Responses, "/delta", "/output/0/content/0/text", "/usage/output_tokens"),
            (Dialect::Messages, "/delta/text", "/content/0/text", "/usage/output_tokens"),
            (Dialect::OllamaChat, "/message/content", "/message/content", "/eval_count"),
            (Dialect::OllamaText, "/response", "/response", "/eval_count"),
        ] {
            let completion = Completion {
                dialect,
                stream: true,
                include_usage: true,
                continuous_usage: false,
                tokens: 3,
                reasoning: if dialect == Dialect::Text { 0 } else { reasoning },
                prompt_tokens: 2,
            };
            let answer = Answer { completion: &completion, model: "a\"b", number: 5 };
            let read = |data: &str| {
                serde_json::from_str::<serde_json::Value>(data)
                    .unwrap_or_else(|error| panic!("{error}: {data}"))
            };
            let events = streamed(&answer);
            let of_json: Vec<_> =
                events.iter().filter(|(_, data)| data != "[DONE]").map(|(_, data)| read(data)).collect();
            let pieces: String = of_json
                .iter()
                .filter(|event| {
                    !["response.output_text.done", "response.reasoning_text.delta"]
                        .iter()
                        .any(|kind| event["type"] == *kind)
                })
                .filter_map(|event| event.pointer(path)?.as_str())
                .collect();
            let expected = if completion.reasoning > 0 { " w1 w2" } else { " w0 w1 w2" };
            assert_eq!(pieces, expected, "{dialect:?}");
            let reasoned =
                events.iter().filter(|(_, data)| data.contains("w0") && data.contains("reasoning"));
            let thought = events.iter().filter(|(_, data)| data.contains(r#""thinking":" w0""#));
            let all = reasoned.count() + thought.count();
            assert!(all as u64 >= completion.reasoning, "{dialect:?}: {events:#?}");
            let counted = |event: &serde_json::Value| {
                let inner = event.get("response").filter(|inner| inner.is_object()).unwrap_or(event);
                inner.pointer(usage).and_then(serde_json::Value::as_u64)
            };
            assert_eq!(of_json.iter().filter_map(counted).next_back(), Some(3), "{dialect:?}");
            // Events are named by their type, where they have one.
            for (event, (name, _)) in of_json.iter().zip(&events) {
                assert_eq!(event.get("type").and_then(serde_json::Value::as_str).unwrap_or(""), name);
            }
            let Document { front, back, .. } = answer.document();
            let document = read(&format!("{front}{}{back}", words(0, 3)));
            assert_eq!(document["model"], "a\"b");
            assert_eq!(document.pointer(whole).and_then(serde_json::Value::as_str), Some(" w0 w1 w2"));
            assert_eq!(counted(&document), Some(3), "{dialect:?}");
        }
    }

    #[test]
    fn a_server_that_counts_in_every_chunk_counts_up_to_it() {
        let completion = Completion {
            dialect: Dialect::Chat,
            stream: true,
            include_usage: true,
            continuous_usage: true,
            tokens: 3,
            reasoning: 0,
            prompt_tokens: 2,
        };
        let events = streamed(&Answer { completion: &completion, model: "m", number: 5 });
        assert!(events[2].1.contains(r#""completion_tokens":3,"total_tokens":5"#), "{events:?}");
        let (mut protocol, mut out) = (HttpProtocol::Http1(RequestServer::new()), Vec::new());
        let to = To { stream: 0, head_request: false, stays: true };
        let mut writer = AnswerWriter { protocol: &mut protocol, to, in_lines: false, out: &mut out };
        writer.event("", "[DONE]");
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
