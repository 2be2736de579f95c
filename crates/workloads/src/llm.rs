//! Completions of language models over OpenAI's API: prompts of a length, answers that come as a stream.

mod length;
mod prompts;

use serde_json::{Map, Value, json};

use crate::WorkloadError;
pub use length::Length;
pub use prompts::CompletionFactory;

/// The name of the step.
pub const COMPLETION: &str = "completion";

/// Default limit for a whole answer: long ones take minutes.
const TIMEOUT: &str = "10m";
/// Time for which answers are waited for after the end of the load, for the same reason.
const DRAIN: &str = "2m";

/// Which of the two APIs is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Messages of a chat.
    Chat,
    /// A plain prompt.
    Completions,
}

impl Api {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Chat, Self::Completions];

    /// The name in plans and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }
}

/// Load on a server of language models.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmLoad {
    /// The address of the server; a path `/v1` at its end is understood.
    pub url: String,
    /// Name of the model.
    pub model: String,
    /// Which API is asked.
    pub api: Api,
    /// Length of prompts, unless they are those of a file.
    pub input: Option<String>,
    /// Length of answers.
    pub output: Option<String>,
    /// Tokens that all prompts have in common.
    pub prefix: Option<u64>,
    /// Bytes that are taken as a token.
    pub bytes_per_token: Option<f64>,
    /// The file with the prompts.
    pub prompts: Option<String>,
    /// The trace that says when requests come and how long they are, in place of prompts.
    pub trace: Option<String>,
    /// Turns of each conversation.
    pub turns: Option<u32>,
    /// Pause after each turn.
    pub think: Option<String>,
    /// `true` for answers that are not cut short by the model: members that vLLM and others know.
    pub ignore_eos: bool,
    /// Further members of the requests.
    pub extra: Map<String, Value>,
    /// Connections at a time, if nothing else says how many.
    pub connections: Option<u32>,
}

impl LlmLoad {
    /// The plan, as the content of a plan file.
    ///
    /// # Errors
    /// There is no URL. Whether the plan itself is right shows when it is resolved.
    pub fn document(&self) -> Result<Value, WorkloadError> {
        let url = self.origin();
        if url.is_empty() {
            let hint = "name it, as in `plimsoll llm http://127.0.0.1:8000 --model NAME`";
            return Err(WorkloadError::new("no server is named", hint));
        }
        let mut run = json!({ "timeout": TIMEOUT, "drain": DRAIN });
        if let Some(connections) = self.connections {
            run["connections"] = json!(connections.to_string());
        }
        if let Some(trace) = &self.trace {
            run["stages"] = json!(format!("@{trace}"));
        }
        let mut step = json!({
            "name": COMPLETION,
            "post": self.api.path(),
            "completion": self.completion(),
            "stream": "openai",
        });
        if let Some(think) = &self.think {
            step["think"] = json!(think);
        }
        if let Some(turns) = self.turns {
            step = json!({ "repeat": turns, "steps": [step] });
        }
        Ok(json!({
            "name": "llm",
            "targets": { "server": url },
            "run": run,
            "scenarios": [{ "name": "llm", "steps": [step] }],
        }))
    }

    /// Returns a step that asks for one token after a prompt of this many bytes, to see how many tokens the
    /// server counts in it.
    pub fn measuring_step(&self, bytes: usize) -> Value {
        let text = prompts::sample(bytes);
        let mut body = json!({ "model": self.model, "max_tokens": 1 });
        match self.api {
            Api::Chat => body["messages"] = json!([{ "role": "user", "content": text }]),
            Api::Completions => body["prompt"] = json!(text),
        }
        json!({ "post": self.api.path(), "json": body })
    }

    /// Returns the origin of the server, without a path.
    pub fn origin(&self) -> &str {
        let url = self.url.trim_end_matches('/');
        url.strip_suffix("/v1").unwrap_or(url)
    }

    fn completion(&self) -> Map<String, Value> {
        let mut extra = self.extra.clone();
        if self.ignore_eos {
            extra.insert("ignore_eos".to_owned(), true.into());
        }
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let members = [
            ("model", Some(self.model.clone().into())),
            ("api", (self.api != Api::Chat).then(|| self.api.name().into())),
            ("input", text(&self.input)),
            ("output", text(&self.output)),
            ("prefix", self.prefix.map(|tokens| tokens.to_string().into())),
            ("bytes_per_token", self.bytes_per_token.map(|bytes| bytes.to_string().into())),
            ("prompts", text(self.trace.as_ref().map_or(&self.prompts, |_| &self.trace))),
            ("turns", self.turns.map(|turns| turns.to_string().into())),
            ("extra", (!extra.is_empty()).then(|| extra.into())),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> LlmLoad {
        LlmLoad {
            url: "http://a:1/v1/".to_owned(),
            model: "m".to_owned(),
            api: Api::Chat,
            input: None,
            output: None,
            prefix: None,
            bytes_per_token: None,
            prompts: None,
            trace: None,
            turns: None,
            think: None,
            ignore_eos: false,
            extra: Map::new(),
            connections: None,
        }
    }

    #[test]
    fn a_load_is_one_step() {
        let document = load().document().unwrap();
        assert_eq!(document["targets"], json!({ "server": "http://a:1" }));
        let step = &document["scenarios"][0]["steps"][0];
        assert_eq!(step["post"], "/v1/chat/completions");
        assert_eq!((&step["completion"], &step["stream"]), (&json!({ "model": "m" }), &json!("openai")));
        let document = LlmLoad {
            api: Api::Completions,
            input: Some("512".to_owned()),
            output: Some("normal:64,8".to_owned()),
            prefix: Some(100),
            ignore_eos: true,
            connections: Some(1),
            ..load()
        };
        let document = document.document().unwrap();
        let step = &document["scenarios"][0]["steps"][0];
        assert_eq!(step["post"], "/v1/completions");
        let completion = json!({
            "model": "m", "api": "completions", "input": "512", "output": "normal:64,8", "prefix": "100",
            "extra": { "ignore_eos": true },
        });
        assert_eq!(step["completion"], completion);
        assert_eq!(document["run"]["connections"], "1");
        let document = LlmLoad { turns: Some(3), think: Some("2s".to_owned()), ..load() }.document().unwrap();
        let conversation = &document["scenarios"][0]["steps"][0];
        assert_eq!(conversation["repeat"], 3);
        let step = &conversation["steps"][0];
        assert_eq!((&step["think"], &step["completion"]["turns"]), (&json!("2s"), &json!("3")));
        let document = LlmLoad { trace: Some("t.jsonl".to_owned()), ..load() }.document().unwrap();
        assert_eq!(document["run"]["stages"], "@t.jsonl");
        assert_eq!(document["scenarios"][0]["steps"][0]["completion"]["prompts"], "t.jsonl");
        assert!(!LlmLoad { url: "/".to_owned(), ..load() }.document().unwrap_err().hint().is_empty());
    }
}
