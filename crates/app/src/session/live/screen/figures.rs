//! Figures of a run that the screen shows.

use std::collections::VecDeque;

use plimsoll_core::Nanos;
use plimsoll_engine::{Control, Stop};
use plimsoll_histogram::{Histogram, samples_needed};
use plimsoll_metrics::{
    Basis, Headline, IntervalDownsampler, MachineFacts, MachineInterval, Outline, Pace, RunFacts, StepRecord,
    Tally, ThresholdFacts, ThresholdSpec, Verdict,
};
use plimsoll_plan::Plan;

use super::handle::IntervalUpdate;
use super::time_classes::TimeClasses;
use crate::session::live::standing::Standing;

/// Intervals that charts can show: as many as the widest terminal has columns.
const POINTS: usize = 1024;
/// Intervals of each step that charts can show.
const STEP_POINTS: usize = 64;
/// Columns of an interval in a chart, at most.
const WIDEST_BAR: usize = 6;
/// Percentiles of times that are shown.
pub(super) const PERCENTILES: [&str; 4] = ["p50", "p90", "p99", "max"];
/// The last messages that are kept to be shown.
const MESSAGES: usize = 50;
/// Time for which the latest message is shown in the line of messages; then the verdict is shown.
const NEWS: Nanos = Nanos::from_secs(8);

/// Run that the screen shows.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The target of the load.
    pub(super) target: String,
    pub(super) outline: Outline,
    pub(super) basis: Basis,
    /// Downsampler for the intervals of the run.
    pub(super) downsampler: IntervalDownsampler,
    /// When the load ends, since the start, and the iterations that it ends with.
    pub(super) end: Option<Nanos>,
    pub(super) iterations: Option<u64>,
    /// Length of an interval.
    pub(super) interval: Nanos,
    pub(super) thresholds: Vec<ThresholdSpec>,
}

impl Subject {
    pub(super) fn new(plan: &Plan) -> Self {
        let first = plan.targets.first().map_or("", |target| &target.authority);
        let target = match plan.targets.len() {
            0 | 1 => first.to_owned(),
            count => format!("{first} and {} more", count - 1),
        };
        Self {
            target,
            outline: plan.outline(),
            basis: plan.basis(),
            downsampler: plan.downsampler(),
            end: plan.end.duration.map(|duration| plan.warmup + duration),
            iterations: plan.end.iterations,
            interval: plan.interval,
            thresholds: plan.thresholds.clone(),
        }
    }
}

/// One interval in a chart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    /// Whole responses per second.
    pub(super) rate: f64,
    /// Nanoseconds; `None` without responses.
    pub(super) p99: Option<u64>,
    pub(super) warmup: bool,
    /// `true` if anything failed or timed out.
    pub(super) failed: bool,
    /// The rate beside the one that was asked for.
    pub(super) pace: Pace,
    pub(super) spread: TimeClasses,
}

/// Times of requests: percentiles in the order of [`PERCENTILES`]; those without enough samples are missing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) values: [Option<u64>; 4],
    /// Which of them are lower bounds.
    pub(super) at_least: [bool; 4],
}

impl Times {
    fn of_tally(tally: &Tally) -> Self {
        let count = tally.response_time.count();
        let value = |p| (count >= samples_needed(p)).then(|| tally.percentile(p)).flatten();
        Self::from(value, tally.max(), |value| tally.is_at_least(value))
    }

    fn of_record(record: &StepRecord) -> Self {
        let histogram: &Histogram = &record.response_time;
        let value = |p| histogram.enough_for(p).then(|| histogram.percentile(p)).flatten();
        let censored = record.censored_response;
        Self::from(value, histogram.max(), |value| histogram.is_at_least(value, censored))
    }

    fn from(value: impl Fn(f64) -> Option<u64>, max: Option<u64>, at_least: impl Fn(u64) -> bool) -> Self {
        let values = [value(50.0), value(90.0), value(99.0), max];
        Self { values, at_least: values.map(|value| value.is_some_and(&at_least)) }
    }
}

/// One step of the plan.
#[derive(Clone, Debug, Default)]
pub(super) struct StepFigures {
    /// Scenario of the step, if that has more than one step or there are several scenarios.
    pub(super) scenario: String,
    pub(super) name: String,
    pub(super) rate: f64,
    pub(super) ok: u64,
    /// Failed and timed out.
    pub(super) bad: u64,
    pub(super) now: Times,
    pub(super) run: Times,
    pub(super) rates: VecDeque<f64>,
}

/// Everything that is drawn.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) subject: Subject,
    pub(super) standing: Standing,
    pub(super) points: VecDeque<Point>,
    /// The last interval: its length, the outcomes of its requests, and its end.
    pub(super) length: Nanos,
    pub(super) tally: Tally,
    /// Set once an event of a stream has come.
    pub(super) has_streams: bool,
    pub(super) in_flight: u64,
    pub(super) connections: u64,
    pub(super) now: Times,
    pub(super) run: Times,
    /// Start lags of the last interval.
    pub(super) lag: Histogram,
    pub(super) warmup: bool,
    pub(super) drain: bool,
    pub(super) steps: Vec<StepFigures>,
    /// Responses with a status of 3xx, 4xx and 5xx since the start of the measured part.
    pub(super) statuses: [u64; 3],
    pub(super) machine: Option<MachineInterval>,
    pub(super) facts: MachineFacts,
    pub(super) verdict: Option<Verdict>,
    /// The headline so far; `None` before anything is judged.
    pub(super) headline: Option<Headline>,
    /// Response times of the measured part.
    pub(super) spread: TimeClasses,
    /// The rate of the last interval beside the one that was asked for in it.
    pub(super) pace: Pace,
    pub(super) target: Option<f64>,
    /// As the control has them.
    pub(super) paused: bool,
    pub(super) wished: Option<f64>,
    pub(super) stopping: Stop,
    pub(super) messages: VecDeque<String>,
    /// Time of the run at the last message.
    heard: Nanos,
    /// Intervals that are missing in all figures.
    pub(super) lost: u64,
    /// Time of the run now, since its start.
    pub(super) elapsed: Nanos,
    /// Time of the run at the last interval, and when that came.
    last: (Nanos, Nanos),
}

impl Figures {
    pub(super) fn new(subject: Subject, now: Nanos) -> Self {
        let several = subject.outline.scenarios.len() > 1;
        let names = subject.outline.steps.iter().zip(0_u32..).map(|(name, index)| {
            let scenario = subject.outline.scenario_of(index).map(|index| &subject.outline.scenarios[index]);
            let named = scenario.filter(|scenario| several || scenario.steps.len() > 1);
            let scenario = named.map_or(String::new(), |scenario| scenario.name.clone());
            // The first line names the server already.
            let here = [format!("http://{}", subject.target), format!("https://{}", subject.target)];
            let name = here.iter().fold(name.clone(), |name, url| name.replacen(url.as_str(), "", 1));
            StepFigures { scenario, name, ..StepFigures::default() }
        });
        Self {
            steps: names.collect(),
            spread: TimeClasses::default(),
            pace: Pace::default(),
            standing: Standing::new(
                &subject.outline,
                subject.basis,
                subject.downsampler.clone(),
                &subject.thresholds,
                subject.interval,
            ),
            warmup: subject.basis.warmup > Nanos::ZERO,
            subject,
            points: VecDeque::new(),
            length: Nanos::ZERO,
            tally: Tally::default(),
            has_streams: false,
            in_flight: 0,
            connections: 0,
            now: Times::default(),
            run: Times::default(),
            lag: Histogram::new(),
            drain: false,
            statuses: [0; 3],
            machine: None,
            facts: MachineFacts::default(),
            verdict: None,
            headline: None,
            target: None,
            paused: false,
            wished: None,
            stopping: Stop::No,
            messages: VecDeque::new(),
            heard: Nanos::ZERO,
            lost: 0,
            elapsed: Nanos::ZERO,
            last: (Nanos::ZERO, now),
        }
    }

    /// Takes an interval that came at `now`.
    pub(super) fn add(&mut self, news: IntervalUpdate, now: Nanos) {
        let IntervalUpdate { end, target, pace, mut interval, machine } = news;
        self.standing.add(&mut interval, machine.as_ref().map(|(seen, facts)| (seen, facts)));
        self.subject.end = end.or(self.subject.end);
        (self.target, self.pace) = (target, pace);
        let total = interval.total();
        let seconds = interval.length.as_secs_f64().max(1e-9);
        for (figures, tally) in self.steps.iter_mut().zip(&interval.steps) {
            figures.rate = tally.answers() as f64 / seconds;
            figures.now = Times::of_tally(tally);
            push(&mut figures.rates, figures.rate, STEP_POINTS);
        }
        for (figures, record) in self.steps.iter_mut().zip(&self.standing.record().steps) {
            (figures.ok, figures.bad) = (record.ok, record.failed + record.timed_out);
            figures.run = Times::of_record(record);
        }
        if !interval.warmup {
            self.statuses.iter_mut().zip(total.statuses).for_each(|(mine, theirs)| *mine += theirs);
            self.lag = Histogram::new();
            let worker_statuses =
                interval.worker_statuses.iter().flat_map(|worker_status| &worker_status.start_lags);
            worker_statuses.for_each(|lags| self.lag.add(lags));
        }
        self.run = Times::of_record(&self.standing.record().total);
        self.now = Times::of_tally(&total);
        let point = Point {
            rate: total.answers() as f64 / seconds,
            p99: total.percentile(99.0),
            warmup: interval.warmup,
            failed: total.failed + total.timed_out > 0,
            pace,
            spread: TimeClasses::of(&total),
        };
        if !interval.warmup {
            self.spread.add(&point.spread);
        }
        if !interval.drain {
            push(&mut self.points, point, POINTS);
        }
        self.has_streams |= total.content_events > 0;
        (self.length, self.tally) = (interval.length, total);
        (self.in_flight, self.connections) = (interval.in_flight, interval.connections);
        (self.warmup, self.drain) = (interval.warmup, interval.drain);
        if let Some((seen, facts)) = machine {
            (self.machine, self.facts) = (Some(seen), facts);
        }
        self.verdict = self.standing.verdict();
        self.headline = self.verdict.as_ref().map(|verdict| {
            Headline::of(&RunFacts {
                thresholds: self.standing.thresholds().iter().map(ThresholdFacts::of).collect(),
                is_over: false,
                ..RunFacts::with_verdict(self.standing.record(), verdict)
            })
        });
        self.last = (interval.at, now);
    }

    /// Takes a message.
    pub(super) fn hear(&mut self, message: &str) {
        self.heard = self.elapsed;
        push(&mut self.messages, message.to_owned(), MESSAGES);
    }

    /// The last message, as long as it is news.
    pub(super) fn latest_message(&self) -> Option<&str> {
        let is_news = self.elapsed.since(self.heard) < NEWS;
        self.messages.back().filter(|_| is_news).map(String::as_str)
    }

    /// Updates the wanted rate and the time.
    pub(super) fn look_at(&mut self, control: &Control, now: Nanos) {
        let status = control.status();
        (self.paused, self.wished, self.stopping) =
            (status.paused, status.target_per_second, control.requested_stop());
        self.standing.set_changes(control.changes());
        self.set_time(now);
    }

    /// The time of the run follows from that of the last interval.
    pub(super) fn set_time(&mut self, now: Nanos) {
        let (at, came) = self.last;
        let elapsed = at + now.since(came);
        let end = self.subject.end.filter(|_| self.stopping == Stop::No && !self.drain);
        self.elapsed = end.map_or(elapsed, |end| elapsed.min(end.max(at)));
    }

    /// Columns of an interval in a chart of that width: a run whose end is known fills it.
    pub(super) fn bar_width(&self, width: usize) -> usize {
        let whole = self.subject.end.map(|end| end.0.div_ceil(self.subject.interval.0.max(1)) as usize);
        (width / whole.unwrap_or(width).max(1)).clamp(1, WIDEST_BAR)
    }

    /// Whole responses per second in the last interval.
    pub(super) fn rate(&self) -> f64 {
        self.points.back().map_or(0.0, |point| point.rate)
    }

    /// Whole responses per second over the measured part.
    pub(super) fn mean_rate(&self) -> Option<f64> {
        let record = self.standing.record();
        let seconds = record.duration.as_secs_f64();
        (seconds > 0.0).then(|| record.completed_in_window as f64 / seconds)
    }
}

fn push<T>(list: &mut VecDeque<T>, value: T, most: usize) {
    if list.len() >= most {
        list.pop_front();
    }
    list.push_back(value);
}
