//! The APIs of language models: where each is, and how its requests are formed.

use serde_json::{Map, Value, json};

/// The API of a language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// OpenAI's messages of a chat.
    Chat,
    /// A plain prompt, as OpenAI's older API takes it.
    Completions,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Messages of a chat with Ollama.
    Ollama,
    /// A plain prompt for Ollama.
    OllamaGenerate,
}

/// What distinguishes the requests of an API.
struct Traits {
    name: &'static str,
    /// The usual path.
    path: &'static str,
    /// The end of a path that tells the API, whatever is in front of it.
    path_end: &'static str,
    /// The member with what is said.
    said: &'static str,
    /// The members with the number of tokens at most: an object in an object for Ollama.
    limit: &'static [&'static str],
    headers: &'static [(&'static str, &'static str)],
}

impl Api {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Chat, Self::Completions, Self::Responses, Self::Anthropic, Self::Ollama, Self::OllamaGenerate];

    const fn traits(self) -> Traits {
        match self {
            Self::Chat => Traits {
                name: "chat",
                path: "/v1/chat/completions",
                path_end: "/chat/completions",
                said: "messages",
                limit: &["max_tokens"],
                headers: &[],
            },
            Self::Completions => Traits {
                name: "completions",
                path: "/v1/completions",
                path_end: "/completions",
                said: "prompt",
                limit: &["max_tokens"],
                headers: &[],
            },
            Self::Responses => Traits {
                name: "responses",
                path: "/v1/responses",
                path_end: "/responses",
                said: "input",
                limit: &["max_output_tokens"],
                headers: &[],
            },
            Self::Anthropic => Traits {
                name: "anthropic",
                path: "/v1/messages",
                path_end: "/messages",
                said: "messages",
                limit: &["max_tokens"],
                headers: &[("anthropic-version", "2023-06-01")],
            },
            Self::Ollama => Traits {
                name: "ollama",
                path: "/api/chat",
                path_end: "/api/chat",
                said: "messages",
                limit: &["options", "num_predict"],
                headers: &[],
            },
            Self::OllamaGenerate => Traits {
                name: "ollama-generate",
                path: "/api/generate",
                path_end: "/api/generate",
                said: "prompt",
                limit: &["options", "num_predict"],
                headers: &[],
            },
        }
    }

    /// The name in plans and flags.
    pub(crate) const fn name(self) -> &'static str {
        self.traits().name
    }

    /// The path that servers usually have it at.
    pub(crate) const fn path(self) -> &'static str {
        self.traits().path
    }

    /// Headers that requests need, unless they have them already.
    pub(crate) const fn headers(self) -> &'static [(&'static str, &'static str)] {
        self.traits().headers
    }

    /// Returns `true` if a key is sent as the header `x-api-key`, and not as `authorization`.
    pub(crate) const fn has_key_header(self) -> bool {
        matches!(self, Self::Anthropic)
    }

    /// Returns `true` if what was said before is a list of messages, and not one text.
    pub(crate) const fn takes_messages(self) -> bool {
        !matches!(self, Self::Completions | Self::OllamaGenerate)
    }

    /// Returns the API that a path, or a URL, is of, if its end tells that.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let path =
            path.split_once("://").map_or(path, |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        // That of a chat ends like that of completions, and comes first.
        Self::ALL.into_iter().find(|api| path.ends_with(api.traits().path_end))
    }

    /// The names of all, in words.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The members of a request; `said` is a text, or a list of messages.
    pub(super) fn request(self, model: &str, said: Value, tokens: u64, stream: bool) -> Map<String, Value> {
        let Traits { said: key, limit, .. } = self.traits();
        let mut request = Map::new();
        request.insert("model".to_owned(), model.into());
        request.insert(key.to_owned(), said);
        let limit = limit.iter().rev().fold(Value::from(tokens), |value, key| json!({ *key: value }));
        if let Value::Object(limit) = limit {
            request.extend(limit);
        }
        match self {
            // Answers are streams unless a request says that they are not.
            Self::Ollama | Self::OllamaGenerate => {
                request.insert("stream".to_owned(), stream.into());
            }
            _ if !stream => {}
            Self::Chat | Self::Completions => {
                request.insert("stream".to_owned(), true.into());
                request.insert("stream_options".to_owned(), json!({ "include_usage": true }));
            }
            Self::Responses | Self::Anthropic => {
                request.insert("stream".to_owned(), true.into());
            }
        }
        request
    }
}

/// Adds further members to those of a request; `options`, which has the number of tokens, is added to.
pub(super) fn extend(request: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        match (request.get_mut(name), value) {
            (Some(Value::Object(mine)), Value::Object(theirs)) if name == "options" => {
                mine.extend(theirs.clone());
            }
            _ => {
                request.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_path_tells_the_api() {
        for api in Api::ALL {
            assert_eq!(Api::of_path(api.path()), Some(api));
            assert_eq!(Api::of_path(&format!("https://h:1/proxy{}/?a=b", api.path())), Some(api));
        }
        let azure = "/openai/deployments/d/chat/completions?api-version=x";
        assert_eq!(Api::of_path(azure), Some(Api::Chat));
        for path in ["", "/", "/v1", "/ask", "/chat", "/generate", "/mycompletions", "http://messages"] {
            assert_eq!(Api::of_path(path), None, "{path}");
        }
    }

    #[test]
    fn requests_have_the_members_of_their_api() {
        let said = || json!("hi");
        let usage = json!({ "include_usage": true });
        for (api, stream, expected) in [
            (
                Api::Chat,
                true,
                json!({"model": "m", "messages": "hi", "max_tokens": 5, "stream": true, "stream_options": usage}),
            ),
            (Api::Completions, false, json!({"model": "m", "prompt": "hi", "max_tokens": 5})),
            (
                Api::Responses,
                true,
                json!({"model": "m", "input": "hi", "max_output_tokens": 5, "stream": true}),
            ),
            (Api::Anthropic, true, json!({"model": "m", "messages": "hi", "max_tokens": 5, "stream": true})),
            (
                Api::Ollama,
                true,
                json!({"model": "m", "messages": "hi", "options": {"num_predict": 5}, "stream": true}),
            ),
            (
                Api::OllamaGenerate,
                false,
                json!({"model": "m", "prompt": "hi", "options": {"num_predict": 5}, "stream": false}),
            ),
        ] {
            assert_eq!(Value::from(api.request("m", said(), 5, stream)), expected, "{api:?}");
        }
        let mut request = Api::Ollama.request("m", said(), 5, true);
        let extra = json!({"options": {"seed": 1}, "stream": false, "think": true});
        extend(&mut request, extra.as_object().unwrap());
        assert_eq!(request["options"], json!({"num_predict": 5, "seed": 1}));
        assert_eq!((&request["stream"], &request["think"]), (&json!(false), &json!(true)));
    }
}
