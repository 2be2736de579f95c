//! Requests and settings before the load: the length of a token, and the API key.

use plimsoll_app::{Answer, Failure, answers_before, say, transport};
use plimsoll_document::{Problem, RawValue};
use plimsoll_metrics::FailedExchange;
use plimsoll_plan::PlanPatch;
use serde_json::Value;

use crate::args::problem;
use crate::load::LlmLoad;

/// The flag with the API key.
const KEY_FLAG: &str = "--api-key";

/// Bytes of the two prompts that show how long tokens are: by their difference, as templates of chats add
/// tokens of their own to every prompt.
const MEASURED: [usize; 2] = [1_024, 5_120];

/// Asks the server how many tokens it counts in two prompts; returns the bytes of a token.
pub(crate) fn measure(load: &LlmLoad, patch: &PlanPatch, is_quiet: bool) -> Result<f64, Failure> {
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
    say(is_quiet)(&format!("a token of a prompt has {bytes:.2} bytes"));
    Ok(bytes)
}

/// The server's count of the tokens of a prompt.
fn prompt_tokens(answer: &Answer) -> Option<u64> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let counts = ["/usage/prompt_tokens", "/usage/input_tokens", "/prompt_eval_count"];
    counts.into_iter().find_map(|pointer| body.pointer(pointer)?.as_u64())
}

/// Puts the API key among the flags of a run: as a header of its own, or as a bearer token. `@FILE` reads it
/// from a file.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn authorize(key: &str, is_of_header: bool, flags: &mut PlanPatch) -> Result<(), Problem> {
    if !is_of_header {
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
