//! The summary in the form of the Internet Computer's generator.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_core::{ErrorClass, figure};
use plimsoll_report::RunResult;
use plimsoll_report::result::StepResult;
use plimsoll_workloads::canister::{Api, CanisterLoad, CanisterNotes, QUERY, SUBMIT, WAIT};

/// Codes for outcomes without a status of HTTP, as the Internet Computer's generator has them (22 is ours),
/// and a status that says less than it seems.
const CODES: [(u16, &str); 6] = [
    (0, "not submitted: it was due, and never sent"),
    (11, "sending failed: no connection, or it was lost"),
    (22, "an invalid answer: it cannot be read, or belongs to another request"),
    (33, "rejected by the replica or the canister"),
    (44, "timed out before an answer"),
    (202, "taken in, and its outcome was not known at the end"),
];

/// Number of calls by code: HTTP statuses, and [`CODES`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcomes(pub(super) BTreeMap<u16, u64>);

impl Outcomes {
    fn add(&mut self, code: u16, count: u64) {
        if count > 0 {
            *self.0.entry(code).or_default() += count;
        }
    }

    /// Takes requests away that were counted under a status, and were something else after all.
    fn take(&mut self, statuses: [u16; 2], mut count: u64) {
        for status in statuses {
            if let Some(counted) = self.0.get_mut(&status) {
                let taken = count.min(*counted);
                (*counted, count) = (*counted - taken, count - taken);
            }
        }
        self.0.retain(|_, count| *count > 0);
    }

    pub(super) fn of(step: &StepResult) -> Self {
        let mut outcomes = Self::default();
        for (status, count) in &step.statuses {
            outcomes.add(status.parse().unwrap_or_default(), *count);
        }
        let error = |class: ErrorClass| step.errors.get(class.name()).copied().unwrap_or_default();
        let (rejected, garbage) = (error(ErrorClass::Rejected), error(ErrorClass::Check));
        outcomes.take([200, 202], rejected + garbage);
        let with_status = error(ErrorClass::Status4xx) + error(ErrorClass::Status5xx);
        outcomes.add(11, step.failed.saturating_sub(rejected + garbage + with_status));
        outcomes.add(22, garbage);
        outcomes.add(33, rejected);
        outcomes.add(44, step.timed_out + step.unanswered());
        outcomes
    }
}

/// Figures of a load in the form of the Internet Computer's generator.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) outcomes: Outcomes,
    submit_failures: u64,
    wait_failures: u64,
    /// Answers per second: the achieved rate of the report. Of updates that are waited for, all calls that
    /// were answered: which request was the last one of a call that ended in the drain is not known.
    achieved_per_s: f64,
    /// Calls that were begun.
    calls: u64,
}

impl Tally {
    pub(super) fn of(result: &RunResult, api: Api) -> Self {
        let step = |name: &str| step_named(result, name);
        let mut tally = Self::default();
        let error =
            |step: &StepResult, class: ErrorClass| step.errors.get(class.name()).copied().unwrap_or_default();
        let begun = |step: &StepResult| step.ok + step.failed + step.timed_out + step.unanswered();
        let unsent = result.accounting.dropped + result.accounting.never_started;
        let first_ok = step(SUBMIT).map_or(0, |first| first.ok);
        if let Some(first) = step(QUERY).or_else(|| step(SUBMIT)) {
            tally.outcomes = Outcomes::of(first);
            tally.calls = begun(first);
            tally.achieved_per_s = result.rate.achieved_per_s.unwrap_or_default();
            // The call was submitted, but the answer was bad or missing. In version 2 the answer says only
            // whether the call was accepted.
            let answers = error(first, ErrorClass::Rejected) + error(first, ErrorClass::Check);
            let waited = match (first.step == QUERY, api) {
                (true, _) => answers + first.timed_out + first.unanswered(),
                (false, Api::V2) => 0,
                (false, Api::V3 | Api::V4) => answers,
            };
            let lost = first.failed + first.timed_out + first.unanswered();
            tally.submit_failures = lost.saturating_sub(waited);
            tally.wait_failures = waited;
        }
        if let Some(wait) = step(WAIT) {
            // Acceptance of a call is not its outcome.
            let submitted = tally.outcomes.0.remove(&202).unwrap_or_default();
            for (code, count) in Outcomes::of(wait).0 {
                tally.outcomes.add(code, count);
            }
            // The load may have ended before the outcome was asked for.
            tally.outcomes.add(202, submitted.saturating_sub(begun(wait)));
            tally.wait_failures += wait.failed + wait.timed_out + wait.unanswered();
            let answered = first_ok.saturating_sub(submitted) + wait.ok;
            let seconds = result.duration_s;
            tally.achieved_per_s = if seconds > 0.0 { answered as f64 / seconds } else { 0.0 };
        }
        tally.submit_failures += unsent;
        tally.outcomes.add(0, unsent);
        tally
    }
}

/// The step of this name.
pub(super) fn step_named<'r>(result: &'r RunResult, name: &str) -> Option<&'r StepResult> {
    result.by_step.iter().find(|step| step.step == name)
}

/// The lines that the Internet Computer's generator prints.
pub(super) fn text(load: &CanisterLoad, result: &RunResult, tally: &Tally, notes: &CanisterNotes) -> String {
    let achieved = tally.achieved_per_s;
    let plain = |rate: f64| format!("{}", (rate * 100.0).round() / 100.0);
    let requested = match result.rate.target_per_s {
        Some(rate) => plain(rate),
        None => "as many as are answered".to_owned(),
    };
    let mut text = format!("requested: {requested} - achieved: {}", plain(achieved));
    // Writing to a string cannot fail.
    if let Some(highest) = notes.highest() {
        let _ = write!(text, ", Max counter value seen: {highest}");
    }
    let _ = write!(
        text,
        " - submit failures: {} - wait failures: {}\nSummary\n",
        tally.submit_failures, tally.wait_failures
    );
    let parts: &[(&str, &str)] = match load.updates {
        false => &[(QUERY, "")],
        true => &[(SUBMIT, " (submit)"), (WAIT, " (wait)")],
    };
    for (name, label) in parts {
        let Some(step) = step_named(result, name) else { continue };
        if step.ok + step.failed + step.timed_out == 0 {
            continue;
        }
        let times = &step.response_time;
        let ms = |time: Option<u64>| match time {
            Some(ns) => format!("{:.6} ms", ns as f64 / 1e6),
            None => "-".to_owned(),
        };
        let _ = write!(
            text,
            "  Average{label}:   {} (std: {})\n  Median{label}:    {}\n  Longest{label}:   {}\n  Shortest{label}:  {}\n",
            ms(times.mean),
            ms(times.stdev),
            ms(times.p.p50),
            ms(times.max),
            ms(times.min),
        );
    }
    // The content of replies is recorded where they are read: for a fleet, on the agents.
    let replies = match result.agents.is_empty() {
        true => format!("{} of replies, ", figure::bytes(notes.payload())),
        false => String::new(),
    };
    let _ = write!(
        text,
        "  Requests:  {}\n  Data:      {replies}{} on the wire\n\nStatus codes:\n",
        tally.calls,
        figure::bytes(result.bytes.received),
    );
    for (code, count) in &tally.outcomes.0 {
        let meaning = CODES.iter().find(|(known, _)| known == code).map(|(_, meaning)| *meaning);
        let _ = match meaning {
            Some(meaning) => writeln!(text, "  {code}: {count} ({meaning})"),
            None => writeln!(text, "  {code}: {count}"),
        };
    }
    text.push('\n');
    text
}
