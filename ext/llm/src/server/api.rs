//! The API: reads requests, and writes replies that are not completions.

use plimsoll_targets::http_reply::HttpReply;
use serde_json::json;

use super::dialect::Dialect;
use super::options::LlmOptions;
use super::request::CompletionRequest;

/// Bytes of a prompt that make a token.
const BYTES_PER_TOKEN: u64 = 4;
const WRONG_METHOD: &str = "this path does not take this method";
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
    pub(super) dialect: Dialect,
    pub(super) stream: bool,
    /// Set if the stream ends with the numbers of tokens.
    pub(super) include_usage: bool,
    /// Set if every chunk has them.
    pub(super) continuous_usage: bool,
    pub(super) tokens: u64,
    /// Tokens of these that are reasoning.
    pub(super) reasoning: u64,
    pub(super) prompt_tokens: u64,
}

/// Reads a request with this body.
pub(super) fn read(method: &[u8], target: &[u8], body: &[u8], options: &LlmOptions) -> Wish {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if let Some(dialect) = Dialect::of_path(path) {
        return match method {
            b"POST" => completion(body, options, dialect),
            _ => Wish::Reply(dialect.error(405, "invalid_request_error", WRONG_METHOD)),
        };
    }
    match (method, path) {
        (b"GET" | b"HEAD", b"/v1/models") => {
            let model = json!({"id": options.model, "object": "model", "created": 0, "owned_by": "plimsoll"});
            Wish::Reply(HttpReply::json(200, &json!({"object": "list", "data": [model]})))
        }
        (b"GET" | b"HEAD", b"/api/tags") => {
            let model = json!({"name": options.model, "model": options.model});
            Wish::Reply(HttpReply::json(200, &json!({"models": [model]})))
        }
        (b"GET" | b"HEAD", b"/health") => Wish::Reply(HttpReply::text(200, "ok")),
        (_, b"/v1/models" | b"/api/tags") => Wish::Reply(error(405, "invalid_request_error", WRONG_METHOD)),
        _ => Wish::Reply(error(404, "not_found_error", "there is no such path")),
    }
}

/// An error of a request whose API is not known, in the format of OpenAI's.
pub(super) fn error(status: u16, kind: &str, message: &str) -> HttpReply {
    Dialect::Chat.error(status, kind, message)
}

fn completion(body: &[u8], options: &LlmOptions, dialect: Dialect) -> Wish {
    let refuse = |message: &str| Wish::Reply(dialect.error(400, "invalid_request_error", message));
    let Some(wish) = CompletionRequest::read(body) else {
        return refuse("the body is not an object of JSON");
    };
    if let Some(model) = wish.model.filter(|model| *model != options.model) {
        let message = format!("the model `{model}` does not exist");
        return Wish::Reply(dialect.error(404, "not_found_error", &message));
    }
    let (prompt, limit, missing) = match dialect {
        Dialect::Chat => {
            (wish.messages, wish.max_completion_tokens.or(wish.max_tokens), "`messages` is missing")
        }
        Dialect::Text => (wish.prompt, wish.max_completion_tokens.or(wish.max_tokens), "`prompt` is missing"),
        Dialect::Responses => (wish.input, wish.max_output_tokens, "`input` is missing"),
        Dialect::Messages => (wish.messages, wish.max_tokens, "`messages` is missing"),
        Dialect::OllamaChat => (wish.messages, wish.num_predict, "`messages` is missing"),
        Dialect::OllamaText => (wish.prompt, wish.num_predict, "`prompt` is missing"),
    };
    let Some(prompt) = prompt else { return refuse(missing) };
    if dialect == Dialect::Messages && limit.is_none() {
        return refuse("`max_tokens` is missing");
    }
    let tokens = limit.unwrap_or(options.tokens).clamp(1, MOST_ANSWER_TOKENS);
    Wish::Completion(Completion {
        dialect,
        stream: wish.stream.unwrap_or(dialect.is_in_lines()),
        include_usage: wish.stream_options.include_usage,
        continuous_usage: wish.stream_options.continuous_usage,
        tokens,
        reasoning: if dialect == Dialect::Text { 0 } else { options.reasoning.min(tokens - 1) },
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
            dialect: Dialect::Chat,
            stream: true,
            include_usage: true,
            continuous_usage: false,
            tokens: 7,
            reasoning: 0,
            prompt_tokens: 3,
        };
        assert_eq!(chat, Wish::Completion(expected));
        let Wish::Completion(plain) = wish("POST /v1/completions", r#"{"prompt":["ab","cdefg"]}"#) else {
            panic!("no completion");
        };
        assert_eq!((plain.dialect, plain.stream), (Dialect::Text, false));
        assert_eq!((plain.tokens, plain.prompt_tokens), (16, 2));
        for (path, body, stream) in [
            ("/v1/responses", r#"{"input":"12345678","max_output_tokens":7}"#, false),
            (
                "/v1/responses",
                r#"{"input":[{"content":"1234"},{"content":[{"text":"5678"}]}],"max_output_tokens":7,"stream":true}"#,
                true,
            ),
            ("/v1/messages", r#"{"messages":[{"content":"12345678"}],"max_tokens":7,"stream":true}"#, true),
            ("/api/chat", r#"{"messages":[{"content":"12345678"}],"options":{"num_predict":7}}"#, true),
            ("/api/generate", r#"{"prompt":"12345678","options":{"num_predict":7},"stream":false}"#, false),
        ] {
            let Wish::Completion(asked) = wish(&format!("POST {path}"), body) else { panic!("{path}") };
            assert_eq!((asked.stream, asked.tokens, asked.prompt_tokens), (stream, 7, 2), "{path} {body}");
        }
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
            ("GET /api/tags", "", 200),
            ("GET /v1/responses", "", 405),
            ("POST /v1/messages", r#"{"messages":[]}"#, 400),
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
