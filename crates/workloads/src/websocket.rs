//! A load on a WebSocket server: connections that send messages and await the answers.

use serde_json::{Map, Value, json};

use crate::WorkloadError;

/// Load on one URL of a WebSocket server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketLoad {
    /// The URL: `ws://HOST[:PORT][/PATH]` or `wss://…`; without a scheme it is `ws`.
    pub url: String,
    /// The message, a template.
    pub message: Message,
    /// Send it as a binary message, and not as text.
    pub binary: bool,
    /// Messages of each connection before it is closed.
    pub messages: u32,
    /// Subprotocols to offer, separated by commas.
    pub subprotocol: Option<String>,
    /// Offer to compress messages.
    pub compress: bool,
    /// The end of a message.
    pub answer: Answer,
    /// Pause after each message, as `think` of a step has it.
    pub think: Option<String>,
}

/// Source of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A template.
    Text(String),
    /// The content of a file, as it is.
    File(String),
}

/// The message that answers one that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The next message, whatever it is.
    Any,
    /// The next message with this text in it, a template of variables alone.
    Containing(String),
    /// None: a message ends when it is sent.
    Nothing,
}

impl WebSocketLoad {
    /// The message where none is given.
    pub const MESSAGE: &'static str = "ping";

    /// The plan, as the content of a plan file.
    ///
    /// # Errors
    /// The URL is none of a WebSocket server. The plan itself is checked when it is resolved.
    pub fn document(&self) -> Result<Value, WorkloadError> {
        let (server, path) = server_and_path(&self.url)?;
        let mut open = Map::new();
        open.insert("open".to_owned(), json!(path));
        if let Some(names) = &self.subprotocol {
            open.insert("subprotocols".to_owned(), json!(names));
        }
        if self.compress {
            open.insert("compress".to_owned(), json!(true));
        }
        let mut send = Map::new();
        match &self.message {
            Message::Text(text) => send.insert("send".to_owned(), json!(text)),
            Message::File(file) => send.insert("send_file".to_owned(), json!(file)),
        };
        if self.binary {
            send.insert("binary".to_owned(), json!(true));
        }
        match &self.answer {
            Answer::Any => {
                send.insert("receive".to_owned(), json!({ "any": true }));
            }
            Answer::Containing(text) => {
                send.insert("receive".to_owned(), json!({ "body": text }));
            }
            Answer::Nothing => {}
        }
        let mut message = json!({ "name": "message", "websocket": send });
        if let Some(think) = &self.think {
            message["think"] = json!(think);
        }
        let messages = match self.messages {
            1 => message,
            many => json!({ "repeat": many.to_string(), "steps": [message] }),
        };
        Ok(json!({
            "name": "ws",
            "targets": { "server": server },
            "scenarios": [{
                "name": "ws",
                "steps": [
                    { "name": "open", "websocket": open },
                    messages,
                    { "name": "close", "websocket": { "close": "1000" } },
                ],
            }],
        }))
    }
}

/// Takes a URL apart.
fn server_and_path(url: &str) -> Result<(String, String), WorkloadError> {
    let (scheme, rest) = match url.split_once("://") {
        None => ("ws", url),
        Some((scheme @ ("ws" | "wss"), rest)) => (scheme, rest),
        Some(("http", rest)) => ("ws", rest),
        Some(("https", rest)) => ("wss", rest),
        Some((scheme, _)) => {
            let message = format!("`{scheme}` is not a scheme of WebSocket");
            return Err(WorkloadError::new(message, "write ws://HOST:PORT/PATH, or wss:// for TLS"));
        }
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() {
        let message = format!("`{url}` is not the URL of a WebSocket server");
        return Err(WorkloadError::new(message, "write ws://HOST:PORT/PATH, or wss:// for TLS"));
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((format!("{scheme}://{authority}"), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(url: &str) -> WebSocketLoad {
        WebSocketLoad {
            url: url.to_owned(),
            message: Message::Text("hello ${sequence}".to_owned()),
            binary: false,
            messages: 1,
            subprotocol: None,
            compress: false,
            answer: Answer::Any,
            think: None,
        }
    }

    #[test]
    fn a_load_is_three_steps() {
        let document = load("127.0.0.1:9000").document().unwrap();
        assert_eq!(document["targets"], json!({ "server": "ws://127.0.0.1:9000" }));
        assert_eq!(
            document["scenarios"][0]["steps"],
            json!([
                { "name": "open", "websocket": { "open": "/" } },
                { "name": "message", "websocket": { "send": "hello ${sequence}", "receive": { "any": true } } },
                { "name": "close", "websocket": { "close": "1000" } },
            ])
        );
        let load = WebSocketLoad {
            message: Message::File("m.bin".to_owned()),
            binary: true,
            messages: 10,
            subprotocol: Some("chat.v2, chat".to_owned()),
            compress: true,
            answer: Answer::Containing("ok".to_owned()),
            ..load("wss://example.org/chat?room=1")
        };
        let document = load.document().unwrap();
        assert_eq!(document["targets"], json!({ "server": "wss://example.org" }));
        let steps = &document["scenarios"][0]["steps"];
        assert_eq!(
            steps[0]["websocket"],
            json!({ "open": "/chat?room=1", "subprotocols": "chat.v2, chat", "compress": true })
        );
        let message = json!({ "send_file": "m.bin", "binary": true, "receive": { "body": "ok" } });
        assert_eq!(
            steps[1],
            json!({ "repeat": "10", "steps": [{ "name": "message", "websocket": message }] })
        );
        let load = WebSocketLoad { answer: Answer::Nothing, ..load };
        assert!(
            load.document().unwrap()["scenarios"][0]["steps"][1]["steps"][0]["websocket"]["receive"]
                .is_null()
        );
    }

    #[test]
    fn urls_have_several_forms() {
        for (url, server, path) in [
            ("a:1", "ws://a:1", "/"),
            ("ws://a:1/", "ws://a:1", "/"),
            ("http://a:1/b", "ws://a:1", "/b"),
            ("https://a?b", "wss://a", "/?b"),
            ("wss://a:1/b/c", "wss://a:1", "/b/c"),
        ] {
            assert_eq!(server_and_path(url).unwrap(), (server.to_owned(), path.to_owned()), "{url}");
        }
        for url in ["ftp://a", "", "ws://", "ws:///b"] {
            assert!(server_and_path(url).is_err(), "{url}");
        }
    }
}
