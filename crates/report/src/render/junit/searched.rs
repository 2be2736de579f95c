//! A search, or a sweep, as test cases: that it has an answer, and each objective up to the rate that was
//! shown to hold it; or each level of a sweep.

use plimsoll_metrics::figure;

use super::{Counts, Suite, attributes, data, empty, line, open};
use crate::Style;
use crate::contract::capacity::{CapacityResult, LevelResult, ShareResult};
use crate::contract::result::OutcomeResult;
use crate::contract::searched::Searched;
use crate::contract::sweep::{SweepLevel, SweepResult};
use crate::render::text;

/// How a test case ended, and the words about it.
enum Ended {
    Passed,
    Failed(String),
    /// It shows nothing; with the kind of the reason.
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
        Searched::Sweep(result) => result.levels.iter().map(|level| of_level(result, level)).collect(),
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
        name: circumstances.target(),
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

/// The search itself, and each of its objectives.
fn of_search(result: &CapacityResult) -> Vec<Case> {
    let capacity = &result.capacity;
    let outcome = capacity.outcome();
    let (name, seconds) = ("the search has an answer".to_owned(), result.search.duration_s);
    let ended = match outcome {
        OutcomeResult::NoVerdict => Ended::Erred(capacity.end.clone(), capacity.statement.clone()),
        _ => Ended::Passed,
    };
    let mut cases = vec![Case { name, seconds, ended }];
    cases.extend(capacity.asked_per_s.map(|asked| Case {
        name: format!("the capacity is at least {}", capacity.rate(asked)),
        seconds: 0.0,
        ended: match outcome {
            OutcomeResult::Pass | OutcomeResult::Done => Ended::Passed,
            OutcomeResult::Fail => Ended::Failed(format!("it is {}", capacity.interval())),
            OutcomeResult::NoVerdict => Ended::Skipped("the search has no answer".to_owned()),
        },
    }));
    cases.extend(result.search.slo.iter().map(|slo| of_objective(result, outcome, slo)));
    cases
}

/// An objective: it holds up to the lower end of the capacity. Where no rate holds, the lowest one that was
/// tried tells which of the objectives broke.
fn of_objective(result: &CapacityResult, outcome: OutcomeResult, slo: &str) -> Case {
    let share = |level: &LevelResult| level.shares.iter().find(|share| share.slo == slo).cloned();
    let lowest = result.levels.first();
    let (name, ended) = match (result.capacity.low_per_s, outcome, lowest) {
        (Some(low), ..) => (format!("{slo} up to {}", figure::per_second(low)), Ended::Passed),
        (None, OutcomeResult::Fail, Some(level)) => {
            let broken = share(level).filter(|share| share.share > share.limit);
            let overloaded = || match level.is_overloaded() {
                true => Ended::Failed("requests came faster than they were answered".to_owned()),
                false => Ended::Passed,
            };
            let ended = broken.map_or_else(overloaded, |share| Ended::Failed(breaking(&share)));
            (format!("{slo} at {}", figure::per_second(level.rate_per_s)), ended)
        }
        _ => (slo.to_owned(), Ended::Skipped("the search has no answer".to_owned())),
    };
    Case { name, seconds: 0.0, ended }
}

fn breaking(share: &ShareResult) -> String {
    let limit = figure::share(share.limit);
    format!("{} of the requests break it, and {limit} may", figure::share(share.share))
}

fn of_level(result: &SweepResult, level: &SweepLevel) -> Case {
    let slo = result.sweep.slo.join(" and ");
    let what = if slo.is_empty() { String::new() } else { format!(": {slo}") };
    let cause = || level.figures.cause().map_or_else(String::new, |found| found.evidence.clone());
    let ended = match level.finding.as_deref() {
        None | Some("holds") => Ended::Passed,
        Some("breaks") => Ended::Failed("the objective does not hold at this level".to_owned()),
        Some("unclear") => Ended::Erred("unclear".to_owned(), "too short a run to tell".to_owned()),
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
