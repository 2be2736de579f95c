//! Thresholds of a run, and the intervals of its figures.

use plimsoll_core::Nanos;
use plimsoll_document::{Field, Place, Problem, Text, unescaped};
use plimsoll_metrics::threshold::{Counted, Limit, Metric, Total};
use plimsoll_metrics::{Threshold, ThresholdError, ThresholdSpec};
use plimsoll_schedule::parse_duration;

use crate::resolve::Resolver;
use crate::{Load, Plan, PlanParts, PlanPatch};

/// Length of an interval, unless a flag asks for a shorter one: longer ones are put together from these.
pub(crate) const DEFAULT_INTERVAL: Nanos = Nanos::from_secs(1);
/// Shortest interval: the cost of a snapshot is small beside it, about 0.1 ms per step.
const SHORTEST_INTERVAL: Nanos = Nanos::from_millis(100);

impl Resolver<'_> {
    /// The thresholds of flags and of the plan file, and the interval of statistics.
    pub(crate) fn judging(&mut self, patch: &PlanPatch) -> Option<(Vec<Judged>, Nanos)> {
        let interval = self.read_duration(patch.interval.as_ref());
        let interval = self.check(patch.interval.as_ref(), interval, |&interval| {
            let broken = interval > DEFAULT_INTERVAL && !interval.0.is_multiple_of(DEFAULT_INTERVAL.0);
            match interval {
                short if short < SHORTEST_INTERVAL => Some("must be at least 100ms".to_owned()),
                _ if broken => Some("must be whole seconds, or less than one".to_owned()),
                _ => None,
            }
        });
        let document = self.document.clone();
        let in_document = || document.iter().flat_map(|loaded| &loaded.document.thresholds);
        if patch.abort_on_fail.is_on() && patch.thresholds.is_empty() && in_document().next().is_none() {
            let problem = Problem::new("--abort-on-fail has no effect without --threshold");
            self.problems.push(problem.with_hint("give one, as in --threshold 'p99<10ms'"));
        }
        let mut all = Vec::new();
        for given in &patch.thresholds {
            let threshold = self.threshold(&given.text, &given.by, given.place, patch.parts);
            let abort_on_fail = patch.abort_on_fail.is_on();
            all.push(threshold.map(|threshold| Judged {
                spec: ThresholdSpec { abort_on_fail, ..ThresholdSpec::new(threshold) },
                by: given.by.to_string(),
                place: given.place,
            }));
        }
        for field in in_document() {
            let judged =
                field.get().and_then(|spec| self.document_threshold(spec, field.place(), patch.parts));
            all.push(judged.map(|mut judged| {
                judged.spec.abort_on_fail |= patch.abort_on_fail.is_on();
                judged
            }));
        }
        let all: Option<Vec<Judged>> = all.into_iter().collect();
        Some((distinct(all?), interval?.unwrap_or(DEFAULT_INTERVAL)))
    }

    /// A threshold of the plan file.
    fn document_threshold(
        &mut self,
        spec: &plimsoll_document::ThresholdSpec,
        place: Option<Place>,
        parts: PlanParts,
    ) -> Option<Judged> {
        let by = "thresholds";
        // Without one, the form of the plan is wrong, which was reported.
        let text = spec.that.get();
        let threshold = text.and_then(|text| self.threshold(text.as_str(), by, spec.that.place(), parts));
        let window = self.document_duration(&spec.window);
        let delay = self.document_duration(&spec.delay);
        // The names are shown as those of the plan are.
        let name = |field: &Field<Text>| {
            field.get().map(|text| self.redaction.in_text(&unescaped(text.as_str())).into_owned())
        };
        let (scenario, step, phase) = (name(&spec.scenario), name(&spec.step), name(&spec.phase));
        let spec = ThresholdSpec {
            threshold: threshold?,
            scenario,
            step,
            phase,
            window: window?,
            delay: delay?.unwrap_or(Nanos::ZERO),
            abort_on_fail: spec.abort_on_fail.get().copied().unwrap_or(false),
        };
        Some(Judged { spec, by: by.to_owned(), place })
    }

    fn document_duration(&mut self, field: &Field<Text>) -> Option<Option<Nanos>> {
        match field {
            Field::Absent => Some(None),
            field => match parse_duration(field.get()?.as_str().trim()) {
                Ok(duration) => Some(Some(duration)),
                Err(error) => self.fail(Problem::from_line(&error.to_string()).at(field.place())),
            },
        }
    }

    fn threshold(
        &mut self,
        text: &str,
        by: &str,
        place: Option<Place>,
        parts: PlanParts,
    ) -> Option<Threshold> {
        match Threshold::parse_with(text.trim(), parts.errors) {
            Ok(threshold) => Some(threshold),
            Err(error) => {
                let problem = threshold_problem(by, &error).at(place);
                self.fail(match of_k6(text) {
                    Some(meant) => problem.with_hint(format!("did you mean `{meant}`?")),
                    None => problem,
                })
            }
        }
    }

    /// Reports goodput where nothing is streamed, and thresholds on streams without what they are about.
    pub(crate) fn check_goodput(&mut self, patch: &PlanPatch, plan: &Plan) {
        let has_streams = plan.steps.iter().any(|step| step.needs.events);
        if let Some(given) = &patch.goodput
            && plan.goodput.is_some()
            && !has_streams
        {
            let problem =
                given.problem(format!("{} has no effect: no step has a stream of events", given.by));
            self.problems.push(problem.with_hint("write `stream: sse` or `stream: llm` in the step"));
        }
        for spec in &plan.thresholds {
            let is_goodput = spec.threshold.metric == Metric::Count(Counted::Total(Total::Goodput));
            if is_goodput && plan.goodput.is_none() {
                let problem = Problem::new(format!("`{}` needs the bounds of the goodput", spec.threshold));
                let hint = "write them with --goodput (`goodput` in a plan), as in 'ttft<500ms & tpot<50ms'";
                self.problems.push(problem.with_hint(hint));
            }
            let of_streams = match spec.threshold.metric {
                Metric::Time(kind, ..) => kind.is_of_streams(),
                _ => is_goodput,
            };
            if of_streams && !has_streams {
                let message = format!("`{}` is about streams of events, and no step has any", spec.threshold);
                let hint = "write `stream: sse` or `stream: llm` in the step";
                self.problems.push(Problem::new(message).with_hint(hint));
            }
        }
    }

    /// Reports thresholds that make no sense in this plan.
    pub(crate) fn check_thresholds(&mut self, thresholds: &[Judged], plan: &Plan) {
        let outline = plan.outline();
        for Judged { spec, by, place } in thresholds {
            if let Err(error) = spec.check(&outline, plan.interval) {
                self.problems.push(threshold_problem(by, &error).at(*place));
            }
            let of_target =
                matches!((&spec.threshold.metric, spec.threshold.limit), (Metric::Rate, Limit::OfTarget(_)));
            if of_target && matches!(plan.load, Load::Closed) {
                let message =
                    format!("{by}: `{}` needs a target, and the closed model has none", spec.threshold);
                let problem = Problem::new(message).at(*place);
                self.problems.push(problem.with_hint("name a rate, as in rate>=5000/s, or use --rate"));
            }
        }
    }
}

/// A threshold, and its origin.
pub(crate) struct Judged {
    pub(crate) spec: ThresholdSpec,
    by: String,
    /// Place of the threshold, if the plan file has it.
    place: Option<Place>,
}

/// The problem that an error of a threshold describes.
/// A condition that is written as k6 has it, `p(95)<200`, as it is here; `None` if it is none.
fn of_k6(text: &str) -> Option<String> {
    let text: String = text.split_whitespace().collect();
    let (name, limit) = text.split_at(text.find(['<', '>', '='])?);
    let name = match name {
        "avg" => "mean".to_owned(),
        "med" => "p50".to_owned(),
        name => format!("p{}", name.strip_prefix("p(")?.strip_suffix(')')?),
    };
    // k6 counts in milliseconds.
    let is_bare = limit.ends_with(|c: char| c.is_ascii_digit());
    let guess = format!("{name}{limit}{}", if is_bare { "ms" } else { "" });
    Threshold::parse(&guess).is_ok().then_some(guess)
}

/// Returns one of those that ask the same, such as a flag that repeats a threshold of the plan; the run ends
/// by it if it would by any of them.
fn distinct(all: Vec<Judged>) -> Vec<Judged> {
    let mut distinct: Vec<Judged> = Vec::new();
    for judged in all {
        let asked = ThresholdSpec { abort_on_fail: false, ..judged.spec.clone() };
        let is_asked =
            |known: &&mut Judged| ThresholdSpec { abort_on_fail: false, ..known.spec.clone() } == asked;
        match distinct.iter_mut().find(is_asked) {
            Some(known) => known.spec.abort_on_fail |= judged.spec.abort_on_fail,
            None => distinct.push(judged),
        }
    }
    distinct
}

pub(crate) fn threshold_problem(by: &str, error: &ThresholdError) -> Problem {
    Problem::new(format!("{by}: {}", error.message)).with_hint(error.hint.clone())
}
