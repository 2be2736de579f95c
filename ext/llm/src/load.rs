//! Completions of language models over OpenAI's APIs, Anthropic's and Ollama's: prompts of a length, answers
//! that come as a stream.

mod api;
mod length;
mod prompts;
mod recorded;
mod spec;

use plimsoll_document::{
    Document, Field, Flags, MadeDocument, PauseSpec, RepetitionStep, RequestStep, ScenarioSpec, SetStep,
    Settings, StepSpec, TargetSpec, Text,
};
use plimsoll_plan::body_value;
use plimsoll_workloads::WorkloadError;
use serde_json::{Map, Value, json};

pub(crate) use api::Api;
pub(crate) use length::Length;
pub(crate) use prompts::PROMPT;
pub(crate) use spec::CompletionSpec;

/// The name of the step.
pub(crate) const COMPLETION: &str = "completion";

/// The variable with the name of a conversation.
const SESSION: &str = "session";
/// Default limit for a whole answer: long ones take minutes.
const TIMEOUT: &str = "10m";
/// Time for which answers are waited for after the end of the load, for the same reason.
const DRAIN: &str = "2m";

/// Tokens of an answer that a request for a response of OpenAI has to ask for at least.
const FEWEST_OF_RESPONSES: u64 = 16;

/// Keys of the plan whose values are those of one flag of `plimsoll llm`.
const FLAGS: Flags = Flags::new(&[
    ("server", "URL"),
    ("post", "--endpoint"),
    ("model", "--model"),
    ("api", "--api"),
    ("input", "--input-tokens"),
    ("output", "--output-tokens"),
    ("prefix", "--shared-prefix"),
    ("bytes_per_token", "--bytes-per-token"),
    ("prompts", "--prompts"),
    ("stages", "--trace"),
    ("turns", "--turns"),
    ("think", "--think"),
    ("headers", "--session-header"),
    ("extra", "--extra"),
]);

/// Load on a server of language models.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LlmLoad {
    /// The address of the server; a path `/v1` at its end is understood, and so is the one of an API.
    pub(crate) url: String,
    /// The path of the requests, if it is not the one of the URL or the usual one of the API.
    pub(crate) endpoint: Option<String>,
    /// Name of the model.
    pub(crate) model: String,
    /// Which API is asked, if its path does not tell that.
    pub(crate) api: Option<Api>,
    /// Length of prompts, unless they are those of a file.
    pub(crate) input: Option<String>,
    /// Length of answers.
    pub(crate) output: Option<String>,
    /// Tokens that all prompts have in common.
    pub(crate) prefix: Option<u64>,
    /// Bytes that are taken as a token.
    pub(crate) bytes_per_token: Option<f64>,
    /// The file with the prompts.
    pub(crate) prompts: Option<String>,
    /// The trace that says when requests come and how long they are, in place of prompts.
    pub(crate) trace: Option<String>,
    /// Turns of each conversation.
    pub(crate) turns: Option<u32>,
    /// Pause after each turn.
    pub(crate) think: Option<String>,
    /// The header that has a value of its own in each conversation.
    pub(crate) session_header: Option<String>,
    /// `true` for answers that are not cut short by the model: members that vLLM and others know.
    pub(crate) ignore_eos: bool,
    /// Further members of the requests.
    pub(crate) extra: Map<String, Value>,
    /// Connections at a time, if nothing else says how many.
    pub(crate) connections: Option<u32>,
}

impl LlmLoad {
    /// Returns the plan.
    ///
    /// # Errors
    /// There is no URL. Whether the plan itself is right shows when it is resolved.
    pub(crate) fn document(&self) -> Result<MadeDocument, WorkloadError> {
        let Place { base, path, api } = self.place()?;
        if base.is_empty() {
            let hint = "name it, as in `plimsoll llm http://127.0.0.1:8000 --model NAME`";
            return Err(WorkloadError::new("no server is named", hint));
        }
        let mut run = Settings::default();
        run.timeout = Field::text(TIMEOUT);
        run.drain = Field::text(DRAIN);
        if let Some(connections) = self.connections {
            run.connections = Field::text(connections.to_string());
        }
        if let Some(trace) = &self.trace {
            run.stages = FLAGS.value("stages", format!("@{trace}"));
        }
        let mut step = self.completion_step(path, api);
        if let Some(turns) = self.turns {
            step = RepetitionStep::new(FLAGS.value("turns", turns.to_string()), [step]).into();
        }
        let session = self.session_header.as_ref().map(|_| SetStep::new(SESSION, "${uuid}").into());
        let steps = session.into_iter().chain([step]);
        let mut document = Document::default();
        document.name = Field::text("llm");
        document.targets.push("server", TargetSpec::new(FLAGS.value("server", base)));
        document.run = Field::new(run);
        document.scenarios.push(Field::new(ScenarioSpec::new("llm", steps)));
        Ok(MadeDocument { name: "the plan of `plimsoll llm`".to_owned(), document, flags: FLAGS })
    }

    /// The step that asks for a completion.
    fn completion_step(&self, path: String, api: Api) -> StepSpec {
        let completion = self.completion(api, &path);
        let key = if self.endpoint.is_some() { "post" } else { "server" };
        let mut request = RequestStep::new("POST", FLAGS.value(key, path));
        request.body.add(&PROMPT, body_value(completion));
        request.stream = Field::text("llm");
        if let Some(name) = &self.session_header {
            let place = FLAGS.place("headers");
            let value = Field::Given(format!("${{{SESSION}}}").into(), place);
            request.headers.0.push((name.into(), place, value));
        }
        let mut step = StepSpec::from(request).named(COMPLETION);
        if let Some(think) = &self.think {
            step.think = FLAGS.value("think", PauseSpec::new(FLAGS.value("think", think)));
        }
        step
    }

    /// Returns a step that asks for a token or few after a prompt of this many bytes, to see how many tokens
    /// the server counts in it.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    pub(crate) fn measuring_step(&self, bytes: usize) -> Result<Value, WorkloadError> {
        let Place { path, api, .. } = self.place()?;
        let text = prompts::sample(bytes);
        let said = match api.takes_messages() {
            true => json!([{ "role": "user", "content": text }]),
            false => json!(text),
        };
        let tokens = if api == Api::Responses { FEWEST_OF_RESPONSES } else { 1 };
        let headers: Map<String, Value> =
            api.headers().iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let mut step = json!({ "post": path, "json": api.request(&self.model, said, tokens, false) });
        if !headers.is_empty() {
            step["headers"] = headers.into();
        }
        Ok(step)
    }

    /// Returns the address of the server, in front of the path of the requests.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    pub(crate) fn base(&self) -> Result<String, WorkloadError> {
        self.place().map(|place| place.base)
    }

    /// Returns the API that is asked.
    ///
    /// # Errors
    /// As [`document`](Self::document).
    pub(crate) fn api(&self) -> Result<Api, WorkloadError> {
        self.place().map(|place| place.api)
    }

    /// Where requests go: the URL has the path of an API, or the API has its own below it.
    fn place(&self) -> Result<Place, WorkloadError> {
        let url = self.url.trim_end_matches('/');
        let known = self.api.unwrap_or(Api::Chat);
        let (base, path) = match (&self.endpoint, Api::of_path(url)) {
            (Some(path), _) => (url, path.clone()),
            (None, Some(_)) => {
                let host = url.find("://").map_or(0, |at| at + "://".len());
                let (base, path) = url.split_at(url[host..].find('/').map_or(url.len(), |at| host + at));
                (base, path.to_owned())
            }
            (None, None) => {
                let ends = known.path().split_at(known.path()[1..].find('/').map_or(0, |at| at + 1)).0;
                (url.strip_suffix(ends).unwrap_or(url), known.path().to_owned())
            }
        };
        let api = self.api.or_else(|| Api::of_path(&path)).ok_or_else(|| {
            let hint = format!("write `--api` with one of {}", Api::names());
            WorkloadError::new(format!("the path `{path}` does not tell which API is there"), hint)
        })?;
        Ok(Place { base: base.to_owned(), path, api })
    }

    fn completion(&self, api: Api, path: &str) -> CompletionSpec {
        let text = |key: &str, text: Option<String>| -> Field<Text> {
            text.map_or(Field::Absent, |text| FLAGS.value(key, text))
        };
        let mut extra = self.extra.clone();
        if self.ignore_eos {
            extra.insert("ignore_eos".to_owned(), true.into());
        }
        CompletionSpec {
            model: FLAGS.value("model", &self.model),
            api: text("api", (Api::of_path(path) != Some(api)).then(|| api.name().to_owned())),
            input: text("input", self.input.clone()),
            output: text("output", self.output.clone()),
            prefix: text("prefix", self.prefix.map(|tokens| tokens.to_string())),
            bytes_per_token: text("bytes_per_token", self.bytes_per_token.map(|bytes| bytes.to_string())),
            prompts: match &self.trace {
                Some(trace) => FLAGS.value("stages", trace),
                None => text("prompts", self.prompts.clone()),
            },
            turns: text("turns", self.turns.map(|turns| turns.to_string())),
            extra: if extra.is_empty() { Field::Absent } else { FLAGS.value("extra", extra) },
            ..CompletionSpec::default()
        }
    }
}

/// Where the requests of a load go.
struct Place {
    base: String,
    path: String,
    api: Api,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(load: &LlmLoad) -> Value {
        serde_json::to_value(load.document().unwrap().document).unwrap()
    }

    fn load() -> LlmLoad {
        LlmLoad {
            url: "http://a:1/v1/".to_owned(),
            endpoint: None,
            model: "m".to_owned(),
            api: None,
            input: None,
            output: None,
            prefix: None,
            bytes_per_token: None,
            prompts: None,
            trace: None,
            turns: None,
            think: None,
            session_header: None,
            ignore_eos: false,
            extra: Map::new(),
            connections: None,
        }
    }

    #[test]
    fn a_load_is_one_step() {
        let document = written(&load());
        assert_eq!(document["targets"], json!({ "server": "http://a:1" }));
        let step = &document["scenarios"][0]["steps"][0];
        assert_eq!(step["post"], "/v1/chat/completions");
        assert_eq!((&step["completion"], &step["stream"]), (&json!({ "model": "m" }), &json!("llm")));
        let document = LlmLoad {
            api: Some(Api::Completions),
            input: Some("512".to_owned()),
            output: Some("normal:64,8".to_owned()),
            prefix: Some(100),
            ignore_eos: true,
            connections: Some(1),
            ..load()
        };
        let document = written(&document);
        let step = &document["scenarios"][0]["steps"][0];
        assert_eq!(step["post"], "/v1/completions");
        let completion = json!({
            "model": "m", "input": 512, "output": "normal:64,8", "prefix": 100,
            "extra": { "ignore_eos": true },
        });
        assert_eq!(step["completion"], completion);
        assert_eq!(document["run"]["connections"], 1);
        let document = written(&LlmLoad { turns: Some(3), think: Some("2s".to_owned()), ..load() });
        let conversation = &document["scenarios"][0]["steps"][0];
        assert_eq!(conversation["repeat"], 3);
        let step = &conversation["steps"][0];
        assert_eq!((&step["think"], &step["completion"]["turns"]), (&json!("2s"), &json!(3)));
        let session = LlmLoad { turns: Some(3), session_header: Some("x-session".to_owned()), ..load() };
        let steps = &written(&session)["scenarios"][0]["steps"];
        assert_eq!(steps[0], json!({ "set": { "session": "${uuid}" } }));
        assert_eq!(steps[1]["steps"][0]["headers"], json!({ "x-session": "${session}" }));
        let document = written(&LlmLoad { trace: Some("t.jsonl".to_owned()), ..load() });
        assert_eq!(document["run"]["stages"], "@t.jsonl");
        assert_eq!(document["scenarios"][0]["steps"][0]["completion"]["prompts"], "t.jsonl");
        assert!(!LlmLoad { url: "/".to_owned(), ..load() }.document().unwrap_err().hint().is_empty());
    }

    #[test]
    fn the_api_is_told_by_the_path_or_by_its_name() {
        let place = |url: &str, endpoint: Option<&str>, api: Option<Api>| {
            let load = LlmLoad { url: url.to_owned(), endpoint: endpoint.map(str::to_owned), api, ..load() };
            load.document().map(|_| {
                let document = written(&load);
                let step = &document["scenarios"][0]["steps"][0];
                let texts = [&document["targets"]["server"], &step["post"], &step["completion"]["api"]];
                texts.map(|text| text.as_str().unwrap_or_default().to_owned())
            })
        };
        for (url, endpoint, api, expected) in [
            ("http://a", None, None, ["http://a", "/v1/chat/completions", ""]),
            ("http://a/openai/v1", None, None, ["http://a/openai", "/v1/chat/completions", ""]),
            ("http://a/v1", None, Some(Api::Anthropic), ["http://a", "/v1/messages", ""]),
            ("http://a/api", None, Some(Api::Ollama), ["http://a", "/api/chat", ""]),
            ("http://a/x/v1/messages?beta=true", None, None, ["http://a", "/x/v1/messages?beta=true", ""]),
            ("http://a/api/generate/", None, None, ["http://a", "/api/generate", ""]),
            ("http://a/v1/messages", None, Some(Api::Chat), ["http://a", "/v1/messages", "chat"]),
            ("http://a", Some("/ask"), Some(Api::Responses), ["http://a", "/ask", "responses"]),
            ("http://a", Some("/p/responses"), None, ["http://a", "/p/responses", ""]),
        ] {
            assert_eq!(place(url, endpoint, api).unwrap(), expected, "{url} {endpoint:?} {api:?}");
        }
        let error = place("http://a", Some("/ask"), None).unwrap_err();
        assert!(error.to_string().contains("`/ask`") && error.hint().contains("anthropic"), "{error}");
    }

    #[test]
    fn a_request_that_measures_prompts_is_formed_as_the_others_are() {
        let step = |api| LlmLoad { api: Some(api), ..load() }.measuring_step(8).unwrap();
        let anthropic = step(Api::Anthropic);
        assert_eq!(anthropic["headers"]["anthropic-version"], "2023-06-01");
        assert_eq!(anthropic["json"]["messages"][0]["content"].as_str().unwrap().len(), 8);
        assert_eq!(step(Api::Chat).get("headers"), None);
        assert_eq!(step(Api::Responses)["json"]["max_output_tokens"], 16);
        assert_eq!(step(Api::OllamaGenerate)["json"]["options"]["num_predict"], 1);
    }
}
