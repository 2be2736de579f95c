//! A search, or a sweep, as test cases: that it has an answer, and each objective up to the rate that was
//! shown to hold it; or each level of a sweep.

use plimsoll_core::figure;

use super::{Counts, Suite, attributes, data, empty, line, open};
use crate::Style;
use crate::contract::capacity::{Capacity, CapacityResult, LevelResult, ShareResult};
use crate::contract::result::OutcomeResult;
use crate::contract::searched::Searched;
use crate::contract::sweep::{SweepLevel, SweepResult};
use crate::render::text;

/// Kind of the error of what a signal ended.
const INTERRUPTED: &str = "interrupted";

/// How a test case ended, and the words about it.
enum Ended {
    Passed,
    Failed(String),
    /// The test case shows nothing: the kind of the reason, and the words about it.
    Erred(String, String),
    Skipped(String),
}

/// A test case.
struct Case {
    name: String,
    seconds: f64,
    ended: Ended,
}

/// The whole report, with its XML declaration.
pub(crate) fn report(searched: &Searched) -> String {
    let cases = match searched {
        Searched::Capacity(result) => of_search(result),
        Searched::Sweep(result) => of_sweep(result),
    };
    let of = |is: fn(&Ended) -> bool| cases.iter().filter(|case| is(&case.ended)).count();
    let counts = Counts {
        tests: cases.len(),
        failures: of(|ended| matches!(ended, Ended::Failed(_))),
        errors: of(|ended| matches!(ended, Ended::Erred(..))),
        skipped: of(|ended| matches!(ended, Ended::Skipped(_))),
    };
    let (circumstances, tool) = (searched.circumstances(), searched.tool());
    let suite = Suite {
        name: circumstances.name.clone().unwrap_or_else(|| circumstances.target()),
        started_at: &circumstances.started_at,
        host: &circumstances.host.hostname,
        counts,
        seconds: circumstances.duration_s,
        properties: vec![
            ("outcome", searched.headline()),
            ("tool", format!("{} {}", tool.name, tool.version)),
            ("search", circumstances.id.clone()),
            ("seed", circumstances.seed.to_string()),
            ("plan", circumstances.plan_hash.clone()),
            ("model", circumstances.load.clone()),
            ("command", circumstances.command_line()),
        ],
        output: text::searched(searched, &Style { unicode: true, ..Style::PLAIN }),
    };
    suite.written(|out| cases.iter().for_each(|one| case(out, one)))
}

/// The search itself, the rate that was asked for, and each of the objectives. They are as red as the exit
/// code: a failure among them where that is 99, an error alone where it is 3, an error where it is that of a
/// signal, and none of them where it is 0.
fn of_search(result: &CapacityResult) -> Vec<Case> {
    let (capacity, outcome) = (&result.capacity, result.capacity.outcome());
    let asked = capacity.asked_per_s.map(|asked| of_rate(capacity, asked));
    let objectives = result.search.slo.iter().map(|slo| of_objective(result, outcome, slo));
    let mut cases: Vec<Case> = asked.into_iter().chain(objectives).collect();
    let is_failed = cases.iter().any(|case| matches!(case.ended, Ended::Failed(_)));
    let statement = capacity.statement.clone();
    let ended = match (outcome, capacity.found()) {
        // Its exit code is that of the signal.
        _ if capacity.is_stopped() => {
            Ended::Erred(INTERRUPTED.to_owned(), format!("interrupted: {statement}"))
        }
        (OutcomeResult::NoVerdict, OutcomeResult::NoVerdict) => Ended::Erred(capacity.end.clone(), statement),
        (OutcomeResult::Fail, _) if !is_failed => Ended::Failed(statement),
        // The rate that was asked for has its answer, though the capacity has none.
        (_, OutcomeResult::NoVerdict) => Ended::Skipped(statement),
        _ => Ended::Passed,
    };
    let (name, seconds) = ("the search has an answer".to_owned(), result.search.duration_s);
    cases.insert(0, Case { name, seconds, ended });
    cases
}

/// The rate that was asked for.
fn of_rate(capacity: &Capacity, asked: f64) -> Case {
    let interval = capacity.interval();
    let ended = match (capacity.outcome(), capacity.found()) {
        (OutcomeResult::Pass | OutcomeResult::Done, _) => Ended::Passed,
        (OutcomeResult::Fail, _) => Ended::Failed(format!("it is {interval}")),
        (_, OutcomeResult::NoVerdict) => Ended::Skipped("the search has no answer".to_owned()),
        _ => Ended::Erred("not_shown".to_owned(), format!("neither is shown: it is {interval}")),
    };
    Case { name: format!("the capacity is at least {}", capacity.rate(asked)), seconds: 0.0, ended }
}

/// An objective: it holds up to the lower end of the capacity. Without one, the lowest rate that shows
/// something about it decides; what no rate shows is no pass.
fn of_objective(result: &CapacityResult, outcome: OutcomeResult, slo: &str) -> Case {
    let shown = |level: &LevelResult| Some((level.rate_per_s, shown_at(level, slo)?));
    let (name, ended) = match (result.capacity.low_per_s, outcome) {
        (Some(low), _) => (format!("{slo} up to {}", result.capacity.rate(low)), Ended::Passed),
        (None, OutcomeResult::Fail) => match result.levels.iter().find_map(shown) {
            Some((rate, ended)) => (format!("{slo} at {}", result.capacity.rate(rate)), ended),
            None => (slo.to_owned(), Ended::Skipped("no rate that was tried shows it".to_owned())),
        },
        (None, _) => (slo.to_owned(), Ended::Skipped("the search has no answer".to_owned())),
    };
    Case { name, seconds: 0.0, ended }
}

/// How an objective ended at a rate; `None` if the requests there show neither that it holds nor that it does
/// not.
fn shown_at(level: &LevelResult, slo: &str) -> Option<Ended> {
    if level.is_overloaded() {
        return Some(Ended::Failed("requests came faster than they were answered".to_owned()));
    }
    let share = level.shares.iter().find(|share| share.slo == slo)?;
    match share.holds()? {
        true => Some(Ended::Passed),
        false => Some(Ended::Failed(breaking(share, level.reason.as_deref()))),
    }
}

fn breaking(share: &ShareResult, reason: Option<&str>) -> String {
    let (bad, limit) = (share.share.unwrap_or_default(), figure::share(share.limit));
    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} of the requests break it, and {limit} may{why}", figure::share(bad))
}

/// Each level, and that the sweep was not done, if a signal ended it.
fn of_sweep(result: &SweepResult) -> Vec<Case> {
    let levels = result.levels.iter().map(|level| of_level(result, level));
    let interrupted = result.interrupted.then(|| Case {
        name: "all levels were tried".to_owned(),
        seconds: 0.0,
        ended: Ended::Erred(INTERRUPTED.to_owned(), "interrupted: a signal ended the sweep".to_owned()),
    });
    levels.chain(interrupted).collect()
}

fn of_level(result: &SweepResult, level: &SweepLevel) -> Case {
    let slo = result.sweep.slo.join(" and ");
    let what = if slo.is_empty() { String::new() } else { format!(": {slo}") };
    let cause = || level.figures.cause().map_or_else(String::new, |found| found.evidence.clone());
    let ended = match level.finding.as_deref() {
        None | Some("holds") => Ended::Passed,
        Some("breaks") => Ended::Failed("the objective does not hold at this level".to_owned()),
        Some("unclear") => Ended::Erred(
            "unclear".to_owned(),
            "too few requests to tell: give each level more time with -d".to_owned(),
        ),
        // Without an objective, a level that was not put on the server is missing in the curve, and no more.
        Some(_) if slo.is_empty() && result.outcome() != OutcomeResult::NoVerdict => Ended::Skipped(cause()),
        Some(other) => Ended::Erred(other.to_owned(), cause()),
    };
    Case {
        name: format!("{} {}{what}", result.setting, level.value),
        seconds: level.figures.measured_s,
        ended,
    }
}

fn case(out: &mut String, case: &Case) {
    let attributes = attributes(&case.name, &format!("{:.3}", case.seconds));
    let with_text = |tag: &str, message: &str, kind: &str| {
        let about = [("message", message.to_owned()), ("type", kind.to_owned())];
        format!("{}{}</{tag}>", open(tag, &about), data(message))
    };
    let inner = match &case.ended {
        Ended::Passed => return line(out, 2, &empty("testcase", &attributes)),
        Ended::Failed(message) => with_text("failure", message, "objective"),
        Ended::Erred(kind, message) => with_text("error", message, kind),
        Ended::Skipped(message) => empty("skipped", &[("message", message.clone())]),
    };
    line(out, 2, &open("testcase", &attributes));
    line(out, 3, &inner);
    line(out, 2, "</testcase>");
}
