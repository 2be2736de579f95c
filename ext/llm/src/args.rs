//! The flags of `plimsoll llm`.

use clap::Args;
use plimsoll_app::{Failure, LoadArgs, RunArgs, named};
use plimsoll_document::{MadeDocument, Problem};
use plimsoll_plan::{PlanPatch, Resolved};
use plimsoll_workloads::WorkloadError;
use serde_json::{Map, Value};

use crate::before;
use crate::load::{Api, LlmLoad};

/// Line of the command in the list of commands.
pub(crate) const SUMMARY: &str =
    "Load a language model over OpenAI's API: time to first token, time per token, goodput";

/// Description of the command.
pub(crate) const DETAILS: &str = "\
By default one request at a time for 10 seconds, with prompts of 128 tokens and answers of at most 64, as a \
stream. Times are those of the kernel's receive stamps; with --rate, time to first token counts from when a \
request was due. The flags make a plan, which --print-plan shows; all flags of `run` apply. `plimsoll target \
llm` is a server to try it on.";

/// The value that asks the server for the length of its tokens.
const AUTO: &str = "auto";

#[derive(Debug, Args)]
// What those are called who come from other tools for language models.
#[command(mut_arg("connections", |arg| arg.visible_alias("concurrency").help(CONNECTIONS_HELP)))]
#[command(mut_arg("rate", |arg| arg.visible_alias("request-rate")))]
#[command(mut_arg("iterations", |arg| arg.visible_aliases(["num-prompts", "request-count"])))]
#[command(mut_arg("max_concurrent_streams", |arg| arg.short(None)))]
pub(crate) struct LlmArgs {
    #[command(flatten)]
    prompt: PromptArgs,
    /// Print the plan that the flags make, and exit
    #[arg(long, help_heading = "Prompts")]
    print_plan: bool,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

const CONNECTIONS_HELP: &str = "Requests at a time [default: 1; with --rate: as many as needed]";

#[derive(Debug, Args)]
#[command(next_help_heading = "Prompts")]
struct PromptArgs {
    /// Name of the model
    #[arg(short = 'm', long, value_name = "NAME")]
    model: String,
    /// API to use: chat, completions or responses (of OpenAI and many others), anthropic, ollama or
    /// ollama-generate [default: that of the URL's path, or else chat]
    #[arg(long, value_name = "API", value_parser = named(&Api::ALL, Api::name), visible_alias = "endpoint-type")]
    api: Option<Api>,
    /// Path of the requests [default: that of the URL, or the usual one of the API]
    ///
    /// For a proxy that has its own. --api says how requests are formed; answers tell by themselves what they
    /// are.
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
    /// Length of prompts in tokens: 512, normal:512,100 (mean, deviation) or uniform:100,900 [default: 128]
    #[arg(long, value_name = "LENGTH", conflicts_with = "prompts", visible_alias = "isl")]
    input_tokens: Option<String>,
    /// Length of answers in tokens at most: a length, as of prompts [default: 64]
    #[arg(long, value_name = "LENGTH", visible_alias = "osl")]
    output_tokens: Option<String>,
    /// Tokens at the front of prompts that all of them share
    #[arg(long, value_name = "N")]
    shared_prefix: Option<u64>,
    /// Bytes per token of a prompt, or auto [default: 4]
    ///
    /// auto asks the server before the load: two prompts, 4 KiB apart, for one token each, whose tokens it
    /// counts (`usage`). The report has its count of all prompts.
    #[arg(long, value_name = "N")]
    bytes_per_token: Option<String>,
    /// File with the prompts: ShareGPT's JSON, or lines of JSON with `prompt` and perhaps `output_tokens`, or
    /// with `messages`
    ///
    /// Recorded messages are sent as they are, calls of tools and their results among them: in each turn all
    /// before an answer of the recording, and without --turns all before the last.
    #[arg(long, value_name = "FILE")]
    prompts: Option<String>,
    /// Trace to replay: lines of JSON in Mooncake's format
    ///
    /// Each has `timestamp` in milliseconds, `input_length` and `output_length` in tokens, and perhaps
    /// `hash_ids`: the names of its blocks of 512 tokens, of which the same name stands for the same text.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompts", "input_tokens", "turns"])]
    trace: Option<String>,
    /// Turns of each conversation: requests with the earlier messages in front of the prompt
    ///
    /// The answers in there are made up, or those of --prompts: they are not what the server has answered.
    /// With ShareGPT, conversations with fewer turns are skipped.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    turns: Option<u32>,
    /// Pause after each answer, as of a user who reads it: 5s
    #[arg(long, value_name = "TIME")]
    think: Option<String>,
    /// Header with a value of its own in each conversation, for routers that keep one on a server
    ///
    /// All requests of a conversation have the same value, a random UUID.
    #[arg(long, value_name = "NAME")]
    session_header: Option<String>,
    /// Ask for answers of the full length: `ignore_eos`, which vLLM, SGLang and llama.cpp know
    #[arg(long)]
    ignore_eos: bool,
    /// Further members of the requests, as JSON: '{"temperature": 0}'
    #[arg(long, value_name = "JSON")]
    extra: Option<String>,
    /// API key, with @FILE to read it from a file; as --bearer, or as x-api-key for --api anthropic
    #[arg(long, value_name = "KEY", conflicts_with = "bearer")]
    api_key: Option<String>,
}

impl LoadArgs for LlmArgs {
    fn run(&self) -> &RunArgs {
        &self.run
    }

    fn print_plan(&self) -> bool {
        self.print_plan
    }

    fn plan(&self) -> Result<MadeDocument, Failure> {
        if self.print_plan && self.measures_tokens() {
            let problem =
                Problem::new("--bytes-per-token auto asks the server, and --print-plan does nothing");
            return Err(Failure::usage(problem.with_hint("write the number of bytes, such as 4.2")));
        }
        self.made(None)
    }

    fn asked(
        &self,
        resolve: &mut dyn FnMut() -> Result<Resolved, Failure>,
    ) -> Result<Option<MadeDocument>, Failure> {
        if !self.measures_tokens() {
            return Ok(None);
        }
        // Problems of the plan are reported before the first request to the server.
        let resolved = resolve()?;
        let load = self.to_load().map_err(Failure::usage)?;
        let bytes = before::measure(&load, &resolved.layered.patch, self.run.is_quiet())?;
        self.made(Some(bytes)).map(Some)
    }

    fn amend(&self, flags: &mut PlanPatch) -> Result<(), Problem> {
        let Some(key) = &self.prompt.api_key else { return Ok(()) };
        // That there is no API is said when the plan is made.
        let is_of_header = self.to_load()?.api().is_ok_and(Api::has_key_header);
        before::authorize(key, is_of_header, flags)
    }
}

impl LlmArgs {
    /// The plan made from the flags, without those of the run; `measured` is the length of a token in bytes,
    /// if the server was asked for it.
    fn made(&self, measured: Option<f64>) -> Result<MadeDocument, Failure> {
        let mut load = self.to_load().map_err(Failure::usage)?;
        load.bytes_per_token = measured.or(load.bytes_per_token);
        load.document().map_err(|error| Failure::usage(problem(&error)))
    }

    /// Returns `true` if the server is to be asked how long its tokens are.
    fn measures_tokens(&self) -> bool {
        self.prompt.bytes_per_token.as_deref() == Some(AUTO)
    }

    /// The workload that the flags describe.
    ///
    /// # Errors
    /// A value that no load can have, or a combination of flags that is refused.
    fn to_load(&self) -> Result<LlmLoad, Problem> {
        let prompt = &self.prompt;
        let [url] = self.run.arguments() else {
            let problem = Problem::new("`plimsoll llm` asks one server");
            return Err(problem.with_hint("name it, as in `plimsoll llm http://127.0.0.1:8000 --model NAME`"));
        };
        let extra = match prompt.extra.as_deref().map(serde_json::from_str::<Map<String, Value>>) {
            None => Map::new(),
            Some(Ok(members)) => members,
            Some(Err(error)) => {
                let problem = Problem::new(format!("--extra: no object of JSON: {error}"));
                return Err(problem.with_hint("write it as in --extra '{\"temperature\": 0}'"));
            }
        };
        Ok(LlmLoad {
            url: url.clone(),
            endpoint: prompt.endpoint.clone(),
            model: prompt.model.clone(),
            api: prompt.api,
            input: prompt.input_tokens.clone(),
            output: prompt.output_tokens.clone(),
            prefix: prompt.shared_prefix,
            bytes_per_token: match prompt.bytes_per_token.as_deref() {
                None | Some(AUTO) => None,
                Some(text) => Some(text.parse().map_err(|_| {
                    let problem =
                        Problem::new(format!("--bytes-per-token: `{text}` is not a number of bytes"));
                    problem.with_hint("write one such as 4.2, or auto to ask the server")
                })?),
            },
            prompts: prompt.prompts.clone(),
            trace: prompt.trace.clone(),
            turns: prompt.turns,
            think: prompt.think.clone(),
            session_header: prompt.session_header.clone(),
            ignore_eos: prompt.ignore_eos,
            extra,
            connections: (prompt.trace.is_none() && !self.run.has_rate() && !self.run.has_users())
                .then_some(1),
        })
    }
}

/// Converts an error of the workload to a problem with the flags that were typed.
pub(crate) fn problem(error: &WorkloadError) -> Problem {
    Problem::new(error.to_string()).with_hint(error.hint())
}
