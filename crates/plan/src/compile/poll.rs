//! Requests that are sent again until their answer has come.

use plimsoll_core::Nanos;
use plimsoll_document::{Problem, RequestStep};
use plimsoll_scenario::{CheckSpec, Matching, PollSpec, ReactionSpec, Source, StatusRange};
use plimsoll_schedule::parse_duration;

use super::Compiler;
use super::known::Known;
use super::scenario::Part;
use crate::parts::body_part;

/// Default of the first pause and the longest.
const EVERY: Nanos = Nanos::from_millis(100);
const AT_MOST: Nanos = Nanos::from_secs(10);
/// Thousandths of one.
const WHOLE: f64 = 1_000.0;

impl Compiler<'_, '_> {
    /// Compiles the polling of a step's request. Returns `None` if it is given but wrong.
    pub(super) fn poll(
        &mut self,
        request: &RequestStep,
        part: &mut Part<'_>,
        known: &Known,
    ) -> Option<Option<PollSpec>> {
        if request.poll.is_absent() {
            return Some(None);
        }
        let spec = request.poll.get()?;
        if spec.until.is_absent() && !body_part(&request.body).is_some_and(|(body, _)| body.is_judged()) {
            let problem = Problem::new("`poll` has no condition");
            let hint = "add the condition that ends it: `until: {json: {/status: done}}`";
            return self.form(request.poll.place(), problem.with_hint(hint));
        }
        let expected = self.expectations(&spec.until, part, known);
        let every = self.read(&spec.every, parse_duration);
        let at_most = self.read(&spec.at_most, parse_duration);
        let backoff = self.read(&spec.backoff, parse_backoff);
        let ReactionSpec { statuses, mut checks, .. } = expected?;
        checks.extend(status_check(&statuses));
        let growth = ((backoff?.unwrap_or(1.0) - 1.0) * WHOLE).round() as u32;
        let every = match every?.unwrap_or(EVERY) {
            Nanos::ZERO => {
                return self.fail(spec.every.place(), Problem::new("`every` must be above 0"));
            }
            every => every,
        };
        Some(Some(PollSpec { until: checks, every, growth, at_most: at_most?.unwrap_or(AT_MOST) }))
    }
}

/// Statuses as a check.
fn status_check(statuses: &[StatusRange]) -> Option<CheckSpec> {
    let all = statuses.iter().flat_map(|StatusRange { first, last }| *first..=*last);
    let all: Vec<String> = all.map(|status| status.to_string()).collect();
    let matching = Matching::Regex(format!("^({})$", all.join("|")));
    (!all.is_empty()).then_some(CheckSpec { source: Source::Status, matching, negated: false })
}

fn parse_backoff(text: &str) -> Result<f64, String> {
    let factor = text.trim().parse::<f64>().ok().filter(|factor| (1.0..=10.0).contains(factor));
    factor.ok_or_else(|| format!("`{text}` is not a factor: write a number from 1 to 10, such as 1.5"))
}
