//! Rate, lengths and accounts: where every arrival and every request went.

use plimsoll_core::figure;
use plimsoll_metrics::RateUnit;

use super::verdict::steered_by;
use super::{Fact, Identity, Line, Shown, bytes, count, length, line, nanos, seconds};
use crate::contract::result::{IterationResult, ModelKind, Rate, RateChangeResult, RunResult};
use crate::render::layout::Emphasis;

/// Changes of the rate that are listed in a text.
pub(super) const CHANGES_SHOWN: usize = 8;

pub(super) fn pace(result: &RunResult) -> Vec<Fact> {
    let model = match result.model.kind {
        ModelKind::Open => "open: requests were scheduled, independent of the target",
        ModelKind::Closed => "closed: each user waited for its response before its next request",
    };
    let mut facts = vec![Fact::new("model", model).on(Shown::Page), Fact::new("rate", rate_line(result))];
    let changes = &result.rate.changes;
    let texts = changes.iter().take(CHANGES_SHOWN).map(change);
    let more = changes.len().saturating_sub(CHANGES_SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    facts.extend(texts.chain(more).map(|text| Fact::new("", text).on(Shown::Text)));
    let mut time = line![length(result.duration_s, "/duration_s"), " measured"];
    for (name, value, at) in
        [("warm-up", result.warmup_s, "/warmup_s"), ("drain", result.drain_s, "/drain_s")]
    {
        if value > 0.0 {
            time.push(", ");
            time.push(length(value, at));
            time.push(format!(" {name}"));
        } else {
            time.push(format!(", no {name}"));
        }
    }
    facts.push(Fact::new("time", time));
    facts.extend(steady(result));
    if let Some(little) = &result.little {
        let word = if little.holds { "holds" } else { "does not hold" };
        let text = format!(
            "{word}: {:.1} ± {:.1} in flight, rate × time {:.1}",
            little.in_flight, little.in_flight_error, little.rate_times_time
        );
        facts.push(Fact::new("Little's law", text).on(Shown::Page));
    }
    facts
}

/// From when on the run was steady. In a text only where it has a beginning that differs; a run that never
/// was steady has a warning.
fn steady(result: &RunResult) -> Vec<Fact> {
    let page = |text: String| Fact::new("steady", text).on(Shown::Page);
    match (result.steady.from_s, &result.steady.reason) {
        // To leave an outage out is no advice.
        (Some(from), _) if from > result.warmup_s && !result.standstills.is_empty() => {
            let times = result
                .standstills
                .iter()
                .map(|one| format!("from {} to {}", seconds(one.from_s), seconds(one.to_s)));
            let text = format!("not steady: no answer {}", times.collect::<Vec<_>>().join(" and "));
            // What limited the run tells of the only standstill, in the opening.
            match (&result.standstills[..], is_told(result)) {
                ([_], true) => vec![page("not steady: the target stood still".to_owned())],
                _ => vec![Fact::new("", text.clone()).on(Shown::Text), page(text)],
            }
        }
        (Some(from), _) if from > result.warmup_s => {
            let text = format!(
                "steady from {} on: --warmup {}s would leave out the time before",
                seconds(from),
                from.ceil(),
            );
            vec![Fact::new("", text).on(Shown::Text), page(format!("from {} on", seconds(from)))]
        }
        (Some(_), _) => vec![page("from the beginning".to_owned())],
        (None, reason) => vec![page(reason.clone().unwrap_or_else(|| "not known".to_owned()))],
    }
}

/// Returns `true` if the limit of the run is a time without an answer, with its begin and end.
fn is_told(result: &RunResult) -> bool {
    result.verdict.limited_by.evidence.contains("no answer from ")
}

fn change(change: &RateChangeResult) -> String {
    let rates = match (change.from_per_s, change.to_per_s) {
        (Some(from), Some(to)) => format!(": {} to {}", figure::per_second(from), figure::per_second(to)),
        _ => String::new(),
    };
    format!("at {} {}{rates}, by {}", seconds(change.at_s), change.what, steered_by(&change.by))
}

/// Describes the achieved rate and the rate that was asked for: in requests, and in iterations if these have
/// several.
pub(crate) fn rate_line(result: &RunResult) -> String {
    let pace = result.pace();
    let share = pace.share().map_or(String::new(), |share| format!(" ({})", figure::share(share)));
    let asked = pace.asked.map(|asked| format!(" of {} asked for{share}", figure::per_second(asked)));
    let asked = asked.unwrap_or_default();
    let good = good_rate(result).map_or(String::new(), |good| format!(", {good}"));
    match pace.unit {
        RateUnit::Requests => {
            format!("{} achieved{asked}{good}{}", pace.achieved_text(), late_answers(result))
        }
        RateUnit::Iterations => {
            let requests = result.rate.achieved_per_s;
            let requests =
                requests.map_or("- requests/s".to_owned(), |rate| figure::per_second_of("requests", rate));
            format!("{requests} achieved{good}; {} started{asked}", pace.achieved_text())
        }
    }
}

/// The rate of the good answers among the achieved: `of which 80.0/s ok`; `None` where all were good.
pub(super) fn good_rate(result: &RunResult) -> Option<String> {
    result.good_per_s().map(|good| format!("of which {} ok", figure::per_second(good)))
}

/// Good answers of an open load that came after its end, if the achieved rate lacks them so that it shows:
/// without a warm-up no others came at its beginning in their place.
fn late_answers(result: &RunResult) -> String {
    let late = result.intervals.iter().filter(|interval| interval.drain).map(|interval| interval.ok);
    let late = late.fold(0, u64::saturating_add);
    let Rate { achieved_per_s, started_per_s, .. } = &result.rate;
    let differ = achieved_per_s.map(figure::per_second) != started_per_s.map(figure::per_second);
    let is_open = result.model.kind == ModelKind::Open;
    match late {
        late if !is_open || late == 0 || !differ || result.warmup_s > 0.0 => String::new(),
        1 => "; 1 answer came after the end of the load".to_owned(),
        late => format!("; {} answers came after the end of the load", figure::count(late)),
    }
}

pub(super) fn accounts(result: &RunResult) -> Vec<Fact> {
    use Emphasis::{Bad, Doubtful, Good, Plain};
    let accounting = &result.accounting;
    let counted = |key: &str, value: u64| count(value, format!("/accounting/{key}"));
    let mut scheduled = vec![
        ("started", accounting.started, Plain),
        ("dropped", accounting.dropped, Doubtful),
        ("never_started", accounting.never_started, Doubtful),
        ("unknown", accounting.unknown, Bad),
    ];
    scheduled.retain(|(key, value, _)| *key != "unknown" || *value > 0);
    let mut started = vec![
        ("ok", accounting.ok, Good),
        ("failed", accounting.failed, Bad),
        ("timed_out", accounting.timed_out, Bad),
        ("aborted", accounting.aborted, Doubtful),
        ("in_flight_at_stop", accounting.in_flight_at_stop, Doubtful),
    ];
    started.retain(|(key, value, _)| *key != "aborted" || *value > 0);
    let identity = |whole, parts: &[_]| Identity::new("/accounting", whole, parts);
    let mut facts =
        vec![Fact::identity("accounting", identity(("scheduled", accounting.scheduled), &scheduled))];
    if accounting.incomplete {
        let text = "without the requests of workers that have not come back: see the verdict";
        facts.push(Fact::new("", text));
    }
    let more = |line: Line| Fact::new("", line).on(Shown::TextAndPage);
    if accounting.without_data > 0 {
        let without = counted("without_data", accounting.without_data);
        facts.push(more(line!["of the never started, ", without, " had no data any more"]));
    }
    facts.push(Fact::identity("", identity(("started", accounting.started), &started)));
    if accounting.since_warmup > 0 {
        let since = counted("since_warmup", accounting.since_warmup);
        facts.push(more(line!["of these in flight since the warm-up ", since]));
    }
    facts.push(more(line![
        "of these undelivered ",
        counted("undelivered", accounting.undelivered),
        "; beside them unmeasured ",
        counted("unmeasured", accounting.unmeasured),
        ", redirects followed ",
        counted("redirects_followed", accounting.redirects_followed),
    ]));
    for (label, once) in [("setup", &result.run.setup), ("teardown", &result.run.teardown)] {
        let Some(once) = once else { continue };
        let at = |key: &str| format!("/run/{label}/{key}");
        let requests = count(once.requests, at("requests"));
        let noun = if once.requests == 1 { " request, " } else { " requests, " };
        facts.push(Fact::new(label, line![requests, noun, nanos(once.duration_ns, at("duration_ns"))]));
    }
    if let Some(refresh) = &result.run.refresh {
        let times = count(refresh.times, "/run/refresh/times".to_owned());
        let requests = count(refresh.requests, "/run/refresh/requests".to_owned());
        let again = if refresh.times == 1 { " time, " } else { " times, " };
        let noun = if refresh.requests == 1 { " request" } else { " requests" };
        facts.push(Fact::new("refresh", line![times, again, requests, noun]));
    }
    if accounting.polls > 0 {
        let polls = counted("polls", accounting.polls);
        facts.push(more(line!["sent again, for their answer was still to come: ", polls]));
    }
    facts.extend(resent(result).map(|line| Fact::new("", line)));
    if iterations_differ(result) {
        let iterations = &result.iterations;
        let parts = [
            ("completed", iterations.completed, Good),
            ("failed", iterations.failed, Bad),
            ("unfinished", iterations.unfinished, Doubtful),
        ];
        let identity = Identity::new("/iterations", ("started", iterations.started), &parts);
        facts.push(Fact::identity("iterations", identity).on(Shown::TextAndPage));
    }
    let (sent, received) =
        (bytes(result.bytes.sent, "/bytes/sent"), bytes(result.bytes.received, "/bytes/received"));
    let mut line = line![sent, " sent, ", received, " received"];
    if result.duration_s > 0.0 {
        let per_second = (result.bytes.received as f64 / result.duration_s) as u64;
        line.push(format!(", {}/s", figure::bytes(per_second)));
    }
    let responses = result.statuses.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    if let Some(each) = result.bytes.received.checked_div(responses) {
        line.push(format!(", {} for each response with its head", figure::bytes(each)));
    }
    facts.push(Fact::new("bytes", line).on(Shown::TextAndPage));
    facts
}

/// Returns the number of requests that were sent a second time, and why; `None` if there are none.
pub(crate) fn resent(result: &RunResult) -> Option<Line> {
    let words = result.accounting.resent_words()?;
    Some(line![count(result.accounting.resent, "/accounting/resent".to_owned()), format!(" {words}")])
}

/// Returns `true` if the accounts of iterations differ from those of requests.
fn iterations_differ(result: &RunResult) -> bool {
    let (iterations, accounting) = (&result.iterations, &result.accounting);
    let as_requests = IterationResult {
        started: accounting.started,
        completed: accounting.ok,
        failed: accounting.failed.saturating_add(accounting.timed_out).saturating_add(accounting.aborted),
        unfinished: accounting.in_flight_at_stop,
    };
    let of_several = result.rate.paces_requests || result.rate_unit() == RateUnit::Iterations;
    iterations.started > 0 && (*iterations != as_requests || of_several)
}
