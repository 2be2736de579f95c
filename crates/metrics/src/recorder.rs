//! The recorder of one worker: a few array writes per request, no lock and no allocation in steady state.

use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, Nanos, Outcome};
use plimsoll_histogram::{Censored, Cursor, Delta, Histogram};

use crate::{AnswerTimes, ConnectionRecord, EventStreamRecord, Sample, Snapshot, StepRecord, Tally};

/// Three-digit statuses have a slot of their own; anything else that calls itself a status is counted aside.
const STATUSES: usize = 1000;

/// The measurements of one worker.
///
/// Owned by its worker and never shared. Give it every ended request ([`record`](Self::record)), every
/// request that is still in flight when the run stops ([`record_unfinished`](Self::record_unfinished)) and
/// take one [`snapshot`](Self::snapshot) per second; [`finish`](Self::finish) ends it. The only allocations
/// are those of a histogram for buckets that no value had before, and the list of counts in each snapshot.
///
/// Times that are equal by nature are counted once, and added to all of their histograms by `finish`: a
/// response that came in one piece has a first-byte time equal to its service time, and a request that was
/// sent when it was intended, as those of the closed model are, has a response time equal to its service time
/// and no start lag.
#[derive(Debug)]
pub struct Recorder {
    steps: Vec<StepRecorder>,
    /// Everything about connections; the engine writes it directly.
    pub connections: ConnectionRecord,
}

#[derive(Debug)]
struct StepRecorder {
    /// Everything but the next three fields.
    record: StepRecord,
    /// Requests that were started when they were intended: start lags of zero.
    punctual: u64,
    /// Good responses in one piece: service time and first-byte time.
    piece: Histogram,
    /// Good responses in one piece to requests that were sent when they were intended: response time, too.
    prompt_piece: Histogram,
    /// Empty until the first request has ended.
    statuses: Vec<u64>,
    started: u64,
    /// Whole responses to requests of the warm-up.
    carried: u64,
    /// Censored response times since the last snapshot.
    censored: Censored,
    seen: Seen,
    /// Buckets of the last snapshot: the next one is likely to need as many.
    delta_capacity: usize,
}

/// State of a step at its last snapshot.
#[derive(Debug, Default)]
struct Seen {
    response_time: Cursor,
    service_time: Cursor,
    piece: Cursor,
    prompt_piece: Cursor,
    start_lag: Cursor,
    ttft: Cursor,
    failed_time: Cursor,
    punctual: u64,
    /// Counts and the sum of the whole run up to then; nothing else in it is used.
    totals: Tally,
}

/// Facts of a worker about the time since its last snapshot that the recorder does not count itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The nominal end of the interval, the same on all workers, since the start of the run.
    pub at: Nanos,
    /// `true` if the interval belongs to the warm-up.
    pub warmup: bool,
    /// `true` for the drain, the time after the end of the load.
    pub drain: bool,
    /// Arrivals that fell due since the last snapshot (open model).
    pub scheduled: u64,
    /// Iterations started since then.
    pub iterations: u64,
    /// Requests sent again since then, because their first attempt was lost.
    pub resent: u64,
    /// When answers came since then; `None` if none did.
    pub answers: Option<AnswerTimes>,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Connections open now.
    pub connections: u64,
}

impl Recorder {
    /// A recorder for the steps of a plan, in their order.
    pub fn new(step_names: &[String]) -> Self {
        let steps = step_names
            .iter()
            .map(|name| StepRecorder {
                record: StepRecord { name: name.clone(), ..StepRecord::default() },
                punctual: 0,
                piece: Histogram::new(),
                prompt_piece: Histogram::new(),
                statuses: Vec::new(),
                started: 0,
                carried: 0,
                censored: Censored::default(),
                seen: Seen::default(),
                delta_capacity: 256,
            })
            .collect();
        Self { steps, connections: ConnectionRecord::default() }
    }

    /// Counts a request that was started, for the snapshots.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    #[inline]
    pub fn note_started(&mut self, step: u32) {
        self.steps[step as usize].started += 1;
    }

    /// Records one ended request.
    ///
    /// Good responses and timeouts enter response and service time, a timeout as a censored value: at least
    /// this long. So do requests without an answer at the end
    /// ([`record_unfinished`](Self::record_unfinished)). Failed requests have a histogram of their own. Start
    /// lag is recorded for every request.
    ///
    /// # Panics
    /// If the sample's step is not one of the names given to [`Recorder::new`].
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        let step = &mut self.steps[sample.step as usize];
        let record = &mut step.record;
        if sample.started > sample.intended {
            record.start_lag.record(sample.start_lag().0);
        } else {
            step.punctual += 1;
        }
        record.bytes_sent += sample.bytes_sent;
        record.bytes_received += sample.bytes_received;
        match step.statuses.get_mut(usize::from(sample.status)) {
            Some(count) => *count += 1,
            None => step.count_other_status(sample.status),
        }
        // Good requests first: they are the majority, and a match of three outcomes costs more than one
        // comparison.
        if sample.is_ok() {
            step.record_ok(sample);
        } else {
            step.record_bad(sample);
        }
    }

    /// Records once more, apart, a request that met a stall of its worker, as far as it has a response time:
    /// its times may be due to the generator.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    #[cold]
    #[inline(never)]
    pub fn record_in_stall(&mut self, sample: &Sample) {
        let record = &mut self.steps[sample.step as usize].record;
        if !matches!(sample.outcome, Outcome::Ok | Outcome::TimedOut) {
            return;
        }
        record.response_in_stall.record(sample.response_time().0);
        if sample.sent != Nanos::MAX {
            record.service_in_stall.record(sample.service_time().0);
        }
    }

    /// The streams of events among the responses of a step. Only for steps that have them: from the first
    /// call on, the record of the step has this part.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    #[inline]
    pub fn event_streams(&mut self, step: u32) -> &mut EventStreamRecord {
        self.steps[step as usize].record.event_streams.get_or_insert_default()
    }

    /// Records the lag of a message that a step has awaited.
    pub fn record_lag(&mut self, step: u32, lag: Nanos) {
        self.steps[step as usize].record.lag.record(lag.0);
    }

    /// Adds bytes that came for a request before its last response: those of redirects.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    pub fn note_received(&mut self, step: u32, bytes: u64) {
        self.steps[step as usize].record.bytes_received += bytes;
    }

    /// Counts a whole response to a request of the warm-up that comes after it: the target's throughput has
    /// it, and nothing else.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    pub fn note_carried(&mut self, step: u32) {
        self.steps[step as usize].carried += 1;
    }

    /// Records the start lag of a request that was started and is not sent any more.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    pub fn record_withheld(&mut self, step: u32, lag: Nanos) {
        self.steps[step as usize].record.start_lag.record(lag.0);
    }

    /// Records a request that had not ended when the run stopped: its start lag, and its times so far as
    /// censored values. `service` is the time since it was sent, if it was. Call it before the last
    /// [`snapshot`](Self::snapshot).
    ///
    /// One that has waited for less than the fastest response took is in none of the times: as a bound it
    /// says nothing, and as a value it would be the smallest.
    ///
    /// # Panics
    /// As [`record`](Self::record).
    pub fn record_unfinished(&mut self, step: u32, lag: Nanos, response: Nanos, service: Option<Nanos>) {
        let step = &mut self.steps[step as usize];
        step.record.start_lag.record(lag.0);
        let bound = step.record.censored_service.from.0;
        let whole = step.record.service_time.min().filter(|min| *min < bound);
        let fastest = [whole, step.prompt_piece.min(), step.piece.min()];
        let least = fastest.into_iter().flatten().min().unwrap_or(0);
        if response.0 >= least {
            step.record_censored(response, service.filter(|service| service.0 >= least));
        }
    }

    /// Returns the counts since the last snapshot. Call it once per second and send the result to the run
    /// control.
    pub fn snapshot(&mut self, gauges: Gauges) -> Snapshot {
        Snapshot {
            at: gauges.at,
            warmup: gauges.warmup,
            drain: gauges.drain,
            scheduled: gauges.scheduled,
            iterations: gauges.iterations,
            resent: gauges.resent,
            answers: gauges.answers,
            in_flight: gauges.in_flight,
            connections: gauges.connections,
            steps: self.steps.iter_mut().map(StepRecorder::news).collect(),
            waiting: Vec::new(),
            exemplars: Vec::new(),
            metrics: Vec::new(),
            worker_status: None,
        }
    }

    /// The start lags of the requests that have ended since the last call, step by step.
    pub fn start_lags(&mut self) -> Vec<Delta> {
        self.steps.iter_mut().map(StepRecorder::late).collect()
    }

    /// Returns the responses so far by status code, step by step.
    pub fn statuses(&self) -> Vec<BTreeMap<u16, u64>> {
        self.steps.iter().map(StepRecorder::by_status).collect()
    }

    /// The records of the steps, in their order.
    pub fn finish(self) -> Vec<StepRecord> {
        self.steps.into_iter().map(StepRecorder::finish).collect()
    }
}

impl StepRecorder {
    #[inline]
    fn record_ok(&mut self, sample: &Sample) {
        let record = &mut self.record;
        record.ok += 1;
        let service = sample.service_time().0;
        if sample.first_byte < sample.done {
            record.response_time.record(sample.response_time().0);
            record.service_time.record(service);
            record.first_byte_time.record((sample.first_byte - sample.sent).0);
        } else if sample.sent == sample.intended {
            self.prompt_piece.record(service);
        } else {
            record.response_time.record(sample.response_time().0);
            self.piece.record(service);
        }
    }

    #[inline(never)]
    fn record_bad(&mut self, sample: &Sample) {
        let record = &mut self.record;
        let response = sample.response_time();
        match sample.outcome {
            Outcome::Ok => {}
            // A class of its own: our own aborts say nothing about the target.
            Outcome::Failed(class @ ErrorClass::AbortedByUs) => record.errors[class] += 1,
            Outcome::Failed(class) => {
                record.failed += 1;
                record.errors[class] += 1;
                record.failed_response_time.record(response.0);
            }
            Outcome::TimedOut => {
                record.timed_out += 1;
                // A request that was never sent has no service time; a zero would flatter the percentiles.
                let service = (sample.sent != Nanos::MAX).then(|| sample.service_time());
                self.record_censored(response, service);
            }
        }
    }

    /// Records times that took at least so long.
    fn record_censored(&mut self, response: Nanos, service: Option<Nanos>) {
        let record = &mut self.record;
        record.response_time.record(response.0);
        record.censored_response.note(response);
        self.censored.note(response);
        if let Some(service) = service {
            record.service_time.record(service.0);
            record.censored_service.note(service);
        }
    }

    /// Returns the counts since the last call.
    fn news(&mut self) -> Tally {
        let totals = self.totals();
        let mut news = totals.clone();
        news.take_counts(&self.seen.totals);
        self.seen.totals = totals;
        news.censored = std::mem::take(&mut self.censored);
        let mut delta = Delta::with_capacity(self.delta_capacity);
        self.seen.prompt_piece.advance(&self.prompt_piece, &mut delta);
        // Requests in both times count for both.
        let mut service = delta.clone();
        self.seen.response_time.advance(&self.record.response_time, &mut delta);
        self.seen.service_time.advance(&self.record.service_time, &mut service);
        self.seen.piece.advance(&self.piece, &mut service);
        self.delta_capacity = self.delta_capacity.max(delta.len());
        if let Some(streams) = &self.record.event_streams {
            self.seen.ttft.advance(&streams.ttft, &mut news.ttft);
        }
        if self.record.failed > 0 {
            self.seen.failed_time.advance(&self.record.failed_response_time, &mut news.failed_time);
        }
        news.response_time = delta;
        news.service_time = service;
        news
    }

    /// The start lags since the last call.
    fn late(&mut self) -> Delta {
        let punctual = self.punctual - std::mem::replace(&mut self.seen.punctual, self.punctual);
        let mut delta = Delta::of(0, punctual);
        self.seen.start_lag.advance(&self.record.start_lag, &mut delta);
        delta
    }

    /// Counts, sum and limits of the whole run so far.
    fn totals(&self) -> Tally {
        let record = &self.record;
        let among = |from: usize| self.statuses.get(from..from + 100).map_or(0, |counts| counts.iter().sum());
        let parts = [&record.response_time, &self.prompt_piece];
        let service = [&record.service_time, &self.prompt_piece, &self.piece];
        let least = parts.iter().filter_map(|part| part.min()).min();
        Tally {
            started: self.started,
            ok: record.ok,
            failed: record.failed,
            timed_out: record.timed_out,
            judged: record.event_streams.as_ref().map_or(0, |streams| streams.judged),
            good: record.event_streams.as_ref().map_or(0, |streams| streams.good),
            content_events: record.event_streams.as_ref().map_or(0, |streams| streams.content_events),
            ttft: Delta::default(),
            failed_time: Delta::default(),
            failed_time_sum: record.failed_response_time.sum(),
            failed_limits: record.failed_response_time.min().zip(record.failed_response_time.max()),
            completed: record.completed(),
            carried: self.carried,
            statuses: [among(300), among(400), among(500)],
            errors: record.errors.clone(),
            bytes_sent: record.bytes_sent,
            bytes_received: record.bytes_received,
            response_time: Delta::default(),
            service_time: Delta::default(),
            response_time_sum: parts.iter().map(|part| part.sum()).sum(),
            service_time_sum: service.iter().map(|part| part.sum()).sum(),
            censored: Censored::default(),
            limits: least.zip(parts.iter().filter_map(|part| part.max()).max()),
        }
    }

    /// Counts the first status of the step, or one with more than three digits.
    #[cold]
    fn count_other_status(&mut self, status: u16) {
        self.statuses.resize(STATUSES, 0);
        match self.statuses.get_mut(usize::from(status)) {
            Some(count) => *count += 1,
            None => self.record.count_odd_status(status),
        }
    }

    /// Responses so far by status code. Status 0 is left out: those requests had no response.
    fn by_status(&self) -> BTreeMap<u16, u64> {
        let counted = (0_u16..).zip(self.statuses.iter().copied()).skip(1).filter(|(_, count)| *count > 0);
        // Those with more than three digits are counted in the record itself.
        self.record.statuses.iter().map(|(status, count)| (*status, *count)).chain(counted).collect()
    }

    fn finish(self) -> StepRecord {
        let statuses = self.by_status();
        let mut record = StepRecord { statuses, ..self.record };
        record.start_lag.record_many(0, self.punctual);
        record.response_time.merge(&self.prompt_piece);
        for piece in [&self.piece, &self.prompt_piece] {
            record.service_time.merge(piece);
            record.first_byte_time.merge(piece);
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::ErrorClass;

    use super::*;

    const OK: Sample = Sample {
        step: 0,
        intended: Nanos(1_000),
        started: Nanos(1_200),
        sent: Nanos(1_300),
        first_byte: Nanos(1_800),
        done: Nanos(2_000),
        outcome: Outcome::Ok,
        status: 200,
        bytes_sent: 40,
        bytes_received: 160,
    };

    fn recorder() -> Recorder {
        Recorder::new(&["first".to_owned(), "second".to_owned()])
    }

    fn only(histogram: &plimsoll_histogram::Histogram) -> Option<u64> {
        assert!(histogram.count() <= 1, "{} values", histogram.count());
        histogram.max()
    }

    #[test]
    fn a_good_request_enters_every_time() {
        let mut recorder = recorder();
        recorder.record(&OK);
        recorder.record_withheld(1, Nanos(77));
        let steps = recorder.finish();
        assert_eq!(only(&steps[0].response_time), Some(1_000));
        assert_eq!(only(&steps[0].service_time), Some(700));
        assert_eq!(only(&steps[0].start_lag), Some(200));
        assert_eq!(only(&steps[0].first_byte_time), Some(500));
        assert_eq!(only(&steps[0].failed_response_time), None);
        assert_eq!((steps[0].ok, steps[0].bytes_sent, steps[0].bytes_received), (1, 40, 160));
        assert_eq!(steps[0].statuses, [(200, 1)].into());
        assert_eq!(steps[0].censored_response.count, 0);
        assert_eq!(steps[1].name, "second");
        assert_eq!(only(&steps[1].start_lag), Some(77));
        assert_eq!(steps[1].ok + steps[1].failed + steps[1].timed_out, 0);
    }

    #[test]
    fn a_request_without_an_answer_took_at_least_as_long_as_it_has_waited() {
        let mut recorder = recorder();
        recorder.record_unfinished(0, Nanos(7), Nanos(5_000), Some(Nanos(4_000)));
        recorder.record_unfinished(1, Nanos(9), Nanos(6_000), None);
        let last = recorder.snapshot(Gauges { drain: true, ..Gauges::default() });
        let steps = recorder.finish();
        assert_eq!((only(&steps[0].response_time), only(&steps[0].service_time)), (Some(5_000), Some(4_000)));
        assert_eq!((only(&steps[1].response_time), only(&steps[1].service_time)), (Some(6_000), None));
        for (step, response) in [(0, 5_000), (1, 6_000)] {
            let censored = Censored { count: 1, from: Nanos(response) };
            assert_eq!((steps[step].censored_response, last.steps[step].censored), (censored, censored));
            assert_eq!(steps[step].ok + steps[step].failed + steps[step].timed_out, 0);
        }
        assert_eq!(only(&steps[0].start_lag), Some(7));
    }

    #[test]
    fn a_request_that_met_a_stall_is_kept_apart_as_well() {
        let mut recorder = recorder();
        recorder.record(&OK);
        recorder.record(&Sample { step: 1, ..OK });
        recorder.record_in_stall(&OK);
        recorder.record_in_stall(&Sample { outcome: Outcome::Failed(ErrorClass::Reset), ..OK });
        let steps = recorder.finish();
        assert_eq!(only(&steps[0].response_in_stall), Some(1_000));
        assert_eq!(only(&steps[0].service_in_stall), Some(700));
        assert_eq!(only(&steps[0].response_time), Some(1_000));
        assert_eq!(only(&steps[1].response_in_stall), None);
    }

    #[test]
    fn a_failed_request_is_kept_apart() {
        let mut recorder = recorder();
        let failed = Outcome::Failed(ErrorClass::Status5xx);
        recorder.record(&Sample { outcome: failed, status: 503, ..OK });
        recorder.record(&Sample { outcome: Outcome::Failed(ErrorClass::Reset), status: 0, ..OK });
        // A status outside of the valid range is counted all the same.
        recorder.record(&Sample { outcome: failed, status: 1_234, ..OK });
        let step = recorder.finish().swap_remove(0);
        assert_eq!(step.failed, 3);
        assert_eq!(step.failed_response_time.count(), 3);
        assert_eq!(step.start_lag.count(), 3);
        assert!(
            step.response_time.is_empty() && step.service_time.is_empty() && step.first_byte_time.is_empty()
        );
        assert_eq!(step.errors[ErrorClass::Status5xx], 2);
        assert_eq!(step.errors[ErrorClass::Reset], 1);
        assert_eq!(step.statuses, [(503, 1), (1_234, 1)].into());
    }

    #[test]
    fn a_timeout_is_censored_and_has_no_service_time_if_it_was_never_sent() {
        let mut recorder = recorder();
        recorder.record(&Sample { outcome: Outcome::TimedOut, status: 0, first_byte: Nanos::MAX, ..OK });
        let unsent = Sample { outcome: Outcome::TimedOut, sent: Nanos::MAX, done: Nanos(1_900), ..OK };
        recorder.record(&unsent);
        let step = recorder.finish().swap_remove(0);
        assert_eq!(step.timed_out, 2);
        assert_eq!(step.response_time.count(), 2);
        assert_eq!(step.censored_response, plimsoll_histogram::Censored { count: 2, from: Nanos(900) });
        assert_eq!(only(&step.service_time), Some(700));
        assert_eq!(step.censored_service, plimsoll_histogram::Censored { count: 1, from: Nanos(700) });
        assert!(step.first_byte_time.is_empty());
    }

    #[test]
    fn merged_records_of_workers_equal_the_record_of_one() {
        let samples = [
            OK,
            Sample { step: 1, done: Nanos(9_000), ..OK },
            Sample { outcome: Outcome::TimedOut, done: Nanos(50_000), status: 0, ..OK },
            Sample { outcome: Outcome::Failed(ErrorClass::Status4xx), status: 404, ..OK },
            Sample { step: 1, outcome: Outcome::Failed(ErrorClass::Io), status: 0, ..OK },
        ];
        let (mut one, mut even, mut odd) = (recorder(), recorder(), recorder());
        for (number, sample) in samples.iter().enumerate() {
            one.record(sample);
            if number % 2 == 0 { even.record(sample) } else { odd.record(sample) }
        }
        let mut merged = even.finish();
        for (mine, theirs) in merged.iter_mut().zip(odd.finish()) {
            mine.merge(&theirs);
        }
        assert_eq!(merged, one.finish());
    }

    #[test]
    fn a_snapshot_holds_what_happened_since_the_last_one_over_all_steps() {
        let mut recorder = recorder();
        recorder.record(&OK);
        recorder.record(&Sample { step: 1, ..OK });
        recorder.record(&Sample { step: 1, outcome: Outcome::TimedOut, done: Nanos(1_500), ..OK });
        recorder.note_started(0);
        recorder.note_started(0);
        let gauges = Gauges { at: Nanos::from_secs(1), in_flight: 1, ..Gauges::default() };
        let first = recorder.snapshot(gauges);
        let shape = |tally: &Tally| [tally.started, tally.ok, tally.failed, tally.timed_out];
        assert_eq!(first.steps.iter().map(shape).collect::<Vec<_>>(), [[2, 1, 0, 0], [0, 1, 0, 1]]);
        assert_eq!(first.in_flight, 1);
        let both = first.total();
        // One bucket for both steps' 1,000 ns, in ascending order after the 500 ns of the second step.
        assert_eq!(both.response_time.values().collect::<Vec<_>>(), [(500, 1), (1_000, 2)]);
        assert_eq!((both.limits, both.response_time_sum), (Some((500, 1_000)), 2_500));
        assert_eq!(both.censored, plimsoll_histogram::Censored { count: 1, from: Nanos(500) });
        assert_eq!((both.completed, both.bytes_received), (2, 480));
        recorder.record(&Sample { outcome: Outcome::Failed(ErrorClass::Io), ..OK });
        recorder.record(&Sample { outcome: Outcome::Failed(ErrorClass::Status4xx), status: 404, ..OK });
        recorder.record(&Sample { status: 302, ..OK });
        let second = recorder.snapshot(Gauges { at: Nanos::from_secs(2), ..Gauges::default() }).total();
        assert_eq!((second.ok, second.failed, second.timed_out, second.completed), (1, 2, 0, 2));
        assert_eq!((second.statuses, second.started), ([1, 1, 0], 0));
        assert_eq!(second.errors[ErrorClass::Io], 1);
        assert_eq!(second.response_time.values().collect::<Vec<_>>(), [(1_000, 1)]);
        assert_eq!(second.censored, plimsoll_histogram::Censored::default());
    }
}
