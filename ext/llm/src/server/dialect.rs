//! The words of each API: what an answer's events, its document and its errors look like.

use plimsoll_targets::http_reply::HttpReply;
use serde_json::{Value, json};

use super::chunk::{Answer, AnswerWriter, Document, words};

/// Words that an event at the end of a response of OpenAI repeats at most; a longer answer is not repeated.
const REPEATED_WORDS: u64 = 256;
/// The instant at which Ollama says that everything happens.
const CREATED: &str = "1970-01-01T00:00:00Z";
/// The message of an answer that goes wrong on purpose.
const FAILED: &str = "the engine has failed on purpose";

/// The API that a request is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAI's chat.
    Chat,
    /// OpenAI's completion of a plain text.
    Text,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// A chat with Ollama.
    OllamaChat,
    /// Ollama's completion of a plain text.
    OllamaText,
}

impl Dialect {
    /// Returns the one that a path has.
    pub(super) fn of_path(path: &[u8]) -> Option<Self> {
        match path {
            b"/v1/chat/completions" => Some(Self::Chat),
            b"/v1/completions" => Some(Self::Text),
            b"/v1/responses" => Some(Self::Responses),
            b"/v1/messages" => Some(Self::Messages),
            b"/api/chat" => Some(Self::OllamaChat),
            b"/api/generate" => Some(Self::OllamaText),
            _ => None,
        }
    }

    /// Returns `true` if its streams are lines of JSON, and streams unless a request says otherwise.
    pub(super) const fn is_in_lines(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaText)
    }

    /// Returns `true` if the events of an answer are not understood without those of its beginning.
    pub(super) const fn has_envelope(self) -> bool {
        matches!(self, Self::Responses | Self::Messages)
    }

    /// An error.
    pub(super) fn error(self, status: u16, kind: &str, message: &str) -> HttpReply {
        HttpReply::json(status, &self.error_body(status, kind, message))
    }

    fn error_body(self, status: u16, kind: &str, message: &str) -> Value {
        match self {
            Self::Chat | Self::Text | Self::Responses => {
                json!({"error": {"message": message, "type": kind, "code": status}})
            }
            Self::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::OllamaChat | Self::OllamaText => json!({"error": message}),
        }
    }
}

impl Answer<'_> {
    /// The events before any content: the role, and whatever holds the content.
    pub(super) fn begin(&self, writer: &mut AnswerWriter<'_>) {
        match self.completion.dialect {
            Dialect::Chat => {
                writer.event(
                    "",
                    &self.chunk(r#""delta":{"role":"assistant","content":""},"finish_reason":null"#, None),
                );
            }
            Dialect::Text | Dialect::OllamaChat | Dialect::OllamaText => {}
            Dialect::Responses => {
                for (number, name) in ["response.created", "response.in_progress"].into_iter().enumerate() {
                    let mut event = json!({"type": name, "sequence_number": number});
                    event["response"] = self.response("in_progress", 0);
                    writer.event(name, &event.to_string());
                }
                if self.thinks(0) {
                    let item = json!({"id": "item-0", "type": "reasoning", "summary": []});
                    self.response_event(writer, "response.output_item.added", 2, ("item", item));
                } else {
                    self.begin_answer(writer, 2);
                }
            }
            Dialect::Messages => {
                let mut message = self.message();
                message["content"] = json!([]);
                message["stop_reason"] = Value::Null;
                message["usage"]["output_tokens"] = 1.into();
                writer.event(
                    "message_start",
                    &json!({"type": "message_start", "message": message}).to_string(),
                );
                if self.thinks(0) {
                    let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                    begin_block(writer, 0, &block);
                } else {
                    self.begin_answer(writer, 0);
                }
                writer.event("ping", r#"{"type":"ping"}"#);
            }
        }
    }

    /// What holds the content that is not reasoning begins; `number` is the next of a response.
    fn begin_answer(&self, writer: &mut AnswerWriter<'_>, number: u64) {
        match self.completion.dialect {
            Dialect::Responses => {
                let item = json!({"id": "item-0", "type": "message", "role": "assistant",
                                  "status": "in_progress", "content": []});
                self.response_event(writer, "response.output_item.added", number, ("item", item));
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                self.response_event(writer, "response.content_part.added", number + 1, ("part", part));
            }
            Dialect::Messages => {
                let place = self.answer_block();
                if place > 0 {
                    end_block(writer, place - 1);
                }
                begin_block(writer, place, &json!({"type": "text", "text": ""}));
            }
            Dialect::Chat | Dialect::Text | Dialect::OllamaChat | Dialect::OllamaText => {}
        }
    }

    /// Returns `true` if the token after the first `behind` is reasoning.
    fn thinks(&self, behind: u64) -> bool {
        behind < self.completion.reasoning
    }

    /// The place of a message's block that has the answer.
    fn answer_block(&self) -> u64 {
        u64::from(self.completion.reasoning > 0)
    }

    /// An event with the next tokens after the first `behind`, which are all reasoning or all not.
    pub(super) fn content(&self, writer: &mut AnswerWriter<'_>, behind: u64, tokens: u64) {
        let (text, thinks) = (words(behind, tokens), self.thinks(behind));
        let counted = self.completion.continuous_usage.then_some(behind + tokens);
        if behind > 0 && behind == self.completion.reasoning {
            self.begin_answer(writer, OPENING_EVENTS + behind);
        }
        match self.completion.dialect {
            Dialect::Chat => {
                let name = if thinks { "reasoning_content" } else { "content" };
                let choice = format!(r#""delta":{{"{name}":"{text}"}},"finish_reason":null"#);
                writer.event("", &self.chunk(&choice, counted));
            }
            Dialect::Text => {
                let choice = format!(r#""text":"{text}","logprobs":null,"finish_reason":null"#);
                writer.event("", &self.chunk(&choice, counted));
            }
            Dialect::Responses => {
                let name =
                    if thinks { "response.reasoning_text.delta" } else { "response.output_text.delta" };
                let number = OPENING_EVENTS + behind + if thinks { 0 } else { 2 };
                let event = format!(
                    r#"{{"type":"{name}","sequence_number":{number},"item_id":"item-0","output_index":0,"content_index":0,"delta":"{text}"}}"#
                );
                writer.event(name, &event);
            }
            Dialect::Messages => {
                const NAME: &str = "content_block_delta";
                let place = if thinks { 0 } else { self.answer_block() };
                let kind = if thinks { "thinking" } else { "text" };
                let event = format!(
                    r#"{{"type":"{NAME}","index":{place},"delta":{{"type":"{kind}_delta","{kind}":"{text}"}}}}"#
                );
                writer.event(NAME, &event);
            }
            Dialect::OllamaChat => {
                let said = match thinks {
                    true => format!(r#""content":"","thinking":"{text}""#),
                    false => format!(r#""content":"{text}""#),
                };
                writer.event("", &self.line(&format!(r#""message":{{"role":"assistant",{said}}}"#)));
            }
            Dialect::OllamaText => {
                let said = match thinks {
                    true => format!(r#""response":"","thinking":"{text}""#),
                    false => format!(r#""response":"{text}""#),
                };
                writer.event("", &self.line(&said));
            }
        }
    }

    /// The events that say why the answer ends, and how many tokens it had.
    pub(super) fn finish(&self, writer: &mut AnswerWriter<'_>, tokens: u64) {
        match self.completion.dialect {
            Dialect::Chat | Dialect::Text => {
                let choice = match self.completion.dialect {
                    Dialect::Chat => r#""delta":{},"finish_reason":"length""#,
                    _ => r#""text":"","logprobs":null,"finish_reason":"length""#,
                };
                writer.event("", &self.chunk(choice, None));
                if self.completion.include_usage {
                    let usage = self.tokens(tokens);
                    writer.event("", &format!(r#"{{{},"choices":[],"usage":{usage}}}"#, self.head()));
                }
                writer.event("", "[DONE]");
            }
            Dialect::Responses => {
                let number = OPENING_EVENTS + tokens + 2;
                let text = repeated(self.completion.reasoning, tokens);
                self.response_event(
                    writer,
                    "response.output_text.done",
                    number,
                    ("text", text.clone().into()),
                );
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                self.response_event(writer, "response.content_part.done", number + 1, ("part", part.clone()));
                let item = json!({"id": "item-0", "type": "message", "role": "assistant",
                                  "status": "incomplete", "content": [part]});
                self.response_event(writer, "response.output_item.done", number + 2, ("item", item.clone()));
                let mut response = self.response("incomplete", tokens);
                response["output"] = json!([item]);
                let name = "response.incomplete";
                let event = json!({"type": name, "sequence_number": number + 3, "response": response});
                writer.event(name, &event.to_string());
            }
            Dialect::Messages => {
                end_block(writer, self.answer_block());
                let usage = json!({"output_tokens": tokens});
                let delta = json!({"stop_reason": "max_tokens", "stop_sequence": null});
                let event = json!({"type": "message_delta", "delta": delta, "usage": usage});
                writer.event("message_delta", &event.to_string());
                writer.event("message_stop", r#"{"type":"message_stop"}"#);
            }
            Dialect::OllamaChat | Dialect::OllamaText => {
                writer.event("", &self.ollama(tokens).to_string());
            }
        }
    }

    /// The event that says that the answer has failed, and what follows it.
    pub(super) fn fail(&self, writer: &mut AnswerWriter<'_>) {
        let dialect = self.completion.dialect;
        match dialect {
            Dialect::Responses => {
                let mut response = self.response("failed", 0);
                response["error"] = json!({"code": "server_error", "message": FAILED});
                let name = "response.failed";
                writer.event(name, &json!({"type": name, "response": response}).to_string());
            }
            Dialect::Messages => {
                writer.event("error", &dialect.error_body(500, "api_error", FAILED).to_string());
            }
            Dialect::Chat | Dialect::Text => {
                writer.event("", &dialect.error_body(500, "internal_server_error", FAILED).to_string());
                writer.event("", "[DONE]");
            }
            Dialect::OllamaChat | Dialect::OllamaText => {
                writer.event("", &dialect.error_body(500, "", FAILED).to_string());
            }
        }
    }

    /// The answer as one document.
    pub(super) fn document(&self) -> Document {
        let tokens = self.completion.tokens;
        let chunk = |object: &str, choice: Value| {
            let usage: Value = serde_json::from_str(&self.tokens(tokens)).unwrap_or_default();
            json!({"id": format!("cmpl-{}", self.number), "object": object, "created": 0,
                   "model": self.model, "choices": [choice], "usage": usage})
        };
        let (empty, key) = match self.completion.dialect {
            Dialect::Chat => {
                let message = json!({"role": "assistant", "content": ""});
                let choice = json!({"index": 0, "message": message, "finish_reason": "length"});
                (chunk("chat.completion", choice), "content")
            }
            Dialect::Text => {
                (chunk("text_completion", json!({"index": 0, "text": "", "finish_reason": "length"})), "text")
            }
            Dialect::Responses => {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                let mut response = self.response("incomplete", tokens);
                response["output"] = json!([{"type": "message", "role": "assistant", "content": [part]}]);
                (response, "text")
            }
            Dialect::Messages => (self.message(), "text"),
            Dialect::OllamaChat => (self.ollama(tokens), "content"),
            Dialect::OllamaText => (self.ollama(tokens), "response"),
        };
        let (mut front, key) = (empty.to_string(), format!(r#""{key}":""#));
        // No value has a quotation mark that is not escaped, so that this is the key.
        let at = front.find(&key).map_or(front.len(), |at| at + key.len());
        let back = front.split_off(at);
        Document { front, back, tokens }
    }

    /// An event of a response about its only item.
    fn response_event(
        &self,
        writer: &mut AnswerWriter<'_>,
        name: &str,
        number: u64,
        (member, value): (&str, Value),
    ) {
        let event = json!({"type": name, "sequence_number": number, "item_id": "item-0", "output_index": 0,
                           "content_index": 0, member: value});
        writer.event(name, &event.to_string());
    }

    /// A response of OpenAI without its output.
    fn response(&self, status: &str, tokens: u64) -> Value {
        let prompt = self.completion.prompt_tokens;
        let ended = status == "incomplete";
        json!({
            "id": format!("resp-{}", self.number),
            "object": "response",
            "created_at": 0,
            "status": status,
            "error": null,
            "incomplete_details": ended.then(|| json!({"reason": "max_output_tokens"})),
            "model": self.model,
            "output": [],
            "usage": ended.then(|| json!({
                "input_tokens": prompt, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens,
                "output_tokens_details": {"reasoning_tokens": self.completion.reasoning}, "total_tokens": prompt + tokens,
            })),
        })
    }

    /// A message of Anthropic without its text.
    fn message(&self) -> Value {
        json!({
            "id": format!("msg-{}", self.number),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [{"type": "text", "text": ""}],
            "stop_reason": "max_tokens",
            "stop_sequence": null,
            "usage": {"input_tokens": self.completion.prompt_tokens, "output_tokens": self.completion.tokens},
        })
    }

    /// The last line of Ollama, which is all of an answer that is not a stream, without its text.
    fn ollama(&self, tokens: u64) -> Value {
        let mut line = json!({"id": self.line_id(), "model": self.model, "created_at": CREATED});
        match self.completion.dialect {
            Dialect::OllamaChat => line["message"] = json!({"role": "assistant", "content": ""}),
            _ => line["response"] = "".into(),
        }
        line["done"] = true.into();
        line["done_reason"] = "length".into();
        line["prompt_eval_count"] = self.completion.prompt_tokens.into();
        line["eval_count"] = tokens.into();
        line
    }

    /// The name of an answer in lines, which Ollama's own do not have: logs are joined by it.
    fn line_id(&self) -> String {
        format!("line-{}", self.number)
    }

    /// A line of Ollama with a part of an answer.
    fn line(&self, part: &str) -> String {
        let (id, model) = (self.line_id(), Value::from(self.model));
        format!(r#"{{"id":"{id}","model":{model},"created_at":"{CREATED}",{part},"done":false}}"#)
    }
}

/// Events of a response before its content.
const OPENING_EVENTS: u64 = 4;

/// The text of an answer behind its reasoning, unless it is long.
fn repeated(reasoning: u64, tokens: u64) -> String {
    if tokens <= REPEATED_WORDS { words(reasoning, tokens - reasoning) } else { String::new() }
}

/// A block of a message begins.
fn begin_block(writer: &mut AnswerWriter<'_>, place: u64, block: &Value) {
    const NAME: &str = "content_block_start";
    let event = json!({"type": NAME, "index": place, "content_block": block});
    writer.event(NAME, &event.to_string());
}

/// A block of a message ends.
fn end_block(writer: &mut AnswerWriter<'_>, place: u64) {
    const NAME: &str = "content_block_stop";
    writer.event(NAME, &json!({"type": NAME, "index": place}).to_string());
}
