//! Figures that a record has in more than one place.
//!
//! Counts stand in the accounts, the steps, the intervals, the phases and the slices; names in the outline
//! and in the record. A difference is named with both places and both values.

use std::fmt::Debug;

use plimsoll_core::{ErrorClass, Nanos};
use plimsoll_histogram::Delta;
use plimsoll_metrics::interval::PERCENTILES;
use plimsoll_metrics::{Interval, RunRecord, Slice, StepRecord, Tally};

use super::{Contradiction, Evidence};

/// Differences between the places of a record that have the same figure.
pub(super) fn broken(evidence: &Evidence) -> Vec<Contradiction> {
    let Evidence { record, .. } = evidence;
    let mut sums = Sums { broken: Vec::new() };
    sums.rule("accounting", record.accounting.check());
    sums.rule("iterations", record.iterations.check());
    sums.steps(record);
    sums.accounts(record);
    sums.names(evidence);
    // Of a worker that did not come back there is nothing but the intervals that it had reported.
    if !record.workers.iter().any(|worker| worker.absent) {
        sums.slices(record);
        sums.intervals(record);
        sums.phases(record);
    }
    sums.broken
}

struct Sums {
    broken: Vec<Contradiction>,
}

impl Sums {
    fn rule(&mut self, place: &str, holds: Result<(), String>) {
        if let Err(reason) = holds {
            self.broken.push(Contradiction { place: place.to_owned(), reason });
        }
    }

    /// Compares a figure with the one that it has in another place. `rule` is the name of the rule.
    fn same<T: PartialEq + Debug>(
        &mut self,
        rule: &str,
        (one, value): (&str, T),
        (other, second): (&str, T),
    ) {
        if value != second {
            let (value, second) = (short(&value), short(&second));
            let reason = format!("{one} is {value}, and {other} is {second}");
            self.rule(rule, Err(reason));
        }
    }

    /// The total is the sum of all steps.
    fn steps(&mut self, record: &RunRecord) {
        let total = &record.total;
        let mut sum = StepRecord { name: total.name.clone(), ..StepRecord::default() };
        sum.scenario.clone_from(&total.scenario);
        record.steps.iter().for_each(|step| sum.merge(step));
        let counts = |step: &StepRecord| [step.ok, step.failed, step.timed_out];
        let bytes = |step: &StepRecord| [step.bytes_sent, step.bytes_received];
        let (of_total, of_steps) = ("record/total", "the sum of record/steps");
        let before = self.broken.len();
        self.same(
            "steps",
            (&format!("{of_total}: ok, failed, timed_out"), counts(total)),
            (of_steps, counts(&sum)),
        );
        self.same("steps", (&format!("{of_total}: bytes"), bytes(total)), (of_steps, bytes(&sum)));
        if self.broken.len() == before && *total != sum {
            self.rule("steps", Err(format!("{of_total} and {of_steps} differ")));
        }
    }

    /// Requests by their outcome, in the accounts and in the histograms.
    fn accounts(&mut self, record: &RunRecord) {
        let (account, total) = (&record.accounting, &record.total);
        for (name, of_account, of_total) in [
            ("ok", account.ok, total.ok),
            ("failed", account.failed, total.failed),
            ("timed_out", account.timed_out, total.timed_out),
            ("aborted", account.aborted, total.aborted()),
        ] {
            let place = format!("record/accounting/{name}");
            self.same("accounting", (&place, of_account), (&format!("record/total/{name}"), of_total));
        }
        for step in record.steps.iter().chain([total]) {
            let name = format!("`{}`", step.name);
            let by_class: u64 = step.errors.total() - step.errors[ErrorClass::AbortedByUs];
            self.same(
                "errors",
                (&format!("failed of {name}"), step.failed),
                (&format!("the sum of errors of {name}"), by_class),
            );
        }
    }

    /// Names in the outline and in the record.
    fn names(&mut self, Evidence { record, outline, .. }: &Evidence) {
        let of_record = record.steps.iter().map(|step| step.name.as_str());
        let of_outline = outline.steps.iter().map(String::as_str);
        // A run that ended before its first request has no steps.
        if !record.steps.is_empty() {
            let (of_record, of_outline) = (of_record.collect::<Vec<_>>(), of_outline.collect());
            self.same("names", ("the names of record/steps", of_record), ("outline/steps", of_outline));
            let total = (record.total.name.as_str(), record.total.scenario.as_str());
            self.same("names", ("the name of record/total", total), ("that of all steps", ("all", "")));
        }
    }

    /// The slices of the measured part, and those of the timeline, have what the total has.
    fn slices(&mut self, record: &RunRecord) {
        let timeline = &record.timeline;
        self.parts("slices", record, &record.slices.iter().collect::<Vec<_>>());
        self.parts("timeline", record, &timeline.measured.iter().chain(&timeline.drain).collect::<Vec<_>>());
        let sum = |slices: Vec<&Slice>| {
            let mut sum = Tally::default();
            slices.iter().for_each(|slice| sum.merge(&slice.total));
            sum
        };
        let of_timeline = sum(timeline.measured.iter().chain(&timeline.drain).collect());
        let is_whole = !record.slices.is_empty() && !timeline.measured.is_empty();
        if is_whole && sum(record.slices.iter().collect()) != of_timeline {
            self.rule("slices", Err("the sums of record/slices and of record/timeline differ".to_owned()));
        }
        for (number, slice) in record.slices.iter().enumerate().filter(|(_, slice)| !slice.steps.is_empty()) {
            let mut sum = Tally::default();
            slice.steps.iter().for_each(|step| sum.merge(step));
            if sum != slice.total {
                let reason = format!("record/slices/{number}/total and the sum of its steps differ");
                self.rule("slices", Err(reason));
            }
        }
        let length = |slices: &[Slice]| slices.iter().fold(Nanos::ZERO, |sum, slice| sum + slice.length);
        let load = record.intervals.iter().filter(|interval| !interval.warmup && !interval.drain);
        let of_intervals = load.fold(Nanos::ZERO, |sum, interval| sum + interval.length);
        for (name, slices) in [("slices", &record.slices), ("timeline/measured", &timeline.measured)] {
            if !slices.is_empty() && !record.intervals.is_empty() {
                let place = format!("the length of all record/{name}");
                let intervals = "that of record/intervals of the load";
                self.same("slices", (&place, length(slices)), (intervals, of_intervals));
            }
        }
        for (number, step) in record.steps.iter().enumerate() {
            let tallies: Option<Vec<&Tally>> =
                record.slices.iter().map(|slice| slice.steps.get(number)).collect();
            if let Some(tallies) = tallies.filter(|tallies| !tallies.is_empty()) {
                self.tally("slices", &format!("record/steps/{number}"), step, &tallies);
            }
        }
    }

    fn parts(&mut self, rule: &str, record: &RunRecord, slices: &[&Slice]) {
        if slices.is_empty() {
            return;
        }
        let tallies: Vec<&Tally> = slices.iter().map(|slice| &slice.total).collect();
        self.tally(rule, "record/total", &record.total, &tallies);
    }

    /// A step, and the outcomes of its requests in parts of the run.
    fn tally(&mut self, rule: &str, place: &str, step: &StepRecord, tallies: &[&Tally]) {
        let mut sum = Tally::default();
        tallies.iter().for_each(|tally| sum.merge(tally));
        let parts = format!("the sum of record/{rule}");
        let counts = [step.ok, step.failed, step.timed_out];
        let of = |name: &str| format!("{place}: {name}");
        self.same(
            rule,
            (&of("ok, failed, timed_out"), counts),
            (&parts, [sum.ok, sum.failed, sum.timed_out]),
        );
        let bytes = [step.bytes_sent, step.bytes_received];
        self.same(rule, (&of("bytes"), bytes), (&parts, [sum.bytes_sent, sum.bytes_received]));
        self.same(rule, (&of("errors"), &step.errors), (&parts, &sum.errors));
        self.same(rule, (&of("whole responses"), step.completed()), (&parts, sum.completed));
        let times = step.response_time.exact().sum;
        self.same(rule, (&of("the sum of response times"), times), (&parts, sum.response_time_sum));
        let differ = |name: &str| Err(format!("{} and those of {parts} differ", of(name)));
        let class = |from: u16| step.statuses.range(from..from + 100).map(|(_, count)| count).sum::<u64>();
        let classes = [class(300), class(400), class(500)];
        self.same(rule, (&of("statuses from 300, 400 and 500 on"), classes), (&parts, sum.statuses));
        self.same(rule, (&of("censored_response"), step.censored_response), (&parts, sum.censored));
        let failed = step.failed_response_time.exact().sum;
        // Evidence of the first versions does not have them.
        if sum.failed_time_sum > 0 {
            self.same(rule, (&of("the sum of failed times"), failed), (&parts, sum.failed_time_sum));
        }
        if sum.service_time_sum > 0 {
            let service = step.service_time.exact().sum;
            self.same(rule, (&of("the sum of service times"), service), (&parts, sum.service_time_sum));
        }
        if Delta::of_all(&step.response_time) != sum.response_time {
            self.rule(rule, differ("response times"));
        }
        if Delta::of_all(&step.service_time) != sum.service_time {
            self.rule(rule, differ("service times"));
        }
    }

    /// The intervals have what the accounts have, and what the timeline has of the same time.
    fn intervals(&mut self, record: &RunRecord) {
        if record.intervals.is_empty() {
            return;
        }
        let measured = || record.intervals.iter().filter(|interval| !interval.warmup);
        let sum = |part: fn(&Interval) -> u64| measured().map(part).fold(0, u64::saturating_add);
        for (place, figure, name, of_intervals) in [
            ("record/accounting/ok", record.accounting.ok, "ok", sum(|interval| interval.ok)),
            ("record/accounting/failed", record.accounting.failed, "failed", sum(|interval| interval.failed)),
            (
                "record/accounting/timed_out",
                record.accounting.timed_out,
                "timed_out",
                sum(|interval| interval.timed_out),
            ),
        ] {
            let parts = format!("the sum of record/intervals/*/{name}");
            self.same("intervals", (place, figure), (&parts, of_intervals));
        }
        for slice in record.timeline.measured.iter().chain(&record.timeline.warmup) {
            self.time(slice, false, &record.intervals);
        }
        if let Some(slice) = &record.timeline.drain {
            self.time(slice, true, &record.intervals);
        }
    }

    /// A slice of the timeline, and the intervals that it was made of, if they begin and end with it.
    fn time(&mut self, slice: &Slice, drain: bool, intervals: &[Interval]) {
        let begin = slice.at.since(slice.length);
        let within =
            |interval: &&Interval| interval.drain == drain && begin < interval.at && interval.at <= slice.at;
        let parts: Vec<&Interval> = intervals.iter().filter(within).collect();
        let length = parts.iter().fold(Nanos::ZERO, |sum, part| sum + part.length);
        if length != slice.length {
            return;
        }
        let sum = |part: fn(&Interval) -> u64| parts.iter().map(|one| part(one)).fold(0, u64::saturating_add);
        let counts = [
            sum(|part| part.started),
            sum(|part| part.ok),
            sum(|part| part.failed),
            sum(|part| part.timed_out),
            sum(|part| part.completed),
        ];
        let tally = &slice.total;
        let of_slice = [tally.started, tally.ok, tally.failed, tally.timed_out, tally.answers()];
        let part = if drain { "of the drain" } else { "of the load" };
        let until = format!("{part} until {} s", slice.at.as_secs_f64());
        let names = format!("started, ok, failed, timed_out, completed of record/intervals {until}");
        self.same("intervals", (&names, counts), (&format!("record/timeline {until}"), of_slice));
        if let [interval] = parts[..] {
            let times = (!tally.response_time.is_empty())
                .then(|| PERCENTILES.map(|p| tally.percentile(p).unwrap_or_default()));
            let names = format!("response_time of record/intervals {until}");
            self.same(
                "intervals",
                (&names, interval.response_time),
                (&format!("record/timeline {until}"), times),
            );
        }
    }

    /// All measured phases together have what the total has.
    fn phases(&mut self, record: &RunRecord) {
        let tallies: Vec<&Tally> =
            record.phases.iter().filter(|phase| phase.measured).map(|phase| &phase.tally).collect();
        if !tallies.is_empty() {
            self.tally("phases", "record/total", &record.total, &tallies);
        }
    }
}

/// A value, cut short.
fn short(value: &impl Debug) -> String {
    super::comparing::cut(&format!("{value:?}"))
}
