//! A load on a WebSocket server: connections that send messages and await the answers.

use plimsoll_document::{
    Document, Field, Flags, MadeDocument, MatchSpec, PauseSpec, ReceiveSpec, RepetitionStep, ScenarioSpec,
    StepSpec, TargetSpec, WebSocketSpec, WebSocketStep,
};

use crate::WorkloadError;

/// Keys of the plan whose values are those of one flag of `plimsoll ws`.
const FLAGS: Flags = Flags::new(&[
    ("server", "URL"),
    ("open", "URL"),
    ("send", "--message"),
    ("send_file", "--message-file"),
    ("repeat", "--messages"),
    ("subprotocols", "--subprotocol"),
    ("compress", "--compress"),
    ("receive", "--expect"),
    ("think", "--think"),
]);

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

    /// Returns the plan.
    ///
    /// # Errors
    /// The URL is none of a WebSocket server. The plan itself is checked when it is resolved.
    pub fn document(&self) -> Result<MadeDocument, WorkloadError> {
        let (server, path) = server_and_path(&self.url)?;
        let mut open = WebSocketSpec::default();
        open.open = FLAGS.value("open", path);
        if let Some(names) = &self.subprotocol {
            open.subprotocols = FLAGS.value("subprotocols", names);
        }
        if self.compress {
            open.compress = FLAGS.value("compress", true);
        }
        let mut close = WebSocketSpec::default();
        close.close = Field::text("1000");
        let message = self.message_step();
        let messages = match self.messages {
            1 => message,
            many => RepetitionStep::new(FLAGS.value("repeat", many.to_string()), [message]).into(),
        };
        let steps = [step("open", open), messages, step("close", close)];
        let mut document = Document::default();
        document.name = Field::text("ws");
        document.targets.push("server", TargetSpec::new(FLAGS.value("server", server)));
        document.scenarios.push(Field::new(ScenarioSpec::new("ws", steps)));
        Ok(MadeDocument { name: "the plan of `plimsoll ws`".to_owned(), document, flags: FLAGS })
    }

    /// The step that sends a message, and awaits what answers it.
    fn message_step(&self) -> StepSpec {
        let mut send = WebSocketSpec::default();
        match &self.message {
            Message::Text(text) => send.send = FLAGS.value("send", text),
            Message::File(file) => send.send_file = FLAGS.value("send_file", file),
        }
        if self.binary {
            send.binary = Field::new(true);
        }
        let mut answer = ReceiveSpec::default();
        match &self.answer {
            Answer::Any => answer.any = Field::new(true),
            Answer::Containing(text) => {
                let mut part = MatchSpec::default();
                part.plain = FLAGS.value("receive", text);
                answer.body.push(FLAGS.value("receive", part));
            }
            Answer::Nothing => {}
        }
        if self.answer != Answer::Nothing {
            send.receive = FLAGS.value("receive", answer);
        }
        let mut message = step("message", send);
        if let Some(think) = &self.think {
            message.think = FLAGS.value("think", PauseSpec::new(FLAGS.value("think", think)));
        }
        message
    }
}

fn step(name: &str, action: WebSocketSpec) -> StepSpec {
    StepSpec::from(WebSocketStep::from(action)).named(name)
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
    use serde_json::{Value, json};

    use super::*;

    fn written(load: &WebSocketLoad) -> Value {
        serde_json::to_value(load.document().unwrap().document).unwrap()
    }

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
        let document = written(&load("127.0.0.1:9000"));
        assert_eq!(document["targets"], json!({ "server": "ws://127.0.0.1:9000" }));
        assert_eq!(
            document["scenarios"][0]["steps"],
            json!([
                { "name": "open", "websocket": { "open": "/" } },
                { "name": "message", "websocket": { "send": "hello ${sequence}", "receive": { "any": true } } },
                { "name": "close", "websocket": { "close": 1000 } },
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
        let document = written(&load);
        assert_eq!(document["targets"], json!({ "server": "wss://example.org" }));
        let steps = &document["scenarios"][0]["steps"];
        assert_eq!(
            steps[0]["websocket"],
            json!({ "open": "/chat?room=1", "subprotocols": "chat.v2, chat", "compress": true })
        );
        let message = json!({ "send_file": "m.bin", "binary": true, "receive": { "body": ["ok"] } });
        assert_eq!(steps[1], json!({ "repeat": 10, "steps": [{ "name": "message", "websocket": message }] }));
        let load = WebSocketLoad { answer: Answer::Nothing, ..load };
        assert!(written(&load)["scenarios"][0]["steps"][1]["steps"][0]["websocket"]["receive"].is_null());
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
