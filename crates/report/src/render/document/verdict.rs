//! The opening of the report: the outcome, the validity of the measurement, the factor that limited the run,
//! and the most important figures.

use plimsoll_core::figure;
use plimsoll_metrics::{LimitedBy, RateUnit, SteeredBy};

use super::accounts::good_rate;
use super::times::main_time;
use super::{Line, Span, Unit, figure_of, per_second, seconds, words};
use crate::build::headline::Standing;
use crate::compare::measure::Measure;
use crate::contract::interval::PercentileBounds;
use crate::contract::result::{Generator, OutcomeResult, Run, RunResult, ThresholdOutcome, VerdictResult};

/// Share of the time in shared wake-ups from which on they are reported first: below it the median and all
/// percentiles up to the p90 are on time.
const SHARED_WAKEUPS: f64 = 0.10;

/// The first lines of every report: the outcome, then the validity of the measurement and the factor that
/// limited it.
pub(crate) struct Opening {
    pub(crate) outcome: OutcomeResult,
    pub(crate) word: Span,
    pub(crate) summary: Span,
    /// Reason why the run came to its end before its time; empty if it did not.
    pub(crate) ended: String,
    /// Share of the time in shared wake-ups, and why; empty if it was small.
    pub(crate) shared: String,
    pub(crate) is_valid: bool,
    pub(crate) validity: String,
    /// The factor that limited the run, in the words of its validity.
    pub(crate) limited_by: &'static str,
    /// Evidence for that, as far as neither the summary nor a finding says it.
    pub(crate) evidence: String,
}

impl Opening {
    pub(super) fn new(result: &RunResult) -> Self {
        let verdict = &result.verdict;
        let limited = &verdict.limited_by;
        // Evidence that a finding or the first line gives in full is not repeated.
        let mut findings = verdict.evidence.iter().chain(&verdict.warnings);
        let is_said = findings.any(|finding| finding.evidence == limited.evidence)
            || verdict.summary == limited.evidence;
        let more = limited.evidence.strip_prefix(&*verdict.summary).filter(|_| !verdict.summary.is_empty());
        let more = more.and_then(|more| more.strip_prefix("; ").or_else(|| more.strip_prefix(", ")));
        Self {
            outcome: verdict.outcome,
            word: Span::figure(verdict.outcome.word(), "/verdict/outcome", Unit::Outcome),
            summary: words(&verdict.summary, "/verdict/summary"),
            ended: ended_early(result).unwrap_or_default(),
            shared: shared_wakeups(&result.generator).unwrap_or_default(),
            is_valid: verdict.valid,
            validity: verdict.validity(),
            limited_by: LimitedBy::from_name(&limited.what).unwrap_or_default().words(),
            evidence: if is_said { "" } else { more.unwrap_or(&limited.evidence) }.to_owned(),
        }
    }

    /// `measurement valid · limited by …: evidence`
    pub(crate) fn validity_with_evidence(&self) -> String {
        let evidence = if self.evidence.is_empty() { "" } else { ": " };
        format!("{}{evidence}{}", self.validity, self.evidence)
    }
}

fn shared_wakeups(generator: &Generator) -> Option<String> {
    if generator.shared_wakeups_share <= SHARED_WAKEUPS {
        return None;
    }
    let share = figure::share(generator.shared_wakeups_share);
    let busiest = generator.workers.iter().filter_map(|worker| worker.cpu_share).reduce(f64::max);
    let busy = busiest.map_or_else(String::new, |busy| {
        format!(": the core was {} busy, which is part of the start lag", figure::share(busy))
    });
    Some(format!("wake-ups were shared for {share} of the time{busy}"))
}

fn ended_early(result: &RunResult) -> Option<String> {
    let run = &result.run;
    let by = if let Some(threshold) = &run.ended_by_threshold {
        format!("ended early by the threshold {threshold}")
    } else if let Some(signal) = run.interrupted_by_signal {
        format!("interrupted by signal {signal}")
    } else if run.stopped_by.as_deref() == Some(SteeredBy::Orphaned.name()) {
        "ended early, since the coordinator of the fleet was silent".to_owned()
    } else if run.stopped_by.as_deref() == Some(SteeredBy::AgentLeft.name()) {
        "ended early, since the agent of the fleet was told to end".to_owned()
    } else if let Some(by) = &run.stopped_by {
        format!("stopped by {}", steered_by(by))
    } else {
        return ended_by_itself(run);
    };
    let cut = run.planned_s.filter(|planned| result.duration_s > 0.0 && result.duration_s < *planned);
    let when = cut.map_or_else(String::new, |planned| {
        format!(" after {} of {}", seconds(result.duration_s), seconds(planned))
    });
    Some(format!("{by}{when}: the figures are of the part before it"))
}

/// The end of a load by its data or its script.
fn ended_by_itself(run: &Run) -> Option<String> {
    let end = run.early_end.as_ref()?;
    let when = match run.planned_s {
        _ if end.after_s <= 0.0 => "in the warm-up".to_owned(),
        Some(planned) => format!("after {} of {}", seconds(end.after_s), seconds(planned)),
        None => format!("after {}", seconds(end.after_s)),
    };
    Some(match &end.data {
        Some(name) => format!("data `{name}` ended {when}: the figures are of the part before it"),
        None => format!("the script ended the load {when}: rates are over the whole length"),
    })
}

/// Who steered a run, in words.
pub(super) fn steered_by(name: &str) -> &str {
    let words = [
        (SteeredBy::File, "the watched file"),
        (SteeredBy::Http, "the control port"),
        (SteeredBy::Key, "a key"),
    ];
    words.into_iter().find(|(by, _)| by.name() == name).map_or(name, |(_, words)| words)
}

/// The hint about the limit of the run, unless a finding has the same.
pub(super) fn hint(verdict: &VerdictResult) -> String {
    let hint = &verdict.limited_by.hint;
    let mut findings = verdict.evidence.iter().chain(&verdict.warnings);
    if findings.any(|finding| finding.hint == *hint) { String::new() } else { hint.clone() }
}

/// One threshold.
pub(crate) struct ThresholdLine {
    pub(crate) passed: bool,
    /// Whether it holds, and whether that is known.
    pub(crate) standing: Standing,
    /// The condition with its scope.
    pub(crate) condition: String,
    /// The figure that was seen, and the reason why it is not enough.
    pub(crate) seen: Line,
}

pub(super) fn thresholds(result: &RunResult) -> Vec<ThresholdLine> {
    let line = |(index, threshold): (usize, &ThresholdOutcome)| ThresholdLine {
        passed: threshold.passed,
        standing: threshold.standing(),
        condition: threshold.heading(),
        seen: seen(threshold, &format!("/thresholds/{index}/observed/text")),
    };
    result.thresholds.iter().enumerate().map(line).collect()
}

fn seen(threshold: &ThresholdOutcome, at: &str) -> Line {
    let mut line = Line::default();
    if let Some(observed) = &threshold.observed {
        line.push(words(&observed.text, at));
    }
    if let Some(series) = &threshold.series {
        let value = if threshold.observed.is_none() { &*series.value } else { "" };
        line.push(format!("{value}{}", series.behind()));
    }
    for reason in [&threshold.unreached, &threshold.reason].into_iter().flatten() {
        line.push(format!("{}{reason}", if line.spans.is_empty() { "" } else { ", " }));
    }
    if let Some(windows) = threshold.windows.filter(|windows| windows.judged > 0) {
        let of = figure::count(windows.judged);
        line.push(match windows.first_failed_at_s {
            Some(at) => format!(
                "; in {} of {of} windows, first in the one that ended at {}",
                figure::count(windows.failed),
                seconds(at),
            ),
            None if windows.open > 0 => format!("; open in {} of {of} windows", figure::count(windows.open)),
            None => format!(" at worst in {of} windows"),
        });
    }
    line
}

/// A figure that everyone asks for.
pub(crate) struct Tile {
    pub(crate) label: String,
    pub(crate) value: Span,
    /// Smaller, below it.
    pub(crate) below: String,
}

pub(super) fn tiles(result: &RunResult) -> Vec<Tile> {
    let (name, at, summary) = main_time(result);
    let pace = result.pace();
    let (label, rate) = match pace.unit {
        RateUnit::Requests => ("achieved rate", "/rate/achieved_per_s"),
        RateUnit::Iterations => ("iterations started", "/rate/iterations_started_per_s"),
    };
    let asked = pace.asked.map(|asked| format!("of {} asked for", figure::per_second(asked)));
    let requests = result.rate.achieved_per_s.filter(|_| pace.unit == RateUnit::Iterations);
    let requests = requests.map(|requests| figure::per_second_of("requests", requests));
    let below: Vec<String> = asked.into_iter().chain(requests).chain(good_rate(result)).collect();
    let mut tiles = vec![Tile {
        label: label.to_owned(),
        value: per_second(pace.achieved, rate),
        below: below.join(" · "),
    }];
    for p in ["50", "99"] {
        let unknown = summary.p_missing.get(p).cloned().unwrap_or_default();
        tiles.push(Tile {
            label: format!("{name} p{p}"),
            value: figure_of(summary, at, p),
            below: summary.interval_of(p).map_or(unknown, PercentileBounds::sentence),
        });
    }
    let accounting = &result.accounting;
    let bad = accounting.failed.saturating_add(accounting.timed_out);
    tiles.push(Tile {
        label: "failed or timed out".to_owned(),
        value: Measure::Errors.of(result).map_or_else(|_| "-".to_owned(), figure::share).into(),
        below: format!("{} of {} requests", figure::count(bad), figure::count(accounting.requests())),
    });
    tiles
}
