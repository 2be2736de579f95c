//! A number that the command line gives a run of a configuration.

use plimsoll_document::{Document, Field, StepSpec};

use crate::Note;
use crate::amount::Ratio;

/// The note on `-n COUNT` beside a configuration: h2loadrunner counts requests, and a run counts iterations.
/// `None` if each iteration is one request.
pub fn note_on_count(document: &Document, count: &str) -> Option<Note> {
    let scenarios: Vec<(u64, u64)> = document
        .scenarios
        .iter()
        .filter_map(Field::get)
        .map(|scenario| {
            let weight = scenario.weight.get().and_then(|weight| weight.as_str().parse().ok()).unwrap_or(1);
            (weight, requests(&scenario.steps))
        })
        .collect();
    let sum = |of: fn(&(u64, u64)) -> u128| scenarios.iter().map(of).sum::<u128>();
    let all = sum(|(weight, requests)| u128::from(*weight) * u128::from(*requests));
    let mean = Ratio::new(all, sum(|(weight, _)| u128::from(*weight)))?;
    if mean == Ratio::whole(1) || mean.is_zero() {
        return None;
    }
    let advice = count
        .parse::<u64>()
        .ok()
        .and_then(|count| Ratio::new(u128::from(count), 1)?.divided_by(mean))
        .map(|iterations| format!(": -n {} is that load", iterations.ceil()))
        .unwrap_or_default();
    let becomes =
        format!("it is {count} iterations of {mean} requests, and h2loadrunner's -n counts requests{advice}");
    Some(Note { at: "-n".to_owned(), said: count.to_owned(), becomes })
}

/// Requests of these steps, also within others.
fn requests(steps: &[Field<StepSpec>]) -> u64 {
    let of = |step: &StepSpec| {
        let inner: u64 = step.inner().map(requests).sum();
        u64::from(step.request().is_some()) + inner
    };
    steps.iter().filter_map(Field::get).map(of).sum()
}
