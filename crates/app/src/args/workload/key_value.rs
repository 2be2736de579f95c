//! Flags of loads on stores of keys and values.

use clap::Args;
use plimsoll_core::figure;
use plimsoll_document::Problem;
use plimsoll_report::RunResult;
use plimsoll_workloads::WorkloadError;
use plimsoll_workloads::key_value::{KeyPattern, check_value_size};

use crate::args::extension::Note;

/// Flags that choose keys and the sizes of values.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Choice of keys: sequential, random, fixed, zipf or zipf:EXPONENT
    #[arg(long = "key", value_name = "PATTERN", help_heading = "Workload")]
    key_pattern: Option<String>,
    /// Number of keys [default: sequential: a new one each time; random, zipf: 10000]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    keys: Option<u64>,
    /// Bytes of a value: 100, 100-2000 (uniform) or exp:500
    #[arg(long, value_name = "BYTES", default_value = "100", help_heading = "Workload")]
    value_size: String,
}

impl KeyArgs {
    /// Returns the pattern of the keys, and the size of a value, as templates have it.
    ///
    /// # Errors
    /// A value that cannot be understood.
    pub fn read(&self, default: &str) -> Result<(KeyPattern, String), Problem> {
        let pattern = self.key_pattern.as_deref().unwrap_or(default);
        let pattern = KeyPattern::parse(pattern, self.keys).map_err(|error| of_flag("--key", &error))?;
        check_value_size(&self.value_size).map_err(|error| of_flag("--value-size", &error))?;
        Ok((pattern, self.value_size.clone()))
    }

    /// Returns the flags that choose keys, and whether each is given.
    pub fn given(&self) -> [(&'static str, bool); 2] {
        [("--key", self.key_pattern.is_some()), ("--keys", self.keys.is_some())]
    }
}

/// Converts an error of a workload to a problem with the flag that was typed.
pub fn of_flag(flag: &str, error: &WorkloadError) -> Problem {
    Problem::new(format!("{flag}: {error}")).with_hint(error.hint())
}

/// Returns the note of values that were found by the GETs of a step, and of those that were not, which are
/// good answers, too: `80 hits, 20 misses of 100 GETs (80 % hits)`. `None` without GETs. If nothing was
/// found, the advice is added.
pub fn hits_note(result: &RunResult, step: &str, advice: &str) -> Option<Note> {
    let gets = result.by_step.iter().filter(|of| of.step == step);
    let [hits, misses] = ["200", "404"].map(|status| {
        let counts = gets.clone().filter_map(|step| step.statuses.get(status));
        counts.fold(0_u64, |sum, count| sum.saturating_add(*count))
    });
    let all = hits.saturating_add(misses);
    if all == 0 {
        return None;
    }
    let share = figure::share(hits as f64 / all as f64);
    let advice = if hits == 0 { format!("; {advice}") } else { String::new() };
    let [hits, misses, all] = [hits, misses, all].map(figure::count);
    let text = format!("{hits} hits, {misses} misses of {all} GETs ({share} hits){advice}");
    Some(Note { code: "hits", text, is_told: false })
}
