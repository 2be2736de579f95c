//! The API: reads requests, and writes replies that are not completions.

use serde_json::json;

use super::options::LlmOptions;
use super::request::CompletionRequest;
use crate::http_reply::HttpReply;

/// Bytes of a prompt that make a token.
const BYTES_PER_TOKEN: u64 = 4;
/// Most tokens of an answer, whatever a request asks for.
pub(super) const MOST_ANSWER_TOKENS: u64 = 1_000_000;

/// The wish of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// An answer that is there.
    Reply(HttpReply),
    /// A completion.
    Completion(Completion),
}

/// A completion that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// `true` for a message of a chat, `false` for a plain text.
    pub(super) chat: bool,
    pub(super) stream: bool,
    /// Set if the stream ends with the numbers of tokens.
    pub(super) include_usage: bool,
    /// Set if every chunk has them.
    pub(super) continuous_usage: bool,
    pub(super) tokens: u64,
    pub(super) prompt_tokens: u64,
}

/// Reads a request with this body.
pub(super) fn read(method: &[u8], target: &[u8], body: &[u8], options: &LlmOptions) -> Wish {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"POST", b"/v1/chat/completions") => completion(body, options, true),
        (b"POST", b"/v1/completions") => completion(body, options, false),
        (b"GET" | b"HEAD", b"/v1/models") => {
            let model = json!({"id": options.model, "object": "model", "created": 0, "owned_by": "plimsoll"});
            Wish::Reply(HttpReply::json(200, &json!({"object": "list", "data": [model]})))
        }
        (b"GET" | b"HEAD", b"/health") => Wish::Reply(HttpReply::text(200, "ok")),
        (_, b"/v1/chat/completions" | b"/v1/completions" | b"/v1/models") => {
            Wish::Reply(error(405, "invalid_request_error", "this path does not take this method"))
        }
        _ => Wish::Reply(error(404, "not_found_error", "there is no such path")),
    }
}

/// An error in the format of OpenAI's API.
pub(super) fn error(status: u16, kind: &str, message: &str) -> HttpReply {
    HttpReply::json(status, &json!({"error": {"message": message, "type": kind, "code": status}}))
}

fn completion(body: &[u8], options: &LlmOptions, chat: bool) -> Wish {
    let refuse = |message: &str| Wish::Reply(error(400, "invalid_request_error", message));
    let Some(wish) = CompletionRequest::read(body) else {
        return refuse("the body is not an object of JSON");
    };
    if let Some(model) = wish.model.filter(|model| *model != options.model) {
        let message = format!("the model `{model}` does not exist");
        return Wish::Reply(error(404, "not_found_error", &message));
    }
    let Some(prompt) = (if chat { wish.messages } else { wish.prompt }) else {
        return refuse(if chat { "`messages` is missing" } else { "`prompt` is missing" });
    };
    let limit = wish.max_completion_tokens.or(wish.max_tokens);
    Wish::Completion(Completion {
        chat,
        stream: wish.stream,
        include_usage: wish.stream_options.include_usage,
        continuous_usage: wish.stream_options.continuous_usage,
        tokens: limit.unwrap_or(options.tokens).clamp(1, MOST_ANSWER_TOKENS),
        prompt_tokens: u64::div_ceil(prompt, BYTES_PER_TOKEN),
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_driver::Endpoint;

    use super::*;

    fn wish(line: &str, body: &str) -> Wish {
        let options = LlmOptions { model: "m".to_owned(), ..LlmOptions::new(Endpoint::Unix("s".into())) };
        let (method, target) = line.split_once(' ').unwrap();
        read(method.as_bytes(), target.as_bytes(), body.as_bytes(), &options)
    }

    #[test]
    fn completions_are_read() {
        let chat = wish(
            "POST /v1/chat/completions?x=1",
            r#"{"model":"m","messages":[{"role":"user","content":"12345678"},
                {"role":"user","content":[{"type":"text","text":"1"}]}],
                "stream":true,"max_tokens":7,"stream_options":{"include_usage":true}}"#,
        );
        let expected = Completion {
            chat: true,
            stream: true,
            include_usage: true,
            continuous_usage: false,
            tokens: 7,
            prompt_tokens: 3,
        };
        assert_eq!(chat, Wish::Completion(expected));
        let Wish::Completion(plain) = wish("POST /v1/completions", r#"{"prompt":["ab","cdefg"]}"#) else {
            panic!("no completion");
        };
        assert_eq!((plain.chat, plain.stream, plain.tokens, plain.prompt_tokens), (false, false, 16, 2));
    }

    #[test]
    fn an_answer_has_a_bounded_number_of_tokens_whatever_is_asked_for() {
        for (asked, tokens) in [("0", 1), ("1000000", 1_000_000), ("18446744073709551615", 1_000_000)] {
            let body = format!(r#"{{"prompt":"","max_tokens":{asked}}}"#);
            let Wish::Completion(plain) = wish("POST /v1/completions", &body) else { panic!("{asked}") };
            assert_eq!(plain.tokens, tokens, "{asked}");
        }
    }

    #[test]
    fn everything_else_has_a_reply() {
        for (line, body, status) in [
            ("GET /v1/models", "", 200),
            ("GET /health", "", 200),
            ("GET /v1/completions", "", 405),
            ("GET /", "", 404),
            ("POST /v1/completions", "{", 400),
            ("POST /v1/completions", "{}", 400),
            ("POST /v1/chat/completions", r#"{"prompt":"a"}"#, 400),
            ("POST /v1/completions", r#"{"model":"other","prompt":"a"}"#, 404),
        ] {
            let Wish::Reply(reply) = wish(line, body) else { panic!("{line}: a completion") };
            assert_eq!(reply.status, status, "{line} {body}");
        }
    }
}
