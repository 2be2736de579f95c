//! `plimsoll llm`: completions of a language model, as a plan made from a few flags.

use plimsoll_document::{MadeDocument, Problem, RawValue};
use plimsoll_metrics::FailedExchange;
use plimsoll_plan::PlanPatch;
use plimsoll_report::Style;
use plimsoll_workloads::llm::Api;
use serde_json::Value;

use crate::args::workload::llm::{LlmArgs, problem};
use crate::base::color::Theme;
use crate::base::exit::Exit;
use crate::base::failure::Failure;
use crate::base::messages;
use crate::experiment::run::{self, RunRequest, Workload};
use crate::workload::auxiliary_request::{Answer, answers_before, transport};
use crate::workload::printed_plan::PrintedPlan;

/// The flag with the API key.
const KEY_FLAG: &str = "--api-key";

/// Bytes of the two prompts that show how long tokens are: by their difference, as templates of chats add
/// tokens of their own to every prompt.
const MEASURED: [usize; 2] = [1_024, 5_120];

/// The plan made from the flags, without those of the run; `measured` is the length of a token in bytes, if
/// the server was asked for it.
fn made(args: &LlmArgs, measured: Option<f64>) -> Result<MadeDocument, Failure> {
    let mut load = args.to_load().map_err(Failure::usage)?;
    load.bytes_per_token = measured.or(load.bytes_per_token);
    load.document().map_err(|error| Failure::usage(problem(&error)))
}

/// The plan made from the flags.
///
/// # Errors
/// All problems with them.
pub(crate) fn printed(args: &LlmArgs) -> Result<PrintedPlan, Failure> {
    let amend = |flags: &mut PlanPatch| authorize(args, flags);
    if args.measures_tokens() {
        let problem = Problem::new("--bytes-per-token auto asks the server, and --print-plan does nothing");
        return Err(Failure::usage(problem.with_hint("write the number of bytes, such as 4.2")));
    }
    PrintedPlan::new(&args.run, made(args, None)?, amend, &[])
}

pub(crate) fn command(args: &LlmArgs, look: Theme, style: &Style) -> Result<Exit, Failure> {
    if args.print_plan {
        return printed(args)?.show(args.run.output.quiet);
    }
    let measured = args.measures_tokens().then(|| measure(args)).transpose()?;
    let request = RunRequest::made(&args.run, made(args, measured)?);
    run::carry_out(&request, &mut Completions { args }, look, style)
}

/// Asks the server how many tokens it counts in two prompts; returns the bytes of a token.
fn measure(args: &LlmArgs) -> Result<f64, Failure> {
    let load = args.to_load().map_err(Failure::usage)?;
    // Problems of the plan are reported before the first request to the server.
    let request = RunRequest::made(&args.run, made(args, None)?);
    let resolved = request.plan(true).resolve_amended(|flags| authorize(args, flags))?;
    let patch = &resolved.layered.patch;
    let flags =
        PlanPatch { bearer: patch.bearer.clone(), headers: patch.headers.clone(), ..transport(patch) };
    let wrong = |error| Failure::usage(problem(&error));
    let steps: Result<Vec<Value>, _> = MEASURED.into_iter().map(|bytes| load.measuring_step(bytes)).collect();
    let (steps, base) = (steps.map_err(wrong)?, load.base().map_err(wrong)?);
    let told = answers_before(&base, &steps, flags, patch, FailedExchange::LONGEST)?;
    let tokens: Vec<u64> = told.iter().filter_map(prompt_tokens).collect();
    let bytes = match tokens[..] {
        [few, many] if many > few => (MEASURED[1] - MEASURED[0]) as f64 / (many - few) as f64,
        _ => {
            let problem =
                Problem::new("the server does not say how many tokens a prompt has (`usage.prompt_tokens`)");
            let hint = "write the number of bytes of a token: --bytes-per-token 4";
            return Err(Failure::environment(problem.with_hint(hint)));
        }
    };
    messages::say(args.run.output.quiet)(&format!("a token of a prompt has {bytes:.2} bytes"));
    Ok(bytes)
}

/// The server's count of the tokens of a prompt.
fn prompt_tokens(answer: &Answer) -> Option<u64> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let counts = ["/usage/prompt_tokens", "/usage/input_tokens", "/prompt_eval_count"];
    counts.into_iter().find_map(|pointer| body.pointer(pointer)?.as_u64())
}

/// The API key, among the flags of a run.
fn authorize(args: &LlmArgs, flags: &mut PlanPatch) -> Result<(), Problem> {
    let Some(key) = args.api_key() else { return Ok(()) };
    // That there is no API is said when the plan is made.
    if !args.to_load()?.api().is_ok_and(Api::has_key_header) {
        flags.bearer = Some(RawValue::new(KEY_FLAG, key));
        return Ok(());
    }
    let key = match key.strip_prefix('@') {
        None => key.to_owned(),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Problem::new(format!("{KEY_FLAG}: cannot read `{file}`: {error}")))?;
            text.lines().next().unwrap_or_default().trim().to_owned()
        }
    };
    flags.headers.push(RawValue::new(KEY_FLAG, format!("x-api-key: {key}")));
    Ok(())
}

struct Completions<'a> {
    args: &'a LlmArgs,
}

impl Workload for Completions<'_> {
    fn amend(&mut self, flags: &mut PlanPatch) -> Result<(), Problem> {
        authorize(self.args, flags)
    }
}
