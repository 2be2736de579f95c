//! Counters beside the recorder.

use std::collections::BTreeMap;

use plimsoll_core::{ErrorClass, Nanos, Outcome, Shard};
use plimsoll_metrics::{Accounting, AnswerTimes, IterationRecord};
use plimsoll_plan::{Load, Plan};

use crate::connection::PROTOCOLS;
use crate::request::{AT_SEND, InFlight, Intent, Loss};
use crate::target_pool::Passed;

/// Counters of one worker: the accounts of its arrivals and iterations, and progress since the last snapshot.
///
/// Every scheduled arrival ends in exactly one account. `in_flight` counts the requests between: those that
/// were [started](Self::start), and have neither [ended](Self::end) nor been [withheld](Self::withhold).
#[derive(Debug, Default)]
pub(super) struct Counts {
    accounting: Accounting,
    iterations: IterationRecord,
    /// Requests started and not ended, warm-up included.
    in_flight: u64,
    completed_in_window: u64,
    /// Iterations that the closed model may still start in the measured part; `None` without a count.
    remaining: Option<u64>,
    /// Iterations begun by this worker, the source of their global index in the closed model.
    begun: u64,
    /// Scheduled since the last snapshot, warm-up included.
    new_scheduled: u64,
    /// Due in the measured part by the last snapshot.
    told_due: u64,
    /// Iterations started since then.
    new_iterations: u64,
    /// Requests sent again since then.
    new_resent: u64,
    /// Measured responses by protocol, in the order of [`PROTOCOLS`] and then in that of the plan's
    /// protocols of other crates.
    answered: Box<[u64]>,
    /// Requests of the warm-up that ended well.
    warmup_ok: u64,
    /// Calls of scripts that have failed in a row, and the requests that had ended well by then.
    script_failures: u64,
    ok_at_failure: u64,
    /// When the last answer came; zero before the first.
    last_answer: Nanos,
    /// The time between the last request that ended with an answer and that answer.
    took: Nanos,
    /// Value of `last_answer` at the end of the last pass.
    told_answer: Nanos,
    /// Answers since the last snapshot, as instants of the clock.
    new_answers: Option<AnswerTimes>,
    /// When the last request of the measured part ended.
    pub(super) last_done: Nanos,
    /// When the last snapshot was taken.
    pub(super) last_edge: Nanos,
}

impl Counts {
    /// Nothing so far, of this part of a plan.
    pub(super) fn new(plan: &Plan, shard: Shard) -> Self {
        // In the open model the schedule itself counts.
        let remaining = match plan.load {
            Load::Closed => plan.end.iterations.map(|total| shard.share_of(total)),
            Load::Open { .. } => None,
        };
        let protocols = PROTOCOLS.len() + plan.in_turn_protocols().count();
        Self { remaining, answered: vec![0; protocols].into(), ..Self::default() }
    }

    /// Counts a request that falls due.
    #[inline]
    pub(super) fn schedule(&mut self, measured: bool) {
        self.accounting.scheduled += u64::from(measured);
        self.new_scheduled += 1;
    }

    /// Counts a scheduled request that starts.
    #[inline]
    pub(super) fn start(&mut self, measured: bool) {
        self.in_flight += 1;
        self.accounting.started += u64::from(measured);
    }

    /// Counts a request of the warm-up as one of the measured part, through all of which it had no answer.
    pub(super) const fn carry_over(&mut self) {
        self.accounting.scheduled += 1;
        self.accounting.started += 1;
        self.accounting.since_warmup += 1;
    }

    /// Counts requests that fall due and start together with another one of their iteration.
    #[inline]
    pub(super) fn start_siblings(&mut self, others: u64, measured: bool) {
        let others_measured = if measured { others } else { 0 };
        self.in_flight += others;
        self.new_scheduled += others;
        self.accounting.scheduled += others_measured;
        self.accounting.started += others_measured;
    }

    /// Counts out a request that ends. Its account is [`end_measured`](Self::end_measured) or
    /// [`end_unmeasured`](Self::end_unmeasured).
    #[inline]
    pub(super) const fn end(&mut self) {
        self.in_flight -= 1;
    }

    /// Notes that a part of a stream came from the target then.
    #[inline(always)]
    pub(super) const fn note_part(&mut self, at: Nanos) {
        self.last_answer = at;
    }

    /// Notes that a request, sent then, was answered to its end.
    #[inline(always)]
    pub(super) const fn note_answer(&mut self, sent: Nanos, at: Nanos) {
        (self.last_answer, self.took) = (at, at.since(sent));
    }

    /// Notes the answers of a pass of the loop that began with so many requests in flight.
    #[inline]
    pub(super) fn note_answers(&mut self, waiting: u64) {
        if self.last_answer == self.told_answer {
            return;
        }
        self.told_answer = self.last_answer;
        match &mut self.new_answers {
            Some(answers) => (answers.last, answers.took) = (self.last_answer, self.took),
            none => {
                *none = Some(AnswerTimes { took: self.took, ..AnswerTimes::at(self.last_answer, waiting) });
            }
        }
    }

    /// Answers since the last call, as instants since `start`.
    pub(super) fn take_answers(&mut self, start: Nanos) -> Option<AnswerTimes> {
        let answers = self.new_answers.take()?;
        Some(AnswerTimes { first: answers.first.since(start), last: answers.last.since(start), ..answers })
    }

    /// Counts a request of the measured part that has ended.
    #[inline(always)]
    pub(super) fn end_measured(&mut self, request: &InFlight, outcome: Outcome, at: Nanos, in_window: bool) {
        let accounting = &mut self.accounting;
        match outcome {
            Outcome::Ok => accounting.ok += 1,
            Outcome::Failed(ErrorClass::AbortedByUs) => {
                accounting.aborted += 1;
                accounting.cut_short += u64::from(request.intent == Intent::CutRequest);
            }
            Outcome::Failed(_) => accounting.failed += 1,
            Outcome::TimedOut => accounting.timed_out += 1,
        }
        accounting.undelivered += u64::from(request.sent == AT_SEND);
        self.completed_in_window += u64::from(in_window);
        self.last_done = self.last_done.max(at);
    }

    /// Counts a request of the warm-up that has ended, with a whole response within the measured part if
    /// `in_window`: throughput is of the answers that come in that time, whoever asked for them.
    #[inline]
    pub(super) fn end_unmeasured(&mut self, request: &InFlight, outcome: Outcome, in_window: bool) {
        self.accounting.unmeasured += u64::from(request.sent != AT_SEND);
        self.completed_in_window += u64::from(in_window);
        self.warmup_ok += u64::from(outcome == Outcome::Ok);
    }

    /// Counts a request that was started, and is not sent any more: a script has asked for the end.
    #[inline]
    pub(super) fn withhold(&mut self, measured: bool) {
        self.in_flight -= 1;
        self.accounting.in_flight_at_stop += u64::from(measured);
        self.accounting.undelivered += u64::from(measured);
    }

    /// Counts a request that has not ended when the run has.
    pub(super) fn leave_unfinished(&mut self, request: &InFlight) {
        if request.measured {
            self.accounting.in_flight_at_stop += 1;
            self.accounting.undelivered += u64::from(request.sent == AT_SEND);
        } else {
            self.accounting.unmeasured += u64::from(request.sent != AT_SEND);
        }
    }

    /// Counts arrivals of the measured part that fell due and are never started, some of them for lack of
    /// data.
    #[inline]
    pub(super) const fn never_start(&mut self, measured: u64, without_data: u64) {
        self.accounting.scheduled += measured;
        self.accounting.never_started += measured;
        self.accounting.without_data += without_data;
    }

    /// Counts an arrival whose scenario has no data any more, while others have.
    #[inline]
    pub(super) fn pass_by(&mut self, measured: bool) {
        self.new_scheduled += 1;
        self.never_start(u64::from(measured), u64::from(measured));
    }

    /// Counts arrivals that fell due and are dropped, except those that lack data.
    #[inline]
    pub(super) const fn drop_passed(&mut self, passed: Passed) {
        let Passed { all, measured, without_data } = passed;
        self.new_scheduled += all;
        self.never_start(without_data, without_data);
        self.accounting.scheduled += measured - without_data;
        self.accounting.dropped += measured - without_data;
    }

    /// Counts a request that is sent again, because its answer is still to come.
    #[cold]
    pub(super) const fn poll(&mut self, request: &InFlight) {
        if request.measured {
            self.accounting.polls += 1;
        } else {
            self.accounting.unmeasured += 1;
        }
    }

    /// Counts a request that is sent to where it was redirected. Not earlier than when it is sent: a
    /// connection that has to be opened for it may fail, and then the target does not get it.
    #[inline]
    pub(super) const fn redirect(&mut self, request: &InFlight) {
        if request.measured {
            self.accounting.redirects_followed += 1;
        } else {
            self.accounting.unmeasured += 1;
        }
    }

    /// Counts a request whose bytes were handed over once more, because the first attempt was lost.
    #[cold]
    pub(super) const fn resend(&mut self, request: &InFlight, loss: Loss) {
        self.new_resent += 1;
        if request.measured {
            self.accounting.resent += 1;
            self.accounting.resent_closed += matches!(loss, Loss::Closed) as u64;
        } else {
            self.accounting.unmeasured += 1;
        }
    }

    /// Counts a response by the number of its protocol.
    #[inline]
    pub(super) fn answer(&mut self, protocol: usize, measured: bool) {
        self.answered[protocol] += u64::from(measured);
    }

    /// Counts an iteration that begins.
    #[inline]
    pub(super) fn begin_iteration(&mut self, measured: bool) {
        self.iterations.started += u64::from(measured);
        self.new_iterations += 1;
    }

    /// Takes back an iteration that could not begin, because its data has ended.
    #[inline]
    pub(super) fn take_back_iteration(&mut self, measured: bool) {
        self.iterations.started -= u64::from(measured);
        self.new_iterations -= 1;
    }

    /// Counts an iteration that ends.
    #[inline]
    pub(super) fn end_iteration(&mut self, measured: bool, ok: bool) {
        let measured = u64::from(measured);
        self.iterations.completed += if ok { measured } else { 0 };
        self.iterations.failed += if ok { 0 } else { measured };
    }

    /// Closed model: the global index of the next iteration.
    #[inline]
    pub(super) fn next_index(&self, shard: Shard) -> u64 {
        self.begun * u64::from(shard.of) + u64::from(shard.index)
    }

    /// Closed model: counts an iteration that took the [next index](Self::next_index).
    #[inline]
    pub(super) const fn take_index(&mut self, measured: bool) {
        self.begun += 1;
        if measured && let Some(remaining) = &mut self.remaining {
            *remaining -= 1;
        }
    }

    /// Counts a call of a script that has failed: how many have in a row, without one request in between that
    /// ended well.
    pub(super) const fn script_failure(&mut self) -> u64 {
        let ok = self.accounting.ok + self.warmup_ok;
        self.script_failures = if self.ok_at_failure == ok { self.script_failures + 1 } else { 1 };
        self.ok_at_failure = ok;
        self.script_failures
    }

    /// Arrivals that fell due since the last call, iterations started, and requests sent again since then.
    ///
    /// `backlog` is the number of arrivals of the measured part that are due and not taken; `None` in the
    /// warm-up, of which only arrivals that were taken are known.
    pub(super) fn take_progress(&mut self, backlog: Option<u64>) -> (u64, u64, u64) {
        let taken = [&mut self.new_scheduled, &mut self.new_iterations, &mut self.new_resent];
        let [scheduled, iterations, resent] = taken.map(std::mem::take);
        let Some(backlog) = backlog else { return (scheduled, iterations, resent) };
        let Accounting { scheduled, since_warmup, .. } = self.accounting;
        let due = scheduled - since_warmup + backlog;
        // An arrival that was taken right behind the edge of the last interval belongs to that.
        let new = due.saturating_sub(self.told_due);
        self.told_due = self.told_due.max(due);
        (new, iterations, resent)
    }

    /// Requests started and not ended, warm-up included.
    #[inline]
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Iterations that the closed model may still start in the measured part; `None` without a count.
    #[inline]
    pub(super) const fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    /// Accounts of the arrivals.
    #[inline]
    pub(super) const fn accounting(&self) -> Accounting {
        self.accounting
    }

    /// Accounts of the iterations; while the load goes on, without those that are under way.
    #[inline]
    pub(super) const fn iterations(&self) -> IterationRecord {
        self.iterations
    }

    /// Requests completed within the measured part.
    #[inline]
    pub(super) const fn completed_in_window(&self) -> u64 {
        self.completed_in_window
    }

    /// Measured responses by protocol.
    pub(super) fn protocols(&self, plan: &Plan) -> BTreeMap<&'static str, u64> {
        let foreign = plan.in_turn_protocols().map(|protocol| protocol.name);
        let names = PROTOCOLS.into_iter().chain(foreign);
        names.zip(self.answered.iter().copied()).filter(|(_, responses)| *responses > 0).collect()
    }
}
